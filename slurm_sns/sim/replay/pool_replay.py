"""Replay a trace on a site with pools whose suspended jobs may restart elsewhere, with the compiled event loop.

Source: Cost-based dynamic job rescheduling (2010), section 4.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
from slurm_sns.policies.rescheduling import parameters as choices
from slurm_sns.policies.rescheduling.decision_kernel import RECENT_S
from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters
from slurm_sns.policies.rescheduling.pool_arrays import (
    COUNTERS,
    DECISIONS,
    ENDED,
    HAS_ENDED,
    LAST_POOL,
    NOBODY,
    NOW,
    SUSPENSIONS,
    TERMS,
    VISITS,
    Checks,
    Lives,
    Logs,
    PoolJobKinds,
    PoolJobs,
    PoolNodes,
    PoolRules,
    PoolSite,
    ProgramRuns,
    Queues,
    Samples,
)
from slurm_sns.sim.replay.pool_loop import DONE, MORE, TOO_LATE, replay_some
from slurm_sns.sim.run import Details, Integers, TraceRun, Visits
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.nodes_csv import TraceSite

#: Instants between two reports of progress: a fraction of a second.
PART = 200_000
SAMPLE_S = 60
#: Room for earlier visits: for each job so much, and at least so many. If it is not enough, the replay begins again.
VISITS_PER_JOB, FEWEST_VISITS, GROWTH = 0.05, 1 << 16, 8
#: Queues by pool and kind of job take 40 bytes each.
MOST_QUEUES = 50_000_000
#: The sum of the waits of all jobs must fit into 64 bits.
MOST_JOB_TICKS = 1 << 62


def replay_pools(
    site: TraceSite,
    trace: TraceArrays,
    parameters: ReschedulingParameters,
    *,
    sample_until_s: int = 0,
    details: int = 0,
    turns: Integers | None = None,
    progress: Callable[[int], None] = lambda _ended: None,
) -> TraceRun:
    """Replay the trace. `details` is how many rows of each log of details are kept.

    `turns`, a number for each job, orders the queued jobs of one priority, the smallest first; None: first in, first
    out.

    `progress` is called from time to time with the number of jobs that have ended.

    Raises:
        BadInput: times are too long, there are too many different sizes of jobs, or no pool can hold a job.
    """
    room = max(int(VISITS_PER_JOB * len(trace)), FEWEST_VISITS)
    rules = _rules(parameters, trace)
    while True:
        working = _working(site, trace, rules, room, details)
        if turns is not None:
            working = working._replace(jobs=working.jobs._replace(turn=turns.astype(np.int64)))
        samples = np.zeros((2, sample_until_s // SAMPLE_S + 1 if sample_until_s else 0), np.int64)
        every = SAMPLE_S * trace.ticks_per_s
        while (why := replay_some(working, rules, samples[0], samples[1], every, PART)) == MORE:
            progress(int(working.counters[HAS_ENDED]))
        if why == TOO_LATE:
            latest_s = rules.latest / trace.ticks_per_s
            raise BadInput(
                f"jobs would end after {latest_s:.2g} s; valid: shorter run times, or times in whole seconds"
            )
        if why == DONE:
            _require_ended(trace, working)
            progress(len(trace))
            return _run(site, trace, working, samples)
        room *= GROWTH


def _require_ended(trace: TraceArrays, working: PoolSite) -> None:
    waiting = np.flatnonzero(working.lives.state != ENDED)
    if len(waiting):
        raise BadInput(
            f"{len(waiting)} jobs never ran, the first is {trace.identity[waiting[0]]}; "
            "valid: jobs that an empty node of their pool can hold"
        )


def _rules(parameters: ReschedulingParameters, trace: TraceArrays) -> PoolRules:
    key = HEURISTICS[parameters.heuristic]
    weights = (*key.free[:2], *key.configured[:2])
    return PoolRules(
        restarts=parameters.restart == choices.ON,
        frees_memory=parameters.suspended_memory == choices.FREED,
        only_suspended=parameters.averages == choices.SUSPENDED_JOBS,
        by_availability=parameters.virtual_pool == choices.AVAILABILITY,
        by_angle=key.angle,
        weights=tuple(int(each) for each in weights),  # type: ignore[arg-type]  # four of them
        window=parameters.window_s * trace.ticks_per_s,
        most_moves=parameters.max_moves,
        latest=MOST_JOB_TICKS // len(trace),
        by_recent_runs=parameters.run_times == choices.RECENT,
        recent=RECENT_S * trace.ticks_per_s,
        second=trace.ticks_per_s,
        takes_remaining=parameters.keeps_work or parameters.elsewhere == choices.REMAINING,
        keeps_work=parameters.keeps_work,
        move_cost=parameters.move_cost_s * trace.ticks_per_s,
        check_every=parameters.waiting_check_s * trace.ticks_per_s if parameters.restart == choices.ON else 0,
    )


def _working(site: TraceSite, trace: TraceArrays, rules: PoolRules, room: int, details: int) -> PoolSite:
    """The site before anything has happened, with room for so many earlier visits."""
    count, by_recent_runs = len(trace), rules.by_recent_runs
    checks = 2 * count + room if rules.check_every else 1
    expected = np.where(trace.limit > 0, trace.limit, NOBODY) if by_recent_runs else trace.run
    order = np.argsort(site.pool_of, kind="stable")
    pools = len(site.pools)
    kinds, kind = _kinds(site, trace, order)
    if pools * len(kinds.level) > MOST_QUEUES:
        raise BadInput(f"the jobs have {len(kinds.level):,} different sizes; valid: at most {MOST_QUEUES // pools:,}")
    levels = int(kinds.level.max()) + 1
    counters = np.zeros(COUNTERS, np.int64)
    counters[NOW] = counters[LAST_POOL] = NOBODY
    cores = int(site.nodes.capacity[CORES].sum())
    return PoolSite(
        kinds,
        _nodes(site, order, levels),
        PoolJobs(
            trace.submit.astype(np.int64, copy=False),
            trace.run.astype(np.int64, copy=False),
            expected.astype(np.int64, copy=False),
            kind,
            trace.pool.astype(np.int32, copy=False),
            trace.allowed.astype(np.int32, copy=False),
            trace.allowed_sets,
            np.zeros(0, np.int64),
        ),
        _lives(count),
        Queues(
            _nobody((pools, len(kinds.level))),
            _nobody((pools, len(kinds.level))),
            np.zeros((pools, len(kinds.level)), np.bool_),
            np.zeros((pools, len(kinds.level)), np.int64),
            np.zeros((pools, len(kinds.level)), np.int64),
            np.zeros(pools, np.int64),
            np.zeros(pools, np.bool_),
        ),
        Samples(
            _nobody((pools, levels)), _nobody((pools, levels)), *(np.zeros((pools, levels), np.int64) for _ in range(3))
        ),
        _programs(trace, by_recent_runs=by_recent_runs),
        Checks(np.zeros(checks, np.int64), np.zeros(checks, np.int32)),
        Logs(*(np.zeros((rows, 8), np.int64) for rows in (room, details, details, details))),
        counters,
        np.zeros(min(cores, count), np.int32),
        np.zeros(count, np.int32),
        np.zeros(int(site.nodes.capacity[CORES].max()), np.int64),
    )


def _kinds(site: TraceSite, trace: TraceArrays, order: NDArray[np.intp]) -> tuple[PoolJobKinds, NDArray[np.int32]]:
    """The kinds of jobs, and each job's kind."""
    _, level = np.unique(trace.priority, return_inverse=True)
    _, memory = np.unique(trace.memory, return_inverse=True)
    _, cores = np.unique(trace.cores, return_inverse=True)
    code = (level.astype(np.int64) * (memory.max() + 1) + memory) * (cores.max() + 1) + cores
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    capacity, pool_of = site.nodes.capacity[:, order], site.pool_of[order]
    fits = np.zeros((len(first), len(site.pools)), np.bool_)
    needs = np.stack([trace.cores[first], trace.memory[first]])
    for pool in range(len(site.pools)):
        for size in np.unique(capacity[: MEMORY + 1, pool_of == pool], axis=1).T:
            fits[:, pool] |= (needs[0] <= size[CORES]) & (needs[1] <= size[MEMORY])
    of_level, of_cores, of_memory = (
        np.ascontiguousarray(each[first], np.int64) for each in (level, trace.cores, trace.memory)
    )
    return PoolJobKinds(of_level, of_cores, of_memory, fits), kind.astype(np.int32)


