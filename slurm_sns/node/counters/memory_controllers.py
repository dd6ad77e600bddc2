"""Bytes that the memory controllers of the node move: uncore events of perf. They count the node, not a job.

Where resctrl does not monitor bandwidth, they are the bandwidth of a job that is alone on the node.

Which events: Intel names them in sysfs, with their unit. `cas_count_read` and `cas_count_write` of uncore_imc_N (with
`_sch0`, `_sch1` on Granite Rapids), or `read` and `write` of uncore_imc_free_running_N where the former are missing;
both count the same lines, so never both (arch/x86/events/intel/uncore_snbep.c). AMD (Zen 4 and later) has one PMU
amd_umc_N for each channel, and perf's own table says that event 0x0a, umc_cas_cmd.all, is one command for 64 bytes
(tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json).
"""

import errno
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from slurm_sns.node.counters.perf_event import Event, KernelPerf, PerfError
from slurm_sns.node.counters.readings import ControllerCount, numbers_of

#: Names of PMUs and of their events; the first that the machine has is used.
_INTEL = (
    (re.compile(r"uncore_imc_\d+|uncore_imc"), re.compile(r"cas_count_(read|write)(_sch\d)?")),
    (re.compile(r"uncore_imc_free_running(_\d+)?"), re.compile(r"read|write")),
)
_AMD = re.compile(r"amd_umc_\d+")
_AMD_ALL_COMMANDS, _AMD_BYTES = 0x0A, 64.0

#: The units that the kernel gives: `perf stat` prints count x scale in this unit.
_UNIT_BYTES = {"MiB": 1 << 20, "KiB": 1 << 10, "Bytes": 1}


class ControllerEvent(NamedTuple):
    """An event that counts moved bytes, and the CPUs to open it on: one for each socket."""

    name: str
    event: Event
    cpus: tuple[int, ...]
    bytes_per_count: float


def discover(devices: Path) -> tuple[ControllerEvent, ...]:
    """The events of the memory controllers below `devices` (/sys/bus/event_source/devices); none if it names none.

    A PMU whose files are not as expected is left out.
    """
    try:
        pmus = sorted(devices.iterdir())
    except OSError:
        return ()
    for name, event in _INTEL:
        found = tuple(_named_events((pmu for pmu in pmus if name.fullmatch(pmu.name)), event))
        if found:
            return found
    return tuple(_amd_events(pmu for pmu in pmus if _AMD.fullmatch(pmu.name)))


class MemoryControllers:
    """The open events of the memory controllers.

    Raises:
        PerfError: the kernel refuses one of them. Nothing stays open then.
    """

    def __init__(self, perf: KernelPerf, events: Iterable[ControllerEvent]) -> None:
        self._perf = perf
        self._opened: dict[str, tuple[int, float]] = {}
        try:
            for event in events:
                for cpu in event.cpus:
                    self._add(event, cpu)
        except PerfError:
            self.close()
            raise

    def read(self) -> Mapping[str, ControllerCount]:
        """What each controller moved since counting began; one that gives no count is left out."""
        counted = {}
        for name, (opened, bytes_per_count) in self._opened.items():
            for count in self._perf.read(opened)[:1]:
                counted[name] = ControllerCount(count, bytes_per_count)
        return counted

    def close(self) -> None:
        """Stop counting."""
        for opened, _ in self._opened.values():
            self._perf.close(opened)
        self._opened.clear()

    def _add(self, event: ControllerEvent, cpu: int) -> None:
        """Open the event on the CPU; one that is offline has no controller to count."""
        try:
            self._opened[f"{event.name}@{cpu}"] = (self._perf.open(event.event, -1, cpu), event.bytes_per_count)
        except PerfError as problem:
            if problem.errno != errno.ENODEV:
                raise


def _named_events(pmus: Iterable[Path], wanted: re.Pattern[str]) -> Iterable[ControllerEvent]:
    """The wanted events that these PMUs name in sysfs."""
    for pmu in pmus:
        events = pmu / "events"
        for path in sorted(events.iterdir()) if events.is_dir() else ():
            if wanted.fullmatch(path.name):
                try:
                    yield _named_event(pmu, path)
                except (OSError, ValueError, KeyError):
                    continue


def _named_event(pmu: Path, path: Path) -> ControllerEvent:
    """The event in the file: `event=0x04,umask=0x03`, with files beside it for scale and unit."""
    config = [0, 0, 0]
    for term in _text(path).split(","):
        name, _, value = term.partition("=")
        _place(config, _text(pmu / "format" / name), int(value or "1", 0))
    unit = _UNIT_BYTES[_text(path.with_name(f"{path.name}.unit"))]
    scale = float(_text(path.with_name(f"{path.name}.scale")))
    return ControllerEvent(f"{pmu.name}/{path.name}", _event(pmu, *config), _cpus(pmu), scale * unit)


def _amd_events(pmus: Iterable[Path]) -> Iterable[ControllerEvent]:
    """All commands of each channel."""
    for pmu in pmus:
        try:
            yield ControllerEvent(pmu.name, _event(pmu, _AMD_ALL_COMMANDS), _cpus(pmu), _AMD_BYTES)
        except (OSError, ValueError):
            continue


def _event(pmu: Path, config: int, config1: int = 0, config2: int = 0) -> Event:
    """The event of the PMU. Uncore PMUs refuse to leave out the kernel: they cannot tell who moved the bytes."""
    return Event(int(_text(pmu / "type")), config, config1, config2)


def _cpus(pmu: Path) -> tuple[int, ...]:
    """The CPUs on which the PMU's events are opened."""
    return numbers_of(_text(pmu / "cpumask"))


def _place(config: list[int], form: str, value: int) -> None:
    """Put the bits of the value where the form says: `config:0-7`, `config1:0-31`, `config:0-7,32-35`.

    Source: Documentation/ABI/testing/sysfs-bus-event_source-devices-format.
    """
    word, _, ranges = form.partition(":")
    index = {"config": 0, "config1": 1, "config2": 2}[word]
    for bit in numbers_of(ranges):
        config[index] |= (value & 1) << bit
        value >>= 1


def _text(path: Path) -> str:
    """What the file holds, in one line."""
    return path.read_text(encoding="ascii").strip()
