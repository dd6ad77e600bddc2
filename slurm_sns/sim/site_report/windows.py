"""Cut a recorded trace into calendar weeks, each of which can be replayed by itself.

A dump of sacct has the jobs that lived in the time it was asked for, also those that were submitted long before it. The
record is complete from the first end of a job on, so the weeks begin there: a job that had ended before is in no dump.

A week's replay begins with the jobs that ran at its begin by the record, each for the rest of its run. A second later
come those that waited then, then the week's own and, so that its last jobs meet what came after them, those of the day
behind it. Measured are the week's own jobs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.trace import SHORTEST_RUN_S, Flags, Moments, TraceArrays

DAY_S = 24 * 60 * 60
WEEK_S = 7 * DAY_S
#: Jobs that are submitted in this time after a week are replayed with it.
TAIL_S = DAY_S
#: When the jobs that waited at the begin are submitted, and the earliest of the week's own: behind those that run.
AFTER_RUNNING_S = 1
#: With so many waiting jobs the replay of a job takes about twice as long as with none.
DEEP_QUEUE = 1000
#: The fewest weeks from which an interval is drawn. It is to cover 95 %; of three weeks it would cover 76, of six 93.
FEWEST = 6
#: A week of which this part is missing at the end of the dump still counts as one.
MISSING = 0.05
#: Such a part of the times at each end of a long dump may be wrong without any effect on the weeks.
OUTLIERS = 0.001


@dataclass(frozen=True)
class Weeks:
    """The weeks of a trace by their first seconds. `length_s` is another than a week's where there is no full one."""

    begins_s: Sequence[int]
    length_s: int


@dataclass(frozen=True)
class WeekWindow:
    """The jobs of one week's replay, in seconds since its begin, and which of them are measured.

    `recorded_wait_s` is that of each job. `running` and `waiting` say how many jobs were there at the begin.
    """

    trace: TraceArrays
    measured: Flags
    length_s: int
    recorded_wait_s: Moments
    running: int
    waiting: int

    @property
    def seen_s(self) -> int:
        """How long its runs are looked at: a week, or of a shorter dump until the last recorded start."""
        if self.length_s >= WEEK_S:
            return self.length_s
        return max(self.length_s, int((self.trace.submit + self.recorded_wait_s).max()))


def weeks_of(trace: TraceArrays) -> Weeks:
    """The full weeks of the trace; if there is none, the whole time as one window."""
    ends = trace.recorded_start + trace.run
    first = int(np.quantile(ends, OUTLIERS, method="lower"))
    last = int(np.quantile(trace.submit, 1 - OUTLIERS, method="higher"))
    if first >= last:  # nothing was submitted after the first end
        first = int(trace.submit.min())
    full = int((last - first) / WEEK_S + MISSING)
    if not full:
        return Weeks([first], max(1, last - first + 1))
    return Weeks([first + WEEK_S * week for week in range(full)], WEEK_S)


def work_of(trace: TraceArrays, weeks: Weeks) -> NDArray[np.float64]:
    """How much the replay of each week is, in jobs: those submitted, more where by the record many waited."""
    bounds = np.array([*weeks.begins_s, weeks.begins_s[-1] + weeks.length_s], np.int64)
    jobs = np.histogram(trace.submit, bounds)[0]
    waited_s = np.histogram(trace.submit, bounds, weights=(trace.recorded_start - trace.submit).astype(np.float64))[0]
    return jobs * (1 + waited_s / weeks.length_s / DEEP_QUEUE)


def chosen(work: NDArray[np.float64], most_work: float, count: int | None, seed: int) -> list[int]:
    """Weeks that have jobs, by chance: so many of them, or up to so much work, but always `FEWEST`; in their order."""
    order = [int(week) for week in np.random.default_rng(seed).permutation(len(work)) if work[week] > 0]
    if count is not None:
        return sorted(order[:count])
    up_to = np.cumsum(work[order])
    return sorted(order[: max(FEWEST, int(np.count_nonzero(up_to <= most_work)))])


def cut(trace: TraceArrays, begin_s: int, length_s: int) -> WeekWindow:
    """The window of a trace that is in order, with what ran and what waited at its begin."""
    end_s = begin_s + length_s
    start, ends = trace.recorded_start, trace.recorded_start + trace.run
    earlier = trace.submit < begin_s
    running = np.flatnonzero(earlier & (start < begin_s) & (ends > begin_s))
    running = running[np.argsort(start[running], kind="stable")]
    waiting = np.flatnonzero(earlier & (start >= begin_s))
    own = np.flatnonzero((trace.submit >= begin_s) & (trace.submit < end_s))
    tail = np.flatnonzero((trace.submit >= end_s) & (trace.submit < end_s + TAIL_S))
    rows = np.concatenate([running, waiting, own, tail])
    found = trace.only(rows)
    submit = np.maximum(found.submit - begin_s, AFTER_RUNNING_S)
    submit[: len(running)] = 0
    begun, ran_s = slice(0, len(running)), begin_s - start[running]
    run, limit, priority = found.run.copy(), found.limit.copy(), found.priority
    run[begun] = np.maximum(run[begun] - ran_s, SHORTEST_RUN_S)
    if len(limit):
        limit[begun] = np.where(limit[begun] > 0, np.maximum(limit[begun] - ran_s, SHORTEST_RUN_S), 0)
    if len(priority):
        priority = priority.copy()
        priority[begun] = priority.max(initial=0) + 1
    measured = np.zeros(len(rows), np.bool_)
    measured[len(running) + len(waiting) : len(rows) - len(tail)] = True
    window = replace(found, submit=submit, run=run, limit=limit, priority=priority)
    recorded_wait_s = found.recorded_start - found.submit
    return WeekWindow(_with_own_kinds(window), measured, length_s, recorded_wait_s, len(running), len(waiting))


def _with_own_kinds(trace: TraceArrays) -> TraceArrays:
    """The trace with the kinds of its own jobs alone: a year has many more."""
    used, kind = np.unique(trace.kind, return_inverse=True)
    allowed = trace.allowed_nodes
    return replace(
        trace,
        kind=kind.astype(np.int32),
        kinds=[trace.kinds[each] for each in used.tolist()],
        given_choices=None if trace.given_choices is None else [trace.given_choices[each] for each in used.tolist()],
        allowed_nodes=None if allowed is None else [allowed[each] for each in used.tolist()],
    )
