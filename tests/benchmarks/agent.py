"""What a node's agent costs: its processor time as a part of one core, with 16 jobs that have ways and are measured.

    PYTHONPATH=tests python tests/benchmarks/agent.py [--jobs 16] [--tasks 8] [--minutes 5] [--processes 400]

Prints JSON. The agent is the one of `sns agent`, with its settings as they are shipped; the tree is plain files in
memory (as in resctrl.py), the jobs are real processes, their events are counted in software. The agent's clock is set
forward a second at a time, so that a minute of its work takes as long as the work alone.

| part | what is measured |
|---|---|
| `in_cgroups` | the threads of jobs are found in (plain files of) cgroup v2, as Slurm makes them |
| `sharing` | the same jobs share cores: their cgroups are weighed and limited |
| `by_slurmstepd` | there are no cgroups: the threads are found among all processes of the machine |
| `sampled` | one job alone is sampled at 2, 4, 8 and all ways, 5 s each |

For each: `of_a_core_percent` over all minutes, the most of one minute, the least; wanted is less than 0.5. `prolog_ms`
and `epilog_ms` are the processor time of one of each with all jobs there (median). `processes` are those that the agent
sees in /proc, with at least `--processes` of them. The connection to the controller is not in it (agent_channel.py).
"""

import argparse
import errno
import gc
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from resctrl import IN_MEMORY, CopiedTree, SoftwarePerf
from resctrl_emulator.machines import XEON

from slurm_sns.closids import KEPT
from slurm_sns.node.agent.agent import Agent
from slurm_sns.node.agent.ports import AgentPorts, AgentSettings
from slurm_sns.node.agent.spool import Spool
from slurm_sns.node.agent.state_file import StateFile
from slurm_sns.node.agent.tasks_of_job import Processes, SlurmTasks
from slurm_sns.node.agent.tree import NodeLimits, NodeTree
from slurm_sns.node.cgroups import Cgroups
from slurm_sns.node.counters.node_counters import NodeCounters
from slurm_sns.node.resctrl.groups import Files
from slurm_sns.wire import grants
from slurm_sns.wire.keys import Keys
from slurm_sns.wire.values import Change, Grant, NodeState, RunId, RunReport

NODE = "n1"
KEYS = Keys.parse(f"first {'ab' * 32}\n")
WAYS, GBPS = 1, 4
#: The first job; other jobs on this machine, which may be in containers, are not ours.
FIRST = 4_000_001
#: Minutes before the measurement: the first tasks of the jobs are looked for every second.
WARM_UP = 1


class LiveTree(CopiedTree):
    """Plain files that answer at once as resctrl does; `excluded_s` is the time that this took, which is not ours."""

    excluded_s = 0.0

    def read(self, path: Path) -> str:
        return Files.read(self, path)

    def write(self, path: Path, text: str) -> None:
        super().write(path, text)
        self._answer()

    def make_directory(self, path: Path) -> None:
        if path.exists():
            raise FileExistsError(errno.EEXIST, "exists", str(path))
        super().make_directory(path)
        self._answer()

    def remove_directory(self, path: Path) -> None:
        super().remove_directory(path)
        self._answer()

    def _answer(self) -> None:
        began_s = time.thread_time()
        self.settle()
        self.excluded_s += time.thread_time() - began_s


class Clock:
    """The agent's clock."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def now(self) -> float:
        return self.now_s + 1.7e9

    def steady(self) -> float:
        return self.now_s


class Controller:
    """A channel that forgets what it is told."""

    is_connected = True
    silent_s = 0.0

    def tell(self, state: NodeState) -> None:
        pass

    def report(self, report: RunReport) -> bool:
        del report
        return True


class Jobs:
    """Real processes: a slurmstepd by its title for each job, and its tasks; and some that are nobody's."""

    def __init__(self, jobs: int, tasks: int, processes: int) -> None:
        self._started: list[subprocess.Popen[bytes]] = []
        self.of: dict[int, list[int]] = {}
        for job in range(FIRST, FIRST + jobs):
            self.of[job] = self._start(f"slurmstepd: [{job}.batch]", tasks)
        there = sum(name.isdigit() for name in os.listdir("/proc"))  # noqa: PTH208 -- a count
        self._start("idle", max(0, processes - there - 1))

    def _start(self, title: str, tasks: int) -> list[int]:
        script = f"for i in $(seq {tasks}); do sleep 3600 & done; echo $(jobs -p); wait"
        pipe = subprocess.PIPE
        started = subprocess.Popen([title, "-c", script], executable="/bin/bash", stdout=pipe, start_new_session=True)
        self._started.append(started)
        assert started.stdout is not None
        return [started.pid, *map(int, started.stdout.readline().split())]

    def end(self) -> None:
        for process in self._started:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def make_cgroups(root: Path, jobs: dict[int, list[int]]) -> None:
    """cgroup v2 as Slurm lays it out, in plain files."""
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpu cpuset memory\n")
    for job, threads in jobs.items():
        at = root / "system.slice" / f"{NODE}_slurmstepd.scope" / f"job_{job}"
        parts = {"step_batch/slurm": threads[:1], "step_batch/user/task_0": threads[1:], "step_extern/slurm": []}
        for name, inside in parts.items():
            (at / name).mkdir(parents=True)
            for directory in (at / name, *(at / name).parents):
                if directory != root and root in directory.parents and not (directory / "cgroup.threads").exists():
                    (directory / "cgroup.threads").write_text("")
            (at / name / "cgroup.threads").write_text("".join(f"{thread}\n" for thread in inside))
            (at / name / "cgroup.procs").write_text("".join(f"{thread}\n" for thread in inside))
        files = {
            "cpuset.cpus.effective": f"0-{(os.cpu_count() or 1) - 1}",
            "cpu.weight": "100",
            "cpu.max": "max 100000",
        }
        for name, text in files.items():
            (at / name).write_text(f"{text}\n")


