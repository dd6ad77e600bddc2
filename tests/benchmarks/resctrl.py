"""What resctrl costs a node: laying its jobs out and writing their groups, and sampling the jobs' counters.

    PYTHONPATH=tests python tests/benchmarks/resctrl.py [--jobs 16] [--threads 2] [--repeat 200]

Prints JSON. The machine is the emulator's Xeon (two cache domains) with as many CLOSIDs as the jobs need. Its tree is
plain files in memory, so the times are ours and not the kernel's. One system call makes or removes a group, as there.

| part | what is measured |
|---|---|
| `new` | all jobs arrive on an empty node: layouts of both domains, groups, masks and bandwidth |
| `unchanged` | all is in force: the tree is read, nothing is written |
| `departure` | the last job ends; the others get its ways |
| `arrival` | it comes back; the others give spare ways back |
| `sample` | one reading of all jobs, and the rates since the one before |

For each part: milliseconds of processor time (least, median, p99), median milliseconds by the clock, the number of
accesses to files, and as `ratio` the median divided by that of the same accesses alone, made in turn with it. On a
machine that does other work the least time says most. `of_a_core_percent` is a sample's part of a core, once a second.

A sample reads the monitoring files of each job in both domains and two perf events of each of its threads: events that
every kernel counts in software, and which are read as instructions and cycles are. Where the kernel counts none,
`perf_events` is 0.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from resctrl_emulator.files import write_copy
from resctrl_emulator.machines import XEON, MachineType
from resctrl_emulator.rules import Tree

from slurm_sns.closids import KEPT
from slurm_sns.node.apply import apply, shapes
from slurm_sns.node.counters.node_counters import NodeCounters
from slurm_sns.node.counters.perf_event import CYCLES, INSTRUCTIONS, Event, KernelPerf
from slurm_sns.node.counters.readings import rates
from slurm_sns.node.group_writes import BandwidthNeeds, Draw
from slurm_sns.node.resctrl.groups import Files, Groups
from slurm_sns.node.resctrl.machine import discover
from slurm_sns.node.resctrl.schemata import Schemata, lines, parse
from slurm_sns.node.ways.layout import DomainLayouts, Need, domain_layouts

#: What each job owns: 16 jobs and the shared ways leave two of the Xeon's 20 ways.
WAYS, GBPS, SHARED_WAYS = 1, 4.0, 2
PEAK_GBPS = XEON.peak_gbps
#: What is counted instead of instructions and cycles. PERF_TYPE_SOFTWARE: page faults and context switches.
IN_SOFTWARE = {INSTRUCTIONS: Event(1, 2), CYCLES: Event(1, 3)}
#: Linux has a file system in memory here.
IN_MEMORY = Path("/dev/shm")
#: The first runs of each part are not measured.
WARM_UP = 3


class CopiedTree(Files):
    """A tree of plain files; what the kernel does beside an access is done by `settle`, which is not measured.

    A group is made and removed by renaming a directory. `again` repeats the accesses since the last `settle` elsewhere.
    """

    def __init__(self, machine: MachineType, directory: Path) -> None:
        self.root, self._aside, self._number = directory / "resctrl", directory / "aside", count()
        self._aside.mkdir()
        write_copy(Tree(machine), self.root)
        self._all = (self.root / "schemata").read_text()
        self._shown: dict[Path, Schemata] = {}
        self._threads: dict[Path, dict[str, None]] = {}
        self._accesses: list[tuple[str, Path, str]] = []
        self._removed: list[Path] = []
        self._spare = [self._made() for _ in range(machine.caches[0].closids)]
        self._scratch = str(self._made())

    def read(self, path: Path) -> str:
        self._accesses.append(("read", path, ""))
        return super().read(path)

    def write(self, path: Path, text: str) -> None:
        self._accesses.append(("write", path, text))
        super().write(path, text)

    def make_directory(self, path: Path) -> None:
        self._accesses.append(("make", path, ""))
        self._spare.pop().rename(path)

    def remove_directory(self, path: Path) -> None:
        self._accesses.append(("remove", path, ""))
        self._removed.append(path.rename(self._aside / str(next(self._number))))

    def again(self) -> int:
        """The accesses alone, on other files of the same kinds; the result is their number."""
        for kind, path, text in self._accesses:
            if kind == "read":
                opened = os.open(self.root / path.name, os.O_RDONLY | os.O_CLOEXEC)
                os.read(opened, 4096)
                os.close(opened)
            elif kind == "write":
                opened = os.open(f"{self._scratch}/schemata", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
                os.write(opened, text.encode())
                os.close(opened)
            else:
                before, self._scratch = self._scratch, str(self._aside / str(next(self._number)))
                os.rename(before, self._scratch)  # noqa: PTH104 -- the system call alone
        return len(self._accesses)

    def settle(self) -> None:
        """A write has changed the domains that it names; a new group has everything."""
        for kind, path, text in self._accesses:
            if kind == "write" and path.name == "tasks":
                self._threads.setdefault(path, {})[text.strip()] = None
                path.write_text("".join(f"{thread}\n" for thread in self._threads[path]))
            elif kind == "write":
                shown = self._shown.setdefault(path, parse(self._all))
                for name, values in parse(text).items():
                    shown[name] |= values
                path.write_text(lines(shown))
            elif kind == "remove":
                self._shown.pop(path / "schemata", None)
                self._threads.pop(path / "tasks", None)
        for path in self._removed:
            (path / "schemata").write_text(self._all)
            (path / "tasks").write_text("")
        self._spare += self._removed
        self._accesses.clear()
        self._removed.clear()

    def _made(self) -> Path:
        """A group's directory."""
        path = self._aside / str(next(self._number))
        shutil.copytree(self.root / "mon_data", path / "mon_data")
        for name, text in {"schemata": self._all, "mode": "shareable\n", "tasks": ""}.items():
            (path / name).write_text(text)
        return path


