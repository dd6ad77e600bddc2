"""Run the two weeks, draw the run times of activities by hour, and compare recent run times with known ones.

An activity is a program of the generator with low priority. The figure is of the first day of the two weeks in the
largest pool, without restarts, and of the programs of which most jobs complete there on that day. A job's estimate is
the mean of its program's runs that ended anywhere in the 24 hours before its submit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Quantity
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.replay.pool_replay import replay_pools
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import Flags, TraceArrays
from slurm_sns.sim.workloads.idcp import LOW, Fortnight, burst_fortnight
from slurm_sns.sim.workloads.idcp_site import DAY_S, HOUR_S, pool_cores
from sns_reproductions.idcp import MINUTE_S, READINGS, VARIANTS, compared, named, results, scale_of, table, without

#: So many activities are in the figure, and so many of them are drawn.
ACTIVITIES, DRAWN = 10, 5
HOURS = 24
RECENT = "recent"

Floats = NDArray[np.float64]
#: A seed's numbers by name, see `run_fortnight`.
Found = Mapping[str, Any]


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figure."""
    scale, seeds = scale_of(options), range(1, options.seeds + 1)
    found = list(options.results("idcp-activities", run_fortnight, [(scale, seed) for seed in seeds]).values())
    variants = results(options, [name for reading in READINGS for name in (reading, named(RECENT, reading))])
    tables = {name: table(of_variant) for name, of_variant in variants.items()}
    quantities: dict[str, Quantity] = {
        name: np.array([each[name] for each in found], np.float64)
        for name in ("hours_pct", "estimates_pct", "unknown_pct", "low_wait_min", "low_suspended_min")
    }
    for reading in READINGS:
        quantities |= compared(f"{RECENT} {reading}", tables[named(RECENT, reading)], tables[reading])
    _draw(options, found[0])
    fields = {"scale": scale, "activities": ACTIVITIES, "hours": HOURS}
    return PageResults(quantities, (), fields, options.seeds)


def run_fortnight(piece: tuple[float, int]) -> dict[str, Any]:
    """One seed without restarts.

    `hourly_min`: by activity and hour the mean run time in minutes, None in an hour without a completion. `hours_pct`:
    by how many percent these differ from the activity's mean of the day, on average. `estimates_pct`: the median error
    of the estimates of the low-priority jobs of the two weeks; `unknown_pct` of them have none. `low_wait_min` and
    `low_suspended_min`: the mean times in queues and suspended of those that completed in the two weeks.
    """
    fortnight = burst_fortnight(*piece)
    trace = fortnight.trace
    ran = replay_pools(fortnight.site, trace, VARIANTS[without()].parameters)
    low = trace.priority == LOW
    hourly = hourly_min(trace, ran, low, fortnight)
    means = np.nanmean(hourly, axis=1, keepdims=True)
    expected_s = estimates(trace, ran.end, low)
    asked = low & (trace.submit > fortnight.begin_s)
    known = asked & ~np.isnan(expected_s)
    completed = low & (ran.end > fortnight.begin_s) & (ran.end <= fortnight.end_s)
    return {
        "hourly_min": [[None if np.isnan(each) else each for each in row] for row in hourly.tolist()],
        "hours_pct": 100 * float(np.nanmean(np.abs(hourly / means - 1))),
        "estimates_pct": 100 * float(np.median(np.abs(expected_s[known] / trace.run[known] - 1))),
        "unknown_pct": 100 * float(1 - known.sum() / asked.sum()),
        "low_wait_min": float(ran.waited[completed].mean()) / MINUTE_S,
        "low_suspended_min": float(ran.suspended[completed].mean()) / MINUTE_S,
    }


def hourly_min(trace: TraceArrays, ran: TraceRun, jobs: Flags, fortnight: Fortnight) -> Floats:
    """The mean run times in minutes of the most frequent activities, by hour; nan in an hour without a completion."""
    pool, begin_s = int(pool_cores(fortnight.site).argmax()), fortnight.begin_s
    of_day = jobs & (ran.pool == pool) & (ran.end > begin_s) & (ran.end <= begin_s + DAY_S)
    program, hour = trace.program[of_day], (ran.end[of_day] - begin_s - 1) // HOUR_S
    completions = np.bincount(program, minlength=len(trace.programs))
    frequent = np.argsort(-completions, kind="stable")[: min(ACTIVITIES, int((completions > 0).sum()))]
    shape = (len(trace.programs), HOURS)
    number, total_s = np.zeros(shape), np.zeros(shape)
    np.add.at(number, (program, hour), 1)
    np.add.at(total_s, (program, hour), trace.run[of_day])
    with np.errstate(invalid="ignore"):
        mean_min: Floats = total_s[frequent] / number[frequent] / MINUTE_S
    return mean_min


def estimates(trace: TraceArrays, end: NDArray[np.integer], jobs: Flags) -> Floats:
    """For each of these jobs the mean run time of its program's jobs that ended in the day before; nan if none did."""
    expected_s = np.full(len(trace), np.nan)
    for program in np.unique(trace.program[jobs]).tolist():
        own = np.flatnonzero(jobs & (trace.program == program))
        by_end = own[np.argsort(end[own], kind="stable")]
        ends, total_s = end[by_end], np.concatenate([[0], np.cumsum(trace.run[by_end])])
        first, last = (np.searchsorted(ends, trace.submit[own] - ago_s, side="right") for ago_s in (DAY_S, 0))
        with np.errstate(invalid="ignore"):
            expected_s[own] = (total_s[last] - total_s[first]) / (last - first)
    return expected_s


def _draw(options: Options, found: Found) -> None:
    rows: Sequence[Sequence[float | None]] = found["hourly_min"][:DRAWN]
    lines = {
        f"activity {number}": (np.arange(1, HOURS + 1), np.array(row, np.float64))
        for number, row in enumerate(rows, start=1)
    }
    figures.curves(options.out, "figure-5", {"": lines}, ("hour", "mean run time, min"))
