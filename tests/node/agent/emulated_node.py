"""A node for tests of the agent: real processes as jobs, emulated resctrl and clock, a controller in memory.

What a test replaces is a port of the agent; all else is what `sns agent` has. A job is a process that is titled as a
slurmstepd of root is, and its child. The processes of the machine are links to those of /proc in a folder.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from resctrl_emulator.agent import emulated

from slurm_sns.node.agent.agent import Agent
from slurm_sns.node.agent.ports import AgentPorts, AgentSettings
from slurm_sns.node.agent.spool import Spool, SpoolFiles
from slurm_sns.node.agent.state_file import StateFile
from slurm_sns.node.agent.tasks_of_job import Processes, SlurmTasks, Tasks
from slurm_sns.node.agent.tree import CoresByCache, NodeLimits, NodeTree
from slurm_sns.node.counters.node_counters import NodeCounters
from slurm_sns.node.group_writes import group_of, masks
from slurm_sns.node.resctrl.groups import Files, Groups
from slurm_sns.node.resctrl.machine import discover
from slurm_sns.wire import grants
from slurm_sns.wire.keys import Keys
from slurm_sns.wire.values import (
    Acknowledged,
    ActiveRuns,
    Change,
    Grant,
    JobThere,
    NodeState,
    RunId,
    RunReport,
)

NODE = "c1"
KEYS = Keys.parse(f"first {'ab' * 32}\n")
SHARED_WAYS = 2


class EmulatedClock:
    """The clock of the emulator, which passes when it is told to; Unix seconds are 1000 at its start."""

    def __init__(self, root: Path) -> None:
        self._file = root / ".emulator" / "clock"

    def steady(self) -> float:
        return float(self._file.read_text())

    def now(self) -> float:
        return 1000.0 + self.steady()

    def advance(self, seconds: float) -> None:
        self._file.write_text(f"advance {seconds}")


@dataclass
class Controller:
    """The channel's other end, in memory: it keeps what it is told, and acknowledges when a test says so."""

    is_connected: bool = True
    silent_s: float = 0.0
    states: list[NodeState] = field(default_factory=list)
    reports: list[RunReport] = field(default_factory=list)

    def tell(self, state: NodeState) -> None:
        self.states.append(state)

    def report(self, report: RunReport) -> bool:
        if self.is_connected:
            self.reports.append(report)
        return self.is_connected


class Jobs:
    """The processes of jobs. `folder` has a link for each of them, and for what a test shows besides."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._steps: dict[int, list[tuple[subprocess.Popen[bytes], int]]] = {}
        self._tasks: dict[int, int] = {}

    def start(self, job_id: int) -> int:
        """The job's slurmstepd and its task begin; the result is the task's process id."""
        self._tasks[job_id] = self.another_step(job_id, "batch")
        return self._tasks[job_id]

    def another_step(self, job_id: int, name: str = "0") -> int:
        """A slurmstepd and its task begin; the result is the task's process id."""
        step = subprocess.Popen(
            [f"slurmstepd: [{job_id}.{name}]", "-c", "sleep 600 & echo $!; wait"],
            executable="/bin/bash",
            stdout=subprocess.PIPE,
        )
        assert step.stdout is not None
        task = int(step.stdout.readline())
        self._steps.setdefault(job_id, []).append((step, task))
        for process in (step.pid, task):
            self.show(process)
        return task

    def task(self, job_id: int) -> int:
        return self._tasks[job_id]

    def there(self) -> tuple[int, ...]:
        return tuple(sorted(self._steps))

    def end(self, job_id: int) -> None:
        del self._tasks[job_id]
        for step, task in self._steps.pop(job_id):
            with suppress(ProcessLookupError):
                os.kill(task, signal.SIGKILL)
            step.kill()
            step.communicate()
            for process in (step.pid, task):
                (self.folder / str(process)).unlink(missing_ok=True)

    def end_all(self) -> None:
        for job_id in self.there():
            self.end(job_id)

    def show(self, process_id: int) -> None:
        link = self.folder / str(process_id)
        link.unlink(missing_ok=True)
        link.symlink_to(f"/proc/{process_id}")


class TasksWithCpus(SlurmTasks):
    """Finds tasks as without cgroups; `cpus` are those of jobs that have some of their own."""

    def __init__(self, processes: Processes, log: Callable[[str], None], cpus: Mapping[int, tuple[int, ...]]) -> None:
        super().__init__(None, processes, log)
        self._cpus = cpus

    def of(self, jobs: Iterable[int]) -> Mapping[int, Tasks]:
        return {job_id: found._replace(cpus=self._cpus.get(job_id, ())) for job_id, found in super().of(jobs).items()}


