"""Intervals of ratios over weeks, by a paired bootstrap: weeks are drawn again, with all that was measured in them.

Few weeks make a plain percentile interval too narrow. Its percentiles are therefore moved outwards as far as Student's
t is wider than the normal distribution for so many weeks (the expanded percentile interval; T. Hesterberg, What
Teachers Should Know About the Bootstrap, The American Statistician 69 (2015), section 5.3).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from slurm_sns.sim.site_report.windows import FEWEST

DRAWS = 2000
#: The part outside of an interval, half of it at each end.
OUTSIDE = 0.05

Floats = NDArray[np.float64]


class RatioInterval(NamedTuple):
    """The ends of a 95 % interval."""

    low: float
    high: float

    @property
    def is_below_0(self) -> bool:
        """Whether all of it is below 0."""
        return self.high < 0

    @property
    def is_above_0(self) -> bool:
        """Whether all of it is above 0."""
        return self.low > 0


def ratio_interval(above: Floats, below: Floats, seed: int) -> RatioInterval | None:
    """The interval of sum(above) / sum(below), both by week; None for fewer than `FEWEST` weeks with any `below`."""
    there = below > 0
    above, below = above[there], below[there]
    weeks = len(below)
    if weeks < FEWEST:
        return None
    drawn = np.random.default_rng(seed).integers(0, weeks, (DRAWS, weeks))
    ratios = above[drawn].sum(axis=1) / below[drawn].sum(axis=1)
    outside = stats.norm.cdf(np.sqrt(weeks / (weeks - 1)) * stats.t.ppf(OUTSIDE / 2, weeks - 1))
    low, high = np.quantile(ratios, [outside, 1 - outside])
    return RatioInterval(float(low), float(high))
