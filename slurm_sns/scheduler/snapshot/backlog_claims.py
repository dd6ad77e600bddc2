"""The turn of jobs that are Slurm's own: which nodes are kept for one that waits, from jobs of ours behind it.

Our placements come every second and stand first in Slurm's queue. Without more, a job of Slurm's own that needs several
nodes at once would find them free only when none of ours waited. So it has its place in the order of submission: jobs
of ours that were submitted before it go first, and those behind it do not take what it waits for.

- Where Slurm's backfill has planned it (its SchedNodeList and StartTime, within bf_window), its nodes are its own from
  that time on; a job of ours that ends before may run there, as Slurm's own backfill would let it.
- Where Slurm has no plan yet for the first of its queue (Reason Resources), its nodes are those on which it can start
  soonest by what runs there now, from that moment on; where nobody knows when that is, from now on. A job whose needs
  we do not count (gres, licences, features) waits for Slurm's plan.
- Where that moment is not known, or lies beyond bf_window, Slurm's backfill keeps nothing for the job. But it comes
  only once in bf_interval, and the main pass starts nothing behind the job. So do we: its nodes are kept, but for one
  look in bf_interval, in which every job may use them.

Its turn is over when it starts. It is over too when the job could have started by our count for `patience_s` and did
not: it waits for something that we do not see, and must not keep nodes from others for that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from slurm_sns.errors import Infeasible
from slurm_sns.model import Node, Resources
from slurm_sns.scheduler.observe.observed import Backfill, JobState, ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.geometry import geometry
from slurm_sns.scheduler.snapshot.release_times import Releases

#: Slurm's reason for the first job of a partition's queue; those behind it have Priority.
FIRST_OF_ITS_QUEUE = "Resources"
#: So many first jobs of queues are looked at, those of the highest priority: each costs a look at all nodes.
MOST_FIRST_JOBS = 64


@dataclass(frozen=True, slots=True)
class NodeClaim:
    """Nodes that are kept for a job from `start_s` to `end_s`; from jobs submitted in the same second or later."""

    submit_s: int
    nodes: frozenset[str]
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """The claims of one look.

    For the next look: `could_start` says since when jobs could have started by our count, `kept_since_s` since when
    nodes are kept for jobs that Slurm's backfill would not plan (None: for none).
    """

    claims: tuple[NodeClaim, ...] = ()
    could_start: Mapping[int, float] = field(default_factory=dict)
    kept_since_s: float | None = None


NO_TURNS = Backlog()


def turns(
    jobs: Iterable[ObservedJob],
    configured: Sequence[ObservedNode],
    planned_on: Sequence[Node],
    before: Backlog,
    *,
    releases: Callable[[], Releases],
    now_s: float,
    patience_s: float,
    backfill: Backfill,
) -> Backlog:
    """What is kept for these jobs, all of them Slurm's own and able to start; `before` is that of the last look.

    `planned_on` says what is free now, `releases` what comes free later, asked only where somebody waits for it.
    """
    waiting = list(jobs)
    free = {node.name: node.free for node in planned_on}
    claims = [_planned(job) for job in waiting if job.planned_on]
    beyond: list[NodeClaim] = []
    since: dict[int, float] = {}
    firsts = _first_of_their_queues(waiting)
    later = releases() if firsts else Releases(now_s)
    for job in firsts:
        found = _soonest(job, configured, free, later)
        if found is None:
            continue
        if found.start_s > now_s + backfill.window_s:
            beyond.append(found if found.start_s < inf else replace(found, start_s=now_s))
            continue
        waited_s = now_s - before.could_start.get(job.id, now_s)
        if found.start_s <= now_s or waited_s > patience_s:
            since[job.id] = now_s - waited_s
        if waited_s <= patience_s:
            claims.append(found)
    keeps, kept_since_s = _keeps_beyond(before, now_s, backfill.interval_s)
    if keeps:
        claims += beyond
    return Backlog(tuple(sorted(claims, key=lambda claim: claim.submit_s)), since, kept_since_s if beyond else None)


def _keeps_beyond(before: Backlog, now_s: float, interval_s: float) -> tuple[bool, float]:
    """Whether nodes are kept in this look for jobs that Slurm's backfill would not plan, and since when."""
    since_s = before.kept_since_s
    if since_s is None:
        return True, now_s
    keeps = 0 <= now_s - since_s < interval_s
    return keeps, since_s if keeps else now_s


def _first_of_their_queues(jobs: Sequence[ObservedJob]) -> list[ObservedJob]:
    """The first job of each queue for which Slurm has no plan."""
    unplanned = (each for each in jobs if each.reason == FIRST_OF_ITS_QUEUE and each.is_countable)
    by_queue: dict[tuple[str, ...], ObservedJob] = {}
    for job in unplanned:
        first = by_queue.get(job.partitions)
        if not job.planned_on and (first is None or job.priority > first.priority):
            by_queue[job.partitions] = job
    return sorted(by_queue.values(), key=lambda job: -job.priority)[:MOST_FIRST_JOBS]


def is_slurms_own(job: ObservedJob, now_s: float) -> bool:
    """Whether the job, which we do not manage, waits in Slurm's queue and could start."""
    waits = job.state is JobState.PENDING and job.priority > 0 and not job.waits_for_others
    return waits and job.begin_s <= now_s


def _planned(job: ObservedJob) -> NodeClaim:
    end_s = inf if job.walltime_s is None else job.start_s + job.walltime_s
    return NodeClaim(_submitted_s(job), frozenset(job.planned_on), job.start_s, end_s)


def _submitted_s(job: ObservedJob) -> int:
    return max(job.submit_s, job.begin_s)


def _soonest(
    job: ObservedJob, configured: Sequence[ObservedNode], free: Mapping[str, Resources], releases: Releases
) -> NodeClaim | None:
    """The nodes that are ready for the job first, in the first of its partitions that has enough of them."""
    for partition in job.partitions:
        nodes = [node for node in configured if partition in node.partitions and _may_use(job, node, free)]
        try:
            way = geometry(job, nodes)
        except Infeasible:
            continue

        def needs(node: ObservedNode, demand: Resources = way.demand) -> Resources:
            return Resources(node.capacity.cores, node.capacity.memory_mb) if job.is_alone else demand

        able = [node for node in nodes if needs(node).within(node.capacity)]
        ready_s = {node.name: releases.ready_s(node.name, needs(node), free[node.name]) for node in able}
        able.sort(key=lambda node: (-ready_s[node.name], *free[node.name]), reverse=True)
        chosen = [node.name for node in able[: way.nodes]]
        return NodeClaim(_submitted_s(job), frozenset(chosen), max(ready_s[name] for name in chosen), inf)
    return None


def _may_use(job: ObservedJob, node: ObservedNode, free: Mapping[str, Resources]) -> bool:
    wanted = not job.pinned_to or node.name in job.pinned_to
    return node.name in free and wanted and node.name not in job.excluded