def _nodes(site: TraceSite, order: NDArray[np.intp], levels: int) -> PoolNodes:
    count, pool_of = len(order), site.pool_of[order].astype(np.int64)
    cores, memory = (np.ascontiguousarray(site.nodes.capacity[row, order]) for row in (CORES, MEMORY))
    return PoolNodes(
        np.searchsorted(pool_of, np.arange(len(site.pools) + 1)).astype(np.int64),
        cores,
        memory,
        cores.copy(),
        memory.copy(),
        _nobody(count),
        _nobody(count),
        np.zeros((count, levels), np.int64),
        np.zeros((count, levels), np.int64),
        np.zeros(count, np.bool_),
        np.zeros(count, np.int64),
        np.zeros(len(site.pools), np.int64),
        pool_of,
        np.arange(count),
    )


def _lives(count: int) -> Lives:
    at_nobody = {"first_start", "first_suspended", "joined", "next", "previous", "heap_at", "last_visit", "node"}
    kinds: dict[str, Any] = {"state": np.int8, "pool": np.int16} | dict.fromkeys(
        ("node", "suspensions", "moves", "joined", "next", "previous", "heap_at", "last_visit"), np.int32
    )
    return Lives(
        *(np.full(count, NOBODY if name in at_nobody else 0, kinds.get(name, np.int64)) for name in Lives._fields)
    )


