"""Orders for Slurm, each a change of one job, and the answers to them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.model import Release, Requeue, Resume, SetShare, Start, Suspend
from slurm_sns.scheduler.observe.arrays import Split
from slurm_sns.scheduler.observe.follow_up import Unpin
from slurm_sns.scheduler.observe.nice import OwnNice


@dataclass(frozen=True, slots=True)
class PlacementOrder:
    """The order to pin one job to the nodes of `start` and release it, with this nice value.

    `memory_per_node_mb` is its memory on each node and `extra` its new mark. `tasks` is the number of all its tasks,
    sent whenever the number of tasks on each node is. None leaves the job's own memory, mark or tasks. `own_nice` is
    the nice value that the job must still have: another one has been set since the plan (None: not checked).
    """

    start: Start
    nice: int
    memory_per_node_mb: int | None = None
    tasks: int | None = None
    extra: str | None = None
    own_nice: int | None = None


Order = PlacementOrder | Unpin | Release | Split | OwnNice | Suspend | Resume | Requeue | SetShare


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
