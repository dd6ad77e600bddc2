"""The four pools of the Max-Jobs paper at full size, four days each.

They are replayed at betas of the paper's figures and at betas of equal queueing.

The claims are those of module load. Cycles are those of a site that leaves the defaults; module depth varies them.
"""

from collections.abc import Sequence
from dataclasses import replace

from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import interval
from slurm_sns.sim.reproduce.netbatch.depth import DAYS, QUICK_DAYS, QUICK_SCALE
from slurm_sns.sim.reproduce.netbatch.load import FIGURES, Results, drawings, panel
from slurm_sns.sim.reproduce.netbatch.load_claims import claims_of
from slurm_sns.sim.reproduce.netbatch.readings import TOLD
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Page
from slurm_sns.sim.reproduce.rows import run_with_rows
from slurm_sns.sim.reproduce.runs import HIGHEST_LOAD, ORIGINAL_LOAD, Sweep
from slurm_sns.sim.workloads.netbatch_pools import POOLS, WAITS_S

METRICS = ("load_cores", "load_memory", "mean_wait_s", "mean_slowdown", "mean_queue_length")
#: The original load, mid load and the highest load of the paper's figures.
BETAS = (ORIGINAL_LOAD, 0.68, HIGHEST_LOAD)
PAPER, EQUAL = "the paper's betas", "equal queueing"


def sweeps_of(options: Options) -> list[Sweep]:
    """All pools at full size, at the paper's betas and at the calibrated ones; quick: a tenth, a quarter of a day."""
    scale, days = (QUICK_SCALE, QUICK_DAYS) if options.quick else (1.0, DAYS)
    papers = Sweep(options.folder, options.seeds, scale=scale, days=days, betas=BETAS)
    return [papers, replace(papers, betas=tuple(WAITS_S), calibrated=True)]


def reproduce(options: Options) -> Page:
    """Run what is missing and return the page."""
    sweeps = sweeps_of(options)
    run_with_rows(options, sweeps)
    return page_of(options, sweeps)


def finished(sweeps: Sequence[Sweep]) -> list[Results]:
    """The runs of the sweeps, without the pools that have fewer than two complete seeds at the highest load."""
    found = []
    for sweep in sweeps:
        pools = tuple(pool for pool in sweep.pools if sweep.complete(HIGHEST_LOAD, pool) > 1)
        if pools:
            found.append(Results(replace(sweep, pools=pools)))
    return found


def named(results: Results) -> str:
    """How the betas of these runs were chosen."""
    return EQUAL if results.sweep.calibrated else PAPER


def page_of(options: Options, sweeps: Sequence[Sweep]) -> Page:
    """The page, from the finished runs of the sweeps."""
    of_sweeps = finished(sweeps)
    _draw(options, of_sweeps)
    claims = [(named(results), claim) for results in of_sweeps for claim in claims_of(results)]
    rows = [
        (named(results), name, beta, policy, metric, *vars(interval(found)).values(), len(found))
        for results in of_sweeps
        for name in results.sweep.pools
        for beta in results.betas
        for policy in results.sweep.policies
        for metric in METRICS
        for found in [results.of(name, policy, metric, beta)]
    ]
    waits = [
        (
            named(results),
            name,
            policy,
            *(f"{results.of(name, policy, beta=beta).mean():,.0f}" for beta in tuple(WAITS_S)),
        )
        for results in of_sweeps
        for name in results.sweep.pools
        for policy in results.sweep.policies
        if set(WAITS_S) <= set(results.betas)
    ]
    return Page(
        title="NetBatch pools at full size",
        made=[
            (
                "`sns reproduce netbatch-full`: the pools with all their machines. A pool is missing where fewer than "
                "two of its seeds are complete."
            ),
            *(f"*{named(results)}*: {results.made()}" for results in of_sweeps),
            TOLD,
        ],
        claims=[claim for _, claim in claims],
        groups=[group for group, _ in claims],
        drawings=drawings(" at full size, on a logarithmic axis") if of_sweeps else [],
        numbers=[
            DataTable("full", ("betas", "pool", "beta", "policy", "metric", "mean", "low", "high", "seeds"), rows)
        ],
        shown=DataTable("waits", ("betas", "pool", "policy", "highest load", "mid load"), waits),
        remarks=["Mean waits (s) over the seeds:"],
        seeds=min((results.seeds for results in of_sweeps), default=0),
    )


def _draw(options: Options, of_sweeps: Sequence[Results]) -> None:
    """Figures 13 to 15 of the finished runs: a panel for each pool and each choice of betas."""
    for stem, (metric, label) in FIGURES.items():
        panels = {
            f"pool {pool}, {named(results)}": panel(results, pool, metric)
            for pool in POOLS
            for results in of_sweeps
            if pool in results.sweep.pools
        }
        if panels:
            figures.logarithmic_lines(options.out, stem, panels, ("load (%)", label))
