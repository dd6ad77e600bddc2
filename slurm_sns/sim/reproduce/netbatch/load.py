"""Figures 13, 14 and 15 of the Max-Jobs paper: wait, slowdown and queue length against load, four pools."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval, interval, percent_more
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.netbatch.load_claims import claims_of
from slurm_sns.sim.reproduce.netbatch.readings import PERCENT, TOLD
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.rows import ROWS, run_with_rows
from slurm_sns.sim.reproduce.runs import HIGHEST_LOAD, MAX_JOBS, MAX_JOBS_7, Sweep, sweep_of
from slurm_sns.sim.workloads.netbatch_pools import WAITS_S

FIGURES = {
    "figure-13": ("mean_wait_s", "mean wait (s)"),
    "figure-14": ("mean_slowdown", "mean slowdown"),
    "figure-15": ("mean_queue_length", "mean queue length"),
}
WAIT = "mean_wait_s"
#: The levels of load of a sweep with betas of equal queueing, in words.
LEVELS = dict(zip(WAITS_S, ("the highest load", "mid load"), strict=True))
#: The paper's five, in the order of figures and tables.
HEURISTICS = PAPER_PORTFOLIO
#: What the page says of the claims that do not hold.
WHY = (
    (
        "The generated pools share the paper's totals, mixes of sizes and bursts, but not its arrival process, run "
        "times and machine sizes, which are not printed. This page gives no reasons for its verdicts: whether one "
        "hangs on such a thing is tested on pages of their own, [one assumption at a "
        "time](../netbatch-variants/README.md), and [the number of machines, how far a cycle looks and how often it "
        "withholds capacity](../netbatch-depth/README.md). A job waits 15 s on average for the next cycle alone. How "
        "the generator was chosen: [generator](../netbatch-generator/README.md)."
    ),
)
#: The remark above the table of the authors' own portfolio.
SEVEN = (
    "The authors' simulator has a portfolio of seven: the paper's five and memory-first-best and memory-first-worse, "
    "which fill the machines with the least configured memory first. The paper does not mention it. The table shows "
    "the mean wait under Max-Jobs with the seven and with the five, and by how many percent the former is above the "
    "latter (95 % interval, in pairs by seed):"
)


class Results:
    """The runs of a sweep by pool, policy and load."""

    def __init__(self, sweep: Sweep) -> None:
        """Keep only the loads at which every pool has at least two complete seeds."""
        self.sweep = sweep
        self.betas = [
            beta
            for beta in sorted(sweep.betas, reverse=True)
            if all(sweep.complete(beta, pool) > 1 for pool in sweep.pools)
        ]
        self.highest = min(self.betas)
        between = [beta for beta in self.betas if beta != self.highest]
        self.middle = min(between, default=self.highest)

    @property
    def seeds(self) -> int:
        """The number of seeds that every pool has at the highest load."""
        return min(self.sweep.complete(self.highest, pool) for pool in self.sweep.pools)

    def of(self, pool: str, policy: str, metric: str = WAIT, beta: float | None = None) -> NDArray[np.float64]:
        """One metric by seed, at the highest load unless `beta` is given."""
        return self.sweep.values(pool, beta or self.highest, policy, metric)

    def mean_of(
        self, pool: str, policies: Iterable[str], metric: str = WAIT, beta: float | None = None
    ) -> NDArray[np.float64]:
        """The mean of these policies, by seed."""
        mean: NDArray[np.float64] = np.mean([self.of(pool, policy, metric, beta) for policy in policies], axis=0)
        return mean

    def ranked(self, pool: str, policies: Iterable[str], metric: str = WAIT, beta: float | None = None) -> list[str]:
        """The policies by their mean over the seeds, the smallest first."""
        return sorted(policies, key=lambda policy: float(self.of(pool, policy, metric, beta).mean()))

    def more(self, pool: str, one: str, other: str, metric: str = WAIT, beta: float | None = None) -> Interval:
        """By how many percent policy `one` is above policy `other`, in pairs by seed."""
        return interval(percent_more(self.of(pool, one, metric, beta), self.of(pool, other, metric, beta)))

    def load(self, pool: str, beta: float) -> float:
        """The load in percent of capacity, of the scarcer of cores and memory; the mean over the seeds.

        It is that of the jobs: every policy's runs have the same.
        """
        some = self.sweep.policies[0]
        return float(max(self.of(pool, some, metric, beta).mean() for metric in ("load_cores", "load_memory")))

    def told_load(self, beta: float) -> str:
        """One of the sweep's betas in words: of a calibrated sweep it only names a level of load."""
        return LEVELS[beta] if self.sweep.calibrated else f"beta {beta:g}"

    def told_betas(self) -> str:
        """The true betas of a calibrated sweep, pool by pool, in the order of its loads."""
        return "; ".join(
            f"{name} {', '.join(f'{self.sweep.beta_of(name, beta):g}' for beta in self.betas)}"
            for name in self.sweep.pools
        )

    def made(self) -> str:
        """The page's sentences on how the runs were produced."""
        sweep = self.sweep
        seeds = ", ".join(f"{self._told_seeds(beta)} at {self.told_load(beta)}" for beta in self.betas)
        betas = f" (beta {self.told_betas()})" if sweep.calibrated else ""
        loads = "; ".join(
            f"{name} {', '.join(f'{self.load(name, b):.0f}' for b in self.betas)}" for name in sweep.pools
        )
        return (
            f"Pools {', '.join(sweep.pools)} are generated at scale {sweep.scale:g} (1 is all of the paper's machines "
            f"and jobs) for {sweep.days:g} days. Cycles every 30 s {sweep.told_cycle}; one project. "
            f"Number of seeds, each replayed under every policy: {seeds}{betas}. Load at these betas, in percent of "
            f"the capacity of cores or memory, whichever is scarcer: {loads}."
        )

    def _told_seeds(self, beta: float) -> str:
        """The number of complete seeds, or one number for each pool if they differ."""
        seeds = {pool: self.sweep.complete(beta, pool) for pool in self.sweep.pools}
        if len(set(seeds.values())) == 1:
            return str(seeds[self.sweep.pools[0]])
        return " and ".join(f"{count} of {pool}" for pool, count in seeds.items())


