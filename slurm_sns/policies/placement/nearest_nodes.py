"""What nodes lack for a job to fit, in the words that plans and `sns explain` show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.placement.node_arrays import Amounts, Indices, NodeArrays


@dataclass(frozen=True, slots=True)
class Lack:
    """A node and how much it lacks of each resource (0 where there is enough)."""

    node: str
    lacks: Resources
    not_empty: bool = False

    def __str__(self) -> str:
        """As in: c3 lacks 4 cores and 2000 MiB."""
        units = (
            "core" if self.lacks.cores == 1 else "cores",
            "MiB",
            "ways",
            "GB/s of bandwidth",
            "CLOSID (each job with cache ways there has one)",
        )
        parts = [f"{amount} {unit}" for amount, unit in zip(self.lacks, units, strict=True) if amount > 0]
        if parts:
            return f"{self.node} lacks {' and '.join(parts)}"
        return (
            f"{self.node} is not empty" if self.not_empty else f"{self.node} has no room for even 1 core and 1024 MiB"
        )


def nearest(
    node_arrays: NodeArrays, free: Amounts, columns: Indices, alternative: Alternative, count: int
) -> tuple[Lack, ...]:
    """The `count` nodes, among these columns, that come nearest to fitting, the nearest first.

    Fewer missing resources are nearer, then a smaller sum of missing amounts as shares of the node's capacity.
    """
    if not len(columns):
        return ()
    among = slice(None) if len(columns) == len(node_arrays.names) else columns  # a slice of all nodes needs no copy
    kinds, shares = np.zeros(len(columns), np.int64), np.zeros(len(columns))
    for row, needed in enumerate(alternative.demand):
        if needed > 0:
            lacks = np.maximum(needed - free[row, among], 0)
            kinds += lacks > 0
            shares += lacks / np.maximum(node_arrays.capacity[row, among], 1)
    not_empty = np.zeros(len(columns), np.bool_)
    if alternative.exclusive:
        not_empty = (free[:, among] != node_arrays.capacity[:, among]).any(axis=0)
        kinds += not_empty
    return tuple(
        Lack(
            node_arrays.names[columns[at]],
            _lacking(free, columns[at], alternative.demand),
            not_empty=bool(not_empty[at]),
        )
        for at in _first(kinds, shares, count)
    )


def _first(kinds: Amounts, shares: NDArray[np.float64], count: int) -> Indices:
    """The first `count` columns by `kinds`, then by `shares`; on a tie the first in the machine list."""
    if count == 1:  # for one node there is no need to sort ten thousand
        fewest = np.flatnonzero(kinds == kinds.min())
        return fewest[[np.argmin(shares[fewest])]]
    return np.lexsort((shares, kinds))[:count]


def _lacking(free: Amounts, column: np.intp, demand: Resources) -> Resources:
    return Resources(
        *(max(needed - int(free[row, column]), 0) if needed > 0 else 0 for row, needed in enumerate(demand))
    )
