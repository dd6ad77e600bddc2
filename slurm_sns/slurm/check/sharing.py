"""Whether the jobs of the partitions of `sharing` can share cores as slurm_sns plans it. Pure.

Slurm must start as many jobs to a core as the plan has, on nodes of that partition alone, without giving memory twice;
and no job may be confined to the cores that Slurm has given it: beside the neighbours on these it would get less CPU
time than planned, and others more.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from slurm_sns.conf_text import Line, last_options, options
from slurm_sns.config.configuration import Config
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.node_lists import folded
from slurm_sns.slurm.check import Finding, warning
from slurm_sns.slurm.site import Site, SitePartition
from slurm_sns.slurm.translate import node_names

#: What `sacctmgr -nP show qos` is asked for, as `qos` reads it.
QOS_FORMAT = "format=name,maxwall,usagefactor"


class Qos(NamedTuple):
    """A QOS: its MaxWall, empty for none, and the factor with which its usage is charged."""

    name: str
    max_wall: str
    usage_factor: float


def qos(shown: str) -> tuple[Qos, ...]:
    """The QOS in an answer of sacctmgr.

    Raises:
        SnsError: it has another form.
    """
    rows = [line.split("|") for line in shown.splitlines() if line]
    try:
        return tuple(Qos(name, max_wall, float(factor or 1)) for name, max_wall, factor in rows)
    except ValueError:
        raise SnsError("sacctmgr shows QOS in a form that is not known") from None


def rules(config: Config, site: Site) -> Iterator[Finding]:
    """Check the settings of the running Slurm; nothing where no partition shares cores."""
    shared = [each for each in site.rules if each.observed.name in config.sharing.partitions]
    if not shared:
        return
    yield _gang(site)
    yield _memory_counts(site)
    for partition in shared:
        yield _forced(partition, config.sharing.most_to_a_core)
        yield _nodes_alone(partition.observed.name, site)
        yield _default_memory(partition, site)


def _gang(site: Site) -> Finding:
    modes = {"": site.preemption.mode, **{each.observed.name: each.observed.preempt_mode for each in site.rules}}
    found = [
        f"PreemptMode={mode}" + (f" of partition {name}" if name else "")
        for name, mode in modes.items()
        if "GANG" in mode.upper().split(",")
    ]
    return Finding(
        not found,
        "Slurm lets jobs that share cores run at the same time",
        ", ".join(found),
        "no GANG in any PreemptMode: with it Slurm suspends them in turn",
        advice="slurm.conf: PreemptMode without GANG; or sns.yaml: sharing.partitions: []",
    )


def _memory_counts(site: Site) -> Finding:
    words = site.options.get("SelectTypeParameters", ())
    return Finding(
        any("MEMORY" in word.upper() for word in words),
        "Slurm gives no memory twice to jobs that share cores",
        f"SelectTypeParameters={','.join(words) or 'unset'}",
        "CR_Core_Memory",
        advice="slurm.conf: SelectType=select/cons_tres, SelectTypeParameters=CR_Core_Memory",
    )


def _forced(partition: SitePartition, most_to_a_core: int) -> Finding:
    name, wanted = partition.observed.name, f"FORCE:{most_to_a_core}"
    return Finding(
        partition.oversubscribe == wanted,
        f"Slurm starts {most_to_a_core} jobs of partition {name} to a core",
        f"OverSubscribe={partition.oversubscribe}",
        f"OverSubscribe={wanted}",
        advice=f"slurm.conf: PartitionName={name} OverSubscribe={wanted}; or sns.yaml, sharing: most_to_a_core",
    )


def _nodes_alone(name: str, site: Site) -> Finding:
    others = {node.name: node.partitions - {name} for node in site.nodes if name in node.partitions}
    found = sorted(node for node, of in others.items() if of)
    elsewhere = ", ".join(sorted(set().union(*others.values())))
    return Finding(
        not found,
        f"the nodes of partition {name} are in no other partition",
        f"{folded(found)} also in {elsewhere}" if found else "",
        "one partition: Slurm starts no job of another one on a node whose cores are shared",
        advice=f"slurm.conf: take them out of {elsewhere}",
    )


def _default_memory(partition: SitePartition, site: Site) -> Finding:
    name = partition.observed.name
    return Finding(
        partition.has_memory_by_node or site.memory_of([name]) is not None,
        f"a job of partition {name} without --mem leaves memory to others",
        "no DefMemPerCPU",
        "DefMemPerCPU: without it such a job takes the whole memory of its node, and nothing runs beside it",
        advice=f"slurm.conf: PartitionName={name} DefMemPerCPU=...",
    )


def of_files(config: Config, lines: Sequence[Line], known: Iterable[Qos]) -> Iterator[Finding]:
    """Warn of lines of slurm.conf that bind jobs to cores or charge them in full, and of limits of QOS.

    Nothing where no partition shares cores.
    """
    if not config.sharing.partitions:
        return
    of_qos = {each.name: each for each in known}
    yield from _bindings(config, lines)
    for name, said in _of_partitions(lines).items():
        if name in config.sharing.partitions:
            yield _billing(name, said, of_qos, config.sharing.most_to_a_core)
    limited = sorted(name for name, each in of_qos.items() if each.max_wall)
    yield warning(
        not limited or config.sharing.most_extension == 1,
        "no QOS limits how long jobs that share cores may run",
        f"MaxWall of QOS {', '.join(limited)}",
        "no MaxWall, or sharing.most_extension: 1",
        "a limit that slurm_sns raises is not checked against it: jobs of this QOS may run up to "
        f"{config.sharing.most_extension:g} times as long where they share cores",
    )


def _bindings(config: Config, lines: Sequence[Line]) -> Iterator[Finding]:
    plugins = last_options(lines).get("taskplugin", "")
    yield warning(
        "affinity" not in [word.lower().removeprefix("task/") for word in plugins.split(",")],
        "the jobs of a node may run on all its cores",
        f"TaskPlugin={plugins}",
        "TaskPlugin=task/cgroup on the nodes that share cores",
        "task/affinity binds each batch job to the cores that Slurm gave it, also with CpuBind=none: it shares those, "
        "however idle the others are",
    )
    bound = sorted(_sharing_nodes(config) - set(_unbound(lines)))
    yield warning(
        not bound,
        "the steps of jobs that share cores are not bound to some of them",
        f"{folded(bound)} without CpuBind=none" if bound else "",
        "CpuBind=none",
        "srun may bind tasks of different jobs to one core: slurm.conf: NodeName=... CpuBind=none",
    )


def _sharing_nodes(config: Config) -> set[str]:
    entries = (each for each in config.nodes if each.partitions[0] in config.sharing.partitions)
    return {name for each in entries for name in each.node_names}


def _unbound(lines: Iterable[Line]) -> Iterator[str]:
    """The nodes that slurm.conf gives CpuBind=none."""
    for line in lines:
        if line.option and line.option[0] == "nodename":
            said = _said(line)
            if said.get("cpubind", "").lower() == "none":
                try:
                    yield from node_names(said["nodename"])
                except SnsError:
                    continue


def _of_partitions(lines: Iterable[Line]) -> Mapping[str, Mapping[str, str]]:
    found = [_said(line) for line in lines if line.option and line.option[0] == "partitionname"]
    return {each["partitionname"]: each for each in found if "partitionname" in each}


def _said(line: Line) -> Mapping[str, str]:
    try:
        return options(line.content)
    except BadInput:
        return {}


def _billing(name: str, said: Mapping[str, str], of_qos: Mapping[str, Qos], most_to_a_core: int) -> Finding:
    own = of_qos.get(said.get("qos", ""))
    factor = 1.0 if own is None else own.usage_factor
    return warning(
        "tresbillingweights" in said or factor < 1,
        f"the jobs of partition {name} are charged for less than whole cores",
        "no TRESBillingWeights, and no QOS of the partition with a UsageFactor below 1",
        f'TRESBillingWeights="CPU={1 / most_to_a_core:.2g}"',
        f"Slurm charges each job all its cores for all its time: up to {most_to_a_core} times what there is",
    )


def of_agents(config: Config, away: Iterable[str], confined: Iterable[str]) -> Iterator[Finding]:
    """Check the nodes that share cores by what the scheduler hears of their agents.

    `away` are nodes without an agent; on those of `confined` a job may use only some of the node's CPUs.
    """
    nodes = _sharing_nodes(config)
    if not nodes:
        return
    without, bound = sorted(nodes & set(away)), sorted(nodes & set(confined))
    yield Finding(
        not without,
        "each node that shares cores has an agent",
        f"none on {folded(without)}" if without else "",
        advice="systemctl enable --now sns-agent on these nodes; docs/admins/nodes.md",
    )
    yield Finding(
        not bound,
        "no job is confined to some cores of a node that shares them",
        f"jobs are on {folded(bound)}" if bound else "",
        "ConstrainCores=no in cgroup.conf of these nodes",
        advice="cgroup.conf on these nodes: ConstrainCores=no, then restart their slurmd",
    )
