"""Figures 2 and 3 of the paper on rescheduling: suspension and utilisation over a year, without restarts.

The generator of jobs was calibrated against these figures. So the page compares and claims nothing. The figure of
suspension times is of the ten weeks in which most jobs are suspended: the paper chose a period with many suspensions.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES
from slurm_sns.policies.rescheduling.parameters import OFF, ReschedulingParameters
from slurm_sns.sim.replay.pool_replay import SAMPLE_S, replay_pools
from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import Interval, interval
from slurm_sns.sim.reproduce.idcp.printed import (
    LONG_PCT,
    LONG_S,
    MEAN_UTILISATION_PCT,
    MEDIAN_SUSPENSION_S,
    TAIL_S,
    TYPICAL_UTILISATION_PCT,
)
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Page, SavedFigure
from slurm_sns.sim.reproduce.shared_runs import shared_results
from slurm_sns.sim.workloads.idcp import idcp

#: Scale, days after the warm-up. The paper's year has 500,000 minutes, which are 347 days.
SCALE, DAYS = 0.1, 347
QUICK_SCALE, QUICK_DAYS = 0.02, 105
#: The trace begins with an empty site, so its first days do not count. The longest jobs run for so long.
WARM_UP_DAYS = 10
#: The paper's 100,000 minutes are 69.4 days.
FIGURE_2_DAYS = 70
#: One point of figure 3.
POINT_HOURS = 4
FOLDER = "idcp-year"
DAY_S, HOUR_S = 86_400, 3600
#: Where the distribution of suspension times is drawn: from a second to 37 days.
CDF_AT_S = 10 ** np.arange(0, 6.51, 0.25)

HEADER = ("figure", "measure", "published (input of the calibration)", "ours")
#: A seed's numbers by name, see `run`.
Found = Mapping[str, Any]


def reproduce(options: Options) -> Page:
    """Run what is missing, draw the figures and return the page."""
    scale, days = (QUICK_SCALE, QUICK_DAYS) if options.quick else (SCALE, DAYS)
    pieces = [(scale, days, seed) for seed in range(1, options.seeds + 1)]
    found = list(shared_results(options, pieces, run, FOLDER).values())
    _draw(options, found)
    return Page(
        title="Rescheduling: suspension and utilisation over a year (figures 2 and 3)",
        made=_made(options.seeds, scale, days),
        claims=[],
        drawings=[
            SavedFigure(
                "figure-2", "Figure 2: total suspension times of suspended jobs in ten weeks, mean of the seeds."
            ),
            SavedFigure("figure-3-utilisation", f"Figure 3: utilisation in {POINT_HOURS} hours each, two seeds."),
            SavedFigure("figure-3-suspended", f"Figure 3: suspended jobs in {POINT_HOURS} hours each, two seeds."),
        ],
        numbers=[DataTable("figure-2", ("at_most_s", "percent of suspended jobs [95 %]"), _cdf_rows(found))],
        shown=DataTable("inputs", HEADER, rows(found)),
        seeds=options.seeds,
    )


def _made(seeds: int, scale: float, days: int) -> list[str]:
    return [
        (
            f"`sns reproduce idcp-suspension`: the generator's site with {scale:g} of its machines and jobs, "
            f"{days} days after {WARM_UP_DAYS} days that do not count, {seeds} seeds, without restarts. The paper's "
            "traces are not public."
        ),
        (
            "The generator was calibrated against these figures. They are inputs, so this page claims nothing; it "
            f"shows how near the generated jobs come. Figure 2 is of {FIGURE_2_DAYS} days. The paper chose a period "
            f"with many suspensions; ours are the {FIGURE_2_DAYS} days in which most jobs are suspended for the first "
            "time. A job's suspension time is the total over its life. The paper does not say whether it counts "
            "that or each suspension. So two rows count each suspension, as long as a job's suspensions are on "
            "average. Ours: mean over the seeds with its 95 % interval."
        ),
    ]


# --- a seed


def run(piece: tuple[str | int | float, ...]) -> Found:
    """A year of one seed: the quantities of the table, the distribution at CDF_AT_S, and the points of figure 3."""
    scale, days, seed = float(piece[0]), int(piece[1]), int(piece[2])
    site, trace = idcp(scale, WARM_UP_DAYS + days, seed)
    begin_s, end_s = WARM_UP_DAYS * DAY_S, (WARM_UP_DAYS + days) * DAY_S
    replayed = replay_pools(site, trace, ReschedulingParameters(restart=OFF), sample_until_s=end_s)
    first_s = replayed.first_suspended / trace.ticks_per_s
    suspended_s = replayed.suspended / trace.ticks_per_s
    inside = (first_s > begin_s) & (first_s <= end_s)
    busiest_s = begin_s + DAY_S * busiest(np.bincount((first_s[inside] - begin_s).astype(np.int64) // DAY_S))
    chosen = inside & (first_s > busiest_s) & (first_s <= busiest_s + FIGURE_2_DAYS * DAY_S)
    used = replayed.cores_used[begin_s // SAMPLE_S :] * (100 / int(site.nodes.capacity[CORES].sum()))
    waiting = replayed.suspended_jobs[begin_s // SAMPLE_S :]
    points, hourly = _means(used, POINT_HOURS), _means(waiting, 1)
    low, high = TYPICAL_UTILISATION_PCT
    return {
        "weeks": distribution(suspended_s[chosen]),
        "each": distribution(each_suspension(suspended_s[chosen], replayed.suspensions[chosen])),
        "year": distribution(suspended_s[inside]),
        "cdf_pct": [100 * float((suspended_s[chosen] <= at).mean()) if chosen.any() else None for at in CDF_AT_S],
        "suspended": int(inside.sum()),
        "mean_utilisation_pct": float(used.mean()),
        "typical_pct": 100 * float(((points >= low) & (points <= high)).mean()),
        "low_utilisation_pct": float(np.quantile(points, 0.05)),
        "high_utilisation_pct": float(np.quantile(points, 0.95)),
        "mean_suspended": float(waiting.mean()),
        "most_suspended": int(waiting.max()),
        "spells_h": _spells(hourly > hourly.mean()),
        "utilisation_pct": np.round(points, 2).tolist(),
        "suspended_jobs": np.round(_means(waiting, POINT_HOURS), 1).tolist(),
    }


def busiest(by_day: NDArray[np.integer]) -> int:
    """The day on which the FIGURE_2_DAYS with the largest sum begin, the first of several."""
    sums = np.convolve(by_day, np.ones(FIGURE_2_DAYS, np.int64), "valid") if len(by_day) > FIGURE_2_DAYS else [0]
    return int(np.argmax(sums))


def each_suspension(seconds: NDArray[np.float64], times: NDArray[np.integer]) -> NDArray[np.float64]:
    """How long each suspension lasts, if those of a job all last the same: `seconds` are a job's total, by job."""
    return np.repeat(seconds / times, times)


