"""Which settings of the site's own configuration keep slurm_sns from placing jobs, and which have disadvantages. Pure.

`rules` is what slurmctld runs with, `controllers` and `for_agents` are lines of the files.

A managed partition must let jobs share nodes and give them all CPUs of a node: the plan counts on both. A setting that
only has a disadvantage is a warning, which names the disadvantage.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from slurm_sns.conf_text import Line, last_options
from slurm_sns.config.configuration import Config
from slurm_sns.node_lists import folded
from slurm_sns.scheduler.gate.orders import LEAST_BOOSTED
from slurm_sns.scheduler.observation import Observation
from slurm_sns.scheduler.snapshot.plannable import QOS, Preemptors, is_on
from slurm_sns.slurm.check import RECONFIGURE, Finding, warning
from slurm_sns.slurm.check.files import OURS, unused
from slurm_sns.slurm.controllers import hosts
from slurm_sns.slurm.site import BLOCK_WISE, Site, SitePartition, fills_sockets, has_extra, year_and_month
from slurm_sns.submit import record as records

#: The releases whose answers slurm_sns reads (docs/admins/requirements.md says what was tried on each).
OLDEST_RELEASE, NEWEST_RELEASE = (24, 11), (26, 5)
#: Slurm's default is 30 s; the example of conf/sns.yaml has 60.
MOST_BF_INTERVAL_S = 60
#: A placed job goes ahead of every job with a priority below this, and its own priority with the boost fits 32 bits.
MOST_WEIGHTS = LEAST_BOOSTED
EXPEDITED = "enable_expedited_requeue"
#: plugins/spank/sns.c waits 12 s for a prolog at most (HOOK_MS); slurmd drains a node whose prolog takes longer than
#: its timeout.
LEAST_PROLOG_TIMEOUT_S = 15
#: PrologTimeout and EpilogTimeout count before it (slurm.conf(5)).
TIMEOUTS = ("PrologTimeout", "EpilogTimeout", "PrologEpilogTimeout")
#: Seconds until slurmctld requeues a batch job as missing whose prolog still runs. Slurm's default of 10 was too short
#: for 28 jobs that began on a node at once (seen on 26.05.5).
BATCH_START, DEFAULT_BATCH_START_S, LEAST_BATCH_START_S = "BatchStartTimeout", 10, 60


def release(version: str) -> Finding:
    """Check the release of the running Slurm (`26.05.5`)."""
    told = year_and_month(version)
    first, last = (f"{year}.{month:02}" for year, month in (OLDEST_RELEASE, NEWEST_RELEASE))
    what, wanted = "a release of Slurm that slurm_sns knows", f"{first} to {last}"
    if told < OLDEST_RELEASE:
        advice = "upgrade Slurm: slurm_sns has not been made for the answers of this release"
        return Finding(ok=False, what=what, found=version, wanted=wanted, advice=advice)
    advice = "nobody has tried it: run in the mode observe first, and look for a newer slurm_sns"
    return warning(told <= NEWEST_RELEASE, what, version, wanted, advice)


def rules(config: Config, site: Site) -> Iterator[Finding]:
    """Check the settings of the running Slurm that concern managed jobs."""
    managed = [each for each in site.rules if each.observed.name in config.partitions]
    yield from (_sharing(partition, site, config) for partition in managed)
    yield from _preemption(managed, site)
    yield from _cluster(site)
    yield from _topology(config, site)
    yield _core_distribution(config, site)
    if config.rescheduling.restart != "off":
        yield from _restarts(config, site)


def _restarts(config: Config, site: Site) -> Iterator[Finding]:
    """Check the options on which restarts of suspended jobs depend."""
    yield warning(
        is_on(site.preemption) and "SUSPEND" in site.preemption.mode.upper(),
        "preemption suspends jobs",
        ", ".join(filter(None, (site.preemption.type, site.preemption.mode))),
        "PreemptType=preempt/partition_prio, PreemptMode=SUSPEND,GANG",
        "no job is suspended, so none is restarted elsewhere: set both, or rescheduling.restart: off in sns.yaml",
    )
    yield warning(
        site.min_job_age_s > 2 * config.scheduler.interval_s,
        "slurmctld shows a job for long enough after its end",
        f"MinJobAge={site.min_job_age_s}",
        f"more than {2 * config.scheduler.interval_s:g}, twice interval_s",
        "averages and run times, by which restarts are decided, lack the jobs that are forgotten before",
    )
    yield warning(
        site.requeues_jobs,
        "Slurm may requeue jobs that do not say otherwise",
        f"JobRequeue={int(site.requeues_jobs)}",
        "JobRequeue=1",
        "of the jobs that may restart by sns.yaml only those with --requeue do: tell the users",
    )


#: Types of file systems on a disk or in the memory of one machine, as the kernel names them.
LOCAL_FILE_SYSTEMS = frozenset({"btrfs", "ext2", "ext3", "ext4", "tmpfs", "xfs", "zfs"})


class SharedByControllers(NamedTuple):
    """What this machine has of what controllers share: its name, the type of the state directory's file system."""

    host_name: str
    is_one_of_them: bool
    file_system: str
    has_file_store: bool