def finished(sweeps: Sequence[Sweep]) -> list[Results]:
    """The runs of the sweeps, without the pools that have fewer than two complete seeds at the highest load."""
    found = []
    for sweep in sweeps:
        pools = tuple(pool for pool in sweep.pools if sweep.complete(HIGHEST_LOAD, pool) > 1)
        if pools:
            found.append(Results(replace(sweep, pools=pools)))
    return found


def reproduce(options: Options) -> Page:
    """Run what is missing, draw the figures and return the page."""
    sweeps = [sweep_of(options)]
    run_with_rows(options, sweeps)
    return page_of(options, finished(sweeps))


def page_of(options: Options, of_sweep: Sequence[Results]) -> Page:
    """The page, from the finished runs of the one sweep; empty if there are none."""
    claims = [claim for results in of_sweep for claim in claims_of(results)]
    tables = [table for results in of_sweep for table in [*_drawn(options, results), _seven(results)]]
    return Page(
        title="NetBatch load: wait, slowdown and queue length (figures 13-15)",
        made=[
            (
                f"`sns reproduce netbatch-load`. {of_sweep[0].made() if of_sweep else 'No run is finished.'} "
                f"`--resume` goes on from the rows beside this page ([{ROWS}]({ROWS}))."
            )
        ],
        claims=claims,
        drawings=drawings() if of_sweep else [],
        numbers=tables,
        remarks=[
            (
                "Waits differ much more from seed to seed than from policy to policy, so that only paired differences "
                "show which policy is better. The intervals above are of paired differences; those in the figures are "
                f"not. {TOLD} {PERCENT} Where a claim names no rival, we compare with the best one in this sense."
            ),
            *WHY,
            *([SEVEN] if of_sweep else []),
        ],
        shown=tables[-1] if tables else None,
        seeds=min((results.seeds for results in of_sweep), default=0),
    )


def panel(results: Results, pool: str, metric: str) -> dict[str, list[tuple[float, Interval]]]:
    """The lines of one pool's panel: policy -> (load in percent, metric) at each load."""
    return {
        policy: [(results.load(pool, beta), interval(results.of(pool, policy, metric, beta))) for beta in results.betas]
        for policy in results.sweep.policies
    }


def drawings(about: str = "") -> list[SavedFigure]:
    """The figures, as a page shows them."""
    return [
        SavedFigure(stem, f"Figure {stem[-2:]}: {label} against load{about}; bars are 95 % intervals over the seeds.")
        for stem, (_, label) in FIGURES.items()
    ]


def _drawn(options: Options, results: Results) -> list[DataTable]:
    """Draw the figures; their numbers."""
    tables = []
    for stem, (metric, label) in FIGURES.items():
        panels = {name: panel(results, name, metric) for name in results.sweep.pools}
        rows = [
            (name, beta, load, policy, *vars(value).values(), results.sweep.complete(beta, name))
            for name, series in panels.items()
            for policy, points in series.items()
            for beta, (load, value) in zip(results.betas, points, strict=True)
        ]
        named = {f"pool {name}": series for name, series in panels.items()}
        figures.lines(options.out, stem, named, ("load (%)", label))
        header = ("pool", "beta", "load_percent", "policy", metric, "low", "high", "seeds")
        tables.append(DataTable(stem, header, rows))
    return tables


def _seven(results: Results) -> DataTable:
    """Max-Jobs with the seven members of the authors' simulator beside the paper's five."""
    rows = [
        (
            name,
            beta,
            float(results.of(name, MAX_JOBS, beta=beta).mean()),
            float(results.of(name, MAX_JOBS_7, beta=beta).mean()),
            results.more(name, MAX_JOBS_7, MAX_JOBS, beta=beta),
        )
        for name in results.sweep.pools
        for beta in results.betas
    ]
    return DataTable(
        "seven", ("pool", "beta", "five: mean wait (s)", "seven: mean wait (s)", "% seven above five"), rows
    )
