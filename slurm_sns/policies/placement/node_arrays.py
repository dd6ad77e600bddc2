"""The nodes of a cluster as arrays: one row per resource, one column per node, in the machine list's order.

The first five rows are the other resources; then follows one row for each of Slurm's names of GPUs that some node has,
the total before the types. `NodeArrays` knows these names: it alone turns `Resources` into columns, and back.

What does not change (names, capacity) is in `NodeArrays`. What is free is a separate integer array of the same shape:
a cycle can work on a copy, and a simulation can keep one up to date without building a value per node.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import GPU, Alternative, Node, Resources
from slurm_sns.policies.base import NodeType
from slurm_sns.policies.placement.regions import NO_SWITCH, Regions
from slurm_sns.policies.placement.request import node_types

Amounts = NDArray[np.int64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: The first rows of every array of amounts, in the order of `Resources`.
CORES, MEMORY, WAYS, BANDWIDTH, CLOSIDS = range(5)
#: The row of all GPUs, where some node has one. The rows of the types follow.
GPUS = 5

#: A demand of GPUs that no node has is one of so many cores: no node has these either.
ON_NO_NODE = 1 << 40

#: The smallest job: a node without room for it takes no part in a cycle.
SMALLEST = Resources(cores=1, memory_mb=1024)


@dataclass(frozen=True, eq=False)
class NodeArrays:
    """The names of the nodes, their capacity, shape (resources, nodes), and their weights and switches.

    `gpu_names` are the names of the rows from `GPUS` on.
    """

    names: tuple[str, ...]
    capacity: Amounts
    known_regions: Regions | None = None
    gpu_names: tuple[str, ...] = ()
    _masks: dict[frozenset[str], Mask] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> "NodeArrays":
        """The arrays of these nodes, in their order."""
        listed = tuple(nodes)
        regions = Regions.of([node.weight for node in listed], [node.switches for node in listed])
        return cls.sized([node.name for node in listed], [node.capacity for node in listed], regions)

    @classmethod
    def sized(
        cls, names: Iterable[str], capacities: Sequence[Resources], regions: Regions | None = None
    ) -> "NodeArrays":
        """The arrays of nodes with these names and capacities."""
        gpus = gpu_names(capacities)
        return cls(tuple(names), amounts(capacities, gpus), regions, gpus)

    def amounts(self, of_nodes: Sequence[Resources]) -> Amounts:
        """An array of shape (resources, nodes or jobs); of GPUs that no node has nothing is in it."""
        return amounts(of_nodes, self.gpu_names)

    def demand(self, of: Resources) -> tuple[int, ...]:
        """A demand on each node as a column; one of GPUs that no node has fits on none (`ON_NO_NODE`).

        An untyped demand counts against the row of all GPUs only: on a node with GPUs of several types it leaves open
        which type Slurm takes.
        """
        cores, *others = of.all_but_gpus
        counts = dict(of.gpus)
        return (
            ON_NO_NODE if self._is_nowhere(of) else cores,
            *others,
            *(counts.get(name, 0) for name in self.gpu_names),
        )

    def demands(self, of: Sequence[Resources]) -> Amounts:
        """Many demands, shape (demands, resources); each row is that of `demand`."""
        made = self.amounts(of)
        made[CORES, [at for at, each in enumerate(of) if each.gpus and self._is_nowhere(each)]] = ON_NO_NODE
        return made.T

    def _is_nowhere(self, demand: Resources) -> bool:
        """Whether it names GPUs that no node has."""
        return any(count > 0 and name not in self.gpu_names for name, count in demand.gpus)

    def resources(self, column: Sequence[int]) -> Resources:
        """A column as a value."""
        cores, memory_mb, ways, bandwidth_gbps, closids, *more = map(int, column)
        gpus = tuple((name, count) for name, count in zip(self.gpu_names, more, strict=True) if count)
        return Resources(cores, memory_mb, ways, bandwidth_gbps, closids, gpus)

    def taken(self, alternative: Alternative, nodes: Indices) -> Amounts:
        """What the alternative takes of each of these nodes: its demand, or the whole node if it is exclusive."""
        if alternative.exclusive:
            return self.capacity[:, nodes]
        return np.array(self.demand(alternative.demand), dtype=np.int64)[:, np.newaxis]

    def allows(self, allowed: frozenset[str] | None) -> Mask | None:
        """Which nodes a job may use, as a mask; None means all. Masks are cached: many jobs share few sets of nodes."""
        if allowed is None:
            return None
        mask = self._masks.get(allowed)
        if mask is None:
            mask = self._masks[allowed] = np.zeros(len(self.names), np.bool_)
            mask[[self._columns[name] for name in allowed if name in self._columns]] = True
        return mask

    def forget_masks(self) -> None:
        """Forget the cached masks, most of which are likely to be of jobs that are gone."""
        self._masks.clear()

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}

    @cached_property
    def regions(self) -> Regions:
        """The weights and switches of the nodes."""
        return self.known_regions or Regions.one(len(self.names))

    def node(self, at: int, free: Resources) -> Node:
        """The node of a column as a value, with this much free."""
        regions = self.regions
        switches = tuple(f"{level}:{row[at]}" for level, row in enumerate(regions.switch) if row[at] != NO_SWITCH)
        capacity = self.resources(self.capacity[:, at].tolist())
        return Node(self.names[at], capacity, free, int(regions.weight[at]), switches)

    def with_capacity(self, capacity: Amounts) -> "NodeArrays":
        """The same nodes with another capacity."""
        return NodeArrays(self.names, capacity, self.known_regions, self.gpu_names)

    @cached_property
    def types(self) -> tuple[NodeType, ...]:
        """The node types, in the order of their first node."""
        return node_types(self.resources(column) for column in self.capacity.T.tolist())

    @cached_property
    def total(self) -> Resources:
        """The capacity of all nodes together."""
        return self.resources(self.capacity.sum(axis=1).tolist())


def gpu_names(of_nodes: Iterable[Resources]) -> tuple[str, ...]:
    """The names of the rows of GPUs for nodes with these capacities: none, or the total and the types."""
    names = {name for capacity in of_nodes for name, _ in capacity.gpus}
    return (GPU, *sorted(names - {GPU})) if names else ()


def amounts(of_nodes: Sequence[Resources], gpus: Sequence[str] = ()) -> Amounts:
    """An array of shape (resources, nodes) from one `Resources` per node, with rows for these names of GPUs."""
    count, first = len(of_nodes), itemgetter(slice(GPUS))
    # A third of the time that numpy needs to look at each of ten thousand tuples.
    flat = np.fromiter(chain.from_iterable(map(first, of_nodes)), np.int64, count * GPUS)
    made = np.zeros((GPUS + len(gpus), count), np.int64)
    made[:GPUS] = flat.reshape(count, GPUS).T
    if gpus:
        row_of = {name: GPUS + at for at, name in enumerate(gpus)}
        for at, each in enumerate(of_nodes):
            for name, number in each.gpus:
                if name in row_of:
                    made[row_of[name], at] = number
    return made


def scored(demand: Sequence[int]) -> tuple[int, ...]:
    """The rows beyond cores and memory at which scores look for this demand: those demanded, except CLOSIDs.

    Where GPUs of a type are demanded, that is the type's row, and not that of all GPUs.
    """
    rows = [row for row in range(MEMORY + 1, len(demand)) if row != CLOSIDS and demand[row] > 0]
    has_type = bool(rows) and rows[-1] > GPUS
    return tuple(row for row in rows if row != GPUS or not has_type)


def roomy(amount: Amounts) -> Mask:
    """The nodes that have room for the smallest job."""
    mask: Mask = (amount[CORES] >= SMALLEST.cores) & (amount[MEMORY] >= SMALLEST.memory_mb)
    return mask


def holding(amount: Amounts, demand: Sequence[int]) -> Mask:
    """The nodes that have enough of every resource that is demanded; `demand` is a column.

    What a job does not demand beyond cores and memory is ignored: withheld capacity may have made it negative.
    """
    mask: Mask = (amount[CORES] >= demand[CORES]) & (amount[MEMORY] >= demand[MEMORY])
    for row in range(MEMORY + 1, len(demand)):
        if demand[row] > 0:
            mask &= amount[row] >= demand[row]
    return mask


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
    mask = holding(node_arrays.capacity, node_arrays.demand(alternative.demand))
    permitted = node_arrays.allows(allowed)
    return mask if permitted is None else mask & permitted