class Node:
    """A node whose jobs have the cores of both domains, as many in each."""

    def __init__(self, tree: CopiedTree) -> None:
        self.tree, self.groups, self.machine = tree, Groups(tree.root, files=tree), discover(tree.root)
        self._planned = DomainLayouts({}, {})
        self._cores = dict.fromkeys(self.machine.last_level[0].domains, 1)

    def run(self, jobs: int) -> None:
        """The jobs 1, 2, ... run there now: lay them out, and put that into force."""
        needs = [Need(job, WAYS, job, tuple(self._cores)) for job in range(1, jobs + 1)]
        draws = {each.job_id: Draw(GBPS, self._cores) for each in needs}
        found = shapes(self.machine, self.groups)
        self._planned = domain_layouts(self._planned.guaranteed(), needs, SHARED_WAYS, found)
        apply(self.groups, self.machine, self._planned.layouts, BandwidthNeeds(draws, PEAK_GBPS))


class Times:
    """Processor and clock times of a part, and the processor times of its accesses alone."""

    def __init__(self) -> None:
        self._own, self._clock, self._alone, self._accesses = list[float](), list[float](), list[float](), 0

    def measure(self, run: Callable[[], object], again: Callable[[], int]) -> None:
        began, own_began = time.perf_counter(), time.process_time()
        run()
        self._own.append(time.process_time() - own_began)
        self._clock.append(time.perf_counter() - began)
        own_began = time.process_time()
        self._accesses = again()
        self._alone.append(time.process_time() - own_began)

    def figures(self) -> dict[str, float]:
        own = np.array(self._own[WARM_UP:]) * 1000
        return {
            "cpu_least_ms": round(float(own.min()), 3),
            "cpu_median_ms": round(float(np.median(own)), 3),
            "cpu_p99_ms": round(float(np.percentile(own, 99)), 3),
            "median_ms": round(float(np.median(self._clock[WARM_UP:])) * 1000, 3),
            "accesses": self._accesses,
            "ratio": round(float(np.median(own) / np.median(self._alone[WARM_UP:]) / 1000), 1),
        }


def applying(node: Node, jobs: int, repeat: int) -> dict[str, Any]:
    """All parts but the sample, in turn. The jobs stay."""
    parts = {"new": jobs, "unchanged": jobs, "departure": jobs - 1, "arrival": jobs}
    times = {name: Times() for name in parts}
    for _ in range(repeat + WARM_UP):
        node.groups.remove_all()
        node.tree.settle()
        for name, present in parts.items():
            times[name].measure(lambda present=present: node.run(present), node.tree.again)
            node.tree.settle()
    assert len(node.groups.names()) == jobs + 1
    return {name: each.figures() for name, each in times.items()}


class SoftwarePerf(KernelPerf):
    """The kernel's perf events, counted in software; `opened` are their file descriptors."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[int] = []

    def open(self, event: Event, of: int, cpu: int, leader: int = -1, *, is_cgroup: bool = False) -> int:
        self.opened.append(super().open(IN_SOFTWARE[event], of, cpu, leader, is_cgroup=is_cgroup))
        return self.opened[-1]

    def close(self, opened: int) -> None:
        self.opened.remove(opened)
        super().close(opened)


@contextmanager
def waiting_threads(number: int) -> Iterator[list[int]]:
    """The ids of threads that wait until the end."""
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield [thread.native_id or 0 for thread in threads]
    finally:
        end.set()
        for thread in threads:
            thread.join()


def sampling(root: Path, jobs: int, threads: int, repeat: int) -> dict[str, Any]:
    """Samples of the jobs that are there."""
    perf, said = SoftwarePerf(), list[str]()
    counters = NodeCounters(perf, root, Path("/nowhere"), said.append)
    directories = sorted(root.glob("sns_job*"))
    files = [
        os.open(path, os.O_RDONLY)
        for directory in directories
        for name in ("mbm_total_bytes", "llc_occupancy")
        for path in directory.glob(f"mon_data/*/{name}")
    ]
    times = Times()
    with waiting_threads(threads * jobs) as ids:
        counted = [
            counters.job(threads=ids[at * threads : (at + 1) * threads], group=directory)
            for at, directory in enumerate(directories)
        ]
        before = [job.read() for job in counted]

        def sample() -> None:
            for at, job in enumerate(counted):
                after = job.read()
                rates(before[at], after)
                before[at] = after

        def again() -> int:
            for file in files:
                os.pread(file, 64, 0)
            for event in perf.opened:
                os.read(event, 1024)
            return len(files) + len(perf.opened)

        for _ in range(repeat + WARM_UP):
            times.measure(sample, again)
    found: dict[str, Any] = {**times.figures(), "perf_events": len(perf.opened)}
    return found | {"of_a_core_percent": round(found["cpu_median_ms"] / 10, 3)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=200)
    given = parser.parse_args()
    closids = given.jobs + KEPT
    caches = tuple(replace(cache, closids=closids) for cache in XEON.caches)
    machine = replace(XEON, caches=caches, bandwidth=replace(XEON.bandwidth, closids=closids))
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as directory:
        tree = CopiedTree(machine, Path(directory))
        result: dict[str, Any] = {"jobs": given.jobs, "threads_of_a_job": given.threads}
        result |= applying(Node(tree), given.jobs, given.repeat)
        result["sample"] = sampling(tree.root, given.jobs, given.threads, given.repeat)
    result["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
