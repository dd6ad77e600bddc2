"""The buckets experiment on other machines: the paper prints their cores in total (512), neither their size nor memory.

Module buckets assumes 64 machines of 8 cores and 64 GB. Here the same buckets meet machines of 8, 16 and 32 cores with
4 to 12 GB a core, 512 cores in total each time. Every claim on figure 11 is judged on each kind of machine. Figure 7 is
not varied.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Resources
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.netbatch.buckets import FIGURE_11, buckets_of, claims_of_figure_11, matches, winners
from slurm_sns.sim.reproduce.netbatch.readings import TOLD
from slurm_sns.sim.reproduce.netbatch.variants import called
from slurm_sns.sim.reproduce.page import Page
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch_pools import POOLS

TOTAL_CORES = 512
CORES, GB_PER_CORE = (8, 16, 32), (4, 6, 8, 12)
#: Days whose buckets take part.
DAYS, QUICK_DAYS = 2.0, 0.02


def machines_of(cores: int, gb_per_core: int) -> NodeArrays:
    """Equal machines of 512 cores in total."""
    count = TOTAL_CORES // cores
    size = Resources(cores, cores * gb_per_core * MIB_PER_GB)
    return NodeArrays(tuple(f"m{at:02}" for at in range(count)), amounts([size] * count))


def contest(piece: tuple[str, int, float, int, int]) -> list[float]:
    """The percentage of a seed's buckets that each of the five heuristics wins on machines of this size."""
    name, seed, days, cores, gb_per_core = piece
    machines = machines_of(cores, gb_per_core)
    won = [winners(matches(sizes, PAPER_PORTFOLIO, machines)) for sizes in buckets_of(name, seed, days)]
    percent: list[float] = (100 * np.concatenate(won).mean(axis=0)).tolist()
    return percent


def reproduce(options: Options) -> Page:
    """Run the contests and return the page."""
    days = QUICK_DAYS if options.quick else DAYS
    seeds = range(1, options.seeds + 1)
    pieces = [(pool, seed, days, *size) for seed in seeds for size in product(CORES, GB_PER_CORE) for pool in POOLS]
    found = dict(zip(pieces, options.results("machines", contest, pieces), strict=True))
    shares = {
        told(*size): {
            pool: dict(zip(PAPER_PORTFOLIO, np.array([found[pool, s, days, *size] for s in seeds]).T, strict=True))
            for pool in POOLS
        }
        for size in product(CORES, GB_PER_CORE)
    }
    return page_of(shares, options.seeds, days)


def told(cores: int, gb_per_core: int) -> str:
    """A kind of machine in words."""
    return f"{cores} cores and {cores * gb_per_core} GB"


def page_of(shares: Mapping[str, Mapping[str, Mapping[str, NDArray[np.float64]]]], seeds: int, days: float) -> Page:
    """The page, from the shares of buckets won on each kind of machine."""
    claims = [replace(each, where=machine) for machine, won in shares.items() for each in claims_of_figure_11(won)]
    rows = [
        (machine, pool, *(f"{won[pool][member].mean():.0f}" for member in PAPER_PORTFOLIO))
        for machine, won in shares.items()
        for pool in won
    ]
    return Page(
        title="NetBatch buckets on other machines (figure 11)",
        made=[
            (
                f"`sns reproduce netbatch-machines`: the buckets of {days:g} days of each pool, {seeds} seeds, matched "
                f"to empty machines of {TOTAL_CORES} cores in total. The column *source* names the machines."
            ),
            (
                "Figure 7, the contest without Mix-Fit, is not varied: its claims are judged on one kind of machine "
                "only ([buckets](../netbatch-buckets/README.md))."
            ),
            TOLD,
        ],
        claims=claims,
        groups=[claim.where for claim in claims],
        numbers=[DataTable(FIGURE_11, ("machines", "pool", *PAPER_PORTFOLIO), rows), called(claims)],
        shown=called(claims),
        remarks=["What each claim hangs on:"],
        seeds=seeds,
    )
