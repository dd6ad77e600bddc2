"""What jobs that have ended lately tell of those to come: how long they waited, were suspended and ran.

Source: Cost-based dynamic job rescheduling (2010), section 3.2.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

#: Runs that ended so long before a decision are no longer recent (section 3.2 and figure 5).
RECENT_S = 86_400
#: So many of the latest jobs are kept.
MOST_PAST = 5_000


class PastJob(NamedTuple):
    """A job that has ended, by Slurm's record of its last run. All times are whole seconds.

    `tier` is its partition's PriorityTier. `wait_s` counts from its submission, or from its owner's begin time.
    `run_s` is without suspensions, None if the run did not succeed.
    """

    job_id: int
    ended_s: int
    partition: str
    tier: int
    user_id: int
    name: str
    wait_s: int
    suspended_s: int
    was_suspended: bool
    run_s: int | None


@dataclass(frozen=True, slots=True)
class RecentAverages:
    """The means over `samples` jobs, in seconds; `is_of_site`: over all partitions, as this one has no samples."""

    samples: int
    wait_s: Fraction
    suspended_s: Fraction
    is_of_site: bool = False


class PastJobs:
    """The jobs that have ended lately.

    `window_s`: those that ended within it count in averages; `only_suspended`: only those that were suspended.
    """

    def __init__(self, window_s: int, *, only_suspended: bool, jobs: Iterable[PastJob] = ()) -> None:
        self._window_s, self._only_suspended = window_s, only_suspended
        #: Oldest first.
        self._jobs = {job.job_id: job for job in sorted(jobs, key=lambda job: job.ended_s)}

    @property
    def jobs(self) -> tuple[PastJob, ...]:
        """All that are kept."""
        return tuple(self._jobs.values())

    def knows(self, job_id: int) -> bool:
        """Whether this job is among them."""
        return job_id in self._jobs

    def learn(self, jobs: Iterable[PastJob], now_s: float) -> bool:
        """Take these jobs in, and forget the oldest; whether anything has changed."""
        new = {job.job_id: job for job in jobs if job.job_id not in self._jobs}
        oldest_s = now_s - max(self._window_s, RECENT_S)
        if not new and all(job.ended_s >= oldest_s for job in islice(self._jobs.values(), 1)):
            return False
        kept = sorted((*self._jobs.values(), *new.values()), key=lambda job: job.ended_s)
        left = {job.job_id: job for job in kept[-MOST_PAST:] if job.ended_s >= oldest_s}
        is_changed = left.keys() != self._jobs.keys()
        self._jobs = left
        return is_changed

    def averages(self, partition: str, tier: int, now_s: float) -> RecentAverages | None:
        """The averages of the partition's jobs of this tier, else those of the whole site; None without any sample."""
        since_s = now_s - self._window_s
        samples = [
            job
            for job in self._jobs.values()
            if job.tier == tier and since_s <= job.ended_s <= now_s and (job.was_suspended or not self._only_suspended)
        ]
        here = [job for job in samples if job.partition == partition]
        found = here or samples
        if not found:
            return None
        count = len(found)
        waited, suspended = sum(job.wait_s for job in found), sum(job.suspended_s for job in found)
        return RecentAverages(count, Fraction(waited, count), Fraction(suspended, count), is_of_site=not here)

    def mean_run_s(self, user_id: int, name: str, now_s: float) -> Fraction | None:
        """The mean run time of the owner's recent runs of this program that succeeded; None if there are none."""
        since_s = now_s - RECENT_S
        runs = [
            job.run_s
            for job in self._jobs.values()
            if job.run_s is not None and (job.user_id, job.name) == (user_id, name) and job.ended_s >= since_s
        ]
        return Fraction(sum(runs), len(runs)) if runs else None
