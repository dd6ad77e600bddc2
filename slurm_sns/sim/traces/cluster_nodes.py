"""The nodes of a cluster from whatever file an admin has: a CSV, a slurm.conf, or what scontrol or sinfo prints.

They are told apart by their content. Of Slurm's files and answers all nodes count, in whatever state they are, but
those that are FUTURE: a trace was recorded in other states.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from slurm_sns import conf_text
from slurm_sns.coverage.sacct import SINFO
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.node_lists import NodeLists
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.traces.files import STANDARD_INPUT, TraceFile
from slurm_sns.sim.traces.gpu_tasks import is_of_gpu_cluster, read_gpu_nodes
from slurm_sns.sim.traces.gpus import require_few_types
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB, MOST_CORES, MOST_GB, MOST_NODES, NODE_NAME, nodes_in
from slurm_sns.sim.traces.site_partitions import EVERYWHERE, SitePartitions
from slurm_sns.sim.traces.slurm_conf import FUTURE, SiteNode, node_arrays, site_node, site_nodes, slurm_parameters

#: Only `scontrol show node` says so.
_SCONTROL = re.compile(r"\bCPUTot=")
_RECORD = re.compile(r"^NodeName=", re.MULTILINE)
_OPTION = re.compile(r"(?:^|\s)([A-Za-z]+)=(\S*)")
_SLURM_CONF = re.compile(r"^\s*(?:NodeName\s*=|PartitionName\s*=|Include\s)", re.MULTILINE | re.IGNORECASE)
_NAMES = ("NODELIST", "HOSTNAMES")
#: sinfo says more lines before its header with `-l`.
_LINES_BEFORE_HEADER = 5
#: Our names of what sinfo prints; a node of several partitions has a line in each.
_OF_SINFO = {"CPUS": "cpus", "MEMORY": "realmemory", "WEIGHT": "weight", "SOCKETS": "sockets", "GRES": "gres"}
_OF_SINFO |= {"CORES": "corespersocket", "THREADS": "threadspercore", "AVAIL_FEATURES": "features", "S:C:T": "s:c:t"}
_OF_SINFO |= {"ACTIVE_FEATURES": "features", "AVAIL_FE": "features", "FEATURES": "features"}
_OPTIONS_OF_SCONTROL = {"cputot": "cpus", "availablefeatures": "features"}
_NOTHING = ("(null)", "N/A", "")


class SiteCluster(NamedTuple):
    """The nodes that a file lists, where its partitions and features let jobs run, and how its Slurm schedules.

    `slurm` is None where the file is no slurm.conf.
    """

    node_arrays: NodeArrays
    partitions: SitePartitions
    slurm: SlurmParameters | None


def read_cluster(name: str) -> tuple[NodeArrays, SitePartitions]:
    """The nodes that the file lists, and where its partitions and features let jobs run.

    Raises:
        BadInput: naming the line or the node, and what would be valid.
    """
    node_arrays, partitions, _ = read_site_cluster(name)
    return node_arrays, partitions


def read_site_cluster(name: str) -> SiteCluster:
    """The same, with how Slurm schedules there.

    Raises:
        BadInput: as above.
    """
    source = TraceFile.of(name)
    if is_of_gpu_cluster(source):
        return SiteCluster(NodeArrays.of(read_gpu_nodes(source)), EVERYWHERE, None)
    nodes = site_nodes_in(source)
    if nodes is None:
        return SiteCluster(nodes_in(source), EVERYWHERE, None)
    text = source.text()
    is_slurm_conf = source.stored is None and not _SCONTROL.search(text) and _SLURM_CONF.search(text)
    slurm = slurm_parameters(conf_text.read(Path(name))) if is_slurm_conf else None
    return SiteCluster(node_arrays(nodes), SitePartitions(nodes), slurm)


def site_nodes_in(source: TraceFile) -> tuple[SiteNode, ...] | None:
    """The nodes of a slurm.conf, or of what scontrol or sinfo printed; None if the file is none of them.

    Raises:
        BadInput: it is one, and cannot be read.
    """
    name, text = source.name, source.text()
    try:
        if _SCONTROL.search(text):
            return _checked(name, _of_scontrol(text))
        lines = [line for line in text.splitlines() if line.strip()]
        for number, line in enumerate(lines[:_LINES_BEFORE_HEADER]):
            if {*_NAMES} & {*_words(line)}:
                return _checked(name, _of_sinfo(name, _words(line), lines[number + 1 :]))
        if _SLURM_CONF.search(text):
            return _checked(name, site_nodes(conf_text.read(Path(name))) if name != STANDARD_INPUT else ())
    except SnsError as problem:
        shown = str(problem)
        raise BadInput(shown if shown.startswith(name) else f"{name}: {shown}") from None
    return None


def slurm_conf(name: str) -> str:
    """The name of the file, which is a slurm.conf.

    Raises:
        BadInput: it is none.
    """
    text = TraceFile.of(name).text()
    if _SCONTROL.search(text) or not _SLURM_CONF.search(text):
        raise BadInput(f"{name}: no slurm.conf: it has no line NodeName=...; --nodes takes other lists of nodes")
    return name


def _of_scontrol(text: str) -> Iterator[SiteNode]:
    """Each record, on one line or on many. Its last options are words of the admin's."""
    begins = [found.start() for found in _RECORD.finditer(text)]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        said = {option.lower(): value for option, value in reversed(_OPTION.findall(text[begin:end]))}
        if FUTURE in said.get("state", ""):
            continue
        known = {_OPTIONS_OF_SCONTROL.get(option, option): value for option, value in said.items()}
        partitions = known.get("partitions", "").split(",")
        yield site_node(known["nodename"], _without_nothing(known), filter(None, partitions))


