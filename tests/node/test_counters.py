"""Counters against recorded answers, and perf events of the kernel where it counts in software.

The answers of hardware (instructions, cycles, memory controllers) are emulated, in the form that
perf_event_open(2) documents: few build machines have hardware counters.
"""

import errno
import os
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_mock import MockerFixture

from slurm_sns.node.counters.instructions import InstructionCounters
from slurm_sns.node.counters.memory_controllers import MemoryControllers, discover
from slurm_sns.node.counters.monitoring_files import MonitoringFiles
from slurm_sns.node.counters.node_counters import DEVICES, NodeCounters
from slurm_sns.node.counters.perf_event import (
    CYCLES,
    INSTRUCTIONS,
    Event,
    KernelPerf,
    PerfError,
    counts_of,
)
from slurm_sns.node.counters.readings import (
    CacheTraffic,
    ControllerCount,
    Count,
    Executed,
    Rates,
    Reading,
    advance,
    bandwidth_between,
    controllers_between,
    ipc_between,
    numbers_of,
    rates,
    scaled_advance,
)

TREES = (
    Path(os.environ.get("SNS_SHARED", Path(__file__).parents[2].parent / "shared"))
    / "resctrl"
    / "captured-trees.tar.xz"
)

#: Counted by the kernel itself, without hardware: nanoseconds on a CPU (enum perf_sw_ids).
SOFTWARE = {INSTRUCTIONS: Event(1, 1), CYCLES: Event(1, 0)}

