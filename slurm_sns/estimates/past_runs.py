"""How much of their time limits jobs have used: the past of an owner's program, of the owner, of all.

What a job is expected to run is a quantile of these shares times its limit. The past of its owner and program counts if
at least `LEAST_RUNS` of them are known, otherwise that of its owner, otherwise that of all jobs; without any it is the
limit. Of a job that runs already those count that ran longer, as a share, than it has.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

#: Fewer runs say nothing about a quantile.
LEAST_RUNS = 5
#: So many runs are kept of an owner's program and of an owner, and so many of all: the latest ones.
MOST_OF_OWNER, MOST_OF_ALL = 100, 2000
#: So many groups are kept: those that had a run last.
MOST_GROUPS = 20_000


@dataclass(frozen=True, slots=True)
class PastRun:
    """A job that has ended: its owner, its program, and the share of its time limit that it ran for."""

    job_id: int
    ended_s: float
    owner: int
    program: str
    share: float


class Kin(NamedTuple):
    """Whose past a job shares."""

    owner: int
    program: str


class PastRuns:
    """The runs of the past, as far as they are kept."""

    def __init__(self, runs: Iterable[PastRun] = ()) -> None:
        self._groups: dict[Hashable, deque[float]] = {}
        self._sorted: dict[Hashable, list[float]] = {}
        for run in runs:
            self.add(run)

    def add(self, run: PastRun) -> None:
        """Take a job that has just ended."""
        for group, most in (
            (None, MOST_OF_ALL),
            (run.owner, MOST_OF_OWNER),
            (Kin(run.owner, run.program), MOST_OF_OWNER),
        ):
            shares = self._groups.pop(group, None)
            self._groups[group] = deque(maxlen=most) if shares is None else shares  # the latest group comes last
            self._groups[group].append(run.share)
            self._sorted.pop(group, None)
        while len(self._groups) > MOST_GROUPS:
            oldest = next(iter(self._groups))
            del self._groups[oldest]
            self._sorted.pop(oldest, None)

    def share(self, kin: Kin, quantile: float, ran: float = 0.0) -> float:
        """The share of its limit that a job with this past will have run for at its end, at this quantile.

        `ran` is the share that it has run already. It is never above 1: at its limit a job is ended.
        """
        for group in (kin, kin.owner, None):
            shares = self._shares(group)
            longer = bisect_right(shares, ran) if ran > 0 else 0
            if len(shares) - longer >= LEAST_RUNS:
                return min(1.0, shares[longer + round(quantile * (len(shares) - longer - 1))])
        return 1.0

    def _shares(self, group: Hashable) -> list[float]:
        found = self._sorted.get(group)
        if found is None:
            found = self._sorted[group] = sorted(self._groups.get(group, ()))
        return found
