"""Run the pools at full size, four days each, at betas of the paper's figures and at betas of equal queueing.

Cycles are those of a site that leaves the defaults; page netbatch-depth varies them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.workloads.netbatch_pools import POOLS, WAITS_S
from sns_reproductions.netbatch import ABOUT, Results, comparisons, fewest, finished
from sns_reproductions.netbatch_sweeps import HIGHEST_LOAD, ORIGINAL_LOAD, Sweep, full_size, run_sweeps

#: The original load, mid load and the highest load of the paper's figures.
BETAS = (ORIGINAL_LOAD, 0.68, HIGHEST_LOAD)
PAPER, EQUAL = "the paper's betas", "equal queueing"


def sweeps_of(options: Options) -> dict[str, Sweep]:
    """All pools at the paper's betas and at the calibrated ones, by how the betas were chosen."""
    papers = full_size(options, betas=BETAS)
    return {PAPER: papers, EQUAL: replace(papers, betas=tuple(WAITS_S), calibrated=True)}


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figures."""
    sweeps = sweeps_of(options)
    run_sweeps(options, list(sweeps.values()))
    return results_of(options, data, list(finished(sweeps).values()))


def results_of(options: Options, data: Mapping[str, Any], results: Sequence[Results]) -> PageResults:
    """Draw figures 13 to 15, a panel for each pool and each choice of betas; the results, from the finished runs."""
    for stem, (metric, label) in data["figures"].items():
        panels = {
            f"pool {pool}, {each.group}": each.lines(pool, metric)
            for pool in POOLS
            for each in results
            if pool in each.pools
        }
        if panels:
            figures.logarithmic_lines(options.out, stem, panels, ("load (%)", label), ticks=(1, 2, 5))
    return PageResults(comparisons(results), (), {**ABOUT, "results": results}, fewest(results))
