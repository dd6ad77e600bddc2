"""A range in which the truth lies as often as it should: conformalised quantiles of the wait, learnt from past starts.

A look ahead gives a low and a high wait. It knows nothing of jobs to come, and not how one long run delays all. So what
its ranges missed in the past is added to them. In the logarithm of the wait, each past start has a score for either
end: by how much the truth lay below the low end, and above the high end. The range is widened (or narrowed) at either
end by the quantile of the last bursts' scores that leaves `MISSED` of the truths outside there.

Jobs that their owner submits within minutes hit or miss their ranges together: a burst of hundreds says no more of the
next one than a single job does. So a burst weighs as much as one, shared by its jobs.

Where the past differs from the present, that quantile is wrong: so its level moves a little after each start, up when
the truth lay outside and down when it lay inside. In the long run the share outside is then `MISSED`, whatever the
truths are. Waits of an hour, of hours and of days are classes of their own, because what look aheads miss differs.

Source: Romano, Patterson, Candes, Conformalized Quantile Regression (NeurIPS 2019), with either end by itself (theorem
2); Lee, Barber, Willett, Distribution-free inference with hierarchical data (2023), for groups that weigh as one;
Gibbs, Candes, Adaptive Conformal Inference Under Distribution Shift (NeurIPS 2021).
"""

from bisect import bisect_right
from math import exp, inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The share of the truths that lies below the range, and above it: 80 % lie in it.
MISSED = 0.1
#: Waits below a minute are alike: cycles, prologs and clocks take seconds.
FLOOR_S = 60.0
#: The classes of predicted waits: up to an hour, up to twelve, longer.
CLASSES_S = (3600.0, 43200.0)
#: The last bursts of each class that count, the starts of each that are kept, and the bursts that a class needs to go
#: by its own. So a flood of one owner's jobs drives out nobody else's.
MOST_BURSTS, MOST_OF_BURST, LEAST_BURSTS = 1000, 50, 30
#: A burst lasts so long from its first job on.
BURST_S = 600.0
#: While nothing is known the range is twice as wide at either end.
UNKNOWN = log(2)
#: How far the level of the quantile moves after each burst's start, and its bounds.
STEP, LEAST_LEVEL, MOST_LEVEL = 0.01, 0.5, 0.995


class WaitRange(NamedTuple):
    """A range of waits from the moment of the estimate on, in seconds, and its middle."""

    low_s: float
    middle_s: float
    high_s: float

    @classmethod
    def of(cls, one_s: float, other_s: float) -> "WaitRange":
        """The range of what two look aheads say, with the geometric middle."""
        low, high = sorted((_log(one_s), _log(other_s)))
        return cls(_seconds(low), _seconds((low + high) / 2), _seconds(high))

    def has(self, wait_s: float) -> bool:
        """Whether this wait lies in the range; below `FLOOR_S` waits are alike."""
        return max(self.low_s, FLOOR_S) <= max(wait_s, FLOOR_S) <= max(self.high_s, FLOOR_S)


class OwnerBurst(NamedTuple):
    """Jobs of one owner whose estimates were made within `BURST_S` of the first, at `begun_s`."""

    owner: int
    begun_s: float


class OwnerBursts:
    """To which burst an owner's estimate belongs. Estimates are to be taken in the order in which they are made."""

    def __init__(self) -> None:
        self._begun_s: dict[int, float] = {}

    def of(self, owner: int, made_s: float) -> OwnerBurst:
        """The burst of an estimate that is made now."""
        begun_s = self._begun_s.get(owner, -inf)
        if not 0 <= made_s - begun_s < BURST_S:
            begun_s = self._begun_s[owner] = made_s
        return OwnerBurst(owner, begun_s)


