"""Beyond the DFRS paper: what of its advantage survives at a site, and what jobs' time limits make of yields below 1.

The instances are those of the other pages with a rescheduling penalty of 5 minutes: scaled synthetic traces at three
loads, and every sixth week of HPC2N. Modules beyond_runs and beyond_limits say what is run on them. An algorithm's
degradation factor in a variant is its largest bounded stretch over the smallest one that EASY or DFRS has on the same
jobs in the paper's model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval, interval
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.dfrs import beyond_claims, beyond_limits, beyond_text
from slurm_sns.sim.reproduce.dfrs.beyond_runs import (
    CAUSES,
    DFRS,
    EVERY,
    FEWER,
    NAMES,
    PAPER,
    TODAY,
    VARIANTS,
    baseline,
    label,
    run,
)
from slurm_sns.sim.reproduce.dfrs.runs import (
    EASY,
    FIVE_MINUTES,
    HPC2N,
    SCALED,
    WEEKS,
    Found,
    Instance,
    Unit,
    has_log,
    hpc2n_units,
    results,
    scaled_units,
)
from slurm_sns.sim.reproduce.dfrs.statistics import Table, Values, average, jackknife, ratio
from slurm_sns.sim.reproduce.page import Page, SavedFigure

LOADS, QUICK_LOADS = (0.3, 0.7, 0.9), (0.3, 0.9)
MOST_SEEDS = 30
#: Weeks from one that is run to the next.
WEEK_STEP, QUICK_WEEK_STEP = 6, 30
WORKLOADS = {SCALED: "scaled", HPC2N: "HPC2N"}
#: The folders of results: the page's own, since they do not depend on those of the other pages.
FOLDER, LIMITS_FOLDER = "dfrs-beyond", "dfrs-beyond-limits"
LARGEST, MEAN = range(2)
#: The quantiles that the figure of time limits shows.
DRAWN_PERCENT = np.array([*range(50, 100, 5), 97, 99])

HEADER = (
    "workload",
    "variant",
    "algorithm",
    "average_factor",
    "low",
    "high",
    "largest_stretch",
    "mean_stretch",
    "times_better_than_easy",
)
ALGORITHMS = (*TODAY, *DFRS)
COMPACT_HEADER = ("workload", "variant", *(NAMES[name] for name in ALGORITHMS))
LIMITS_HEADER = ("algorithm", "measure", "value", "low", "high")


def units_of(options: Options) -> dict[str, list[Unit]]:
    """The instances of each workload, with at most MOST_SEEDS seeds; without the log there are none of HPC2N."""
    seeds, loads = min(options.seeds, MOST_SEEDS), QUICK_LOADS if options.quick else LOADS
    units = {SCALED: scaled_units(seeds, FIVE_MINUTES, loads)}
    weeks = range(1, WEEKS + 1, QUICK_WEEK_STEP if options.quick else WEEK_STEP)
    return {**units, HPC2N: hpc2n_units(weeks, FIVE_MINUTES)} if has_log() else units


def reproduce(options: Options) -> Page:
    """Run what is missing, draw the figures and return the page."""
    units = units_of(options)
    found = results(options, [unit for of_workload in units.values() for unit in of_workload], run, FOLDER)
    weeks = results(options, units.get(HPC2N, []), beyond_limits.run, LIMITS_FOLDER)
    return page_of(options, units, found, list(weeks.values()))


def page_of(
    options: Options,
    units: Mapping[str, Sequence[Unit]],
    found: Mapping[Instance, Found],
    weeks: Sequence[Mapping[str, Any]],
) -> Page:
    """Draw the figures and return the page, from the results; `weeks` are those of the time limits."""
    largest, mean = (
        {WORKLOADS[workload]: stretches_of(rows, found, which) for workload, rows in units.items()}
        for which in (LARGEST, MEAN)
    )
    factors = {workload: factors_of(table) for workload, table in largest.items()}
    rows = [row for workload in factors for row in _rows(workload, factors, largest, mean)]
    loads = [float(instance[2]) for instance in units[SCALED][0]]
    _draw_factors(options, factors[WORKLOADS[SCALED]], loads)
    claims = [claim for workload, table in factors.items() for claim in beyond_claims.claims(workload, table)]
    drawings = [SavedFigure("factors", "Average degradation factor by load, scaled traces; bars are 95 % intervals.")]
    numbers = [DataTable("variants", HEADER, rows)]
    if weeks:
        _draw_limits(options, weeks)
        sums = beyond_limits.tabulate(weeks)
        claims += beyond_limits.claims(sums)
        drawings.append(SavedFigure("limits", "HPC2N: wall times over run times, and over limits, by quantile."))
        numbers.append(DataTable("limits", LIMITS_HEADER, beyond_limits.rows(weeks, sums)))
    return Page(
        title="Beyond the DFRS paper: what of the advantage survives at a site",
        made=beyond_text.made(units, list(found.values()), loads),
        claims=claims,
        drawings=drawings,
        numbers=numbers,
        remarks=beyond_text.remarks(factors, weeks),
        shown=DataTable("compact", COMPACT_HEADER, _compact(rows)),
        seeds=len(units[SCALED]),
    )


# --- statistics


def stretches_of(units: Sequence[Unit], found: Mapping[Instance, Found], which: int) -> dict[str, Values]:
    """The LARGEST or the MEAN stretches by `label`: one row for each unit, one column for each load."""
    return {
        label(variant, name): np.array(
            [[found[each]["runs"][variant][name][which] for each in unit] for unit in units], dtype=np.float64
        )
        for variant, what in EVERY.items()
        for name in what.algorithms
    }


def factors_of(largest: Table) -> dict[str, Values]:
    """The degradation factors; each variant over the best of EASY and DFRS with its jobs in the paper's model."""
    best = {plain: np.min([largest[label(plain, name)] for name in (EASY, *DFRS)], axis=0) for plain in (PAPER, FEWER)}
    return {
        label(variant, name): largest[label(variant, name)] / best[baseline(variant)]
        for variant, what in EVERY.items()
        for name in what.algorithms
    }


