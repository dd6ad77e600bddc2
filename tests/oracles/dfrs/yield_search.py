"""DYNMCB8: find the largest yield at which MCB8 packs all jobs, by bisection.

The search tries a yield of 1, then 0.01, and then bisects the range between them until it is at most 0.01 wide. The
packing of the last success counts. Feasibility is not monotone, so the points and their order are part of the method:
all are multiples of 1/12800, and with CPU needs times a numerator everything is integers. If even 0.01 fails, the job
of the lowest priority is left out, and the search begins again.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-B.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from oracles.dfrs.mcb8 import Packable, Packing, pack
from slurm_sns.policies.dfrs.instant import FluidJob, Nodes

#: The yields that are tried, as numerators of this denominator: 1, 0.01, and the points of the bisection.
DENOMINATOR = 12800
WHOLE, LEAST, ACCURACY = 12800, 128, 128


class YieldSearch(NamedTuple):
    """The result of a search.

    `dropped` are the jobs that were left out, in their order. `tried` are the yields that were tried for the others,
    and whether MCB8 packed them. `found` is the yield of the packing, None if no job is left.
    """

    packing: Packing
    found: Fraction | None
    dropped: tuple[int, ...]
    tried: tuple[tuple[Fraction, bool], ...]


def search(nodes: Nodes, jobs: Sequence[FluidJob], by_priority: Sequence[FluidJob]) -> YieldSearch:
    """Pack the jobs, given in submit order; `by_priority` are the same with the highest priority first."""
    left, lowest, dropped = list(jobs), list(by_priority), list[int]()
    while left:
        tried: list[tuple[Fraction, bool]] = []
        found = _bisect(nodes, left, tried)
        if found is not None:
            return YieldSearch(*found, tuple(dropped), tuple(tried))
        worst = lowest.pop()
        left.remove(worst)
        dropped.append(worst.id)
    return YieldSearch({}, None, tuple(dropped), ())


def _bisect(
    nodes: Nodes, jobs: Sequence[FluidJob], tried: list[tuple[Fraction, bool]]
) -> tuple[Packing, Fraction] | None:
    """The last yield that succeeds and its packing, None if the least one fails."""
    best: tuple[Packing, Fraction] | None = None

    def succeeds(numerator: int) -> bool:
        nonlocal best
        packing, at = _packed(nodes, jobs, numerator), Fraction(numerator, DENOMINATOR)
        tried.append((at, packing is not None))
        best = best if packing is None else (packing, at)
        return packing is not None

    if succeeds(WHOLE) or not succeeds(LEAST):
        return best
    low, high = LEAST, WHOLE
    while high - low > ACCURACY:
        middle = (low + high) // 2
        if succeeds(middle):
            low = middle
        else:
            high = middle
    return best


def _packed(nodes: Nodes, jobs: Sequence[FluidJob], numerator: int) -> Packing | None:
    """The packing at the yield `numerator` / DENOMINATOR: all amounts are multiplied by the denominator."""
    larger = Nodes(*(tuple(DENOMINATOR * amount for amount in amounts) for amounts in nodes))
    return pack(larger, [Packable(job.id, job.tasks, job.cpu * numerator, job.memory * DENOMINATOR) for job in jobs])