class Bench:
    """An agent and the processor time that it takes."""

    def __init__(self, tree: LiveTree, state: Path, cgroups: Path | None, *, shares: bool) -> None:
        self.clock, self.tree, said = Clock(), tree, list[str]()
        self.processes = Processes(trusted=os.geteuid())
        state.mkdir()
        # Plain files are no cgroups to perf: the threads are counted, which costs more.
        found = None if cgroups is None else Cgroups(cgroups, NODE)
        self.agent = Agent(
            AgentSettings(NODE, confine_system=False),
            AgentPorts(
                clock=self.clock,
                boot="boot",
                tree=NodeTree(
                    tree.root,
                    lambda _: NodeLimits(2, XEON.peak_gbps),
                    missing=list,
                    log=said.append,
                    files=tree,
                ),
                tasks=SlurmTasks(found, self.processes, said.append),
                slurmstepds=lambda: [job for job in self.processes.slurmstepds().values() if job >= FIRST],
                cores=lambda *_: {},
                counters=lambda: NodeCounters(
                    SoftwarePerf(), tree.root, Path("/nowhere"), said.append, clock=self.clock.steady
                ),
                cgroups=found if shares else None,
                state=StateFile(state, said.append),
                spool=Spool(state / "spool", said.append),
                verify=lambda token, run, nodes: grants.verified(token, KEYS, run, NODE, nodes),
                log=said.append,
            ),
        )
        self.said = said
        self.agent.connect(Controller())
        self.agent.start()

    def event(self, kind: str, job: int, **granted: Any) -> float:
        """Milliseconds of processor time."""
        token = grants.token(Grant(RunId(job), (NODE,), **granted), KEYS)
        asked = {"event": kind, "job": str(job), "nodes": NODE, "extra": f"sns:grant={token}"}
        return 1000 * self._measured(lambda: (self.agent.inbox.take(asked), self.agent.step()))

    def minute(self) -> float:
        """Seconds of processor time."""
        return sum(self._measured(self.agent.step) for _ in self._seconds())

    def _seconds(self) -> Iterator[int]:
        for second in range(60):
            self.clock.now_s += 1
            yield second

    def _measured(self, does: Callable[[], object]) -> float:
        began_s, excluded_s = time.thread_time(), self.tree.excluded_s
        does()
        return time.thread_time() - began_s - (self.tree.excluded_s - excluded_s)


def events(bench: Bench, job: int) -> dict[str, float]:
    """Milliseconds of a prolog and of an epilog, while the other jobs are there."""
    prologs, epilogs = [], []
    for _ in range(20):
        prologs.append(bench.event("prolog", job, ways=WAYS))
        epilogs.append(bench.event("epilog", job))
    return {"prolog_ms": round(statistics.median(prologs), 2), "epilog_ms": round(statistics.median(epilogs), 2)}


def percents(minutes: list[float]) -> dict[str, float]:
    """Parts of a core."""
    figures = {"of_a_core_percent": statistics.mean(minutes), "most": max(minutes), "least": min(minutes)}
    return {name: round(100 * seconds / 60, 4) for name, seconds in figures.items()}


@contextmanager
def trees(jobs: int) -> Iterator[Callable[[], tuple[LiveTree, Path]]]:
    """Trees with as many CLOSIDs as the jobs need, and a place beside each."""
    closids = jobs + KEPT + 1
    caches = tuple(replace(cache, closids=closids) for cache in XEON.caches)
    machine = replace(XEON, caches=caches, bandwidth=replace(XEON.bandwidth, closids=closids))
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as directory:
        made: list[Path] = []

        def make() -> tuple[LiveTree, Path]:
            made.append(Path(directory) / str(len(made)))
            made[-1].mkdir()
            return LiveTree(machine, made[-1]), made[-1]

        yield make


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--tasks", type=int, default=8, help="processes of each job")
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--processes", type=int, default=400, help="at least so many on the machine")
    given = parser.parse_args()
    result: dict[str, Any] = {"jobs": given.jobs, "tasks_of_a_job": given.tasks}
    gc.collect()
    with trees(given.jobs) as make:
        for part in ("in_cgroups", "sharing", "by_slurmstepd", "sampled"):
            tree, beside = make()
            cgroups = beside / "cgroup" if part in ("in_cgroups", "sharing") else None
            bench = Bench(tree, beside / "state", cgroups, shares=part == "sharing")
            jobs = given.jobs if part != "sampled" else 1
            for job in range(FIRST, FIRST + jobs):
                granted = {"ways": WAYS, "bandwidth_gbps": GBPS} if part != "sampled" else {"samples": True}
                bench.event("prolog", job, **granted)
                if part == "sharing":
                    bench.agent.inbox.receive(Change(RunId(job), 1, WAYS, GBPS, cpu_share=0.5, cpus=given.tasks))
            running = Jobs(jobs, given.tasks, given.processes)
            result["processes"] = sum(name.isdigit() for name in os.listdir("/proc"))  # noqa: PTH208 -- a count
            try:
                if cgroups is not None:
                    make_cgroups(cgroups, running.of)
                for _ in range(WARM_UP):
                    bench.minute()
                result[part] = percents([bench.minute() for _ in range(given.minutes)])
                if part == "in_cgroups":
                    result |= events(bench, FIRST + given.jobs)
                assert not [line for line in bench.said if "defect" in line], bench.said
                shown = bench.agent.shown()["jobs"]
                assert all(job["ways"] and job["threads"] and bool(job["cpus"]) == (part == "sharing") for job in shown)
                bench.agent.stop()
            finally:
                running.end()
    result["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
