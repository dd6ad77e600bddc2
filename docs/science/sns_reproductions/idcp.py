"""The pages on rescheduling share this: the variants of a replay, the runs of the two weeks, and their quantities.

A piece of work is (scale, seed, variant). Its result has the metrics of the two weeks, the completion times of the
jobs that take longest, the means over jobs that are followed to their end, and for each job that is suspended without
restarts its completion with and without them. So a piece with restarts also needs the replay without; a process that
runs several pieces of a seed one after another makes that replay once. All variants of a seed replay the same jobs. On
half of the machines each pool has the first half of its nodes.

Variants are compared in pairs: a change is computed for each seed, on the same jobs. A quantity that a seed does not
have, such as a mean over no job, is nan, and a claim on it cannot be decided.

Source: Cost-based dynamic job rescheduling (2010), section 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES, NodeArrays
from slurm_sns.policies.rescheduling.parameters import (
    ALL_JOBS,
    AVAILABILITY,
    FREED,
    OFF,
    RECENT,
    REMAINING,
    SUSPENDED_JOBS,
    ReschedulingParameters,
)
from slurm_sns.sim.pages.judge import Quantity, percent_more
from slurm_sns.sim.pages.running import Options, Piece
from slurm_sns.sim.replay.pool_replay import replay_pools
from slurm_sns.sim.results.pool_results import period_metrics
from slurm_sns.sim.run import Integers, TraceRun
from slurm_sns.sim.trace import ANY_POOL, Flags, TraceArrays
from slurm_sns.sim.traces.nodes_csv import TraceSite
from slurm_sns.sim.workloads.idcp import LOW, Fortnight, burst_fortnight
from slurm_sns.sim.workloads.idcp_parameters import DEFAULTS, IdcpParameters

# --- variants


class PoolVariant(NamedTuple):
    """`baseline` names the variant without restarts on the same machines; `halved`: on half of the machines.

    `is_fair`: pools serve equal priorities by fair queueing between activities. `is_common`: all machines are one pool,
    for all jobs.
    """

    parameters: ReschedulingParameters
    baseline: str
    halved: bool = False
    workload: IdcpParameters = DEFAULTS
    is_fair: bool = False
    is_common: bool = False


#: The paper's rule in both readings of its averages.
READINGS: Mapping[str, str] = {"all": ALL_JOBS, "suspended": SUSPENDED_JOBS}

#: On half of the machines, with bursts of half the load: as large for their pools as on all machines.
HALF_BURSTS = "half-bursts"
#: With low-priority jobs half as long and twice as many.
SHORT_JOBS = "short-jobs"


def _rule(**changed: Any) -> PoolVariant:
    """The paper's rule, but for these parameters."""
    return PoolVariant(ReschedulingParameters(**changed), "")


#: As live: run times are not known, a job moves twice at most, and a requeue takes Slurm's default requeue_delay and
#: KillWait.
LIVE: Mapping[str, Any] = {"run_times": RECENT, "max_moves": 2, "move_cost_s": 150}

#: What makes another replay without restarts, by the names of these replays.
_OTHER_SITES: Mapping[str, PoolVariant] = {
    "": _rule(),
    "half": _rule()._replace(halved=True),
    # These two test the pages' explanations.
    HALF_BURSTS: _rule()._replace(halved=True, workload=replace(DEFAULTS, strong_height=DEFAULTS.strong_height / 2)),
    SHORT_JOBS: _rule()._replace(workload=replace(DEFAULTS, low_run_min=DEFAULTS.low_run_min / 2)),
    "availability": _rule(virtual_pool=AVAILABILITY),
    "freed": _rule(suspended_memory=FREED),
    "best-fit": _rule(heuristic="best-fit-cores"),
    "worse-fit": _rule(heuristic="worse-fit-cores"),
    "mix-fit": _rule(heuristic="mix-fit"),
    "fair": _rule()._replace(is_fair=True),
    "common": _rule()._replace(is_common=True),
}
#: What changes restarts only. The windows are a sixth of the paper's and ten times as long.
_OTHER_RESTARTS: Mapping[str, PoolVariant] = {
    "remaining": _rule(elsewhere=REMAINING),
    "recent": _rule(run_times=RECENT),
    "cost-600": _rule(move_cost_s=600),
    "cost-3600": _rule(move_cost_s=3600),
    "waiting-600": _rule(waiting_check_s=600),
    "keeps-work": _rule(keeps_work=True),
    "one-move": _rule(max_moves=1),
    "window-1000": _rule(window_s=1000),
    "window-60000": _rule(window_s=60_000),
    "live": _rule(**LIVE),
    "live-waiting": _rule(**LIVE, waiting_check_s=600),
    "live-availability": _rule(**LIVE, virtual_pool=AVAILABILITY),
    "live-availability-waiting": _rule(**LIVE, virtual_pool=AVAILABILITY, waiting_check_s=600),
}


