"""Orders for Slurm, each a change of one job, and the answers to them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.model import Release, Requeue, Resume, SetShare, Start, Suspend
from slurm_sns.scheduler.observe.arrays import Split
from slurm_sns.scheduler.observe.follow_up import Advise, Unpin
from slurm_sns.scheduler.observe.nice import OwnNice
from slurm_sns.scheduler.observe.observed import ObservedJob


class NotSent(Refused):
    """The order was not sent to Slurm, because the job is no longer as it was planned."""


class Replaced(NamedTuple):
    """What a placement may replace in a job: fields that its owner can change at any moment, and whom it would meet."""

    nice: int
    pinned_to: tuple[str, ...]
    extra: str
    tasks: int
    memory_per_cpu_mb: int | None
    memory_per_node_mb: int | None
    ways: int
    bandwidth_gbps: int
    has_other_gres: bool
    array_tasks: str

    @classmethod
    def of(cls, job: ObservedJob) -> Self:
        """What it would replace in this job."""
        return cls(
            job.nice,
            job.pinned_to,
            job.extra,
            job.tasks,
            job.memory_per_cpu_mb,
            job.memory_per_node_mb,
            job.ways,
            job.bandwidth_gbps,
            job.has_other_gres,
            job.array_tasks,
        )


@dataclass(frozen=True, slots=True)
class PlacementOrder:
    """The order to pin one job to the nodes of `start` and release it, with this nice value.

    `memory_per_node_mb` is its memory on each node and `extra` its new mark. `tasks` is the number of all its tasks,
    sent whenever the number of tasks on each node is. None leaves the job's own memory, mark or tasks. `replaced` is
    what the job that was planned has: if it has something else by now, its owner has changed it, and the change would
    be lost (None: not checked).
    """

    start: Start
    nice: int
    memory_per_node_mb: int | None = None
    tasks: int | None = None
    extra: str | None = None
    replaced: Replaced | None = None


@dataclass(frozen=True, slots=True)
class EndHold:
    """The order to end a user's hold of a job that was given to Slurm: a hold of ours has met it at that moment."""

    job_id: int


Order = PlacementOrder | Unpin | Release | Advise | EndHold | Split | OwnNice | Suspend | Resume | Requeue | SetShare


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an order: it is done unless Slurm refused it or slurmctld could not be reached.

    With `unreachable` the change may or may not have happened, and may not have been sent at all.
    """

    order: Order
    refused: Refused | None = None
    unreachable: Unreachable | None = None

    @property
    def is_done(self) -> bool:
        """Whether Slurm has made the change."""
        return self.refused is None and self.unreachable is None


def one_by_one(orders: Iterable[Order], carry_out: Callable[[Order], None]) -> Iterator[Answer]:
    """Carry out each order when its answer is asked for. Once slurmctld does not answer, no further order is sent."""
    lost: Unreachable | None = None
    for order in orders:
        refused: Refused | None = None
        if lost is None:
            try:
                carry_out(order)
            except Refused as refusal:
                refused = refusal
            except Unreachable as problem:
                lost = problem
        yield Answer(order, refused, lost)


def reached(answers: Iterable[Answer]) -> Iterator[Answer]:
    """The answers, up to the first order for which slurmctld could not be reached.

    Raises:
        Unreachable: slurmctld does not answer; the orders after that one were not sent.
    """
    for answer in answers:
        if answer.unreachable is not None:
            raise answer.unreachable
        yield answer
