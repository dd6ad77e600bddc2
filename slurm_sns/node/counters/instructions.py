"""Instructions and cycles of a job: of its cgroup with two events on each CPU, or of its threads and what they start.

A cgroup's events count every process in the cgroup and below, whenever it was started. They need a directory of the
hierarchy that has perf_event, which is cgroup v2's (Slurm's cgroup/v1 makes no perf_event cgroups), and the permission
to count whole CPUs. A thread's events need neither; a thread that starts between the listing and the opening is missed,
as `perf stat -p` misses it.

What has ended (a thread, a cgroup) or is offline (a CPU) is left out; it is no error.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from slurm_sns.node.counters.perf_event import CYCLES, INSTRUCTIONS, KernelPerf, PerfError
from slurm_sns.node.counters.readings import Executed

#: The thread has ended; the CPU is offline.
_ENDED = (errno.ESRCH, errno.ENODEV)


class InstructionCounters:
    """Two open events for each of some CPUs or threads. Their counters run until `close`."""

    def __init__(self, perf: KernelPerf) -> None:
        self._perf = perf
        self._opened: dict[int, tuple[int, ...]] = {}
        #: In a group the first event is read with the other.
        self._read_from: dict[int, tuple[int, ...]] = {}

    @classmethod
    def of_cgroup(cls, perf: KernelPerf, directory: Path, cpus: Iterable[int]) -> Self:
        """Count the cgroup at `directory` on these CPUs; the CPUs that its job may use are enough.

        Raises:
            PerfError: the kernel refuses the events. Nothing stays open then.
        """
        counters = cls(perf)
        try:
            cgroup = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return counters
        except OSError as problem:
            # Without its path: a caller logs each line once, and each job has another path.
            raise PerfError(problem.errno or 0, "the cgroup of a job") from None
        try:
            for cpu in dict.fromkeys(cpus):
                counters._add_group(cpu, cgroup)
        except PerfError as problem:
            counters.close()
            # A cgroup that was removed after we opened it answers ENOENT, too.
            if problem.errno != errno.ENOENT or directory.is_dir():
                raise
        finally:
            os.close(cgroup)  # the events hold the cgroup
        return counters

    @classmethod
    def of_threads(cls, perf: KernelPerf, threads: Iterable[int]) -> Self:
        """Count these threads (ids), and all threads and processes that they start from now on.

        Raises:
            PerfError: the kernel refuses the events. Nothing stays open then.
        """
        counters = cls(perf)
        try:
            for thread in dict.fromkeys(threads):
                counters._add_pair(thread)
        except PerfError:
            counters.close()
            raise
        return counters

    def read(self) -> Mapping[int, Executed]:
        """What was executed by each CPU or thread since counting began; those that give no count are left out."""
        executed = {}
        for key, opened in self._read_from.items():
            counts = [count for event in opened for count in self._perf.read(event)]
            if len(counts) == len(Executed._fields):
                executed[key] = Executed(*counts)
        return executed

    def close(self) -> None:
        """Stop counting."""
        for opened in self._opened.values():
            for event in reversed(opened):
                self._perf.close(event)
        self._opened.clear()
        self._read_from.clear()

    def _add_group(self, cpu: int, cgroup: int) -> None:
        """Open both events on the CPU as one group: they are counted at the same times, and one read gives both."""
        with _what_has_ended_left_out():
            leader = self._perf.open(INSTRUCTIONS, cgroup, cpu, is_cgroup=True)
            self._opened[cpu] = (leader,)
            self._opened[cpu] += (self._perf.open(CYCLES, cgroup, cpu, leader, is_cgroup=True),)
            self._read_from[cpu] = (leader,)

    def _add_pair(self, thread: int) -> None:
        """Open both events of the thread, one after the other: events that are inherited make no group."""
        with _what_has_ended_left_out():
            self._opened[thread] = (self._perf.open(INSTRUCTIONS, thread, -1),)
            self._opened[thread] += (self._perf.open(CYCLES, thread, -1),)
            self._read_from[thread] = self._opened[thread]


@contextmanager
def _what_has_ended_left_out() -> Iterator[None]:
    """Go on after a thread that has ended or a CPU that is offline."""
    try:
        yield
    except PerfError as problem:
        if problem.errno not in _ENDED:
            raise