def named(change: str, reading: str) -> str:
    """The name of the variant with this change, in this reading of the averages."""
    return f"{change}-{reading}" if change else reading


def without(change: str = "") -> str:
    """The name of the variant without restarts."""
    return f"off-{change}" if change else "off"


def _variants() -> dict[str, PoolVariant]:
    found = {}
    for change, of in {**_OTHER_SITES, **_OTHER_RESTARTS}.items():
        by_availability = AVAILABILITY if of.parameters.virtual_pool == AVAILABILITY else ""
        baseline = without(change if change in _OTHER_SITES else by_availability)
        if change in _OTHER_SITES:
            found[baseline] = of._replace(baseline=baseline, parameters=replace(of.parameters, restart=OFF))
        for reading, averages in READINGS.items():
            rule = replace(of.parameters, averages=averages)
            found[named(change, reading)] = of._replace(baseline=baseline, parameters=rule)
    return found


VARIANTS: Mapping[str, PoolVariant] = _variants()


# --- runs

SCALE, QUICK_SCALE = 1.0, 0.1
FOLDER = "idcp"
#: Figures 6 and 7: the share of the jobs that take longest, and the shares of them at which we keep a quantile.
LONGEST = 0.05
TAIL_SHARES = np.linspace(0, 1, 41)

#: What came out of it: see `run`.
Found = Mapping[str, Any]


class Ends(NamedTuple):
    """By job, in ticks: what is needed of the replay without restarts."""

    end: Integers
    first_suspended: Integers


def scale_of(options: Options) -> float:
    """The site's machines and jobs over those of the generator."""
    return QUICK_SCALE if options.quick else SCALE


def results(options: Options, variants: Sequence[str], scale: float | None = None) -> dict[str, list[Found]]:
    """The results of these variants by seed. All pages share them; without --resume a page repeats its own.

    Raises:
        SnsError: the folder cannot be read or written.
    """
    scale = scale_of(options) if scale is None else scale
    seeds = [tuple((scale, seed, name) for name in variants) for seed in range(1, options.seeds + 1)]
    found = options.results(FOLDER, run, (piece for of_seed in seeds for piece in of_seed), shared=True)
    return {name: [found[of_seed[at]] for of_seed in seeds] for at, name in enumerate(variants)}


def run(piece: Piece) -> Found:
    """One variant of one seed.

    `period`: its metrics. `tails`: the completion times in seconds at TAIL_SHARES of the longest jobs of all, of the
    suspended, and of the suspended that are among the longest of all. `submitted_s`: the mean completion of the jobs
    submitted in the period, each followed to its end: of all, of high and of low priority. `paired`: the mean
    completion of the jobs that are suspended without restarts, without and with restarts, and how many percent of them
    complete earlier and later with restarts. `work_core_s`: the work submitted in the period.
    """
    scale, seed, name = float(piece[0]), int(piece[1]), str(piece[2])
    variant = VARIANTS[name]
    fortnight = _fortnight(scale, seed, variant.workload)
    site, trace = _site(fortnight, variant)
    turns = fair_turns(site, trace) if variant.is_fair else None
    replayed = replay_pools(site, trace, variant.parameters, sample_until_s=fortnight.end_s, turns=turns)
    baseline = (
        Ends(replayed.end, replayed.first_suspended)
        if name == variant.baseline
        else _ends_without(scale, seed, variant.baseline)
    )
    period = period_metrics(site, replayed, fortnight.end_s, warm_up_s=fortnight.begin_s)
    begin, end = fortnight.begin_s * trace.ticks_per_s, fortnight.end_s * trace.ticks_per_s
    inside = trace.submit > begin
    completion = replayed.end - trace.submit
    priority = {"all": inside, "high": inside & (trace.priority > LOW), "low": inside & (trace.priority == LOW)}
    return {
        "jobs": len(trace),
        "period": period,
        "tails": _tails(replayed, begin, end),
        "submitted_s": {of: _mean_s(trace, completion, jobs) for of, jobs in priority.items()},
        "paired": _paired(replayed, baseline, begin, end),
        "work_core_s": float((trace.run * trace.cores)[inside].sum()) / trace.ticks_per_s,
    }


