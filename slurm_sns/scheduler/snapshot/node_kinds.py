"""Nodes by kind: nodes of the same capacity and threads are one entry with a number.

Whether a job fits depends on the kinds alone. A cluster has a few of them, however many nodes it has.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from slurm_sns.model import Resources
from slurm_sns.scheduler.observation.observed import ObservedNode


class NodeKind(NamedTuple):
    """A node kind and its number of nodes, whether busy or idle."""

    capacity: Resources
    threads_per_core: int
    number: int


NodeKinds = tuple[NodeKind, ...]


def kinds_of(nodes: Iterable[ObservedNode]) -> NodeKinds:
    """The kinds of these nodes, in the order in which they come first."""
    counts = Counter((node.capacity, node.threads_per_core) for node in nodes)
    return tuple(NodeKind(capacity, threads, number) for (capacity, threads), number in counts.items())
