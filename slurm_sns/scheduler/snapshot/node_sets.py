"""Sets of an observation's nodes: bits of an integer while they are combined, names or kinds of nodes in the end.

Every job may have a time limit and partitions of its own. Sets of names would have to be combined node by node for each
of ten thousand jobs. Equal sets are one value, so that work per set is done once. Whether a job fits depends on the
kinds alone: nodes of the same capacity and threads are one kind, and a cluster has a few of them.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import compress
from typing import NamedTuple, TypeVar

from slurm_sns.model import Resources
from slurm_sns.scheduler.observation import ObservedNode
from slurm_sns.topology import Topology

Name = TypeVar("Name", bound=Hashable)


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


#: So many sets of names are remembered: far more than a site has partitions, reservations and claims together.
MOST_SETS = 1024


@lru_cache(maxsize=MOST_SETS)
def one_of_equals(names: frozenset[str]) -> frozenset[str]:
    """The same object for equal sets, whichever cycle made them.

    Policies keep what they have worked out for such an object, as long as they have it (placement.kinds_of_jobs): with
    new objects in each cycle, a daemon's memory would grow.
    """
    return names


class NodeSets:
    """Sets of these nodes as integers: bit i is the i-th node."""

    def __init__(self, nodes: Sequence[ObservedNode]) -> None:
        self._nodes = nodes
        self._places = {node.name: place for place, node in enumerate(nodes)}
        self._members: dict[int, tuple[ObservedNode, ...]] = {}
        self._kinds: dict[int, NodeKinds] = {}
        self._names: dict[int, frozenset[str]] = {}
        self._of_partition = self.by(lambda node: node.partitions)

    def of_names(self, names: Iterable[str]) -> int:
        """The nodes of these names; a name that is not among the nodes is left out."""
        return self._bits(self._places[name] for name in names if name in self._places)

    def of_partitions(self, partitions: Iterable[str]) -> int:
        """The nodes in any of these partitions."""
        bits = 0
        for name in partitions:
            bits |= self._of_partition.get(name, 0)
        return bits

    def by(self, names: Callable[[ObservedNode], Iterable[Name]]) -> dict[Name, int]:
        """The nodes that have each of the names."""
        places: dict[Name, list[int]] = {}
        for place, node in enumerate(self._nodes):
            for name in names(node):
                places.setdefault(name, []).append(place)
        return {name: self._bits(each) for name, each in places.items()}

    def parts(self, topology: Topology) -> list[int]:
        """The parts of the network: nodes that the same highest switch joins; none where all are connected alike."""
        return list(self.by(lambda node: topology.path(node.name)[-1:]).values())

    def members(self, bits: int) -> tuple[ObservedNode, ...]:
        """The nodes of a set, in the order of all nodes."""
        if bits not in self._members:
            self._members[bits] = tuple(self._each(bits))
        return self._members[bits]

    def kinds(self, bits: int) -> NodeKinds:
        """The kinds of a set's nodes, in the order in which they come first."""
        if bits not in self._kinds:
            shared = ((kind, bits & nodes) for kind, nodes in self._of_kind.items())
            there = sorted((nodes & -nodes, kind, nodes.bit_count()) for kind, nodes in shared if nodes)
            self._kinds[bits] = tuple(NodeKind(*kind, number) for _, kind, number in there)
        return self._kinds[bits]

    def names(self, bits: int) -> frozenset[str]:
        """The names of a set's nodes."""
        if bits not in self._names:
            self._names[bits] = one_of_equals(frozenset(node.name for node in self._each(bits)))
        return self._names[bits]

    @cached_property
    def alike_to_wishes(self) -> dict[tuple[frozenset[str], int, int], int]:
        """The nodes by their features, CPUs and memory, which is what a job can ask of a node."""
        return self.by(
            lambda node: [(node.features, node.capacity.cores * node.threads_per_core, node.capacity.memory_mb)]
        )

    @cached_property
    def _of_kind(self) -> dict[tuple[Resources, int], int]:
        return self.by(lambda node: [(node.capacity, node.threads_per_core)])

    def _each(self, bits: int) -> Iterator[ObservedNode]:
        return compress(self._nodes, map(int, reversed(f"{bits:b}")))

    def _bits(self, places: Iterable[int]) -> int:
        flags = bytearray(len(self._nodes) // 8 + 1)
        for place in places:
            flags[place // 8] |= 1 << place % 8
        return int.from_bytes(flags, "little")
