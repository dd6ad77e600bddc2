"""Judge what a paper prints of one draw of random jobs by the distribution of our own draws.

A draw is as many random sequences as the authors ran, and a number computed from them: a mean, a largest, a count.

*A printed number* holds if it lies inside the central 90 % of our draws, and does not hold if it lies outside.
*A statement* (a bound) holds if it is true of at least 90 % of our draws, and does not hold if it is true of at most
10 %; between these we cannot tell.

The distribution itself comes from a limited number of sequences. Draws are therefore made from all of them, and from
each half by itself. Where the halves do not agree with the whole, we cannot tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slurm_sns.sim.reproduce.claims import FAILS, HOLDS, UNDECIDED, Interval

#: The share of our draws inside which a printed number must lie, or of which a statement must be true.
MOST = 0.9
#: A number that is printed with few digits, or counted, equals ours if it differs by less than this share.
EQUAL = 1e-9
HALVES_DIFFER = ", but the halves of our sequences do not agree"
DRAW_RULE = (
    "The authors show one draw of random jobs; we show the distribution of ours. A printed number holds if it lies "
    "inside the central 90 % of our draws, and does not hold if it lies outside. A statement (above, below) holds if "
    "it is true of 90 % of our draws or more, does not hold if it is true of 10 % or fewer; between these we cannot "
    "tell. Nor can we if the two halves of our sequences, each by itself, do not give the same verdict as all of them."
)


@dataclass(frozen=True)
class PrintedNumber:
    """A number that the paper prints of one draw, and our draws of it: all of them, and those of each half."""

    where: str
    text: str
    measure: str
    printed: float
    draws: NDArray[np.float64]
    halves: Sequence[NDArray[np.float64]] = ()

    @property
    def expected(self) -> str:
        """The printed number."""
        return f"{self.printed:g}"

    @property
    def found(self) -> Interval:
        """The mean of our draws and their central 90 %."""
        return _middle(self.draws)

    @property
    def verdict(self) -> str:
        """HOLDS, FAILS or UNDECIDED."""
        whole, *parts = (self._is_inside(draws) for draws in (self.draws, *self.halves))
        return UNDECIDED if any(part != whole for part in parts) else HOLDS if whole else FAILS

    @property
    def words(self) -> str:
        """The verdict, and where in our draws the printed number lies."""
        larger, smaller = (100 * float(each.mean()) for each in (self.draws > self.printed, self.draws < self.printed))
        if self._is_inside(self.draws):
            lies = "inside 90 % of our draws"
        elif larger > smaller:
            lies = f"outside, {larger:.0f} % of our draws are larger"
        else:
            lies = f"outside, {smaller:.0f} % of our draws are smaller"
        return f"{self.verdict}: {lies}{HALVES_DIFFER if self.verdict == UNDECIDED else ''}"

    def _is_inside(self, draws: NDArray[np.float64]) -> bool:
        middle = _middle(draws)
        slack = EQUAL * max(abs(self.printed), 1.0)
        return middle.low - slack <= self.printed <= middle.high + slack


@dataclass(frozen=True)
class Statement:
    """A bound that the paper states, and our draws of the bounded quantity: all of them, and those of each half."""

    where: str
    text: str
    measure: str
    draws: NDArray[np.float64]
    low: float = -np.inf
    high: float = np.inf
    halves: Sequence[NDArray[np.float64]] = ()

    @property
    def expected(self) -> str:
        """The bounds in words."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            return f"{self.low:g} to {self.high:g}"
        return f"above {self.low:g}" if np.isfinite(self.low) else f"below {self.high:g}"

    @property
    def found(self) -> Interval:
        """The mean of our draws and their central 90 %."""
        return _middle(self.draws)

    @property
    def verdict(self) -> str:
        """HOLDS, FAILS or UNDECIDED."""
        whole, *parts = (self._judged(draws) for draws in (self.draws, *self.halves))
        return UNDECIDED if any(part != whole for part in parts) else whole

    @property
    def words(self) -> str:
        """The verdict, and in how many of our draws the statement is true."""
        return f"{self.verdict}: true of {100 * self._true(self.draws):.0f} % of our draws"

    def _true(self, draws: NDArray[np.float64]) -> float:
        return float(((draws > self.low) & (draws < self.high)).mean())

    def _judged(self, draws: NDArray[np.float64]) -> str:
        true = self._true(draws)
        return HOLDS if true >= MOST else FAILS if true <= 1 - MOST + EQUAL else UNDECIDED


def _middle(draws: ArrayLike) -> Interval:
    """The mean of the draws and their central 90 %."""
    values = np.asarray(draws, dtype=np.float64)
    low, high = np.quantile(values, [(1 - MOST) / 2, (1 + MOST) / 2])
    return Interval(float(values.mean()), float(low), float(high))