#: The cgroup v2 hierarchy, alone or beside cgroup v1.
CGROUP_V2 = next(
    (path for path in map(Path, ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")) if (path / "cgroup.procs").exists()),
    Path("/none"),
)


class EmulatedPerf:
    """Perf events that count what a test says.

    `refused` gives the errno by which (event, of, cpu) is refused; `counts` gives what an open (event, of, cpu) shows.
    """

    def __init__(
        self,
        counts: Callable[[Event, int, int], Count | None] = lambda *_: Count(0, 0, 0),
        refused: Callable[[Event, int, int], int] = lambda *_: 0,
    ) -> None:
        self.counts = counts
        self.refused = refused
        self.opened: dict[int, tuple[Event, int, int]] = {}
        self.groups: dict[int, list[int]] = {}
        self.reads = 0
        self._next = 1000

    def open(self, event: Event, of: int, cpu: int, leader: int = -1, *, is_cgroup: bool = False) -> int:
        if is_cgroup:
            assert Path(f"/proc/self/fd/{of}").resolve().is_dir()
            of = 0  # the number of a descriptor says nothing
        if number := self.refused(event, of, cpu):
            raise PerfError(number, f"event {event.kind}:{event.config:#x}")
        self._next += 1
        self.opened[self._next] = (event, of, cpu)
        if cpu >= 0:  # lone events of threads have no group
            self.groups.setdefault(self._next if leader < 0 else leader, []).append(self._next)
        return self._next

    def read(self, opened: int) -> tuple[Count, ...]:
        self.reads += 1
        members = self.groups.get(opened, [opened])
        counts = [self.counts(*self.opened[member]) for member in members]
        return tuple(count for count in counts if count is not None)

    def close(self, opened: int) -> None:
        del self.opened[opened]


def counted(instructions: int, cycles: int, enabled: int = 100, running: int | None = None) -> Executed:
    running = enabled if running is None else running
    return Executed(Count(instructions, enabled, running), Count(cycles, enabled, running))


NOTHING = counted(0, 0, 0)


class TestAdvance:
    @pytest.mark.parametrize(
        ("before", "after", "step"),
        [
            (5, 5, 0),
            (5, 12, 7),
            (2**64 - 3, 4, 7),
            (2**63 + 1, 1, None),  # more than half of the range: a reset
            (1_000_000, 0, None),
            (1_000_000, 999_999, None),
            (2**64, 5, None),  # has more bits than the counter
            (5, -1, None),
        ],
    )
    def test_a_counter_goes_forward_wraps_around_or_was_reset(self, before: int, after: int, step: int | None) -> None:
        assert advance(before, after) == step

    @given(st.integers(0, 2**64 - 1), st.integers(0, 2**63 - 1))
    def test_a_counter_shows_each_step_below_half_of_its_range(self, before: int, step: int) -> None:
        assert advance(before, (before + step) % 2**64) == step


class TestMultiplexing:
    @pytest.mark.parametrize(
        ("before", "after", "scaled"),
        [
            (Count(0, 0, 0), Count(600, 100, 100), 600),
            (Count(100, 100, 50), Count(300, 300, 100), 800),  # counted in 50 of 200
            (Count(100, 100, 50), Count(100, 300, 50), None),  # enabled, never counted
            (Count(100, 100, 50), Count(100, 100, 50), 0),  # did not run
            (Count(100, 100, 100), Count(50, 200, 200), None),  # reset
            (Count(100, 300, 300), Count(200, 200, 200), None),  # times were reset
            (Count(2**64 - 10, 100, 100), Count(10, 200, 200), 20),
        ],
    )
    def test_a_count_is_scaled_to_the_time_in_which_it_was_enabled(
        self, before: Count, after: Count, scaled: float | None
    ) -> None:
        assert scaled_advance(before, after) == scaled

    def test_ipc_is_that_of_all_cpus_together(self) -> None:
        before = {0: NOTHING, 1: NOTHING}
        after = {0: counted(300, 100), 1: counted(100, 300)}
        assert ipc_between(before, after) == 1.0

    def test_events_that_are_multiplexed_apart_are_scaled_apart(self) -> None:
        after = {7: Executed(Count(100, 100, 50), Count(100, 100, 100))}
        assert ipc_between({7: NOTHING}, after) == 2.0

    def test_a_cpu_that_was_reset_or_not_counted_is_left_out(self) -> None:
        before = {0: NOTHING, 1: counted(500, 500), 2: NOTHING}
        after = {0: counted(200, 100), 1: counted(1, 1, 200), 2: counted(0, 0, 200, 0)}
        assert ipc_between(before, after) == 2.0

    def test_a_thread_that_only_one_reading_has_is_left_out(self) -> None:
        assert ipc_between({1: NOTHING, 2: NOTHING}, {2: counted(30, 10), 3: counted(10, 10)}) == 3.0

    @pytest.mark.parametrize("after", [{}, {0: NOTHING}, {0: counted(0, 0, 100, 100)}])
    def test_without_a_cycle_the_ipc_is_unknown(self, after: dict[int, Executed]) -> None:
        assert ipc_between({0: NOTHING}, after) is None


class TestBandwidth:
    def test_bandwidth_is_the_sum_over_the_cache_domains_in_gbps(self) -> None:
        before = {0: CacheTraffic(10**9, 1), 1: CacheTraffic(0, 1)}
        after = {0: CacheTraffic(3 * 10**9, 1), 1: CacheTraffic(10**9, 1)}
        assert bandwidth_between(before, after, 2.0) == 1.5

    @pytest.mark.parametrize(
        ("before", "after", "elapsed_s"),
        [
            (CacheTraffic(None, 0), CacheTraffic(5, 0), 1.0),
            (CacheTraffic(5, 0), CacheTraffic(None, 0), 1.0),
            (CacheTraffic(10**9, 0), CacheTraffic(5, 0), 1.0),  # reset
            (CacheTraffic(0, 0), CacheTraffic(2**44 * 64, 0), 1.0),  # a wrap-around that never was
            (CacheTraffic(0, 0), CacheTraffic(5, 0), 0.0),
        ],
    )
    def test_an_interval_without_two_good_values_is_unknown(
        self, before: CacheTraffic, after: CacheTraffic, elapsed_s: float
    ) -> None:
        assert bandwidth_between({0: before, 1: CacheTraffic(0)}, {0: after, 1: CacheTraffic(8)}, elapsed_s) is None

    def test_without_domains_or_with_others_than_before_it_is_unknown(self) -> None:
        assert bandwidth_between({}, {}, 1.0) is None
        assert bandwidth_between({0: CacheTraffic(0)}, {0: CacheTraffic(0), 1: CacheTraffic(0)}, 1.0) is None

    def test_the_memory_controllers_are_scaled_and_added(self) -> None:
        before = {name: ControllerCount(Count(0, 0, 0), 64.0) for name in ("imc_0", "imc_1")}
        after = {
            "imc_0": ControllerCount(Count(10**9, 100, 50), 64.0),
            "imc_1": ControllerCount(Count(10**9, 100, 100), 64.0),
        }
        assert controllers_between(before, after, 2.0) == pytest.approx(96.0)
        after["imc_1"] = ControllerCount(Count(0, 100, 0), 64.0)
        assert controllers_between(before, after, 2.0) is None
        assert controllers_between(before, {}, 2.0) is None

    def test_the_rates_of_two_readings(self) -> None:
        before = Reading(10.0, {0: NOTHING}, {0: CacheTraffic(0, 5)})
        after = Reading(12.0, {0: counted(300, 200)}, {0: CacheTraffic(4 * 10**9, 7)})
        assert rates(before, after) == Rates(2.0, 1.5, 2.0)

    def test_the_rates_of_empty_readings_are_unknown(self) -> None:
        assert rates(Reading(1.0, {}, {}), Reading(2.0, {}, {})) == Rates(1.0, None, None)


class TestMonitoringFiles:
    def group(self, root: Path, *domains: int, **files: str) -> Path:
        for domain in domains:
            directory = root / "mon_data" / f"mon_L3_{domain:02d}"
            directory.mkdir(parents=True)
            for name, text in files.items():
                (directory / name).write_text(f"{text}\n")
        return root

    def test_a_sample_reads_what_the_files_hold_at_that_moment(self, tmp_path: Path) -> None:
        group = self.group(tmp_path, 0, 4, mbm_total_bytes="100", mbm_local_bytes="60", llc_occupancy="7")
        files = MonitoringFiles(group, None, pytest.fail)
        assert files.read() == {0: CacheTraffic(100, 7), 4: CacheTraffic(100, 7)}
        (group / "mon_data" / "mon_L3_04" / "mbm_total_bytes").write_text("18446744073709551615\n")
        assert files.read()[4] == CacheTraffic(2**64 - 1, 7)
        files.close()
        assert files.read() == {}

    def test_only_the_domains_that_the_job_touches_are_read(self, tmp_path: Path) -> None:
        group = self.group(tmp_path, 0, 1, 2, mbm_total_bytes="1", llc_occupancy="1")
        assert MonitoringFiles(group, {2}, pytest.fail).read().keys() == {2}

    def test_local_traffic_serves_where_the_machine_offers_no_other(self, tmp_path: Path) -> None:
        group = self.group(tmp_path, 0, mbm_local_bytes="60")
        assert MonitoringFiles(group, None, pytest.fail).read() == {0: CacheTraffic(60, None)}

    @pytest.mark.parametrize("word", ["Unavailable", "Error", "Unassigned", "", "-5", "٣"])
    def test_a_word_makes_the_value_unknown_and_is_told(self, tmp_path: Path, word: str) -> None:
        # Local traffic is no answer to the question for all traffic: the hardware offers both.
        group = self.group(tmp_path, 0, mbm_total_bytes=word, mbm_local_bytes="60", llc_occupancy="7")
        said: list[str] = []
        assert MonitoringFiles(group, None, said.append).read() == {0: CacheTraffic(None, 7)}
        assert len(said) == 1
        assert "\n" not in said[0]

    def test_an_unassigned_counter_says_how_it_gets_one(self, tmp_path: Path) -> None:
        said: list[str] = []
        group = self.group(tmp_path, 0, mbm_total_bytes="Unassigned", llc_occupancy="7")
        MonitoringFiles(group, None, said.append).read()
        assert "holds 'Unassigned': no hardware counter is assigned to the group; valid: 1 in" in said[0]

    def test_parts_of_a_domain_and_other_resources_are_not_counted_twice(self, tmp_path: Path) -> None:
        group = self.group(tmp_path, 0, mbm_total_bytes="100", llc_occupancy="7")
        for other in ("mon_L3_00/mon_sub_L3_00", "mon_PERF_PKG_00", "mon_MB_01"):
            (group / "mon_data" / other).mkdir(parents=True)
            (group / "mon_data" / other / "mbm_total_bytes").write_text("50\n")
        assert MonitoringFiles(group, None, pytest.fail).read() == {0: CacheTraffic(100, 7)}

    def test_a_group_that_does_not_exist_has_no_files(self, tmp_path: Path) -> None:
        assert MonitoringFiles(tmp_path / "sns_17", None, pytest.fail).read() == {}

    def test_a_group_that_was_removed_is_unknown_and_nothing_is_said(
        self, tmp_path: Path, mocker: MockerFixture
    ) -> None:
        files = MonitoringFiles(self.group(tmp_path, 0, mbm_total_bytes="1", llc_occupancy="1"), None, pytest.fail)
        # So answers resctrl, for the group's files are removed with it; a plain directory cannot.
        mocker.patch("os.pread", side_effect=OSError(errno.ENODEV, "No such device"))
        assert files.read() == {0: CacheTraffic(None, None)}

    def test_another_failure_to_read_is_told(self, tmp_path: Path, mocker: MockerFixture) -> None:
        said: list[str] = []
        files = MonitoringFiles(self.group(tmp_path, 0, mbm_total_bytes="1"), None, said.append)
        mocker.patch("os.pread", side_effect=OSError(errno.EIO, "Input/output error"))
        assert files.read() == {0: CacheTraffic(None, None)}
        assert said == ["a monitoring file of a group cannot be read: Input/output error"]

    def test_a_file_that_is_a_link_is_not_read(self, tmp_path: Path) -> None:
        group = self.group(tmp_path, 0, llc_occupancy="7")
        (tmp_path / "secret").write_text("5\n")
        (group / "mon_data" / "mon_L3_00" / "mbm_total_bytes").symlink_to(tmp_path / "secret")
        said: list[str] = []
        assert MonitoringFiles(group, None, said.append).read() == {0: CacheTraffic(None, 7)}
        assert "mbm_total_bytes of a group cannot be read" in said[0]

    @pytest.mark.skipif(not TREES.is_file(), reason=f"{TREES} is missing (SNS_SHARED names the folder)")
    def test_a_captured_tree_has_four_domains(self, tmp_path: Path) -> None:
        with tarfile.open(TREES) as trees:
            trees.extractall(tmp_path, [m for m in trees if m.name.startswith("resctrl.full/mon_data")], filter="data")
        read = MonitoringFiles(tmp_path / "resctrl.full", None, pytest.fail).read()
        assert read.keys() == {0, 1, 2, 3}
        assert all(traffic.moved is not None and traffic.occupied is not None for traffic in read.values())


class TestPerfAnswers:
    @pytest.mark.parametrize(
        ("numbers", "counts"),
        [
            ((70, 9, 8), (Count(70, 9, 8),)),  # a lone event
            ((1, 9, 8, 70), (Count(70, 9, 8),)),  # a group of one
            ((2, 9, 8, 70, 80), (Count(70, 9, 8), Count(80, 9, 8))),
            ((), ()),  # the kernel has given the event up
        ],
    )
    def test_what_the_kernel_gives_is_a_lone_event_or_a_group(
        self, numbers: tuple[int, ...], counts: tuple[Count, ...]
    ) -> None:
        assert counts_of(struct.pack(f"={len(numbers)}Q", *numbers)) == counts

    @pytest.mark.parametrize(
        ("number", "text"),
        [
            (errno.EACCES, "no permission; valid: root, CAP_PERFMON, or a lower /proc/sys/kernel/perf_event_paranoid"),
            (errno.EPERM, "no permission; valid: root, CAP_PERFMON, or a lower /proc/sys/kernel/perf_event_paranoid"),
            (errno.ENOENT, "no such counter here (many virtual machines have none)"),
            (errno.EOPNOTSUPP, "no such counter here (many virtual machines have none)"),
            (errno.ENOSYS, "this kernel has no perf_event_open"),
            (errno.EMFILE, "too many open files; valid: a higher limit (LimitNOFILE= of the service)"),
            (errno.EBUSY, "Device or resource busy"),
        ],
    )
    def test_a_refusal_says_what_it_means(self, number: int, text: str) -> None:
        error = PerfError(number, "event 0:0x1")
        assert str(error) == f"event 0:0x1 cannot be counted: {text}"
        assert error.errno == number


class TestInstructionCounters:
    def test_a_cgroup_is_counted_by_one_group_of_events_on_each_cpu(self, tmp_path: Path) -> None:
        values = {INSTRUCTIONS: 300, CYCLES: 200}
        perf = EmulatedPerf(lambda event, _of, cpu: Count(values[event] + cpu, 100, 50))
        counters = InstructionCounters.of_cgroup(perf, tmp_path, (0, 3, 3))
        assert counters.read() == {
            0: Executed(Count(300, 100, 50), Count(200, 100, 50)),
            3: Executed(Count(303, 100, 50), Count(203, 100, 50)),
        }
        assert perf.reads == 2
        counters.close()
        assert not perf.opened
        assert counters.read() == {}

    def test_threads_are_counted_by_two_lone_events_each(self) -> None:
        perf = EmulatedPerf(lambda event, of, _cpu: Count(of + (event == CYCLES), 100, 50))
        counters = InstructionCounters.of_threads(perf, (70, 80, 70))
        assert counters.read()[80] == Executed(Count(80, 100, 50), Count(81, 100, 50))
        assert {opened[1:] for opened in perf.opened.values()} == {(70, -1), (80, -1)}
        counters.close()
        assert not perf.opened

    def test_an_offline_cpu_and_a_thread_that_has_ended_are_left_out(self, tmp_path: Path) -> None:
        perf = EmulatedPerf(refused=lambda _event, of, cpu: errno.ENODEV if cpu == 1 else errno.ESRCH if of == 7 else 0)
        assert InstructionCounters.of_cgroup(perf, tmp_path, (0, 1, 2)).read().keys() == {0, 2}
        assert InstructionCounters.of_threads(perf, (7, 8)).read().keys() == {8}

    def test_a_thread_that_ends_between_its_two_events_is_left_out_and_closed(self) -> None:
        perf = EmulatedPerf(refused=lambda event, of, _cpu: errno.ESRCH if (event, of) == (CYCLES, 7) else 0)
        counters = InstructionCounters.of_threads(perf, (7, 8))
        assert counters.read().keys() == {8}
        counters.close()
        assert not perf.opened

    @pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EMFILE])
    def test_after_a_refusal_nothing_stays_open(self, tmp_path: Path, number: int) -> None:
        perf = EmulatedPerf(refused=lambda event, of, cpu: number if event == CYCLES and 2 in (of, cpu) else 0)
        with pytest.raises(PerfError):
            InstructionCounters.of_cgroup(perf, tmp_path, (0, 1, 2))
        with pytest.raises(PerfError):
            InstructionCounters.of_threads(perf, (1, 2))
        assert not perf.opened

    def test_a_cgroup_that_has_vanished_counts_nothing(self, tmp_path: Path) -> None:
        assert InstructionCounters.of_cgroup(EmulatedPerf(), tmp_path / "job_17", (0,)).read() == {}

    def test_a_cgroup_that_cannot_be_opened_is_the_same_line_for_each_job(self, tmp_path: Path) -> None:
        said = set()
        for name in ("job_17", "job_18"):
            (tmp_path / name).write_text("no directory")
            with pytest.raises(PerfError) as refused:
                InstructionCounters.of_cgroup(EmulatedPerf(), tmp_path / name, (0,))
            said.add(str(refused.value))
        assert len(said) == 1

    def test_a_cgroup_that_vanishes_while_its_events_are_opened_counts_nothing(self, tmp_path: Path) -> None:
        directory = tmp_path / "job_17"
        directory.mkdir()

        def vanish(_event: Event, _of: int, cpu: int) -> int:
            if cpu == 1:
                directory.rmdir()
                return errno.ENOENT
            return 0

        perf = EmulatedPerf()
        perf.open(CYCLES, 0, 0)
        perf.refused = vanish
        assert InstructionCounters.of_cgroup(perf, directory, (0, 1)).read() == {}
        assert len(perf.opened) == 1  # the other one's

    def test_an_event_that_gives_no_count_is_left_out(self, tmp_path: Path) -> None:
        perf = EmulatedPerf(lambda event, _of, cpu: None if (event, cpu) == (CYCLES, 1) else Count(1, 1, 1))
        assert InstructionCounters.of_cgroup(perf, tmp_path, (0, 1)).read().keys() == {0}


