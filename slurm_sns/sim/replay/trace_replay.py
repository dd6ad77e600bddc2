"""The array-native simulation: a trace of any length, in one compiled loop around the kernels.

Rules and results are those of the plain `engine`. Beside its row in the trace a job takes 26 bytes, 8 more with an age
limit, and 16 more under FCFS and EASY.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import SnsError
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.cycle_kernel import bench_for
from slurm_sns.policies.placement.kernel_arrays import (
    NOBODY,
    AlternativeArrays,
    JobKinds,
    Problem,
    Queue,
    largest_number_of_takes,
)
from slurm_sns.policies.placement.kernel_matching import (
    FIRST_CASES,
    ROWS,
    Case,
    kernel_nodes,
    kernel_rules,
    kernel_table,
    worth_of,
)
from slurm_sns.policies.placement.node_arrays import MEMORY, NodeArrays, scored
from slurm_sns.policies.placement.node_state_kernel import open_all
from slurm_sns.policies.placement.portfolio import has_profile
from slurm_sns.policies.placement.portfolio_kernel import schedule
from slurm_sns.policies.placement.ready_time_kernel import NOTHING_COMES_FREE
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.sim.replay.backfilling_loop import advance_in_order, backfilling_for
from slurm_sns.sim.replay.cluster_state import (
    AGAIN_S,
    AGE_LIMIT_S,
    BUCKETS,
    CYCLES,
    NEVER,
    STARTED,
    STATES,
    WITHHOLD_LIMIT_S,
    Cluster,
    Jobs,
)
from slurm_sns.sim.replay.compiled_loop import Priorities, advance, advance_by_priority, room_for_cycles
from slurm_sns.sim.replay.expected_ends import expected_for, room_for_releases
from slurm_sns.sim.replay.slurm_loop import SLURM_HEURISTICS, advance_as_slurm, limits_of, planner_for
from slurm_sns.sim.run import Cycles, TraceRun
from slurm_sns.sim.trace import TraceArrays

#: `progress` is called after so many cycles.
CYCLES_AT_A_TIME = 512


def replay(
    node_arrays: NodeArrays,
    trace: TraceArrays,
    rules: Rules,
    *,
    interval_s: int,
    shares: Mapping[str, float] | None = None,
    age_limit_s: int | None = None,
    only_cores_and_memory: bool = False,
    progress: Callable[[int], None] = lambda _started: None,
) -> TraceRun:
    """Replay the trace under a portfolio; `progress` is called now and then with the number of jobs started.

    A project that `shares` does not name has share 1. Jobs that have waited longer than `age_limit_s` go first, oldest
    first, and have capacity withheld for them. With `only_cores_and_memory` no heuristic looks at other demands, which
    must fit nevertheless.
    """
    rules = rules.on(node_arrays)
    cluster = cluster_of(
        node_arrays,
        trace,
        rules,
        shares or {},
        expected_run_s=_if_asked_for(trace, rules),
        age_limit_s=age_limit_s,
        only_cores_and_memory=only_cores_and_memory,
    )
    return to_the_end(trace, cluster, rules.portfolio, lambda cycles: advance(cluster, cycles, interval_s), progress)


def replay_by_priority(
    node_arrays: NodeArrays,
    trace: TraceArrays,
    rules: Rules,
    *,
    interval_s: int,
    age_limit_s: int | None = None,
    progress: Callable[[int], None] = lambda _started: None,
) -> TraceRun:
    """Replay the trace under a portfolio in Slurm's order, as a cluster with queue_order `slurm` has it.

    Jobs are taken by the trace's priorities, without them by their submits, and projects are ignored. A job that has
    waited longer than `age_limit_s` stays at its place; capacity is withheld for it there, as far as the rules reserve
    places.
    """
    rules = rules.on(node_arrays)
    of_one_project = replace(trace, project=np.zeros(len(trace), np.int32), projects=("",))
    if age_limit_s is not None and age_limit_s <= (rules.withhold_up_to_s or 0):
        rules = replace(rules, withhold_up_to_s=None)  # it is withheld again before that ends
    cluster = cluster_of(node_arrays, of_one_project, rules, {}, expected_run_s=_if_asked_for(trace, rules))
    old = np.array([NEVER if age_limit_s is None else age_limit_s, 0], np.int64)
    priority = trace.priority if len(trace.priority) else np.zeros(len(trace), np.int64)
    priorities = Priorities(priority.astype(np.int64), old)
    return to_the_end(
        trace,
        cluster,
        rules.portfolio,
        lambda cycles: advance_by_priority(cluster, priorities, cycles, interval_s),
        progress,
    )


def replay_in_order(
    node_arrays: NodeArrays,
    trace: TraceArrays,
    rules: Rules,
    algorithm: int,
    *,
    interval_s: int,
    shares: Mapping[str, float] | None = None,
    progress: Callable[[int], None] = lambda _started: None,
) -> TraceRun:
    """The same under FCFS, EASY or EASY_EXTRA_NODES, which place a job as the portfolio's only member does."""
    cluster = cluster_of(node_arrays, trace, rules, shares or {}, expected_run_s=expected_run_s(trace))
    backfilling = backfilling_for(cluster, algorithm)
    return to_the_end(
        trace, cluster, (), lambda cycles: advance_in_order(cluster, backfilling, cycles, interval_s), progress
    )


