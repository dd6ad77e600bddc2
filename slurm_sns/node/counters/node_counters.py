"""What this node can measure of its jobs, from the best source that it has; what it lacks is said once.

    counters = NodeCounters(KernelPerf(), Path("/sys/fs/resctrl"), DEVICES, log)
    job = counters.job(cgroup=..., cpus=..., threads=..., group=..., domains=...)
    before = job.read(); ...; rates(before, job.read())

IPC: perf events of the job's cgroup, else of its threads. Bandwidth and occupancy: the monitoring files of its resctrl
group. The memory controllers count the whole node: where resctrl monitors no bandwidth, theirs is that of a job that is
alone there. Without any source a reading is empty, and its rates are unknown.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from pathlib import Path

from slurm_sns.log import Log
from slurm_sns.node.counters import memory_controllers
from slurm_sns.node.counters.instructions import InstructionCounters
from slurm_sns.node.counters.memory_controllers import MemoryControllers
from slurm_sns.node.counters.monitoring_files import MOVED, MonitoringFiles
from slurm_sns.node.counters.perf_event import KernelPerf, PerfError
from slurm_sns.node.counters.readings import Reading

#: Where the kernel lists its PMUs.
DEVICES = Path("/sys/bus/event_source/devices")

#: A reading of what was moved that took longer is repeated: 2 ms are 1 % of the shortest interval that is of use.
QUICK_S = 0.002
#: At most so many readings, whatever they took.
MOST_READINGS = 5


class JobCounters:
    """The counters of one job, open until `close`. A node without counters gives empty readings."""

    def __init__(
        self,
        instructions: InstructionCounters | None,
        monitoring: MonitoringFiles | None,
        memory: MemoryControllers | None,
        clock: Callable[[], float],
    ) -> None:
        self._instructions = instructions
        self._monitoring = monitoring
        self._memory = memory
        self._clock = clock

    def read(self) -> Reading:
        """The counters now.

        What is divided by the time that has passed is read between two looks at the clock, and belongs to the middle of
        them. Where that took long (on a busy node this process may have to wait for a core), it is read again; the
        quickest of some readings counts. An IPC does not depend on the time.
        """
        took_s, quickest = self._read_moved()
        for _ in range(MOST_READINGS - 1):
            if took_s <= QUICK_S:
                break
            took_s, quickest = min((took_s, quickest), self._read_moved(), key=itemgetter(0))
        return quickest._replace(executed=self._instructions.read() if self._instructions else {})

    def _read_moved(self) -> tuple[float, Reading]:
        """The bytes that were moved so far, and how many seconds it took to read them."""
        begin_s = self._clock()
        traffic = self._monitoring.read() if self._monitoring else {}
        controllers = self._memory.read() if self._memory else {}
        took_s = self._clock() - begin_s
        return took_s, Reading(begin_s + took_s / 2, {}, traffic, controllers)

    def close(self) -> None:
        """Stop counting."""
        for counters in (self._instructions, self._monitoring):
            if counters is not None:
                counters.close()


class NodeCounters:
    """The sources of this node: perf events, the resctrl file system at `resctrl`, the PMUs below `devices`.

    `clock` gives seconds that are never set back.
    """

    def __init__(
        self,
        perf: KernelPerf,
        resctrl: Path,
        devices: Path,
        log: Log,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._perf = perf
        self._log = log
        self._clock = clock
        self._said: set[str] = set()
        why = why_no_instructions(perf)
        #: Whether the IPC of a job can be measured here.
        self.measures_ipc = not why
        if why:
            self._say(f"this node measures no IPC: {why}")
        self._monitors = self._monitors_bandwidth = False
        self._find_monitoring(resctrl)
        #: What the whole node moves; None if its memory controllers cannot be counted.
        self.memory, why = open_controllers(perf, devices)
        if why:
            self._say(f"the memory controllers of this node are not counted: {why}")

    def job(
        self,
        *,
        cgroup: Path | None = None,
        cpus: Iterable[int] = (),
        threads: Iterable[int] = (),
        group: Path | None = None,
        domains: Collection[int] | None = None,
        is_alone: bool = False,
    ) -> JobCounters:
        """Begin to count a job. It never fails: what cannot be counted is missing from the readings.

        Args:
            cgroup: the job's directory in cgroup v2; None on a node with cgroup v1.
            cpus: the CPUs that the job may use; none for all.
            threads: its threads now; they are counted where the cgroup cannot be.
            group: its resctrl group.
            domains: the cache domains of its CPUs; None for all.
            is_alone: no other job is on the node, and none will be until `close`.
        """
        monitoring = MonitoringFiles(group, domains, self._say) if group is not None and self._monitors else None
        has_bandwidth = monitoring is not None and self._monitors_bandwidth
        memory = self.memory if is_alone and not has_bandwidth else None
        return JobCounters(self._instructions(cgroup, cpus, threads), monitoring, memory, self._clock)

    @property
    def measures_bandwidth(self) -> bool:
        """Whether the bandwidth of a job that is alone here can be measured."""
        return self._monitors_bandwidth or self.memory is not None

    def close(self) -> None:
        """Stop counting the memory controllers."""
        if self.memory is not None:
            self.memory.close()

    def _instructions(
        self, cgroup: Path | None, cpus: Iterable[int], threads: Iterable[int]
    ) -> InstructionCounters | None:
        """The best counters of instructions for a job; None if it can have none."""
        if not self.measures_ipc:
            return None
        if cgroup is not None:
            every = range(os.sysconf("SC_NPROCESSORS_CONF"))  # the offline ones among them are left out
            try:
                return InstructionCounters.of_cgroup(self._perf, cgroup, tuple(cpus) or every)
            except PerfError as problem:
                self._say(f"the threads of a job are counted instead of its cgroup: {problem}")
        try:
            return InstructionCounters.of_threads(self._perf, threads)
        except PerfError as problem:
            self._say(f"the IPC of a job is not measured: {problem}")
            return None

    def _find_monitoring(self, resctrl: Path) -> None:
        """Find whether resctrl monitors anything. Without bandwidth it may still monitor occupancy."""
        listed = resctrl / "info" / "L3_MON" / "mon_features"
        try:
            features = listed.read_text(encoding="ascii").split()
        except OSError as problem:
            self._say(f"resctrl monitors no bandwidth on this node: {listed} cannot be read: {problem.strerror}")
            return
        self._monitors, self._monitors_bandwidth = True, bool(set(MOVED) & set(features))
        if not self._monitors_bandwidth:
            self._say(f"resctrl monitors no bandwidth on this node: {listed} lists {' '.join(features) or 'nothing'}")

    def _say(self, text: str) -> None:
        """Log the line, unless it was logged before."""
        if text not in self._said:
            self._said.add(text)
            self._log(text)


def why_no_instructions(perf: KernelPerf) -> str:
    """Why the kernel counts no instructions, tried on the calling thread; empty if it does."""
    try:
        InstructionCounters.of_threads(perf, (0,)).close()
    except PerfError as problem:
        return str(problem)
    return ""


def open_controllers(perf: KernelPerf, devices: Path) -> tuple[MemoryControllers | None, str]:
    """The memory controllers whose PMUs are below `devices`; without them, why they cannot be counted."""
    events = memory_controllers.discover(devices)
    try:
        return (MemoryControllers(perf, events), "") if events else (None, f"{devices} has no PMU of them")
    except PerfError as problem:
        return None, str(problem)