def _site(fortnight: Fortnight, variant: PoolVariant) -> tuple[TraceSite, TraceArrays]:
    site, trace = fortnight.site, fortnight.trace
    if variant.is_common:
        return common(site), replace(
            trace,
            pool=np.full_like(trace.pool, ANY_POOL),
            allowed=np.zeros_like(trace.allowed),
            allowed_sets=np.ones((1, 1), np.bool_),
        )
    return (halved(site) if variant.halved else site), trace


def common(site: TraceSite) -> TraceSite:
    """The site with all of its nodes in one pool."""
    return TraceSite(site.nodes, ("common",), np.zeros_like(site.pool_of))


def fair_turns(site: TraceSite, trace: TraceArrays) -> Integers:
    """The jobs' turns under fair queueing between activities of equal weight: the order of their virtual finishes.

    An activity's clock never lies before the submit of its next job. A job moves it on by its core-ticks over the
    activity's equal part of the site's cores, and finishes there. Jobs of no activity count as one.

    Source: L. Zhang, Virtual clock: a new traffic control algorithm for packet switching networks, SIGCOMM 1990.
    """
    part = float(site.nodes.capacity[CORES].sum()) / max(len(trace.programs), 1)
    clocks = np.zeros(len(trace.programs) + 1)  # the last one is that of UNKNOWN
    finish = np.empty(len(trace))
    columns = (trace.program, trace.submit, trace.run * trace.cores)
    for job, (activity, submit, work) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        clocks[activity] = max(clocks[activity], submit) + work / part
        finish[job] = clocks[activity]
    turns = np.empty(len(trace), np.int64)
    turns[np.argsort(finish, kind="stable")] = np.arange(len(trace))
    return turns


