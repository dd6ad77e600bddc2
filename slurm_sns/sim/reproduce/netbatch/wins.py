"""Figure 16 of the Max-Jobs paper: in how many cycles each heuristic reaches the maximum of the portfolio.

At full size, at the highest load, from the runs of module full. "Even more than in the above buckets experiment"
compares with the buckets that each heuristic wins (module buckets, figure 11).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, Interval, interval, joint
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.netbatch import buckets
from slurm_sns.sim.reproduce.netbatch.full import NOTHING_QUEUES, named
from slurm_sns.sim.reproduce.netbatch.full import sweeps_of as full_sweeps
from slurm_sns.sim.reproduce.netbatch.load import HEURISTICS, Results, finished
from slurm_sns.sim.reproduce.netbatch.load_claims import BEST_MEMORY, MIX, WORSE_CORES
from slurm_sns.sim.reproduce.netbatch.readings import TOLD, WINS_MARKEDLY_MORE, WINS_MORE, printed_share
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.rows import run_with_rows
from slurm_sns.sim.reproduce.runs import HIGHEST_LOAD, MAX_JOBS, Sweep

#: Mix-Fit's percentage in pool A, as the figure shows it: "still getting as low as 73% in pool A".
LEAST = 73
FIGURE = "fig. 16"
#: Days of the buckets that are compared with; the whole month is on their own page.
BUCKET_DAYS, QUICK_BUCKET_DAYS = 1.0, 0.02

#: Pool -> heuristic -> percent, by seed.
Shares = Mapping[str, Mapping[str, NDArray[np.float64]]]


def sweeps_of(options: Options) -> list[Sweep]:
    """Max-Jobs alone, at the highest load of module full's sweeps."""
    return [replace(each, betas=(HIGHEST_LOAD,), policies=(MAX_JOBS,)) for each in full_sweeps(options)]


def reproduce(options: Options) -> Page:
    """Run what netbatch-full has not run yet and return the page."""
    sweeps = sweeps_of(options)
    run_with_rows(options, sweeps)
    of_sweeps = finished(sweeps)
    pools = dict.fromkeys(pool for results in of_sweeps for pool in results.sweep.pools)
    days = QUICK_BUCKET_DAYS if options.quick else BUCKET_DAYS
    most = max(
        (results.sweep.complete(HIGHEST_LOAD, pool) for results in of_sweeps for pool in results.sweep.pools), default=0
    )
    pieces = [(pool, seed, days) for pool in pools for seed in range(1, most + 1)]
    found = options.shared("buckets-of-wins", buckets.contest, pieces)
    of_buckets = {
        pool: dict(
            zip(
                HEURISTICS,
                np.array([found[pool, s, days][buckets.FIGURE_11] for s in range(1, most + 1)]).T,
                strict=True,
            )
        )
        for pool in pools
    }
    return page_of(options, of_sweeps, of_buckets)


def page_of(options: Options, of_sweeps: Sequence[Results], of_buckets: Shares) -> Page:
    """The page, from the finished runs and the shares of buckets won."""
    shares = {named(results): shares_of(results) for results in of_sweeps}
    claims = [(name, claim) for name, found in shares.items() for claim in claims_of(found, of_buckets)]
    bars = {
        member: {
            f"{pool}, {name}": interval(values[member])
            for name, found in shares.items()
            for pool, values in found.items()
        }
        for member in HEURISTICS
    }
    figures.bars(options.out, "figure-16", bars, ("", "% of cycles"))
    rows = [
        (name, pool, member, *vars(interval(values)).values(), len(values))
        for name, found in shares.items()
        for pool, members in found.items()
        for member, values in members.items()
    ]
    return Page(
        title="NetBatch wins: which heuristics reach the maximum in Max-Jobs' cycles (figure 16)",
        made=[
            (
                "`sns reproduce netbatch-wins`, from Max-Jobs' runs of netbatch-full. Only cycles in which a job waits "
                "are counted. A pool is missing where fewer than two of its seeds are complete."
            ),
            *(f"*{named(results)}*: {results.made()}" for results in of_sweeps),
            NOTHING_QUEUES,
            TOLD,
        ],
        claims=[claim for _, claim in claims],
        groups=[group for group, _ in claims],
        drawings=[
            SavedFigure("figure-16", "Figure 16: percentage of cycles in which a heuristic reaches the maximum.")
        ],
        numbers=[DataTable("figure-16", ("betas", "pool", "heuristic", "percent", "low", "high", "seeds"), rows)],
        remarks=[
            (
                "The percentages of a pool add up to more than 100 %, because in most cycles several heuristics match "
                "equally many jobs."
            )
        ],
        seeds=min((results.seeds for results in of_sweeps), default=0),
    )


