"""The four pools of the Max-Jobs paper at full size: a month of 9 to 13 million jobs each, at the highest load.

The claims are those of module load, here with few seeds. The question is whether the findings on a twentieth of the
machines carry over.
"""

from slurm_sns.sim.reproduce.claims import interval
from slurm_sns.sim.reproduce.netbatch.load import Results, claims_of
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Page
from slurm_sns.sim.reproduce.runs import HIGHEST_LOAD, POLICIES, Sweep

METRICS = ("load_cores", "load_memory", "mean_wait_s", "mean_slowdown", "mean_queue_length")
#: Enough for an interval, though a wide one: this takes 72 replays of about 12 million jobs each.
SEEDS = 3


def sweep_of(options: Options) -> Sweep:
    """All pools at full size, the whole month; quick: one day."""
    days = 1 if options.quick else 30
    return Sweep(options.folder, seeds=min(options.seeds, SEEDS), scale=1.0, days=days, betas=(HIGHEST_LOAD,))


def reproduce(options: Options) -> Page:
    """Run what is missing and return the page."""
    sweep = sweep_of(options)
    options.run(sweep)
    return page_of(sweep)


def page_of(sweep: Sweep) -> Page:
    """The page, from the finished runs of the sweep."""
    results = Results(sweep)
    rows = [
        (name, policy, metric, *vars(interval(found := results.of(name, policy, metric))).values(), len(found))
        for name in sweep.pools
        for policy in POLICIES
        for metric in METRICS
    ]
    waits = [(policy, *(f"{results.of(name, policy).mean():,.0f}" for name in sweep.pools)) for policy in POLICIES]
    return Page(
        title="NetBatch pools at full size",
        made=[
            "`sns reproduce netbatch-full`: the pools with all their machines, at the highest load only. "
            + results.made(),
            "With so few seeds the intervals are wide. Claims about mid load are judged at the highest load too.",
        ],
        claims=claims_of(results),
        numbers=[DataTable("full", ("pool", "policy", "metric", "mean", "low", "high", "seeds"), rows)],
        shown=DataTable("waits", ("mean wait (s)", *(f"pool {name}" for name in sweep.pools)), waits),
        remarks=["Mean waits over the seeds:"],
        seeds=results.seeds,
    )