def a_pmu(devices: Path, name: str, kind: int, events: dict[str, str], cpumask: str = "0,28") -> None:
    pmu = devices / name
    for part in ("events", "format"):
        (pmu / part).mkdir(parents=True)
    (pmu / "type").write_text(f"{kind}\n")
    (pmu / "cpumask").write_text(f"{cpumask}\n")
    (pmu / "format" / "event").write_text("config:0-7\n")
    (pmu / "format" / "umask").write_text("config:8-15,32-39\n")
    for event, text in events.items():
        (pmu / "events" / event).write_text(f"{text}\n")
        (pmu / "events" / f"{event}.scale").write_text("6.103515625e-5\n")
        (pmu / "events" / f"{event}.unit").write_text("MiB\n")


CAS_COUNTS = {"cas_count_read": "event=0x04,umask=0x03", "cas_count_write": "event=0x04,umask=0x10c"}


class TestMemoryControllers:
    def test_every_controller_of_intel_is_counted_on_each_socket_in_lines_of_64_bytes(self, tmp_path: Path) -> None:
        for number in (0, 1):
            a_pmu(tmp_path, f"uncore_imc_{number}", 20 + number, CAS_COUNTS | {"clockticks": "event=0x0"})
        a_pmu(tmp_path, "cpu", 4, {"instructions": "event=0xc0"})
        events = discover(tmp_path)
        assert [(event.name, event.event, event.cpus) for event in events[:2]] == [
            ("uncore_imc_0/cas_count_read", Event(20, 0x304), (0, 28)),
            ("uncore_imc_0/cas_count_write", Event(20, 0x1_0000_0C04), (0, 28)),  # the umask's bits from 32 on
        ]
        assert len(events) == 4
        assert all(event.bytes_per_count == pytest.approx(64) for event in events)

    def test_both_schedulers_of_a_channel_are_counted(self, tmp_path: Path) -> None:
        schedulers = {f"cas_count_{way}_sch{number}": "event=0x05" for way in ("read", "write") for number in (0, 1)}
        a_pmu(tmp_path, "uncore_imc_0", 20, schedulers)
        assert len(discover(tmp_path)) == 4

    def test_free_running_counters_serve_only_where_there_are_no_others(self, tmp_path: Path) -> None:
        free = {"read": "event=0xff,umask=0x20", "write": "event=0xff,umask=0x21"}
        a_pmu(tmp_path, "uncore_imc_free_running_0", 30, free | {"dclk": "event=0xff"})
        assert {event.name for event in discover(tmp_path)} == {
            "uncore_imc_free_running_0/read",
            "uncore_imc_free_running_0/write",
        }
        a_pmu(tmp_path, "uncore_imc_0", 20, CAS_COUNTS)
        assert {event.event.kind for event in discover(tmp_path)} == {20}

    def test_every_channel_of_amd_is_counted(self, tmp_path: Path) -> None:
        for number in (0, 11):
            a_pmu(tmp_path, f"amd_umc_{number}", 40 + number, {}, cpumask="0")
        assert [(event.event, event.cpus, event.bytes_per_count) for event in discover(tmp_path)] == [
            (Event(40, 0x0A), (0,), 64.0),
            (Event(51, 0x0A), (0,), 64.0),
        ]

    @pytest.mark.parametrize("file", ["type", "cpumask", "format/event", "events/cas_count_read.unit"])
    @pytest.mark.parametrize("text", [None, "?", "dB"])
    def test_an_event_with_a_file_that_is_not_as_expected_is_left_out(
        self, tmp_path: Path, file: str, text: str | None
    ) -> None:
        a_pmu(tmp_path, "uncore_imc_0", 20, {"cas_count_read": "event=0x04"})
        (tmp_path / "uncore_imc_0" / file).unlink()
        if text is not None:
            (tmp_path / "uncore_imc_0" / file).write_text(text)
        assert discover(tmp_path) == ()

    def test_what_the_controllers_moved_is_read_and_an_offline_socket_left_out(self, tmp_path: Path) -> None:
        a_pmu(tmp_path, "amd_umc_0", 40, {}, cpumask="0-1")
        perf = EmulatedPerf(
            lambda _event, _of, cpu: Count(5 + cpu, 9, 9), lambda _event, _of, cpu: errno.ENODEV if cpu == 1 else 0
        )
        controllers = MemoryControllers(perf, discover(tmp_path))
        assert controllers.read() == {"amd_umc_0@0": ControllerCount(Count(5, 9, 9), 64.0)}
        controllers.close()
        assert not perf.opened

    def test_after_a_refusal_nothing_stays_open(self, tmp_path: Path) -> None:
        a_pmu(tmp_path, "amd_umc_0", 40, {})
        perf = EmulatedPerf(refused=lambda _event, _of, cpu: errno.EACCES if cpu == 28 else 0)
        with pytest.raises(PerfError):
            MemoryControllers(perf, discover(tmp_path))
        assert not perf.opened


