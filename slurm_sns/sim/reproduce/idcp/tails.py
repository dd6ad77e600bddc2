"""Figures 6 and 7 of the paper on rescheduling: the jobs that take longest to complete, with restarts and without.

The longest are the 5 % of the jobs with the highest completion times, of all and of those that were suspended, in each
replay for itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import interval
from slurm_sns.sim.reproduce.idcp.printed import ALL_TAIL, NEAR, SUSPENDED_TAIL, Tail
from slurm_sns.sim.reproduce.idcp.runs import TAIL_SHARES, Found, results, scale_of
from slurm_sns.sim.reproduce.idcp.statistics import MINUTE_S, TAILS, Table, change, difference, table
from slurm_sns.sim.reproduce.idcp.tails_claims import claims
from slurm_sns.sim.reproduce.idcp.variants import AVERAGES, READINGS, without
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Page, SavedFigure

NAMES = {without(): "without restarts", **{reading: f"restarts, {AVERAGES[reading]}" for reading in READINGS}}
PANELS = {"fig. 6: all jobs": "all", "fig. 7: suspended jobs": "suspended"}
#: The jobs of the table: their columns, their names, and what the paper prints of them.
JOBS: tuple[tuple[str, str, Tail | None], ...] = (
    ("all", "longest 5 % of all jobs", ALL_TAIL),
    ("suspended", "longest 5 % of suspended jobs", SUSPENDED_TAIL),
    ("among_all", "suspended ones among the longest 5 % of all jobs", None),
)
HEADER = (
    "jobs",
    "quantile",
    "published difference, min",
    "published change, %",
    "restarts",
    "completion, min",
    "difference, min",
    "change, %",
)
QUANTILE_HEADER = ("jobs", "variant", "seed", "share_of_longest", "completion_s")


def reproduce(options: Options) -> Page:
    """Run what is missing, draw the figures and return the page."""
    found = results(options, list(NAMES))
    tables = {name: table(of_variant) for name, of_variant in found.items()}
    _draw(options, found)
    return Page(
        title="Rescheduling: the jobs that take longest (figures 6 and 7)",
        made=_made(options),
        claims=claims(tables),
        drawings=[
            SavedFigure(
                "figures-6-7", "Figures 6 and 7: completion times of the longest 5 %; means of the seeds' quantiles."
            )
        ],
        numbers=[DataTable("quantiles", QUANTILE_HEADER, _quantile_rows(found))],
        shown=DataTable("compact", HEADER, rows(tables)),
        seeds=options.seeds,
    )


def _made(options: Options) -> list[str]:
    return [
        (
            f"`sns reproduce idcp-tails`: the replays of `idcp-tables`, {options.seeds} seeds, the generator's site "
            f"with {scale_of(options):g} of its machines and jobs. Of the jobs that completed in the two weeks the "
            "longest 5 % are those with the highest completion times, with restarts and without each for itself. So "
            "the median of figure 6 is the quantile 0.975 of all jobs, and its 95th percentile the quantile 0.9975."
        ),
        (
            f"A printed change is met if ours is within a factor of {NEAR:g} of it. The paper's words on figure 7 can "
            "also mean the suspended jobs among the longest 5 % of all jobs; the table has them, too. The generator "
            "was calibrated so that figure 6 without restarts is near what the paper's changes in minutes and in "
            "percent imply; figure 7 was no input."
        ),
    ]


def rows(tables: Mapping[str, Table]) -> list[tuple[Any, ...]]:
    """Both quantiles of each kind of jobs: without restarts, and what restarts change."""
    found: list[tuple[Any, ...]] = []
    for jobs, told, printed in JOBS:
        for name, words, published in (
            ("median", "median", (printed.median_min, printed.median_pct) if printed else ("", "")),
            ("late", "95th percentile", (printed.late_min, printed.late_pct) if printed else ("", "")),
        ):
            column, base = f"{jobs}_{name}_min", tables[without()]
            for variant, restarts in NAMES.items():
                of = tables[variant]
                cells = (interval(each(column)(of, base)) for each in (difference, change))
                changes = tuple(cells) if variant != without() else ("", "")
                printed_cells = published if variant != without() else ("", "")
                found.append((told, words, *printed_cells, restarts, interval(of[column]), *changes))
    return found


def _quantile_rows(found: Mapping[str, Sequence[Found]]) -> list[tuple[Any, ...]]:
    return [
        (key, variant, seed, float(share), seconds)
        for key in TAILS.values()
        for variant, of_variant in found.items()
        for seed, each in enumerate(of_variant, start=1)
        for share, seconds in zip(TAIL_SHARES, each["tails"][key], strict=False)
    ]


def _draw(options: Options, found: Mapping[str, Sequence[Found]]) -> None:
    """Distributions; a seed without such jobs has none."""
    panels = {}
    for title, key in PANELS.items():
        lines = {}
        for variant, told in NAMES.items():
            seeds = np.array([each["tails"][key] for each in found[variant] if each["tails"][key]], np.float64)
            if len(seeds):
                lines[told] = (seeds.mean(axis=0) / MINUTE_S / 1000, 100 * TAIL_SHARES)
        panels[title] = lines
    figures.curves(options.out, "figures-6-7", panels, ("completion, 1000 min", "% of the longest 5 %"))
