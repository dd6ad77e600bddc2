"""Run a year without restarts, and draw suspension times and utilisation.

The figure of suspension times is of the ten weeks in which most jobs are suspended: the paper chose a period with many
suspensions.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES
from slurm_sns.policies.rescheduling.parameters import OFF, ReschedulingParameters
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval, interval
from slurm_sns.sim.pages.running import DataTable, Options, PageResults, Piece
from slurm_sns.sim.replay.pool_replay import SAMPLE_S, replay_pools
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

#: A seed's numbers by name, see `run_year`.
Found = Mapping[str, Any]


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figures."""
    scale, days = (QUICK_SCALE, QUICK_DAYS) if options.quick else (SCALE, DAYS)
    pieces = [(scale, days, seed) for seed in range(1, options.seeds + 1)]
    found = list(options.results(FOLDER, partial(run_year, data=data), pieces, shared=True).values())
    _draw(options, found, data)
    cdf = [(float(at), over_seeds(each["cdf_pct"][place] for each in found)) for place, at in enumerate(CDF_AT_S)]
    return PageResults(
        {},
        [DataTable("figure-2", ("at_most_s", "percent of suspended jobs [95 %]"), cdf)],
        {
            "scale": scale,
            "days": days,
            "warm_up_days": WARM_UP_DAYS,
            "figure_2_days": FIGURE_2_DAYS,
            "point_hours": POINT_HOURS,
            "ours": ours(found, [row[-1] for row in data["inputs"]]),
        },
        options.seeds,
    )


def ours(found: Sequence[Found], names: Iterable[str]) -> dict[str, Interval | str]:
    """The numbers of the table by name, with intervals over the seeds."""
    by_seed = [_flat(each) for each in found]
    return {name: over_seeds(each[name] for each in by_seed) for name in names}


def _flat(found: Found) -> dict[str, Any]:
    """A seed's numbers; those of a distribution are named after it."""
    spells = {
        f"{name}_spell_h": _quantile(found["spells_h"], share) for name, share in (("median", 0.5), ("longest", 1))
    }
    times = {f"{of} {name}": value for of in ("weeks", "each", "year") for name, value in found[of].items()}
    return {**found, **spells, **times}


def _quantile(values: Sequence[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if values else None


def over_seeds(values: Iterable[float | None]) -> Interval | str:
    """The interval; a seed in which nothing was suspended has no value."""
    known = [value for value in values if value is not None]
    return interval(known) if known else "none"


def _draw(options: Options, found: Sequence[Found], data: Mapping[str, Any]) -> None:
    cdf = np.array([each["cdf_pct"] for each in found if None not in each["cdf_pct"]], np.float64)
    if len(cdf):
        line = {"mean of the seeds": (np.log10(CDF_AT_S), cdf.mean(axis=0))}
        paper = {"published": (np.log10([data["median_s"], data["long_s"]]), [50, 100 - data["long_pct"]])}
        labels = ("log10 of the suspension time in s", "% of suspended jobs")
        figures.curves(options.out, "figure-2", {"ten weeks with most suspensions": line | paper}, labels, joined=False)
    for stem, what, label in (
        ("figure-3-utilisation", "utilisation_pct", "utilisation, %"),
        ("figure-3-suspended", "suspended_jobs", "suspended jobs"),
    ):
        panels = {f"seed {seed}": each[what] for seed, each in enumerate(found[:2], start=1)}
        figures.courses(options.out, stem, panels, (f"time in {POINT_HOURS} hours", label))


# --- a seed


def run_year(piece: Piece, data: Mapping[str, Any]) -> Found:
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
    low, high = data["typical_pct"]
    return {
        "weeks": distribution(suspended_s[chosen], data),
        "each": distribution(each_suspension(suspended_s[chosen], replayed.suspensions[chosen]), data),
        "year": distribution(suspended_s[inside], data),
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


def distribution(seconds: NDArray[np.float64], data: Mapping[str, Any]) -> dict[str, float | None]:
    """What the paper says of the distribution: the median, and the shares above two times."""
    if len(seconds) == 0:
        return {"median_s": None, "long_pct": None, "tail_pct": None, "longest_s": None}
    return {
        "median_s": float(np.median(seconds)),
        "long_pct": 100 * float((seconds > data["long_s"]).mean()),
        "tail_pct": 100 * float((seconds > data["tail_s"]).mean()),
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
