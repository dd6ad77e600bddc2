"""Run the pools at full size, four days each, at betas of the paper's figures and at betas of equal queueing.

Cycles are those of a site that leaves the defaults, but every 30 s as in the paper; page netbatch-depth varies them.
With the default interval of a live scheduler, 1 s, fewer seeds of the highest load are replayed under fewer policies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import interval, percent_more
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.workloads.netbatch_pools import POOLS, WAITS_S
from sns_reproductions.netbatch import ABOUT, Results, comparisons, fewest, finished
from sns_reproductions.netbatch_sweeps import (
    HIGHEST_LOAD,
    INTERVAL_S,
    LIVE_INTERVAL_S,
    MAX_JOBS,
    ORIGINAL_LOAD,
    Sweep,
    full_size,
    run_sweeps,
)

#: The original load, mid load and the highest load of the paper's figures.
BETAS = (ORIGINAL_LOAD, 0.68, HIGHEST_LOAD)
PAPER, EQUAL, LIVE = "the paper's betas", "equal queueing", "equal queueing, the live interval"
#: A cycle every second makes a replay several times as long.
LIVE_SEEDS = 10


def sweeps_of(options: Options) -> dict[str, Sweep]:
    """All pools at the paper's betas and at the calibrated ones, by how the betas were chosen."""
    papers = full_size(options, betas=BETAS)
    return {PAPER: papers, EQUAL: replace(papers, betas=tuple(WAITS_S), calibrated=True)}


def live_sweep(options: Options) -> Sweep:
    """The highest load of equal queueing with a live scheduler's interval: the paper's heuristics, and Max-Jobs."""
    return full_size(
        replace(options, seeds=min(options.seeds, LIVE_SEEDS)),
        betas=(HIGHEST_LOAD,),
        policies=(*PAPER_PORTFOLIO, MAX_JOBS),
        calibrated=True,
        interval_s=LIVE_INTERVAL_S,
    )


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figures."""
    sweeps, live = sweeps_of(options), {LIVE: live_sweep(options)}
    run_sweeps(options, [*sweeps.values(), *live.values()])
    return results_of(options, data, list(finished(sweeps).values()), finished(live).get(LIVE))


def at_both_intervals(papers: Results, live: Results) -> DataTable:
    """Mean waits at both intervals, and by how many percent Max-Jobs is above each policy, on the seeds of both."""
    rows: list[Sequence[Any]] = []
    for pool in (each for each in papers.pools if each in live.pools):
        seeds = min(papers.count(pool, HIGHEST_LOAD), live.count(pool))
        for policy in live.sweep.policies:
            waits = [
                [of.of(pool, name, beta=HIGHEST_LOAD)[:seeds] for name in (policy, MAX_JOBS)] for of in (papers, live)
            ]
            above = [interval(percent_more(most, own)) if policy != MAX_JOBS else "" for own, most in waits]
            jobs = round(live.of(pool, policy, "jobs")[:seeds].mean())
            rows.append((pool, policy, *(float(own.mean()) for own, _ in waits), *above, jobs, seeds))
    seconds = (INTERVAL_S, LIVE_INTERVAL_S)
    told = [f"{what} {each} s" for what in ("mean wait (s) at", "max-jobs above it (%) at") for each in seconds]
    return DataTable("intervals", ("pool", "policy", *told, "jobs", "seeds"), rows)


def results_of(
    options: Options, data: Mapping[str, Any], results: Sequence[Results], live: Results | None = None
) -> PageResults:
    """Draw figures 13 to 15, a panel for each pool and each choice of betas; the results, from the finished runs.

    `live` are those with the live interval, of which the paper says nothing.
    """
    for stem, (metric, label) in data["figures"].items():
        panels = {
            f"pool {pool}, {each.group}": each.lines(pool, metric)
            for pool in POOLS
            for each in results
            if pool in each.pools
        }
        if panels:
            figures.logarithmic_lines(options.out, stem, panels, ("load (%)", label), ticks=(1, 2, 5))
    equal = next((each for each in results if each.group == EQUAL), None)
    tables = [at_both_intervals(equal, live)] if equal and live else []
    fields = {**ABOUT, "results": results, "live_interval_s": LIVE_INTERVAL_S}
    return PageResults(comparisons(results), tables, fields, fewest(results))
