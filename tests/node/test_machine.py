"""What a resctrl tree says about its machine."""

import math
from dataclasses import astuple
from pathlib import Path

import pytest
from resctrl_trees import AMD_L3, AMD_MB, INTEL_L3, INTEL_MB, MONITORING, amd, build, intel

from slurm_sns.errors import SnsError
from slurm_sns.node.resctrl.machine import Bandwidth, Cache, Machine, MonitoringFeatures, discover

FOUR, FEATURES = (0, 1, 2, 3), ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")


def _percent(domains: tuple[int, ...], closids: int) -> Bandwidth:
    return Bandwidth("percent", 10, 10, 100, domains, closids)


# Read in the trees by hand.
CAPTURED = {
    "resctrl.full": Machine(
        (Cache("L3", 0xFFFFF, 1, 0xC0000, False, FOUR, 16),),
        _percent(FOUR, 8),
        MonitoringFeatures(FEATURES, 192, FOUR),
        8,
    ),
    "resctrl.l2": Machine((Cache("L2", 0xFF, 1, 0, False, (0, 1), 4),), None, None, 4),
    "resctrl.l2cdp": Machine(
        (
            Cache("L3", 0xFFF, 1, 0x400, False, (0,), 4),
            Cache("L2CODE", 0xFFFFF, 1, 0, False, FOUR, 4),
            Cache("L2DATA", 0xFFFFF, 1, 0, False, FOUR, 4),
        ),
        None,
        None,
        4,
    ),
    "resctrl.l2l3mb": Machine(
        (
            Cache("L3", 0xFFFFF, 1, 0xC0001, False, (0, 1), 15),
            Cache("L2", 0xFFFF, 1, 0, False, tuple(range(40)), 8),
        ),
        _percent((0, 1), 15),
        MonitoringFeatures(FEATURES, 512, (0, 1)),
        8,
    ),
    "resctrl.nol3": Machine((), _percent(FOUR, 8), MonitoringFeatures(FEATURES, 192, FOUR), 8),
    "resctrl.nol3.mbps": Machine(
        (), Bandwidth("mib", 1, 1, 2**32 - 1, FOUR, 8), MonitoringFeatures(FEATURES, 160, FOUR), 8
    ),
    "resctrl.nomb": Machine(
        (Cache("L3", 0xFFFFF, 2, 0xC0000, False, FOUR, 16),), None, MonitoringFeatures(FEATURES, 192, FOUR), 16
    ),
    "resctrl.nomb.cdp": Machine(
        (
            Cache("L3CODE", 0xFFFFF, 1, 0xC0000, False, FOUR, 8),
            Cache("L3DATA", 0xFFFFF, 1, 0xC0000, False, FOUR, 8),
        ),
        None,
        MonitoringFeatures(FEATURES, 176, FOUR),
        8,
    ),
}


@pytest.mark.parametrize("name", CAPTURED)
def test_each_captured_machine_is_seen_as_it_is(name: str, captured: Path) -> None:
    assert discover(captured / name) == CAPTURED[name]


def test_no_captured_tree_is_left_out(captured: Path) -> None:
    assert {path.name for path in captured.iterdir()} == set(CAPTURED)


def test_an_intel_machine_of_two_sockets_is_seen(tmp_path: Path) -> None:
    machine = discover(intel(tmp_path / "tree"))
    assert [astuple(cache) for cache in machine.caches] == [("L3", 0xFFFFF, 2, 0xC0000, False, (0, 1), 16)]
    assert machine.bandwidth == _percent((0, 1), 8)
    assert machine.closids == 8


def test_an_amd_machine_has_sparse_masks_gaps_in_its_domains_and_bandwidth_in_eighths(tmp_path: Path) -> None:
    machine = discover(amd(tmp_path / "tree"))
    [cache] = machine.caches
    assert cache.is_sparse
    assert cache.domains == (0, 8)
    assert cache.least_bits == 1, "a mask may be empty on AMD, but a job has a way"
    assert machine.bandwidth == Bandwidth("eighth_gbps", 1, 1, 2048, (0, 8), 16)


@pytest.mark.parametrize(("shown", "most"), [(4096, 4096), (800, 2048)])
def test_amds_largest_bandwidth_is_what_the_root_group_shows_unless_somebody_lowered_it(
    shown: int, most: int, tmp_path: Path
) -> None:
    amd(tmp_path / "tree")
    (tmp_path / "tree" / "schemata").write_text(f"L3:0=ffff\nMB:0={shown}\n")
    bandwidth = discover(tmp_path / "tree").bandwidth
    assert bandwidth
    assert bandwidth.most == most


def test_a_kernel_without_the_newer_files_is_taken_to_want_contiguous_masks(tmp_path: Path) -> None:
    old = {name: value for name, value in AMD_L3.items() if name not in {"sparse_masks", "shareable_bits"}}
    [cache] = discover(build(tmp_path / "tree", "L3:0=ffff\n", L3=old)).caches
    assert not cache.is_sparse
    assert cache.shareable == 0


def test_the_bandwidth_of_slow_memory_has_closids_too(tmp_path: Path) -> None:
    shown = "L3:0=ffff\nMB:0=2048\nSMBA:0=2048\n"
    tree = build(tmp_path / "tree", shown, L3=AMD_L3, MB=AMD_MB, SMBA={**AMD_MB, "num_closids": 12})
    assert discover(tree).closids == 12