def replay_as_slurm(
    node_arrays: NodeArrays,
    trace: TraceArrays,
    parameters: SlurmParameters,
    *,
    interval_s: int = 1,
    progress: Callable[[int], None] = lambda _started: None,
) -> TraceRun:
    """The same under Slurm alone: by priority, where the trace has one, and by submit; projects are ignored.

    A job runs in its first alternative. Limits are those of the trace (`TraceArrays.expected`). Without an Epilog the
    nodes of a job are held for a second more (module `slurm_loop`).
    """
    rules = Rules(SLURM_HEURISTICS, queue_depth=len(trace), reservations=0)
    more_s = 0 if parameters.epilog else 1
    held = replace(
        trace,
        project=np.zeros(len(trace), np.int32),
        projects=("",),
        run=trace.run + more_s,
        run_in=None if trace.run_in is None else trace.run_in + more_s,
    )
    cluster = cluster_of(node_arrays, held, rules, {}, expected_run_s=limits_of(trace))
    planner = planner_for(cluster, trace, parameters)
    return to_the_end(
        trace, cluster, (), lambda cycles: advance_as_slurm(cluster, planner, cycles, interval_s), progress
    )


def to_the_end(
    trace: TraceArrays,
    cluster: Cluster,
    members: Sequence[str],
    step: Callable[[Cycles], bool],
    progress: Callable[[int], None] = lambda _started: None,
) -> TraceRun:
    """Repeat `step`, which fills the cycles that it is given and returns whether events are left.

    `members` are the portfolio, none for a pass without members.

    Raises:
        SnsError: jobs are left that never start.
    """
    parts: list[Cycles] = []
    going_on = True
    while going_on:
        cycles = room_for_cycles(CYCLES_AT_A_TIME)
        going_on = step(cycles)
        parts.append(Cycles(*(column[: cluster.state[CYCLES]] for column in cycles)))
        progress(int(cluster.state[STARTED]))
    waiting = len(trace) - int(cluster.state[STARTED])
    if waiting:
        raise SnsError(f"the simulation ended with {waiting} jobs that never started; this is a defect")
    jobs, by_choice = cluster.jobs, trace.run_by_choice
    run_s = by_choice[0] if len(by_choice) == 1 else by_choice[jobs.choice, np.arange(len(trace))]
    cycles = Cycles(*map(np.concatenate, zip(*parts, strict=True)))
    return TraceRun(
        trace,
        jobs.start_s,
        jobs.start_s + run_s,
        jobs.place,
        spread=jobs.spread,
        choice=jobs.choice,
        cycles=cycles,
        members=members,
    )


