"""How many ways a sampled run has now, and averages by the ways that a run had. Pure.

Source: Spread-n-Share (SC'19), section 5.1: 2, 4, 8 and all ways, 5 s each, in turn over the whole run. The turn
follows the wall clock, so that all nodes of a run change together without talking to each other.

An interval between two readings counts only while the ways were the same, and only if something was executed in it: a
suspended job has no IPC of 0. What a node cannot measure stays unknown (None), whatever the other values are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor

from slurm_sns.node.counters.readings import Rates
from slurm_sns.wire.values import Point


def turns(sample_ways: Sequence[int], all_ways: int, least_ways: int = 1) -> tuple[int, ...]:
    """The numbers of ways to sample on a cache of which a job can have `all_ways`, each once; the last are all."""
    fewer = {max(ways, least_ways) for ways in sample_ways}
    return (*sorted(ways for ways in fewer if ways < all_ways), all_ways)


def ways_at(now_s: float, sample_s: float, turn: Sequence[int]) -> int:
    """The number of ways at this moment; `now_s` are Unix seconds, `sample_s` is how long each turn takes."""
    return turn[floor(now_s / sample_s) % len(turn)]


def next_turn_s(now_s: float, sample_s: float) -> float:
    """In how many seconds the next turn begins; more than 0."""
    return (floor(now_s / sample_s) + 1) * sample_s - now_s


@dataclass(frozen=True, slots=True)
class PointSum:
    """Sums over the intervals with one number of ways; a value and the seconds in which it was known."""

    seconds: float = 0.0
    ipc_seconds: float = 0.0
    ipc_sum: float = 0.0
    gbps_seconds: float = 0.0
    gbps_sum: float = 0.0

    def with_interval(self, rates: Rates) -> "PointSum":
        """The sums with one more interval."""
        seconds, ipc, gbps = rates.elapsed_s, rates.ipc, rates.bandwidth_gbps
        return PointSum(
            self.seconds + seconds,
            self.ipc_seconds + (seconds if ipc is not None else 0.0),
            self.ipc_sum + (ipc or 0.0) * seconds,
            self.gbps_seconds + (seconds if gbps is not None else 0.0),
            self.gbps_sum + (gbps or 0.0) * seconds,
        )


#: The sums by number of ways.
Sums = Mapping[int, PointSum]


def with_interval(sums: Sums, ways: int, rates: Rates, *, measures_ipc: bool) -> Sums:
    """The sums with what happened between two readings at this number of ways.

    `measures_ipc` is false on a node that counts no instructions: whether anything was executed is not known there.
    """
    is_idle = rates.ipc is None and (measures_ipc or rates.bandwidth_gbps is None)
    if rates.elapsed_s <= 0 or is_idle:
        return sums
    return {**sums, ways: sums.get(ways, PointSum()).with_interval(rates)}


def points(sums: Sums) -> tuple[Point, ...]:
    """The averages, by increasing number of ways."""
    return tuple(
        Point(
            ways,
            each.seconds,
            each.ipc_sum / each.ipc_seconds if each.ipc_seconds else None,
            each.gbps_sum / each.gbps_seconds if each.gbps_seconds else None,
        )
        for ways, each in sorted(sums.items())
    )
