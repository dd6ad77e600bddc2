"""Replay a trace of fluid jobs under one of DFRS's algorithms, or under a batch baseline, with the compiled loops.

The result is that of the event engine (`sim/engine/planned`) under the policy, which decides by the same kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.policies.baselines.compact import compact_exclusive
from slurm_sns.policies.dfrs.algorithms import Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import (
    Flags,
    Floats,
    FluidCluster,
    Integers,
    Scale,
    cluster_of,
    job_needs,
    node_capacity,
)
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.replay.backfilling_loop import EASY, EASY_EXTRA_NODES, FCFS
from slurm_sns.sim.replay.fluid_loop import (
    LAST_NS,
    NANOSECONDS,
    NEVER,
    SUBMITTED,
    FluidCounts,
    FluidPace,
    FluidReplay,
    FluidSettings,
    FluidTimes,
    replay_some,
)
from slurm_sns.sim.replay.trace_replay import replay_in_order
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TOO_LARGE, TraceArrays
from slurm_sns.sim.traces.fluid_trace import can_run, on_whole_nodes, whole_nodes

#: Moments between two reports of progress: a fraction of a second, mostly.
PART = 1000
#: Limits of a trace: its last submit and its longest run time together, and its tasks, which take 16 bytes each.
LONGEST_S = 4e9
MOST_TASKS = 100_000_000
#: Periodic runs until then: some take minutes.
MOST_RUNS = 100_000_000

#: The batch baselines; `easy-extra-nodes-only` is EASY as in the program of the DFRS paper's authors (vcsim).
BATCH = {"fcfs": FCFS, "easy": EASY, "easy-extra-nodes-only": EASY_EXTRA_NODES}


@dataclass(frozen=True)
class Requeues:
    """Pauses by a requeue: which jobs can restart, by job, and what of their progress is lost (module fluid_loop)."""

    restartable: Flags
    checkpoint_s: float = inf
    protect_s: float = 0
    most_pauses: int = NEVER
    forgets: bool = False
    pauses_again: bool = False


@dataclass(frozen=True)
class SiteVariant:
    """How a site may differ from the paper's model.

    New caps on running jobs count from the next multiple of `apply_s` on (0: at once). By job: `measured`, the CPU need
    that the algorithm knows over the true one, and `limit_s`, the time limit; None: exact needs, no limits. Where jobs
    are placed greedily the CPU needs on a node are at most `most_to_a_core` times its CPU. `requeues`: how jobs are
    paused; None: each job may be, and loses nothing.
    """

    apply_s: float = 0
    measured: Floats | None = None
    limit_s: Floats | None = None
    most_to_a_core: float = inf
    requeues: Requeues | None = None


def replay_fluid(
    node_arrays: NodeArrays,
    trace: TraceArrays,
    algorithm: Algorithm,
    *,
    period_s: float = 600,
    penalty_s: float = 0,
    variant: SiteVariant | None = None,
    progress: Callable[[int], None] = lambda _submitted: None,
) -> TraceRun:
    """Replay the trace; periodic runs are at the multiples of `period_s`, a resume or a move costs `penalty_s`.

    `progress` is called from time to time with the number of jobs that have been submitted.

    Raises:
        BadInput: a job could not run even on empty nodes, times are too long, or there are too many tasks or periodic
            runs.
    """
    last_s = float(trace.submit_s[-1]) + float(trace.run_s.max())
    if last_s > LONGEST_S:
        raise BadInput(
            f"the last submit and the longest run time are {last_s:.2g} s together; valid: at most {LONGEST_S:g}"
        )
    if algorithm.packs_periodically and last_s / period_s > MOST_RUNS:
        least_s = last_s / MOST_RUNS
        raise BadInput(f"a periodic run every {period_s:g} s for {last_s:.2g} s; valid: {least_s:.2g} s or more")
    if int(trace.tasks.sum()) > MOST_TASKS:
        raise BadInput(f"the jobs have {int(trace.tasks.sum()):,} tasks; valid: at most {MOST_TASKS:,}")
    site = variant or SiteVariant()
    possible = can_run(node_arrays, trace, site.most_to_a_core)
    if not possible.all():
        raise BadInput(
            f"job {trace.identity[np.argmin(possible)]} is {TOO_LARGE}; valid: jobs that empty nodes can hold"
        )
    cluster, scale = _cluster(node_arrays, trace, site.most_to_a_core)
    replay = _replay(cluster, trace, period_s, penalty_s, site)
    while replay_some(algorithm, replay, PART):
        progress(int(replay.cursor[SUBMITTED]))
    progress(len(trace))
    times, counts = replay.times, replay.counts
    never = int((times.start_ns == NEVER).sum())
    if never:
        raise SnsError(f"the simulation ended with {never} jobs that never started; this is a defect")
    left = int((times.end_ns >= LAST_NS).sum())
    if left:
        raise BadInput(f"{left} jobs would not end in {LAST_NS // NANOSECONDS:.1e} s; valid: shorter run times")
    places = cluster.states.places
    first = np.cumsum(trace.tasks) - trace.tasks
    return TraceRun(
        trace,
        times.start_ns / NANOSECONDS,
        times.end_ns / NANOSECONDS,
        np.where(trace.tasks > 1, first, places[first]),
        spread=places,
        preemptions=counts.preemptions,
        migrations=counts.migrations,
        tasks_moved=counts.tasks_moved,
        killed=counts.killed,
        lost_s=counts.lost_s,
        wall_s=replay.pace.wall_s,
        used=(float(counts.used[0]) / scale.cpu, float(counts.used[1]) / scale.memory),
        instants=tuple(counts.instants.tolist()),
    )


def replay_batch(
    nodes: int, trace: TraceArrays, algorithm: str, *, expected_run_s: NDArray[np.float64] | None = None
) -> TraceRun:
    """Replay the trace, in whole seconds, under one of `BATCH` on this many nodes: each task has a whole node.

    `expected_run_s` has one entry per job, 0 where nothing is known; None means the true run times.

    Raises:
        BadInput: a job has more tasks than there are nodes, or a fraction of a second.

    Source: Dynamic fractional resource scheduling (IPDPS 2010), section IV-B.
    """
    wrong = (trace.tasks > nodes) | (trace.submit_s % 1 != 0) | (trace.run_s % 1 != 0)
    if wrong.any():
        job, tasks, submit_s, run_s = (
            each[wrong][0] for each in (trace.identity, trace.tasks, trace.submit_s, trace.run_s)
        )
        raise BadInput(
            f"job {job} has {tasks} tasks, is submitted at {submit_s:g} s and runs for {run_s:g} s; "
            f"valid: at most {nodes} tasks, times in whole seconds"
        )
    node_arrays = whole_nodes(nodes)
    batch = on_whole_nodes(trace, node_arrays)
    if expected_run_s is not None:
        batch = replace(batch, limit=expected_run_s)
    rules = replace(compact_exclusive().rules, queue_depth=len(trace))
    return replay_in_order(node_arrays, batch, rules, BATCH[algorithm], interval_s=1)


def _cluster(node_arrays: NodeArrays, trace: TraceArrays, most_to_a_core: float) -> tuple[FluidCluster, Scale]:
    """The nodes and jobs in common units, before any job has nodes."""
    cpu, memory = node_arrays.capacity[CORES].tolist(), node_arrays.capacity[MEMORY].tolist()
    scale = Scale.of(cpu, memory)
    scaled = [scale.cpu * each for each in cpu], [scale.memory * each for each in memory]
    capacity = node_capacity(*scaled, most_to_a_core)
    needs = job_needs(
        trace.submit_s.astype(np.float64),
        trace.tasks.astype(np.int64),
        trace.cores.astype(np.float64) * scale.cpu,
        trace.memory.astype(np.float64) * scale.memory,
    )
    return cluster_of(capacity, needs), scale


def _replay(
    cluster: FluidCluster, trace: TraceArrays, period_s: float, penalty_s: float, variant: SiteVariant
) -> FluidReplay:
    """The replay before anything has happened."""
    count = len(trace)

    def zeros() -> Integers:
        return np.zeros(count, np.int64)

    def never() -> Integers:
        return np.full(count, NEVER, np.int64)

    first_ns = _nanoseconds(float(trace.submit_s[0]))
    measured = np.ones(count) if variant.measured is None else variant.measured
    limit_s = np.full(count, np.inf) if variant.limit_s is None else variant.limit_s
    requeues = variant.requeues or Requeues(np.ones(count, np.bool_), checkpoint_s=0)
    return FluidReplay(
        cluster,
        FluidTimes(
            np.rint(trace.submit_s * NANOSECONDS).astype(np.int64),
            never(),
            never(),
            never(),
            zeros(),
            never(),
            zeros(),
        ),
        FluidCounts(
            zeros(),
            zeros(),
            zeros(),
            np.zeros(count, np.bool_),
            np.zeros(count),
            np.zeros(2),
            np.zeros(2, np.int64),
        ),
        FluidSettings(
            _nanoseconds(period_s),
            _nanoseconds(penalty_s),
            _nanoseconds(variant.apply_s),
            trace.run_s.astype(np.float64),
            measured.astype(np.float64),
            limit_s.astype(np.float64),
            requeues.restartable,
            float(requeues.checkpoint_s),
            _nanoseconds(requeues.protect_s),
            requeues.most_pauses,
            requeues.forgets,
            requeues.pauses_again,
        ),
        FluidPace(*(np.zeros(count) for _ in range(4))),
        np.array([first_ns, 0, NEVER, NEVER, 0]),
        zeros(),
        zeros(),
        np.zeros_like(cluster.states.places),
        np.zeros(count, np.bool_),
    )


def _nanoseconds(seconds: float) -> int:
    return round(seconds * NANOSECONDS)
