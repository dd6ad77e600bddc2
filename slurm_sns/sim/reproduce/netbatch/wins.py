"""Figure 16 of the Max-Jobs paper: in how many cycles each heuristic reaches the maximum of the portfolio."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import Claim, interval
from slurm_sns.sim.reproduce.netbatch.load import BEST_MEMORY, HEURISTICS, MIX, WORSE_CORES, Results
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Drawing, Page
from slurm_sns.sim.reproduce.runs import MAX_JOBS
from slurm_sns.sim.workloads.netbatch_pools import POOLS

#: Mix-Fit's percentage in pool A, as the figure shows it: the smallest of the four pools.
LEAST = 73

#: Pool -> heuristic -> percent of the cycles with a waiting job in which it reaches the maximum, by seed.
Shares = Mapping[str, Mapping[str, NDArray[np.float64]]]


def reproduce(options: Options) -> Page:
    """Run what netbatch-load has not run yet and return the page."""
    sweep = options.sweep()
    options.run(sweep)
    return page_of(options, Results(sweep))


def page_of(options: Options, results: Results) -> Page:
    """The page, from the finished runs."""
    by_beta = {beta: _shares(results, beta) for beta in results.betas}
    highest = by_beta[results.highest]
    bars = {member: {f"pool {name}": interval(highest[name][member]) for name in POOLS} for member in HEURISTICS}
    figures.bars(options.out, "figure-16", bars, ("", "% of cycles"))
    rows = [
        (name, beta, member, *vars(interval(values)).values(), len(values))
        for beta, pools in by_beta.items()
        for name, members in pools.items()
        for member, values in members.items()
    ]
    return Page(
        title="NetBatch wins: which heuristics reach the maximum in Max-Jobs' cycles (figure 16)",
        made=[
            "`sns reproduce netbatch-wins`, from the runs of netbatch-load. Only cycles in which a job waits are "
            f"counted, at the highest load (beta {results.highest:g}). " + results.made()
        ],
        claims=_claims(highest),
        drawings=[Drawing("figure-16", "Figure 16: percentage of cycles in which a heuristic reaches the maximum.")],
        numbers=[DataTable("figure-16", ("pool", "beta", "heuristic", "percent", "low", "high", "seeds"), rows)],
        remarks=[
            (
                "The percentages of a pool add up to more than 100 %, because in most cycles several heuristics match "
                "equally many jobs."
            )
        ],
        seeds=results.seeds,
    )


def _shares(results: Results, beta: float) -> Shares:
    runs = {name: results.sweep.read(name, beta, MAX_JOBS) for name in POOLS}
    return {
        name: {
            member: np.array([100 * run["wins"][member] / run["cycles_with_waiting"] for run in runs[name]])
            for member in HEURISTICS
        }
        for name in POOLS
    }


def _claims(shares: Shares) -> list[Claim]:
    claims = []
    for name in POOLS:
        others = [member for member in HEURISTICS if member != MIX]
        second = max(others, key=lambda member: float(shares[name][member].mean()))
        ahead = interval(shares[name][MIX] - shares[name][second])
        claims.append(Claim("fig. 16", "Mix-Fit is dominant", f"{name}: points, mix-fit - {second}", ahead, low=0))
        found = interval(shares[name][MIX])
        text = f"Mix-Fit reaches the maximum in at least {LEAST} % of cycles"
        claims.append(Claim("fig. 16", text, f"{name}: % of cycles", found, low=LEAST))
    for name in "BCD":
        less = interval(shares["A"][MIX] - shares[name][MIX])
        claims.append(Claim("fig. 16", "Mix-Fit's share is least in A", f"points, A - {name}", less, high=0))
    for name in "AD":
        better = interval(shares[name][BEST_MEMORY] - shares[name][WORSE_CORES])
        text = f"{name}: Best-Fit-Memory is markedly better than Worse-Fit-Cores"
        claims.append(Claim("fig. 16", text, "points, best-fit-memory - worse-fit-cores", better, low=0))
    return claims
