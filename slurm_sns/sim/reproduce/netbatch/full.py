"""The four pools of the Max-Jobs paper at full size, four days each.

They are replayed at betas of the paper's figures and at betas of equal queueing.

The claims are those of module load. Cycles are those of a site that leaves the defaults; module depth varies them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import interval
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.netbatch.depth import DAYS, QUICK_DAYS, QUICK_SCALE
from slurm_sns.sim.reproduce.netbatch.load import FIGURES, Results, drawings, finished, panel
from slurm_sns.sim.reproduce.netbatch.load_claims import claims_of
from slurm_sns.sim.reproduce.netbatch.readings import PERCENT, TOLD
from slurm_sns.sim.reproduce.page import Page
from slurm_sns.sim.reproduce.rows import run_with_rows
from slurm_sns.sim.reproduce.runs import HIGHEST_LOAD, INTERVAL_S, MAX_JOBS, ORIGINAL_LOAD, Sweep
from slurm_sns.sim.workloads.netbatch_pools import CALIBRATED_BETAS, POOLS, WAITS_S

METRICS = ("load_cores", "load_memory", "mean_wait_s", "mean_slowdown", "mean_queue_length")
#: The original load, mid load and the highest load of the paper's figures.
BETAS = (ORIGINAL_LOAD, 0.68, HIGHEST_LOAD)
PAPER, EQUAL = "the paper's betas", "equal queueing"
#: What a page says of the betas of equal queueing.
_BETAS = [beta for of_pool in CALIBRATED_BETAS.values() for beta in of_pool.values()]
BELOW_THE_PAPER = (
    f"These betas ({min(_BETAS):g} to {max(_BETAS):g}) lie below {HIGHEST_LOAD:g}, the paper's smallest, and outside "
    "all ranges of the authors' notes. At them the load is about 100 % of capacity, and the four days start with an "
    "empty pool: the waits are those of a queue that builds up, not of a steady state."
)
#: What a page at full size says of short waits.
NOTHING_QUEUES = (
    f"A job waits {INTERVAL_S / 2:g} s on average for the next cycle, so that a mean wait near {INTERVAL_S / 2:g} s "
    "means that nothing queues. At the paper's betas that is so nearly everywhere at full size."
)


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


def named(results: Results) -> str:
    """How the betas of these runs were chosen."""
    return EQUAL if results.sweep.calibrated else PAPER


def page_of(options: Options, sweeps: Sequence[Sweep]) -> Page:
    """The page, from the finished runs of the sweeps."""
    of_sweeps = finished(sweeps)
    _draw(options, of_sweeps)
    claims = [(named(results), claim) for results in of_sweeps for claim in claims_of(results)]
    rows = [
        (
            named(results),
            name,
            results.sweep.beta_of(name, beta),
            policy,
            metric,
            *vars(interval(found)).values(),
            len(found),
        )
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
            *(told_queueing(results) for results in of_sweeps if results.sweep.calibrated),
            NOTHING_QUEUES,
            f"{TOLD} {PERCENT}",
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


def told_queueing(results: Results) -> str:
    """How equal the queueing of a calibrated sweep came out, and where its betas lie."""
    waits: Mapping[float, str] = {
        beta: ", ".join(
            f"{name} {results.of(name, MAX_JOBS, beta=beta).mean():,.0f} s ({results.sweep.complete(beta, name)} seeds)"
            for name in results.sweep.pools
        )
        for beta in results.betas
    }
    aims = "; ".join(
        f"at {results.told_load(beta)}, for which {WAITS_S[beta]:,.0f} s were aimed at: {told}"
        for beta, told in waits.items()
    )
    return f"How equal the queueing came out, by Max-Jobs' mean wait {aims}. {BELOW_THE_PAPER}"


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
            figures.logarithmic_lines(options.out, stem, panels, ("load (%)", label), ticks=(1, 2, 5))
