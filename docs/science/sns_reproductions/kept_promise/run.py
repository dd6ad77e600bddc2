"""Replay each log under a kept promise and what it is compared with, as docs/science/kept-promise.md says.

A piece of work is a log at a load, as on the page beside EASY; or one with submits moved within their cycles, and a
seed.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, UNTIL_START, MatchingParameters
from slurm_sns.sim.pages.judge import Interval, Quantity, percent_more
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.replay.trace_replay import replay
from sns_reproductions.beside_easy.run import (
    LIMITS,
    LOADS,
    METRICS,
    NO_END,
    OURS,
    OWN,
    POLICIES,
    QUICK_LOADS,
    TOO_LONG,
    Run,
    jobs_at,
    waits_of,
    workload_of,
)
from sns_reproductions.logs import LOGS
from sns_reproductions.netbatch_sweeps import INTERVAL_S

PROMISE, BEST_FIT, FOUR = "Max-Jobs, promise", "best-fit-cores, promise", "Max-Jobs, 4 promises"
#: The logs on which EASY is quick: submits are moved there, so often.
QUICK_LOGS = tuple(name for name in LOGS if name != TOO_LONG)
MOVED_LOADS, MOVED_SEEDS, QUICK_SEEDS = (OWN, 90), 20, 2
MOVED_METRICS = METRICS[:2]


def _kept(portfolio: tuple[str, ...], promises: int = 1) -> Run:
    rules = rules_of(MatchingParameters(portfolio, reservations=promises, withhold=UNTIL_START))
    return lambda pool, jobs: replay(pool, jobs, rules, interval_s=INTERVAL_S)


#: All of them plan by the owners' limits, as far as they look ahead.
COMPARED: dict[str, Run] = {
    LIMITS: POLICIES[LIMITS].run,
    PROMISE: _kept(PAPER_PORTFOLIO),
    BEST_FIT: _kept(("best-fit-cores",)),
    FOUR: _kept(PAPER_PORTFOLIO, 4),
    OURS: POLICIES[OURS].run,
    NO_END: POLICIES[NO_END].run,
}


def log_at_load(piece: tuple[str, int, int]) -> dict[str, Any]:
    """A log at a load; the piece is its name, the load, and how many jobs take part, 0 for all."""
    pool, jobs, own, block_s = workload_of(piece)
    runs = {name: run for name, run in COMPARED.items() if name != FOUR or piece[0] != TOO_LONG}
    found = {name: waits_of(run(pool, jobs), pool, block_s) for name, run in runs.items()}
    return {
        "load": 100 * own,
        "jobs": len(jobs),
        "figures": {name: each.figures() for name, each in found.items()},
        "above": {
            name: {metric: tuple(value) for metric, value in each.above(found[LIMITS]).items()}
            for name, each in found.items()
            if name != LIMITS
        },
    }


def moved_at_load(piece: tuple[str, int, int, int]) -> dict[str, dict[str, float]]:
    """By how many percent waits are above EASY's, with submits moved; the piece is as that of a log, and a seed."""
    name, load, most, seed = piece
    pool, jobs, *_ = workload_of((name, load, most))
    drawn = np.random.default_rng(seed).integers(0, INTERVAL_S, len(jobs))
    jobs = replace(jobs, submit=jobs.submit // INTERVAL_S * INTERVAL_S + drawn).in_order()
    waits = {name: COMPARED[name](pool, jobs).start_s - jobs.submit_s for name in (LIMITS, PROMISE, BEST_FIT)}
    found = {name: np.array([each.mean(), np.percentile(each, 95)]) for name, each in waits.items()}
    return {
        name: dict(zip(MOVED_METRICS, percent_more(found[name], found[LIMITS]).tolist(), strict=True))
        for name in (PROMISE, BEST_FIT)
    }


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Replay all logs."""
    loads = QUICK_LOADS if options.quick else LOADS
    for log in LOGS.values():
        log.source()  # a missing log is reported before any work
    cells = sorted(product(LOGS, loads), key=lambda cell: (cell[0] == TOO_LONG, cell[1]), reverse=True)
    of_logs = [(name, load, jobs_at(load, quick=options.quick)) for name, load in cells]
    at = {piece[:2]: found for piece, found in options.results("logs", log_at_load, of_logs).items()}
    logs = {cell: at[cell] for cell in product(LOGS, loads)}
    seeds = range(1, 1 + (QUICK_SEEDS if options.quick else MOVED_SEEDS))
    of_moved = [
        (name, load, jobs_at(load, quick=options.quick), seed)
        for name, load, seed in product(QUICK_LOGS, MOVED_LOADS, seeds)
    ]
    moved: dict[str, list[float]] = {}
    for (name, load, *_), found in options.results("moved", moved_at_load, of_moved).items():
        for (policy, of_policy), metric in product(found.items(), MOVED_METRICS):
            moved.setdefault(f"{name} {load}, moved: {policy}: {metric}", []).append(of_policy[metric])
    known: dict[str, Quantity] = {key: np.array(values) for key, values in moved.items()}
    known |= {
        f"{name} {load}: {policy}: {metric}": Interval(*value)
        for (name, load), found in logs.items()
        for policy, of_policy in found["above"].items()
        for metric, value in of_policy.items()
    }
    surely = {
        metric: [Interval(*found["above"][PROMISE][metric]) for found in logs.values()] for metric in MOVED_METRICS
    }
    return PageResults(
        known,
        fields={
            "logs": logs,
            "quick": options.quick,
            "quick_logs": QUICK_LOGS,
            "moved_loads": MOVED_LOADS,
            "of": len(logs),
            "longer": {metric: sum(each.low > 0 for each in found) for metric, found in surely.items()},
            "shorter": {metric: sum(each.high < 0 for each in found) for metric, found in surely.items()},
        },
        seeds=len(seeds),
    )