def cluster_of(
    node_arrays: NodeArrays,
    trace: TraceArrays,
    rules: Rules,
    shares: Mapping[str, float],
    *,
    expected_run_s: NDArray[np.float64] | None = None,
    age_limit_s: int | None = None,
    only_cores_and_memory: bool = False,
) -> Cluster:
    """The cluster before anything has happened.

    `expected_run_s` is by job, infinite where nothing is known; None where nobody asks when jobs end.
    """
    problem = problem_of(rules.unshared(node_arrays), trace, rules, only_cores_and_memory=only_cores_and_memory)
    count, projects = len(trace), len(trace.projects)
    jobs = _jobs(trace, problem)
    coming = NOTHING_COMES_FREE if expected_run_s is None else room_for_releases(problem, jobs)
    takes = largest_number_of_takes(problem.nodes.capacity, problem.alternatives)
    bench = bench_for(problem, count, projects, takes, releases=len(coming.end_s))
    open_all(bench.node_state)
    run_s = np.zeros(0, np.float64) if expected_run_s is None else expected_run_s
    slowdown = np.array([each.slowdown for of_kind in trace.choices for each in of_kind], np.float64)
    share = np.array([[shares.get(project, 1.0)] for project in trace.projects])
    total = np.array([[node_arrays.total.cores, node_arrays.total.memory_mb]], dtype=np.float64)
    # Moments that are no whole seconds cannot be compared as integers; the trace is in their order.
    order = trace.submit if trace.submit.dtype == np.int64 else np.arange(count)
    queue = Queue(
        over_aged=np.zeros(0, np.int64),
        head=np.full(projects, NOBODY, np.int64),
        following=np.empty(count, np.int32),
        kind=trace.kind,
        project=trace.project,
        order=order,
        whole=total * share,
        used=np.zeros((projects, 2), np.int64),
        withholds=np.ones(count, np.bool_),
        now_s=0.0,
        run_s=run_s,
        coming=NOTHING_COMES_FREE,
    )
    state = np.zeros(STATES, np.int64)
    state[AGAIN_S] = NEVER
    state[AGE_LIMIT_S] = NEVER if age_limit_s is None else age_limit_s
    state[WITHHOLD_LIMIT_S] = NEVER if rules.withhold_up_to_s is None else rules.withhold_up_to_s
    profiled = [has_profile(each) for each in trace.choices] if problem.limits.for_profiled.any() else []
    return Cluster(
        bench=bench,
        queue=queue,
        tail=np.full(projects, NOBODY, np.int64),
        aged=np.empty(0 if age_limit_s is None else count, np.int64),
        jobs=jobs,
        profiled=np.array(profiled, np.bool_),
        running=np.full(BUCKETS, NOBODY, np.int32),
        expected=expected_for(problem, run_s, slowdown),
        coming=coming,
        state=state,
    )


def expected_run_s(trace: TraceArrays) -> NDArray[np.float64]:
    """How long each job is expected to run, infinite where nothing is known."""
    run_s = trace.expected.astype(np.float64)
    run_s[run_s <= 0] = np.inf
    return run_s


def _if_asked_for(trace: TraceArrays, rules: Rules) -> NDArray[np.float64] | None:
    return expected_run_s(trace) if rules.until_start else None


def problem_of(
    node_arrays: NodeArrays, trace: TraceArrays, rules: Rules, *, only_cores_and_memory: bool = False
) -> Problem:
    """The tables of the kernel: of cores and memory alone if no job demands more and no node has GPUs.

    Nothing depends on ways, bandwidth and CLOSIDs that no job demands; idle GPUs are looked at for every job.
    """
    choices = [each for of_kind in trace.choices for each in of_kind]
    first = np.zeros(len(trace.kinds) + 1, np.int64)
    np.cumsum([len(each) for each in trace.choices], out=first[1:])
    demand = node_arrays.demands([each.demand for each in choices])
    needs_more = demand[:, MEMORY + 1 :].any() or node_arrays.gpu_names
    rows = slice(None) if needs_more else slice(MEMORY + 1)
    numbers: dict[frozenset[str] | None, int] = {None: NOBODY}
    sets = [numbers.setdefault(each, len(numbers) - 1) for each in trace.allowed_nodes or [None] * len(trace.kinds)]
    masks = [node_arrays.allows(each) for each in numbers if each is not None]
    columns = [
        (each.nodes, each.exclusive, allowed)
        for of_kind, allowed in zip(trace.choices, sets, strict=True)
        for each in of_kind
    ]
    distinct, alternative = np.unique(np.hstack([np.array(columns, np.int64), demand]), axis=0, return_inverse=True)
    nodes, exclusive, allowed, *_ = distinct.T.copy()
    demand = np.ascontiguousarray(distinct[:, 3:][:, rows])
    more = demand[:, MEMORY + 1 :]
    cases: dict[Case, int] = {each: number for number, each in enumerate(FIRST_CASES)}
    case = np.zeros(len(distinct), np.int64)
    if more.size and not only_cores_and_memory:
        case[:] = [cases.setdefault(scored(each), len(cases)) for each in demand.tolist()]
    alternatives = AlternativeArrays(
        nodes=nodes,
        demand=demand,
        exclusive=exclusive.astype(np.bool_),
        allowed=allowed,
        case=case,
        simple=~more.any(axis=1) & (exclusive == 0) & (allowed == NOBODY),
    )
    gain, cost, by_use = (
        np.concatenate(column).astype(np.int64)
        for column in zip(*(worth_of(each, node_arrays, rules) for each in trace.choices), strict=True)
    )
    kinds = JobKinds(
        first=first,
        alternative=alternative.ravel().astype(np.int64),
        gain=gain,
        cost=cost,
        by_use=by_use + np.repeat(first[:-1], np.diff(first)),
        own=np.array([ROWS.get(own, NOBODY) for *_, own in trace.kinds], np.int64),
    )
    capacity = np.ascontiguousarray(node_arrays.capacity[rows])
    scores = kernel_table(rules.beta, node_arrays, cases)
    own = {int(row) for row in kinds.own if row != NOBODY}
    return Problem(
        kernel_nodes(node_arrays.with_capacity(capacity), np.array(masks, np.bool_).reshape(-1, capacity.shape[1])),
        alternatives,
        kinds,
        scores,
        kernel_rules(rules, scores, own),
    )


