"""Tables 1 and 2 of the paper on rescheduling: two weeks of bursts with restarts and without, and half the machines.

The generator was calibrated against the column without restarts. So that column is an input, and what restarts change
is the result. Both readings of the averages are judged. The page also has equation 5 as printed, and a virtual pool
that goes by availability.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from slurm_sns.sim.reproduce.claims import Interval, interval
from slurm_sns.sim.reproduce.idcp.printed import (
    HALF_COMPLETION_MIN,
    HALF_UTILISATION_PCT,
    LITTLE_PCT,
    NEAR,
    SUSPENDED_PCT,
    WITH,
    WITHOUT,
    Column,
)
from slurm_sns.sim.reproduce.idcp.runs import results, scale_of
from slurm_sns.sim.reproduce.idcp.statistics import Samples, Table, change, paired, table
from slurm_sns.sim.reproduce.idcp.table_claims import claims
from slurm_sns.sim.reproduce.idcp.variants import AVERAGES, HALF_BURSTS, READINGS, SHORT_JOBS, VARIANTS, named, without
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Page

#: The replays without restarts, what the page says of each, and of the changes that are compared with it.
_SITES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("", "", {"": "", "remaining": "equation 5 as printed"}),
    ("availability", "virtual pool by availability", {"availability": "virtual pool by availability"}),
    ("half", "half the machines", {"half": "half the machines"}),
    (SHORT_JOBS, "jobs half as long", {SHORT_JOBS: "jobs half as long"}),
    (HALF_BURSTS, "half the machines, bursts half as high", {HALF_BURSTS: "half the machines, bursts half as high"}),
)


class Row(NamedTuple):
    """A variant of the tables."""

    name: str
    told: str


def _rows_of_site(site: str, told: str, changes: Mapping[str, str]) -> list[Row]:
    first = Row(without(site), ", ".join(filter(None, (told, "without restarts"))))
    return [
        first,
        *(
            Row(named(change_name, reading), ", ".join(filter(None, (words, AVERAGES[reading]))))
            for change_name, words in changes.items()
            for reading in READINGS
        ),
    ]


ROWS = tuple(row for site in _SITES for row in _rows_of_site(*site))

#: The inputs of the calibration: measure, published, and the quantity of ours.
INPUTS = (
    ("jobs suspended", WITHOUT.suspended, "suspended"),
    ("% of them completed", WITHOUT.completed_pct, "completed_pct"),
    ("mean suspend time, min", WITHOUT.suspend_min, "suspend_min"),
    ("mean completion of suspended jobs, min", WITHOUT.suspended_completion_min, "suspended_completion_min"),
    ("jobs completed", WITHOUT.completed, "completed"),
    ("mean completion of all jobs, min", WITHOUT.completion_min, "completion_min"),
    ("jobs suspended, % of jobs completed", SUSPENDED_PCT, "suspended_pct"),
    ("utilisation, %", WITHOUT.utilisation_pct, "utilisation_pct"),
)
#: The quantities of the table that the page shows, with their headings and digits behind the point.
SHOWN = {
    "suspended": ("jobs suspended", 0),
    "completed_pct": ("% completed", 1),
    "suspend_min": ("suspend time, min", 1),
    "suspensions": ("suspensions", 0),
    "resumed_suspend_min": ("the same without jobs moved at once", 1),
    "suspended_completion_min": ("completion of suspended jobs, min", 1),
    "completed": ("jobs completed", 0),
    "completion_min": ("completion of all jobs, min", 1),
    "suspended_pct": ("suspended, % of completed", 1),
    "utilisation_pct": ("utilisation, %", 1),
    "restarts": ("restarts", 0),
    "wasted_core_h": ("wasted core-hours", 0),
}
#: What the page shows in addition: the change in percent from the replay without restarts beside it.
CHANGES = {
    "high-priority completion, %": change("high_min"),
    "jobs suspended without restarts, %": paired,
}
VARIANT_HEADER = ("variant", "quantity", "mean", "low", "high", "change_pct", "change_low", "change_high")
SEED_HEADER = ("variant", "seed", *SHOWN)
INPUT_HEADER = ("measure", "published, without restarts (input)", "ours, without restarts")


def reproduce(options: Options) -> Page:
    """Run what is missing and return the page."""
    found = results(options, [row.name for row in ROWS])
    return page_of(options, {name: table(of_variant) for name, of_variant in found.items()})


def page_of(options: Options, tables: Mapping[str, Table]) -> Page:
    """The page, from the samples of each variant."""
    return Page(
        title="Rescheduling: two weeks of bursts with restarts and without (tables 1 and 2)",
        made=_made(options),
        claims=claims(tables),
        numbers=[
            DataTable("inputs", INPUT_HEADER, inputs(tables)),
            DataTable("variants", VARIANT_HEADER, _variant_rows(tables)),
            DataTable("seeds", SEED_HEADER, _seed_rows(tables)),
        ],
        remarks=[_paired_told(tables), _differs_told(tables), _half_told(tables), _SHOWN],
        shown=DataTable("compact", ("", *(told for told, _ in SHOWN.values()), *CHANGES), _compact(tables)),
        seeds=options.seeds,
    )


def _made(options: Options) -> list[str]:
    scale = scale_of(options)
    return [
        (
            f"`sns reproduce idcp-tables`: two weeks of generated jobs with bursts of high-priority work, after a "
            f"warm-up of a week without bursts that does not count; {options.seeds} seeds, the generator's site with "
            f"{scale:g} of its machines and jobs. Each variant replays the same jobs. The paper's traces are not "
            "public. The generator was calibrated against the paper's numbers without restarts. These are inputs, "
            "listed below and never claims; what restarts change is the result. While it was calibrated, runs with "
            "restarts were seen at an earlier setting; no number was chosen by them."
        ),
        (
            "Suspended jobs are those first suspended in the two weeks. Means are over those that completed in them, "
            "as in the paper. With restarts other jobs are suspended than without, so the paper's 75 % compares two "
            "different sets of jobs. The last column of the table compares the same jobs: those that are suspended "
            "without restarts, each followed to its end. Restarts and wasted core-hours are of the whole replay, in "
            "which the trace ends with the two weeks. Half the machines: the first half of each pool's list, and the "
            "same jobs."
        ),
        (
            f"A printed change or amount is met if ours is within a factor of {NEAR:g} of it; of percentages of jobs "
            "or cores we compare the differences in points. *Little or no adverse impact* means that high-priority "
            f"jobs complete less than {LITTLE_PCT:g} % later. The targets named ours are not of the paper. It can be "
            "read in two ways whether jobs that were never suspended count in the averages that decide; both are "
            "judged."
        ),
    ]


_SHOWN = (
    "The table has means over the seeds; the files have their intervals. The first two rows are what the calibration "
    "compared, and so inputs. The changes in the last two columns are from the replay without restarts beside it."
)


def _paired_told(tables: Mapping[str, Table]) -> str:
    """What happens to the jobs that are suspended without restarts."""
    parts = []
    for reading in READINGS:
        of = tables[reading]
        earlier, later = (float(of[name].mean()) for name in ("paired_earlier_pct", "paired_later_pct"))
        parts.append(
            f"With {AVERAGES[reading]} the jobs that are suspended without restarts complete after "
            f"{float(of['paired_with_min'].mean()):.1f} min instead of {float(of['paired_without_min'].mean()):.1f} "
            f"min; {earlier:.1f} % of them complete earlier and {later:.1f} % later."
        )
    return " ".join(parts)


def _differs_told(tables: Mapping[str, Table]) -> str:
    """Why the mean completion of suspended jobs falls by less than in the paper: other rows have tested it."""
    short, off = tables[without(SHORT_JOBS)], tables[without()]
    published_min = WITHOUT.suspended_completion_min - WITHOUT.suspend_min
    often = ", ".join(f"{_per_job(tables[name]):.1f} times with {AVERAGES[name]}" for name in READINGS)
    return (
        f"The paper's suspended jobs run and wait for {published_min:.0f} min besides their suspensions, "
        f"ours for {_own_min_of(off):.0f} min. A restart does not shorten this part, so our gain is smaller. This is "
        f"tested by the rows of jobs half as long, and twice as many: there it is {_own_min_of(short):.0f} min, and "
        f"restarts change the mean completion {_changes_told(tables, SHORT_JOBS)} (published: -75 % and -15 %). "
        f"Suspensions become fewer, though more jobs are suspended: a job that is suspended is so {_per_job(off):.1f} "
        f"times without restarts, nearly always in the same pool, and {often}."
    )


def _half_told(tables: Mapping[str, Table]) -> str:
    """Why half the machines are not as in the paper: the last rows have tested it."""
    return (
        "On half the machines our bursts are twice as large as their pools. They hold these for days, other jobs do "
        "not complete there, and decisions have no samples. This is tested by the last rows: with bursts half as "
        f"high, restarts change the mean completion {_changes_told(tables, HALF_BURSTS)} (published: -71 % for "
        "suspended jobs)."
    )


def _changes_told(tables: Mapping[str, Table], tested: str) -> str:
    parts = []
    for reading in READINGS:
        of, base = tables[named(tested, reading)], tables[without(tested)]
        suspended, everyone = (_mean(change(name)(of, base)) for name in ("suspended_completion_min", "completion_min"))
        parts.append(f"by {suspended:+.0f} % for suspended jobs and {everyone:+.0f} % for all with {AVERAGES[reading]}")
    return ", and ".join(parts)


def _own_min_of(of: Table) -> float:
    """How long the suspended jobs run and wait, in minutes."""
    return _mean(of["suspended_completion_min"] - of["suspend_min"])


def _per_job(of: Table) -> float:
    """How often a job is suspended that is suspended at all."""
    return _mean(of["suspensions"] / of["suspended"])


# --- tables


def inputs(tables: Mapping[str, Table]) -> list[tuple[str, float, Interval]]:
    """The printed column without restarts beside ours."""
    return [(measure, published, interval(tables[without()][column])) for measure, published, column in INPUTS]


def _compact(tables: Mapping[str, Table]) -> list[tuple[str, ...]]:
    """Published rows and ours, each cell a mean."""
    rows = [_published("published, without restarts (input)", WITHOUT, SUSPENDED_PCT)]
    for row in ROWS:
        if row.name == next(iter(READINGS)):
            rows.append(_published("published, with restarts", WITH))
        if row.name == without("half"):
            rows.append(_published_half())
        of, base = tables[row.name], tables[VARIANTS[row.name].baseline]
        told = f"{row.told} (input)" if row.name == without() else row.told
        cells = [f"{_mean(of[column]):.{digits}f}" for column, (_, digits) in SHOWN.items()]
        changes = [f"{_mean(each(of, base)):+.1f}" if of is not base else "" for each in CHANGES.values()]
        rows.append((told, *cells, *changes))
    return rows


def _mean(samples: Samples) -> float:
    """Over the seeds that have a value; nan if none has."""
    known = samples[~np.isnan(samples)]
    return float(known.mean()) if len(known) else float("nan")


def _published(told: str, column: Column, suspended_pct: float | None = None) -> tuple[str, ...]:
    printed: dict[str, Any] = {**column._asdict(), "suspended_pct": suspended_pct}
    cells = (printed.get(name) for name in SHOWN)
    return (told, *("" if cell is None else str(cell) for cell in cells), *("" for _ in CHANGES))


def _published_half() -> tuple[str, ...]:
    printed = {"completion_min": HALF_COMPLETION_MIN, "utilisation_pct": HALF_UTILISATION_PCT}
    told = "published, half the machines, without restarts"
    return (told, *(str(printed.get(name, "")) for name in SHOWN), *("" for _ in CHANGES))


def _variant_rows(tables: Mapping[str, Table]) -> list[tuple[Any, ...]]:
    """Each quantity of each variant, and its change in percent from the replay without restarts."""
    rows = []
    for row in ROWS:
        of, base = tables[row.name], tables[VARIANTS[row.name].baseline]
        for column, samples in of.items():
            found = interval(samples)
            compared = of is not base and bool((base[column] > 0).all())
            changed = interval(change(column)(of, base)) if compared else None
            changes = (changed.mean, changed.low, changed.high) if changed else ("", "", "")
            rows.append((row.name, column, found.mean, found.low, found.high, *changes))
    return rows


def _seed_rows(tables: Mapping[str, Table]) -> list[tuple[Any, ...]]:
    return [
        (row.name, seed, *(float(tables[row.name][column][seed - 1]) for column in SHOWN))
        for row in ROWS
        for seed in range(1, len(tables[row.name]["suspended"]) + 1)
    ]
