"""Time limits that count virtual time: how long a job may run in Slurm's seconds so that its owner's limit is kept.

Slurm ends a job when it has run for its TimeLimit. A job that shares cores goes on more slowly, so its TimeLimit is
moved to where its virtual time will reach the limit that its owner gave, if its yield stays as it is. As yields change,
it is moved again: rarely, and once more when the virtual time is used up.

Source: Dynamic fractional resource scheduling (IPDPS 2010) has run times at full speed; limits are ours.
"""

from dataclasses import dataclass
from math import ceil, floor, inf

from slurm_sns.sharing.progress import RunProgress

#: Slurm counts limits in minutes.
MINUTE_S = 60
#: A limit that lies further ahead is not looked at.
NEAR_S = 600
#: One job's limit is moved so often at most, unless it is about to end or has used up its time.
PAUSE_S = 600


@dataclass(frozen=True, slots=True)
class LimitedJob:
    """A running job: its owner's limit, Slurm's TimeLimit now, when that was moved last (Unix seconds, None: never).

    `longest_s`: its limit is not raised beyond that, as where a reservation of its nodes begins then.
    """

    own_s: int
    limit_s: int
    moved_s: float | None = None
    longest_s: float = inf


def wanted_limit_s(job: LimitedJob, progress: RunProgress, part: float, most_extension: float) -> int:
    """The TimeLimit with which the job ends when its virtual time is used up, in seconds, whole minutes, rounded up.

    It is at most `most_extension` times the owner's limit, and never below the owner's.
    """
    left_s = max(0.0, job.own_s - progress.virtual_s)
    longest_s = inf if job.longest_s == inf else floor(job.longest_s / MINUTE_S) * MINUTE_S
    most_s = min(most_extension * job.own_s, max(longest_s, job.limit_s))  # what was given is not taken away again
    wanted_s = ceil(min(progress.ran_s + left_s / part, most_s) / MINUTE_S) * MINUTE_S
    return max(wanted_s, job.own_s)


def new_limit_s(job: LimitedJob, progress: RunProgress, part: float, now_s: float, most_extension: float) -> int | None:
    """The TimeLimit to set now; None if it stays."""
    wanted_s = wanted_limit_s(job, progress, part, most_extension)
    if wanted_s == job.limit_s:
        return None
    if progress.virtual_s >= job.own_s:  # Slurm ends it soon after its limit, not at once
        return wanted_s if wanted_s < job.limit_s else None
    left_s = job.limit_s - progress.ran_s
    if left_s <= 2 * MINUTE_S:
        return wanted_s
    is_due = job.moved_s is None or not 0 <= now_s - job.moved_s < PAUSE_S
    return wanted_s if is_due and (left_s < NEAR_S or wanted_s < job.limit_s) else None
