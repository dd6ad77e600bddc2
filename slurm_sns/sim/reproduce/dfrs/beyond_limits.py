"""Time limits that count wall time, while jobs run at a fraction of their speed: a part of the page beyond the paper.

A job's limit is the number of seconds for which it may have nodes, and a promise: after it the nodes are free. At a
yield below 1, and while it serves a rescheduling penalty, a job needs more of these seconds than at full speed. A site
can let the limits kill such jobs. Or it can extend each limit by what its job has lost, and break the promise.

Jobs that run longer than their limits even at full speed say nothing about DFRS (the site of the log let them). They
are counted apart, and have no limit in these runs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import Floats
from slurm_sns.sim.pages.judge import Claim
from slurm_sns.sim.replay.fluid_replay import SiteVariant
from slurm_sns.sim.reproduce.dfrs.beyond_runs import DFRS, EQUAL, nodes_like, replay
from slurm_sns.sim.reproduce.dfrs.runs import FREE, PAPER_NAMES, Instance, trace_of
from slurm_sns.sim.reproduce.dfrs.statistics import Table, jackknife

#: "Few jobs", "little time": below this, in percent. "Much slower": a wall time of more than so many run times.
FEW_PERCENT, MUCH_SLOWER = 5, 2
#: A wall time is a sum of floats.
ROUNDING_S = 1e-3
QUANTILES = (50, 90, 95, 99, 99.9, 100)

BY_ALGORITHM = ("wall_s", "free_wall_s", "killed", "limited_wall_s")

#: What is summed up for each week; times are in node-seconds.
JOBS, KILLED, WASTED, USED, LATE, LATE_TIME, PROMISED, LOST, RUN, SLOWER, LATE_WITHOUT_PENALTY = range(11)
#: What the page gives, as the percentage that one of these sums is of another.
SHARES: Mapping[str, tuple[int, int]] = {
    "jobs that are killed, % of jobs": (KILLED, JOBS),
    "time of killed jobs, % of the time of all": (WASTED, USED),
    "jobs that end after their limits if these are extended, % of jobs": (LATE, JOBS),
    "time after the limits, % of the time that they promise": (LATE_TIME, PROMISED),
    "extensions of the limits, % of the time that they promise": (LOST, PROMISED),
    "extensions of the limits, % of the time at full speed": (LOST, RUN),
    f"jobs with a wall time of more than {MUCH_SLOWER} run times, % of jobs": (SLOWER, JOBS),
    "jobs that end after their limits without a rescheduling penalty, % of jobs": (LATE_WITHOUT_PENALTY, JOBS),
}
KILLED_SHARE, WASTED_SHARE, LATE_JOBS, LATE_SHARE, LOST_SHARE, _, SLOWER_SHARE, LATE_WITHOUT = SHARES

#: What wall times are compared with.
OVER = {"run_s": "wall time / run time", "limit_s": "wall time / limit"}


def run(instance: Instance) -> dict[str, Any]:
    """One week of HPC2N without limits, without a penalty, and with limits that kill.

    `run_s`, `limit_s` and `tasks` are by job. By algorithm and job: `wall_s`, how long it has nodes without limits;
    `free_wall_s`, the same without a penalty; `killed` and `limited_wall_s`, with limits. Only jobs that end within
    their limits at full speed are among these; `longer` is the number of the others.
    """
    trace, count = trace_of(instance)
    penalty_s, nodes = int(instance[-1]), nodes_like(EQUAL, count)
    within = trace.run_s <= trace.limit_s
    limits = SiteVariant(limit_s=np.where(within, trace.limit_s, np.inf))
    found: dict[str, Any] = {
        "longer": int(np.count_nonzero(trace.run_s > trace.limit_s)),
        **{name: getattr(trace, name)[within].tolist() for name in ("run_s", "limit_s", "tasks")},
        **{key: {} for key in BY_ALGORITHM},
    }
    for name in DFRS:
        limited = replay(nodes, trace, name, penalty_s, limits)
        columns = (
            replay(nodes, trace, name, penalty_s, SiteVariant()).wall_s,
            replay(nodes, trace, name, FREE, SiteVariant()).wall_s,
            limited.killed,
            limited.wall_s,
        )
        for key, column in zip(BY_ALGORITHM, columns, strict=True):
            found[key][name] = column[within].tolist()
    return found


def sums(week: Mapping[str, Any], name: str) -> list[float]:
    """The sums of one week under one algorithm, in the order of JOBS ... LATE_WITHOUT_PENALTY."""
    run_s, limit_s, tasks = (np.asarray(week[key]) for key in ("run_s", "limit_s", "tasks"))
    wall_s, free_wall_s, killed, limited_wall_s = (np.asarray(week[key][name]) for key in BY_ALGORITHM)
    late_s = np.maximum(wall_s - limit_s, 0.0)
    columns = (
        np.ones(len(tasks)),
        killed,
        killed * limited_wall_s * tasks,
        limited_wall_s * tasks,
        late_s > ROUNDING_S,
        late_s * tasks,
        limit_s * tasks,
        (wall_s - run_s) * tasks,
        run_s * tasks,
        wall_s > MUCH_SLOWER * run_s,
        free_wall_s - limit_s > ROUNDING_S,
    )
    return [float(np.sum(column)) for column in columns]


def tabulate(weeks: Sequence[Mapping[str, Any]]) -> Table:
    """The sums by algorithm, with one row for each week."""
    return {name: np.array([sums(week, name) for week in weeks]) for name in DFRS}


def share(name: str, measure: str) -> Callable[[Table], float]:
    """One of SHARES, in percent, over all weeks."""
    part, whole = SHARES[measure]
    return lambda table: 100 * float(table[name][:, part].sum() / table[name][:, whole].sum())


def ratios(weeks: Sequence[Mapping[str, Any]], name: str, over: str) -> Floats:
    """The wall times over the run times or the limits (`over`), of the jobs of all weeks."""
    return np.concatenate([np.asarray(week["wall_s"][name]) / np.asarray(week[over]) for week in weeks])


def limit_ratios(weeks: Sequence[Mapping[str, Any]]) -> Floats:
    """The limits over the run times."""
    return np.concatenate([np.asarray(week["limit_s"]) / np.asarray(week["run_s"]) for week in weeks])


def claims(table: Table) -> list[Claim]:
    """Our expectations: few jobs lose so much time that it matters for their limits."""
    stated = {
        "limits that count wall time kill few jobs": KILLED_SHARE,
        "nodes are free little later than the limits promise": LATE_SHARE,
        "few jobs have nodes for much longer than they run": SLOWER_SHARE,
    }
    return [
        Claim(
            "ours",
            f"HPC2N, {PAPER_NAMES[name]}: {text}",
            measure,
            jackknife(share(name, measure), table),
            high=FEW_PERCENT,
        )
        for text, measure in stated.items()
        for name in DFRS
    ]


def rows(weeks: Sequence[Mapping[str, Any]], table: Table) -> list[tuple[Any, ...]]:
    """Each share with its interval; quantiles of wall times over run times and limits, and of limits over run times."""
    found: list[tuple[Any, ...]] = []
    for name in DFRS:
        for measure in SHARES:
            value = jackknife(share(name, measure), table)
            found.append((PAPER_NAMES[name], measure, value.mean, value.low, value.high))
        for over, told in OVER.items():
            found += _quantiles(PAPER_NAMES[name], told, ratios(weeks, name, over))
    return [*found, *_quantiles("", "limit / run time", limit_ratios(weeks))]


def _quantiles(name: str, told: str, values: Floats) -> list[tuple[Any, ...]]:
    at = np.percentile(values, QUANTILES).tolist()
    return [
        (name, f"{told}, {percent:g} % quantile", each, "", "") for percent, each in zip(QUANTILES, at, strict=True)
    ]
