"""What the agent uses of its node, its controller and its configuration. Tests pass fakes."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from slurm_sns.node.agent.spool import Spool
from slurm_sns.node.agent.state_file import StateFile
from slurm_sns.node.agent.tasks_of_job import SlurmTasks
from slurm_sns.node.agent.tree import CoresByCache, NodeTree
from slurm_sns.node.cgroups import Cgroups
from slurm_sns.node.counters.node_counters import NodeCounters
from slurm_sns.wire.values import Grant, NodeState, RunId, RunReport


class BootClock:
    """The time by this node. CLOCK_BOOTTIME goes on whatever becomes of the agent."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def steady(self) -> float:
        """Seconds since the boot, which no change of the system time affects; suspended time counts."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    """What the kernel calls this boot; without its file each start of an agent counts as one."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return f"unknown-{time.time_ns()}"


class Channel(Protocol):
    """The connection to the controller. No call waits."""

    def tell(self, state: NodeState) -> None:
        """Send this state; it replaces one that is not sent yet, and is repeated now and then."""

    def report(self, report: RunReport) -> bool:
        """Send the report until it is acknowledged; False if too many wait already."""

    @property
    def is_connected(self) -> bool:
        """Whether the controller can be reached now."""

    @property
    def silent_s(self) -> float:
        """For how many seconds nothing has been heard of the controller; infinite if nothing ever was."""


@dataclass(frozen=True)
class AgentSettings:
    """What the agent is to do; seconds, and the paper's numbers of ways."""

    node: str
    software: str = ""
    sample_s: float = 5.0
    sample_ways: tuple[int, ...] = (2, 4, 8)
    monitor_s: float = 10.0
    vanished_after_s: float = 60.0
    confine_system: bool = True
    observes: bool = False


@dataclass(frozen=True)
class AgentPorts:
    """What the agent uses.

    `slurmstepds` are the ids of the jobs that have one here. `verify` gives the grant of a token for a run whose nodes
    are these, or raises SnsError. `boot` names the node's present boot. Without `cgroups` no job's CPU time
    is weighed or limited.
    """

    clock: BootClock
    boot: str
    tree: NodeTree
    tasks: SlurmTasks
    slurmstepds: Callable[[], Collection[int]]
    cores: CoresByCache
    counters: Callable[[], NodeCounters]
    cgroups: Cgroups | None
    state: StateFile
    spool: Spool
    verify: Callable[[str, RunId, Sequence[str]], Grant]
    log: Callable[[str], None]