def halved(site: TraceSite) -> TraceSite:
    """The site with the first half of each pool's nodes, at least one."""
    counts = np.bincount(site.pool_of)
    order = np.argsort(site.pool_of, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.flatnonzero(rank < np.maximum(counts // 2, 1)[site.pool_of])
    names = tuple(site.nodes.names[node] for node in kept)
    return TraceSite(NodeArrays(names, site.nodes.capacity[:, kept]), site.pools, site.pool_of[kept])


@lru_cache(maxsize=1)
def _fortnight(scale: float, seed: int, workload: IdcpParameters) -> Fortnight:
    return burst_fortnight(scale, seed, workload)


@lru_cache(maxsize=1)
def _ends_without(scale: float, seed: int, baseline: str) -> Ends:
    variant = VARIANTS[baseline]
    fortnight = _fortnight(scale, seed, variant.workload)
    site, trace = _site(fortnight, variant)
    turns = fair_turns(site, trace) if variant.is_fair else None
    replayed = replay_pools(site, trace, variant.parameters, turns=turns)
    return Ends(replayed.end, replayed.first_suspended)


def _mean_s(trace: TraceArrays, ticks: Integers, of: Flags) -> float | None:
    return float(ticks[of].mean()) / trace.ticks_per_s if of.any() else None


def _tails(replayed: TraceRun, begin: int, end: int) -> dict[str, list[float]]:
    """Over the jobs that completed in the period; suspended ones were first suspended in it."""
    completed = (replayed.end > begin) & (replayed.end <= end)
    suspended = completed & (replayed.first_suspended > begin) & (replayed.first_suspended <= end)
    seconds = replayed.trace.seconds(replayed.end - replayed.trace.submit)
    longest = completed & (seconds >= np.quantile(seconds[completed], 1 - LONGEST))
    both = seconds[suspended & longest]
    return {
        "all": tail(seconds[completed]),
        "suspended": tail(seconds[suspended]),
        "suspended_among_all": np.quantile(both, TAIL_SHARES).tolist() if len(both) else [],
    }


def tail(seconds: np.ndarray) -> list[float]:
    """The quantiles at TAIL_SHARES of the longest 5 %, at least one; empty without jobs."""
    if len(seconds) == 0:
        return []
    longest = np.sort(seconds)[-max(1, ceil(LONGEST * len(seconds))) :]
    found: list[float] = np.quantile(longest, TAIL_SHARES).tolist()
    return found


def _paired(replayed: TraceRun, baseline: Ends, begin: int, end: int) -> dict[str, float | int | None]:
    """The jobs whose first suspension without restarts is in the period, each followed to its end."""
    trace = replayed.trace
    jobs = (baseline.first_suspended > begin) & (baseline.first_suspended <= end)
    earlier, later = replayed.end[jobs] < baseline.end[jobs], replayed.end[jobs] > baseline.end[jobs]
    return {
        "jobs": int(jobs.sum()),
        "without_s": _mean_s(trace, baseline.end - trace.submit, jobs),
        "with_s": _mean_s(trace, replayed.end - trace.submit, jobs),
        "earlier_pct": 100 * float(earlier.mean()) if jobs.any() else None,
        "later_pct": 100 * float(later.mean()) if jobs.any() else None,
    }


# --- quantities

#: One value for each seed.
Samples = NDArray[np.float64]
#: Samples by quantity, of one variant.
Table = Mapping[str, Samples]

MINUTE_S, HOUR_S = 60, 3600
MEDIAN, LATE = (int(np.argmin(np.abs(TAIL_SHARES - share))) for share in (0.5, 0.95))
#: The keys of `tails` in a result, by the beginnings of the columns.
TAILS = {"all": "all", "suspended": "suspended", "among_all": "suspended_among_all"}


def table(found: Sequence[Found]) -> dict[str, Samples]:
    """The samples of a variant from its results by seed: see `_quantities`."""
    rows = [_quantities(each) for each in found]
    return {
        name: np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64) for name in rows[0]
    }


def _quantities(found: Found) -> dict[str, Any]:
    """Units are last in the names; those without one are numbers of jobs or of events."""
    period, paired, submitted = found["period"], found["paired"], found["submitted_s"]
    wasted = period["wasted_core_s_total"]
    return {
        "suspended": period["jobs_suspended"],
        "completed_pct": period["suspended_completed_pct"],
        "suspend_min": _minutes(period["mean_suspend_s"]),
        "resumed_suspend_min": _minutes(period["resumed_mean_suspend_s"]),
        "moved_at_once": period["moved_at_once"],
        "suspended_completion_min": _minutes(period["suspended_mean_completion_s"]),
        "completed": period["jobs_completed"],
        "completion_min": _minutes(period["mean_completion_s"]),
        "suspended_pct": period["suspended_pct_of_completed"],
        "utilisation_pct": period["utilisation_sampled_pct"],
        "suspensions": period["suspensions_total"],
        "restarts": period["restarts_total"],
        "wasted_core_h": wasted / HOUR_S,
        "wasted_pct": 100 * wasted / found["work_core_s"],
        "submitted_min": _minutes(submitted["all"]),
        "high_min": _minutes(submitted["high"]),
        "low_min": _minutes(submitted["low"]),
        "paired_jobs": paired["jobs"],
        "paired_without_min": _minutes(paired["without_s"]),
        "paired_with_min": _minutes(paired["with_s"]),
        "paired_earlier_pct": paired["earlier_pct"],
        "paired_later_pct": paired["later_pct"],
        **{
            f"{jobs}_{name}_min": _minutes(found["tails"][key][at]) if found["tails"][key] else None
            for jobs, key in TAILS.items()
            for name, at in (("median", MEDIAN), ("late", LATE))
        },
    }


def _minutes(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / MINUTE_S


def quantities(tables: Mapping[str, Table]) -> dict[str, Quantity]:
    """The quantities by name: those of a variant, and beside the replay without restarts what `compared` says."""
    found: dict[str, Quantity] = {f"{name} {column}": of for name in tables for column, of in tables[name].items()}
    for name, of in tables.items():
        if (baseline := VARIANTS[name].baseline) != name:
            found |= compared(name, of, tables[baseline])
            found[f"{name} paired"] = percent_more(of["paired_with_min"], of["paired_without_min"])
    return found


def compared(name: str, one: Table, other: Table) -> dict[str, Quantity]:
    """Of each column the change in percent from the other variant to the first, and the difference."""
    found: dict[str, Quantity] = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for column in one:
            found[f"{name} change {column}"] = percent_more(one[column], other[column])
            found[f"{name} difference {column}"] = one[column] - other[column]
    return found


def mean(samples: Samples) -> float:
    """Over the seeds that have a value; nan if none has."""
    known = samples[~np.isnan(samples)]
    return float(known.mean()) if len(known) else float("nan")
