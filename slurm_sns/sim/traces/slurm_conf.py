"""The nodes of a site from its slurm.conf and its topology: what a simulation on the same nodes needs.

Of a slurm.conf only the lines of NodeName and PartitionName are read, with their DEFAULT lines before them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slurm_sns.conf_text import Line, options
from slurm_sns.errors import BadInput
from slurm_sns.model import Node, Resources
from slurm_sns.node_lists import NodeLists
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.topology import FLAT, Topology

DEFAULT = "DEFAULT"
_names = NodeLists().names


@dataclass(frozen=True, slots=True)
class SiteNode:
    """A node of slurm.conf: cores, MiB, its Weight, features, partitions, and whether it has gres."""

    name: str
    cores: int
    memory_mb: int
    weight: int
    features: frozenset[str]
    partitions: frozenset[str]
    has_gres: bool


def site_nodes(lines: Iterable[Line]) -> tuple[SiteNode, ...]:
    """The nodes, in the order of the file.

    Raises:
        BadInput: a line or a number in it cannot be read.
    """
    nodes: dict[str, dict[str, str]] = {}
    partitions: list[tuple[str, str]] = []
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    for line in lines:
        kind = line.content.partition("=")[0].strip().lower()
        if kind not in defaults:
            continue
        said = options(line.content)
        if said[kind] == DEFAULT:
            defaults[kind] |= said
        elif kind == "nodename":
            nodes |= {name: {**defaults[kind], **said} for name in _names(said[kind])}
        else:
            partitions.append((said[kind], {**defaults[kind], **said}.get("nodes", "")))
    members: dict[str, list[str]] = {}
    for partition, text in partitions:
        for name in nodes if text == "ALL" else _names(text):
            members.setdefault(name, []).append(partition)
    return tuple(_node(name, said, members.get(name, ())) for name, said in nodes.items())


def _node(name: str, said: dict[str, str], partitions: Sequence[str]) -> SiteNode:
    try:
        sockets, per_socket = int(said.get("sockets", 1)), int(said.get("corespersocket", 1))
        threads = max(1, int(said.get("threadspercore", 1)))
        cores = sockets * per_socket if "sockets" in said else int(said.get("cpus", 1)) // threads
        memory_mb, weight = int(said.get("realmemory", 1)), int(said.get("weight", 1))
    except ValueError as problem:
        raise BadInput(f"node {name}: {problem}; valid are whole numbers") from None
    features = said.get("features", said.get("feature", ""))
    return SiteNode(
        name,
        cores,
        memory_mb,
        weight,
        frozenset(filter(None, features.split(","))),
        frozenset(partitions),
        bool(said.get("gres")),
    )


def node_arrays(nodes: Iterable[SiteNode], topology: Topology = FLAT, *, heeds_weight: bool = True) -> NodeArrays:
    """The nodes for a simulation, with their weights (or without) and their switches."""
    listed = []
    for each in nodes:
        size = Resources(each.cores, each.memory_mb)
        weight = each.weight if heeds_weight else 1
        listed.append(Node(each.name, size, size, weight, topology.path(each.name)))
    return NodeArrays.of(listed)
