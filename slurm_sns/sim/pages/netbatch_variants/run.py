"""Run every pool at full size under every variant of the generator, at the betas of equal queueing.

Generators with more or longer bursts are left out: page netbatch-generator shows them at the original load.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages.netbatch import ABOUT, Results, called, comparisons, fewest, finished, points, wins_of
from slurm_sns.sim.pages.netbatch_sweeps import FIRST_FIT, HIGHEST_LOAD, MAX_JOBS, Sweep, full_size, run_with_rows
from slurm_sns.sim.pages.page import DataTable, PageResults
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.workloads.netbatch_pools import POOLS, VARIANT_BETAS
from slurm_sns.sim.workloads.netbatch_variants import BURSTS, VARIANTS

POLICIES = (*PAPER_PORTFOLIO, MAX_JOBS, FIRST_FIT)


def sweeps_of(options: Options) -> dict[str, Sweep]:
    """The sweeps by variant."""
    of = {"betas": (HIGHEST_LOAD,), "policies": POLICIES, "calibrated": True}
    return {variant: full_size(options, variant=variant, **of) for variant in VARIANTS if variant not in BURSTS}


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    sweeps = sweeps_of(options)
    run_with_rows(options, list(sweeps.values()))
    return results_of(list(finished(sweeps).values()))


def results_of(results: Sequence[Results]) -> PageResults:
    """The results, from the finished runs."""
    shares = [wins_of(each) for each in results]
    rows = [
        (each.group, pool, policy, each.mean(pool, policy), each.load(pool, HIGHEST_LOAD))
        for each in results
        for pool in each.pools
        for policy in each.sweep.policies
    ]
    queueing = [(each.group, *(_queueing(each, pool) if pool in each.pools else "" for pool in POOLS)) for each in results]
    return PageResults(
        {**comparisons(results), **points(shares)},
        [DataTable("waits", ("variant", "pool", "policy", "mean_wait_s", "load_percent"), rows), called],
        {
            **ABOUT,
            "variants": list(zip(results, shares, strict=True)),
            "results": results,
            "own_betas": list(VARIANT_BETAS),
            "queueing": DataTable("queueing", ("variant", *(f"pool {pool}" for pool in POOLS)), queueing),
        },
        fewest(results),
    )


def _queueing(results: Results, pool: str) -> str:
    """Max-Jobs' mean wait and the load."""
    return f"{results.mean(pool, MAX_JOBS):,.0f} s, {results.load(pool, HIGHEST_LOAD):.0f} %"
