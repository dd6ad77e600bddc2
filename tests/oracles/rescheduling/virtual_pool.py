"""The virtual pool: the pool of a job that leaves the choice to the site, made once, at its submission.

Round robin takes the next pool in list order after the one that was taken last, whatever their load. Availability takes
the pool with the largest share of free cores. Both take only pools in which the job may run and that have a node that
is large enough.

Source: Cost-based dynamic job rescheduling (2010), section 2.1 ("according to resource availability") and section 4
(round robin). What is available is our choice.
"""

from collections.abc import Collection
from fractions import Fraction

from oracles.rescheduling.site import SiteState
from slurm_sns.model import Resources


def candidates(site: SiteState, demand: Resources, allowed: Collection[str] | None) -> list[str]:
    """The pools in which the job may run, in list order."""
    return [pool for pool in site.pools if (allowed is None or pool in allowed) and site.fits_when_empty(pool, demand)]


def next_pool(site: SiteState, pools: Collection[str], last: str) -> str:
    """The first of these pools after `last`, in list order and round."""
    order = list(site.pools)
    begin = order.index(last) + 1 if last in order else 0
    return next(pool for pool in (*order[begin:], *order[:begin]) if pool in pools)


def freest_pool(site: SiteState, pools: Collection[str]) -> str:
    """The first of these pools with the largest share of free cores."""

    def share(pool: str) -> Fraction:
        nodes = site.pools[pool]
        return Fraction(sum(site.free[node].cores for node in nodes), sum(site.capacity[node].cores for node in nodes))

    return max(pools, key=share)
