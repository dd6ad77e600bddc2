"""Sets of cache ways as bit masks: bit 0 is the lowest way."""

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """Adjacent ways: the lowest of them, and how many there are."""

    start: int
    ways: int

    @property
    def end(self) -> int:
        """The first way behind the span."""
        return self.start + self.ways

    @property
    def mask(self) -> int:
        """The ways as a mask."""
        return window(self.start, self.ways)


def window(start: int, ways: int) -> int:
    """The mask of this many ways from `start` on."""
    return ((1 << ways) - 1) << start


def spans(mask: int) -> list[Span]:
    """The mask as spans, lowest first; between two of them there is at least one way that it lacks."""
    found, start = [], 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        mask >>= skipped
        ways = (~mask & (mask + 1)).bit_length() - 1
        found.append(Span(start + skipped, ways))
        mask >>= ways
        start += skipped + ways
    return found


def union(masks: Iterable[int]) -> int:
    """The ways that are in any of the masks."""
    result = 0
    for mask in masks:
        result |= mask
    return result


def is_usable(mask: int, least_bits: int, *, is_sparse: bool) -> bool:
    """Whether the kernel takes the mask: no holes unless the machine is sparse, `least_bits` in the lowest span."""
    found = spans(mask)
    return bool(found) and found[0].ways >= least_bits and (is_sparse or len(found) == 1)
