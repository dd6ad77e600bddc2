"""Confidence intervals for one long log: its weeks (or days) are drawn with replacement, again and again.

A log is one sample. The sums of a policy over each week are kept; a draw takes as many weeks as there are and compares
the policies on the same weeks. The interval is the central 95 % of the draws (percentile bootstrap). A backlog that
lasts over several weeks makes them alike, and the interval is then too narrow.

Source: B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapters 8 and 13.
"""

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.reproduce.claims import CONFIDENCE, Interval

DRAWS, SEED = 10_000, 1


def percent_above(one: NDArray[np.float64], other: NDArray[np.float64]) -> Interval:
    """By how many percent the sum of `one` is above that of `other`, both by week; infinite if `other` is 0.

    Both 0 count as no difference.
    """
    weeks = len(one)
    drawn = np.random.default_rng(SEED).integers(weeks, size=(DRAWS, weeks))
    draws = _percent(one[drawn].sum(axis=1), other[drawn].sum(axis=1))
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="nearest")
    return Interval(float(_percent(one.sum(), other.sum())), float(low), float(high))


def _percent(one: NDArray[np.float64] | float, other: NDArray[np.float64] | float) -> NDArray[np.float64]:
    above = np.asarray(one) - np.asarray(other)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative: NDArray[np.float64] = np.where(above == 0, 0.0, 100 * above / np.asarray(other))
    return relative
