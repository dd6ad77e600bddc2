"""Figure 1 of the DFRS paper: average degradation factor against load, without a rescheduling penalty and with one.

An algorithm's degradation factor on an instance is its largest bounded stretch over the smallest one of the paper's
nine algorithms. Each point is the average over the traces of one load.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import interval
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.dfrs.load_claims import (
    CLOSELY,
    LARGE,
    NOT_BETTER,
    SLIGHTLY,
    TURNING_LOAD,
    with_penalty,
    without_penalty,
)
from slurm_sns.sim.reproduce.dfrs.runs import (
    EXTRA_NODES_EASY,
    FIVE_MINUTES,
    FREE,
    PAPER_NAMES,
    VARIANTS_TOLD,
    results,
    scaled_units,
)
from slurm_sns.sim.reproduce.dfrs.statistics import (
    INTERVALS,
    NEAR,
    Table,
    average,
    degradation,
    jackknife,
    stretches,
)
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.workloads.dfrs_synthetic import PAPER_LOADS

QUICK_LOADS = (0.1, 0.5, 0.9)
PENALTIES = {FREE: "no penalty", FIVE_MINUTES: "penalty of 5 minutes"}
DRAWN = (*PAPER_NAMES, EXTRA_NODES_EASY)
#: The page's explanation of the claims that do not hold.
WHY = (
    "EASY is better here than printed, and better than GREEDY. A run shows why: the variant that never starts a job "
    "because it ends before the reservation lies where the paper has EASY, close to FCFS. With a penalty GREEDY-PMTN "
    "and GREEDY-PMTN-MIGR are the best algorithms on half of the traces, and on a few traces a hundred times worse "
    "than the best. These few decide their averages, whose intervals are wide."
)

HEADER = ("penalty_s", "algorithm", "load", "average_factor", "low", "high", "deviation", "largest")


def reproduce(options: Options) -> Page:
    """Run what is missing, draw the figure and return the page."""
    loads = QUICK_LOADS if options.quick else PAPER_LOADS
    units = {penalty_s: scaled_units(options.seeds, penalty_s, loads) for penalty_s in PENALTIES}
    found = results(options, [unit for of_penalty in units.values() for unit in of_penalty])
    factors = {
        penalty_s: degradation(stretches([[found[each] for each in unit] for unit in of_penalty]))
        for penalty_s, of_penalty in units.items()
    }
    return page_of(options, factors, loads)


def page_of(options: Options, factors: Mapping[int, Table], loads: Sequence[float]) -> Page:
    """Draw the figure and return the page.

    `factors` are the degradation factors by penalty, with one row for each seed and one column for each load.
    """
    panels = {
        f"({letter}) {told}": {
            PAPER_NAMES.get(name, name): [
                (load, interval(factors[penalty_s][name][:, at])) for at, load in enumerate(loads)
            ]
            for name in DRAWN
        }
        for letter, (penalty_s, told) in zip("ab", PENALTIES.items(), strict=True)
    }
    figures.logarithmic_lines(options.out, "figure-1", panels, ("load", "average degradation factor"))
    return Page(
        title="DFRS: degradation factor against load (figure 1)",
        made=_made(options.seeds, loads),
        claims=[*without_penalty(factors[FREE], loads), *with_penalty(factors[FIVE_MINUTES], loads)],
        drawings=[
            SavedFigure("figure-1", "Figure 1: average degradation factor; bars are 95 % intervals over the seeds.")
        ],
        numbers=[DataTable("figure-1", HEADER, _rows(factors, loads))],
        remarks=[WHY, "Average degradation factors over all loads:"],
        shown=DataTable("averages", ("algorithm", *PENALTIES.values()), _averages(factors)),
        seeds=options.seeds,
    )


def _made(seeds: int, loads: Sequence[float]) -> list[str]:
    return [
        (
            f"`sns reproduce dfrs-load`: {seeds} traces of 1,000 jobs by the Lublin-Feitelson model for 128 nodes, "
            f"each scaled to the loads {', '.join(f'{load:g}' for load in loads)}. Each of these is run under all "
            "algorithms without a rescheduling penalty and with one of 5 minutes. An algorithm's degradation factor on "
            "a trace is its largest bounded stretch divided by the smallest one among the nine algorithms."
        ),
        (
            f"A printed number is met if ours is within a factor of {NEAR:g} of it; of 1.16 this means the part above "
            f"1. How we read the paper's words: *closely* is a factor below {CLOSELY:g} between averages, *slightly* "
            f"one below {SLIGHTLY:g}, a *large* improvement one above {LARGE:g}; *nontrivial* loads are those above "
            f"{TURNING_LOAD:g}; *not better* means at most {100 * (1 - NOT_BETTER):.0f} % better. {INTERVALS}"
        ),
        VARIANTS_TOLD,
    ]


# --- tables


def _rows(factors: Mapping[int, Table], loads: Sequence[float]) -> list[tuple[Any, ...]]:
    """Each point of the figure."""
    rows = []
    for penalty_s, table in factors.items():
        for name, values in table.items():
            for at, load in enumerate(loads):
                here = values[:, at]
                point = interval(here)
                spread = (float(here.std()), float(here.max()))
                rows.append((penalty_s, name, load, point.mean, point.low, point.high, *spread))
    return rows


def _averages(factors: Mapping[int, Table]) -> list[tuple[Any, ...]]:
    names = list(factors[FREE])
    return [
        (PAPER_NAMES.get(name, f"*{name}*"), *(jackknife(average(name), factors[each]) for each in PENALTIES))
        for name in names
    ]
