"""The 95 % interval of a ratio of sums: hours or days of the watch are drawn anew, a thousand times (bootstrap).

Jobs of one hour wait for the same nodes, so hours are drawn and not jobs; days where there are enough of them, since
hours of one day resemble each other, too. Every ratio is made of the same draws, from the same seed.
"""

from collections.abc import Iterable, Mapping
from random import Random
from typing import NamedTuple

HOUR_S, DAY_S = 3600.0, 86400.0
#: There are intervals from so many blocks on: a day of hours, or two weeks of days.
FEWEST_HOURS, FEWEST_DAYS = 24, 14
#: And for a ratio that so many blocks have something to say about.
FEWEST_WITH_JOBS = 10
DRAWS, SEED = 1000, 0
#: More blocks are no watch that anybody has run: eleven years of days.
MOST_BLOCKS = 4000
#: The part of the draws that lies below the interval, and above it.
TAIL = 0.025


class Sums(NamedTuple):
    """What a block adds to the numerator and to the denominator of a ratio."""

    above: float
    below: float


class WatchedBlocks:
    """The hours or days in which there were looks. `over` is `hours` or `days`; empty where there are too few."""

    def __init__(self, at_s: Iterable[float]) -> None:
        hours = {int(each // HOUR_S) for each in at_s}
        days = {int(each * HOUR_S // DAY_S) for each in hours}
        blocks, self.over, self._length_s = (
            (hours, "hours", HOUR_S) if len(days) < FEWEST_DAYS else (days, "days", DAY_S)
        )
        if len(blocks) > MOST_BLOCKS or (self.over == "hours" and len(blocks) < FEWEST_HOURS):
            self.over = ""
        self.count = len(blocks)
        self._order = sorted(blocks)
        self._draws: list[list[int]] | None = None

    def interval(self, jobs: Iterable[tuple[float, Sums]]) -> tuple[float, float] | None:
        """The interval of the ratio of sums over jobs, each with its moment; None where there is too little for one."""
        sums: dict[int, list[float]] = {}
        for at_s, (above, below) in jobs:
            block = sums.setdefault(int(at_s // self._length_s), [0.0, 0.0])
            block[0] += above
            block[1] += below
        if not self.over or len(sums) < FEWEST_WITH_JOBS:
            return None
        ratios = sorted(self._ratios(sums))
        return ratios[int(TAIL * len(ratios))], ratios[int((1 - TAIL) * len(ratios))]

    def _ratios(self, sums: Mapping[int, list[float]]) -> Iterable[float]:
        rows = [sums.get(block, (0.0, 0.0)) for block in self._order]
        above, below = ([row[side] for row in rows] for side in (0, 1))
        for draw in self._drawn():
            total = sum(map(below.__getitem__, draw))
            if total:
                yield sum(map(above.__getitem__, draw)) / total

    def _drawn(self) -> list[list[int]]:
        """The blocks of each draw, by their place."""
        if self._draws is None:
            random = Random(SEED)  # noqa: S311 - no secret: the same page each time
            self._draws = [random.choices(range(self.count), k=self.count) for _ in range(DRAWS)]
        return self._draws
