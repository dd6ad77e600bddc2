"""A claim of a paper, what we measured, and a verdict by one rule.

A claim says that a quantity lies between two bounds. From one sample for each seed we compute the quantity's 95 %
confidence interval by Student's t. Samples of two policies are paired first, since both saw the same jobs. Verdicts:

*holds*: the whole interval is strictly between the bounds.
*does not hold*: no part of the interval is.
*cannot tell*: anything else. A single sample of a random quantity never decides.

*Draws.* Where the paper prints what one draw of random jobs gave, our mean is not what to compare it with. A draw is as
many random sequences as the authors ran, and a number computed from them: a mean, a largest, a count. A printed number
holds if it lies inside the central 90 % of our draws, and does not hold if it lies outside. A bound holds if it is true
of at least 90 % of our draws, and does not hold if it is true of at most 10 %. The distribution itself comes from a
limited number of sequences: where the draws of each half of them do not agree with the whole, we cannot tell.

*Several parts.* A sentence that says several things at once is one claim (`joint`): its verdict is the worst of theirs.

*Input.* A claim that only checks that a number which the experiment was given comes back is no success.

*Identical.* Two policies that gave the same result with every seed say nothing about their difference.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import inf, isfinite, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

CONFIDENCE = 0.95
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "cannot tell"
#: The verdicts on inputs: the number comes back as it was given, or does not, or the seeds do not suffice to tell.
INPUT, INPUT_LOST, INPUT_UNDECIDED = "input", "input, does not come back", "input, cannot tell"
_OF_INPUTS = {HOLDS: INPUT, FAILS: INPUT_LOST, UNDECIDED: INPUT_UNDECIDED}
INPUTS = frozenset(_OF_INPUTS.values())
#: The verdict on a difference between two policies that is exactly 0 with every seed.
IDENTICAL = "identical, not counted"
#: From the verdict that decides before all others to the one that decides last.
_WORST_FIRST = (FAILS, IDENTICAL, UNDECIDED, HOLDS)
#: The share of our draws inside which a printed number must lie, or of which a bound must be true.
MOST = 0.9
#: A number that is printed with few digits, or counted, equals ours if it differs by less than this share.
EQUAL = 1e-9
#: How often the weeks of a log are drawn anew, and the seed of these draws.
RESAMPLED, RESAMPLING_SEED = 10_000, 1


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval."""

    mean: float
    low: float
    high: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.mean, self.low, self.high))

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class Draws(Interval):
    """Our draws of a number: their mean and central 90 %, the draws, and those of each half of the sequences."""

    draws: NDArray[np.float64]
    halves: Sequence[NDArray[np.float64]] = ()


#: What a run says of a quantity: one sample for each seed, draws, an interval, or a number that is not random.
Quantity = NDArray[np.float64] | Interval | float


def found_of(quantity: Quantity) -> Interval:
    """What is judged of a quantity."""
    if isinstance(quantity, Interval):
        return quantity
    return exactly(quantity) if np.ndim(quantity) == 0 else interval(quantity)


def interval(samples: ArrayLike) -> Interval:
    """The mean with its confidence interval; a single sample has an unbounded interval."""
    values = np.asarray(samples, dtype=np.float64)
    mean, count = float(values.mean()), len(values)
    if count == 1:
        return Interval(mean, -inf, inf)
    half = t_quantile(count - 1) * float(values.std(ddof=1)) / sqrt(count)
    return Interval(mean, mean - half, mean + half)


def exactly(value: ArrayLike) -> Interval:
    """The interval of a quantity that is not random: just its value."""
    number = float(np.asarray(value))
    return Interval(number, number, number)


def drawn(draws: ArrayLike, halves: Sequence[NDArray[np.float64]] = ()) -> Draws:
    """Our draws of a number, and those of each half of the sequences by itself."""
    values = np.asarray(draws, dtype=np.float64)
    return Draws(float(values.mean()), *_middle(values), values, halves)