def controllers(lines: Sequence[Line], shared: SharedByControllers) -> Iterator[Finding]:
    """Check what several controllers must share, as far as it can be seen from one of them."""
    names = hosts(lines)
    if len(names) < 2:
        return
    named = ", ".join(names)
    yield Finding(
        shared.is_one_of_them,
        "this machine is a controller of slurm.conf",
        "" if shared.is_one_of_them else shared.host_name,
        named,
        advice="run scheduler and watchdog on these machines, and nowhere else",
    )
    yield warning(
        shared.file_system not in LOCAL_FILE_SYSTEMS,
        "StateSaveLocation is shared by all controllers",
        shared.file_system,
        "a file system that all of them have mounted",
        "Slurm needs that, too: without it two schedulers may plan; nothing is wrong if this disk moves with slurmctld",
    )
    yield warning(
        not shared.has_file_store,
        "the database is one for all controllers",
        "SQLite on this machine" if shared.has_file_store else "",
        "store: url of MariaDB, MySQL or PostgreSQL",
        "after a takeover sns explain, back-offs and what was learnt are those of the new machine",
    )


def _sharing(partition: SitePartition, site: Site, config: Config) -> Finding:
    """The partition lets jobs share nodes and gives them all CPUs of a node."""
    name = partition.observed.name
    found = list(_obstacles(partition, site))
    if partition.oversubscribe.startswith("FORCE") and name not in config.sharing.partitions:
        found.insert(0, f"OverSubscribe={partition.oversubscribe}")
    return Finding(
        not found,
        f"partition {name} lets jobs share nodes and gives them all CPUs",
        ", ".join(found),
        "OverSubscribe is not FORCE (but in sharing.partitions), ExclusiveUser=NO, no MaxCPUsPerNode or "
        "MaxCPUsPerSocket below the node's CPUs",
        advice=f"sns.yaml: leave {name} out of partitions; or slurm.conf: PartitionName={name} without these options",
    )


def _obstacles(partition: SitePartition, site: Site) -> Iterator[str]:
    """The partition's options that keep its jobs from being placed, but for FORCE.

    With a limit of CPUs on each node or socket, we place jobs where Slurm does not start them (seen).
    """
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
        yield warning(
            False,
            f"jobs of partition {name} may preempt others" if name else "jobs may preempt others",
            why,
            "",
            "they are gated for a second and then left to Slurm: only Slurm can preempt a running job",
        )
    if not found:
        yield Finding(ok=True, what="no managed job may preempt others")


