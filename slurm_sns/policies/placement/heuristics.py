"""The heuristics: each scores the nodes on which a job fits; the smallest score wins, ties go to the first node.

A heuristic is one line in `heuristics_of`; the compiled kernel reads the same lines. A resource beyond cores and memory
that the job does not demand is left out of every score, except for free GPUs in `best-fit-gpus`: that keeps idle GPUs
for the jobs that need them, so it must look at them for a job that needs none.

Source: Max-Jobs paper (JSSPP 2013), sections 2 and 3. The memory-first pair is from the authors' own portfolio.
`idlest` is the node selection of Spread-n-Share (SC'19), section 4.4; ways, bandwidth and GPUs are this project's
extension.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.heuristic_names import BEST_FIT_GPUS, IDLEST, PAPER_BETA
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, CORES, GPUS, MEMORY, WAYS, Amounts, Indices, scored

Scores = NDArray[np.generic]
#: Of cores, memory, ways and bandwidth; in the kernel's tables of the other rows, too.
Weights = tuple[float, ...]
NO_WEIGHTS: Weights = (0, 0, 0, 0)
#: The weight of the configured memory; so free memory decides only among nodes with the same configured memory.
CONFIGURED_FIRST = 1000
#: The weight of a free GPU; so free cores decide only among nodes with equally many. No node has as many cores, and the
#: sum fits into the kernel's scores with 64 types of `gpus.MOST_OF_A_NODE` GPUs.
GPUS_FIRST = 1 << 21
#: The order in which occupied shares are added; those of GPUs follow.
ADDED = (CORES, BANDWIDTH, WAYS)


@dataclass(frozen=True, slots=True)
class Heuristic:
    """How nodes are ranked: by Mix-Fit's angle, or by the sum of resources with these weights.

    The sum is of what is free and of the capacity (`configured`), or of the occupied shares of the capacity, which is
    rounded to 1e-9, so that equal sums tie whatever their parts; a share of GPUs has the weight `occupied_gpus`.
    `free_gpus` is the weight of all GPUs that are free on a node, whether or not the job demands some: a heuristic that
    does not see them fills nodes with idle GPUs with jobs that need none, and strands those. Without weights the first
    node is the best. If `grouped`, nodes are taken from one group with equally many idle
    cores where one is large enough (`one_group`): later jobs on several nodes then find nodes that are alike.
    """

    angle: bool = False
    grouped: bool = False
    free: Weights = NO_WEIGHTS
    configured: Weights = NO_WEIGHTS
    occupied: Weights = NO_WEIGHTS
    occupied_gpus: float = 0
    free_gpus: float = 0

    def __call__(self, capacity: Amounts, free: Amounts, candidates: Indices, demand: Sequence[int]) -> Scores:
        """One score per candidate.

        `capacity` and `free` have the shape (resources, nodes); `candidates` are the columns on which the job fits,
        ascending; `demand` is what the job takes of each node, as a column.
        """
        if self.angle:
            return mix_fit(capacity, free, candidates, demand)
        demanded = (*MIXED, *scored(demand))
        if any(self.occupied):
            occupied = np.zeros(len(candidates))
            for row in (*ADDED, *range(GPUS, len(demand))):
                if row in demanded:
                    configured = capacity[row, candidates]
                    weight = self.occupied[row] if row < GPUS else self.occupied_gpus
                    occupied += weight * ((configured - free[row, candidates]) / configured)
            return np.round(occupied, 9)
        if not any((*self.free, *self.configured, self.free_gpus)):
            return candidates
        scores = np.zeros(len(candidates), np.int64)
        if len(free) > GPUS:
            scores += int(self.free_gpus) * free[GPUS, candidates]
        for amounts, weights in ((free, self.free), (capacity, self.configured)):
            for row in demanded:
                if row < len(weights) and weights[row]:
                    scores += int(weights[row]) * amounts[row, candidates]
        return scores


def heuristics_of(beta: float) -> dict[str, Heuristic]:
    """Every heuristic; `beta` is the weight that `idlest` gives to occupied ways."""
    return {
        "first-fit": Heuristic(),  # the paper's baseline; performs poorly
        "best-fit-cores": Heuristic(free=(1, 0, 0, 0)),
        "best-fit-memory": Heuristic(free=(0, 1, 0, 0)),
        "worse-fit-cores": Heuristic(free=(-1, 0, 0, 0)),
        "worse-fit-memory": Heuristic(free=(0, -1, 0, 0)),
        "mix-fit": Heuristic(angle=True),
        # the fewest free GPUs, whatever the job demands; among equal ones the fewest free cores
        BEST_FIT_GPUS: Heuristic(free=(1, 0, 0, 0), free_gpus=GPUS_FIRST),
        # the smallest configured memory, among equal ones the least or the most free memory
        "memory-first-best": Heuristic(free=(0, 1, 0, 0), configured=(0, CONFIGURED_FIRST, 0, 0)),
        "memory-first-worse": Heuristic(free=(0, -1, 0, 0), configured=(0, CONFIGURED_FIRST, 0, 0)),
        "best-fit-ways": Heuristic(free=(0, 0, 1, 0)),
        "worse-fit-ways": Heuristic(free=(0, 0, -1, 0)),
        "best-fit-bandwidth": Heuristic(free=(0, 0, 0, 1)),
        "worse-fit-bandwidth": Heuristic(free=(0, 0, 0, -1)),
        # the smallest Co + Bo + beta * Wo + Go: the shares of cores, bandwidth, ways and GPUs that are occupied
        IDLEST: Heuristic(grouped=True, occupied=(1, 0, beta, 1), occupied_gpus=1),
    }


HEURISTICS = heuristics_of(PAPER_BETA)


#: The resources that are looked at for each job. The others are looked at only where the job demands them.
MIXED = (CORES, MEMORY)


def mix_fit(capacity: Amounts, free: Amounts, candidates: Indices, demand: Sequence[int]) -> Scores:
    """The smallest angle between what would be left of each resource and the node's configured ratio.

    All amounts are scaled by the node's capacity, and the angle is taken at the corner where everything is used: 0 when
    what is left has the configured ratio, or when nothing is left. It is rounded to 1e-9, so that equal angles tie
    however they are computed.

    Source: section 3.1. The factor 1.01, which keeps the angle finite when one resource is exactly full, is from the
    authors' simulator.
    """
    mixed = [*MIXED, *scored(demand)]
    configured = np.stack([capacity[row, candidates] for row in mixed])
    used = configured - np.stack([free[row, candidates] for row in mixed]) + np.array([[demand[row]] for row in mixed])
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


def one_group(free: Amounts, candidates: Indices, count: int) -> Indices:
    """The candidates of one group with equally many idle cores, or all of them when no group has `count` nodes.

    Of the groups with `count` nodes or more it is the one with the most idle cores. `free` has a column for each node;
    `candidates` are ascending and stay so.
    """
    idle = free[CORES, candidates]
    numbers, sizes = np.unique(idle, return_counts=True)
    large_enough = numbers[sizes >= count]
    return candidates[idle == large_enough[-1]] if len(large_enough) else candidates
