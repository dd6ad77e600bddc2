"""Count the wins of each heuristic at full size, at the highest load, in the runs of page netbatch-full.

"Even more than in the above buckets experiment" compares with the buckets that each heuristic wins (figure 11).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.running import Options, PageResults
from sns_reproductions.netbatch import ABOUT, Results, Samples, by_member, fewest, finished, points, wins_of
from sns_reproductions.netbatch_buckets.run import FIGURE_11, contest
from sns_reproductions.netbatch_full.run import sweeps_of as full_sweeps
from sns_reproductions.netbatch_sweeps import HIGHEST_LOAD, MAX_JOBS, Sweep, run_sweeps

#: Days of the buckets that are compared with; the whole month is on their own page.
BUCKET_DAYS, QUICK_BUCKET_DAYS = 1.0, 0.02


def sweeps_of(options: Options) -> dict[str, Sweep]:
    """Max-Jobs alone, at the highest load of the sweeps of page netbatch-full."""
    return {
        name: replace(sweep, betas=(HIGHEST_LOAD,), policies=(MAX_JOBS,))
        for name, sweep in full_sweeps(options).items()
    }


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run what page netbatch-full has not run yet, and the buckets; draw the figure."""
    sweeps = sweeps_of(options)
    run_sweeps(options, list(sweeps.values()))
    results = list(finished(sweeps).values())
    pools = dict.fromkeys(pool for each in results for pool in each.pools)
    seeds = range(1, max((each.count(pool) for each in results for pool in each.pools), default=0) + 1)
    days = QUICK_BUCKET_DAYS if options.quick else BUCKET_DAYS
    pieces = [(pool, seed, days) for pool in pools for seed in seeds]
    found = options.results("buckets-of-wins", contest, pieces, shared=True)
    buckets = {
        pool: by_member(PAPER_PORTFOLIO, [found[pool, seed, days][FIGURE_11] for seed in seeds]) for pool in pools
    }
    return results_of(options, results, buckets)


def results_of(
    options: Options, results: Sequence[Results], buckets: Mapping[str, Mapping[str, Samples]]
) -> PageResults:
    """Draw the figure; the results, from the finished runs and the shares of buckets won."""
    shares = [wins_of(each) for each in results]
    of_pools = [(each.group, pool, won) for each in shares for pool, won in each.won.items()]
    bars = {member: {f"{pool}, {group}": won[member] for group, pool, won in of_pools} for member in PAPER_PORTFOLIO}
    figures.bars(options.out, "figure-16", bars, ("", "% of cycles"))
    return PageResults(points(shares, buckets), (), {**ABOUT, "results": results, "shares": shares}, fewest(results))
