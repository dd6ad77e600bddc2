"""How the study is judged: effects on the mean turnaround by regime, and whether a default changes."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from slurm_sns.sim.pages.judge import Interval, Quantity, exactly, found_of, percent_more
from sns_reproductions.combination.pieces import BROKEN, P95, REGIMES, TURNAROUND, WIDE, Column, Regime
from sns_reproductions.combination.variants import NOW, Variant

#: By regime and variant: the measures of each seed, shape (seeds, measures).
Runs = Mapping[tuple[Regime, str], Column]
#: The bounds of the design, in percent; of broken alphas in points.
SMALLEST_EFFECT, MOST_LOST, MOST_WORSE, MOST_REGIMES, MOST_BROKEN = 1.0, 0.5, 5.0, 2, 1.0


def percent(runs: Runs, regime: Regime, one: str, other: str, measure: int = TURNAROUND) -> Column:
    """By how many percent a variant is above another in a regime, by seed."""
    return percent_more(runs[regime, one][:, measure], runs[regime, other][:, measure])


def effects(runs: Runs, one: str, other: str) -> dict[Regime, Column]:
    """The end point by regime."""
    return {regime: percent(runs, regime, one, other) for regime in REGIMES}


def mean_of(by_regime: Mapping[Regime, Column]) -> float:
    """The mean over the regimes."""
    return float(np.mean([each.mean() for each in by_regime.values()]))


def is_safe(runs: Runs, name: str) -> bool:
    """Whether a variant of the parts loses at most MOST_LOST in each regime, and is better in some."""
    found = [found_of(each) for each in effects(runs, name, "combined").values()]
    return max(each.mean for each in found) <= MOST_LOST and any(verdict(each) == "better" for each in found)


def verdict(found: Interval) -> str:
    """The design's words for an effect on the mean turnaround."""
    if found.high < -SMALLEST_EFFECT:
        return "better"
    return "worse" if found.low > SMALLEST_EFFECT else "no difference that matters"


class DefaultDecision(NamedTuple):
    """A candidate for a default beside what is the default now."""

    candidate: str
    now: str
    effects: Mapping[Regime, Interval]
    guards: Mapping[str, int]
    broken: float | None

    @property
    def better(self) -> int:
        """In how many regimes it is better."""
        return sum(verdict(each) == "better" for each in self.effects.values())

    @property
    def worst(self) -> tuple[Regime, Interval]:
        """The regime in which it loses most."""
        return max(self.effects.items(), key=lambda each: each[1].mean)

    @property
    def best(self) -> tuple[Regime, Interval]:
        """The regime in which it gains most."""
        return min(self.effects.items(), key=lambda each: each[1].mean)

    @property
    def changes(self) -> bool:
        """Whether the default changes, by the rule of the design."""
        guarded = all(count <= MOST_REGIMES for count in self.guards.values())
        is_sound = self.broken is None or self.broken <= MOST_BROKEN
        return self.better > 0 and self.worst[1].mean <= MOST_LOST and guarded and is_sound

    def quantities(self) -> dict[str, Quantity]:
        """What claims are made of."""
        name = f"{self.candidate} - {self.now}"
        return {
            f"{name}: worst": self.worst[1],
            f"{name}: best": self.best[1],
            f"{name}: better": exactly(self.better),
            **{f"{name}: {guard}": exactly(count) for guard, count in self.guards.items()},
        }


def candidates(variants: Mapping[str, Variant]) -> list[tuple[str, str]]:
    """Each candidate with what is the default now."""
    of_combined = [name for name, variant in variants.items() if variant.is_candidate and name != NOW]
    return [*((name, NOW) for name in of_combined), ("sns, order adaptive", "sns, none withheld")]


def decision(final: Runs, contended: Mapping[str, Column], candidate: str, now: str) -> DefaultDecision:
    """A candidate beside the default now; `contended` has arrays of shape (regimes, seeds, measures)."""
    found = {regime: found_of(each) for regime, each in effects(final, candidate, now).items()}
    guards = {
        words: sum(float(percent(final, regime, candidate, now, measure).mean()) > MOST_WORSE for regime in REGIMES)
        for words, measure in (("95th percentile of slowdown", P95), ("wide jobs", WIDE))
    }
    broken = None
    if candidate in contended and now in contended:
        broken = float(
            np.max(np.mean(contended[candidate], axis=1)[:, BROKEN] - np.mean(contended[now], axis=1)[:, BROKEN])
        )
    return DefaultDecision(candidate, now, found, guards, broken)
