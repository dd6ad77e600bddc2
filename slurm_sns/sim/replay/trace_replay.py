"""The array-native simulation of matching: a trace of any length, in one compiled loop around the cycle kernel.

Rules and results are those of the plain `engine`. Beside its row in the trace a job takes 24 bytes, or 32 with an age
limit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import SnsError
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.cycle_kernel import bench_for
from slurm_sns.policies.placement.kernel_arrays import (
    NOBODY,
    AlternativeArrays,
    JobKinds,
    Problem,
    Queue,
    largest_number_of_takes,
)
from slurm_sns.policies.placement.kernel_input import kernel_nodes
from slurm_sns.policies.placement.kernel_matching import kernel_rules
from slurm_sns.policies.placement.kernel_weights import ROWS, kernel_table
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, CORES, MEMORY, WAYS, NodeArrays
from slurm_sns.policies.placement.node_state_kernel import open_all
from slurm_sns.sim.replay.compiled_loop import (
    AGAIN_S,
    AGE_LIMIT_S,
    BUCKETS,
    CYCLES,
    NEVER,
    STARTED,
    STATES,
    Cluster,
    Cycles,
    Jobs,
    advance,
    room_for_cycles,
)
from slurm_sns.sim.results.metrics import CycleColumns, Metrics, Timings, measure_columns
from slurm_sns.sim.traces.trace_arrays import TraceArrays

#: `progress` is called after so many cycles.
CYCLES_AT_A_TIME = 512


class MoreDemands(NamedTuple):
    """What the jobs of each kind demand of further resources on each of their nodes.

    `amounts` has a row (cache ways, bandwidth) for each of the records' kinds; the nodes have these amounts in their
    arrays. With `seen` False the resources must fit, but no heuristic looks at them.
    """

    amounts: NDArray[np.int64]
    seen: bool = True


@dataclass(frozen=True)
class Replayed:
    """When each job started and where, in the order of the records, and every cycle that ran."""

    records: TraceArrays
    start_s: NDArray[np.int64]
    place: NDArray[np.int64]
    spread: NDArray[np.int32]
    cycles: Cycles

    def nodes(self, job: int) -> Sequence[int]:
        """The nodes of a job, by their index in the pool."""
        count = self.records.kinds[self.records.kind[job]][0]
        begin = int(self.place[job])
        return [begin] if count == 1 else self.spread[begin : begin + count].tolist()

    def metrics(self, node_arrays: NodeArrays, members: Sequence[str]) -> Metrics:
        """The metrics; `members` are the portfolio in its order."""
        records = self.records
        held = np.array(
            [[nodes * cores, nodes * memory_mb] for nodes, cores, memory_mb, _ in records.kinds], np.float64
        )
        timings = Timings(
            records.submit_s.astype(np.float64),
            self.start_s.astype(np.float64),
            (self.start_s + records.run_s).astype(np.float64),
            held.T[:, records.kind],
        )
        return measure_columns(timings, CycleColumns(self.cycles.waiting, self.cycles.winners), node_arrays, members)


def replay(
    node_arrays: NodeArrays,
    records: TraceArrays,
    parameters: MatchingParameters,
    *,
    interval_s: int,
    shares: Mapping[str, float] | None = None,
    age_limit_s: int | None = None,
    more: MoreDemands | None = None,
    progress: Callable[[int], None] = lambda _started: None,
) -> Replayed:
    """Replay the trace; `progress` is called now and then with the number of jobs started.

    Jobs that have waited longer than `age_limit_s` go first, oldest first, and have capacity withheld for them. `more`
    gives jobs demands of cache ways and bandwidth.
    """
    cluster = cluster_of(node_arrays, records, parameters, shares or {}, more)
    if age_limit_s is not None:
        cluster = cluster._replace(aged=np.empty(len(records), np.int64))
        cluster.state[AGE_LIMIT_S] = age_limit_s
    return to_the_end(records, cluster, lambda cycles: advance(cluster, cycles, interval_s), progress)


def to_the_end(
    records: TraceArrays,
    cluster: Cluster,
    step: Callable[[Cycles], bool],
    progress: Callable[[int], None] = lambda _started: None,
) -> Replayed:
    """Repeat `step`, which fills the cycles that it is given and returns whether events are left."""
    parts: list[Cycles] = []
    going_on = True
    while going_on:
        cycles = room_for_cycles(CYCLES_AT_A_TIME)
        going_on = step(cycles)
        parts.append(Cycles(*(column[: cluster.state[CYCLES]] for column in cycles)))
        progress(int(cluster.state[STARTED]))
    waiting = len(records) - int(cluster.state[STARTED])
    if waiting:
        raise SnsError(f"the simulation ended with {waiting} jobs that never started; this is a defect")
    jobs = cluster.jobs
    return Replayed(
        records, jobs.start_s, jobs.place, jobs.spread, Cycles(*map(np.concatenate, zip(*parts, strict=True)))
    )


def cluster_of(
    node_arrays: NodeArrays,
    records: TraceArrays,
    parameters: MatchingParameters,
    shares: Mapping[str, float],
    more: MoreDemands | None = None,
) -> Cluster:
    """The cluster before anything has happened."""
    problem = problem_of(node_arrays, records, parameters, more)
    count, projects = len(records), len(records.projects)
    bench = bench_for(problem, count, projects, largest_number_of_takes(node_arrays.capacity, problem.alternatives))
    open_all(bench.node_state)
    share = np.array([[shares.get(project, 1.0)] for project in records.projects])
    total = np.array([[node_arrays.total.cores, node_arrays.total.memory_mb]], dtype=np.float64)
    queue = Queue(
        over_aged=np.zeros(0, np.int64),
        head=np.full(projects, NOBODY, np.int64),
        following=np.empty(count, np.int32),
        kind=records.kind,
        project=records.project,
        order=records.submit_s,
        whole=total * share,
        used=np.zeros((projects, 2), np.int64),
        withholds=np.ones(count, np.bool_),
    )
    state = np.zeros(STATES, np.int64)
    state[[AGAIN_S, AGE_LIMIT_S]] = NEVER
    return Cluster(
        bench=bench,
        queue=queue,
        tail=np.full(projects, NOBODY, np.int64),
        aged=np.zeros(0, np.int64),
        jobs=_jobs(records, problem.alternatives),
        running=np.full(BUCKETS, NOBODY, np.int32),
        state=state,
    )


def problem_of(
    node_arrays: NodeArrays, records: TraceArrays, parameters: MatchingParameters, more: MoreDemands | None = None
) -> Problem:
    """The tables of the kernel: each kind of job of a trace has one alternative."""
    count = len(records.kinds)
    demand = np.array([(cores, memory_mb) for _, cores, memory_mb, _ in records.kinds], dtype=np.int64)
    rows, case = [CORES, MEMORY], np.zeros(count, np.int64)
    if more is not None:
        demand, rows = np.hstack([demand, more.amounts]), [CORES, MEMORY, WAYS, BANDWIDTH]
        case = ((more.amounts > 0) @ np.array([1, 2])) * int(more.seen)
    capacity = node_arrays.capacity[rows]
    alternatives = AlternativeArrays(
        nodes=np.array([nodes for nodes, *_ in records.kinds], dtype=np.int64),
        demand=demand,
        exclusive=np.zeros(count, np.bool_),
        allowed=np.full(count, NOBODY, np.int64),
        case=case,
        simple=(demand[:, 2:] == 0).all(axis=1),
    )
    kinds = JobKinds(
        first=np.arange(count + 1, dtype=np.int64),
        alternative=np.arange(count, dtype=np.int64),
        slowdown=np.zeros(count, np.int64),
        own=np.array([ROWS.get(own, NOBODY) for *_, own in records.kinds], dtype=np.int64),
    )
    nodes = kernel_nodes(node_arrays.with_capacity(capacity), np.zeros((0, capacity.shape[1]), np.bool_))
    own = {int(row) for row in kinds.own if row != NOBODY}
    scores = kernel_table()
    rules = kernel_rules(rules_of(parameters), scores, own, sorted({int(each) for each in case}))
    return Problem(nodes, alternatives, kinds, scores, rules)


def _jobs(records: TraceArrays, alternatives: AlternativeArrays) -> Jobs:
    """The jobs before any has started; jobs on several nodes have their places in `spread`."""
    count = len(records)
    nodes = alternatives.nodes[records.kind]
    several = np.where(nodes > 1, nodes, 0)
    ends = np.cumsum(several)
    links = np.empty(count, np.int32)
    return Jobs(
        submit_s=records.submit_s,
        run_s=records.run_s,
        start_s=np.full(count, NEVER, np.int64),
        place=ends - several,
        spread=np.empty(int(ends[-1]), np.int32),
        previous=links,
        next_ending=links,
    )
