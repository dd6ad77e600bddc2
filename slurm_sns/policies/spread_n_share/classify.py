"""The class of a program (scaling, compact or neutral), and the bottleneck of a scaling program.

Source: Spread-n-Share (SC'19), section 4.2. The paper names a scaling program's bottleneck without saying how it is
found; the rule here is ours: `bandwidth` if at scale 1 it takes at least three quarters of a node's bandwidth, `cache`
if it needs at least half of the ways to keep 90 % of its performance, and if neither holds, the one that is nearer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from slurm_sns.policies.profile import Run
from slurm_sns.policies.spread_n_share.parameters import PAPER_BANDWIDTH_GBPS, SpreadingParameters

#: Speeds that differ by no more than this share are alike (section 4.2).
ALIKE = 0.05
BANDWIDTH_BOUND = 0.75
CACHE_BOUND = 0.5
#: The share of its performance at which figure 12 states a program's ways.
FIGURE_12_ALPHA = 0.9


class ProgramClass(StrEnum):
    """The class of a program."""

    SCALING = "scaling"
    COMPACT = "compact"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Classification:
    """A program's class at one process count.

    `ideal_scale` is the fastest scale of a scaling program; otherwise it is 1. `bottleneck` is "bandwidth", "cache" or
    "bandwidth and cache" for a scaling program; otherwise it is empty.
    """

    kind: ProgramClass
    ideal_scale: int
    bottleneck: str


def corrected_time_s(run: Run, parameters: SpreadingParameters) -> float:
    """The run time on shared nodes: the exclusive run time times the frequency factor of the scale."""
    return run.time_s * parameters.frequency_factor(run.scale)


def classify(
    runs: Mapping[int, Run],
    parameters: SpreadingParameters,
    *,
    max_scale: int | None = None,
    node_bandwidth_gbps: float = PAPER_BANDWIDTH_GBPS,
) -> Classification:
    """The class of a program from its runs by scale; scale 1 must be among them."""
    times = {scale: corrected_time_s(run, parameters) for scale, run in sorted(runs.items())}
    fastest = min(times, key=lambda scale: (times[scale], scale))
    if times[1] / times[fastest] > 1 + ALIKE:
        return Classification(ProgramClass.SCALING, fastest, bottleneck(runs[1], node_bandwidth_gbps))
    if any(time_s / times[1] > 1 + ALIKE for time_s in times.values()):
        return Classification(ProgramClass.COMPACT, 1, "")
    if parameters.unspreadable_is_compact and max_scale == 1:
        return Classification(ProgramClass.COMPACT, 1, "")
    return Classification(ProgramClass.NEUTRAL, 1, "")


def bottleneck(run: Run, node_bandwidth_gbps: float) -> str:
    """What a program is short of at scale 1."""
    all_ways = run.ways[-1]
    bandwidth = run.bandwidth_at(all_ways) / node_bandwidth_gbps / BANDWIDTH_BOUND
    cache = (run.fewest_ways(FIGURE_12_ALPHA, all_ways) or all_ways) / all_ways / CACHE_BOUND
    if bandwidth >= 1 and cache >= 1:
        return "bandwidth and cache"
    return "bandwidth" if bandwidth >= cache else "cache"
