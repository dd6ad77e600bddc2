"""Which settings of the site's own configuration keep slurm_sns from placing jobs, and which have disadvantages. Pure.

A managed partition must let jobs share nodes and give them all CPUs of a node: the plan counts on both. A setting that
only has a disadvantage is a warning, which names the disadvantage.
"""

from collections.abc import Iterator, Sequence

from slurm_sns.conf_text import Line
from slurm_sns.config import Config
from slurm_sns.node_lists import folded
from slurm_sns.scheduler.gate.orders import LEAST_BOOSTED
from slurm_sns.scheduler.observation import Observation
from slurm_sns.scheduler.snapshot.plannable import QOS, Preemptors, is_on
from slurm_sns.slurm.check import Finding
from slurm_sns.slurm.site import BLOCK_WISE, Site, SitePartition, fills_sockets, has_extra
from slurm_sns.submit import record as records

#: Slurm's default is 30 s; the example of conf/sns.yaml has 60.
MOST_BF_INTERVAL_S = 60
#: A placed job goes ahead of every job with a priority below this, and its own priority with the boost fits 32 bits.
MOST_WEIGHTS = LEAST_BOOSTED


def rules(config: Config, site: Site) -> Iterator[Finding]:
    """Check the settings of the running Slurm that concern managed jobs."""
    managed = [each for each in site.rules if each.observed.name in config.partitions]
    yield from (_sharing(partition, site) for partition in managed)
    yield from _preemption(managed, site)
    yield _federation(site)
    yield _boost(site)
    yield _weights(site)
    yield _extra(site)
    yield _expedited(site)
    yield _admin_comments(site)
    yield _backfill(site)
    yield from _topology(config, site)
    yield _core_distribution(config, site)


def controllers(lines: Sequence[Line]) -> Finding:
    """Check how many controllers slurm.conf names: slurm_sns runs on one of them only."""
    hosts = [line.option[1] for line in lines if line.option and line.option[0] == "slurmctldhost"]
    return Finding(
        ok=True,
        warning=len(hosts) > 1,
        what="one SlurmctldHost",
        found=", ".join(hosts),
        wanted="slurm_sns on the one that is active",
        advice="after a takeover the submit filter on the new host finds no heartbeat: new jobs pass through, and the "
        "gates of waiting jobs lapse one after the other: start both daemons on the new one",
    )


def _sharing(partition: SitePartition, site: Site) -> Finding:
    """The partition lets jobs share nodes and gives them all CPUs of a node."""
    name = partition.observed.name
    found = list(_obstacles(partition, site))
    return Finding(
        not found,
        f"partition {name} lets jobs share nodes and gives them all CPUs",
        ", ".join(found),
        "OverSubscribe is not FORCE, ExclusiveUser=NO, no MaxCPUsPerNode or MaxCPUsPerSocket below the node's CPUs",
        advice=f"sns.yaml: leave {name} out of partitions; or slurm.conf: PartitionName={name} without these options",
    )


def _obstacles(partition: SitePartition, site: Site) -> Iterator[str]:
    """The partition's options that keep its jobs from being placed.

    With OverSubscribe=FORCE, every job of the partition shows `--oversubscribe`: it is gated, and given to Slurm a
    second later (seen on 26.05.5). With a limit of CPUs on each node or socket, we place jobs where Slurm does not
    start them (seen).
    """
    if partition.oversubscribe.startswith("FORCE"):
        yield f"OverSubscribe={partition.oversubscribe}"
    if partition.is_user_exclusive:
        yield "ExclusiveUser=YES"
    nodes = (node for node in site.nodes if partition.observed.name in node.partitions)
    cpus = max((node.capacity.cores * node.threads_per_core for node in nodes), default=0)
    limits = {"MaxCPUsPerNode": partition.cpus_per_node, "MaxCPUsPerSocket": partition.cpus_per_socket}
    yield from (f"{name}={limit}" for name, limit in limits.items() if limit is not None and limit < cpus)


def _preemption(managed: Sequence[SitePartition], site: Site) -> Iterator[Finding]:
    """Warn of partitions and QOS whose jobs may preempt others: such jobs are left to Slurm."""
    partitions = tuple(each.observed for each in site.rules)
    preemptors = Preemptors(Observation((), site.nodes, partitions=partitions, preemption=site.preemption))
    names = [each.observed.name for each in managed]
    found = [(name, why) for name in names if (why := preemptors.in_partition(name))]
    if is_on(site.preemption) and site.preemption.type == QOS and not found:
        found = [("", "those whose QOS may")]
    for name, why in found:
        yield Finding(
            ok=True,
            warning=True,
            what=f"jobs of partition {name} may preempt others" if name else "jobs may preempt others",
            found=why,
            advice="they are gated for a second and then left to Slurm: only Slurm can preempt a running job",
        )
    if not found:
        yield Finding(ok=True, what="no managed job may preempt others")


def _federation(site: Site) -> Finding:
    return Finding(
        not site.federation,
        "the cluster is in no federation: its jobs would all be left to Slurm, when their first gates open",
        site.federation,
        "none",
        advice=f"sacctmgr modify federation {site.federation} set clusters-=<this cluster>; or remove slurm_sns here",
    )


def _boost(site: Site) -> Finding:
    return Finding(
        ok=True,
        warning=not site.has_boost,
        what="placed jobs go ahead of all others",
        found=", ".join(filter(None, (site.priority_type, site.site_factor_plugin))),
        wanted="priority/multifactor without PrioritySiteFactorPlugin and SchedulerParameters=enable_user_top",
        advice="placed jobs start in Slurm's own order: jobs that are left to Slurm may take their nodes first",
    )


