"""The nodes of a cluster as arrays: one row per resource, one column per node, in the machine list's order.

What does not change (names, capacity) is in `NodeArrays`. What is free is a separate integer array of the same shape:
a cycle can work on a copy, and a simulation can keep one up to date without building a value per node.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Node, Resources
from slurm_sns.policies.base import NodeType
from slurm_sns.policies.placement.regions import NO_SWITCH, Regions
from slurm_sns.policies.placement.request import node_types

Amounts = NDArray[np.int64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: The rows of every array of amounts, in the order of `Resources`.
CORES, MEMORY, WAYS, BANDWIDTH, CLOSIDS = range(5)

#: The smallest job: a node without room for it takes no part in a cycle.
SMALLEST = Resources(cores=1, memory_mb=1024)


@dataclass(frozen=True, eq=False)
class NodeArrays:
    """The names of the nodes, their capacity, shape (resources, nodes), and their weights and switches."""

    names: tuple[str, ...]
    capacity: Amounts
    known_regions: Regions | None = None
    _masks: dict[frozenset[str], Mask] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> "NodeArrays":
        """The arrays of these nodes, in their order."""
        listed = tuple(nodes)
        regions = Regions.of([node.weight for node in listed], [node.switches for node in listed])
        return cls(tuple(node.name for node in listed), amounts([node.capacity for node in listed]), regions)

    def allows(self, allowed: frozenset[str] | None) -> Mask | None:
        """Which nodes a job may use, as a mask; None means all. Masks are cached: many jobs share few sets of nodes."""
        if allowed is None:
            return None
        if allowed not in self._masks:
            self._masks[allowed] = np.fromiter((name in allowed for name in self.names), np.bool_, len(self.names))
        return self._masks[allowed]

    @cached_property
    def regions(self) -> Regions:
        """The weights and switches of the nodes."""
        return self.known_regions or Regions.one(len(self.names))

    def node(self, at: int, free: Resources) -> Node:
        """The node of a column as a value, with this much free."""
        regions = self.regions
        switches = tuple(f"{level}:{row[at]}" for level, row in enumerate(regions.switch) if row[at] != NO_SWITCH)
        capacity = Resources(*(int(amount) for amount in self.capacity[:, at]))
        return Node(self.names[at], capacity, free, int(regions.weight[at]), switches)

    def with_capacity(self, capacity: Amounts) -> "NodeArrays":
        """The same nodes with another capacity."""
        return NodeArrays(self.names, capacity, self.known_regions)

    @cached_property
    def types(self) -> tuple[NodeType, ...]:
        """The node types, in the order of their first node."""
        return node_types(Resources(*shape) for shape in self.capacity.T.tolist())

    @cached_property
    def total(self) -> Resources:
        """The capacity of all nodes together."""
        return Resources(*(int(row) for row in self.capacity.sum(axis=1)))


def amounts(of_nodes: Sequence[Resources]) -> Amounts:
    """An array of shape (resources, nodes) from one `Resources` per node."""
    shape = len(of_nodes), len(Resources._fields)
    # A third of the time that numpy needs to look at each of ten thousand tuples.
    flat = np.fromiter(chain.from_iterable(of_nodes), np.int64, shape[0] * shape[1])
    return np.ascontiguousarray(flat.reshape(shape).T)


def holding(amount: Amounts, demand: Resources) -> Mask:
    """The nodes that have enough of every resource that is demanded.

    Ways, bandwidth and CLOSIDs that a job does not demand are ignored: withheld capacity may have made them negative.
    """
    mask: Mask = (amount[CORES] >= demand.cores) & (amount[MEMORY] >= demand.memory_mb)
    for row in range(MEMORY + 1, len(demand)):
        if demand[row] > 0:
            mask &= amount[row] >= demand[row]
    return mask


def taken(capacity: Amounts, alternative: Alternative, nodes: Indices) -> Amounts:
    """What the alternative takes of each of these nodes: its demand, or the whole node if it is exclusive."""
    if alternative.exclusive:
        return capacity[:, nodes]
    return np.array(alternative.demand, dtype=np.int64)[:, np.newaxis]


def ever_holding_together(
    node_arrays: NodeArrays, alternative: Alternative, allowed: frozenset[str] | None
) -> Mask | None:
    """Those of the nodes `ever_holding` that the alternative can have together; None where they are too few."""
    return node_arrays.regions.home(ever_holding(node_arrays, alternative, allowed), alternative.nodes)


def fits_ever(node_arrays: NodeArrays, alternative: Alternative, allowed: frozenset[str] | None = None) -> bool:
    """Whether enough allowed nodes that are connected are large enough for the alternative when they are empty."""
    return ever_holding_together(node_arrays, alternative, allowed) is not None


def ever_holding(node_arrays: NodeArrays, alternative: Alternative, allowed: frozenset[str] | None) -> Mask:
    """The allowed nodes whose capacity holds the alternative's demand, as a mask."""
    mask = holding(node_arrays.capacity, alternative.demand)
    permitted = node_arrays.allows(allowed)
    return mask if permitted is None else mask & permitted
