"""A claim of a paper, our samples, and a verdict by one rule.

A claim says that a quantity lies between two bounds. From one sample for each seed we compute the quantity's 95 %
confidence interval by Student's t. Samples of two policies are paired first, since both saw the same jobs. Verdicts:

*holds*: the whole interval is strictly between the bounds.
*does not hold*: no part of the interval is.
*cannot tell*: anything else. A single sample of a random quantity never decides.

*identical*: two policies gave the same result with every seed, so that their difference says nothing about the claim.
It is not counted.

A sentence that says several things at once is one claim of several parts (`joint`): its verdict is the worst of theirs.

Where the paper prints what one draw of random jobs gave, our mean is not what to compare it with. Such a number is
judged by module draws. A claim that only checks that a number which the experiment was given comes back is an *input*:
it is no success, and is not counted as one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def interval(samples: ArrayLike) -> Interval:
    """The mean with its confidence interval; a single sample has an unbounded interval."""
    values = np.asarray(samples, dtype=np.float64)
    mean, count = float(values.mean()), len(values)
    if count == 1:
        return Interval(mean, -inf, inf)
    half = t_quantile(count - 1) * float(values.std(ddof=1)) / sqrt(count)
    return Interval(mean, mean - half, mean + half)


def exactly(value: float) -> Interval:
    """The interval of a quantity that is not random: just its value."""
    return Interval(value, value, value)


def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Student's two-sided quantile: with t = sqrt(n) tan(a), the density over the angle a is cos(a)^(n - 1)."""
    edge = np.linspace(0, np.pi / 2, 100_001)
    density = np.cos((edge[1:] + edge[:-1]) / 2) ** (freedom - 1)
    mass = np.concatenate([[0.0], np.cumsum(density)])
    return float(sqrt(freedom) * np.tan(np.interp(confidence, mass / mass[-1], edge)))


def percent_more(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how many percent `one` exceeds `other`, pair by pair."""
    return 100 * (one / other - 1)


@dataclass(frozen=True)
class Claim:
    """A statement of a paper: `found` should lie between `low` and `high`.

    `text` is what the paper says, `where` the place where it says so, `measure` the quantity by which we test it.
    """

    where: str
    text: str
    measure: str
    found: Interval
    low: float = -inf
    high: float = inf

    @property
    def verdict(self) -> str:
        """HOLDS, FAILS or UNDECIDED."""
        if self.found.low > self.low and self.found.high < self.high:
            return HOLDS
        if self.found.high <= self.low or self.found.low >= self.high:
            return FAILS
        return UNDECIDED

    @property
    def expected(self) -> str:
        """The bounds in words."""
        if isfinite(self.low) and isfinite(self.high):
            return f"{self.low:g} to {self.high:g}"
        return f"above {self.low:g}" if isfinite(self.low) else f"below {self.high:g}"

    @property
    def words(self) -> str:
        """The verdict as the page says it."""
        return self.verdict


class Difference(Claim):
    """A claim on the difference between two policies; see IDENTICAL."""

    @property
    def verdict(self) -> str:
        """HOLDS, FAILS, UNDECIDED or IDENTICAL."""
        return IDENTICAL if self.found == exactly(0.0) else super().verdict


@dataclass(frozen=True)
class JointClaim(Claim):
    """A sentence that says several things at once: `parts`. Its own numbers are those of the part that decides."""

    parts: tuple[Claim, ...] = ()

    @property
    def verdict(self) -> str:
        """The worst of the parts' verdicts."""
        return worst(part.verdict for part in self.parts)


def joint(text: str, *parts: Claim) -> JointClaim:
    """One claim of several parts: it holds only if each of them does."""
    decisive = min(parts, key=lambda part: _WORST_FIRST.index(part.verdict))
    return JointClaim(decisive.where, text, decisive.measure, decisive.found, decisive.low, decisive.high, parts)


def worst(verdicts: Iterable[str]) -> str:
    """The verdict that decides where all of them must be good."""
    return min(verdicts, key=_WORST_FIRST.index)


class Input(Claim):
    """A claim on a quantity that was given to the experiment: it is not counted as a success."""

    @property
    def verdict(self) -> str:
        """INPUT, INPUT_LOST or INPUT_UNDECIDED."""
        return _OF_INPUTS[super().verdict]


class Judged(Protocol):
    """What a page lists: a `Claim`, or what is judged by draws (module draws)."""

    @property
    def where(self) -> str: ...  # noqa: D102  as in Claim, like the others
    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def measure(self) -> str: ...  # noqa: D102
    @property
    def found(self) -> Interval: ...  # noqa: D102
    @property
    def expected(self) -> str: ...  # noqa: D102
    @property
    def verdict(self) -> str: ...  # noqa: D102
    @property
    def words(self) -> str: ...  # noqa: D102


def count_verdicts(claims: Iterable[Judged]) -> dict[str, int]:
    """How many claims have each verdict; inputs and identical results only where there are any."""
    verdicts = [claim.verdict for claim in claims]
    counts = {verdict: verdicts.count(verdict) for verdict in (*_OF_INPUTS, IDENTICAL, *_OF_INPUTS.values())}
    return {verdict: count for verdict, count in counts.items() if count or verdict in _OF_INPUTS}
