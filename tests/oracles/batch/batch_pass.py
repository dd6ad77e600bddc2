"""A pass of a batch scheduler: the jobs in queue order, one by one, each placed on what is free at its turn.

How a job is placed is left to a policy that matches, which is asked to match a queue of this job alone. So FCFS and
EASY can be used with any way of placing: whole nodes, shared nodes, alternatives from profiles, a heuristic.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Protocol

from oracles.cycle import FailedShapes, held
from oracles.fair_order import FairOrder
from slurm_sns.model import Job, Plan, Snapshot, Start
from slurm_sns.policies.base import MakeAlternatives
from slurm_sns.policies.placement.kinds_of_jobs import OncePerKind
from slurm_sns.policies.placement.node_arrays import Amounts, NodeArrays
from slurm_sns.policies.placement.pass_record import Match, Schedule
from slurm_sns.policies.placement.reasons import reasons_to_wait
from slurm_sns.policies.placement.waiting_queue import WaitingQueue


class Placer(Protocol):
    """A way of placing jobs. A `Portfolio` is one.

    It must find a place for a job whenever it finds one on less free capacity.
    """

    @property
    def alternatives(self) -> MakeAlternatives:
        """How the alternatives of a job are made."""
        ...

    def schedule(self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The matches of one cycle; neither `free` nor `queue` is changed."""
        ...


class BatchPass:
    """A pass while it runs. `free` is what is left on the nodes, `matches` are the jobs that start, in their order."""

    def __init__(self, placing: Placer, snapshot: Snapshot) -> None:
        self.node_arrays = NodeArrays.of(snapshot.nodes)
        self.free = self.node_arrays.amounts([node.free for node in snapshot.nodes])
        self.matches: list[Match] = []
        self._placing = placing
        self._waiting = snapshot.waiting
        self._order = FairOrder(WaitingQueue.of(snapshot.waiting, snapshot.projects), self.node_arrays.total)
        self._starts: list[Start] = []
        self._failed = FailedShapes()
        self._places = OncePerKind(self._place_first_of_kind)

    def jobs(self, queue_depth: int) -> Iterator[Job]:
        """The first jobs of the queue, in its order; what was started before a job counts for its project."""
        return islice(iter(self._order.pop, None), queue_depth)

    def place_now(self, job: Job) -> Match | None:
        """The job with its place on what is left now, None if it finds none."""
        found = self._places.of(job)
        return None if found is None else found._replace(job=job)

    def place(self, job: Job, free: Amounts) -> Match | None:
        """The job with its place on these free amounts, None if it finds none."""
        schedule = self._schedule(job, free)
        return schedule.matches[0] if schedule.matches else None

    def start(self, match: Match, reason: str) -> None:
        """Start the job at its place."""
        self.free[:, match.nodes] -= self.node_arrays.taken(match.alternative, match.nodes)
        if self._order.shared:
            self._order.charge(match.job, held(self.node_arrays, match.alternative, match.nodes))
        self.matches.append(match)
        nodes = tuple(self.node_arrays.names[node] for node in match.nodes)
        self._starts.append(Start(match.job.id, nodes, match.alternative, reason))
        self._places = OncePerKind(self._place_first_of_kind)

    def lack(self, job: Job) -> str:
        """In words, what a job lacks that finds no place now."""
        schedule = self._schedule(job, self.free)
        return reasons_to_wait(schedule, (job,), queue_depth=1)[job.id]

    def plan(self, reasons: Mapping[int, str], otherwise: str) -> Plan:
        """The plan. `reasons` say why jobs wait; `otherwise` is the reason of all other jobs that do not start."""
        placed = {match.job.id for match in self.matches}
        left: Iterable[Job] = (job for job in self._waiting if job.id not in placed)
        return Plan(tuple(self._starts), {job.id: reasons.get(job.id, otherwise) for job in left})

    def _schedule(self, job: Job, free: Amounts) -> Schedule:
        return self._placing.schedule(self.node_arrays, free, _queue_of(job))

    def _place_first_of_kind(self, job: Job) -> Match | None:
        # What is left only shrinks in a pass: an alternative that asks for as much as one that failed is not tried.
        if all(self._failed.cover(alternative, job.allowed) for alternative in job.alternatives):
            return None
        found = self.place(job, self.free)
        if found is None:
            for alternative in job.alternatives:
                self._failed.add(alternative, job.allowed)
        return found


def _queue_of(job: Job) -> WaitingQueue:
    return WaitingQueue(by_project={job.project: [job]})
