"""The parts of a node's agent, built from a configuration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from slurm_sns import __version__
from slurm_sns.cli.live.node_missing import missing
from slurm_sns.cli.live.process import log, user_id
from slurm_sns.config.configuration import Config
from slurm_sns.node.agent.agent import Agent
from slurm_sns.node.agent.cache_domains import CacheDomains
from slurm_sns.node.agent.ports import AgentPorts, AgentSettings, BootClock, boot_id
from slurm_sns.node.agent.spool import Spool
from slurm_sns.node.agent.state_file import StateFile
from slurm_sns.node.agent.tasks_of_job import Processes, SlurmTasks
from slurm_sns.node.agent.tree import CoresByCache, NodeLimits, NodeTree
from slurm_sns.node.cgroups import Cgroups
from slurm_sns.node.counters.node_counters import DEVICES, NodeCounters
from slurm_sns.node.counters.perf_event import KernelPerf
from slurm_sns.node.resctrl.machine import Machine
from slurm_sns.sockets.agent_channel import AgentChannel
from slurm_sns.sockets.key_file import KeyFile
from slurm_sns.wire import grants
from slurm_sns.wire.values import Grant, RunId

CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Hardware:
    """A node besides resctrl: performance counters, and how many cores with some CPUs each cache of a level has."""

    perf: KernelPerf
    cores: CoresByCache
    devices: Path = DEVICES
    cgroups: Path | None = CGROUPS
    processes: Path = Path("/proc")


def hardware() -> Hardware:
    """This machine's."""
    return Hardware(KernelPerf(), CacheDomains().cores)


def agent(config: Config, node: str, found: Hardware, *, observes: bool) -> tuple[Agent, AgentChannel | None]:
    """The agent of this node, and its channel to the controller, not started yet; None without a controller."""
    # Besides root SlurmUser may own the key file, whose file it is where a node is the controller, too.
    keys = KeyFile(config.agents.key_file, user_id(config.slurm.user) or 0, log.info)

    def verify(token: str, run: RunId, nodes: Sequence[str]) -> Grant:
        return grants.verified(token, keys(), run, node, nodes)

    agents = config.agents
    settings = AgentSettings(
        node,
        __version__,
        sample_s=agents.sample_s,
        sample_ways=agents.sample_ways,
        monitor_s=agents.monitor_s,
        vanished_after_s=agents.vanished_after_s,
        confine_system=agents.confine_system,
        observes=observes,
    )
    made = Agent(settings, _ports(config, node, found, verify, observes=observes))
    if agents.controller is None:
        return made, None
    channel = AgentChannel(agents.controller, agents.port, node, keys, receive=made.inbox.receive, log=log.info)
    made.connect(channel)
    return made, channel


def _ports(
    config: Config,
    node: str,
    found: Hardware,
    verify: Callable[[str, RunId, Sequence[str]], Grant],
    *,
    observes: bool,
) -> AgentPorts:
    agents, clock, log_once = config.agents, BootClock(), cache(log.info)
    cgroups = None if found.cgroups is None else Cgroups(found.cgroups, node, processes=found.processes)
    processes = Processes(found.processes)
    return AgentPorts(
        clock=clock,
        boot=boot_id(),
        tree=NodeTree(
            agents.resctrl,
            partial(_limits, config, node),
            missing=partial(missing, agents.resctrl),
            log=log.info,
            observes=observes,
        ),
        tasks=SlurmTasks(cgroups, processes, log.info),
        slurmstepds=lambda: processes.slurmstepds().values(),
        cores=found.cores,
        # A line about what the node cannot measure comes once, not again with each new tree.
        counters=lambda: NodeCounters(found.perf, agents.resctrl, found.devices, log_once, clock=clock.steady),
        cgroups=cgroups,
        state=StateFile(agents.state_dir, log.info),
        spool=Spool(agents.state_dir / "spool", log.info),
        verify=verify,
        log=log.info,
    )


def _limits(config: Config, node: str, machine: Machine) -> NodeLimits:
    """The shared ways, and the peak bandwidth of a cache domain: the node's, in equal parts."""
    gbps = next((each.bandwidth_gbps for each in config.nodes if node in each.node_names), 0)
    domains = len(machine.bandwidth.domains) if machine.bandwidth is not None else 0
    return NodeLimits(config.spread_n_share.shared_ways, gbps / domains if gbps and domains else None)