def _nobody(shape: int | tuple[int, ...]) -> NDArray[np.int64]:
    return np.full(shape, NOBODY, np.int64)


def _programs(trace: TraceArrays, *, by_recent_runs: bool) -> ProgramRuns:
    programs, jobs = (max(len(trace.programs), 1), len(trace)) if by_recent_runs else (1, 1)
    of = trace.program.astype(np.int32, copy=False) if by_recent_runs else np.full(1, NOBODY, np.int32)
    sums = np.zeros(programs, np.int64), np.zeros(programs, np.int64)
    return ProgramRuns(_nobody(programs), _nobody(programs), *sums, of, np.full(jobs, NOBODY, np.int32))


def _run(site: TraceSite, trace: TraceArrays, working: PoolSite, samples: Integers) -> TraceRun:
    lives, counters, logs = working.lives, working.counters, working.logs
    order = np.argsort(site.pool_of, kind="stable")
    return TraceRun(
        trace,
        lives.start,
        lives.end,
        order[lives.node],
        pool=lives.pool,
        first_start=lives.first_start,
        waited=lives.end - trace.submit - lives.all_suspended - trace.run - lives.wasted,
        suspended=lives.all_suspended,
        suspensions=lives.suspensions,
        restarts=lives.moves,
        wasted=lives.wasted,
        first_suspended=lives.first_suspended,
        cores_used=samples[0],
        suspended_jobs=samples[1],
        visits=partial(_visits, trace, working, order),
        details=Details(
            logs.suspensions[: counters[SUSPENSIONS]],
            logs.decisions[: counters[DECISIONS]],
            logs.terms[: counters[TERMS]],
        ),
    )


def _visits(trace: TraceArrays, working: PoolSite, order: NDArray[np.intp]) -> Visits:
    """All visits: the earlier ones are in the log, the last one of each job is in its life."""
    lives, log = working.lives, working.logs.visits[: working.counters[VISITS]]
    jobs = np.arange(len(trace))
    # A job's waits and suspensions are those of all visits to its last pool: without the earlier ones it is the last.
    waited, suspended = lives.waited.copy(), lives.suspended.copy()
    same = log[:, 1] == lives.pool[log[:, 0]]
    np.subtract.at(waited, log[same, 0], log[same, 4])
    np.subtract.at(suspended, log[same, 0], log[same, 5])
    job = np.concatenate([log[:, 0], jobs])
    in_order = np.argsort(job, kind="stable")
    node = np.where(log[:, 2] == NOBODY, NOBODY, order[log[:, 2]])
    columns = (
        job,
        np.concatenate([log[:, 1], lives.pool]),
        np.concatenate([log[:, 3] - log[:, 4], lives.start - waited]),
        np.concatenate([np.where(node == NOBODY, NOBODY, log[:, 3]), lives.start]),
        np.concatenate([node, order[lives.node]]),
        np.concatenate([log[:, 5], suspended]),
        np.concatenate([log[:, 6], lives.end - lives.start - suspended]),
    )
    return Visits(*(column[in_order] for column in columns))
