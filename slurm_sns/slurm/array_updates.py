"""Which orders are sent by one RPC: tasks of one array that are changed in the same way.

Slurm takes an update of several tasks by their numbers, `41_[3,7,9]`. It splits each off the array's record, changes
one after the other, and answers for each. Seen with Slurm 26.05:

- Such an update of all tasks that are left in the array's record splits nothing off: it changes the record as a whole.
  Then one record would be several placements. So where several tasks of an array go together, its last task comes
  after all others, by an RPC of its own: until then the record has at least that task more.
- slurmctld holds its lock on all jobs during the whole RPC, which is why their number is limited (`MOST_TOGETHER`).
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from operator import attrgetter

from slurm_sns.scheduler.gate.orders import GateOrder, OrderKind
from slurm_sns.task_ids import record_of, task_of

#: The most tasks in one RPC.
MOST_TOGETHER = 64

#: What one RPC changes in all tasks alike.
_changes = attrgetter(*(field.name for field in fields(GateOrder) if field.name not in ("job_id", "address")))


@dataclass(frozen=True, slots=True)
class Updates:
    """The orders of each RPC. Those of `last` are sent when all of `first` are answered."""

    first: tuple[tuple[GateOrder, ...], ...]
    last: tuple[tuple[GateOrder, ...], ...] = ()


def each_alone(orders: Iterable[GateOrder]) -> Updates:
    """One RPC for each order."""
    return Updates(tuple((order,) for order in orders))


def together(orders: Iterable[GateOrder]) -> Updates:
    """One RPC for placements of tasks of one array's record that change the same, for any other order one of its own.

    Each RPC stands where its first order stood, and its orders keep their sequence.
    """
    updates: list[list[GateOrder]] = []
    open_updates: dict[Hashable, list[GateOrder]] = {}
    for order in orders:
        key = _key(order)
        update = open_updates.get(key) if key is not None else None
        if update is None or len(update) == MOST_TOGETHER:
            update = []
            updates.append(update)
            if key is not None:
                open_updates[key] = update
        update.append(order)
    grouped = [update for update in updates if _key(update[0])]
    several = {record_of(update[0].job_id) for update in grouped if len(update) > 1}
    final = {array: update for update in grouped if (array := record_of(update[0].job_id)) in several}
    last = tuple((update.pop(),) for update in final.values())
    return Updates(tuple(tuple(update) for update in updates if update), last)


def _key(order: GateOrder) -> Hashable:
    """Equal for orders that one RPC may carry out; None for an order that always has an RPC of its own."""
    if order.kind is not OrderKind.PLACE or task_of(order.job_id) is None:
        return None
    return record_of(order.job_id), _changes(order)