def test_monitoring_alone_has_the_root_groups_closid_only(tmp_path: Path) -> None:
    machine = discover(build(tmp_path / "tree", "", L3_MON=MONITORING))
    assert machine.closids == 1
    assert machine.last_level == ()


def test_the_domains_of_monitoring_are_its_directories(tmp_path: Path) -> None:
    intel(tmp_path / "tree")
    for name in ("mon_L3_00", "mon_L3_12", "mon_L3_xx", "mon_PERF_PKG_00"):
        (tmp_path / "tree" / "mon_data" / name).mkdir()
    monitoring = discover(tmp_path / "tree").monitoring
    assert monitoring
    assert monitoring.domains == (0, 12)


def test_jobs_share_l3_where_it_can_be_partitioned_and_else_l2(captured: Path) -> None:
    def last_level(name: str) -> list[str]:
        return [cache.name for cache in discover(captured / name).last_level]

    assert last_level("resctrl.l2cdp") == ["L3"]
    assert last_level("resctrl.l2") == ["L2"]
    assert last_level("resctrl.nomb.cdp") == ["L3CODE", "L3DATA"]
    assert last_level("resctrl.nol3") == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda root: (root / "info").rename(root / "other"),
            r"tree is not a resctrl file system: .*info is missing; ",
        ),
        (lambda root: (root / "schemata").unlink(), r"schemata cannot be read: .*; valid: a mounted resctrl"),
        (lambda root: (root / "schemata").write_text("L3 0=f\n"), r"'L3 0=f'; valid: RESOURCE:domain=value"),
        (lambda root: (root / "schemata").write_text("L3:0=xyz\n"), r"'0=xyz' for L3; valid: .* hexadecimal mask"),
        (lambda root: (root / "schemata").write_text("MB:0=1\n"), r"L3 exists, but schemata has no line L3"),
        (lambda root: (root / "schemata").write_text("L3:0=f\n"), r"MB exists, but schemata has no line MB"),
        (lambda root: (root / "info/L3/cbm_mask").write_text("-\n"), r"cbm_mask is '-'; valid: a number, base 16"),
        (lambda root: (root / "info/L3/cbm_mask").unlink(), r"cbm_mask cannot be read"),
        (lambda root: (root / "info/MB/num_closids").write_text("ä"), r"num_closids cannot be read"),
    ],
)
def test_a_tree_that_shows_nonsense_is_refused_in_one_line(change: object, message: str, tmp_path: Path) -> None:
    assert callable(change)
    change(intel(tmp_path / "tree"))
    with pytest.raises(SnsError, match=message) as refused:
        discover(tmp_path / "tree")
    assert "\n" not in str(refused.value)


class TestBandwidth:
    """Values are rounded up, so that the guarantee holds."""

    PERCENT = _percent((0,), 8)
    EIGHTHS = Bandwidth("eighth_gbps", 1, 1, 2048, (0,), 16)
    MIB = Bandwidth("mib", 1, 1, 2**32 - 1, (0,), 8)

    @pytest.mark.parametrize(
        ("gbps", "value"), [(29.5, 50), (29.6, 60), (5.9, 10), (0.1, 10), (59, 100), (80, 100), (35.4, 60)]
    )
    def test_percent_of_59_gbps_in_steps_of_10(self, gbps: float, value: int) -> None:
        assert self.PERCENT.value(gbps, 59) == value

    @pytest.mark.parametrize(("gbps", "value"), [(1, 8), (1.01, 9), (0.01, 1), (12.5, 100), (255.9, 2048), (300, 2048)])
    def test_eighths_of_a_gbps(self, gbps: float, value: int) -> None:
        assert self.EIGHTHS.value(gbps, 59) == value

    @pytest.mark.parametrize(("gbps", "value"), [(1, 954), (2**20 / 1e9, 1), (11.8, 11254)])
    def test_mib_a_second_hold_at_least_as_many_bytes(self, gbps: float, value: int) -> None:
        assert self.MIB.value(gbps, 59) == value
        assert value * 2**20 >= gbps * 1e9 > (value - 1) * 2**20

    @pytest.mark.parametrize("gbps", [0, math.inf])
    @pytest.mark.parametrize("bandwidth", [PERCENT, EIGHTHS, MIB])
    def test_a_job_without_a_need_is_not_limited(self, gbps: float, bandwidth: Bandwidth) -> None:
        assert bandwidth.value(gbps, 59) == bandwidth.most

    def test_a_step_that_does_not_divide_100_ends_at_100(self) -> None:
        assert Bandwidth("percent", 12, 12, 100, (0,), 8).value(58, 59) == 100


def test_least_bits_and_steps_are_those_of_the_machine(tmp_path: Path) -> None:
    fine = dict(INTEL_MB) | {"bandwidth_gran": 5, "min_bandwidth": 15}
    machine = discover(build(tmp_path / "tree", "L3:0=fffff\nMB:0=100\n", L3=INTEL_L3, MB=fine))
    assert machine.bandwidth == Bandwidth("percent", 15, 5, 100, (0,), 8)
    assert machine.caches[0].least_bits == 2
