"""Which job is paused first, and which is resumed first.

A job's priority is max(30 s, flow time) / (virtual time)^2, and infinite before it has made progress. The flow time is
the time since its submission: it grows while a job is paused, so that no job is paused for ever. The square favours
jobs that have had little time so far, which are mostly short.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import inf

from slurm_sns.model import Seconds
from slurm_sns.policies.dfrs.instant import FluidJob

#: Priorities in floats that differ by a smaller fraction are equal.
ROUNDING = 1e-12
#: Shorter flow times count as this much, as in the bounded stretch.
SHORTEST_FLOW_S = 30


def by_decreasing_priority(jobs: Iterable[FluidJob], now_s: Seconds) -> list[FluidJob]:
    """The jobs, given in submit order, with the highest priority first; of equal ones the earlier submit is higher."""
    ranked = sorted(((_priority(job, now_s), at, job) for at, job in enumerate(jobs)), key=_rank)
    equal: list[tuple[Seconds, int, FluidJob]] = []
    last: Seconds = inf
    for priority, at, job in ranked:
        is_equal = equal and isinstance(priority, float) and priority >= last * (1 - ROUNDING)
        equal.append((equal[-1][0] if is_equal else priority, at, job))
        last = priority
    return [job for *_, job in sorted(equal, key=_rank)]


def _rank(ranked: tuple[Seconds, int, FluidJob]) -> tuple[Seconds, int]:
    return (-ranked[0], ranked[1])


def _priority(job: FluidJob, now_s: Seconds) -> Seconds:
    if job.virtual_s <= 0:
        return inf
    flow_s = max(SHORTEST_FLOW_S, now_s - job.submit_s)
    if isinstance(job.virtual_s, float) or isinstance(flow_s, float):
        return float(flow_s) / float(job.virtual_s) ** 2
    return Fraction(flow_s) / Fraction(job.virtual_s) ** 2
