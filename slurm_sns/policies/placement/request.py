"""What a job asks for, and its layout at a scale factor: the number of nodes and the demand on each.

At scale 1 it runs on the fewest nodes that can hold it: N = max(ceil(P/T), nodes needed for its memory), where T is
the number of cores of the smallest nodes that can hold a part of the job then. At scale k it would get k*N nodes with
c = ceil(P/(k*N)) cores on each; it gets only as many nodes as it fills: n = ceil(P/c). A process is never split between
nodes.

Source: Spread-n-Share (SC'19), section 4.3; empty nodes, memory and nodes of different sizes are ours.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from slurm_sns.errors import Infeasible
from slurm_sns.model import Alternative, Resources


class NodeGroup(Protocol):
    """Nodes of equal capacity, and how many of them there are; they may have more in common."""

    @property
    def capacity(self) -> Resources:
        """The capacity of each node."""
        ...

    @property
    def number(self) -> int:
        """The number of nodes, whether busy or idle."""
        ...


class NodeType(NamedTuple):
    """A node type and its number of nodes, whether busy or idle."""

    capacity: Resources
    number: int


@dataclass(frozen=True, slots=True)
class Request:
    """A job whose geometry we may choose.

    P = `tasks` * `cpus_per_task`. Memory is given per CPU, so that it follows the cores on a node, or per node, so that
    it is the same at every scale; without either the job demands none. `alpha` and `max_scale` are the owner's hints,
    None if not given. `exclusive` asks for nodes that no other job uses.
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
        """P, the process count by which profiles list their runs."""
        return self.tasks * self.cpus_per_task

    def on_a_node(self, tasks: int) -> Resources:
        """What this many tasks take of one node."""
        cpus = tasks * self.cpus_per_task
        return on_whole_cores(cpus, self.threads_per_core, self.memory_per_cpu_mb, self.memory_per_node_mb)

    def most_tasks(self, capacity: Resources) -> int:
        """How many tasks an empty node of this size holds."""
        return self.most_cpus(capacity) // self.cpus_per_task

    def most_cpus(self, capacity: Resources) -> int:
        """How many CPUs, with their memory, an empty node of this size has for the job."""
        cores = capacity.cores
        if self.memory_per_cpu_mb:
            cores = min(cores, capacity.memory_mb // (self.memory_per_cpu_mb * self.threads_per_core))
        elif self.memory_per_node_mb and self.memory_per_node_mb > capacity.memory_mb:
            return 0
        return cores * self.threads_per_core


def on_whole_cores(
    cpus: int, threads_per_core: int, memory_per_cpu_mb: int | None, memory_per_node_mb: int | None
) -> Resources:
    """What this many CPUs take of one node: whole cores, and memory per CPU of these cores or per node."""
    cores = -(-cpus // threads_per_core)
    if memory_per_cpu_mb is not None:
        return Resources(cores, memory_per_cpu_mb * cores * threads_per_core)
    return Resources(cores, memory_per_node_mb or 0)


class ScaleLayout(NamedTuple):
    """A job at a scale factor: n nodes, the largest number of tasks on a node, and the demand of these tasks."""

    scale: int
    nodes: int
    tasks_per_node: int
    demand: Resources


def node_types(capacities: Iterable[Resources]) -> tuple[NodeType, ...]:
    """The types of nodes with these capacities, in the order of their first node."""
    return tuple(NodeType(shape, count) for shape, count in Counter(capacities).items())


def fewest_nodes(request: Request, types: Sequence[NodeGroup]) -> int:
    """N, the number of nodes at scale 1.

    With more nodes no part of the job grows. So each node type can hold the parts from some number of nodes on. Only at
    these numbers does the number of suitable nodes grow, so N is one of them.

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


def spread(request: Request, fewest: int, scale: int) -> ScaleLayout:
    """The layout at a scale when scale 1 has `fewest` nodes; at most one node per task."""
    tasks = -(-request.tasks // (scale * fewest))
    return ScaleLayout(scale, -(-request.tasks // tasks), tasks, request.on_a_node(tasks))


def compact(request: Request, types: Sequence[NodeGroup]) -> Alternative:
    """The job at scale 1: on its fewest nodes.

    Raises:
        Infeasible: as `fewest_nodes`.
    """
    layout = spread(request, fewest_nodes(request, types), 1)
    return Alternative(layout.nodes, layout.demand, layout.tasks_per_node, exclusive=request.exclusive)


def holding(demand: Resources, types: Iterable[NodeGroup]) -> int:
    """How many nodes can hold this demand when they are empty."""
    return sum(each.number for each in types if demand.within(each.capacity))
