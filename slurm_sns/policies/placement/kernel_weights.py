"""The heuristics as the compiled kernel reads them: weights of resources, for each case of what a job demands."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from slurm_sns.model import Resources
from slurm_sns.policies.placement.heuristic_names import PAPER_BETA
from slurm_sns.policies.placement.heuristics import CONFIGURED_FIRST
from slurm_sns.policies.placement.kernel_arrays import Scores
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, WAYS, NodeArrays
from slurm_sns.policies.placement.node_state_kernel import PER_UNIT, PLACE_BITS, SCORE_BITS

Weights = tuple[float, float, float, float]
NO_WEIGHTS: Weights = (0, 0, 0, 0)
#: What an alternative may demand beside cores and memory: neither, cache ways, bandwidth, both.
CASES: tuple[frozenset[int], ...] = (
    frozenset(),
    frozenset({WAYS}),
    frozenset({BANDWIDTH}),
    frozenset({WAYS, BANDWIDTH}),
)


@dataclass(frozen=True, slots=True)
class RankKey:
    """How nodes are ranked: by Mix-Fit's angle, or by the sum of resources with these weights.

    The sum is of what is free, of the capacity (`configured`), and of the occupied shares of the capacity.
    """

    angle: bool = False
    grouped: bool = False
    free: Weights = NO_WEIGHTS
    configured: Weights = NO_WEIGHTS
    occupied: Weights = NO_WEIGHTS

    def demanding(self, more: frozenset[int]) -> "RankKey":
        """The same for a job that demands only these resources beside cores and memory: the others get no weight."""

        def kept(weights: Weights) -> Weights:
            cores, memory, *rest = weights
            ways, bandwidth = (weight if WAYS + at in more else 0 for at, weight in enumerate(rest))
            return cores, memory, ways, bandwidth

        return replace(self, free=kept(self.free), configured=kept(self.configured), occupied=kept(self.occupied))


def keys(beta: float = PAPER_BETA) -> dict[str, RankKey]:
    """Every heuristic; `beta` is the weight that `idlest` gives to occupied ways."""
    return {
        "first-fit": RankKey(),
        "best-fit-cores": RankKey(free=(1, 0, 0, 0)),
        "best-fit-memory": RankKey(free=(0, 1, 0, 0)),
        "worse-fit-cores": RankKey(free=(-1, 0, 0, 0)),
        "worse-fit-memory": RankKey(free=(0, -1, 0, 0)),
        "mix-fit": RankKey(angle=True),
        "memory-first-best": RankKey(free=(0, 1, 0, 0), configured=(0, CONFIGURED_FIRST, 0, 0)),
        "memory-first-worse": RankKey(free=(0, -1, 0, 0), configured=(0, CONFIGURED_FIRST, 0, 0)),
        "best-fit-ways": RankKey(free=(0, 0, 1, 0)),
        "worse-fit-ways": RankKey(free=(0, 0, -1, 0)),
        "best-fit-bandwidth": RankKey(free=(0, 0, 0, 1)),
        "worse-fit-bandwidth": RankKey(free=(0, 0, 0, -1)),
        "idlest": RankKey(grouped=True, occupied=(1, 0, beta, 1)),
    }


KEYS = keys()

#: The number of each heuristic in the kernel's table.
ROWS = {name: row for row, name in enumerate(KEYS)}
NAMES = tuple(KEYS)


def kernel_table(beta: float = PAPER_BETA) -> Scores:
    """The heuristics as the kernel reads them."""
    scores: dict[RankKey, int] = {}
    of = [[scores.setdefault(key.demanding(case), len(scores)) for case in CASES] for key in keys(beta).values()]
    return Scores(
        of=np.array(of, dtype=np.int64),
        angle=np.array([key.angle for key in scores]),
        grouped=np.array([key.grouped for key in scores]),
        free=np.array([key.free for key in scores], dtype=np.int64),
        configured=np.array([key.configured for key in scores], dtype=np.int64),
        occupied=np.array([key.occupied for key in scores], dtype=np.float64),
        span=span_of(beta),
    )


def span_of(beta: float) -> int:
    """A number larger than any sum of occupied shares in units of 1e-9."""
    return ceil((2 + beta) * PER_UNIT) + 2


def kernel_holds(node_arrays: NodeArrays, heuristics: Collection[str], beta: float = PAPER_BETA) -> bool:
    """Whether these heuristics' scores of these nodes fit into the kernel's integers.

    They do not fit on nodes with millions of GB; those of `idlest` do not fit on nodes with 1,100 cores.
    """
    most = Resources(*(int(amount) for amount in node_arrays.capacity.max(axis=1, initial=0)))
    largest = [CONFIGURED_FIRST * most.memory_mb, most.ways, most.bandwidth_gbps]
    if any(KEYS[name].grouped for name in heuristics):
        largest.append((most.cores + 1) * span_of(beta))
    return max(largest) < 1 << SCORE_BITS and len(node_arrays.names) <= 1 << PLACE_BITS - 1
