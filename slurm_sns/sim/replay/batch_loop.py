"""The compiled event loop of the batch baselines: FCFS and EASY by counting nodes.

Each task of a job has a whole node for the job's run time. Events that are at most COINCIDENT_S apart are one instant:
jobs end, then jobs are submitted, then one pass starts jobs. Running jobs are kept in the order of their expected ends;
a job that has outlived its expectation is expected to end now. For J jobs, with at most Q waiting and R running at a
time, the time is O(J * (Q + R)).

Source: the rules are those of `policies.baselines.fcfs` and `policies.baselines.easy`, placing as the policy ce does on
nodes that are all alike. Which nodes a job gets changes nothing.
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.baselines.expected_times import COINCIDENT_S
from slurm_sns.policies.placement.compiled import compiled, entry_point

Integers = NDArray[np.int64]
Column = NDArray[np.float64]

#: The algorithms. EASY_EXTRA_NODES starts no job only because it ends before the head job starts.
FCFS, EASY, EASY_EXTRA_NODES = range(3)

#: The state: nodes that are free, the next job to be submitted, running jobs, and the part of `queue` that waits.
FREE, NEXT_SUBMIT, RUNNING, QUEUE_BEGIN, QUEUE_END = range(5)
STATES = 5


class BatchJobs(NamedTuple):
    """The jobs by submit time; each column has one entry per job. The loop writes the last three.

    `expected_run_s` is infinite where nothing is known.
    """

    submit_s: Column
    run_s: Column
    expected_run_s: Column
    tasks: Integers
    start_s: Column
    end_s: Column
    expected_end_s: Column


class BatchState(NamedTuple):
    """What changes while the loop runs: running jobs by expected end, waiting jobs by submit time, the state."""

    running: Integers  #: (nodes)
    queue: Integers  #: (jobs)
    state: Integers  #: (STATES)


@entry_point
def run_batch(jobs: BatchJobs, machine: BatchState, algorithm: int) -> None:
    """Replay until all jobs have ended. No job may have more tasks than there are nodes, or none."""
    state = machine.state
    first_s = _next_event(jobs, machine)
    while first_s < inf:
        now_s = max(_end_jobs(jobs, machine, first_s + COINCIDENT_S), first_s)
        while state[NEXT_SUBMIT] < len(jobs.submit_s) and jobs.submit_s[state[NEXT_SUBMIT]] <= first_s + COINCIDENT_S:
            now_s = max(now_s, jobs.submit_s[state[NEXT_SUBMIT]])
            machine.queue[state[QUEUE_END]] = state[NEXT_SUBMIT]
            state[QUEUE_END] += 1
            state[NEXT_SUBMIT] += 1
        _start_in_order(jobs, machine, now_s)
        if algorithm != FCFS and state[FREE] > 0 and state[QUEUE_BEGIN] < state[QUEUE_END]:
            _backfill(jobs, machine, now_s, algorithm)
        first_s = _next_event(jobs, machine)


@compiled
def _next_event(jobs: BatchJobs, machine: BatchState) -> float:
    """The time of the next end or submit, infinite when there is none."""
    state = machine.state
    first_s = inf
    if state[NEXT_SUBMIT] < len(jobs.submit_s):
        first_s = jobs.submit_s[state[NEXT_SUBMIT]]
    for at in range(state[RUNNING]):
        first_s = min(first_s, jobs.end_s[machine.running[at]])
    return float(first_s)


@compiled
def _end_jobs(jobs: BatchJobs, machine: BatchState, until_s: float) -> float:
    """Free the nodes of the jobs that end by then; return the last of their ends."""
    state, running = machine.state, machine.running
    kept, last_s = 0, -inf
    for at in range(state[RUNNING]):
        job = running[at]
        if jobs.end_s[job] <= until_s:
            state[FREE] += jobs.tasks[job]
            last_s = max(last_s, jobs.end_s[job])
        else:
            running[kept] = job
            kept += 1
    state[RUNNING] = kept
    return float(last_s)


@compiled
def _start_in_order(jobs: BatchJobs, machine: BatchState, now_s: float) -> None:
    """Start the jobs before the first that does not fit."""
    state = machine.state
    while state[QUEUE_BEGIN] < state[QUEUE_END] and jobs.tasks[machine.queue[state[QUEUE_BEGIN]]] <= state[FREE]:
        _start(jobs, machine, machine.queue[state[QUEUE_BEGIN]], now_s)
        state[QUEUE_BEGIN] += 1


@compiled
def _backfill(jobs: BatchJobs, machine: BatchState, now_s: float, algorithm: int) -> None:
    """Start jobs behind the head job that end by its shadow time, or that need no more than the extra nodes."""
    state, queue = machine.state, machine.queue
    shadow_s, extra = _shadow(jobs, machine, now_s)
    kept = state[QUEUE_BEGIN] + 1
    for at in range(kept, state[QUEUE_END]):
        job = queue[at]
        tasks, end_s = jobs.tasks[job], now_s + jobs.expected_run_s[job]
        is_in_time = algorithm == EASY and end_s < inf and end_s <= shadow_s + COINCIDENT_S
        if tasks <= state[FREE] and (is_in_time or tasks <= extra):
            _start(jobs, machine, job, now_s)
            if not is_in_time:
                extra -= tasks
        else:
            queue[kept] = job
            kept += 1
    state[QUEUE_END] = kept


@compiled
def _shadow(jobs: BatchJobs, machine: BatchState, now_s: float) -> tuple[float, int]:
    """The time at which the head job fits if jobs end as expected, and the nodes that it leaves free then.

    The time is infinite if the head job needs nodes of jobs whose ends are not known: all jobs have ended then.
    """
    state = machine.state
    head = jobs.tasks[machine.queue[state[QUEUE_BEGIN]]]
    free, shadow_s = state[FREE], inf
    for at in range(state[RUNNING]):
        job = machine.running[at]
        end_s = max(jobs.expected_end_s[job], now_s)
        if end_s > shadow_s + COINCIDENT_S:
            break
        free += jobs.tasks[job]
        if free >= head:
            shadow_s = min(shadow_s, end_s)
    return shadow_s, free - head


@compiled
def _start(jobs: BatchJobs, machine: BatchState, job: int, now_s: float) -> None:
    state, running = machine.state, machine.running
    jobs.start_s[job] = now_s
    jobs.end_s[job] = now_s + jobs.run_s[job]
    jobs.expected_end_s[job] = now_s + jobs.expected_run_s[job]
    state[FREE] -= jobs.tasks[job]
    at = state[RUNNING]
    while at > 0 and jobs.expected_end_s[running[at - 1]] > jobs.expected_end_s[job]:
        running[at] = running[at - 1]
        at -= 1
    running[at] = job
    state[RUNNING] += 1
