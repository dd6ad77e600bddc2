"""Machine types: what a processor offers to resctrl, the mount options, and the kernel that shows it.

The sizes are those of real processors. Source: the kernel's arch/x86/kernel/cpu/resctrl/core.c, and trees that were
captured on such machines.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

#: Without CAT a job may use every way of the last-level cache.
PAPER_WAYS = 20
#: The paper's node: two sockets, 118.26 GB/s together (STREAM), 2.4 GHz (Spread-n-Share, figure 3, section 6.1).
PAPER_SOCKET_GBPS = 59.13
PAPER_GHZ = 2.4

#: The order of the lines was turned round when the schema list came.
LINES_REVERSED_SINCE = (5, 15)
#: info/L3/sparse_masks, and several task ids in one write.
SPARSE_MASKS_SINCE = (6, 7)
#: Masks and values are no longer padded.
UNPADDED_SINCE = (6, 16)


class BandwidthKind(StrEnum):
    """The unit of the numbers on a line MB."""

    PERCENT = "percent"
    EIGHTH_GBPS = "eighth_gbps"
    MIB = "mib"


@dataclass(frozen=True)
class CacheType:
    """A cache that can be partitioned. With CDP it has half the CLOSIDs, and two lines in schemata."""

    name: str
    mask: int
    least_bits: int
    closids: int
    domains: tuple[int, ...]
    domain_bytes: int
    shareable: int = 0
    is_sparse: bool = False
    is_cdp_capable: bool = False

    @property
    def bits(self) -> int:
        """The number of ways."""
        return self.mask.bit_length()


@dataclass(frozen=True)
class BandwidthType:
    """Memory bandwidth that can be capped, in each domain."""

    kind: BandwidthKind
    least: int
    step: int
    most: int
    closids: int
    domains: tuple[int, ...]
    is_linear: bool = True
    throttle_mode: str | None = "max"


@dataclass(frozen=True)
class MonitoringType:
    """What is counted for each RMID in each L3 domain, in multiples of `unit_bytes`.

    `limbo_s`: how long an RMID cannot be used after its group was removed, because the cache still holds its lines.
    `is_configurable`: AMD's choice of the events that mbm_total_bytes and mbm_local_bytes count.
    """

    rmids: int
    domains: tuple[int, ...]
    features: tuple[str, ...] = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")
    unit_bytes: int = 65536
    threshold_bytes: int = 98304
    limbo_s: float = 0.0
    is_configurable: bool = False


@dataclass(frozen=True)
class MachineType:
    """A machine. `llc_domains`: its last-level caches, among which its CPUs are divided in order."""

    name: str
    cpus: int
    llc_domains: tuple[int, ...]
    caches: tuple[CacheType, ...] = ()
    bandwidth: BandwidthType | None = None
    monitoring: MonitoringType | None = None
    options: frozenset[str] = frozenset()
    kernel: tuple[int, int] = (6, 8)
    llc_ways: int = PAPER_WAYS
    llc_way_bytes: int = 2883584
    peak_gbps: float = PAPER_SOCKET_GBPS
    frequency_ghz: float = PAPER_GHZ

    def mounted_with(self, *options: str) -> "MachineType":
        """The same machine with these mount options: cdp, cdpl2, mba_MBps.

        Raises:
            ValueError: one line that names the option and the machine that lacks it.
        """
        missing = sorted(set(options) - self.possible_options)
        if missing:
            possible = ", ".join(sorted(self.possible_options)) or "none"
            raise ValueError(f"mount option {missing[0]}: machine {self.name} has not got it; valid: {possible}")
        return replace(self, options=frozenset(options))

    def fitted(self, cpus: int, domains: tuple[int, ...]) -> "MachineType":
        """The same kind of machine with so many CPUs and these cache ids: those of a real one, for a foreign client."""
        monitoring, bandwidth = self.monitoring, self.bandwidth
        return replace(
            self,
            cpus=cpus,
            llc_domains=domains,
            caches=tuple(replace(cache, domains=domains) for cache in self.caches),
            bandwidth=bandwidth and replace(bandwidth, domains=domains),
            monitoring=monitoring and replace(monitoring, domains=domains),
        )

    @property
    def possible_options(self) -> frozenset[str]:
        """The mount options that this machine has."""
        names = {"L3": "cdp", "L2": "cdpl2"}
        options = {names[cache.name] for cache in self.caches if cache.is_cdp_capable}
        counts_bandwidth = self.monitoring is not None and any(
            feature.startswith("mbm_") for feature in self.monitoring.features
        )
        if self.bandwidth is not None and self.bandwidth.is_linear and counts_bandwidth:
            options.add("mba_MBps")
        return frozenset(options)

    def has_cdp(self, cache: CacheType) -> bool:
        """Whether code and data of this cache are apart."""
        return {"L3": "cdp", "L2": "cdpl2"}[cache.name] in self.options

    @property
    def is_in_mib(self) -> bool:
        """Whether MB is in MiB/s, which the kernel's software controller keeps (mba_MBps)."""
        return "mba_MBps" in self.options

    def cpus_of(self, domain: int) -> range:
        """The CPUs at this last-level cache."""
        at, count = self.llc_domains.index(domain), len(self.llc_domains)
        return range(at * self.cpus // count, (at + 1) * self.cpus // count)


_SOCKETS = (0, 1)
_PERCENT = BandwidthType(BandwidthKind.PERCENT, least=10, step=10, most=100, closids=16, domains=_SOCKETS)
_L3 = CacheType(
    "L3", mask=0xFFFFF, least_bits=1, closids=16, domains=_SOCKETS, domain_bytes=20 * 2883584, is_cdp_capable=True
)

#: The main machine of the tests: two sockets, 20 ways, 16 CLOSIDs. The two highest ways are used by devices, too.
XEON = MachineType(
    "xeon",
    cpus=28,
    llc_domains=_SOCKETS,
    caches=(replace(_L3, shareable=0xC0000),),
    bandwidth=_PERCENT,
    monitoring=MonitoringType(rmids=192, domains=_SOCKETS),
)
#: A Haswell: at least two ways, no bandwidth control, the first form of the file schemata.
HASWELL = MachineType(
    "haswell",
    cpus=24,
    llc_domains=_SOCKETS,
    caches=(
        CacheType(
            "L3",
            mask=0xFFFFF,
            least_bits=2,
            closids=4,
            domains=_SOCKETS,
            domain_bytes=20 * 1572864,
            shareable=0xC0000,
        ),
    ),
    monitoring=MonitoringType(rmids=48, domains=_SOCKETS),
    kernel=(4, 14),
    llc_way_bytes=1572864,
)
#: An Atom: its second-level cache only, in clusters; nothing is monitored.
L2_ONLY = MachineType(
    "l2",
    cpus=4,
    llc_domains=(0,),
    caches=(CacheType("L2", mask=0xFF, least_bits=1, closids=4, domains=(0, 1), domain_bytes=1048576),),
    kernel=(4, 14),
    llc_ways=8,
    llc_way_bytes=131072,
    peak_gbps=20.0,
)
#: AMD: any mask is valid, the empty one too; bandwidth in eighths of GB/s; cache ids with gaps; events can be chosen.
AMD = MachineType(
    "amd",
    cpus=32,
    llc_domains=(0, 1, 8, 9),
    caches=(
        CacheType(
            "L3",
            mask=0xFFFF,
            least_bits=0,
            closids=16,
            domains=(0, 1, 8, 9),
            domain_bytes=33554432,
            is_sparse=True,
            is_cdp_capable=True,
        ),
    ),
    bandwidth=BandwidthType(
        BandwidthKind.EIGHTH_GBPS,
        least=0,
        step=1,
        most=2048,
        closids=16,
        domains=(0, 1, 8, 9),
        is_linear=False,
        throttle_mode=None,
    ),
    monitoring=MonitoringType(rmids=256, domains=(0, 1, 8, 9), unit_bytes=64, is_configurable=True),
    kernel=(6, 16),
    llc_ways=16,
    llc_way_bytes=2097152,
    peak_gbps=50.0,
)
#: A recent Xeon, whose masks may have holes; both caches can be partitioned, the second-level one by fewer CLOSIDs.
SPARSE = MachineType(
    "sparse",
    cpus=32,
    llc_domains=_SOCKETS,
    caches=(
        CacheType(
            "L3",
            mask=0xFFFF,
            least_bits=1,
            closids=15,
            domains=_SOCKETS,
            domain_bytes=16 * 2621440,
            shareable=0x8001,
            is_sparse=True,
            is_cdp_capable=True,
        ),
        CacheType(
            "L2",
            mask=0xFFFF,
            least_bits=1,
            closids=8,
            domains=tuple(range(0, 32, 2)),
            domain_bytes=2097152,
            is_cdp_capable=True,
        ),
    ),
    bandwidth=replace(_PERCENT, closids=15),
    monitoring=MonitoringType(rmids=512, domains=_SOCKETS, unit_bytes=106496, threshold_bytes=655360),
    llc_ways=16,
    llc_way_bytes=2621440,
)

#: By the name that --machine takes.
MACHINES: Mapping[str, MachineType] = {
    machine.name: machine
    for machine in (
        XEON,
        replace(XEON, name="xeon-cdp", options=frozenset({"cdp"})),
        replace(XEON, name="xeon-mib", options=frozenset({"mba_MBps"})),
        replace(XEON, name="xeon-without-mb", bandwidth=None),
        replace(XEON, name="xeon-without-l3", caches=()),
        replace(XEON, name="xeon-without-monitoring", monitoring=None),
        HASWELL,
        L2_ONLY,
        AMD,
        SPARSE,
    )
}
