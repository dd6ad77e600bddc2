"""Replay logs of real sites as wholes, with their arrivals scaled to loads at which heuristics can differ.

The logs that record memory take part (module `logs`).

On the others (SDSC-SP2, KTH-SP2, Trinity) a job takes whole nodes of one size. Then it does not matter which nodes it
gets, every policy gives the same schedule, and there is nothing to compare.

Loads are those of the scarcer of cores and memory. Intervals come from resampling a log's weeks, or its days where it
has few weeks.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import RESAMPLED, Interval, percent_above
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.trace import TraceArrays
from sns_reproductions import logs
from sns_reproductions.logs import load_of
from sns_reproductions.netbatch import ABOUT, MIX
from sns_reproductions.netbatch_sweeps import FIRST_FIT, INTERVAL_S, MAX_JOBS, POLICIES

LOGS = {name: logs.LOGS[name] for name in logs.WITH_MEMORY}
#: The loads of the scarcer resource, in percent of its capacity; quick: one of them.
LOADS, QUICK_LOADS = (50, 60, 70, 80, 90), (80,)
#: Quick: so many jobs from the beginning of each log.
QUICK_JOBS = 10_000


#: A job of this many cores or more is wide: it needs much of a machine, or several machines.
WIDE_CORES = 32
WIDTH_LOAD = 70

#: What a replay keeps of each week: the summed waits of wide and of other jobs, and the numbers of both.
Weeks = NDArray[np.float64]


@lru_cache(maxsize=2)
def natural_load(name: str) -> float:
    """The load of the scarcer resource with the arrivals as recorded, in percent of its capacity."""
    pool = LOGS[name].pool()
    return 100 * load_of(LOGS[name].records(pool, 1.0), pool)


def replay_log(piece: tuple[str, int, str, int]) -> list[list[float]]:
    """The weeks of one replay, as rows of `Weeks`; the piece is log, load, policy, and the number of jobs or 0."""
    name, load, policy, jobs = piece
    log = LOGS[name]
    pool = log.pool()
    beta = round(natural_load(name) / load, 6)
    records = log.records(pool, beta)
    members = POLICIES[policy]
    replayed = replay(
        pool, first(records, jobs), rules_of(MatchingParameters(portfolio=members)), interval_s=INTERVAL_S
    )
    weeks: list[list[float]] = by_week(replayed.trace, replayed.start_s, beta * log.block_s).tolist()
    return weeks


def first(records: TraceArrays, jobs: int) -> TraceArrays:
    """The first jobs; all of them if `jobs` is 0."""
    return records.only(slice(jobs)) if jobs else records


def by_week(records: TraceArrays, start_s: NDArray[np.int64], block_s: float) -> Weeks:
    """The rows of `Weeks`, by the week in which jobs were submitted; weeks without jobs are left out."""
    block: NDArray[np.int64] = ((records.submit_s - records.submit_s[0]) // block_s).astype(np.int64)
    wide = np.array([nodes * cores for nodes, cores, *_ in records.kinds])[records.kind] >= WIDE_CORES
    wait_s = (start_s - records.submit_s).astype(np.float64)
    weights = (wait_s * wide, wait_s * ~wide, wide, ~wide)
    weeks: Weeks = np.array([np.bincount(block, each) for each in weights], dtype=np.float64).T
    some: Weeks = weeks[weeks[:, 2:].sum(axis=1) > 0]
    return some


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Replay the logs and draw the figure. Nothing is drawn at random but the resampled weeks."""
    loads, jobs = (QUICK_LOADS, QUICK_JOBS) if options.quick else (LOADS, 0)
    for log in LOGS.values():
        log.source()  # a missing log is reported before any work
    pieces = [(name, load, policy, jobs) for name in LOGS for load in loads for policy in POLICIES]
    results = options.results("logs", replay_log, pieces)
    found = {
        (name, load): {policy: np.array(results[name, load, policy, jobs]) for policy in POLICIES}
        for name in LOGS
        for load in loads
    }
    above: dict[str, Interval] = {}
    best: dict[tuple[str, int], dict[str, str]] = {}
    for (name, load), weeks in found.items():
        ranked = sorted(PAPER_PORTFOLIO, key=lambda policy, weeks=weeks: mean_wait_s(weeks[policy]))  # type: ignore[misc]
        rival = next(policy for policy in ranked if policy != MIX)
        best[name, load] = {"rival": rival, "first": ranked[0]}
        pairs = {(MIX, rival), (MAX_JOBS, ranked[0]), (FIRST_FIT, ranked[0])}
        pairs |= {(policy, other) for policy in POLICIES for other in (MIX, MAX_JOBS)}
        waits = {policy: of[:, :2].sum(axis=1) for policy, of in weeks.items()}
        above |= {
            f"{name} {load}: {one} above {other}": percent_above(waits[one], waits[other]) for one, other in pairs
        }
    highest = loads[-1]
    bars = {
        policy: {name: above[f"{name} {highest}: {policy} above {MIX}"] for name in LOGS}
        for policy in POLICIES
        if policy not in {MIX, FIRST_FIT}
    }
    figures.bars(options.out, "waits", bars, ("", f"mean wait above mix-fit's (%), load {highest} %"))
    return PageResults(
        above,
        [],
        {
            **ABOUT,
            "weeks": found,
            "best": best,
            "logs": LOGS,
            "policies": list(POLICIES),
            "loads": loads,
            "jobs": jobs,
            "natural_load": natural_load,
            "mean_wait_s": mean_wait_s,
            "by_width": by_width,
            "width_load": WIDTH_LOAD if WIDTH_LOAD in loads else highest,
            "resampled": RESAMPLED,
        },
    )


def mean_wait_s(weeks: Weeks) -> float:
    """The mean wait in seconds."""
    return float(weeks[:, :2].sum() / weeks[:, 2:].sum())


def by_width(weeks: Weeks) -> tuple[float, float]:
    """The mean wait in seconds of the wide jobs and of the others; nan if there are none."""
    sums = weeks.sum(axis=0)
    with np.errstate(invalid="ignore"):
        wide_s, other_s = sums[:2] / sums[2:]
    return float(wide_s), float(other_s)
