"""The backlog: pass-through jobs that wait in Slurm's own queue, and the nodes that are kept for them.

Our placements come every second and stand first in Slurm's queue. Without node claims, a pass-through job that needs
several nodes at once would find them free only when none of our jobs waited. So it takes its place in the order of
submission: our jobs that were submitted before it go first, and our jobs behind it do not take the nodes it waits for.

- If Slurm's backfill has planned the job (its SchedNodeList and StartTime, within bf_window), these nodes are kept for
  it from StartTime on. A job of ours that ends before StartTime may run there, as Slurm's own backfill would let it.
- If Slurm has no plan yet for the first job of a queue (Reason Resources), the nodes are kept on which it can start
  soonest, judged by what runs there now. They are kept from that moment on, or from now on where the moment is not
  known. A job whose needs we do not count (gres, licences, features) waits for Slurm's plan.
- If that moment is not known, or lies beyond bf_window, Slurm's backfill keeps nothing for the job. But the backfill
  runs only once in bf_interval, and Slurm's main pass starts no job behind this one. We do the same: the nodes are
  kept, except in one cycle of each bf_interval, in which every job may use them.

A claim ends when its job starts. It also ends when the job could have started by our count for `patience_s` and did
not: the job waits for something that we do not see, and must not keep nodes from others for that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from slurm_sns.errors import Infeasible
from slurm_sns.model import ActiveJob, Node, Resources
from slurm_sns.scheduler.gate.job_status import is_limit
from slurm_sns.scheduler.observation import Backfill, JobState, ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.geometry import geometry
from slurm_sns.scheduler.snapshot.node_sets import kinds_of

if TYPE_CHECKING:
    from slurm_sns.scheduler.snapshot.ready_nodes import ReadyNodes

#: Slurm's reason for the first job of a partition's queue; the jobs behind it have the reason Priority.
FIRST_OF_ITS_QUEUE = "Resources"
#: At most so many first jobs of queues are considered, those of the highest priority: each takes a pass over all nodes.
MOST_FIRST_JOBS = 64


@dataclass(frozen=True, slots=True)
class NodeClaim:
    """Nodes that are kept for a job of the backlog from `start_s` to `end_s` (Unix seconds).

    They are kept from our jobs that were submitted at `submit_s` or later: the moment when the job of the backlog was
    submitted or, if that is later, may begin.
    """

    submit_s: int
    nodes: frozenset[str]
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """The node claims of one cycle, and what the next cycle needs to know of it.

    `could_start` gives, by job id, since when a job could have started by our count. `kept_since_s` is since when nodes
    have been kept for jobs that Slurm's backfill would not plan (None: there are none).
    """

    claims: tuple[NodeClaim, ...] = ()
    could_start: Mapping[int, float] = field(default_factory=dict)
    kept_since_s: float | None = None


NO_BACKLOG = Backlog()


def next_backlog(
    jobs: Iterable[ObservedJob],
    configured: Sequence[ObservedNode],
    plannable: Sequence[Node],
    before: Backlog,
    *,
    active: Iterable[ActiveJob],
    completing: Iterable[str],
    now_s: float,
    patience_s: float,
    backfill: Backfill,
) -> Backlog:
    """The backlog of this cycle: `jobs` are pass-through jobs that could start, `before` is that of the last cycle.

    `configured` are all nodes, `plannable` those that can be planned on, with what is free on them now. `active`
    jobs give back what they hold when they end, the nodes `completing` at any moment.
    """
    waiting = list(jobs)
    if not waiting:
        return NO_BACKLOG
    free = {node.name: node.free for node in plannable}
    claims = [_planned(job) for job in waiting if job.planned_on and not _is_limited(job)]
    beyond: list[NodeClaim] = []
    could_start: dict[int, float] = {}
    firsts = _first_of_their_queues(waiting)
    if firsts:
        from slurm_sns.scheduler.snapshot.ready_nodes import ReadyNodes  # noqa: PLC0415  not every command has numpy

        ready = ReadyNodes(configured, free, (active, completing), now_s)
    for job in firsts:
        claim = _soonest(job, configured, free, ready)
        if claim is None:
            continue
        if claim.start_s > now_s + backfill.window_s:
            beyond.append(claim if claim.start_s < inf else replace(claim, start_s=now_s))
            continue
        waited_s = max(0.0, now_s - before.could_start.get(job.id, now_s))  # the clock may have been stepped back
        if claim.start_s <= now_s or waited_s > patience_s:
            could_start[job.id] = now_s - waited_s
        if waited_s <= patience_s:
            claims.append(claim)
    keeps, kept_since_s = _keeps_beyond(before, now_s, backfill.interval_s)
    if keeps:
        claims += beyond
    in_order = tuple(sorted(claims, key=lambda claim: claim.submit_s))
    return Backlog(in_order, could_start, kept_since_s if beyond else None)


def _keeps_beyond(before: Backlog, now_s: float, interval_s: float) -> tuple[bool, float]:
    """Whether nodes are kept in this cycle for jobs that Slurm's backfill would not plan, and since when."""
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


def waits_in_slurms_queue(job: ObservedJob, now_s: float) -> bool:
    """Whether a job that we do not manage waits in Slurm's queue and could start."""
    waits = job.state is JobState.PENDING and job.priority > 0 and not job.waits_for_others
    return waits and job.begin_s <= now_s


def _is_limited(job: ObservedJob) -> bool:
    """Whether a limit keeps the job from starting, of its partition or its owner: a plan that Slurm shows is old."""
    return job.reason.startswith("Partition") or is_limit(job.reason)


def _planned(job: ObservedJob) -> NodeClaim:
    end_s = inf if job.walltime_s is None else job.start_s + job.walltime_s
    return NodeClaim(_submitted_s(job), frozenset(job.planned_on), job.start_s, end_s)


def _submitted_s(job: ObservedJob) -> int:
    return max(job.submit_s, job.begin_s)


def _soonest(
    job: ObservedJob, configured: Sequence[ObservedNode], free: Mapping[str, Resources], ready: "ReadyNodes"
) -> NodeClaim | None:
    """A claim on the nodes that are ready for the job first, in the first of its partitions that could hold it.

    None where no partition could.
    """
    for partition in job.partitions:
        columns = [
            column
            for column, node in enumerate(configured)
            if partition in node.partitions and _may_use(job, node, free)
        ]
        try:
            alternative = geometry(job, kinds_of(configured[column] for column in columns))
        except Infeasible:
            continue
        nodes, start_s = ready.soonest(columns, alternative, takes_all=job.is_alone)
        return NodeClaim(_submitted_s(job), nodes, start_s, inf)
    return None


def _may_use(job: ObservedJob, node: ObservedNode, free: Mapping[str, Resources]) -> bool:
    wanted = not job.pinned_to or node.name in job.pinned_to
    return node.name in free and wanted and node.name not in job.excluded
