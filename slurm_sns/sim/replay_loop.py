"""The compiled event loop of a replay: finishes, submits, and the kernel's cycles at multiples of the interval.

In one second finishes come first, then submits, then a cycle. A cycle runs only when something was submitted or
finished since the last one, or the last one matched something: the same rules as in `engine`. Jobs that have waited
longer than the age limit leave their project's list for the one of the over-aged, in which they are by submit, as the
trace is. For J jobs of which at most H run at a time, the events cost O(J log H); the cycles are the kernel's.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.arrays import ENTRIES, MATCHED, NOBODY, Integers, Matches, Queue, Small
from slurm_sns.policies.placement.compiled import compiled, entry_point
from slurm_sns.policies.placement.kernel import Bench, schedule

#: Later than everything.
NEVER = 1 << 62

NEXT_SUBMIT, WAITING, RUNNING, AGAIN_S, STARTED, CYCLES = range(6)
#: The part of `Cluster.aged` that waits, the first job that is not over-aged yet, and the limit (NEVER: none).
AGED_BEGIN, AGED_END, NEXT_AGED, AGE_LIMIT_S = range(6, 10)
STATES = 10


class Jobs(NamedTuple):
    """The jobs of the trace by submit second. A job on several nodes has its nodes in `spread`, from `place` on."""

    submit_s: Integers
    run_s: Integers
    start_s: Integers  #: NEVER until it has started
    place: Integers  #: the node, or the begin in `spread`
    spread: Small
    previous: Small  #: the job before it in the queue of its project, or NOBODY


class Running(NamedTuple):
    """A heap of the jobs that run, the next to finish first."""

    end_s: Integers
    job: Small


class Cycles(NamedTuple):
    """The cycles of one part of the replay."""

    time_s: Integers
    waiting: Integers
    started: Integers
    chosen: Integers  #: a member of the portfolio, or NOBODY
    winners: Integers  #: a bit for each member that reached the maximum


class Cluster(NamedTuple):
    """What changes while the replay runs."""

    bench: Bench
    queue: Queue
    tail: Integers  #: (projects) the last waiting job, or NOBODY
    aged: Integers  #: (jobs, or none without an age limit) the over-aged jobs, those that wait from AGED_BEGIN on
    free: Integers  #: (resources, nodes)
    jobs: Jobs
    running: Running
    state: Integers  #: (STATES) NEXT_SUBMIT and the others above


@entry_point
def advance(cluster: Cluster, cycles: Cycles, interval_s: int) -> bool:
    """Go on until `cycles` is full or nothing is left to happen; whether something is left."""
    state = cluster.state
    state[CYCLES] = 0
    while state[CYCLES] < len(cycles.time_s):
        next_s = _next_event_s(cluster)
        if next_s == NEVER:
            return False
        now_s = (next_s + interval_s - 1) // interval_s * interval_s
        while state[RUNNING] > 0 and cluster.running.end_s[0] <= now_s:
            _finish_next(cluster)
        while state[NEXT_SUBMIT] < len(cluster.jobs.submit_s) and (cluster.jobs.submit_s[state[NEXT_SUBMIT]] <= now_s):
            _submit_next(cluster)
        _cycle(cluster, cycles, now_s)
    return True


@compiled
def _next_event_s(cluster: Cluster) -> int:
    state = cluster.state
    next_s = state[AGAIN_S]
    if state[NEXT_SUBMIT] < len(cluster.jobs.submit_s):
        next_s = min(next_s, cluster.jobs.submit_s[state[NEXT_SUBMIT]])
    if state[RUNNING] > 0:
        next_s = min(next_s, cluster.running.end_s[0])
    return next_s


@compiled
def _cycle(cluster: Cluster, cycles: Cycles, now_s: int) -> None:
    state, bench = cluster.state, cluster.bench
    at = state[CYCLES]
    state[CYCLES] += 1
    state[AGAIN_S] = NEVER
    cycles.time_s[at] = now_s
    cycles.waiting[at] = state[WAITING]
    cycles.started[at] = 0
    cycles.chosen[at] = NOBODY
    cycles.winners[at] = 0
    if state[WAITING] == 0:
        return
    _age(cluster, now_s)
    best, kept = schedule(bench, cluster.free, _queue_with_aged(cluster))
    matches = bench.matches[kept]
    for entry in range(matches.totals[ENTRIES]):
        if not matches.kept[entry]:
            _start(cluster, matches, entry, now_s)
    _drop_started(cluster)
    matched = matches.totals[MATCHED]
    if matched > 0:
        state[AGAIN_S] = now_s + 1
    cycles.started[at] = matched
    cycles.chosen[at] = best
    for member in range(len(bench.matched)):
        if bench.matched[member] == matched:
            cycles.winners[at] |= 1 << member


@compiled
def _age(cluster: Cluster, now_s: int) -> None:
    """Put those that have waited longer than the limit behind the others that have."""
    state, jobs = cluster.state, cluster.jobs
    while state[NEXT_AGED] < state[NEXT_SUBMIT] and now_s - jobs.submit_s[state[NEXT_AGED]] > state[AGE_LIMIT_S]:
        job = state[NEXT_AGED]
        if jobs.start_s[job] == NEVER:
            _leave_queue(cluster, job)
            cluster.aged[state[AGED_END]] = job
            state[AGED_END] += 1
        state[NEXT_AGED] += 1


@compiled
def _queue_with_aged(cluster: Cluster) -> Queue:
    queue, state = cluster.queue, cluster.state
    aged = cluster.aged[state[AGED_BEGIN] : state[AGED_END]]
    return Queue(aged, queue.head, queue.following, queue.kind, queue.project, queue.order, queue.whole, queue.used)


@compiled
def _drop_started(cluster: Cluster) -> None:
    """Close up the over-aged jobs of which some have started: none behind the depth of the queue has."""
    state, aged = cluster.state, cluster.aged
    begin = state[AGED_BEGIN]
    end = min(state[AGED_END], begin + cluster.bench.field.problem.limits.depth)
    kept = end
    for at in range(end - 1, begin - 1, -1):
        if cluster.jobs.start_s[aged[at]] == NEVER:
            kept -= 1
            aged[kept] = aged[at]
    state[AGED_BEGIN] = kept


@compiled
def _start(cluster: Cluster, matches: Matches, entry: int, now_s: int) -> None:
    jobs, job = cluster.jobs, matches.job[entry]
    first, last = matches.first[entry], matches.first[entry + 1]
    if last - first == 1:
        jobs.place[job] = matches.node[first]
    else:
        for at in range(last - first):
            jobs.spread[jobs.place[job] + at] = matches.node[first + at]
    jobs.start_s[job] = now_s
    if job >= cluster.state[NEXT_AGED]:
        _leave_queue(cluster, job)
    _change(cluster, job, -1)
    _push(cluster, now_s + jobs.run_s[job], job)
    cluster.state[WAITING] -= 1
    cluster.state[STARTED] += 1


@compiled
def _change(cluster: Cluster, job: int, sign: int) -> None:
    """Take the job's resources (-1) or give them back (1), on its nodes and for its project."""
    problem, queue, jobs = cluster.bench.field.problem, cluster.queue, cluster.jobs
    way = problem.kinds.way[problem.kinds.first[queue.kind[job]]]  # a job of a trace may run in one way only
    nodes = problem.ways.nodes[way]
    for at in range(nodes):
        node = jobs.place[job] if nodes == 1 else jobs.spread[jobs.place[job] + at]
        for row in range(cluster.free.shape[0]):
            cluster.free[row, node] += sign * problem.ways.demand[way, row]
    for row in range(2):
        queue.used[queue.project[job], row] -= sign * nodes * problem.ways.demand[way, row]