def _of_sinfo(name: str, header: list[str], lines: list[str]) -> Iterator[SiteNode]:
    if "CPUS" not in header or "MEMORY" not in header:
        raise BadInput(f"{name}: sinfo without the columns CPUS and MEMORY; try: {SINFO}")
    found: dict[str, dict[str, str]] = {}
    partitions: dict[str, list[str]] = {}
    names = NodeLists()
    for line in lines:
        cells = _words(line)
        if len(cells) < len(header):
            raise BadInput(f"{name}: a line of sinfo has fewer columns than its header: '{line[:60]}'; try: {SINFO}")
        said = dict(zip(header, cells, strict=False))
        known = {ours: said[theirs].rstrip("+") for theirs, ours in _OF_SINFO.items() if theirs in said}
        if shape := known.pop("s:c:t", ""):
            known |= dict(zip(("sockets", "corespersocket", "threadspercore"), shape.split(":"), strict=False))
        for node in names.names(next(said[each] for each in _NAMES if each in said)):
            found[node] = _without_nothing(known)
            partitions.setdefault(node, []).append(said.get("PARTITION", "").rstrip("*"))
    for node, options in found.items():
        yield site_node(node, options, filter(None, partitions[node]))


def _words(line: str) -> list[str]:
    return [word.strip() for word in line.split("|")] if "|" in line else line.split()


def _without_nothing(said: dict[str, str]) -> dict[str, str]:
    return {option: value for option, value in said.items() if value not in _NOTHING}


def _checked(name: str, nodes: Iterator[SiteNode] | tuple[SiteNode, ...]) -> tuple[SiteNode, ...]:
    """The nodes, if they are of sizes that a replay can hold."""
    listed = tuple(nodes)
    if not 0 < len(listed) <= MOST_NODES:
        raise BadInput(f"{name}: {len(listed)} nodes; valid: 1 to {MOST_NODES}")
    for node in listed:
        if not NODE_NAME.fullmatch(node.name):
            raise BadInput(f"{name}: node '{node.name[:40]}'; valid: letters, digits, '.', '_', '-'")
        if not (0 < node.cores <= MOST_CORES and 0 <= node.memory_mb <= MOST_GB * MIB_PER_GB):
            most = f"1 to {MOST_CORES} cores, up to {MOST_GB} GB"
            raise BadInput(f"{name}: node {node.name} has {node.cores} cores, {node.memory_mb} MiB; valid: {most}")
        if not 0 <= node.weight < 1 << 32:
            raise BadInput(f"{name}: node {node.name} has Weight {node.weight}; valid: 0 to {(1 << 32) - 1}")
    require_few_types(name, (node.gpus for node in listed))
    if len({node.name for node in listed}) < len(listed):
        raise BadInput(f"{name}: a node is there twice; valid: each once")
    return listed