def _jobs(trace: TraceArrays, problem: Problem) -> Jobs:
    """The jobs before any has started; jobs on several nodes have their places in `spread`."""
    count, kinds = len(trace), problem.kinds
    most_nodes = np.maximum.reduceat(problem.alternatives.nodes[kinds.alternative], kinds.first[:-1])
    nodes = most_nodes[trace.kind]
    several = np.where(nodes > 1, nodes, 0)
    ends = np.cumsum(several)
    links = np.empty(count, np.int32)
    return Jobs(
        submit_s=trace.submit,
        run_s=trace.run_by_choice,
        start_s=np.full(count, NEVER, np.int64),
        choice=np.zeros(count, np.int8),
        place=ends - several,
        spread=np.zeros(int(ends[-1]), np.int32),
        previous=links,
        next_ending=links,
    )


# --- single cycles


def matched_on_empty_nodes(
    node_arrays: NodeArrays, trace: TraceArrays, rules: Rules, ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many jobs of each group each member of the portfolio matches in one cycle, shape (groups, members).

    Group g holds the jobs `ends[g - 1]` to `ends[g]` of the trace (the first begins at 0), all of them waiting; what
    one group takes is free again for the next. Projects are ignored.
    """
    rules = rules.on(node_arrays)
    problem = problem_of(node_arrays, trace, rules)
    count = len(trace)
    largest = int(np.diff(ends, prepend=0).max())
    takes = largest_number_of_takes(node_arrays.capacity, problem.alternatives)
    bench = bench_for(problem, largest, 1, takes)
    following = np.arange(1, count + 1, dtype=np.int32)
    following[ends[ends > 0] - 1] = NOBODY
    free = problem.nodes.capacity
    matched = np.zeros((len(ends), len(rules.portfolio)), np.int64)
    begin = 0
    for group, end in enumerate(ends.tolist()):
        if end > begin:
            schedule(bench, free, _queue(trace, following, begin), True)
            matched[group] = bench.matched
        begin = end
    return matched


def _queue(trace: TraceArrays, following: NDArray[np.int32], first: int) -> Queue:
    """The jobs that follow `first`, as the queue of one project."""
    count = len(trace)
    return Queue(
        over_aged=np.zeros(0, np.int64),
        head=np.array([first], np.int64),
        following=following,
        kind=trace.kind,
        project=np.zeros(count, np.int32) if len(trace.projects) > 1 else trace.project,
        order=trace.submit,
        whole=np.ones((1, 2)),
        used=np.zeros((1, 2), np.int64),
        withholds=np.ones(count, np.bool_),
        now_s=0.0,
        run_s=np.zeros(0, np.float64),
        coming=NOTHING_COMES_FREE,
    )
