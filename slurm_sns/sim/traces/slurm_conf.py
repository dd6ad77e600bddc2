"""The nodes of a site from its slurm.conf and its topology: what a simulation on the same nodes needs.

Of a slurm.conf the lines of NodeName, NodeSet and PartitionName are read, with their DEFAULT lines before them, and of
the others SchedulerParameters and Epilog.
Cores and memory that are set aside for Slurm (CoreSpecCount, MemSpecLimit) are no jobs'.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from slurm_sns.conf_text import Line, last_options, options
from slurm_sns.errors import BadInput
from slurm_sns.model import Gpus, Node, Resources
from slurm_sns.node_lists import NodeLists
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.specification import settings_of
from slurm_sns.sim.traces.gpus import gpus_in_gres
from slurm_sns.topology import FLAT, Topology

DEFAULT = "DEFAULT"
#: The state of nodes that are not there yet.
FUTURE = "FUTURE"
#: Of a number in SchedulerParameters.
MOST_DIGITS = 10
_names = NodeLists().names


@dataclass(frozen=True, slots=True)
class SiteNode:
    """A node as slurm.conf or scontrol shows it: what jobs may use of it, its Weight, partitions, GPUs and other gres.

    Slurm may count the threads of a core, or the core, as CPUs.
    """

    name: str
    cores: int
    memory_mb: int
    weight: int
    features: frozenset[str]
    partitions: frozenset[str]
    has_gres: bool
    cpus_per_core: int = 1
    gpus: Gpus = ()


def site_nodes(lines: Iterable[Line]) -> tuple[SiteNode, ...]:
    """The nodes, in the order of the file.

    Raises:
        BadInput: a line or a number in it cannot be read.
    """
    nodes: dict[str, dict[str, str]] = {}
    partitions: list[tuple[str, str]] = []
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}, "nodeset": {}}
    sets: dict[str, dict[str, str]] = {}
    for line in lines:
        kind = line.content.partition("=")[0].strip().lower()
        if kind not in defaults:
            continue
        said = options(line.content)
        if said[kind] == DEFAULT:
            defaults[kind] |= said
        elif kind == "nodename":
            nodes |= {name: {**defaults[kind], **said} for name in _names(said[kind])}
        elif kind == "nodeset":
            sets[said[kind]] = said
        else:
            partitions.append((said[kind], {**defaults[kind], **said}.get("nodes", "")))
    members: dict[str, list[str]] = {}
    for partition, text in partitions:
        for name in nodes if text.upper() == "ALL" else _members(text, sets, nodes):
            members.setdefault(name, []).append(partition)
    there = {name: said for name, said in nodes.items() if said.get("state", "").upper() != FUTURE}
    return tuple(site_node(name, said, members.get(name, ())) for name, said in there.items())


#: What our parameters of Slurm alone are called in SchedulerParameters, and their unit there in seconds (or 1).
_SCHEDULER = {
    "bf_interval_s": ("bf_interval", 1),
    "bf_max_job_test": ("bf_max_job_test", 1),
    "bf_window_s": ("bf_window", 60),
    "bf_resolution_s": ("bf_resolution", 1),
    "bf_window_linear_s": ("bf_window_linear", 1),
    "batch_sched_delay_s": ("batch_sched_delay", 1),
}


def slurm_parameters(lines: Iterable[Line]) -> SlurmParameters:
    """How the Slurm of this slurm.conf schedules; what it does not say, or says oddly, has Slurm's default."""
    said = last_options(lines)
    given = dict(word.strip().lower().partition("=")[::2] for word in said.get("schedulerparameters", "").split(","))
    limits = settings_of(SlurmParameters)
    found: dict[str, Any] = {"epilog": bool(said.get("epilog"))}
    for ours, (name, unit) in _SCHEDULER.items():
        value, limit = given.get(name, ""), limits[ours]
        if value.isascii() and value.isdecimal() and len(value) < MOST_DIGITS:
            number = unit * int(value)
            if (limit.least or 0) <= number <= (limit.most or number):
                found[ours] = number
    return SlurmParameters(**found)


def _members(text: str, sets: Mapping[str, Mapping[str, str]], nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The nodes of a partition, which may name sets of nodes: by their names, or by a feature."""
    found: list[str] = []
    for name in _names(text):
        if name not in sets:
            found.append(name)
            continue
        found += _names(sets[name].get("nodes", ""))
        if feature := sets[name].get("feature"):
            found += [node for node, said in nodes.items() if feature in _features(said)]
    return list(dict.fromkeys(found))


def _features(said: Mapping[str, str]) -> list[str]:
    return [*filter(None, said.get("features", said.get("feature", "")).split(","))]


def site_node(name: str, said: Mapping[str, str], partitions: Iterable[str]) -> SiteNode:
    """The node of these options of slurm.conf, with names in lower case.

    Raises:
        BadInput: a number of them cannot be read.
    """
    try:
        on_boards = int(said.get("boards", 1)) * int(said.get("socketsperboard", 1))
        sockets, per_socket = int(said.get("sockets", on_boards)), int(said.get("corespersocket", 1))
        threads = max(1, int(said.get("threadspercore", 1)))
        by_cpus = "cpus" in said and not {"sockets", "socketsperboard"} & said.keys()
        cores = int(said["cpus"]) // threads if by_cpus else sockets * per_socket
        cpus = int(said.get("cpus", cores * threads))
        cores_for_jobs = cores - int(said.get("corespeccount", 0))
        memory_mb = int(said.get("realmemory", 1)) - int(said.get("memspeclimit", 0))
        weight = int(said.get("weight", 1))
    except ValueError as problem:
        raise BadInput(f"node {name}: {problem}; valid are whole numbers") from None
    try:
        gpus = gpus_in_gres(said.get("gres", ""))
    except BadInput as problem:
        raise BadInput(f"node {name}: {problem}") from None
    return SiteNode(
        name,
        cores_for_jobs,
        memory_mb,
        weight,
        frozenset(_features(said)),
        frozenset(partitions),
        bool(said.get("gres")),
        max(1, cpus // max(1, cores)),
        gpus,
    )


def node_arrays(nodes: Iterable[SiteNode], topology: Topology = FLAT, *, heeds_weight: bool = True) -> NodeArrays:
    """The nodes for a simulation, with their weights (or without) and their switches."""
    listed = []
    for each in nodes:
        size = Resources(each.cores, each.memory_mb, gpus=each.gpus)
        weight = each.weight if heeds_weight else 1
        listed.append(Node(each.name, size, size, weight, topology.path(each.name)))
    return NodeArrays.of(listed)
