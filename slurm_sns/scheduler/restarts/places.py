"""Where suspended jobs would start now: the cycle planned again, with them behind all that wait.

The plan is the live policy's, so it heeds withheld capacity and node claims. The first jobs of the queue start as they
do in the cycle; a place that one of this cycle's starts has taken counts as none. No job gets a node that it has now:
there it waits for those that hold its cores.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slurm_sns.model import Job, Plan, Resources, Snapshot, Start
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.restarts.candidates import as_waiting
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.eligibility import Eligibility
from slurm_sns.scheduler.snapshot.plannable import sort_out
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.scheduler.snapshot.spreading import SpreadRules

NO_NODES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """The nodes on which a job would start, with what it takes on each part, in one of its partitions."""

    partition: str
    nodes: tuple[str, ...]
    demand: Resources


def find_places(
    jobs: Sequence[tuple[ObservedJob, tuple[str, ...]]],
    situation: Situation,
    plan: Plan,
    *,
    settings: Settings,
    spreading: SpreadRules,
    plan_again: Callable[[Snapshot], Plan],
) -> dict[int, Place]:
    """A place for each of these jobs that has one, by job id; with each job the partitions in which it may start.

    `plan` is the cycle's own. The jobs come in the order in which they get places.
    """
    waiting = _jobs(jobs, situation, settings, spreading)
    if not waiting:
        return {}
    snapshot = situation.snapshot
    before = snapshot.waiting[: max(0, settings.queue_depth - len(waiting))]
    again = plan_again(replace(snapshot, waiting=(*before, *waiting)))
    left = _Left(snapshot, plan.starts)
    partitions = {node.name: node.partitions for node in situation.observation.nodes}
    allowed = {job.id: names for job, names in jobs}
    found: dict[int, Place] = {}
    wanted = {job.id for job in waiting}
    for start in again.starts:
        if start.job_id not in wanted or not left.take(start):
            continue
        shared = frozenset.intersection(*(partitions[name] for name in start.nodes))
        partition = next((name for name in allowed[start.job_id] if name in shared), None)
        if partition is not None:
            found[start.job_id] = Place(partition, start.nodes, start.alternative.demand)
    return found


def _jobs(
    jobs: Sequence[tuple[ObservedJob, tuple[str, ...]]],
    situation: Situation,
    settings: Settings,
    spreading: SpreadRules,
) -> list[Job]:
    """The jobs as the policy plans them, without the nodes that they have; those that cannot start now are left out."""
    observation = situation.counted or situation.observation
    eligibility = Eligibility(
        observation, float(situation.snapshot.now_s), replace(spreading, known=None), situation.backlog.claims
    )
    asked = [as_waiting(job, partitions) for job, partitions in jobs]
    sorted_out = sort_out(
        asked, {}, observation, settings, eligibility=eligibility, may_withhold=lambda _: False
    ).waiting
    made = {job.id: job for job in sorted_out}
    return [
        replace(made[job.id], over_aged=False, allowed=(made[job.id].allowed or NO_NODES).difference(job.allocated))
        for job, _ in jobs
        if job.id in made
    ]


class _Left:
    """What the cycle's own starts leave on the nodes."""

    def __init__(self, snapshot: Snapshot, starts: Sequence[Start]) -> None:
        self._free = {node.name: node.free for node in snapshot.nodes}
        self._used = set[str]()
        self._closed = set[str]()
        for start in starts:
            self._note(start)

    def take(self, start: Start) -> bool:
        """Take what the start takes; False if that is not there."""
        if not self._closed.isdisjoint(start.nodes):
            return False
        if start.alternative.exclusive and not self._used.isdisjoint(start.nodes):
            return False
        demand, parts = start.alternative.demand, Counter(start.nodes)
        if not all(demand.times(count).within(self._free[name]) for name, count in parts.items()):
            return False
        self._note(start)
        return True

    def _note(self, start: Start) -> None:
        for name in start.nodes:
            self._free[name] = self._free[name].minus(start.alternative.demand)
        self._used.update(start.nodes)
        if start.alternative.exclusive:
            self._closed.update(start.nodes)
