"""What a job asks for, and its layout at a scale factor: the number of nodes and the demand on each.

At scale 1 it runs on the fewest nodes that can hold it: N = max(ceil(P/T), nodes needed for its memory), where T is
the number of cores of the smallest nodes that can hold a part of the job then. At scale k it would get k*N nodes with
c = ceil(P/(k*N)) cores on each; it gets only as many nodes as it fills: n = ceil(P/c). A process is never split between
nodes.

Source: Spread-n-Share (SC'19), section 4.3; empty nodes, memory and nodes of different sizes are ours.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from slurm_sns.errors import BadInput, Infeasible
from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.specification import Setting

#: The largest scale factor: a job may be spread over k times the fewest nodes that can hold it.
WIDEST_SCALE = 64

SCALES = Setting("The scale factors that may be used.", "spread_n_share", least=1, most=WIDEST_SCALE, option=True)
EVEN_SCALES_ONLY = Setting("Only scales whose nodes divide the job's processes evenly.", "spread_n_share")


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


def spread(request: Request, fewest: int, scale: int) -> Alternative:
    """The layout at a scale when scale 1 has `fewest` nodes; at most one node per task."""
    tasks = -(-request.tasks // (scale * fewest))
    nodes = -(-request.tasks // tasks)
    return Alternative(nodes, request.on_a_node(tasks), tasks, scale, exclusive=request.exclusive)


def compact(request: Request, types: Sequence[NodeGroup]) -> Alternative:
    """The job at scale 1: on its fewest nodes.

    Raises:
        Infeasible: as `fewest_nodes`.
    """
    return spread(request, fewest_nodes(request, types), 1)


def holding(demand: Resources, types: Iterable[NodeGroup]) -> int:
    """How many nodes can hold this demand when they are empty."""
    return sum(each.number for each in types if demand.within(each.capacity))


def require_scales(scales: tuple[int, ...]) -> None:
    """Accept scale factors that can be used.

    Raises:
        BadInput: 1 is not among them, one comes twice, or one is below 1 or above WIDEST_SCALE.
    """
    if 1 not in scales or len(set(scales)) < len(scales) or not all(1 <= scale <= WIDEST_SCALE for scale in scales):
        shown = ",".join(map(str, scales))
        raise BadInput(f"scales are {shown}; valid: 1 and others up to {WIDEST_SCALE}, each once, as in 1,2,4,8")
