"""The replays of the two weeks: one for each seed and variant, on the pages of tables, tails and beyond.

A piece of work is (scale, seed, variant). Its result has the metrics of the two weeks, the completion times of the
jobs that take longest, the means over jobs that are followed to their end, and for each job that is suspended without
restarts its completion with and without them. So a piece with restarts also needs the replay without; a process that
runs several pieces of a seed one after another makes that replay once.

On half of the machines each pool has the first half of its nodes, and the jobs are the same.

Source: Cost-based dynamic job rescheduling (2010), section 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.replay.pool_replay import PoolRun, replay_pools
from slurm_sns.sim.reproduce.idcp.variants import VARIANTS
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.shared_runs import shared_results
from slurm_sns.sim.results.pool_results import period_metrics
from slurm_sns.sim.traces.pool_trace import Flags, Integers, PoolTrace, TraceSite
from slurm_sns.sim.workloads.idcp import Fortnight, burst_fortnight
from slurm_sns.sim.workloads.idcp_parameters import IdcpParameters
from slurm_sns.sim.workloads.idcp_streams import LOW

SCALE, QUICK_SCALE = 1.0, 0.1
FOLDER = "idcp"
#: Figures 6 and 7: the share of the jobs that take longest, and the shares of them at which we keep a quantile.
LONGEST = 0.05
TAIL_SHARES = np.linspace(0, 1, 41)

#: Scale, seed and the name of a variant.
Piece = tuple[str | int | float, ...]
#: What came out of it: see `run`.
Found = Mapping[str, Any]


class Ends(NamedTuple):
    """By job, in ticks: what is needed of the replay without restarts."""

    end: Integers
    first_suspended: Integers


def scale_of(options: Options) -> float:
    """The site's machines and jobs over those of the generator."""
    return QUICK_SCALE if options.quick else SCALE


def results(options: Options, variants: Sequence[str]) -> dict[str, list[Found]]:
    """The results of these variants by seed. All pages share them; without --resume a page repeats its own.

    Raises:
        SnsError: the folder cannot be read or written.
    """
    scale = scale_of(options)
    seeds = [tuple((scale, seed, name) for name in variants) for seed in range(1, options.seeds + 1)]
    found = shared_results(options, (piece for of_seed in seeds for piece in of_seed), run, FOLDER)
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
    site = halved(fortnight.site) if variant.halved else fortnight.site
    trace = fortnight.trace
    replayed = replay_pools(site, trace, variant.parameters, sample_until_s=fortnight.end_s)
    baseline = (
        Ends(replayed.end, replayed.first_suspended)
        if name == variant.baseline
        else _ends_without(scale, seed, variant.baseline)
    )
    period = period_metrics(site, trace, replayed, fortnight.end_s, warm_up_s=fortnight.begin_s)
    begin, end = fortnight.begin_s * trace.ticks_per_s, fortnight.end_s * trace.ticks_per_s
    inside = trace.submit > begin
    completion = replayed.end - trace.submit
    priority = {"all": inside, "high": inside & (trace.priority > LOW), "low": inside & (trace.priority == LOW)}
    return {
        "jobs": len(trace),
        "period": asdict(period),
        "tails": _tails(trace, replayed, begin, end),
        "submitted_s": {of: _mean_s(trace, completion, jobs) for of, jobs in priority.items()},
        "paired": _paired(trace, replayed, baseline, begin, end),
        "work_core_s": float((trace.run * trace.cores)[inside].sum()) / trace.ticks_per_s,
    }


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
    site = halved(fortnight.site) if variant.halved else fortnight.site
    replayed = replay_pools(site, fortnight.trace, variant.parameters)
    return Ends(replayed.end, replayed.first_suspended)


def _mean_s(trace: PoolTrace, ticks: Integers, of: Flags) -> float | None:
    return float(ticks[of].mean()) / trace.ticks_per_s if of.any() else None


def _tails(trace: PoolTrace, replayed: PoolRun, begin: int, end: int) -> dict[str, list[float]]:
    """Over the jobs that completed in the period; suspended ones were first suspended in it."""
    completed = (replayed.end > begin) & (replayed.end <= end)
    suspended = completed & (replayed.first_suspended > begin) & (replayed.first_suspended <= end)
    seconds = (replayed.end - trace.submit) / trace.ticks_per_s
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


def _paired(trace: PoolTrace, replayed: PoolRun, baseline: Ends, begin: int, end: int) -> dict[str, float | int | None]:
    """The jobs whose first suspension without restarts is in the period, each followed to its end."""
    jobs = (baseline.first_suspended > begin) & (baseline.first_suspended <= end)
    earlier, later = replayed.end[jobs] < baseline.end[jobs], replayed.end[jobs] > baseline.end[jobs]
    return {
        "jobs": int(jobs.sum()),
        "without_s": _mean_s(trace, baseline.end - trace.submit, jobs),
        "with_s": _mean_s(trace, replayed.end - trace.submit, jobs),
        "earlier_pct": 100 * float(earlier.mean()) if jobs.any() else None,
        "later_pct": 100 * float(later.mean()) if jobs.any() else None,
    }
