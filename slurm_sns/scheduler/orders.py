"""Orders for Slurm, each a change of one job, and what became of them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.model import Release, Requeue, Resume, SetShare, Start, Suspend
from slurm_sns.scheduler.observe.arrays import Split
from slurm_sns.scheduler.observe.follow_up import Unpin
from slurm_sns.scheduler.observe.nice import OwnNice


@dataclass(frozen=True, slots=True)
class PlacementOrder:
    """One job that is to be pinned and released: where, with what nice value, and with how much memory on each node.

    `tasks` is the number of all its tasks, sent wherever the tasks of each node are; `extra` is its new mark. None
    leaves the job's own memory, tasks or mark.
    """

    start: Start
    nice: int
    memory_per_node_mb: int | None = None
    tasks: int | None = None
    extra: str | None = None


Order = PlacementOrder | Unpin | Release | Split | OwnNice | Suspend | Resume | Requeue | SetShare


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an order: it is done, unless Slurm has refused it, or slurmctld could not be reached.

    `unreachable` leaves open whether the change has happened, or was sent at all.
    """

    order: Order
    refused: Refused | None = None
    unreachable: Unreachable | None = None

    @property
    def is_done(self) -> bool:
        """Whether Slurm has made the change."""
        return self.refused is None and self.unreachable is None


def one_by_one(orders: Iterable[Order], carry_out: Callable[[Order], None]) -> Iterator[Answer]:
    """Carry out one after the other, each when its answer is asked for; none once slurmctld has not answered."""
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
    """The answers that Slurm gave.

    Raises:
        Unreachable: slurmctld does not answer; what follows was not sent.
    """
    for answer in answers:
        if answer.unreachable is not None:
            raise answer.unreachable
        yield answer
