"""Performance counters of emulated programs, as `KernelPerf` gives them: they are read from .emulator/counters.

An event of a thread counts those programs whose first task is the thread, or descends from it and was started after the
event was opened: as inherited events count (perf_event_open(2)). A start time is known to a tick (10 ms) only, so what
is among the processes when the event is opened was started before. An event of a cgroup counts the programs whose first
task is in the cgroup or below; the first CPU that it is opened on has all of it. Instructions and cycles alone are
known. The kernel gives both of a thread within a microsecond; two reads of a file are further apart, so the cycles are
those of the moment at which the instructions were read.
"""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path

from slurm_sns.node.counters.perf_event import CYCLES, INSTRUCTIONS, Event, PerfError
from slurm_sns.node.counters.readings import Count

#: Where /proc/PID/stat has the parent and the start time, counted after the name, which may hold anything.
_PARENT, _STARTED = 1, 19
#: The column in .emulator/counters, by the event's config.
_COLUMNS = {INSTRUCTIONS.config: 0, CYCLES.config: 1}


@dataclass
class _Opened:
    """An open event: what it counts, and what each program had counted before."""

    column: int
    of: int
    directory: Path | None
    opened_ticks: int
    #: The processes at that moment.
    there: frozenset[int]
    followers: list[int] = field(default_factory=list)
    before: dict[int, int] = field(default_factory=dict)
    #: What each program of the event counted at the last look; one that is gone keeps it.
    seen: dict[int, int] = field(default_factory=dict)
    is_counting: bool = True
    reads: int = 0


class EmulatedPerf:
    """The counters of the programs of the tree at `root`, by the processes below `proc`."""

    def __init__(self, root: Path, proc: Path = Path("/proc")) -> None:
        self._file, self._proc = root / ".emulator" / "counters", proc
        self._opened: dict[int, _Opened] = {}
        self._next = 1_000_000
        self._first_cpu: dict[tuple[str, int], int] = {}
        #: The thread whose instructions were read last, and what all programs had counted then.
        self._moment: tuple[int, dict[int, tuple[int, int]]] | None = None

    def open(self, event: Event, of: int, cpu: int, leader: int = -1, *, is_cgroup: bool = False) -> int:
        """See `KernelPerf.open`."""
        if event not in (INSTRUCTIONS, CYCLES):
            raise PerfError(errno.ENOENT, f"event {event.kind}:{event.config:#x}")
        directory = Path(f"/proc/self/fd/{of}").readlink() if is_cgroup else None
        thread = os.getpid() if directory is None and of == 0 else of
        if directory is None and self._stat(thread) is None:
            raise PerfError(errno.ESRCH, f"thread {thread}")
        handle, self._next = self._next, self._next + 1
        opened = _Opened(_COLUMNS[event.config], thread, directory, self._now_ticks(), self._processes())
        if directory is not None:
            opened.is_counting = self._first_cpu.setdefault((str(directory), of), cpu) == cpu
        self._opened[handle] = opened
        if leader in self._opened:
            self._opened[leader].followers.append(handle)
        counted = self._counters()
        for task in self._tasks_of(opened, counted):
            opened.before[task] = counted[task][opened.column]
        return handle

    def read(self, opened: int) -> tuple[Count, ...]:
        """See `KernelPerf.read`."""
        event = self._opened[opened]
        is_second = event.column == _COLUMNS[CYCLES.config] and self._moment is not None and self._moment[0] == event.of
        counted = self._moment[1] if is_second and self._moment else self._counters()
        self._moment = None if is_second else (event.of, counted)
        return tuple(self._count(self._opened[each], counted) for each in (opened, *event.followers))

    def close(self, opened: int) -> None:
        """See `KernelPerf.close`."""
        gone = self._opened.pop(opened)
        if gone.directory is not None:
            self._first_cpu.pop((str(gone.directory), gone.of), None)

    def _count(self, opened: _Opened, counted: dict[int, tuple[int, int]]) -> Count:
        opened.reads += 1
        for task in {*self._tasks_of(opened, counted), *opened.seen}:
            if task in counted:
                opened.seen[task] = max(counted[task][opened.column], opened.seen.get(task, 0))
        value = sum(seen - opened.before.get(task, 0) for task, seen in opened.seen.items())
        # Enabled and running, as without multiplexing; an event of a thread that did not run was not enabled.
        enabled = opened.reads if value else 0
        return Count(value, enabled, enabled)

    def _counters(self) -> dict[int, tuple[int, int]]:
        """Instructions and cycles by the first task of each program; none while the emulator is away."""
        try:
            lines = self._file.read_text().splitlines()
        except OSError:
            return {}
        return {int(task): (int(instructions), int(cycles)) for task, instructions, cycles in map(str.split, lines)}

    def _tasks_of(self, opened: _Opened, counted: dict[int, tuple[int, int]]) -> list[int]:
        if not opened.is_counting:
            return []
        if opened.directory is not None:
            inside = self._threads_below(opened.directory)
            return [task for task in counted if task in inside]
        return [task for task in counted if self._is_of(task, opened)]

    def _is_of(self, task: int, opened: _Opened) -> bool:
        while task > 1:
            if task == opened.of:
                return True
            found = self._stat(task)
            if found is None or task in opened.there or found[1] < opened.opened_ticks:
                return False
            task = found[0]
        return False

    def _threads_below(self, directory: Path) -> set[int]:
        files = [directory / "cgroup.threads", *directory.glob("**/cgroup.threads")]
        found: set[int] = set()
        for file in files:
            try:
                found.update(map(int, file.read_text().split()))
            except OSError:
                continue
        return found

    def _stat(self, task: int) -> tuple[int, int] | None:
        """The parent of a task and when it was started, in ticks since the boot; None if it has ended."""
        try:
            fields = (self._proc / str(task) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return int(fields[_PARENT]), int(fields[_STARTED])

    def _processes(self) -> frozenset[int]:
        return frozenset(int(each.name) for each in self._proc.iterdir() if each.name.isdigit())

    def _now_ticks(self) -> int:
        seconds = float(Path("/proc/uptime").read_text().split()[0])
        return int(seconds * os.sysconf("SC_CLK_TCK"))
