"""perf_event_open(2) through ctypes: opens, reads and closes events that count. glibc has no function for it.

Source: perf_event_open(2), include/uapi/linux/perf_event.h.
"""

import ctypes
import errno
import os
import platform
import struct
from typing import NamedTuple

from slurm_sns.errors import SnsError
from slurm_sns.node.counters.readings import Count

#: perf_event_attr.type and .config (enum perf_type_id, perf_hw_id).
_HARDWARE = 0
_CYCLES, _INSTRUCTIONS = 0, 1

#: The numbers of the system call (arch/*/entry/syscalls/syscall*.tbl, asm-generic/unistd.h), by platform.machine().
_SYSCALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}

#: perf_event_attr up to config2, PERF_ATTR_SIZE_VER1: every kernel since 3.3 knows these fields.
#: type, size, config, sample_period, sample_type, read_format, flags, wakeup_events, bp_type, config1, config2.
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQQ")

#: The bits of perf_event_attr that we use.
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6

#: perf_event_attr.read_format: number of events, time enabled, time running, then the values.
_READ_FORMAT = 1 << 0 | 1 << 1 | 1 << 3
_ALONE = 1 << 0 | 1 << 1

#: perf_event_open's flags: the fd is closed by exec; the pid argument is the fd of a cgroup.
_CLOSE_ON_EXEC, _PID_IS_CGROUP = 1 << 3, 1 << 2


class Event(NamedTuple):
    """What is counted: a PMU's type and its config words. `user_only` leaves out kernel and hypervisor."""

    kind: int
    config: int
    config1: int = 0
    config2: int = 0
    user_only: bool = False


#: User mode alone, so that the IPC of a program is the same whatever a node's perf_event_paranoid allows.
INSTRUCTIONS = Event(_HARDWARE, _INSTRUCTIONS, user_only=True)
CYCLES = Event(_HARDWARE, _CYCLES, user_only=True)


class PerfError(SnsError):
    """An event could not be opened. `errno` is the kernel's; the text says what it means, in one line."""

    def __init__(self, number: int, opened: str) -> None:
        super().__init__(f"{opened} cannot be counted: {_meaning(number)}")
        self.errno = number


class KernelPerf:
    """The kernel's perf events. An open event is a file descriptor."""

    def __init__(self) -> None:
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._number = _SYSCALLS.get(platform.machine())

    def open(self, event: Event, of: int, cpu: int, leader: int = -1, *, is_cgroup: bool = False) -> int:
        """Open the event and begin to count. `of` is a thread (0: the caller, -1: all), or a cgroup's descriptor.

        Events with the same `leader` are counted at the same times and read with it. A thread's event on any CPU
        (`cpu` -1) counts the threads that it starts from now on, too; it can have no leader.

        Raises:
            PerfError: the kernel refuses it.
        """
        described = f"event {event.kind}:{event.config:#x}"
        if self._number is None:
            raise PerfError(errno.ENOSYS, described)
        # Older kernels refuse inherit together with PERF_FORMAT_GROUP, and so says perf_event_open(2).
        inherits = not is_cgroup and cpu < 0
        attributes = ctypes.create_string_buffer(_attributes(event, inherits=inherits), _ATTRIBUTES.size)
        opened = self._syscall(
            ctypes.c_long(self._number),
            attributes,
            ctypes.c_int(of),
            ctypes.c_int(cpu),
            ctypes.c_int(leader),
            ctypes.c_ulong(_CLOSE_ON_EXEC | (_PID_IS_CGROUP if is_cgroup else 0)),
        )
        if opened < 0:
            raise PerfError(ctypes.get_errno(), described)
        return int(opened)

    def read(self, opened: int) -> tuple[Count, ...]:
        """The counts of the event and of the events it leads; none if the kernel gives none."""
        try:
            answer = os.read(opened, 1024)  # a group of two events has 40 bytes
        except OSError:
            return ()
        return counts_of(answer)

    def close(self, opened: int) -> None:
        """Stop counting."""
        os.close(opened)


def counts_of(answer: bytes) -> tuple[Count, ...]:
    """The counts in what read(2) gives: of a lone event three numbers, of a group their number, two times, the counts.

    An event that the kernel has given up reads as nothing (perf_event_open(2), "Reading results").
    """
    numbers = struct.unpack(f"={len(answer) // 8}Q", answer[: len(answer) // 8 * 8])
    if len(numbers) == len(Count._fields):
        return (Count(*numbers),)
    return tuple(Count(value, numbers[1], numbers[2]) for value in numbers[3:])


def _attributes(event: Event, *, inherits: bool) -> bytes:
    """The structure perf_event_attr of a counting event."""
    flags = (_INHERIT if inherits else 0) | (_EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR if event.user_only else 0)
    read_format = _ALONE if inherits else _READ_FORMAT
    size = _ATTRIBUTES.size
    return _ATTRIBUTES.pack(
        event.kind, size, event.config, 0, 0, read_format, flags, 0, 0, event.config1, event.config2
    )


def _meaning(number: int) -> str:
    """What perf_event_open's errno means here (perf_event_open(2), section ERRORS)."""
    if number in (errno.EACCES, errno.EPERM):
        return "no permission; valid: root, CAP_PERFMON, or a lower /proc/sys/kernel/perf_event_paranoid"
    if number in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENXIO):
        return "no such counter here (many virtual machines have none)"
    if number == errno.ENOSYS:
        return "this kernel has no perf_event_open"
    if number in (errno.EMFILE, errno.ENFILE):
        return "too many open files; valid: a higher limit (LimitNOFILE= of the service)"
    return os.strerror(number)
