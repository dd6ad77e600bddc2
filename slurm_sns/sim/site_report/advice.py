"""What an admin is advised: which partitions to manage, and the interval between two cycles.

That jobs would wait less or longer is said only where the interval of the difference lies on one side of 0, and only
where the simulation of Slurm alone comes near what was recorded: what it gets wrong there, it may get wrong of
slurm_sns, too.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from slurm_sns.sim.site_report.comparison import Compared
from slurm_sns.sim.site_report.windows import FEWEST

Verdict = Literal["manage", "do not manage", "nothing to gain", "cannot tell"]
#: A partition whose jobs wait less on average, by the record and in the simulation, has nothing to gain.
SHORT_WAIT_S = 60
#: A partition is not worth it where the submit filter would leave so many of its jobs to Slurm.
LEAST_MANAGED = 0.5
#: Simulated and recorded waits are near each other up to this factor, or up to NEAR_S.
NEAR_FACTOR, NEAR_S = 2.0, 300
#: What a longer interval may cost in mean wait.
DEARER = 0.01


class PartitionAdvice(NamedTuple):
    """The advice on one partition, and why."""

    partition: str
    verdict: Verdict
    why: str


def is_near(recorded_s: float, simulated_s: float) -> bool:
    """Whether a simulated mean wait resembles the recorded one."""
    low, high = sorted((recorded_s, simulated_s))
    return high - low <= NEAR_S or high <= NEAR_FACTOR * low


def advise(found: Compared, managed: float | None) -> PartitionAdvice:
    """The advice on a partition; `managed` is the part of its jobs that the submit filter would manage, if known."""
    verdict: Verdict = "cannot tell"
    recorded_s, slurm_s, interval = found.recorded[0], found.slurm[0], found.interval
    if managed is not None and managed < LEAST_MANAGED:
        verdict, why = "do not manage", f"the submit filter would leave {1 - managed:.0%} of its jobs to Slurm"
    elif max(recorded_s, slurm_s) < SHORT_WAIT_S:
        verdict, why = "nothing to gain", "its jobs hardly wait"
    elif interval is None:
        why = f"too few weeks for an interval: at least {FEWEST} are needed"
    elif not (interval.is_below_0 or interval.is_above_0):
        why = "the interval of the difference lies on both sides of 0"
    elif not is_near(recorded_s, slurm_s):
        why = "the simulated Slurm is far from what was recorded"
    elif interval.is_above_0:
        verdict, why = "do not manage", "its jobs would wait longer"
    else:
        verdict, why = "manage", "its jobs would wait less"
    return PartitionAdvice(found.name, verdict, why)


def longest_interval(mean_waits_s: Mapping[int, float]) -> int:
    """The longest interval whose mean wait is at most `DEARER` above that of the shortest one."""
    shortest = min(mean_waits_s)
    return max(each for each, wait_s in mean_waits_s.items() if wait_s <= mean_waits_s[shortest] * (1 + DEARER))


def managed_partitions(advice: Sequence[PartitionAdvice]) -> list[str]:
    """Those that the advice says to manage."""
    return [each.partition for each in advice if each.verdict == "manage"]