def distribution(seconds: NDArray[np.float64]) -> dict[str, float | None]:
    """What the paper says of the distribution: the median, and the shares above two times."""
    if len(seconds) == 0:
        return {"median_s": None, "long_pct": None, "tail_pct": None, "longest_s": None}
    return {
        "median_s": float(np.median(seconds)),
        "long_pct": 100 * float((seconds > LONG_S).mean()),
        "tail_pct": 100 * float((seconds > TAIL_S).mean()),
        "longest_s": float(seconds.max()),
    }


def _means(samples: NDArray[Any], hours: int) -> NDArray[np.float64]:
    """The means of so many hours each; what is left at the end is left out."""
    each = hours * HOUR_S // SAMPLE_S
    found: NDArray[np.float64] = samples[: len(samples) // each * each].reshape(-1, each).mean(axis=1)
    return found


def _spells(above: NDArray[np.bool_]) -> list[int]:
    """The lengths of the runs of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], above, [False])).astype(np.int8)))
    found: list[int] = (edges[1::2] - edges[::2]).tolist()
    return found


# --- the page

_TYPICAL = f"{TYPICAL_UTILISATION_PCT[0]} to {TYPICAL_UTILISATION_PCT[1]} %"
_TABLE: tuple[tuple[str, str, str, Callable[[Found], float | None]], ...] = (
    ("fig. 2", "median suspension of a job, s", str(MEDIAN_SUSPENSION_S), lambda of: of["weeks"]["median_s"]),
    ("fig. 2", f"% of suspended jobs above {LONG_S} s", str(LONG_PCT), lambda of: of["weeks"]["long_pct"]),
    (
        "fig. 2",
        f"% of suspended jobs above {TAIL_S:,} s",
        "a long tail",
        lambda of: of["weeks"]["tail_pct"],
    ),
    ("fig. 2", "longest suspension, s", "", lambda of: of["weeks"]["longest_s"]),
    (
        "fig. 2",
        "the same, each suspension counted: median, s",
        str(MEDIAN_SUSPENSION_S),
        lambda of: of["each"]["median_s"],
    ),
    ("fig. 2", f"% of suspensions above {LONG_S} s", str(LONG_PCT), lambda of: of["each"]["long_pct"]),
    ("", "median suspension in the whole year, s", "", lambda of: of["year"]["median_s"]),
    ("", f"% above {LONG_S} s in the whole year", "", lambda of: of["year"]["long_pct"]),
    ("fig. 3", "mean utilisation, %", str(MEAN_UTILISATION_PCT), lambda of: of["mean_utilisation_pct"]),
    ("fig. 3", f"% of time with a utilisation of {_TYPICAL}", "typically", lambda of: of["typical_pct"]),
    ("fig. 3", "5 % of time below a utilisation of, %", "", lambda of: of["low_utilisation_pct"]),
    ("fig. 3", "5 % of time above a utilisation of, %", "", lambda of: of["high_utilisation_pct"]),
    ("fig. 3", "suspended jobs at a time, mean", "", lambda of: of["mean_suspended"]),
    ("fig. 3", "suspended jobs at a time, most", "", lambda of: of["most_suspended"]),
    (
        "sec. 2.2",
        "hours in a row with more suspended jobs than on average: median",
        "several hours up to a week",
        lambda of: _quantile(of["spells_h"], 0.5),
    ),
    (
        "sec. 2.2",
        "hours in a row with more suspended jobs than on average: longest",
        "several hours up to a week",
        lambda of: _quantile(of["spells_h"], 1),
    ),
)


def _quantile(values: Sequence[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if values else None


def rows(found: Sequence[Found]) -> list[tuple[Any, ...]]:
    """Each number of the paper beside ours, with intervals over the seeds."""
    return [(where, measure, published, _over_seeds(map(ours, found))) for where, measure, published, ours in _TABLE]


def _over_seeds(values: Any) -> Interval | str:
    """The interval; a seed in which nothing was suspended has no value."""
    known = [value for value in values if value is not None]
    return interval(known) if known else "none"


def _cdf_rows(found: Sequence[Found]) -> list[tuple[Any, ...]]:
    return [(float(at), _over_seeds(each["cdf_pct"][place] for each in found)) for place, at in enumerate(CDF_AT_S)]


def _draw(options: Options, found: Sequence[Found]) -> None:
    cdf = np.array([each["cdf_pct"] for each in found if None not in each["cdf_pct"]], np.float64)
    if len(cdf):
        line = {"mean of the seeds": (np.log10(CDF_AT_S), cdf.mean(axis=0))}
        paper = {"published": (np.log10([MEDIAN_SUSPENSION_S, LONG_S]), [50, 100 - LONG_PCT])}
        labels = ("log10 of the suspension time in s", "% of suspended jobs")
        figures.curves(options.out, "figure-2", {"ten weeks with most suspensions": line | paper}, labels, joined=False)
    for stem, what, label in (
        ("figure-3-utilisation", "utilisation_pct", "utilisation, %"),
        ("figure-3-suspended", "suspended_jobs", "suspended jobs"),
    ):
        panels = {f"seed {seed}": each[what] for seed, each in enumerate(found[:2], start=1)}
        figures.courses(options.out, stem, panels, (f"time in {POINT_HOURS} hours", label))