@compiled
def _submit_next(cluster: Cluster) -> None:
    """Put the next job at the end of its project's list."""
    queue, state = cluster.queue, cluster.state
    job = state[NEXT_SUBMIT]
    project = queue.project[job]
    last = cluster.tail[project]
    cluster.jobs.previous[job] = last
    queue.following[job] = NOBODY
    if last == NOBODY:
        queue.head[project] = job
    else:
        queue.following[last] = job
    cluster.tail[project] = job
    state[NEXT_SUBMIT] += 1
    state[WAITING] += 1


@compiled
def _leave_queue(cluster: Cluster, job: int) -> None:
    queue, previous = cluster.queue, cluster.jobs.previous
    before, after = previous[job], queue.following[job]
    if before == NOBODY:
        queue.head[queue.project[job]] = after
    else:
        queue.following[before] = after
    if after == NOBODY:
        cluster.tail[queue.project[job]] = before
    else:
        previous[after] = before


@compiled
def _push(cluster: Cluster, end_s: int, job: int) -> None:
    heap = cluster.running
    at = cluster.state[RUNNING]
    cluster.state[RUNNING] += 1
    while at > 0 and heap.end_s[(at - 1) >> 1] > end_s:
        heap.end_s[at] = heap.end_s[(at - 1) >> 1]
        heap.job[at] = heap.job[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap.end_s[at] = end_s
    heap.job[at] = job


@compiled
def _finish_next(cluster: Cluster) -> None:
    """Take the job that ends first from the heap and give back what it held."""
    heap = cluster.running
    _change(cluster, heap.job[0], 1)
    cluster.state[RUNNING] -= 1
    size = cluster.state[RUNNING]
    end_s, job = heap.end_s[size], heap.job[size]
    at, child = 0, 1
    while child < size:
        if child + 1 < size and heap.end_s[child + 1] < heap.end_s[child]:
            child += 1
        if heap.end_s[child] >= end_s:
            break
        heap.end_s[at], heap.job[at] = heap.end_s[child], heap.job[child]
        at, child = child, 2 * child + 1
    heap.end_s[at], heap.job[at] = end_s, job


def room_for_cycles(count: int) -> Cycles:
    """Arrays for that many cycles."""
    return Cycles(*(np.empty(count, np.int64) for _ in Cycles._fields))
