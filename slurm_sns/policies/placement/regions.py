"""Which of the nodes on which an alternative fits it may take: under one switch, and those of lower weight first.

The nodes of one alternative lie under one switch: of the lowest level at which a switch has enough of them, and there
the switch that needs the least weight, then the one with the fewest of them to spare, then the first. Where no switch
has enough, the alternative does not fit: nodes that no switch joins are not connected.

Inside the switch nodes of lower weight are taken first: a heuristic only chooses among those of the largest weight that
is needed. Slurm promises the same of Weight: a heavier node is taken when the lighter ones do not suffice.

Slurm itself looks at weight first, and at switches among the nodes that this leaves. We look at switches first, because
a job across switches is slower all the time that it runs. The twin is module `region_kernel`.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ranks = NDArray[np.int64]
Indices = NDArray[np.intp]

#: The number of the switch of a node that is under none.
NO_SWITCH = -1


class Region(NamedTuple):
    """The nodes to take: all of `lighter`, and of the nodes `equal`, which have one weight, as many as are missing."""

    lighter: Indices
    equal: Indices


@dataclass(frozen=True, eq=False)
class Regions:
    """The weights and the switches of nodes.

    Attributes:
        weight: (N) the rank of the node's weight among the different ones, from 0.
        switch: (levels, N) the number of the switch above the node, the lowest level first; NO_SWITCH if there is none.
            Without levels, all nodes are connected alike.
    """

    weight: Ranks
    switch: Ranks

    @classmethod
    def of(cls, weights: Sequence[int], switches: Sequence[tuple[str, ...]]) -> "Regions":
        """The regions of nodes with these weights and switches: of each node the names from the lowest level up.

        A node with fewer levels than others is under its last switch at the levels above.
        """
        levels = max(map(len, switches), default=0)
        if not levels and len(set(weights)) <= 1:
            return cls.one(len(weights))  # nearly every simulation, in each of its cycles
        rows = [
            _numbers([each[min(level, len(each) - 1)] if each else None for each in switches])
            for level in range(levels)
        ]
        switch = np.array(rows, np.int64).reshape(levels, len(switches))
        return cls(np.unique(np.array(weights, np.int64), return_inverse=True)[1].astype(np.int64), switch)

    @classmethod
    def one(cls, count: int) -> "Regions":
        """So many nodes of one weight, connected alike."""
        return cls(np.zeros(count, np.int64), np.zeros((0, count), np.int64))

    @property
    def weighs(self) -> bool:
        """Whether nodes differ in weight."""
        return bool(self.weight.any())

    def find(self, candidates: Indices, count: int) -> Region | None:
        """The region of `count` nodes among these, by their columns; None if no switch has so many of them."""
        if count == 1 or not len(self.switch):
            return self._lightest(candidates, count) if len(candidates) >= count else None
        for level in self.switch:
            numbers = level[candidates]
            inside = (candidates[numbers == number] for number in np.unique(numbers[numbers != NO_SWITCH]))
            found = [self._lightest(each, count) for each in inside if len(each) >= count]
            if found:
                return min(found, key=self._rank)
        return None

    def home(self, suitable: NDArray[np.bool_], count: int) -> NDArray[np.bool_] | None:
        """Which of these nodes a job on `count` of them can have together: those of the first part with enough.

        None if no connected part has so many. For a job on one node, and where all nodes are connected: all.
        """
        if count == 1 or not len(self.switch):
            return suitable if np.count_nonzero(suitable) >= count else None
        top = self.switch[-1]
        for number in np.unique(top[suitable & (top != NO_SWITCH)]):
            part: NDArray[np.bool_] = suitable & (top == number)
            if np.count_nonzero(part) >= count:
                return part
        return None

    def most_together(self, candidates: Indices) -> int:
        """The most of these nodes that one switch joins."""
        if not len(self.switch):
            return len(candidates)
        numbers = self.switch[-1][candidates]
        return int(np.unique(numbers[numbers != NO_SWITCH], return_counts=True)[1].max(initial=0))

    def _rank(self, region: Region) -> tuple[int, int]:
        """The weight that the region needs, and how many nodes it has."""
        return int(self.weight[region.equal[0]]), len(region.lighter) + len(region.equal)

    def _lightest(self, candidates: Indices, count: int) -> Region:
        weight = self.weight[candidates]
        needed = np.partition(weight, count - 1)[count - 1]
        return Region(candidates[weight < needed], candidates[weight == needed])


def _numbers(names: Sequence[Hashable]) -> list[int]:
    """A number for each different name, in the order in which they come first."""
    known: dict[Hashable, int] = {}
    return [NO_SWITCH if name is None else known.setdefault(name, len(known)) for name in names]