# --- figures


def _draw_factors(options: Options, factors: Table, loads: Sequence[float]) -> None:
    """Degradation factors against load: a panel for each algorithm, a line for each variant and for EASY."""

    def line(key: str) -> list[tuple[float, Interval]]:
        return [(load, interval(factors[key][:, at])) for at, load in enumerate(loads)]

    panels = {
        NAMES[name]: {NAMES[EASY]: line(label(PAPER, EASY)), **{each: line(label(each, name)) for each in VARIANTS}}
        for name in DFRS
    }
    figures.logarithmic_lines(options.out, "factors", panels, ("load", "average degradation factor"))


def _draw_limits(options: Options, weeks: Sequence[Mapping[str, Any]]) -> None:
    """The upper halves of the distributions."""
    panels = {
        told: {
            NAMES[name]: (DRAWN_PERCENT, np.percentile(beyond_limits.ratios(weeks, name, over), DRAWN_PERCENT))
            for name in DFRS
        }
        for over, told in beyond_limits.OVER.items()
    }
    figures.curves(options.out, "limits", panels, ("% of jobs with at most this", "factor"))


# --- tables


def _rows(
    workload: str, factors: Mapping[str, Table], largest: Mapping[str, Table], mean: Mapping[str, Table]
) -> list[tuple[Any, ...]]:
    """Each algorithm in each variant, in the order of HEADER."""
    rows = []
    for variant, what in EVERY.items():
        for name in what.algorithms:
            key, table = label(variant, name), factors[workload]
            factor = jackknife(average(key), table)
            stretches = (float(largest[workload][key].mean()), float(mean[workload][key].mean()))
            better = ratio(label(baseline(variant), EASY), key)(table)
            rows.append((workload, variant, NAMES[name], factor.mean, factor.low, factor.high, *stretches, better))
    return rows


def _compact(rows: Sequence[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Each variant with a cell for each algorithm."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for workload, variant, name, factor, _, _, largest, mean, better in rows:
        cell = f"{factor:.2f} / {largest:.0f} / {mean:.2f} ({better:.1f})"
        cells.setdefault((workload, variant), {})[name] = cell
    return [
        (workload, f"*{variant}*" if variant in CAUSES else variant, *(of.get(NAMES[name], "") for name in ALGORITHMS))
        for (workload, variant), of in cells.items()
    ]
