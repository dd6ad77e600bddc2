"""Run the sweep over loads, and draw wait, slowdown and queue length of each pool."""

from collections.abc import Mapping
from typing import Any

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from sns_reproductions.netbatch import ABOUT, Results, comparisons, fewest, finished
from sns_reproductions.netbatch_sweeps import HIGHEST_LOAD, ORIGINAL_LOAD, Sweep, run_sweeps

#: Scale, days and loads of a quick run.
QUICK_SCALE, QUICK_DAYS, QUICK_BETAS = 0.02, 2, (ORIGINAL_LOAD, 0.8, HIGHEST_LOAD)


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figures."""
    sweep = Sweep(options.folder, options.seeds)
    if options.quick:
        sweep = Sweep(options.folder, options.seeds, scale=QUICK_SCALE, days=QUICK_DAYS, betas=QUICK_BETAS)
    run_sweeps(options, [sweep])
    return results_of(options, data, list(finished({"": sweep}).values()))


def results_of(options: Options, data: Mapping[str, Any], results: list[Results]) -> PageResults:
    """The results, from the finished runs of the one sweep; empty if there are none."""
    tables = [table for each in results for table in _drawn(options, data, each)]
    return PageResults(comparisons(results), tables, {**ABOUT, "results": results}, fewest(results))


def _drawn(options: Options, data: Mapping[str, Any], results: Results) -> list[DataTable]:
    """Draw the figures; their numbers."""
    tables = []
    for stem, (metric, label) in data["figures"].items():
        panels = {pool: results.lines(pool, metric) for pool in results.pools}
        rows = [
            (pool, beta, load, policy, *value, results.count(pool, beta))
            for pool, series in panels.items()
            for policy, points in series.items()
            for beta, (load, value) in zip(results.betas, points, strict=True)
        ]
        figures.lines(options.out, stem, {f"pool {pool}": of for pool, of in panels.items()}, ("load (%)", label))
        header = ("pool", "beta", "load_percent", "policy", metric, "low", "high", "seeds")
        tables.append(DataTable(stem, header, rows))
    return tables
