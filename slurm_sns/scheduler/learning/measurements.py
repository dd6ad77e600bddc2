"""What the reports about a run say: its run time, points of its curves, and how it behaved beside others.

A run time is that of a run which succeeded, was alone on each of its nodes, kept its ways, was never suspended, and
whose agents were there from its beginning to its end: the longest time of its nodes. Points are averages over its
nodes, weighted by seconds. The order of the reports makes no difference, to the last digit.

Source: Spread-n-Share (SC'19), sections 4.2, 5.1 and 5.2.
"""

from collections.abc import Collection, Mapping
from math import fsum, isfinite
from typing import NamedTuple

from slurm_sns.policies.spread_n_share.drift import Monitored
from slurm_sns.policies.spread_n_share.evidence import FEWEST_POINTS, Evidence, Measurement
from slurm_sns.scheduler.learning.values import RunToLearn
from slurm_sns.wire.values import Point, RunReport


class Averages(NamedTuple):
    """What was measured with so many ways: for how long on all nodes together, and averages per node."""

    seconds: float
    ipc: float | None
    bandwidth_gbps: float | None


def averages(reports: Collection[RunReport]) -> dict[int, Averages]:
    """The averages over the nodes, by ways; what was measured where the cache is not partitioned is left out."""
    by_ways: dict[int, list[Point]] = {}
    for report in reports:
        for point in report.points:
            if point.ways > 0 and point.seconds > 0:
                by_ways.setdefault(point.ways, []).append(point)
    return {
        ways: Averages(
            fsum(point.seconds for point in points),
            _mean([(point.ipc, point.seconds) for point in points]),
            _mean([(point.bandwidth_gbps, point.seconds) for point in points]),
        )
        for ways, points in sorted(by_ways.items())
    }


def _mean(weighed: Collection[tuple[float | None, float]]) -> float | None:
    """The mean of the values that were measured, weighed by seconds; None if none was, or if it is no number."""
    measured = [(value, seconds) for value, seconds in weighed if value is not None]
    if not measured:
        return None
    total_s = fsum(seconds for _, seconds in measured)
    mean = fsum(value * (seconds / total_s) for value, seconds in measured)
    return mean if isfinite(mean) else None


def run_time_s(run: RunToLearn, reports: Collection[RunReport]) -> float | None:
    """The run time of a run that has succeeded, None if it was disturbed or was not seen from its beginning."""
    if run.was_suspended or not all(each.was_alone and each.is_whole and not each.was_sampled for each in reports):
        return None
    longest_s = max((each.ran_s for each in reports), default=0.0)
    return longest_s if longest_s > 0 else None


def why_useless(run: RunToLearn, reports: Collection[RunReport]) -> str:
    """Why an exploring run gave no measurement, although it succeeded and all its nodes have reported."""
    shared = sorted(each.node for each in reports if not each.was_alone)
    cut = sorted(each.node for each in reports if not each.is_whole)
    if shared:
        return f"another job was on {','.join(shared)}"
    if run.step is not None and run.step.samples:
        found = ", ".join(map(str, averages(reports))) or "no number"
        return f"it was measured with {found} of ways; at least {FEWEST_POINTS} and all {run.ways} are needed"
    if run.was_suspended:
        return "it was suspended"
    return f"an agent was not there all the time: {','.join(cut)}" if cut else "its run time is not known"


def sampled(run: RunToLearn, reports: Collection[RunReport]) -> Measurement | None:
    """The curves that an exploring run with changing ways gave.

    None where another job was on one of its nodes, or where a curve would have no end: it was not measured with all of
    its ways, or only with these. So a program that ends before each number of ways has had its turn gives none.
    """
    if not all(each.was_alone for each in reports):
        return None
    measured = {
        ways: (each.ipc, each.bandwidth_gbps)
        for ways, each in averages(reports).items()
        if each.ipc is not None and each.bandwidth_gbps is not None and each.ipc > 0
    }
    if len(measured) < FEWEST_POINTS or max(measured) < run.ways:
        return None
    return Measurement(
        run.scale,
        None,
        {ways: ipc for ways, (ipc, _) in measured.items() if ipc is not None},
        {ways: gbps for ways, (_, gbps) in measured.items() if gbps is not None},
    )


def timed(run: RunToLearn, reports: Collection[RunReport], before: Evidence | None) -> Measurement | None:
    """The run time of a run that nothing disturbed, None for any other.

    Where its curves have a point at the ways that it had (`before` is the evidence at its scale), it adds to that, too.
    """
    time_s = run_time_s(run, reports)
    if time_s is None:
        return None
    known = before.ipc if before is not None and before.is_sampled else {}
    more = {ways: each for ways, each in averages(reports).items() if ways in known}
    complete = {
        ways: (each.ipc, each.bandwidth_gbps)
        for ways, each in more.items()
        if each.ipc is not None and each.bandwidth_gbps is not None and each.ipc > 0
    }
    ipc: Mapping[int, float] = {ways: value for ways, (value, _) in complete.items() if value is not None}
    gbps: Mapping[int, float] = {ways: value for ways, (_, value) in complete.items() if value is not None}
    return Measurement(run.scale, time_s, ipc, gbps)


def monitored(run: RunToLearn, reports: Collection[RunReport]) -> Monitored | None:
    """How an ordinary run behaved with the number of ways that it had for longest; None if nothing was measured."""
    found = averages(reports)
    time_s = run_time_s(run, reports)
    if not found:
        return None if time_s is None else Monitored(run.scale, run.ways, None, None, time_s)
    ways = max(found, key=lambda each: (found[each].seconds, each))
    return Monitored(run.scale, ways, found[ways].ipc, found[ways].bandwidth_gbps, time_s)
