"""Beyond the paper on rescheduling: what remains of its gain at a site, and what further freedom adds.

Each change is run in both readings of the averages and compared in pairs: with the replay without restarts beside it,
and with the paper's rule in the same reading. Jobs are followed to their end, so that the same jobs are compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import Claim, Interval, interval
from slurm_sns.sim.reproduce.idcp.printed import LITTLE_PCT
from slurm_sns.sim.reproduce.idcp.runs import results, scale_of
from slurm_sns.sim.reproduce.idcp.statistics import Table, change, paired, table, value
from slurm_sns.sim.reproduce.idcp.variants import AVERAGES, READINGS, VARIANTS, named
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Page, SavedFigure

#: What is changed, in words; the first is the paper's rule.
CHANGES: Mapping[str, str] = {
    "": "the paper's rule",
    "recent": "run times from recent runs",
    "cost-600": "a move costs 10 min",
    "cost-3600": "a move costs 1 h",
    "waiting-600": "queued jobs may move, too (every 10 min)",
    "keeps-work": "jobs keep their work (checkpoints)",
    "freed": "suspended jobs free their memory",
    "one-move": "one move for each job",
    "window-1000": "window of 1000 s",
    "window-60000": "window of 60,000 s",
    "best-fit": "best fit of cores in pools",
    "worse-fit": "worse fit of cores in pools",
    "mix-fit": "mix-fit in pools",
}
#: The measures of the figures and the table: changes from the replay without restarts.
MEASURES = {
    "all jobs": change("submitted_min"),
    "jobs suspended without restarts": paired,
    "high priority": change("high_min"),
}
#: The figures of the measures.
STEMS = ("all-jobs", "suspended-jobs", "high-priority-jobs")
AMOUNTS = {
    "wasted core-hours": value("wasted_core_h"),
    "wasted, % of the work": value("wasted_pct"),
    "restarts": value("restarts"),
}
ADDED = "all jobs, over the paper's rule"
HEADER = ("no.", "change", "averages", *(f"{name}, %" for name in MEASURES), f"{ADDED}, %", *AMOUNTS)
OURS = "our question"


class ChangeRow(NamedTuple):
    """A change in a reading: its samples, those without restarts beside it, and those of the paper's rule."""

    change: str
    reading: str
    of: Table
    without: Table
    paper: Table


def reproduce(options: Options) -> Page:
    """Run what is missing, draw the figure and return the page."""
    names = [named(each, reading) for each in CHANGES for reading in READINGS]
    # The replays of one baseline follow one another, so that a process makes it once.
    baselines = list(dict.fromkeys(VARIANTS[name].baseline for name in names))
    ordered = [[base, *(name for name in names if VARIANTS[name].baseline == base)] for base in baselines]
    found = results(options, [name for group in ordered for name in group])
    return page_of(options, {name: table(of_variant) for name, of_variant in found.items()})


def page_of(options: Options, tables: Mapping[str, Table]) -> Page:
    """Draw the figure and return the page, from the samples of each variant."""
    rows = [
        ChangeRow(each, reading, tables[name], tables[VARIANTS[name].baseline], tables[reading])
        for each in CHANGES
        for reading in READINGS
        for name in (named(each, reading),)
    ]
    _draw(options, rows)
    return Page(
        title="Beyond the paper on rescheduling: what remains of the gain at a site, and what adds to it",
        made=_made(options),
        claims=[claim for row in rows for claim in _claims(row)],
        drawings=[
            SavedFigure(stem, f"Change of the mean completion from no restarts: {name}. Numbers as in the table.")
            for stem, name in zip(STEMS, MEASURES, strict=True)
        ],
        numbers=[DataTable("variants", HEADER, [_cells(row) for row in rows])],
        shown=DataTable("compact", HEADER, [_cells(row) for row in rows]),
        seeds=options.seeds,
    )


def _made(options: Options) -> list[str]:
    return [
        (
            f"`sns reproduce idcp-beyond`: the two weeks of `idcp-tables`, {options.seeds} seeds, the generator's site "
            f"with {scale_of(options):g} of its machines and jobs. One thing at a time is changed in the paper's rule. "
            "Percentages are changes of the mean completion from the replay without restarts and with the same memory "
            "and node choice, over the jobs submitted in the two weeks, each followed to its end. The column "
            f"*{ADDED}* compares with the paper's rule in the same reading of the averages."
        ),
        (
            "In the paper run times are known, moves cost nothing, only suspended jobs move, a job that moves begins "
            "again, suspended jobs keep their memory, a job moves as often as it pays, and the window is 6000 s. "
            "*Run times from recent runs*: the mean of the program's runs that ended in the last 24 hours, otherwise "
            "the user's limit. *A move costs*: the attempt in the other pool takes longer by so much. Restarts and "
            "wasted core-hours are of the whole replay. Claims are questions of ours: the paper says nothing of these "
            f"changes. Little means less than {LITTLE_PCT:g} %."
        ),
    ]


def _claims(row: ChangeRow) -> list[Claim]:
    told = f"{CHANGES[row.change]}, {AVERAGES[row.reading]}"
    shorter, later = (interval(MEASURES[name](row.of, row.without)) for name in ("all jobs", "high priority"))
    return [
        Claim(OURS, "restarts shorten the mean completion of all jobs", f"{told}: change in %", shorter, high=0),
        Claim(
            OURS,
            "high-priority jobs complete little later",
            f"{told}: change of their mean completion in %",
            later,
            high=LITTLE_PCT,
        ),
    ]


def _cells(row: ChangeRow) -> tuple[Any, ...]:
    measured = [interval(each(row.of, row.without)) for each in MEASURES.values()]
    added: Interval | str = interval(change("submitted_min")(row.of, row.paper)) if row.change else ""
    amounts = [interval(each(row.of, row.without)) for each in AMOUNTS.values()]
    return (_number(row), CHANGES[row.change], row.reading, *measured, added, *amounts)


def _number(row: ChangeRow) -> int:
    """The change's number in the table and on the axis, from 1."""
    return 1 + list(CHANGES).index(row.change)


def _draw(options: Options, rows: Sequence[ChangeRow]) -> None:
    """A figure for each measure: a bar for each change and reading."""
    for stem, each in zip(STEMS, MEASURES.values(), strict=True):
        groups = {
            AVERAGES[reading]: {
                str(_number(row)): interval(each(row.of, row.without)) for row in rows if row.reading == reading
            }
            for reading in READINGS
        }
        figures.bars(options.out, stem, groups, ("number of the change", "change, %"))
