"""What is missing on nodes for a job to fit: the words of plans and of explain."""

from dataclasses import dataclass

import numpy as np

from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.placement.pool import Amounts, Indices, Pool


@dataclass(frozen=True, slots=True)
class Lack:
    """A node and how much it lacks of each resource (0 where there is enough)."""

    node: str
    lacks: Resources
    not_empty: bool = False

    def __str__(self) -> str:
        """As in: c3 lacks 4 cores and 2000 MiB."""
        units = ("core" if self.lacks.cores == 1 else "cores", "MiB", "ways", "GB/s of bandwidth")
        parts = [f"{amount} {unit}" for amount, unit in zip(self.lacks, units, strict=True) if amount > 0]
        if parts:
            return f"{self.node} lacks {' and '.join(parts)}"
        return (
            f"{self.node} is not empty" if self.not_empty else f"{self.node} has no room for even 1 core and 1024 MiB"
        )


def nearest(pool: Pool, free: Amounts, columns: Indices, alternative: Alternative, count: int) -> tuple[Lack, ...]:
    """The nodes, among these columns, that come nearest to fitting.

    Nearest: the fewest resources missing, then the smallest sum of what is missing as a share of the node's capacity.
    """
    if not len(columns):
        return ()
    demand = np.array(alternative.demand, dtype=np.int64)[:, np.newaxis]
    lacks = np.where(demand > 0, np.maximum(demand - free[:, columns], 0), 0)
    capacity = pool.capacity[:, columns]
    not_empty = (free[:, columns] != capacity).any(axis=0) & alternative.exclusive
    kinds = np.count_nonzero(lacks, axis=0) + not_empty
    shares = (lacks / np.maximum(capacity, 1)).sum(axis=0)
    order = np.lexsort((shares, kinds))[:count]  # stable: the first in the machine list on a tie
    return tuple(
        Lack(
            node=pool.names[columns[at]],
            lacks=Resources(*(int(amount) for amount in lacks[:, at])),
            not_empty=bool(not_empty[at]),
        )
        for at in order
    )
