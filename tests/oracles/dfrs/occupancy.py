"""What tasks hold on the nodes: the memory that is left on each node, and its CPU load.

The CPU load of a node is the sum of the CPU needs of its tasks over its capacity; it may exceed 1, up to a limit.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A.
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import inf

from slurm_sns.policies.dfrs.instant import FluidJob, Nodes


class Occupancy:
    """The nodes, and where the tasks of each job are."""

    def __init__(self, nodes: Nodes, jobs: Iterable[FluidJob] = (), most_to_a_core: float = inf) -> None:
        """The jobs that have nodes are there; the others are ignored."""
        self._capacity = nodes
        self._most_to_a_core = most_to_a_core
        self._memory_left = list(nodes.memory)
        self._cpu_needed = [0] * len(nodes.cpu)
        self.places: dict[int, tuple[int, ...]] = {}
        for job in jobs:
            if job.nodes:
                self.put(job, job.nodes)

    def put(self, job: FluidJob, nodes: tuple[int, ...]) -> None:
        """Put a task of the job on each of these nodes."""
        self.places[job.id] = tuple(sorted(nodes))
        self._change(job, nodes, 1)

    def take_away(self, job: FluidJob) -> None:
        """Take all tasks of the job from their nodes."""
        self._change(job, self.places.pop(job.id), -1)

    def has_room(self, job: FluidJob, nodes: Iterable[int]) -> bool:
        """Whether these nodes have memory for the job's tasks, and may have their CPU needs."""
        return all(
            tasks * job.memory <= self._memory_left[node]
            and self._cpu_needed[node] + tasks * job.cpu <= self._most_to_a_core * self._capacity.cpu[node]
            for node, tasks in Counter(nodes).items()
        )

    def load(self, node: int) -> Fraction:
        """The CPU load of the node."""
        return Fraction(self._cpu_needed[node], self._capacity.cpu[node])

    def place(self, job: FluidJob) -> bool:
        """Place the job greedily: each task on the node with the lowest CPU load among those with room for it.

        Of nodes with equal loads the first is taken. If a task finds no node, nothing changes and False is returned.
        """
        nodes: list[int] = []
        for _ in range(job.tasks):
            together = job.tasks if job.together is None else job.together
            possible = [
                node
                for node in range(len(self._memory_left))
                if self.has_room(job, (node,)) and nodes.count(node) < together
            ]
            if not possible:
                self._change(job, nodes, -1)
                return False
            nodes.append(min(possible, key=self.load))
            self._change(job, nodes[-1:], 1)
        self.places[job.id] = tuple(sorted(nodes))
        return True

    def _change(self, job: FluidJob, nodes: Iterable[int], sign: int) -> None:
        for node in nodes:
            self._memory_left[node] -= sign * job.memory
            self._cpu_needed[node] += sign * job.cpu
