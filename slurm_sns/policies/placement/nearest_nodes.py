"""The nodes that come nearest to fitting a job, with what they lack."""

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.placement.lack import Lack
from slurm_sns.policies.placement.node_arrays import Amounts, Indices, NodeArrays


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
