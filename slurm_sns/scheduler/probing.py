"""Jobs that Slurm did not start for a limit of their owner's: who of them tries again, and when. Pure.

Slurm checks the limits of users, accounts and QOS itself, when it is about to start a job (account_limits). A job that
meets one is held again and withholds no capacity. Of those of one association that have met the same limit, the
smallest tries for all: what it does not get, the others do not get either. It tries again after a growing pause
(backoff_s), and sooner where a job of its account or its QOS has ended since, which may have made room.
"""

import re
from collections.abc import Iterable, Mapping

from slurm_sns.scheduler.observed import JobState, ObservedJob
from slurm_sns.scheduler.records import JobRecord, Stage

#: Slurm's words for limits of associations and QOS (job_state_reason.c); a QOS also limits its accounts and users.
_LIMIT = re.compile(r"Assoc|QOS|Max\w+Per(Account|User)$")

#: The longest pause where the limit may have been relieved: Slurm's own main pass looks at its queue once a minute.
RELIEVED_S = 60.0

Group = tuple[str, str, int]


def is_limit(reason: str) -> bool:
    """Whether Slurm's reason is a limit of the job's user, account or QOS."""
    return _LIMIT.match(reason) is not None


def waiting_for_limits(
    candidates: Iterable[ObservedJob],
    jobs: Iterable[ObservedJob],
    records: Mapping[int, JobRecord],
    now_s: float,
    longest_s: float,
) -> dict[int, str]:
    """Of the candidates, those that are not to be planned now because a limit was met, each with the reason.

    `jobs` are all that Slurm shows; a pause of more than `longest_s` is what a clock that was set back has left.
    """
    groups: dict[Group, list[ObservedJob]] = {}
    for job in candidates:
        record = records.get(job.id)
        if record is not None and record.limited_by:
            groups.setdefault(_group(job, record), []).append(job)
    if not groups:
        return {}
    seen = list(jobs)
    trying = _trying(seen, records)
    ended_s = _last_ends_s(seen)
    reasons: dict[int, str] = {}
    for group, members in groups.items():
        first = min(members, key=_size)
        wait_s = _pause_s([records[job.id] for job in members], _relieved_s(first, ended_s), now_s)
        for job in members:
            note = records[job.id].note
            if group in trying or (job is not first and not 0 < wait_s <= longest_s):
                reasons[job.id] = f"{note}; job {trying.get(group, first.id)} tries that limit first"
            elif 0 < wait_s <= longest_s:
                reasons[job.id] = f"{note}; tried again in {wait_s:.0f} s"
    return reasons


def _group(job: ObservedJob, record: JobRecord) -> Group:
    return record.limited_by, job.account, job.user_id


def _size(job: ObservedJob) -> tuple[int, int, int, int, int]:
    """Nodes, CPUs, memory, time: the smallest is the likeliest to be within a limit."""
    memory_mb = job.memory_per_node_mb or (job.memory_per_cpu_mb or 0) * job.cpus
    return job.nodes_min or 1, job.cpus, memory_mb, job.walltime_s or 0, job.id


def _trying(jobs: Iterable[ObservedJob], records: Mapping[int, JobRecord]) -> dict[Group, int]:
    """The groups of which a job is placed now, with that job."""
    found: dict[Group, int] = {}
    for job in jobs:
        record = records.get(job.id)
        if record is not None and record.limited_by and record.stage is Stage.PLACED and job.state is JobState.PENDING:
            found[_group(job, record)] = job.id
    return found


def _last_ends_s(jobs: Iterable[ObservedJob]) -> dict[str, int]:
    """When a job of each account and each QOS ended last."""
    found: dict[str, int] = {}
    for job in jobs:
        if job.state is JobState.ENDED:
            for key in (f"account {job.account}", f"qos {job.qos}"):
                found[key] = max(job.end_s, found.get(key, 0))
    return found


def _relieved_s(job: ObservedJob, ended_s: Mapping[str, int]) -> int:
    return max(ended_s.get(f"account {job.account}", 0), ended_s.get(f"qos {job.qos}", 0))


def _pause_s(records: Iterable[JobRecord], relieved_s: float, now_s: float) -> float:
    """How long the group still pauses: as its last try says, or shorter where a job has ended since."""
    last = max(records, key=lambda record: record.placed_s)
    until_s = min(last.retry_s, last.placed_s + RELIEVED_S) if relieved_s > last.placed_s else last.retry_s
    return until_s - now_s
