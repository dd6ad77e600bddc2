"""Which job is paused first, and which is resumed first.

A job's priority is max(30 s, flow time) / (virtual time)^2, and infinite before it has made progress. The flow time is
the time since its submission: it grows while a job is paused, so that no job is paused for ever. The square favours
jobs that have had little time so far, which are mostly short.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A.
"""

from collections.abc import Iterable
from fractions import Fraction

from slurm_sns.model import Seconds
from slurm_sns.policies.dfrs.fluid_jobs import FluidJob

#: Veltkamp's factor to round to 41 bits: priorities that differ by rounding errors only are then equal.
SPLIT = 2.0**12 + 1
#: Shorter flow times count as this much, as in the bounded stretch.
SHORTEST_FLOW_S = 30


def by_decreasing_priority(jobs: Iterable[FluidJob], now_s: Seconds) -> list[FluidJob]:
    """The jobs, given in submit order, with the highest priority first; of equal ones the earlier submit is higher."""
    return sorted(jobs, key=lambda job: _key(job, now_s), reverse=True)


def _key(job: FluidJob, now_s: Seconds) -> tuple[bool, Seconds]:
    if job.virtual_s <= 0:
        return (True, 0)
    numerator = max(SHORTEST_FLOW_S, now_s - job.submit_s)
    if isinstance(job.virtual_s, float) or isinstance(numerator, float):
        exact = float(numerator) / float(job.virtual_s) ** 2
        split = exact * SPLIT
        return (False, split - (split - exact))
    return (False, Fraction(numerator) / Fraction(job.virtual_s) ** 2)
