"""Degradation factors and rates over many instances, and the confidence intervals of what is computed from them.

The traces of one seed at several loads have the same jobs, so they are not independent of each other: they are one
unit. A statistic's interval is by the jackknife: from its values with one unit left out at a time, and Student's t. For
a mean of units it is the ordinary interval of a mean.

Source of the jackknife: J. Tukey, "Bias and confidence in not-quite large samples", Annals of Mathematical Statistics
29 (1958).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.pages.judge import Claim, Interval, t_quantile
from slurm_sns.sim.reproduce.dfrs.runs import PAPER_NAMES, Found

#: One row for each unit, one column for each load.
Values = NDArray[np.float64]
#: Values by algorithm.
Table = Mapping[str, Values]
Statistic = Callable[[Table], float]

#: A printed figure is met if ours is within this factor of it.
NEAR = 2.0
#: What is printed as 0.00 is met by anything that is rounded to it.
ROUNDED_TO_ZERO = 0.005
#: What the pages say of the intervals.
INTERVALS = (
    "Intervals are over the seeds, by the jackknife and Student's t: all traces of a seed have the same jobs. The "
    "interval of a largest value says little."
)


def stretches(units: Iterable[Sequence[Found]]) -> dict[str, Values]:
    """The largest stretch of each algorithm; `units` has the instances of each unit, by load."""
    rows = [[found["algorithms"] for found in unit] for unit in units]
    return {
        name: np.array([[algorithms[name]["max_stretch"] for algorithms in row] for row in rows], dtype=np.float64)
        for name in rows[0][0]
    }


def degradation(largest: Table) -> dict[str, Values]:
    """The degradation factors: each algorithm's largest stretch over the smallest of the paper's nine algorithms."""
    best = np.min([largest[name] for name in PAPER_NAMES], axis=0)
    return {name: values / best for name, values in largest.items()}


def jackknife(statistic: Statistic, table: Table) -> Interval:
    """The statistic of all units with its 95 % confidence interval; of a single unit the interval is unbounded."""
    whole = statistic(table)
    count = len(next(iter(table.values())))
    if count == 1:
        return Interval(whole, -inf, inf)
    without = [statistic({name: np.delete(values, unit, axis=0) for name, values in table.items()})
               for unit in range(count)]  # fmt: skip
    spread = np.array(without) - np.mean(without)
    half = t_quantile(count - 1) * sqrt((count - 1) / count * float((spread**2).sum()))
    return Interval(whole, whole - half, whole + half)


# --- statistics


def average(name: str) -> Statistic:
    """The mean over all instances."""
    return lambda table: float(table[name].mean())


def deviation(name: str) -> Statistic:
    """The standard deviation over all instances."""
    return lambda table: float(table[name].std())


def largest(name: str) -> Statistic:
    """The largest value of all instances."""
    return lambda table: float(table[name].max())


def difference(one: str, other: str) -> Statistic:
    """By how much the mean of one algorithm exceeds that of another."""
    return lambda table: float(table[one].mean() - table[other].mean())


def ratio(one: str, other: str) -> Statistic:
    """The mean of one algorithm over that of another; nan if that is 0."""

    def of_means(table: Table) -> float:
        below = float(table[other].mean())
        return float(table[one].mean()) / below if below else nan

    return of_means


def gap(worse: Sequence[str], better: Sequence[str]) -> Statistic:
    """The smallest mean of `worse` minus the largest of `better`: above 0 if all of these have smaller means."""
    return lambda table: (
        min(float(table[name].mean()) for name in worse) - max(float(table[name].mean()) for name in better)
    )


# --- claims on printed figures


def near(where: str, text: str, measure: str, printed: float, found: Interval) -> Claim:
    """The claim that our figure is within a factor of `NEAR` of the printed one."""
    if printed == 0:
        return Claim(where, text, measure, found, -ROUNDED_TO_ZERO, ROUNDED_TO_ZERO)
    return Claim(where, text, measure, found, printed / NEAR, printed * NEAR)


def neighbours(printed: Mapping[str, float]) -> list[tuple[str, str]]:
    """Pairs (smaller, larger) of algorithms between whose printed figures no other figure lies.

    Algorithms with equal figures are no pair; each of them is paired with the next smaller and the next larger ones.
    """
    levels = sorted(set(printed.values()))
    by_level = [[name for name, value in printed.items() if value == level] for level in levels]
    return [(smaller, larger) for below, above in pairwise(by_level) for smaller in below for larger in above]
