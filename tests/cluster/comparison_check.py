"""Whether jobs waited although Slurm could have started them, computed after the run.

For each second, the waiting jobs in the order of their submission get the earliest place that the running jobs leave,
which are taken to run until their time limits (comparison_profile). A job whose earliest place is now could start: it
fits on idle nodes, and delays no job that was submitted before it. `idle_waits` says for how long each job could have
started.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf

from comparison_profile import NodeSize, Parts, Profile
from comparison_workload import Shape


@dataclass(frozen=True)
class Job:
    """One job of a run, in whole Unix seconds, as Slurm accounts for it.

    `ready_s` is the moment from which the job waited for nodes only: the latest of its submission, the release by its
    owner, and the moment at which the job on which it depends has left its nodes. A job that never ran starts at
    infinity. Until `completing_s` after its end it holds its nodes. `is_limited`: a limit may have kept it from
    starting.
    """

    id: int
    shape: Shape
    limit_s: float
    submit_s: float
    ready_s: float
    start_s: float = inf
    end_s: float = inf
    completing_s: float = 0.0
    parts: Parts = field(default_factory=dict)
    is_limited: bool = False

    @property
    def free_s(self) -> float:
        """When it has left the last of its nodes."""
        return self.end_s + self.completing_s

    def runs_at(self, at_s: float) -> bool:
        """Whether the job runs in this second."""
        return self.start_s <= at_s < self.end_s

    def holds_at(self, at_s: float) -> bool:
        """Whether the job holds its nodes in this second."""
        return self.start_s <= at_s < self.free_s

    def waits_at(self, at_s: float) -> bool:
        """Whether the job waits for nodes only in this second."""
        return self.ready_s <= at_s < self.start_s and not self.is_limited


@dataclass(frozen=True)
class IdleWait:
    """From `since_s` until before `until_s` the job could have started; `nodes` are those of the last second."""

    job_id: int
    since_s: float
    until_s: float
    nodes: tuple[str, ...]

    @property
    def lasted_s(self) -> float:
        """For how long the job could have started."""
        return self.until_s - self.since_s


def could_start(jobs: Iterable[Job], nodes: Sequence[NodeSize], now_s: float) -> dict[int, Parts]:
    """The waiting jobs whose earliest place is now, and that place."""
    known = list(jobs)
    profile = Profile(nodes, now_s)
    for job in known:
        if job.holds_at(now_s):
            # A job that outlives its limit is about to be ended.
            profile.take(job.parts, now_s, max(job.start_s + job.limit_s, now_s + 1))
    waiting = sorted((job for job in known if job.waits_at(now_s)), key=lambda job: (job.submit_s, job.id))
    # Jobs behind the last one that fits now cannot start now, and do not affect those before them.
    last = max((number for number, job in enumerate(waiting) if profile.now(job.shape)), default=-1)
    found: dict[int, Parts] = {}
    for job in waiting[: last + 1]:
        place = profile.earliest(job.shape, job.limit_s)
        if place is None:
            continue
        profile.take(place.parts, place.start_s, place.start_s + job.limit_s)
        if place.start_s == now_s:
            found[job.id] = place.parts
    return found


def idle_waits(jobs: Sequence[Job], nodes: Sequence[NodeSize], until_s: float) -> list[IdleWait]:
    """Every period in which a job could have started and did not, until `until_s`; the longest first."""
    open_since: dict[int, IdleWait] = {}
    done: list[IdleWait] = []
    for now_s in range(int(min(job.submit_s for job in jobs)), int(until_s)):
        able = could_start(jobs, nodes, now_s)
        done += [open_since.pop(number) for number in list(open_since) if number not in able]
        for number, parts in able.items():
            since_s = open_since[number].since_s if number in open_since else now_s
            open_since[number] = IdleWait(number, since_s, now_s + 1, tuple(sorted(parts)))
    return sorted([*done, *open_since.values()], key=lambda each: -each.lasted_s)


def over_capacity(jobs: Iterable[Job], nodes: Iterable[NodeSize]) -> list[str]:
    """The nodes and moments at which the jobs' parts exceeded the node's capacity, as text."""
    known, found = list(jobs), []
    for node, moment in product(nodes, sorted({job.start_s for job in known if job.start_s < inf})):
        here = [job.parts[node.name] for job in known if job.runs_at(moment) and node.name in job.parts]
        cores, memory_mb = sum(part.cores for part in here), sum(part.memory_mb for part in here)
        if cores > node.cores or memory_mb > node.memory_mb:
            found.append(f"{node.name} at {moment:.0f}: {cores} cores, {memory_mb} MiB")
    return found


def mean_wait_s(jobs: Iterable[Job]) -> float:
    """The mean time from submission to start, over the jobs that ran."""
    waits = [job.start_s - job.submit_s for job in jobs if job.start_s < inf]
    return sum(waits) / len(waits)


def violations(jobs: Sequence[Job], nodes: Sequence[NodeSize], until_s: float, allowed_s: float) -> list[str]:
    """The violations: jobs that could have started for longer than `allowed_s`, and nodes over their capacity."""
    return [
        *(
            f"job {each.job_id} could have started on {','.join(each.nodes)} for {each.lasted_s:.0f} s "
            f"(from {each.since_s:.0f} to {each.until_s:.0f}), at most {allowed_s:g} s are allowed"
            for each in idle_waits(jobs, nodes, until_s)
            if each.lasted_s > allowed_s
        ),
        *over_capacity(jobs, nodes),
    ]
