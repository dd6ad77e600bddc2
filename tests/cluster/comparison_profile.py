"""What is free on each node from now on, by the time limits of what runs, and the earliest place of a job in it.

Conservative backfill (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001): each waiting job in its order gets the earliest
place at which it delays none before it. Cores are whole, memory is in MiB, times are in seconds.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from comparison_workload import Shape


@dataclass(frozen=True)
class NodeSize:
    """A node, what it has, and the partitions that it belongs to."""

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
    """Where and from when on a job would run."""

    start_s: float
    parts: Parts


class Profile:
    """Free cores and memory of all nodes, piecewise constant in time; after the last change they stay as they are."""

    def __init__(self, nodes: Sequence[NodeSize], now_s: float) -> None:
        self._nodes = nodes
        self._row = {node.name: number for number, node in enumerate(nodes)}
        self._times: list[float] = [now_s]
        #: By node, moment, and cores or memory.
        self._free = np.array([[[node.cores, node.memory_mb]] for node in nodes], dtype=np.int64)

    def take(self, parts: Parts, from_s: float, until_s: float) -> None:
        """These parts of the nodes are not free from `from_s` until before `until_s`."""
        first, last = self._moment(from_s), self._moment(until_s)
        for name, part in parts.items():
            self._free[self._row[name], first:last] -= (part.cores, part.memory_mb)

    def now(self, shape: Shape) -> Parts | None:
        """Where the job fits at the first moment, however long it stays; None: nowhere."""
        return split(shape, self._nodes, self._free[:, 0])

    def earliest(self, shape: Shape, limit_s: float) -> Place | None:
        """The earliest place that is free for `limit_s`; None where no place ever is."""
        for number, start_s in enumerate(self._times):
            end = bisect_left(self._times, start_s + limit_s)
            parts = split(shape, self._nodes, self._free[:, number:end].min(axis=1))
            if parts is not None:
                return Place(start_s, parts)
        return None

    def _moment(self, at_s: float) -> int:
        """The number of this moment, which is made a change where it is none."""
        number = bisect_left(self._times, at_s)
        if number == len(self._times) or self._times[number] != at_s:
            self._times.insert(number, at_s)
            self._free = np.insert(self._free, number, self._free[:, number - 1], axis=1)
        return number


def split(shape: Shape, nodes: Sequence[NodeSize], free: np.ndarray) -> Parts | None:
    """The job's tasks on the fewest nodes that it may have, of nodes with so much free (cores, MiB); None: no room."""
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
    """The most tasks of the job that this node takes with so much free."""
    if shape.partition not in node.partitions or (shape.exclusive and cores < node.cores):
        return 0
    most = min(cores, memory_mb // shape.memory_per_core_mb)
    return max(0, most if shape.tasks_per_node is None else min(most, shape.tasks_per_node))
