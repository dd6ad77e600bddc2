"""Run every pool at full size under every variant of the generator, at the betas of equal queueing.

Generators with more or longer bursts are left out: page netbatch-generator shows them at the original load.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.workloads.netbatch_pools import BURSTS, POOLS, VARIANT_BETAS, VARIANTS
from sns_reproductions.netbatch import ABOUT, Results, call, comparisons, fewest, finished, points, wins_of
from sns_reproductions.netbatch_sweeps import FIRST_FIT, HIGHEST_LOAD, MAX_JOBS, Sweep, full_size, run_sweeps

POLICIES = (*PAPER_PORTFOLIO, MAX_JOBS, FIRST_FIT)


def sweeps_of(options: Options) -> dict[str, Sweep]:
    """The sweeps by variant."""
    of = {"betas": (HIGHEST_LOAD,), "policies": POLICIES, "calibrated": True}
    return {variant: full_size(options, variant=variant, **of) for variant in VARIANTS if variant not in BURSTS}


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    sweeps = sweeps_of(options)
    run_sweeps(options, list(sweeps.values()))
    return results_of(list(finished(sweeps).values()))


def results_of(results: Sequence[Results]) -> PageResults:
    """The results, from the finished runs."""
    shares = [wins_of(each) for each in results]
    return PageResults(
        {**comparisons(results), **points(shares)},
        (),
        {
            **ABOUT,
            "variants": list(zip(results, shares, strict=True)),
            "results": results,
            "own_betas": list(VARIANT_BETAS),
            "call": call,
            "pools": list(POOLS),
        },
        fewest(results),
    )
