"""The free capacity of each node from now on, if jobs run until their time limits, and a job's earliest place in it.

Conservative backfill (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001): the waiting jobs in their order get the earliest
place at which they delay no job before them. Cores are whole, memory is in MiB, times are in seconds.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from comparison_workload import Shape


@dataclass(frozen=True)
class NodeSize:
    """A node, its capacity, and the partitions to which it belongs."""

    name: str
    cores: int
    memory_mb: int
    partitions: frozenset[str]


@dataclass(frozen=True)
class Part:
    """What a job holds of one node."""

    cores: int
    memory_mb: int


Parts = Mapping[str, Part]


@dataclass(frozen=True)
class Place:
    """Where a job would run, and from when on."""

    start_s: float
    parts: Parts


class Profile:
    """Free cores and memory of all nodes over time: constant between the moments at which they change."""

    def __init__(self, nodes: Sequence[NodeSize], now_s: float) -> None:
        self._nodes = nodes
        self._row = {node.name: number for number, node in enumerate(nodes)}
        self._times: list[float] = [now_s]
        #: Shape (nodes, moments, 2): free cores and MiB of each node from each moment on.
        self._free = np.array([[[node.cores, node.memory_mb]] for node in nodes], dtype=np.int64)

    def take(self, parts: Parts, from_s: float, until_s: float) -> None:
        """Take these parts of the nodes from `from_s` until before `until_s`."""
        first, last = self._moment(from_s), self._moment(until_s)
        for name, part in parts.items():
            self._free[self._row[name], first:last] -= (part.cores, part.memory_mb)

    def now(self, shape: Shape) -> Parts | None:
        """A place where the job fits at the first moment, for whatever time; None: nowhere."""
        return split(shape, self._nodes, self._free[:, 0])

    def earliest(self, shape: Shape, limit_s: float) -> Place | None:
        """The earliest place that is free for `limit_s`; None if there never is one."""
        for number, start_s in enumerate(self._times):
            end = bisect_left(self._times, start_s + limit_s)
            parts = split(shape, self._nodes, self._free[:, number:end].min(axis=1))
            if parts is not None:
                return Place(start_s, parts)
        return None

    def _moment(self, at_s: float) -> int:
        """The index of this moment; a moment that is not there yet is inserted."""
        number = bisect_left(self._times, at_s)
        if number == len(self._times) or self._times[number] != at_s:
            self._times.insert(number, at_s)
            self._free = np.insert(self._free, number, self._free[:, number - 1], axis=1)
        return number


def split(shape: Shape, nodes: Sequence[NodeSize], free: np.ndarray) -> Parts | None:
    """Split the job's tasks over the fewest nodes that it may have; None: no room.

    `free` has a row for each node: free cores and MiB.
    """
    room = [
        (_most_tasks(shape, node, int(cores), int(memory_mb)), node)
        for node, (cores, memory_mb) in zip(nodes, free, strict=True)
    ]
    chosen: dict[str, Part] = {}
    left = shape.tasks
    for most, node in sorted(room, key=lambda each: -each[0]):
        wanted_after = max(0, (shape.nodes_min or 1) - len(chosen) - 1)
        if (
            most == 0
            or len(chosen) == (shape.nodes_max or len(nodes))
            or (left == 0 and len(chosen) >= (shape.nodes_min or 1))
        ):
            break
        tasks = min(most, left - wanted_after)
        chosen[node.name] = (
            Part(node.cores, node.memory_mb) if shape.exclusive else Part(tasks, tasks * shape.memory_per_core_mb)
        )
        left -= tasks
    return chosen if left == 0 and len(chosen) >= (shape.nodes_min or 1) else None


def _most_tasks(shape: Shape, node: NodeSize, cores: int, memory_mb: int) -> int:
    """How many tasks of the job fit on this node with these free cores and MiB."""
    if shape.partition not in node.partitions or (shape.exclusive and cores < node.cores):
        return 0
    most = min(cores, memory_mb // shape.memory_per_core_mb)
    return max(0, most if shape.tasks_per_node is None else min(most, shape.tasks_per_node))