class _Scores:
    """The scores of one class by burst: of each start those of the low end, the middle and the high end.

    Of a long burst a random sample is kept, the same in each run.
    """

    def __init__(self) -> None:
        self._of: dict[OwnerBurst, list[tuple[float, float, float]]] = {}
        self._starts: dict[OwnerBurst, int] = {}
        self._random = np.random.default_rng(0)
        self._levels = [1 - MISSED, 0.5, 1 - MISSED]
        self._widths: list[float] | None = None

    @property
    def suffice(self) -> bool:
        """Whether there are enough bursts to go by."""
        return len(self._of) >= LEAST_BURSTS

    def found(self) -> list[float]:
        """What is added to the ends and to the middle now."""
        if self._widths is None:
            weight = np.concatenate([np.full(len(scores), 1 / len(scores)) for scores in self._of.values()])
            ends = np.array([each for scores in self._of.values() for each in scores]).T
            self._widths = [_quantile(end, weight, level) for end, level in zip(ends, self._levels, strict=True)]
        return self._widths

    def add(self, scores: tuple[float, float, float], burst: OwnerBurst, inside: tuple[bool, bool]) -> None:
        """Take the scores of a start; `inside`: whether it was not before the range, and not after it."""
        starts = self._starts[burst] = self._starts.get(burst, 0) + 1
        of_burst = self._of.setdefault(burst, [])
        if len(of_burst) < MOST_OF_BURST:
            of_burst.append(scores)
        elif (place := self._random.integers(starts)) < MOST_OF_BURST:
            of_burst[place] = scores
        if len(self._of) > MOST_BURSTS:
            oldest = next(iter(self._of))
            del self._of[oldest], self._starts[oldest]
        step = STEP / starts
        for end, is_inside in zip((0, 2), inside, strict=True):
            moved = self._levels[end] + step * (not is_inside) - step * MISSED
            self._levels[end] = min(MOST_LEVEL, max(LEAST_LEVEL, moved))
        self._widths = None


class Calibration:
    """Past starts and the ranges that were told before; from them, the range that is told now."""

    def __init__(self) -> None:
        self._classes = [_Scores() for _ in range(len(CLASSES_S) + 1)]
        self._all = _Scores()

    def told(self, raw: WaitRange) -> WaitRange:
        """The range to tell, where look aheads say `raw`."""
        scores = self._of(raw)
        below, shift, above = (UNKNOWN, 0.0, UNKNOWN) if scores is None else scores.found()
        low, middle, high = sorted((_log(raw.low_s) - below, _log(raw.middle_s) + shift, _log(raw.high_s) + above))
        return WaitRange(_seconds(low), _seconds(middle), _seconds(high))

    def learn(self, raw: WaitRange, told: WaitRange, wait_s: float, burst: OwnerBurst) -> None:
        """Take the true wait of a job that has started, of which look aheads said `raw` and of which `told` was told.

        Starts are to be taken in the order in which they happened.
        """
        truth = _log(wait_s)
        scores = (_log(raw.low_s) - truth, truth - _log(raw.middle_s), truth - _log(raw.high_s))
        inside = (truth >= _log(told.low_s), truth <= _log(told.high_s))
        for each in (self._classes[_class_of(raw)], self._all):
            each.add(scores, burst, inside)

    def _of(self, raw: WaitRange) -> _Scores | None:
        of_class = self._classes[_class_of(raw)]
        if of_class.suffice:
            return of_class
        return self._all if self._all.suffice else None


def _quantile(values: NDArray[np.float64], weight: NDArray[np.float64], level: float) -> float:
    """The quantile of weighted values, linear between the middles of their weights."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weight[order])
    return float(np.interp(level, (upto - weight[order] / 2) / upto[-1], values[order]))


def _class_of(raw: WaitRange) -> int:
    return bisect_right(CLASSES_S, raw.middle_s)


def _log(wait_s: float) -> float:
    return log(max(wait_s, FLOOR_S))


def _seconds(of: float) -> float:
    return exp(of) if of > log(FLOOR_S) else 0.0