def in_pairs(columns: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> dict[str, Quantity]:
    """Samples by variant and measure as *VARIANT MEASURE*, and *ONE - OTHER MEASURE*, which compares seed by seed."""
    found: dict[str, Quantity] = {f"{name} {what}": each for name, of in columns.items() for what, each in of.items()}
    for one, other in permutations(columns, 2):
        for what in columns[one].keys() & columns[other].keys():
            found[f"{one} - {other} {what}"] = columns[one][what] - columns[other][what]
    return found


def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Student's two-sided quantile."""
    return float(stats.t.ppf((1 + confidence) / 2, freedom))


def percent_more(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how many percent `one` exceeds `other`, pair by pair; two that are both 0 do not differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        percent: NDArray[np.float64] = np.where(one == other, 0.0, 100 * (one / other - 1))
    return percent


def percent_above(one: NDArray[np.float64], other: NDArray[np.float64]) -> Interval:
    """By how many percent the sum of `one` is above that of `other`, both by week; infinite if `other` is 0.

    A log is one sample. A draw takes as many of its weeks as there are, with replacement, and compares the policies on
    the same weeks. The interval is the central 95 % of the draws (percentile bootstrap). A backlog that lasts over
    several weeks makes them alike, and the interval is then too narrow. Sums that are both 0 count as no difference.

    Source: B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapters 8 and 13.
    """

    def above(ours: NDArray[np.float64], theirs: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        more, base = ours.sum(axis) - theirs.sum(axis), theirs.sum(axis)
        percent: NDArray[np.float64] = np.where(more == 0, 0.0, 100 * more / base)
        return percent

    with np.errstate(divide="ignore", invalid="ignore"):  # sums that are 0, and scipy's own summary of infinite draws
        mean = float(above(one, other))
        draws = stats.bootstrap(
            (one, other),
            above,
            n_resamples=RESAMPLED,
            vectorized=True,
            paired=True,
            method="percentile",
            rng=np.random.default_rng(RESAMPLING_SEED),
        ).bootstrap_distribution
    # The nearest draw: between an infinite one and another there is nothing.
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="nearest")
    return Interval(mean, float(low), float(high))


@dataclass(frozen=True)
class Claim:
    """A statement of a paper: `found` should lie between `low` and `high`, or a `printed` number among our draws.

    `text` is what the paper says, `where` the place where it says so, `measure` the quantity by which we test it,
    `group` the table of the page in which it stands. The numbers of a claim of several `parts` are those of the part
    that decides.
    """

    where: str
    text: str
    measure: str
    found: Interval
    low: float = -inf
    high: float = inf
    printed: float | None = None
    is_input: bool = False
    is_difference: bool = False
    parts: tuple["Claim", ...] = ()
    group: str = ""

    @property
    def expected(self) -> str:
        """The bounds in words, or the printed number."""
        if self.printed is not None:
            return f"{self.printed:g}"
        if isfinite(self.low) and isfinite(self.high):
            return f"{self.low:g} to {self.high:g}"
        return f"above {self.low:g}" if isfinite(self.low) else f"below {self.high:g}"

    @property
    def verdict(self) -> str:
        """HOLDS, FAILS or UNDECIDED; IDENTICAL of a difference; one of INPUTS of an input."""
        if self.parts:
            return worst(part.verdict for part in self.parts)
        if self.is_difference and self.found == exactly(0.0):
            return IDENTICAL
        verdict = self._verdict()
        return _OF_INPUTS[verdict] if self.is_input else verdict

    @property
    def words(self) -> str:
        """The verdict as the page says it; of draws also in how many of them it is true."""
        if self.parts or not isinstance(self.found, Draws):
            return self.verdict
        draws = self.found.draws
        if self.printed is None:
            return f"{self.verdict}: true of {100 * self._true(draws):.0f} % of our draws"
        larger, smaller = (100 * float(each.mean()) for each in (draws > self.printed, draws < self.printed))
        if self._of_draws(draws) == HOLDS:
            lies = "inside 90 % of our draws"
        elif larger > smaller:
            lies = f"outside, {larger:.0f} % of our draws are larger"
        else:
            lies = f"outside, {smaller:.0f} % of our draws are smaller"
        disagree = ", but the halves of our sequences do not agree" if self.verdict == UNDECIDED else ""
        return f"{self.verdict}: {lies}{disagree}"

    def _verdict(self) -> str:
        """HOLDS, FAILS or UNDECIDED."""
        if isinstance(self.found, Draws):
            whole, *parts = (self._of_draws(draws) for draws in (self.found.draws, *self.found.halves))
            return UNDECIDED if any(part != whole for part in parts) else whole
        if self.found.low > self.low and self.found.high < self.high:
            return HOLDS
        return FAILS if self.found.high <= self.low or self.found.low >= self.high else UNDECIDED

    def _of_draws(self, draws: NDArray[np.float64]) -> str:
        if self.printed is None:
            true = self._true(draws)
            return HOLDS if true >= MOST else FAILS if true <= 1 - MOST + EQUAL else UNDECIDED
        low, high = _middle(draws)
        slack = EQUAL * max(abs(self.printed), 1.0)
        return HOLDS if low - slack <= self.printed <= high + slack else FAILS

    def _true(self, draws: NDArray[np.float64]) -> float:
        """The share of the draws that lie between the bounds."""
        return float(((draws > self.low) & (draws < self.high)).mean())


def joint(text: str, *parts: Claim) -> Claim:
    """One claim of several parts: it holds only if each of them does."""
    decisive = min(parts, key=lambda part: _WORST_FIRST.index(part.verdict))
    return replace(decisive, text=text, parts=parts)


def worst(verdicts: Iterable[str]) -> str:
    """The verdict that decides where all of them must be good."""
    return min(verdicts, key=_WORST_FIRST.index)


def count_verdicts(claims: Iterable[Claim]) -> dict[str, int]:
    """How many claims have each verdict; inputs and identical results only where there are any."""
    verdicts = [claim.verdict for claim in claims]
    counts = {verdict: verdicts.count(verdict) for verdict in (*_OF_INPUTS, IDENTICAL, *_OF_INPUTS.values())}
    return {verdict: count for verdict, count in counts.items() if count or verdict in _OF_INPUTS}


def _middle(draws: NDArray[np.float64]) -> tuple[float, float]:
    """The central 90 % of the draws."""
    low, high = np.quantile(draws, [(1 - MOST) / 2, (1 + MOST) / 2])
    return float(low), float(high)
