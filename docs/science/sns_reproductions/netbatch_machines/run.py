"""Match buckets to machines of 8, 16 and 32 cores with 4 to 12 GB a core, 512 cores in total each time.

Page netbatch-buckets assumes 64 machines of 8 cores and 64 GB.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.netbatch import Shares, by_member, call, points
from sns_reproductions.netbatch_buckets.run import TOTAL_CORES, buckets_of, machines_of, matches, winners

CORES, GB_PER_CORE = (8, 16, 32), (4, 6, 8, 12)
#: Days whose buckets take part.
DAYS, QUICK_DAYS = 2.0, 0.02


def contest(piece: tuple[str, int, float, int, int]) -> list[float]:
    """The percentage of a seed's buckets that each of the five heuristics wins on machines of this size."""
    name, seed, days, cores, gb_per_core = piece
    machines = machines_of(cores, gb_per_core)
    won = [winners(matches(sizes, PAPER_PORTFOLIO, machines)) for sizes in buckets_of(name, seed, days)]
    percent: list[float] = (100 * np.concatenate(won).mean(axis=0)).tolist()
    return percent


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run the contests."""
    days = QUICK_DAYS if options.quick else DAYS
    seeds, sizes = range(1, options.seeds + 1), list(product(CORES, GB_PER_CORE))
    pieces = [(pool, seed, days, *size) for seed in seeds for size in sizes for pool in POOLS]
    found = options.results("machines", contest, pieces)
    shares = [
        Shares(
            {pool: by_member(PAPER_PORTFOLIO, [found[pool, s, days, *size] for s in seeds]) for pool in POOLS},
            told(*size),
        )
        for size in sizes
    ]
    return results_of(shares, options.seeds, days)


def told(cores: int, gb_per_core: int) -> str:
    """A kind of machine in words."""
    return f"{cores} cores and {cores * gb_per_core} GB"


def results_of(shares: Sequence[Shares], seeds: int, days: float) -> PageResults:
    """The results, from the shares of buckets won on each kind of machine."""
    about = {"shares": shares, "days": days, "total_cores": TOTAL_CORES, "call": call}
    return PageResults(points(shares), (), about, seeds)
