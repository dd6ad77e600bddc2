"""A node in plain files, for many short stories: a tree that answers as resctrl does, jobs that are numbers, a clock.

It is killed before a change of the tree by an exception that nothing of the agent catches.
"""

import errno
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgroup_trees import KernelFiles
from emulated_node import KEYS, NODE, SHARED_WAYS, Controller
from resctrl_trees import Killed, Tree, intel

from slurm_sns.node.agent.agent import Agent
from slurm_sns.node.agent.ports import AgentPorts, AgentSettings
from slurm_sns.node.agent.spool import Spool
from slurm_sns.node.agent.state_file import StateFile
from slurm_sns.node.agent.tasks_of_job import Tasks
from slurm_sns.node.agent.tree import NodeLimits, NodeTree
from slurm_sns.node.cgroups import Cgroups
from slurm_sns.node.counters.node_counters import NodeCounters
from slurm_sns.node.counters.perf_event import PerfError
from slurm_sns.node.counters.readings import Count
from slurm_sns.node.group_writes import job_of, masks
from slurm_sns.node.resctrl.groups import Groups
from slurm_sns.node.resctrl.machine import discover
from slurm_sns.wire import grants
from slurm_sns.wire.values import ActiveRuns, Change, Grant, RunId, RunReport


class NoPerf:
    """A virtual machine's: it counts nothing."""

    def open(self, *_: object, **__: object) -> int:
        raise PerfError(errno.ENOENT, "an event")

    def read(self, _: int) -> tuple[Count, ...]:
        raise AssertionError

    def close(self, _: int) -> None:
        raise AssertionError


@dataclass
class BareClock:
    now_s: float = 1000.0

    def now(self) -> float:
        return self.now_s + 1e9

    def steady(self) -> float:
        return self.now_s


class BareJobs:
    """Each job has one thread, 1000 more than its number, as long as it runs."""

    def __init__(self) -> None:
        self.running: set[int] = set()

    def of(self, jobs: Iterable[int]) -> Mapping[int, Tasks]:
        return {job: Tasks((1000 + job,) if job in self.running else ()) for job in jobs}


class BareNode:
    """The node. Every method that lets the agent work is cut short when the agent is killed in it."""

    def __init__(self, directory: Path, closids: int = 6, cgroups: Path | None = None, **settings: object) -> None:
        self.tree = Tree(intel(directory / "tree"), closids, self._before)
        self.state, self.clock, self.jobs = directory / "state", BareClock(), BareJobs()
        self.state.mkdir()
        self._settings: Mapping[str, Any] = settings
        self.cgroups = cgroups and Cgroups(cgroups, NODE, files=KernelFiles(cgroups, self._before_kill))
        self.controller, self.said = Controller(), list[str]()
        self._killed_in: int | None = None
        self._refused_in: int | None = None
        self.is_up = False
        self.work(self._start)

    def kill_in(self, changes: int) -> None:
        """The agent is killed before the change of the tree or of a cgroup after so many others."""
        self._killed_in = changes

    def refuse_in(self, changes: int) -> None:
        """The kernel refuses the change of the tree after so many others."""
        self._refused_in = changes

    def work(self, step: Callable[[], object]) -> None:
        """What the agent does, or did until it was killed; one that is not there is started first."""
        try:
            if not self.is_up and step != self._start:
                self._start()
            step()
        except Killed:
            self.is_up = False
        self._killed_in = None

    def restart(self) -> None:
        self.work(self._start)

    def event(self, kind: str, run: RunId, ways: int = 0) -> None:
        """The hook: an agent that is away, or is killed meanwhile, has not heard of it."""
        extra = ""
        if kind == "prolog":
            extra = f"sns:grant={grants.token(Grant(run, (NODE,), ways), KEYS)}"
        request: dict[str, Any] = {"event": kind, "job": run.job_id, "restarts": run.restarts}

        def deal() -> None:
            self.agent.inbox.take({**request, "nodes": NODE, "extra": extra})
            self.agent.step()

        self.work(deal)

    def told(self, *messages: ActiveRuns | Change) -> None:
        """The controller says this; an agent that is away has not heard of it."""

        def deal() -> None:
            for message in messages:
                self.agent.inbox.receive(message)
            self.agent.step()

        self.work(deal)

    def passes(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock.now_s += 1
            self.work(self.agent.step)

    def groups(self) -> set[str]:
        return {path.name.removeprefix("sns_") for path in self.tree.groups()}

    def overlaps(self) -> list[tuple[str, str]]:
        """Groups of ours whose ways are not their own in the first domain."""
        machine, tree = discover(self.tree.root), Groups(self.tree.root)
        shown = {name: masks(machine, tree.read(name))[0] for name in tree.names() if job_of(name) is not None}
        return [(a, b) for a in shown for b in shown if a < b and shown[a] & shown[b]]

    def reports(self) -> Sequence[RunReport]:
        return self.controller.reports

    def there(self) -> Collection[RunId]:
        return {each.run for each in self.agent.state().jobs}

    def _start(self) -> None:
        self.agent = Agent(
            AgentSettings(NODE, monitor_s=10.0, vanished_after_s=60.0, confine_system=False, **self._settings),
            AgentPorts(
                clock=self.clock,
                boot="boot",
                tree=NodeTree(
                    self.tree.root,
                    lambda _: NodeLimits(SHARED_WAYS),
                    missing=list,
                    log=self.said.append,
                    files=self.tree,
                ),
                tasks=self.jobs,
                slurmstepds=lambda: self.jobs.running,
                cores=lambda *_: {},
                counters=lambda: NodeCounters(
                    NoPerf(), self.tree.root, Path("/nowhere"), lambda _: None, clock=self.clock.steady
                ),
                cgroups=self.cgroups,
                state=StateFile(self.state, self.said.append),
                spool=Spool(self.state / "spool", self.said.append),
                verify=lambda token, run, nodes: grants.verified(token, KEYS, run, NODE, nodes),
                log=self.said.append,
            ),
        )
        self.agent.connect(self.controller)
        self.agent.start()
        self.is_up = True

    def _before_kill(self) -> None:
        if self._killed_in is not None:
            self._killed_in -= 1
            if self._killed_in < 0:
                raise Killed

    def _before(self, _number: int) -> None:
        self._before_kill()
        if self._refused_in is not None:
            self._refused_in -= 1
            if self._refused_in < 0:
                self._refused_in = None
                raise OSError(errno.EBUSY, "busy")
