"""Orders for Slurm, each a change of one job, and the answers to them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.model import Requeue, Resume, SetShare, Suspend
from slurm_sns.scheduler.gate.orders import GateOrder

#: Why less than the whole CPU is refused.
NO_SHARES = "shares of CPU need an agent on the nodes"

Order = GateOrder | Suspend | Resume | Requeue | SetShare


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
