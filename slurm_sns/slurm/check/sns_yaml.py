"""Compares sns.yaml with the running Slurm: what differs, and how to repair it. Pure.

There are two parts, in the order in which an admin repairs them: `description` checks what sns.yaml says about the
site, `running` checks what slurmctld runs with after the rendered files are included.
"""

from collections.abc import Iterator, Mapping

from slurm_sns.config.configuration import Config, NodeEntry
from slurm_sns.gpus import listed, written
from slurm_sns.node_lists import folded
from slurm_sns.scheduler.observation import ObservedNode
from slurm_sns.slurm import libslurm
from slurm_sns.slurm.check import RECONFIGURE, Finding, merged, warning
from slurm_sns.slurm.site import Site


def expected_options(fragment: str) -> dict[str, tuple[str, ...]]:
    """The `Name=a,b` lines of the rendered slurm.conf fragment as option -> words."""
    lines = (line for line in fragment.splitlines() if line and not line.startswith("#") and "=" in line)
    return {name: tuple(words.split(",")) for name, words in (line.split("=", 1) for line in lines)}


def description(config: Config, site: Site) -> Iterator[Finding]:
    """Compare sns.yaml with the site that it describes: SlurmUser, memory, partitions, nodes."""
    user = config.slurm.user
    yield Finding(site.user == user, "SlurmUser", site.user, user, advice=f"sns.yaml, slurm: user: {site.user}")
    said_mb, runs_mb = config.slurm.memory_per_cpu_mb, site.memory_of(config.partitions)
    yield Finding(
        said_mb == runs_mb,
        "DefMemPerCPU in sns.yaml and in Slurm",
        f"{said_mb or 'unset'} and {runs_mb or 'unset'}",
        "the same",
        advice=f"sns.yaml, slurm: memory_per_cpu_mb: {runs_mb or 'null'}",
    )
    yield Finding(
        runs_mb is not None,
        "DefMemPerCPU is set: else a job without --mem takes a whole node's memory, and no job can share its node",
        str(runs_mb or "unset"),
        "a share of a node",
        advice="slurm.conf: DefMemPerCPU=<RealMemory / CPUs>, for all or in the line of each managed partition",
    )
    yield Finding(
        site.keeps_accounts or config.slurm.accounting_tres is None or not any(each.gres for each in config.nodes),
        "slurmdbd, to record gres",
        "none runs",
        "accounting_storage/slurmdbd, or accounting_tres: null",
        advice="sns.yaml, slurm: accounting_tres: null",
    )
    there = ", ".join(site.partitions)
    for name in config.partitions:
        yield Finding(name in site.partitions, f"partition {name}", there, name, advice="sns.yaml: partitions")
    said, runs = config.default_partition or "none", site.default_partition or "none"
    advice = f"sns.yaml: default_partition: {site.default_partition or 'null'}"
    yield Finding(said == runs, "the default partition in sns.yaml", said, runs, advice=advice)
    yield from merged(_nodes(config, site))
    yield from _gpus(config, site)


def running(config: Config, site: Site, expected: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    """Compare what slurmctld runs with to the rendered files: options, and the gres of the nodes."""
    for name, words in expected.items():
        present = {word.lower() for word in site.options.get(name, ())}
        missing = [word for word in words if word.lower() not in present]
        found = ",".join(site.options.get(name, ()))
        yield Finding(not missing, f"slurmctld runs with {name}", found, ",".join(words), run=RECONFIGURE)
    described = _described(config)
    yield from merged((each.name, _gres(each, described[each.name])) for each in site.nodes if each.name in described)


def _nodes(config: Config, site: Site) -> Iterator[tuple[str, Finding]]:
    managed = {node.name: node for node in site.nodes if node.partitions & set(config.partitions)}
    described = _described(config)
    for name in sorted(managed.keys() | described.keys()):
        if name not in described:
            yield name, Finding(ok=False, what="NODES: in no entry", advice="sns.yaml, nodes: add them")
        elif name not in managed:
            advice = "sns.yaml, nodes: take them out, or add them to a managed partition in slurm.conf"
            yield name, Finding(ok=False, what="NODES: in no managed partition of Slurm", advice=advice)
        else:
            yield name, _shape(managed[name], described[name])


def _shape(node: ObservedNode, said: NodeEntry) -> Finding:
    runs = node.capacity
    found, wanted = f"{said.cores} cores, {said.memory_mb} MiB", f"{runs.cores} cores, {runs.memory_mb} MiB"
    advice = f"sns.yaml, nodes, {said.names}: cores: {runs.cores}, memory_mb: {runs.memory_mb}"
    return Finding(found == wanted, "NODES as sns.yaml says", found, wanted, advice=advice)


def _gpus(config: Config, site: Site) -> Iterator[Finding]:
    """Whether the GPUs of the nodes are those of sns.yaml; jobs with GPUs are placed if it names any."""
    described = _described(config)
    nodes = [node for node in site.nodes if node.name in described]
    if not config.places_gpus:
        having = [node.name for node in nodes if node.capacity.gpus]
        if having:
            yield warning(
                False,
                "jobs that ask for GPUs are placed",
                f"{folded(having)} have GPUs, which sns.yaml does not name",
                "gpus in the entries of nodes",
                "Slurm alone places these jobs: sns.yaml, nodes, gpus",
            )
        return
    yield from merged((node.name, _gpus_of(node, described[node.name])) for node in nodes)
    yield Finding(
        site.shows_gpus,
        "what jobs ask of GPUs is read through our own library",
        site.binding,
        libslurm.PATH.name,
        advice="build it (plugins/libslurm/Makefile), beside pyslurm; without it Slurm alone places jobs with GPUs",
    )


def _gpus_of(node: ObservedNode, said: NodeEntry) -> Finding:
    runs = written(node.capacity.gpus)
    return Finding(
        listed(said.gpus) == node.capacity.gpus,
        "GPUs of NODES as sns.yaml says",
        said.gpus or "none",
        runs or "none",
        advice=f'sns.yaml, nodes, {said.names}: gpus: "{runs}"',
    )


def _gres(node: ObservedNode, said: NodeEntry) -> Finding:
    runs = node.capacity
    found = f"{runs.ways} ways, {runs.bandwidth_gbps} GB/s"
    wanted = f"{said.llc_ways} ways, {said.bandwidth_gbps} GB/s"
    return Finding(found == wanted, "slurmctld runs with NODES", found, wanted, run=RECONFIGURE)


def _described(config: Config) -> dict[str, NodeEntry]:
    return {name: nodes for nodes in config.nodes for name in nodes.node_names}
