"""The turn of jobs that are Slurm's own: which nodes are kept for one that waits, from jobs of ours behind it.

Our placements come every second and stand first in Slurm's queue. Without more, a job of Slurm's own that needs several
nodes at once would find them free only when none of ours waited. So it has its place in the order of submission: jobs
of ours that were submitted before it go first, and those behind it do not take what it waits for.

- Where Slurm's backfill has planned it (its SchedNodeList and StartTime, within bf_window), its nodes are its own from
  that time on; a job of ours that ends before may run there, as Slurm's own backfill would let it.
- Where Slurm has no plan for the first of its queue (Reason Resources: what runs has no end that Slurm looks at), its
  nodes are those on which it can start soonest by our count. A job whose needs we do not count (gres, licences,
  features) waits for Slurm's plan.

Its turn is over when it starts. It is over too when the job could have started by our count for `patience_s` and did
not: it waits for something that we do not see, and must not keep nodes from others for that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from slurm_sns.errors import Infeasible
from slurm_sns.model import Node, Resources
from slurm_sns.scheduler.geometry import geometry
from slurm_sns.scheduler.observed import JobState, ObservedJob, ObservedNode

#: Slurm's reason for the first job of a partition's queue; those behind it have Priority.
FIRST_OF_ITS_QUEUE = "Resources"


@dataclass(frozen=True, slots=True)
class Claim:
    """Nodes that are kept for a job from `start_s` to `end_s`; from jobs submitted in the same second or later."""

    submit_s: int
    nodes: frozenset[str]
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Turns:
    """The claims of one look; `could_start` says since when jobs could have started by our count, for the next look."""

    claims: tuple[Claim, ...] = ()
    could_start: Mapping[int, float] = field(default_factory=dict)


def turns(
    jobs: Iterable[ObservedJob],
    configured: Sequence[ObservedNode],
    planned_on: Sequence[Node],
    could_start: Mapping[int, float],
    *,
    now_s: float,
    patience_s: float,
) -> Turns:
    """What is kept for these jobs, all of them Slurm's own and able to start. `planned_on` says what is free now."""
    free = {node.name: node.free for node in planned_on}
    claims: list[Claim] = []
    since: dict[int, float] = {}
    for job in jobs:
        if job.planned_on:
            claims.append(_planned(job))
        elif job.reason == FIRST_OF_ITS_QUEUE and job.is_countable:
            found = _soonest(job, configured, free)
            if found is None:
                continue
            nodes, fits = found
            waited_s = now_s - could_start.get(job.id, now_s)
            if fits or waited_s > patience_s:
                since[job.id] = now_s - waited_s
            if waited_s <= patience_s:
                claims.append(Claim(_submitted_s(job), nodes, now_s, inf))
    return Turns(tuple(sorted(claims, key=lambda claim: claim.submit_s)), since)


def is_slurms_own(job: ObservedJob, now_s: float) -> bool:
    """Whether the job, which we do not manage, waits in Slurm's queue and could start."""
    waits = job.state is JobState.PENDING and job.priority > 0 and not job.waits_for_others
    return waits and job.begin_s <= now_s


def _planned(job: ObservedJob) -> Claim:
    end_s = inf if job.walltime_s is None else job.start_s + job.walltime_s
    return Claim(_submitted_s(job), frozenset(job.planned_on), job.start_s, end_s)


def _submitted_s(job: ObservedJob) -> int:
    return max(job.submit_s, job.begin_s)


def _soonest(
    job: ObservedJob, configured: Sequence[ObservedNode], free: Mapping[str, Resources]
) -> tuple[frozenset[str], bool] | None:
    """The nodes that are nearest to being free for the job, in the first of its partitions that has enough of them.

    And whether it could start on them now.
    """
    for partition in job.partitions:
        nodes = [node for node in configured if partition in node.partitions and _may_use(job, node, free)]
        try:
            way = geometry(job, nodes)
        except Infeasible:
            continue

        def needs(node: ObservedNode, demand: Resources = way.demand) -> Resources:
            return node.capacity if job.is_alone else demand

        able = [node for node in nodes if needs(node).within(node.capacity)]
        able.sort(key=lambda node: (needs(node).within(free[node.name]), *free[node.name]), reverse=True)
        chosen = able[: way.nodes]
        return frozenset(node.name for node in chosen), all(needs(node).within(free[node.name]) for node in chosen)
    return None


def _may_use(job: ObservedJob, node: ObservedNode, free: Mapping[str, Resources]) -> bool:
    wanted = not job.pinned_to or node.name in job.pinned_to
    return node.name in free and wanted and node.name not in job.excluded
