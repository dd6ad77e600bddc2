"""Jobs that Slurm did not start for a limit of their owner's: who of them tries again, and when. Pure.

Slurm checks the limits of users, accounts and QOS itself, when it is about to start a job (account_limits). A job that
meets one is held again and withholds no capacity. Of those of one association that have met the same limit, the
smallest tries for all: what it does not get, the others do not get either, and neither do jobs of that association at
least as large that have not been tried. It tries again after a growing pause (backoff_s), and sooner where a job of its
account or its QOS has ended since, which may have made room.
"""

import re
from collections.abc import Iterable, Mapping
from math import inf

from slurm_sns.scheduler.observed import JobState, ObservedJob
from slurm_sns.scheduler.records import JobRecord, Stage

#: Slurm's words for limits of associations and QOS (job_state_reason.c); a QOS also limits its accounts and users.
_LIMIT = re.compile(r"Assoc|QOS|Max\w+Per(Account|User)$")

#: The longest pause where the limit may have been relieved: Slurm's own main pass looks at its queue once a minute.
RELIEVED_S = 60.0

Owner = tuple[str, str, int]
Group = tuple[str, Owner]


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
    waiting, seen = list(candidates), list(jobs)
    groups: dict[Group, list[ObservedJob]] = {}
    for job in waiting:
        record = records.get(job.id)
        if record is not None and record.limited_by:
            groups.setdefault(_group(job, record), []).append(job)
    trying = _trying(seen, records)
    if not groups and not trying:
        return {}
    smallest = {group: min(members, key=_size) for group, members in groups.items()}
    smallest |= trying
    reasons = _not_smaller(waiting, records, smallest)
    ended_s = _last_ends_s(seen)
    for group, members in groups.items():
        first = smallest[group]
        wait_s = _pause_s([records[job.id] for job in members], _relieved_s(first, ended_s), now_s)
        for job in members:
            note = records[job.id].note
            if group in trying or (job is not first and not 0 < wait_s <= longest_s):
                reasons[job.id] = f"{note}; {_tries(first)}"
            elif 0 < wait_s <= longest_s:
                reasons[job.id] = f"{note}; tried again in {wait_s:.0f} s"
    return reasons


def _not_smaller(
    waiting: Iterable[ObservedJob], records: Mapping[int, JobRecord], smallest: Mapping[Group, ObservedJob]
) -> dict[int, str]:
    """The jobs that have met no limit, and are at least as large as one of their owner's that has."""
    by_owner: dict[Owner, list[tuple[str, ObservedJob]]] = {}
    for (limit, owner), first in smallest.items():
        by_owner.setdefault(owner, []).append((limit, first))
    found: dict[int, str] = {}
    for job in waiting:
        for limit, first in by_owner.get(_owner(job), ()):
            record = records.get(job.id)
            if (record is None or not record.limited_by) and _is_as_large(job, first):
                found[job.id] = f"its owner has met a limit, {limit}; {_tries(first)}"
    return found


def _tries(first: ObservedJob) -> str:
    return f"job {first.id} tries that limit first"


def _owner(job: ObservedJob) -> Owner:
    return job.account, job.qos, job.user_id


def _group(job: ObservedJob, record: JobRecord) -> Group:
    return record.limited_by, _owner(job)


def _amounts(job: ObservedJob) -> tuple[int, int, int, float]:
    """Nodes, CPUs, memory (MiB), time (s)."""
    memory_mb = job.memory_per_node_mb or (job.memory_per_cpu_mb or 0) * job.cpus
    return job.nodes_min or 1, job.cpus, memory_mb, inf if job.walltime_s is None else job.walltime_s


def _size(job: ObservedJob) -> tuple[tuple[int, int, int, float], int]:
    """The smallest is the likeliest to be within a limit."""
    return _amounts(job), job.id


def _is_as_large(job: ObservedJob, other: ObservedJob) -> bool:
    return all(mine >= theirs for mine, theirs in zip(_amounts(job), _amounts(other), strict=True))


def _trying(jobs: Iterable[ObservedJob], records: Mapping[int, JobRecord]) -> dict[Group, ObservedJob]:
    """The groups of which a job is placed now, with that job."""
    found: dict[Group, ObservedJob] = {}
    for job in jobs:
        record = records.get(job.id)
        if record is not None and record.limited_by and record.stage is Stage.PLACED and job.state is JobState.PENDING:
            found[_group(job, record)] = job
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
