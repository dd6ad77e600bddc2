"""When a job would have started with less memory: the recorded cycles in which it waited, planned again.

A cycle is recorded if it started a job or noted something, with its snapshot: the free nodes and the whole queue. The
live policy plans that snapshot again, with nothing changed but the memory of the one job. The first cycle that would
have started it is the answer. Cycles between the recorded ones started nothing, so it might have started even sooner;
what other jobs would have done differently before that moment is not looked at.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from math import ceil
from time import monotonic
from typing import NamedTuple

from slurm_sns.model import Job, Plan, Seconds, Snapshot

#: Planning again takes the scheduler's own processor: at most so many cycles, evenly spread, and for so long.
MOST_CYCLES = 60
LONGEST_S = 0.5


class Replayed(NamedTuple):
    """The moment of the first cycle that would have started the job, None for none, and how many were planned."""

    start_s: Seconds | None
    cycles: int


def evenly(cycles: list[int], most: int = MOST_CYCLES) -> list[int]:
    """At most so many of the cycles, the first one among them."""
    step = max(1, ceil(len(cycles) / most))
    return cycles[::step]


def first_start(
    snapshots: Iterable[Snapshot | None],
    job_ids: Collection[int],
    factor: float,
    plan: Callable[[Snapshot], Plan],
    now_s: Callable[[], float] = monotonic,
) -> Replayed | None:
    """Plan the snapshots again, in their order, with the job's memory times `factor`, until it starts.

    The job has one of these ids. A snapshot is skipped if it is not kept or the job does not wait in it. A cycle
    that started the job with its whole request is none that less memory would have won: Slurm did not carry that out.
    None if the time is up before: cycles that were not looked at may have started it.
    """

    def starts(snapshot: Snapshot) -> bool:
        return any(start.job_id in job_ids for start in plan(snapshot).starts)

    planned, until_s = 0, now_s() + LONGEST_S
    for snapshot in snapshots:
        if now_s() > until_s:
            return None
        if snapshot is None or not any(job.id in job_ids for job in snapshot.waiting):
            continue
        planned += 1
        if starts(_with_less(snapshot, job_ids, factor)) and not starts(snapshot):
            return Replayed(snapshot.now_s, planned)
    return Replayed(None, planned)


def _with_less(snapshot: Snapshot, job_ids: Collection[int], factor: float) -> Snapshot:
    """The snapshot with a smaller request of this job."""
    waiting = tuple(_smaller(job, factor) if job.id in job_ids else job for job in snapshot.waiting)
    return replace(snapshot, waiting=waiting)


def _smaller(job: Job, factor: float) -> Job:
    def less(memory_mb: int) -> int:
        return min(memory_mb, ceil(memory_mb * factor))

    return replace(
        job,
        alternatives=tuple(
            replace(each, demand=each.demand._replace(memory_mb=less(each.demand.memory_mb)))
            for each in job.alternatives
        ),
    )