class Node:
    """The node. `agent` is the one that runs now; another one takes its place with `restart`."""

    def __init__(
        self,
        root: Path,
        jobs: Jobs,
        state: Path,
        *,
        files: Files | None = None,
        spool_files: SpoolFiles | None = None,
        **settings: object,
    ) -> None:
        self.root, self.jobs, self.state = root, jobs, state
        self.clock, self.controller, self.boot = EmulatedClock(root), Controller(), "first boot"
        self.said: list[str] = []
        self.settings = AgentSettings(
            NODE, "0", **{"monitor_s": 10.0, "vanished_after_s": 60.0, "confine_system": False, **settings}
        )
        self.files, self.spool_files = files, spool_files
        #: The CPUs of jobs, and on which caches they are: by default nothing limits jobs, and no cache is known.
        self.cpus: dict[int, tuple[int, ...]] = {}
        self.cores: CoresByCache = lambda *_: {}
        self.missing: Callable[[], Sequence[str]] = list
        self.agent: Agent
        self.restart()

    def restart(self) -> Agent:
        """Another agent begins, after whatever became of the one before."""
        hardware = emulated(self.root, self.jobs.folder, None)
        processes = Processes(self.jobs.folder)
        self.state.mkdir(exist_ok=True)
        self.agent = Agent(
            self.settings,
            AgentPorts(
                clock=self.clock,
                boot=self.boot,
                tree=NodeTree(
                    self.root,
                    lambda _: NodeLimits(SHARED_WAYS),
                    missing=self.missing,
                    log=self.said.append,
                    observes=self.settings.observes,
                    files=self.files,
                ),
                tasks=TasksWithCpus(processes, self.said.append, self.cpus),
                slurmstepds=lambda: processes.slurmstepds().values(),
                cores=self.cores,
                counters=lambda: NodeCounters(
                    hardware.perf, self.root, hardware.devices, lambda _: None, clock=self.clock.steady
                ),
                cgroups=None,
                state=StateFile(self.state, self.said.append),
                spool=Spool(self.state / "spool", self.said.append, self.spool_files),
                verify=lambda token, run, nodes: grants.verified(token, KEYS, run, NODE, nodes),
                log=self.said.append,
            ),
        )
        self.agent.connect(self.controller)
        self.agent.start()
        self.agent.step()
        return self.agent

    def prolog(self, job_id: int, ways: int = 0, restarts: int = 0, **granted: object) -> None:
        """The prolog of a run with this grant, which its agent has dealt with then."""
        grant = Grant(RunId(job_id, restarts), (NODE,), ways, **granted)
        self.event("prolog", job_id, restarts, f"sns:grant={grants.token(grant, KEYS)}")

    def plain_prolog(self, job_id: int) -> None:
        """The prolog of a job that is not ours."""
        self.event("prolog", job_id)

    def epilog(self, job_id: int, restarts: int = 0) -> None:
        self.event("epilog", job_id, restarts)

    def event(self, kind: str, job_id: int, restarts: int = 0, extra: str = "", nodes: str = NODE) -> None:
        """What hook.py would send, dealt with at once: the agent's thread is this one."""
        request = {"v": 1, "event": kind, "job": str(job_id), "restarts": str(restarts), "nodes": nodes, "extra": extra}
        self.agent.inbox.take(request)
        self.agent.step()

    def run(self, job_id: int, ways: int = 0, **granted: object) -> int:
        """A job with this grant begins: its prolog, then its processes, which the agent sees at once."""
        self.prolog(job_id, ways, **granted)
        task = self.jobs.start(job_id)
        self.passes(1.0)
        return task

    def ends(self, job_id: int) -> None:
        """A job ends: its processes, then its epilog."""
        self.jobs.end(job_id)
        self.epilog(job_id)

    def program(self, job_id: int, name: str, processes: int = 16, scale: int = 1, work_s: float | None = None) -> None:
        """The job's task is this emulated program from now on."""
        cores = -(-processes // scale)
        wish = {
            "start": name,
            "processes": processes,
            "scale": scale,
            "tasks": [self.jobs.task(job_id)],
            "cores": {"0": cores - cores // 2, "1": cores // 2},
        }
        wish |= {} if work_s is None else {"work_s": work_s}
        (self.root / ".emulator/programs").write_text(json.dumps(wish))

    def passes(self, seconds: float, step_s: float = 1.0) -> None:
        """Time passes, in steps after each of which the agent does what is due."""
        left_s = seconds
        while left_s > 1e-9:
            self.clock.advance(min(step_s, left_s))
            left_s -= step_s
            self.agent.step()

    def told(self, *messages: ActiveRuns | Change | Acknowledged) -> None:
        """The controller says this."""
        for message in messages:
            self.agent.inbox.receive(message)
        self.agent.step()

    def masks(self) -> Mapping[str, Mapping[int, int]]:
        """The ways in force by group and domain."""
        machine, groups = discover(self.root), Groups(self.root)
        return {name: masks(machine, groups.read(name)) for name in groups.names()}

    def ways(self, job_id: int) -> int:
        """The ways of the job's group in domain 0; 0 without a group."""
        return self.masks().get(group_of(job_id), {}).get(0, 0).bit_count()

    def group_with(self, process: int) -> str:
        """The group that a process is in; '' for the root group."""
        groups = Groups(self.root)
        return next((name for name in groups.names() if process in groups.tasks(name)), "")

    def there(self) -> Mapping[int, JobThere]:
        """What the agent says of each job."""
        return {each.run.job_id: each for each in self.agent.state().jobs}

    def spooled(self) -> list[str]:
        """The names of the reports on the disk."""
        return sorted(path.name for path in (self.state / "spool").glob("*.report"))
