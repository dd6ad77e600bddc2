"""The metrics and result files of a replay of a site with pools.

The metrics of a period are those of the paper's tables 1 and 2. Suspended jobs are those whose first suspension began
in the period; completion is end - submit. Utilisation is sampled each minute. Totals are those of the whole replay.

The metrics of a simulation are as in module metrics, with these differences: the wait of a job is the time in queues,
and its slowdown counts all of its time, with suspensions and lost attempts. The utilisation of cores is sampled; that
of memory is not known if suspended jobs free theirs.

Source: Cost-based dynamic job rescheduling (2010), section 4 (tables 1 and 2; the sampling).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from slurm_sns.policies.placement.node_arrays import CORES
from slurm_sns.sim.replay.pool_replay import SAMPLE_S
from slurm_sns.sim.results.amounts import gigabytes
from slurm_sns.sim.results.columns import JOBS, POOL_JOBS, header
from slurm_sns.sim.results.lines import Numbers, Texts, lines
from slurm_sns.sim.results.metrics import Metrics, inside, metrics_of
from slurm_sns.sim.run import Integers, TraceRun
from slurm_sns.sim.trace import Flags
from slurm_sns.sim.traces.nodes_csv import TraceSite


def period_metrics(
    site: TraceSite, run: TraceRun, period_end_s: int, *, warm_up_s: int | None = None
) -> dict[str, float | None]:
    """The metrics of the period that ends at `period_end_s` on the trace's clock; None is a mean over nothing.

    The period begins with the replay; its end is in it. With `warm_up_s` only what was completed or first suspended
    after that time counts, and only the samples from that time on. Jobs of the warm-up that complete after it count as
    completed.

    `jobs_suspended`: the first suspension began in the period; `suspended_completed_pct`: the share of them that ended
    in it. Of these `mean_suspend_s` is the mean of the time suspended, over their life, and
    `suspended_mean_completion_s` that of their completion. `moved_at_once` counts those that were never suspended for
    longer than an instant, and `resumed_mean_suspend_s` is the mean over the others. `suspended_pct_of_completed` is
    jobs suspended over all jobs completed. `wasted_core_s_total` are the cores of lost attempts times their run time.

    Raises:
        ValueError: the run was not sampled until the end, or the warm-up is longer.
    """
    first, end = -(-(warm_up_s or 0) // SAMPLE_S), period_end_s // SAMPLE_S + 1
    cores_used = run.cores_used[first:end]
    samples = end - first
    if samples < 1:
        raise ValueError(f"the warm-up is {warm_up_s} s long; the period ends at {period_end_s} s")
    if len(cores_used) < samples:
        raise ValueError(f"{len(run.cores_used)} samples; a period of {period_end_s} s has {end}")
    trace, ticks = run.trace, run.trace.ticks_per_s
    last = period_end_s * ticks
    # Without a warm-up what happens at 0 counts; -1 stands for "never suspended".
    before = -1 if warm_up_s is None else warm_up_s * ticks

    def counts(times: Integers) -> Flags:
        return (times > before) & (times <= last)

    completion = run.end - trace.submit
    completed, suspended = counts(run.end), counts(run.first_suspended)
    both = suspended & completed
    at_once = both & (run.suspended == 0)

    def mean_s(amount: Integers, of: Flags) -> float | None:
        return int(amount[of].sum()) / int(of.sum()) / ticks if of.any() else None

    return {
        "jobs_completed": int(completed.sum()),
        "mean_completion_s": mean_s(completion, completed),
        "jobs_suspended": int(suspended.sum()),
        "suspended_completed_pct": _percent(int(both.sum()), int(suspended.sum())),
        "mean_suspend_s": mean_s(run.suspended, both),
        "moved_at_once": int(at_once.sum()),
        "resumed_mean_suspend_s": mean_s(run.suspended, both & ~at_once),
        "suspended_mean_completion_s": mean_s(completion, both),
        "suspended_pct_of_completed": _percent(int(suspended.sum()), int(completed.sum())),
        "utilisation_sampled_pct": 100 * int(cores_used.sum()) / (samples * int(site.nodes.capacity[CORES].sum())),
        "suspensions_total": int(run.suspensions.sum()),
        "restarts_total": int(run.restarts.sum()),
        "wasted_core_s_total": _core_seconds(run),
    }


def measure_pools(site: TraceSite, run: TraceRun, *, keeps_memory: bool) -> Metrics:
    """The metrics of a replay.

    `keeps_memory`: suspended jobs hold their memory. A cycle is an instant at which jobs were submitted or ended, and
    jobs wait in it if a queue is not empty afterwards.
    """
    trace, visits = run.trace, run.visits()
    seconds = trace.seconds
    first, last = (float(trace.submit_s[at]) for at in (0, -1))
    joined, start = seconds(visits.joined), seconds(visits.start)
    left = start + seconds(visits.suspended + visits.ran)
    held_mb_s = float((trace.memory[visits.job] * inside(start, left, first, last)).sum())
    cycles = np.unique(np.concatenate((trace.submit, run.end)))
    with_waiting = int((_queued(visits.joined, cycles) > _queued(visits.start, cycles)).sum())
    metrics = metrics_of(
        run,
        site.nodes,
        cycles=(len(cycles), with_waiting),
        wait_s=seconds(run.waited),
        used_s=(None, held_mb_s if keeps_memory else None),
        waited_s=float(inside(joined, start, first, last).sum()),
    )
    return replace(metrics, utilisation_cores=_sampled_utilisation(site, run, first, last))


def pool_summary(run: TraceRun) -> dict[str, Any]:
    """The entries that a summary has for a site with pools only; the mean is over the jobs that were suspended."""
    suspended = run.suspended[run.first_suspended >= 0]
    return {
        "jobs_suspended": len(suspended),
        "mean_suspended_s": int(suspended.sum()) / len(suspended) / run.trace.ticks_per_s if len(suspended) else None,
        "suspensions": int(run.suspensions.sum()),
        "restarts": int(run.restarts.sum()),
        "wasted_core_s": _core_seconds(run),
    }


def pool_job_lines(site: TraceSite, run: TraceRun, begin: int = 0) -> Iterator[str]:
    """The lines of jobs.csv, many at a time.

    A job's start is that of its last attempt, on the node and in the pool that are written with it; `wait_s` and
    `suspended_s` are over its life, `wasted_s` is the run time of its other attempts. Times are exact. The clock of the
    run is `begin` ticks behind that of the file.
    """
    trace = run.trace
    memory_mb, of_job = np.unique(trace.memory, return_inverse=True)

    def times(ticks: Integers) -> Numbers:
        return Numbers(ticks, len(str(trace.ticks_per_s)) - 1)

    yield header(JOBS, POOL_JOBS)
    yield from lines(
        Numbers(trace.identity),
        times(trace.submit + begin),
        times(run.start + begin),
        times(run.end + begin),
        Texts(run.place, site.nodes.names),
        Numbers(trace.cores),
        Texts(of_job, [gigabytes(each) for each in memory_mb.tolist()]),
        Texts(np.zeros(len(trace), np.int8), [",,"]),  # no ways, bandwidth and scale
        Texts(run.pool, site.pools),
        Numbers(run.suspensions),
        times(run.suspended),
        Numbers(run.restarts),
        times(run.wasted),
        times(run.waited),
    )


def _core_seconds(run: TraceRun) -> float:
    """The seconds of all jobs' cores in lost attempts."""
    return float(np.dot(run.wasted.astype(np.float64), run.trace.cores)) / run.trace.ticks_per_s


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _queued(times: Integers, at: Integers) -> Integers:
    """How many of the times are not later than each moment."""
    return np.searchsorted(np.sort(times), at, side="right")


def _sampled_utilisation(site: TraceSite, run: TraceRun, first_s: float, last_s: float) -> float | None:
    """The mean share of cores in use at the samples between two moments; None if there is none, or one is missing."""
    begin, end = -int(-first_s // SAMPLE_S), int(last_s // SAMPLE_S) + 1
    cores_used = run.cores_used[begin:end]
    if begin >= end or len(cores_used) < end - begin:
        return None
    return float(cores_used.mean()) / float(site.nodes.capacity[CORES].sum())
