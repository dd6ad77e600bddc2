"""The heuristics: each scores the nodes on which a job fits; the smallest score wins, ties go to the first node.

A heuristic is one function and one line in `HEURISTICS`, and one line in `kernel_weights.keys` for the compiled
kernel. Its arguments are `capacity` and `free`, shape (resources, nodes); `candidates`, the columns on which the job
fits, ascending; and `demand`, what the job takes of each node. It returns one score per candidate.

A resource beyond cores and memory that the job does not demand is left out of every score.

`Idlest` looks for its best nodes inside one group of nodes with the same number of idle cores, if one group is large
enough (`one_group`): later jobs on several nodes then find nodes that are alike.

Source: Max-Jobs paper (JSSPP 2013), sections 2 and 3. The memory-first pair is from the authors' own portfolio.
`idlest` is the node selection of Spread-n-Share (SC'19), section 4.4; ways and bandwidth are this project's extension.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Resources
from slurm_sns.policies.placement.heuristic_names import IDLEST, PAPER_BETA
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, CORES, MEMORY, WAYS, Amounts, Indices

Scores = NDArray[np.generic]
#: (capacity, free, candidates, demand) -> one score per candidate; the smallest is the best.
Heuristic = Callable[[Amounts, Amounts, Indices, Resources], Scores]


def _of(amounts: Amounts, resource: int, candidates: Indices) -> Amounts:
    """The amount of one resource on each candidate."""
    of_candidates: Amounts = amounts[resource, candidates]
    return of_candidates


def first_fit(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The first node that fits. The paper's baseline; performs poorly."""
    return candidates


