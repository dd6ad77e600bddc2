"""What is known of a program: run times at several scales, and its curves over the ways of the last-level cache.

A curve is linear between its points and constant beyond them. IPC measures performance: a program that keeps a share
of its best IPC with fewer ways keeps the same share of its speed.

Source: Spread-n-Share (SC'19), sections 4.1 and 4.3 (figure 10).
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

#: A single way costs a cache its associativity: programs need at least two (section 5.1).
FEWEST_WAYS = 2
#: Performances that differ by less than this share are equal: interpolation and rounding leave such differences.
SAME = 1e-9


class Provenance(StrEnum):
    """Where a number comes from."""

    PRINTED = "printed"
    """The paper states it."""
    MEASURED = "measured"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Provenances:
    """Where the numbers of one run come from: its time and each of its curves."""

    time_s: Provenance
    ipc: Provenance
    bandwidth_gbps: Provenance


@dataclass(frozen=True, slots=True)
class Run:
    """The measured behaviour at one (processes, scale): exclusive run time, and IPC and GB/s per node by ways.

    `ways` increases strictly; the three tuples have the same length, at least two.
    """

    processes: int
    scale: int
    time_s: float
    ways: tuple[int, ...]
    ipc: tuple[float, ...]
    bandwidth_gbps: tuple[float, ...]
    provenance: Provenances

    @property
    def full_ipc(self) -> float:
        """F-IPC: the best IPC of the curve, which is the one with all ways."""
        return max(self.ipc)

    def ipc_at(self, ways: float) -> float:
        """The IPC with this many ways."""
        return _interpolated(self.ways, self.ipc, ways)

    def bandwidth_at(self, ways: float) -> float:
        """GB/s per node with this many ways."""
        return _interpolated(self.ways, self.bandwidth_gbps, ways)

    def kept_at(self, ways: float) -> float:
        """The share of its best performance that the program keeps with this many ways, at most 1."""
        return self.ipc_at(ways) / self.full_ipc

    def fewest_ways(self, alpha: float, at_most: int) -> int | None:
        """The fewest ways, from 2 to `at_most`, whose IPC reaches T-IPC = alpha * F-IPC; None when there are none."""
        for ways in range(FEWEST_WAYS, at_most + 1):
            if self.kept_at(ways) >= alpha - SAME:
                return ways
        return None


@dataclass(frozen=True, slots=True)
class Program:
    """A program's profile: one run per (processes, scale), in that order; each process count has a run at scale 1."""

    name: str
    runs: tuple[Run, ...]
    source: str = ""
    max_scale: int | None = None

    @property
    def process_counts(self) -> tuple[int, ...]:
        """The process counts that are profiled, ascending."""
        return tuple(dict.fromkeys(run.processes for run in self.runs))

    def at(self, processes: int, *, nearest: bool = False) -> dict[int, Run]:
        """The runs of a process count by scale; empty when it is not profiled.

        With `nearest` they are the runs of the nearest profiled count (the smaller of two).
        """
        if nearest and self.runs:
            processes = min(self.process_counts, key=lambda count: (abs(count - processes), count))
        return {run.scale: run for run in self.runs if run.processes == processes}


def _interpolated(points: Sequence[int], values: Sequence[float], at: float) -> float:
    right = bisect_left(points, at)
    if right == 0:
        return values[0]
    if right == len(points):
        return values[-1]
    if points[right] == at:
        return values[right]
    share = (at - points[right - 1]) / (points[right] - points[right - 1])
    return values[right - 1] + share * (values[right] - values[right - 1])