def _cluster(site: Site) -> Iterator[Finding]:
    """Check the options that concern all jobs of the cluster."""
    parameters = site.options.get("SchedulerParameters", ())
    yield Finding(
        not site.federation,
        "the cluster is in no federation: its jobs would all be left to Slurm, when their first gates open",
        site.federation,
        "none",
        advice=f"sacctmgr modify federation {site.federation} set clusters-=<this cluster>; or remove slurm_sns here",
    )
    yield warning(
        site.has_boost,
        "placed jobs go ahead of all others",
        ", ".join(filter(None, (site.priority_type, site.site_factor_plugin))),
        "priority/multifactor without PrioritySiteFactorPlugin and SchedulerParameters=enable_user_top",
        "placed jobs start in Slurm's own order: jobs that are left to Slurm may take their nodes first",
    )
    yield warning(
        site.priority_weights <= MOST_WEIGHTS,
        "placed jobs get the highest priority",
        f"PriorityWeight* of {site.priority_weights} in all",
        f"at most {MOST_WEIGHTS}",
        "a waiting job of a higher priority keeps placed jobs from starting, and Slurm cuts priorities to 32 "
        "bits: slurm.conf: divide all PriorityWeight* by the same number",
    )
    is_left_alone = has_extra(parameters)
    yield warning(
        is_left_alone,
        "the agents on the nodes learn what a placed job gets",
        "" if is_left_alone else "SchedulerParameters=extra_constraints",
        "no extra_constraints",
        "Slurm reads the field Extra of a job as constraints, so no grant is written there: placed jobs get no "
        "partition of the cache",
    )
    is_expedited = EXPEDITED in site.options.get("SlurmctldParameters", ())
    yield warning(
        not is_expedited,
        "a requeued job waits until it is placed anew",
        f"SlurmctldParameters={EXPEDITED}" if is_expedited else "",
        f"no {EXPEDITED}",
        "a job with --requeue=expedite is started again by Slurm at once, on any nodes",
    )
    yield _admin_comments(site)
    interval_s = _number(parameters, "bf_interval")
    yield warning(
        interval_s <= MOST_BF_INTERVAL_S,
        "the backfill scheduler plans often enough",
        f"bf_interval={interval_s}",
        f"at most {MOST_BF_INTERVAL_S}",
        "slurm_sns keeps nodes for pass-through jobs as Slurm's last plan says, however old it is: sns.yaml, "
        f"slurm, scheduler_parameters: bf_interval={MOST_BF_INTERVAL_S}",
    )


def _admin_comments(site: Site) -> Finding:
    others = [other for text in site.admin_comments if (other := records.others(text))]
    unreadable = [text for text in site.admin_comments if records.read(text) == records.UNREADABLE_RECORD]
    found = []
    if others:
        found.append(f"{len(others)} waiting or running jobs have other text in it, such as {others[0][:40]!r}")
    if unreadable:
        found.append(f"{len(unreadable)} have a record that cannot be read")
    return warning(
        not found,
        "only slurm_sns writes the AdminComment of jobs that wait or run",
        ", ".join(found),
        "no other text",
        "what else writes it must keep the segment that begins with sns:2, up to the next ; or newline: a job "
        "without it is no longer managed",
    )


def _topology(config: Config, site: Site) -> Iterator[Finding]:
    """Whether jobs on several nodes can be laid where their nodes are connected."""
    switches, why_unknown = site.topology.switches, site.topology.unknown
    managed = [node.name for node in site.nodes if node.partitions & set(config.partitions)]
    apart = [name for name in managed if not switches.get(name)] if switches else []
    known = {name for path in switches.values() for name in path}
    yield warning(
        not why_unknown,
        "jobs on several nodes are placed",
        why_unknown,
        "topology/flat, topology/tree or topology/block, or one topology of these in topology.yaml",
        "jobs on several nodes are left to Slurm, others are placed",
    )
    yield warning(
        not apart,
        "every node is under a switch",
        f"{folded(apart)} under none" if apart else "",
        "all nodes, or none",
        "jobs on several nodes do not get these: topology.conf: put them under a switch",
    )
    unknown = [] if why_unknown else sorted(set(config.scheduler.never_across) - known)
    yield Finding(
        not unknown,
        "the switches of never_across are Slurm's",
        ", ".join(unknown),
        ", ".join(sorted(known)) or "none: there is no topology",
        advice="sns.yaml, scheduler, never_across: name switches of the topology",
    )