def best_fit_cores(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The fewest free cores."""
    return _of(free, CORES, candidates)


def best_fit_memory(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The least free memory."""
    return _of(free, MEMORY, candidates)


def worse_fit_cores(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The most free cores."""
    return -_of(free, CORES, candidates)


def worse_fit_memory(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The most free memory."""
    return -_of(free, MEMORY, candidates)


#: The resources that Mix-Fit always balances. It balances the others only where the job demands them.
MIXED = (CORES, MEMORY)


def mix_fit(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:
    """The smallest angle between what would be left of each resource and the node's configured ratio.

    All amounts are scaled by the node's capacity, and the angle is taken at the corner where everything is used: 0 when
    what is left has the configured ratio, or when nothing is left. It is rounded to 1e-9, so that equal angles tie
    however they are computed.

    Source: section 3.1. The factor 1.01, which keeps the angle finite when one resource is exactly full, is from the
    authors' simulator.
    """
    mixed = [*MIXED, *(row for row in (WAYS, BANDWIDTH) if demand[row] > 0)]
    configured = np.stack([_of(capacity, row, candidates) for row in mixed])
    used = (
        configured
        - np.stack([_of(free, row, candidates) for row in mixed])
        + np.array([[demand[row]] for row in mixed])
    )
    left = (1.01 * configured - used) / configured
    if len(mixed) > len(MIXED):
        return angle_to_balance(left)
    # The C library's arc tangent, which compiled code calls too: numpy's own differs in the last bit.
    angles = np.array([math.atan(ratio) for ratio in (left[0] / left[1]).tolist()], dtype=np.float64)
    # Where nothing is left both shares are 0.01 except for the last bits. Rounding removes these: the angle is 0.
    return np.round(np.abs(np.pi / 4 - angles), 9)


def angle_to_balance(left: NDArray[np.float64]) -> NDArray[np.float64]:
    """The angle between each column of shares left, shape (resources, nodes), and the vector of equal shares.

    For two resources it is the angle of `mix_fit`. It is the atan2 of the distance from the diagonal and the distance
    along it: an arc cosine loses the last digits near 0, and with them the order of the best nodes.
    """
    mean = left.mean(axis=0)
    off_diagonal = np.sqrt(((left - mean) ** 2).sum(axis=0))
    along = mean * np.sqrt(len(left))
    # The C library's arc tangent here too.
    angles = np.array(list(map(math.atan2, off_diagonal.tolist(), along.tolist())), dtype=np.float64)
    rounded: NDArray[np.float64] = angles.round(9)
    return rounded


#: The weight of the configured memory; so free memory decides only among nodes with the same configured memory.
CONFIGURED_FIRST = 1000


def memory_first_best(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The smallest configured memory, among equal ones the least free memory."""
    return CONFIGURED_FIRST * _of(capacity, MEMORY, candidates) + _of(free, MEMORY, candidates)


def memory_first_worse(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The smallest configured memory, among equal ones the most free memory."""
    return CONFIGURED_FIRST * _of(capacity, MEMORY, candidates) - _of(free, MEMORY, candidates)


def _demanded(amounts: Amounts, resource: int, candidates: Indices, demand: Resources) -> Amounts:
    """The amount of one resource on each candidate; the same for all when the job demands none of it."""
    return _of(amounts, resource, candidates) if demand[resource] > 0 else np.zeros(len(candidates), dtype=np.int64)


def best_fit_ways(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The fewest free cache ways."""
    return _demanded(free, WAYS, candidates, demand)


def worse_fit_ways(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The most free cache ways."""
    return -_demanded(free, WAYS, candidates, demand)


def best_fit_bandwidth(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The least free memory bandwidth."""
    return _demanded(free, BANDWIDTH, candidates, demand)


def worse_fit_bandwidth(capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:  # noqa: ARG001  a heuristic's shape
    """The most free memory bandwidth."""
    return -_demanded(free, BANDWIDTH, candidates, demand)


@dataclass(frozen=True)
class Idlest:
    """The smallest Co + Bo + beta * Wo: the shares of cores, bandwidth and ways that are occupied.

    Its candidates are narrowed by `one_group` before. The sum is rounded to 1e-9, so that equal sums tie whatever their
    parts.

    Source: Spread-n-Share (SC'19), section 4.4.
    """

    beta: float = PAPER_BETA

    def __call__(self, capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> Scores:
        """One score per candidate."""
        occupied = np.zeros(len(candidates))
        for row, weight in ((CORES, 1.0), (BANDWIDTH, 1.0), (WAYS, self.beta)):
            if row == CORES or demand[row] > 0:
                configured = _of(capacity, row, candidates)
                occupied += weight * ((configured - _of(free, row, candidates)) / configured)
        rounded: NDArray[np.float64] = np.round(occupied, 9)
        return rounded


HEURISTICS: dict[str, Heuristic] = {
    "first-fit": first_fit,
    "best-fit-cores": best_fit_cores,
    "best-fit-memory": best_fit_memory,
    "worse-fit-cores": worse_fit_cores,
    "worse-fit-memory": worse_fit_memory,
    "mix-fit": mix_fit,
    "memory-first-best": memory_first_best,
    "memory-first-worse": memory_first_worse,
    "best-fit-ways": best_fit_ways,
    "worse-fit-ways": worse_fit_ways,
    "best-fit-bandwidth": best_fit_bandwidth,
    "worse-fit-bandwidth": worse_fit_bandwidth,
    IDLEST: Idlest(),
}


def require_known(name: str, where: str) -> None:
    """Accept the name of a heuristic.

    Raises:
        BadInput: no heuristic has that name; the message says where it was written and lists the valid ones.
    """
    if name not in HEURISTICS:
        raise BadInput(f"{where}: heuristic '{name}' is unknown; valid: {', '.join(HEURISTICS)}")


def one_group(free: Amounts, candidates: Indices, count: int) -> Indices:
    """The candidates of one group with equally many idle cores, or all of them when no group has `count` nodes.

    Of the groups with `count` nodes or more it is the one with the most idle cores. `free` has a column for each node;
    `candidates` are ascending and stay so.
    """
    idle = free[CORES, candidates]
    numbers, sizes = np.unique(idle, return_counts=True)
    large_enough = numbers[sizes >= count]
    return candidates[idle == large_enough[-1]] if len(large_enough) else candidates


def best(candidates: Indices, scores: Scores, count: int) -> Indices:
    """The `count` candidates with the smallest scores, in the machine list's order.

    `candidates` are ascending and at least `count`; `scores` has one entry for each.
    """
    if count == 1:
        first = int(np.argmin(scores))  # the first of equal ones
        return candidates[first : first + 1]
    ranked = np.argsort(scores, kind="stable")[:count]
    return np.sort(candidates[ranked])