class TestNodeCounters:
    def node(self, tmp_path: Path, perf: EmulatedPerf, log: list[str], looks: Iterable[float] = ()) -> NodeCounters:
        """Between two readings a second passes, and in them no time, or the clock shows `looks`: two of a reading."""
        seconds = iter(looks or (number // 2 for number in range(200)))
        return NodeCounters(perf, tmp_path / "resctrl", tmp_path / "devices", log.append, clock=lambda: next(seconds))

    def resctrl(self, tmp_path: Path, features: str) -> Path:
        (tmp_path / "resctrl" / "info" / "L3_MON").mkdir(parents=True)
        (tmp_path / "resctrl" / "info" / "L3_MON" / "mon_features").write_text(features)
        group = tmp_path / "resctrl" / "sns_17"
        directory = group / "mon_data" / "mon_L3_00"
        directory.mkdir(parents=True)
        for feature in features.split():
            (directory / feature).write_text("0\n")
        return group

    def test_a_reading_that_took_long_is_taken_again(self, tmp_path: Path) -> None:
        group = self.resctrl(tmp_path, "mbm_total_bytes\n")
        looks = (0, 0.5, 0.5, 0.501, 1, 1.5, 1.5, 2.0, 2.0, 2.5, 2.5, 2.6, 2.6, 3.1)
        job = self.node(tmp_path, EmulatedPerf(), [], looks).job(group=group)
        assert job.read().at_s == pytest.approx(0.5005)
        assert job.read().at_s == pytest.approx(2.55), "the quickest of five counts"

    def test_a_job_has_its_ipc_and_its_bandwidth(self, tmp_path: Path) -> None:
        log: list[str] = []
        group = self.resctrl(tmp_path, "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n")
        a_pmu(tmp_path / "devices", "amd_umc_0", 40, {}, cpumask="0")
        now = {INSTRUCTIONS: 0, CYCLES: 0}
        perf = EmulatedPerf(lambda event, *_: Count(now.get(event, 0), now[CYCLES], now[CYCLES]))
        node = self.node(tmp_path, perf, log)
        job = node.job(cgroup=tmp_path, cpus=(0, 1), group=group)
        before = job.read()
        now |= {INSTRUCTIONS: 300, CYCLES: 200}
        (group / "mon_data" / "mon_L3_00" / "mbm_total_bytes").write_text("5000000000\n")
        assert rates(before, job.read()) == Rates(1, 1.5, 5.0)
        assert log == []
        assert node.memory is not None
        assert node.memory.read().keys() == {"amd_umc_0@0"}
        job.close()
        node.close()
        assert not perf.opened

    @pytest.mark.parametrize("features", ["", "llc_occupancy\n"])
    def test_where_resctrl_shows_no_bandwidth_the_nodes_is_that_of_a_job_alone_there(
        self, tmp_path: Path, features: str
    ) -> None:
        group = self.resctrl(tmp_path, features) if features else None
        a_pmu(tmp_path / "devices", "amd_umc_0", 40, {}, cpumask="0")
        now = {"moved": 0}
        perf = EmulatedPerf(lambda *_: Count(now["moved"], now["moved"], now["moved"]))
        node = self.node(tmp_path, perf, [])
        alone, beside = node.job(group=group, is_alone=True), node.job(group=group)
        before = alone.read(), beside.read()
        now["moved"] = 3 * 10**9
        found = [rates(first, job.read()) for first, job in zip(before, (alone, beside), strict=True)]
        assert found[0].bandwidth_gbps == pytest.approx(3 * 64 / found[0].elapsed_s)
        assert found[1].bandwidth_gbps is None

    def test_a_node_without_any_counter_says_so_once_and_goes_on(self, tmp_path: Path) -> None:
        log: list[str] = []
        perf = EmulatedPerf(refused=lambda *_: errno.ENOENT)
        node = self.node(tmp_path, perf, log)
        for _ in range(3):
            job = node.job(cgroup=tmp_path, cpus=(0,), threads=(1,), group=tmp_path / "resctrl" / "sns_17")
            assert rates(job.read(), job.read()) == Rates(1, None, None)
            job.close()
        assert node.memory is None
        assert [line.split(":")[0] for line in log] == [
            "this node measures no IPC",
            "resctrl monitors no bandwidth on this node",
            "the memory controllers of this node are not counted",
        ]
        assert all("\n" not in line for line in log)

    def test_where_whole_cpus_may_not_be_counted_the_threads_are_and_it_is_said_once(self, tmp_path: Path) -> None:
        log: list[str] = []
        perf = EmulatedPerf(refused=lambda _event, _of, cpu: errno.EACCES if cpu >= 0 else 0)
        node = self.node(tmp_path, perf, log)
        for _ in range(2):
            assert node.job(cgroup=tmp_path, cpus=(0,), threads=(70,)).read().executed.keys() == {70}
        (said,) = [line for line in log if "threads" in line]
        assert said.startswith(
            "the threads of a job are counted instead of its cgroup: event 0:0x1 cannot be counted: no perm"
        )

    def test_a_job_without_cpus_of_its_own_is_counted_on_all(self, tmp_path: Path) -> None:
        perf = EmulatedPerf()
        self.node(tmp_path, perf, []).job(cgroup=tmp_path)
        assert {cpu for _, _, cpu in perf.opened.values()} == set(range(os.sysconf("SC_NPROCESSORS_CONF")))

    def test_refused_threads_leave_the_job_without_ipc(self, tmp_path: Path) -> None:
        log: list[str] = []
        perf = EmulatedPerf(refused=lambda _event, of, _cpu: errno.EMFILE if of == 70 else 0)
        assert self.node(tmp_path, perf, log).job(threads=(70,)).read().executed == {}
        assert any(line.startswith("the IPC of a job is not measured: ") for line in log)

    def test_occupancy_alone_is_read_and_the_missing_bandwidth_said(self, tmp_path: Path) -> None:
        log: list[str] = []
        group = self.resctrl(tmp_path, "llc_occupancy\n")
        assert self.node(tmp_path, EmulatedPerf(), log).job(group=group).read().traffic == {0: CacheTraffic(None, 0)}
        assert any(line.endswith("mon_features lists llc_occupancy") for line in log)

    def test_memory_controllers_that_are_refused_are_said(self, tmp_path: Path) -> None:
        log: list[str] = []
        a_pmu(tmp_path / "devices", "amd_umc_0", 40, {})
        perf = EmulatedPerf(refused=lambda event, *_: errno.EACCES if event.kind == 40 else 0)
        assert self.node(tmp_path, perf, log).memory is None
        assert any("memory controllers of this node are not counted: event 40:0xa" in line for line in log)


def test_a_list_of_the_kernel_is_read() -> None:
    assert numbers_of("0-3,8\n") == (0, 1, 2, 3, 8)
    assert numbers_of("\n") == ()
    with pytest.raises(ValueError, match="invalid literal"):
        numbers_of("none")


def busy(seconds: float) -> list[str]:
    """A command that uses so much CPU time."""
    return [sys.executable, "-c", f"import time\nwhile time.process_time() < {seconds}: pass"]


def clock_ns(counters: InstructionCounters) -> int:
    return sum(executed.instructions.value for executed in counters.read().values())


class SoftwarePerf(KernelPerf):
    """The kernel's perf events, with those of an IPC counted in software."""

    def open(self, event: Event, of: int, cpu: int, leader: int = -1, *, is_cgroup: bool = False) -> int:
        return super().open(SOFTWARE.get(event, event), of, cpu, leader, is_cgroup=is_cgroup)


@pytest.fixture
def perf() -> KernelPerf:
    """The kernel's perf events, if they count in software here."""
    kernel = SoftwarePerf()
    try:
        InstructionCounters.of_threads(kernel, (0,)).close()
    except PerfError as refused:
        pytest.skip(f"no perf events here: {refused}")
    return kernel


class TestOnTheKernel:
    def test_a_thread_is_counted_with_the_processes_that_it_starts(self, perf: KernelPerf) -> None:
        counters = InstructionCounters.of_threads(perf, (0,))
        before_ns = clock_ns(counters)
        subprocess.run(busy(0.2), check=True)
        assert clock_ns(counters) - before_ns >= 0.2e9
        counters.close()

    def test_a_cgroup_is_counted_on_all_cpus_and_only_what_is_in_it(self, perf: KernelPerf) -> None:
        directory = CGROUP_V2 / f"snstest{os.getpid()}"
        try:
            directory.mkdir()
        except OSError as problem:
            pytest.skip(f"no cgroup can be made in {CGROUP_V2}: {problem.strerror}")
        try:
            counters = InstructionCounters.of_cgroup(perf, directory, range(os.sysconf("SC_NPROCESSORS_CONF")))
            subprocess.run(busy(0.2), check=True)
            assert clock_ns(counters) == 0
            inside = f"import os\nopen({str(directory / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
            command = busy(0.2)
            subprocess.run([*command[:-1], inside + command[-1]], check=True)
            assert clock_ns(counters) >= 0.15e9
            counters.close()
        except PerfError as refused:
            pytest.skip(f"cgroups cannot be counted here: {refused}")
        finally:
            directory.rmdir()

    def test_a_group_of_events_is_read_at_once(self, perf: KernelPerf) -> None:
        try:
            leader = perf.open(INSTRUCTIONS, 0, 0)
        except PerfError as refused:
            pytest.skip(f"threads cannot be counted on one CPU here: {refused}")
        member = perf.open(CYCLES, 0, 0, leader)
        first, second = perf.read(leader)
        assert (first.enabled_ns, first.running_ns) == (second.enabled_ns, second.running_ns)
        for event in (member, leader):
            perf.close(event)

    def test_an_uncore_pmu_is_opened_by_what_sysfs_says_of_it(self, perf: KernelPerf, tmp_path: Path) -> None:
        msr = DEVICES / "msr"
        if not (msr / "events" / "tsc").exists():
            pytest.skip(f"{msr} is missing: no PMU here counts a whole CPU without hardware counters")
        # The time stamp counter plays the memory controller.
        kind, event = int((msr / "type").read_text()), (msr / "events" / "tsc").read_text().strip()
        a_pmu(tmp_path, "uncore_imc_0", kind, {"cas_count_read": event}, cpumask="0")
        try:
            controllers = MemoryControllers(perf, discover(tmp_path))
        except PerfError as refused:
            pytest.skip(f"whole CPUs cannot be counted here: {refused}")
        before = controllers.read()
        subprocess.run(busy(0.1), check=True)
        gbps = controllers_between(before, controllers.read(), 1.0)
        assert gbps is not None
        assert gbps > 0.1 * 64 * 0.5  # 64 bytes a tick, at 0.5 GHz or more
        controllers.close()

    def test_hardware_is_counted_or_its_absence_is_one_line(self) -> None:
        log: list[str] = []
        node = NodeCounters(KernelPerf(), Path("/none"), Path("/none"), log.append)
        job = node.job(threads=(0,))
        before = job.read()
        subprocess.run(busy(0.1), check=True)
        ipc = rates(before, job.read()).ipc
        job.close()
        if ipc is None:
            (line,) = [line for line in log if "IPC" in line]
            assert line.startswith("this node measures no IPC: event 0:0x1 cannot be counted: ")
        else:
            assert 0.01 < ipc < 10

    def test_a_thread_that_does_not_exist_is_left_out(self, perf: KernelPerf) -> None:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        assert InstructionCounters.of_threads(perf, (ended.pid,)).read() == {}