def _core_distribution(config: Config, site: Site) -> Finding:
    """Whether a job's cores lie on all sockets, as profiles from elsewhere suppose."""
    is_block = fills_sockets(site.options.get("SelectTypeParameters"))
    shares = any(entry.llc_ways or entry.bandwidth_gbps for entry in config.nodes)
    return warning(
        not (is_block and shares),
        "ways and GB/s are planned as the cores of jobs lie",
        f"SelectTypeParameters={BLOCK_WISE}" if is_block else "",
        f"no {BLOCK_WISE}, which is Slurm's default",
        "a job that fits on one socket has its ways and its bandwidth there alone: half of both on two sockets. "
        "Use profiles that were measured here (learning), and none from elsewhere; beside other jobs, a job is planned "
        "with the GB/s that the fullest socket has left",
    )


def for_agents(
    path: Path, slurm_conf: Sequence[Line], cgroup_conf: Sequence[Line], *, all_share: bool = False
) -> Iterator[Finding]:
    """Check the lines of slurm.conf, which is at `path`, and of cgroup.conf: what agents need to know jobs' processes.

    `all_share`: jobs share the cores of all nodes, so none is to stay on its own. Short timeouts are wrong: they cost
    jobs and nodes. With the other settings the agents work, and know less.
    """
    options = last_options(slurm_conf)
    timeouts = {name: options.get(name.lower(), "") for name in TIMEOUTS}
    is_short = {name: value.isdecimal() and int(value) < LEAST_PROLOG_TIMEOUT_S for name, value in timeouts.items()}
    short = ", ".join(f"{name}={value}" for name, value in timeouts.items() if is_short[name])
    yield Finding(
        not short,
        "slurmd waits for an agent that does not answer, and drains no node",
        short,
        f"no timeout of prologs below {LEAST_PROLOG_TIMEOUT_S} s",
        advice=f"slurm.conf: {short} without them, or {LEAST_PROLOG_TIMEOUT_S} or more",
    )
    said = [(line, line.option[1]) for line in slurm_conf if line.option and line.option[0] == BATCH_START.lower()]
    line, value = said[-1] if said else (Line(path, ""), str(DEFAULT_BATCH_START_S))
    yield Finding(
        value.isdecimal() and int(value) >= LEAST_BATCH_START_S,
        "slurmctld requeues no batch job because its prolog still runs",
        f"{BATCH_START}={value}",
        f"{LEAST_BATCH_START_S} or more",
        file=str(line.file),
        remove=line.text,
        add=(f"{unused(line.text)}\n" if said else "") + f"{BATCH_START}={LEAST_BATCH_START_S}{OURS}",
        run=RECONFIGURE,
    )
    tracking = options.get("proctracktype") or "proctrack/cgroup"  # Slurm's default
    yield warning(
        tracking.lower() in ("proctrack/cgroup", "cgroup"),
        "the agents find the processes of a job by its cgroup",
        f"ProctrackType={tracking}",
        "ProctrackType=proctrack/cgroup",
        "they look for the children of slurmstepd: what a job starts is measured with it and is in its group, "
        "but processes that are no children of it any more are not moved when its group is made later",
    )
    if all_share:
        return
    task_plugin = options.get("taskplugin", "")
    constrains = last_options(cgroup_conf).get("constraincores", "").lower() in ("yes", "true", "1")
    yield warning(
        constrains and "cgroup" in [word.lower().removeprefix("task/") for word in task_plugin.split(",")],
        "a job stays on its cores, so the agents know in which caches it needs ways",
        f"TaskPlugin={task_plugin or 'unset'}, ConstrainCores={'yes' if constrains else 'no'}",
        "TaskPlugin=task/cgroup,task/affinity, and ConstrainCores=yes in cgroup.conf",
        "its ways count in each cache of its nodes, also where none of its cores is: fewer jobs find ways",
    )


def _number(words: Sequence[str], name: str) -> int:
    """The value of the last `name=value` among these words; 0 if there is none or it is no number."""
    values = [word.partition("=")[2] for word in words if word.partition("=")[0].lower() == name]
    return int(values[-1]) if values and values[-1].isdecimal() else 0
