"""The sliding window: the jobs that completed lately, by pool and priority.

A job that completed at c is in the window at t if t - W <= c <= t. It counts in the pool where it completed, with what
it waited and was suspended there over all its visits.

Source: Cost-based dynamic job rescheduling (2010), section 3.2. Over which jobs it averages can be read in two ways:
over all that completed, those never suspended with 0 (`all`), or over those that were suspended at least once
(`suspended`).
"""

from collections.abc import Iterable

from oracles.rescheduling.estimates import Means, means_of
from oracles.rescheduling.history import Account, Sample
from slurm_sns.model import Seconds


def sample_of(account: Account, ended_s: Seconds) -> Sample:
    """The sample that a job gives which completes now."""
    here = account.in_pool()
    return Sample(
        ended_s, here.pool, account.priority, here.waited_s, here.suspended_s, was_suspended=account.suspensions > 0
    )


def in_window(samples: Iterable[Sample], now_s: Seconds, window_s: Seconds) -> tuple[Sample, ...]:
    """The samples that still count."""
    return tuple(each for each in samples if each.ended_s >= now_s - window_s)


def counted(samples: Iterable[Sample], priority: int, *, only_suspended: bool) -> list[Sample]:
    """The samples for jobs of this priority."""
    return [each for each in samples if each.priority == priority and (each.was_suspended or not only_suspended)]


def means_in(samples: Iterable[Sample], pool: str | None = None) -> Means:
    """The means of a pool's samples, or of all."""
    return means_of((each.waited_s, each.suspended_s) for each in samples if pool is None or each.pool == pool)
