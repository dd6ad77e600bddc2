"""The numbers that the paper on rescheduling prints, and the ranges in which ours must lie to meet them.

The ranges follow from the printed numbers by one rule (`NEAR`), not from our results.

Source: Cost-based dynamic job rescheduling (2010): sections 2.2 and 4, tables 1 and 2.
"""

from math import inf
from typing import NamedTuple

#: A printed change is met if ours has the same sign and is within this factor of it; so is a printed amount.
NEAR = 1.5
#: "Little or no adverse impact": high-priority jobs complete by less than this later, in percent. Our reading.
LITTLE_PCT = 1.0
#: The least improvements that this reproduction itself wants to see, in percent: of once-suspended and of all jobs.
OWN_SUSPENDED_PCT, OWN_ALL_PCT = 50.0, 10.0


class Range(NamedTuple):
    """Bounds, both outside the range."""

    low: float = -inf
    high: float = inf


class Column(NamedTuple):
    """A column of tables 1 and 2; times in minutes."""

    suspended: int
    completed_pct: float
    suspend_min: float
    suspended_completion_min: float
    completed: int
    completion_min: float
    utilisation_pct: float


class Tail(NamedTuple):
    """What figure 6 or 7 says of the 5 % of the jobs that take longest to complete: by how much less with restarts."""

    median_min: float
    median_pct: float
    late_min: float
    late_pct: float


WITHOUT = Column(36_459, 97.3, 1432.6, 1824.6, 840_552, 305.6, 42.3)
WITH = Column(59_875, 99.2, 44.9, 466.9, 841_074, 259.6, 43.4)
#: Jobs suspended over jobs completed, without restarts.
SUSPENDED_PCT = 4.3
#: On half of the machines: utilisation and mean completion without restarts, and the change for suspended jobs with.
HALF_UTILISATION_PCT, HALF_COMPLETION_MIN, HALF_SUSPENDED_CHANGE_PCT = 80.5, 795.6, -71.0
#: All jobs, and those that were suspended. `late` is the 95th percentile.
ALL_TAIL = Tail(-602, -25, -2268, -29)
SUSPENDED_TAIL = Tail(-5370, -65, -7154, -48)

#: Figure 2: the median of the total suspension, and the shares of suspended jobs with more than so many seconds.
MEDIAN_SUSPENSION_S, LONG_S, LONG_PCT, TAIL_S = 275, 5000, 20, 100_000
#: Figure 3: the utilisation on average, and where it typically lies.
MEAN_UTILISATION_PCT, TYPICAL_UTILISATION_PCT = 40, (20, 60)


def change_pct(after: float, before: float) -> float:
    """The change in percent."""
    return 100 * (after / before - 1)


def near(printed: float) -> Range:
    """The range that meets a printed amount or difference."""
    return Range(*sorted((printed / NEAR, printed * NEAR)))


def near_pct(printed: float) -> Range:
    """The range that meets a printed change in percent; nothing becomes less by more than 100 %."""
    low, high = near(printed)
    return Range(low if low > -100 else -inf, high)
