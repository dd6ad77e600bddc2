"""What a job asks for, and on how many nodes with how much on each it runs at a scale factor.

At scale 1 it runs on the fewest nodes that can hold it: N = max(ceil(P/T), nodes needed for its memory), where T is
the cores of the smallest nodes that can hold it so. At scale k it is given k*N nodes, c = ceil(P/(k*N)) cores on each,
and then only as many nodes as that fills: n = ceil(P/c). Whole processes: a process is never split between nodes.

Source: Spread-n-Share (SC'19), section 4.3; empty nodes, memory and unlike nodes are ours.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from slurm_sns.errors import Infeasible
from slurm_sns.model import Alternative, Resources


class NodeGroup(Protocol):
    """Nodes of one capacity, whatever else they have in common, and how many of them there are."""

    @property
    def capacity(self) -> Resources:
        """What each of them has."""
        ...

    @property
    def number(self) -> int:
        """How many they are, busy or not."""
        ...


class NodeType(NamedTuple):
    """Nodes that are alike, and how many of them there are, busy or not."""

    capacity: Resources
    number: int


@dataclass(frozen=True, slots=True)
class Request:
    """A job whose geometry we may choose.

    P = `tasks` * `cpus_per_task`. Memory is per CPU, and then goes with the cores, or per node at every scale; neither
    means none. `alpha` and `max_scale` are the owner's hints, None where there are none; `exclusive` asks for nodes of
    its own.
    """

    tasks: int
    cpus_per_task: int = 1
    threads_per_core: int = 1
    memory_per_cpu_mb: int | None = None
    memory_per_node_mb: int | None = None
    alpha: float | None = None
    max_scale: int | None = None
    exclusive: bool = False

    @property
    def processes(self) -> int:
        """P, by which profiles are kept."""
        return self.tasks * self.cpus_per_task

    def on_a_node(self, tasks: int) -> Resources:
        """What so many tasks take of one node."""
        cpus = tasks * self.cpus_per_task
        return on_whole_cores(cpus, self.threads_per_core, self.memory_per_cpu_mb, self.memory_per_node_mb)

    def most_tasks(self, capacity: Resources) -> int:
        """How many tasks an empty node of this size holds."""
        return self.most_cpus(capacity) // self.cpus_per_task

    def most_cpus(self, capacity: Resources) -> int:
        """How many CPUs the job can get of an empty node of this size, with their memory."""
        cores = capacity.cores
        if self.memory_per_cpu_mb:
            cores = min(cores, capacity.memory_mb // (self.memory_per_cpu_mb * self.threads_per_core))
        elif self.memory_per_node_mb and self.memory_per_node_mb > capacity.memory_mb:
            return 0
        return cores * self.threads_per_core


def on_whole_cores(
    cpus: int, threads_per_core: int, memory_per_cpu_mb: int | None, memory_per_node_mb: int | None
) -> Resources:
    """What so many CPUs take of one node: whole cores, and memory for every CPU of them or for the node."""
    cores = -(-cpus // threads_per_core)
    if memory_per_cpu_mb is not None:
        return Resources(cores, memory_per_cpu_mb * cores * threads_per_core)
    return Resources(cores, memory_per_node_mb or 0)


class Layout(NamedTuple):
    """A job spread at a scale: n nodes, the most tasks on one of them, and what that takes of it."""

    scale: int
    nodes: int
    tasks_per_node: int
    demand: Resources


def node_types(capacities: Iterable[Resources]) -> tuple[NodeType, ...]:
    """The types of nodes with these capacities, in the order in which they come first."""
    return tuple(NodeType(shape, count) for shape, count in Counter(capacities).items())


def fewest_nodes(request: Request, types: Sequence[NodeGroup]) -> int:
    """N, the nodes of scale 1.

    On more nodes no part is larger. So each type holds the parts from some number of nodes on, and only at these
    numbers do more nodes hold them than before: N is one of them.

    Raises:
        Infeasible: the nodes could not hold the job even when they are all empty.
    """
    most = sorted({request.most_tasks(each.capacity) for each in types} - {0}, reverse=True)
    for tasks in most:
        wanted = -(-request.tasks // tasks)
        layout = spread(request, wanted, 1)
        if holding(layout.demand, types) >= layout.nodes:
            return wanted
    largest = max((each.capacity for each in types), default=Resources(0, 0))
    raise Infeasible(
        f"{request.processes} processes fit on no nodes: there are {sum(each.number for each in types)}, the largest "
        f"with {largest.cores} cores and {largest.memory_mb} MiB, and one process needs "
        f"{request.on_a_node(1).cores} cores and {request.on_a_node(1).memory_mb} MiB"
    )


def spread(request: Request, fewest: int, scale: int) -> Layout:
    """The layout at a scale when scale 1 has `fewest` nodes. More nodes than tasks: one task on each."""
    tasks = -(-request.tasks // (scale * fewest))
    return Layout(scale, -(-request.tasks // tasks), tasks, request.on_a_node(tasks))


def compact(request: Request, types: Sequence[NodeGroup]) -> Alternative:
    """The job at scale 1: on its fewest nodes.

    Raises:
        Infeasible: as `fewest_nodes`.
    """
    layout = spread(request, fewest_nodes(request, types), 1)
    return Alternative(layout.nodes, layout.demand, layout.tasks_per_node, exclusive=request.exclusive)


def holding(demand: Resources, types: Iterable[NodeGroup]) -> int:
    """How many nodes hold this much when they are empty."""
    return sum(each.number for each in types if demand.within(each.capacity))
