"""What counters showed at one moment, and what the difference of two moments says: IPC and GB/s. Pure.

None means unknown, and unknown is never guessed: a counter that went back without a wrap-around was reset, an event
that was enabled but never counted (multiplexing) says nothing, and both make the interval unknown. Zero is known:
nothing was executed, nothing was moved.

Multiplexing: with more events than hardware counters the kernel counts each event a part of the time. A difference is
scaled by enabled / running time, as perf_event_open(2) describes it.

Widths: what the kernel shows is 64 bits wide. perf events are sums that the kernel keeps, whatever the width of the
hardware's counter. So are resctrl's mbm files: the first MBM counters have 24 bits and wrap within seconds, but the
kernel reads them once a second and adds up (`mbm_overflow_count`, arch/x86/kernel/cpu/resctrl/monitor.c, since 4.14;
the width by CPUID since commit 0c4d5ba1b998). So a mbm file that goes back was reset.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


def numbers_of(text: str) -> tuple[int, ...]:
    """The numbers of the list, ascending; none for an empty text.

    Raises:
        ValueError: the text is no such list.
    """
    numbers: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


#: What the kernel shows has 64 bits: see above.
_RANGE = 1 << 64

#: GB/s that no memory of one cache domain moves; HBM3 gives 5,300 on one package today (MI300A). Until kernel commit
#: 15292f1b, an AMD counter that the hardware had stopped and taken up again made resctrl add a wrap-around that never
#: was: 2^44 lines.
IMPLAUSIBLE_GBPS = 10_000.0


class Count(NamedTuple):
    """A perf event as read: its count, how long it was enabled, and how long it was really counted."""

    value: int
    enabled_ns: int
    running_ns: int


class Executed(NamedTuple):
    """What one thread, or a cgroup on one CPU, executed since counting began."""

    instructions: Count
    cycles: Count


class CacheTraffic(NamedTuple):
    """What a group used in one cache domain, in bytes: moved to and from memory so far, occupied now."""

    moved: int | None = None
    occupied: int | None = None


class ControllerCount(NamedTuple):
    """What one memory controller moved, counted in units of so many bytes."""

    counted: Count
    bytes_per_count: float


class Reading(NamedTuple):
    """The counters of one job at one moment: executed by CPU or thread, traffic by cache domain.

    `controllers` are the node's memory controllers, where they stand for the job because it is alone on the node.
    """

    at_s: float
    executed: Mapping[int, Executed]
    traffic: Mapping[int, CacheTraffic]
    controllers: Mapping[str, ControllerCount] = {}


class Rates(NamedTuple):
    """What a job did between two readings; None is unknown."""

    elapsed_s: float
    ipc: float | None
    bandwidth_gbps: float | None


def rates(before: Reading, after: Reading) -> Rates:
    """What the job did between the two readings. Its bandwidth is that of its resctrl group, else the node's."""
    elapsed_s = after.at_s - before.at_s
    bandwidth = bandwidth_between(before.traffic, after.traffic, elapsed_s)
    if bandwidth is None:
        bandwidth = controllers_between(before.controllers, after.controllers, elapsed_s)
    return Rates(elapsed_s, ipc_between(before.executed, after.executed), bandwidth)


def advance(before: int, after: int) -> int | None:
    """How far a counter went; None if it was reset, or if a value has more bits than the counter.

    A step back is a wrap-around if the way forward is less than half of the range, otherwise a reset.
    """
    if not (0 <= before < _RANGE and 0 <= after < _RANGE):
        return None
    step = (after - before) % _RANGE
    return step if after >= before or step < _RANGE // 2 else None


def scaled_advance(before: Count, after: Count) -> float | None:
    """How far an event went, scaled to the time it was enabled; None if it was reset or never counted."""
    value = advance(before.value, after.value)
    enabled_ns, running_ns = after.enabled_ns - before.enabled_ns, after.running_ns - before.running_ns
    if value is None or enabled_ns < 0 or running_ns < 0:
        return None
    if running_ns == 0:
        return None if enabled_ns or value else 0.0
    return value * max(enabled_ns, running_ns) / running_ns


def ipc_between(before: Mapping[int, Executed], after: Mapping[int, Executed]) -> float | None:
    """Instructions per cycle over all CPUs or threads of both readings.

    CPUs and threads of which the interval is unknown are left out. None: no cycle was counted.
    """
    instructions = cycles = 0.0
    for key in before.keys() & after.keys():
        first, last = before[key], after[key]
        more_instructions = scaled_advance(first.instructions, last.instructions)
        more_cycles = scaled_advance(first.cycles, last.cycles)
        if more_instructions is not None and more_cycles is not None:
            instructions += more_instructions
            cycles += more_cycles
    return instructions / cycles if cycles else None


def bandwidth_between(
    before: Mapping[int, CacheTraffic], after: Mapping[int, CacheTraffic], elapsed_s: float
) -> float | None:
    """GB/s over all cache domains; None if one of them is unknown, or if there is none."""
    if elapsed_s <= 0 or before.keys() != after.keys():
        return None
    return _gbps([_moved(before[domain], last, elapsed_s) for domain, last in after.items()], elapsed_s)


def controllers_between(
    before: Mapping[str, ControllerCount], after: Mapping[str, ControllerCount], elapsed_s: float
) -> float | None:
    """GB/s of all memory controllers; None if one of them is unknown, or if there is none."""
    if elapsed_s <= 0 or before.keys() != after.keys():
        return None
    counts = [
        (scaled_advance(before[name].counted, last.counted), last.bytes_per_count) for name, last in after.items()
    ]
    return _gbps([None if count is None else count * size for count, size in counts], elapsed_s)


def _gbps(moved: Sequence[float | None], elapsed_s: float) -> float | None:
    """So many bytes together in so many seconds; None if one of them is unknown, or if there is none."""
    known = [each for each in moved if each is not None]
    return sum(known) / elapsed_s / 1e9 if moved and len(known) == len(moved) else None


def _moved(before: CacheTraffic, after: CacheTraffic, elapsed_s: float) -> int | None:
    """Bytes moved in one cache domain."""
    if before.moved is None or after.moved is None:
        return None
    moved = advance(before.moved, after.moved)
    return moved if moved is not None and moved / elapsed_s / 1e9 < IMPLAUSIBLE_GBPS else None
