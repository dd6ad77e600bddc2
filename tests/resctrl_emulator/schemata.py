"""The lines of the file schemata: which the kernel accepts, with which message it refuses, and how it writes them.

All lines of a write are parsed before any is applied. There is one exception, the kernel's own: with mba_MBps a value
of MB counts at once, even if a later line is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from errno import EINVAL
from re import compile as pattern
from typing import Protocol

from resctrl_emulator.machines import (
    LINES_REVERSED_SINCE,
    UNPADDED_SINCE,
    BandwidthKind,
    BandwidthType,
    CacheType,
    MachineType,
)
from resctrl_emulator.refusal import Refusal

#: What MB shows with mba_MBps until somebody writes it: no limit.
UNLIMITED_MIB = 2**32 - 1
_SPACES = " \t\n\v\f\r"
_DECIMAL = pattern(r"\+?[0-9]+\Z")
_HEX = pattern(r"\+?(?:0[xX])?[0-9a-fA-F]+\Z")
#: What the suffixes CODE and DATA need in a column of names.
_SUFFIX_WIDTH = 4


@dataclass
class Resource:
    """One line of schemata: its values by CLOSID and domain. `peers`: the lines of the same cache (CDP), itself too."""

    name: str
    kind: CacheType | BandwidthType
    closids: int
    default: int
    values: dict[int, dict[int, int]] = field(default_factory=dict)
    peers: tuple["Resource", ...] = ()

    @property
    def domains(self) -> tuple[int, ...]:
        """Its domains, ascending."""
        return self.kind.domains


class Holder(Protocol):
    """The group whose schemata are written."""

    closid: int
    is_exclusive: bool


def resources_of(machine: MachineType) -> tuple[Resource, ...]:
    """The lines of this machine's schemata, in their order."""
    lines: list[Resource] = []
    for cache in machine.caches:
        if machine.has_cdp(cache):
            pair = [Resource(cache.name + part, cache, cache.closids // 2, cache.mask) for part in ("CODE", "DATA")]
            for resource in pair:
                resource.peers = tuple(pair)
            lines += pair if machine.kernel >= LINES_REVERSED_SINCE else reversed(pair)
        else:
            resource = Resource(cache.name, cache, cache.closids, cache.mask)
            resource.peers = (resource,)
            lines.append(resource)
    if machine.bandwidth is not None:
        default = UNLIMITED_MIB if machine.is_in_mib else machine.bandwidth.most
        lines.append(Resource("MB", machine.bandwidth, machine.bandwidth.closids, default))
    return tuple(reversed(lines) if machine.kernel >= LINES_REVERSED_SINCE else lines)


def name_width(machine: MachineType, resources: tuple[Resource, ...]) -> int:
    """The width of the names: a cache that could have CDP keeps room for the suffix."""
    could = {
        cache.name: _SUFFIX_WIDTH for cache in machine.caches if cache.is_cdp_capable and not machine.has_cdp(cache)
    }
    return max((len(resource.name) + could.get(resource.name, 0) for resource in resources), default=0)


def lines_text(machine: MachineType, resources: tuple[Resource, ...], closid: int) -> str:
    """What the file schemata of a group reads."""
    is_padded = machine.kernel < UNPADDED_SINCE
    width = max((_data_width(resource.kind) for resource in resources), default=0) if is_padded else 0
    return _text(
        name_width(machine, resources),
        {
            resource.name: {
                domain: f"{value:0{width or 1}x}" if isinstance(resource.kind, CacheType) else f"{value:{width}d}"
                for domain, value in resource.values[closid].items()
            }
            for resource in resources
            if closid < resource.closids
        },
    )


def size_text(machine: MachineType, resources: tuple[Resource, ...], closid: int) -> str:
    """What the file size reads: bytes of a cache, and for MB the value itself."""
    shown = {}
    for resource in resources:
        values = resource.values[closid]
        kind = resource.kind
        if isinstance(kind, CacheType):
            values = {domain: kind.domain_bytes // kind.bits * mask.bit_count() for domain, mask in values.items()}
        shown[resource.name] = {domain: str(value) for domain, value in values.items()}
    return _text(name_width(machine, resources), shown)


def _text(width: int, lines: Mapping[str, Mapping[int, str]]) -> str:
    return "".join(
        f"{name:>{width}}:{';'.join(f'{domain}={value}' for domain, value in values.items())}\n"
        for name, values in lines.items()
    )


def _data_width(kind: CacheType | BandwidthType) -> int:
    if isinstance(kind, CacheType):
        return -(-kind.bits // 4)
    return len(str(kind.most))


@dataclass(frozen=True)
class Lines:
    """Parses a write for one group; `others` are the other groups, whose masks it may not overlap."""

    resources: tuple[Resource, ...]
    group: Holder
    others: tuple[Holder, ...]
    is_in_mib: bool

    def parse(self, text: str) -> dict[str, dict[int, int]]:
        """The new values by resource and domain.

        Raises:
            Refusal: EINVAL with the kernel's message.
        """
        staged: dict[str, dict[int, int]] = {}
        for line in text.split("\n"):
            name, colon, values = line.partition(":")
            name = name.strip(_SPACES)
            if not colon:
                raise Refusal(EINVAL, "Missing ':'")
            if not values:
                raise Refusal(EINVAL, f"Missing '{name}' value")
            self._line(self._resource(name), values, staged.setdefault(name, {}))
        return staged

    def _resource(self, name: str) -> Resource:
        for resource in self.resources:
            if resource.name == name and self.group.closid < resource.closids:
                return resource
        raise Refusal(EINVAL, f"Unknown or unsupported resource name '{name}'")

    def _line(self, resource: Resource, values: str, staged: dict[int, int]) -> None:
        rest = values
        while rest:
            part, _, rest = rest.partition(";")
            number, equals, value = part.partition("=")
            if not equals or not _DECIMAL.match(number):
                raise Refusal(EINVAL, "Missing '=' or non-numeric domain")
            domain = int(number)
            if domain not in resource.domains:
                raise Refusal(EINVAL, "")  # the kernel gives no reason
            if domain in staged:
                raise Refusal(EINVAL, f"Duplicate domain {domain}")
            value = value.strip(_SPACES)
            if isinstance(resource.kind, CacheType):
                staged[domain] = self._mask(resource, resource.kind, domain, value)
            elif self.is_in_mib:
                resource.values[self.group.closid][domain] = _number(value)
            else:
                staged[domain] = _bandwidth(resource.kind, value)

    def _mask(self, resource: Resource, cache: CacheType, domain: int, text: str) -> int:
        mask = _checked_mask(cache, text)
        overlaps = [
            other
            for other in self.others
            if any(peer.values[other.closid][domain] & mask for peer in resource.peers if other.closid < peer.closids)
        ]
        if any(other.is_exclusive for other in overlaps):
            raise Refusal(EINVAL, "Overlaps with exclusive group")
        if self.group.is_exclusive and (overlaps or mask & cache.shareable):
            raise Refusal(EINVAL, "Overlaps with other group")
        return mask


def _checked_mask(cache: CacheType, text: str) -> int:
    if not _HEX.match(text) or int(text, 16) >= 1 << 64:
        raise Refusal(EINVAL, f"Non-hex character in the mask {text}")
    mask = int(text, 16)
    if (not mask and cache.least_bits) or mask > cache.mask:
        raise Refusal(EINVAL, "Mask out of range")
    first_run = mask & ~(mask + lowest_bit(mask))
    if mask != first_run and not cache.is_sparse:
        raise Refusal(EINVAL, f"The mask {mask:x} has non-consecutive 1-bits")
    if first_run.bit_count() < cache.least_bits:
        raise Refusal(EINVAL, f"Need at least {cache.least_bits} bits in the mask")
    return mask


def lowest_bit(mask: int) -> int:
    """The lowest bit that is set."""
    return mask & -mask


def _bandwidth(kind: BandwidthType, text: str) -> int:
    value = _number(text)
    if not kind.least <= value <= kind.most:
        raise Refusal(EINVAL, f"MB value {value} out of range [{kind.least},{kind.most}]")
    return -(-value // kind.step) * kind.step


def _number(text: str) -> int:
    if not _DECIMAL.match(text) or int(text) >= 1 << 32:
        raise Refusal(EINVAL, f"Invalid MB value {text}")
    return int(text)


def cap_gbps(kind: BandwidthKind, value: int, peak_gbps: float) -> float:
    """The GB/s that a value of MB leaves a group in one domain.

    On Intel's processors the percentage is that of the delay between core and cache; here it is that of the peak.
    """
    match kind:
        case BandwidthKind.PERCENT:
            return peak_gbps * value / 100
        case BandwidthKind.EIGHTH_GBPS:
            return value / 8
        case BandwidthKind.MIB:
            return value * 2**20 / 1e9
