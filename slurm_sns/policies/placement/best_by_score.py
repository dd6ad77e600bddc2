"""The best nodes by score: the smallest score wins, ties go to the node that comes first in the machine list.

A `GroupHeuristic` looks for its best nodes inside one group of nodes with the same number of idle cores,
if one group is large enough: later jobs on several nodes then find nodes that are alike (Spread-n-Share, section 4.4).
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import CORES, Amounts, Indices


class GroupHeuristic(ABC):
    """A heuristic whose candidates are narrowed by `one_group` before they are scored."""

    @abstractmethod
    def __call__(self, capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> NDArray[np.generic]:
        """One score per candidate."""


def one_group(free: Amounts, candidates: Indices, count: int) -> Indices:
    """The candidates of one group with equally many idle cores, or all of them when no group has `count` nodes.

    Of the groups with `count` nodes or more it is the one with the most idle cores. `free` has a column for each node;
    `candidates` are ascending and stay so.
    """
    idle = free[CORES, candidates]
    numbers, sizes = np.unique(idle, return_counts=True)
    large_enough = numbers[sizes >= count]
    return candidates[idle == large_enough[-1]] if len(large_enough) else candidates


def best(candidates: Indices, scores: NDArray[np.generic], count: int) -> Indices:
    """The `count` candidates with the smallest scores, in the machine list's order.

    `candidates` are ascending and at least `count`; `scores` has one entry for each.
    """
    if count == 1:
        first = int(np.argmin(scores))  # the first of equal ones
        return candidates[first : first + 1]
    ranked = np.argsort(scores, kind="stable")[:count]
    return np.sort(candidates[ranked])
