"""DYNMCB8-STRETCH-PER: find the smallest estimated stretch for which MCB8 packs all jobs, by bisection.

The stretch of a job at the next run, T seconds from now, is estimated as (flow + T) / (virtual + y T), with its flow
time and virtual time now and its yield y until then. A target S asks each job for the yield that brings it to S, at
least 0.01 and at most 1. Tried are the smallest S that any yields could reach, then the largest that matters, and then
the middle of the range until its ends differ by at most 1 %. The last success counts. If even the largest fails, the
job of the lowest priority is left out, and the search begins again.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-B. The least yield for all, where the paper
raises negative ones only, is our choice.
"""

from collections.abc import Sequence

from oracles.dfrs.mcb8 import TOLERANCE, Packable, Packing, pack
from slurm_sns.model import Seconds
from slurm_sns.policies.dfrs.instant import FluidJob, Nodes

LEAST_YIELD = 0.01
ACCURACY = 1.01


def search(
    nodes: Nodes, jobs: Sequence[FluidJob], by_priority: Sequence[FluidJob], now_s: Seconds, period_s: Seconds
) -> tuple[Packing, dict[int, float]]:
    """Pack the jobs, given in submit order, and give each its yield; a job that is left out has none.

    `by_priority` are the same jobs with the highest priority first.
    """
    left, lowest = list(jobs), list(by_priority)
    while left:
        found = _bisect(nodes, left, float(now_s), float(period_s))
        if found is not None:
            return found
        left.remove(lowest.pop())
    return {}, {}


def _bisect(
    nodes: Nodes, jobs: Sequence[FluidJob], now_s: float, period_s: float
) -> tuple[Packing, dict[int, float]] | None:
    best: tuple[Packing, dict[int, float]] | None = None

    def succeeds(stretch: float) -> bool:
        nonlocal best
        yields = {job.id: _yield_for(job, stretch, now_s, period_s) for job in jobs}
        packing = pack(
            nodes, [Packable(job.id, job.tasks, job.cpu * yields[job.id], job.memory) for job in jobs], TOLERANCE
        )
        best = best if packing is None else (packing, yields)
        return packing is not None

    low = max(_stretch(job, 1.0, now_s, period_s) for job in jobs)
    high = max(_stretch(job, LEAST_YIELD, now_s, period_s) for job in jobs)
    if succeeds(low) or not succeeds(high):
        return best
    while high / low > ACCURACY:
        middle = (low + high) / 2
        if succeeds(middle):
            high = middle
        else:
            low = middle
    return best


def _stretch(job: FluidJob, cpu_yield: float, now_s: float, period_s: float) -> float:
    """The job's stretch at the next run, if it has this yield until then."""
    return (now_s - float(job.submit_s) + period_s) / (float(job.virtual_s) + cpu_yield * period_s)


def _yield_for(job: FluidJob, stretch: float, now_s: float, period_s: float) -> float:
    """The yield that brings the job to this stretch at the next run."""
    cpu_yield = ((now_s - float(job.submit_s) + period_s) / stretch - float(job.virtual_s)) / period_s
    return min(max(cpu_yield, LEAST_YIELD), 1.0)