def _weights(site: Site) -> Finding:
    return Finding(
        ok=True,
        warning=site.priority_weights > MOST_WEIGHTS,
        what="placed jobs get the highest priority",
        found=f"PriorityWeight* of {site.priority_weights} in all",
        wanted=f"at most {MOST_WEIGHTS}",
        advice="a waiting job of a higher priority keeps placed jobs from starting, and Slurm cuts priorities to 32 "
        "bits: slurm.conf: divide all PriorityWeight* by the same number",
    )


def _extra(site: Site) -> Finding:
    is_left_alone = has_extra(site.options.get("SchedulerParameters", ()))
    return Finding(
        ok=True,
        warning=not is_left_alone,
        what="the agents on the nodes learn what a placed job gets",
        found="" if is_left_alone else "SchedulerParameters=extra_constraints",
        wanted="no extra_constraints",
        advice="Slurm reads the field Extra of a job as constraints, so no grant is written there: placed jobs get no "
        "partition of the cache",
    )


def _expedited(site: Site) -> Finding:
    word = "enable_expedited_requeue"
    is_on = word in site.options.get("SlurmctldParameters", ())
    return Finding(
        ok=True,
        warning=is_on,
        what="a requeued job waits until it is placed anew",
        found=f"SlurmctldParameters={word}" if is_on else "",
        wanted=f"no {word}",
        advice="a job with --requeue=expedite is started again by Slurm at once, on any nodes",
    )


def _admin_comments(site: Site) -> Finding:
    others = [other for text in site.admin_comments if (other := records.others(text))]
    unreadable = [text for text in site.admin_comments if records.read(text) == records.UNREADABLE_RECORD]
    found = []
    if others:
        found.append(f"{len(others)} waiting or running jobs have other text in it, such as {others[0][:40]!r}")
    if unreadable:
        found.append(f"{len(unreadable)} have a record that cannot be read")
    return Finding(
        ok=True,
        warning=bool(found),
        what="only slurm_sns writes the AdminComment of jobs that wait or run",
        found=", ".join(found),
        wanted="no other text",
        advice="what else writes it must keep the segment that begins with sns:2, up to the next ; or newline: a job "
        "without it is no longer managed",
    )


def _backfill(site: Site) -> Finding:
    interval_s = _number(site.options.get("SchedulerParameters", ()), "bf_interval")
    return Finding(
        ok=True,
        warning=interval_s > MOST_BF_INTERVAL_S,
        what="the backfill scheduler plans often enough",
        found=f"bf_interval={interval_s}",
        wanted=f"at most {MOST_BF_INTERVAL_S}",
        advice="slurm_sns keeps nodes for pass-through jobs as Slurm's last plan says, however old it is: sns.yaml, "
        f"slurm, scheduler_parameters: bf_interval={MOST_BF_INTERVAL_S}",
    )


def _topology(config: Config, site: Site) -> Iterator[Finding]:
    """Whether jobs on several nodes can be laid where their nodes are connected."""
    switches, never = site.topology.switches, config.scheduler.never_across
    managed = [node.name for node in site.nodes if node.partitions & set(config.partitions)]
    apart = [name for name in managed if not switches.get(name)] if switches else []
    known = {name for path in switches.values() for name in path}
    yield Finding(
        ok=True,
        warning=bool(site.topology.unknown),
        what="jobs on several nodes are placed",
        found=site.topology.unknown,
        wanted="topology/flat, topology/tree or topology/block, or one topology of these in topology.yaml",
        advice="jobs on several nodes are left to Slurm, others are placed",
    )
    yield Finding(
        ok=True,
        warning=bool(apart),
        what="every node is under a switch",
        found=f"{folded(apart)} under none" if apart else "",
        wanted="all nodes, or none",
        advice="jobs on several nodes do not get these: topology.conf: put them under a switch",
    )
    unknown = [] if site.topology.unknown else sorted(set(never) - known)
    yield Finding(
        ok=not unknown,
        what="the switches of never_across are Slurm's",
        found=", ".join(unknown),
        wanted=", ".join(sorted(known)) or "none: there is no topology",
        advice="sns.yaml, scheduler, never_across: name switches of the topology",
    )


def _core_distribution(config: Config, site: Site) -> Finding:
    """Whether a job's cores lie on all sockets, as profiles from elsewhere suppose."""
    is_block = fills_sockets(site.options.get("SelectTypeParameters"))
    shares = any(entry.llc_ways or entry.bandwidth_gbps for entry in config.nodes)
    return Finding(
        ok=True,
        warning=is_block and shares,
        what="ways and GB/s are planned as the cores of jobs lie",
        found=f"SelectTypeParameters={BLOCK_WISE}" if is_block else "",
        wanted=f"no {BLOCK_WISE}, which is Slurm's default",
        advice="a job that fits on one socket has its ways and its bandwidth there alone: half of both on two sockets. "
        "Use profiles that were measured here (learning), and none from elsewhere; beside other jobs, a job is planned "
        "with the GB/s that the fullest socket has left",
    )


def _number(words: Sequence[str], name: str) -> int:
    """The value of the last `name=value` among these words; 0 if there is none or it is no number."""
    values = [word.partition("=")[2] for word in words if word.partition("=")[0].lower() == name]
    return int(values[-1]) if values and values[-1].isdecimal() else 0
