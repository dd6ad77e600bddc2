"""What the caches and the memory controllers of this machine let us control, read from the info directory of resctrl.

Nothing is assumed that the tree does not show: L3 or L2 only, code and data apart (CDP), no cache control, no
bandwidth control, gaps in the domain numbers. The default values are those of the kernel where an older one has no
file. Source: the kernel's Documentation/filesystems/resctrl.rst; arch/x86/kernel/cpu/resctrl/core.c for bandwidth.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slurm_sns.errors import SnsError
from slurm_sns.node.resctrl.schemata import CACHES, Schemata, parse

# AMD's limit without limitation (the kernel's 1 << BW_LEN, 11 bits; later processors have 12 and show 4096).
_EIGHTHS_MOST = 2048
# The value of an MB line that limits nothing when resctrl is mounted with mba_MBps (the kernel's U32_MAX).
_MIB_MOST = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache that can be partitioned. `mask` has a bit for each way, `domains` are the ids of its instances."""

    name: str
    mask: int
    least_bits: int
    shareable: int
    is_sparse: bool
    domains: tuple[int, ...]
    closids: int


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Memory bandwidth as MB lines give it, for each cache domain.

    `kind` is the unit: "percent" of the unthrottled bandwidth (Intel), "eighth_gbps" for 1/8 GB/s (AMD), "mib" for
    MiB/s (the mount option mba_MBps). Values are multiples of `step` from `least` to `most`; `most` limits nothing.
    """

    kind: Literal["percent", "eighth_gbps", "mib"]
    least: int
    step: int
    most: int
    domains: tuple[int, ...]
    closids: int

    def value(self, gbps: float, unthrottled_gbps: float) -> int:
        """The smallest value that leaves at least `gbps` (10^9 bytes a second) in one domain.

        `unthrottled_gbps` is what the job's cores of this domain draw when nothing limits them; percent is a part of
        that. The value is rounded up to the next step, because a smaller one would break the guarantee. Nothing is
        limited when `gbps` is 0 (no demand) or infinite.
        """
        if not 0 < gbps < math.inf:
            return self.most
        wanted = {
            "percent": 100 * gbps / unthrottled_gbps,
            "eighth_gbps": 8 * gbps,
            "mib": gbps * 1e9 / 2**20,
        }[self.kind]
        # The tolerance keeps 29.5 of 59 GB/s at 50 %: an error of floating point must not cost a whole step.
        steps = math.ceil(wanted / self.step - 1e-9)
        return min(max(steps * self.step, self.least), self.most)


@dataclass(frozen=True, slots=True)
class MonitoringFeatures:
    """What the L3 monitoring counts (`llc_occupancy`, `mbm_total_bytes`, ...) and how many groups it can tell apart."""

    features: tuple[str, ...]
    rmids: int
    domains: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """All that resctrl offers here. `closids` is the minimum over the resources; the root group has one of them."""

    caches: tuple[Cache, ...]
    bandwidth: Bandwidth | None
    monitoring: MonitoringFeatures | None
    closids: int

    @property
    def last_level(self) -> tuple[Cache, ...]:
        """The cache that jobs share: L3, else L2; two resources of equal masks where code and data are apart."""
        for level in ("L3", "L2"):
            found = tuple(cache for cache in self.caches if cache.name.startswith(level))
            if found:
                return found
        return ()


def discover(root: Path) -> Machine:
    """Read what the resctrl tree at `root` offers. SnsError in one line when it is no such tree or shows nonsense."""
    info = root / "info"
    if not info.is_dir():
        raise SnsError(
            f"{root} is not a resctrl file system: {info} is missing; "
            "valid: the directory on which resctrl is mounted (mount -t resctrl resctrl /sys/fs/resctrl)"
        )
    shown = parse(_text(root / "schemata"))
    caches = tuple(_cache(info / name, shown.get(name, {})) for name in CACHES if (info / name).is_dir())
    bandwidth = _bandwidth(info / "MB", shown.get("MB", {})) if (info / "MB").is_dir() else None
    limits = [resource.closids for resource in (*caches, bandwidth) if resource is not None]
    # Nothing here limits the bandwidth of slow memory, but each group has a CLOSID for that, too.
    if (info / "SMBA").is_dir():
        limits.append(_number(info / "SMBA" / "num_closids"))
    monitoring = _monitoring(root, shown) if (info / "L3_MON").is_dir() else None
    return Machine(caches, bandwidth, monitoring, min(limits, default=1))


def _cache(folder: Path, shown: dict[int, int]) -> Cache:
    if not shown:
        raise SnsError(f"{folder} exists, but schemata has no line {folder.name}; valid: both or none")
    return Cache(
        name=folder.name,
        mask=_number(folder / "cbm_mask", 16),
        # AMD's 0 means that a mask may be empty. A job has at least one way.
        least_bits=max(_number(folder / "min_cbm_bits"), 1),
        shareable=_number(folder / "shareable_bits", 16, missing=0),
        # Kernels before 6.7 have no such file; a contiguous mask is right on all of them.
        is_sparse=_number(folder / "sparse_masks", missing=0) == 1,
        domains=tuple(sorted(shown)),
        closids=_number(folder / "num_closids"),
    )


def _bandwidth(folder: Path, shown: dict[int, int]) -> Bandwidth:
    if not shown:
        raise SnsError(f"{folder} exists, but schemata has no line MB; valid: both or none")
    largest, domains, closids = max(shown.values()), tuple(sorted(shown)), _number(folder / "num_closids")
    # Only AMD's kernel code reports a delay that is not linear; Intel's refuses such processors.
    if not _number(folder / "delay_linear", missing=1):
        least, step = max(_number(folder / "min_bandwidth"), 1), max(_number(folder / "bandwidth_gran"), 1)
        return Bandwidth("eighth_gbps", least, step, max(largest, _EIGHTHS_MOST), domains, closids)
    # No file tells of mba_MBps, but no percentage is above 100. min_bandwidth is in percent then, and is not checked.
    if largest > 100:
        return Bandwidth("mib", 1, 1, _MIB_MOST, domains, closids)
    least, step = _number(folder / "min_bandwidth"), max(_number(folder / "bandwidth_gran"), 1)
    return Bandwidth("percent", least, step, 100, domains, closids)


def _monitoring(root: Path, shown: Schemata) -> MonitoringFeatures:
    info = root / "info" / "L3_MON"
    counted = [path.name.removeprefix("mon_L3_") for path in (root / "mon_data").glob("mon_L3_*")]
    domains = {int(number) for number in counted if number.isdecimal()}
    # A tree without mon_data (a capture): the domains of the resources that have L3's.
    for resource in ("L3", "L3DATA", "MB"):
        domains = domains or set(shown.get(resource, ()))
    return MonitoringFeatures(
        tuple(_text(info / "mon_features").split()), _number(info / "num_rmids"), tuple(sorted(domains))
    )


def _number(path: Path, base: int = 10, missing: int | None = None) -> int:
    if missing is not None and not path.exists():
        return missing
    text = _text(path).strip()
    try:
        return int(text, base)
    except ValueError:
        raise SnsError(f"{path} is {text!r}; valid: a number, base {base}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as problem:
        raise SnsError(f"{path} cannot be read: {problem}; valid: a mounted resctrl, read by root") from None