def shares_of(results: Results) -> Shares:
    """Percent of the cycles with a waiting job in which each heuristic reaches the maximum."""
    found = {}
    for name in results.sweep.pools:
        runs = results.sweep.read(name, HIGHEST_LOAD, MAX_JOBS)
        found[name] = {
            member: np.array([100 * run["wins"][member] / run["cycles_with_waiting"] for run in runs])
            for member in HEURISTICS
        }
    return found


def claims_of(shares: Shares, of_buckets: Shares | None = None) -> list[Claim]:
    """What the paper says of the figure, on the pools that are there; without buckets, but for its words on them."""
    claims: list[Claim] = []
    for name, won in shares.items():
        others = [member for member in HEURISTICS if member != MIX]
        second = max(others, key=lambda member: float(won[member].mean()))
        ahead = interval(won[MIX] - won[second])
        text = f'{name}: "Mix-Fit is dominant"'
        dominant = WINS_MORE.of(FIGURE, text, f"points, mix-fit - {second}", ahead)
        claims.append(dominant)
        if of_buckets is not None:
            text = f'{name}: Mix-Fit is dominant "even more than in the above buckets experiment" ({WINS_MORE})'
            more = _paired(won[MIX], of_buckets[name][MIX])
            further = WINS_MORE.of(FIGURE, text, "points of mix-fit, cycles - buckets", more)
            claims.append(joint(text, dominant, further))
        text = f'{name}: "Best-Fit-Memory is markedly better than Worse-Fit-Cores"'
        better = interval(won[BEST_MEMORY] - won[WORSE_CORES])
        measure = "points, best-fit-memory - worse-fit-cores"
        claims.append(WINS_MARKEDLY_MORE.of(FIGURE, text, measure, better))
    return [*claims, *_least_in_a(shares), *_especially(shares)]


def _least_in_a(shares: Shares) -> list[Claim]:
    """Mix-Fit's share in A: the printed value, and that it is the least of all pools."""
    if "A" not in shares:
        return []
    text = f'A: Mix-Fit\'s share is "still getting as low as {LEAST}% in pool A"'
    reading = printed_share(LEAST, "% of cycles")
    printed = reading.of(FIGURE, text, "% of cycles", interval(shares["A"][MIX]))
    text = f"Mix-Fit's share is least in A ({WINS_MORE})"
    parts = [
        WINS_MORE.of(FIGURE, text, f"points, {name} - A", _paired(won[MIX], shares["A"][MIX]))
        for name, won in shares.items()
        if name != "A"
    ]
    return [printed, *([joint(text, *parts)] if parts else [])]


def _especially(shares: Shares) -> list[Claim]:
    """In A and in D, Best-Fit-Memory is ahead, and further ahead than in each of the other two."""
    lead = {pool: won[BEST_MEMORY] - won[WORSE_CORES] for pool, won in shares.items()}
    claims: list[Claim] = []
    for name in [pool for pool in "AD" if pool in shares]:
        text = f'{name}: Best-Fit-Memory is better than Worse-Fit-Cores "especially in pools A and D" ({WINS_MORE})'
        further = [
            WINS_MORE.of(FIGURE, text, f"points of lead, {name} - {calm}", _paired(lead[name], lead[calm]))
            for calm in "BC"
            if calm in shares
        ]
        ahead = WINS_MORE.of(FIGURE, text, f"points of lead, {name}", interval(lead[name]))
        claims += [joint(text, ahead, *further)] if further else []
    return claims


def _paired(one: NDArray[np.float64], other: NDArray[np.float64]) -> Interval:
    """The difference by seed, over the seeds that both have."""
    seeds = min(len(one), len(other))
    return interval(one[:seeds] - other[:seeds])
