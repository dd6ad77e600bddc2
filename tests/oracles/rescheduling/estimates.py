"""The decision on a suspended job: the expected remaining completion time in its own pool and in every other one.

Here it is the mean suspend time of this pool's jobs and what is left to run, elsewhere the mean wait time and the mean
suspend time there and the whole run, from the beginning. The pool with the smallest sum wins; among equal ones the
job's own pool, then the first in list order.

Means are those of the jobs of the same priority that completed in the pool within the window. A pool without such jobs
counts with the means of the whole site; another pool counts with 0 if it has room for the job now. If no such job
completed anywhere, the job stays.

Source: Cost-based dynamic job rescheduling (2010), equations 2 to 4; equation 5 prints what is left to run where the
text and equation 3 mean the whole run. What a pool without samples counts is our choice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from slurm_sns.model import Seconds


class Basis(StrEnum):
    """Where the means of a term come from."""

    POOL = "pool"
    SITE = "site"
    """The pool has no samples: the means over all pools."""
    ROOM = "room"
    """Another pool without samples that has room for the job now: 0."""
    NONE = "none"
    """No pool has samples."""


class Means(NamedTuple):
    """The mean wait and suspend time of so many jobs, in seconds."""

    samples: int = 0
    wait_s: Seconds = 0
    suspend_s: Seconds = 0


class Candidate(NamedTuple):
    """A pool where the job could be: the means of its samples, and whether it has room for the job now."""

    pool: str
    means: Means
    has_room: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """The expected remaining completion time in one pool, and what it is the sum of."""

    pool: str
    samples: int
    basis: Basis
    wait_s: Seconds
    suspend_s: Seconds
    run_s: Seconds

    @property
    def estimate_s(self) -> Seconds:
        """The sum."""
        return self.wait_s + self.suspend_s + self.run_s


@dataclass(frozen=True, slots=True)
class RestartDecision:
    """Where a job goes on, with a term for each pool that was compared: its own first, then in list order."""

    job_id: int
    terms: tuple[Term, ...]
    chosen: str

    @property
    def moves(self) -> bool:
        """Whether the job goes on in another pool."""
        return self.chosen != self.terms[0].pool

    def reason(self) -> str:
        """The decision in words."""
        own, best = self.terms[0], next(term for term in self.terms if term.pool == self.chosen)
        here = f"{float(own.estimate_s):.0f} s in {own.pool}"
        if not self.moves:
            return f"it stays: expected to complete in {here}"
        return f"expected to complete in {float(best.estimate_s):.0f} s in {best.pool}, not {here}"


def decide(
    job_id: int,
    own: Candidate,
    others: Sequence[Candidate],
    *,
    site: Means,
    run_s: Seconds,
    left_s: Seconds,
    is_queued: bool = False,
) -> RestartDecision:
    """Where the job goes on. `run_s` is its expected run time elsewhere, `left_s` what is left of it here.

    `own` is its pool, `others` are the other pools that may hold it, in list order; `site` are the means over all. A
    queued job has to wait in its own pool, too.
    """
    if not site.samples:
        return RestartDecision(job_id, (Term(own.pool, 0, Basis.NONE, 0, 0, left_s),), own.pool)
    terms = [_own_term(own, site, left_s, is_queued=is_queued), *(_other_term(each, site, run_s) for each in others)]
    best = min(terms, key=lambda term: term.estimate_s)  # the first of equal ones
    return RestartDecision(job_id, tuple(terms), best.pool)


def _own_term(own: Candidate, site: Means, left_s: Seconds, *, is_queued: bool) -> Term:
    # It has just proved to have no room.
    basis, means = (Basis.POOL, own.means) if own.means.samples else (Basis.SITE, site)
    return Term(own.pool, own.means.samples, basis, means.wait_s if is_queued else 0, means.suspend_s, left_s)


def _other_term(pool: Candidate, site: Means, run_s: Seconds) -> Term:
    if pool.means.samples:
        basis, means = Basis.POOL, pool.means
    elif pool.has_room:
        basis, means = Basis.ROOM, Means()
    else:
        basis, means = Basis.SITE, site
    return Term(pool.pool, pool.means.samples, basis, means.wait_s, means.suspend_s, run_s)


def means_of(samples: Iterable[tuple[Seconds, Seconds]]) -> Means:
    """The means over (wait, suspend) seconds; exact if these are whole seconds or fractions."""
    listed = list(samples)
    if not listed:
        return Means()
    waits, suspends = (sum(each) for each in zip(*listed, strict=True))
    return Means(len(listed), _ratio(waits, len(listed)), _ratio(suspends, len(listed)))


def _ratio(amount: Seconds, count: int) -> Seconds:
    return amount / count if isinstance(amount, float) else Fraction(amount) / count
