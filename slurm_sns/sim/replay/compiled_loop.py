"""The compiled event loop of a replay: finishes, submits, and cycles at multiples of the interval.

In one second finishes come first, then submits, then a cycle. A cycle runs only when something was submitted or
finished since the last one, or the last one of a portfolio matched something: the same rules as in `engine`. What a
cycle starts is decided by a *pass*: that of a portfolio (`advance`), the same with lookahead (module
`lookahead_replay`), or that of FCFS and EASY (module `backfilling_loop`). Each pass has an entry point of its own
around `reach_next`, `begin_cycle` and `dispatch`, because numba caches no function that is given another one.

Jobs that have waited longer than the age limit move from their project's list to the list of over-aged jobs, which is
in order of submit time, as the trace is. Running jobs are in a wheel of buckets, by the number of the cycle in which
they finish. For J jobs, and C numbers of cycles from the first to the last, the events cost O(J + C), beside what the
passes cost.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.compiled import compiled, entry_point, inlined
from slurm_sns.policies.placement.kernel_arrays import (
    ENTRIES,
    MATCH,
    MATCHED,
    NOBODY,
    Integers,
    Matches,
    Queue,
    queue_at,
)
from slurm_sns.policies.placement.node_state_kernel import touch
from slurm_sns.policies.placement.portfolio_kernel import compete
from slurm_sns.sim.replay.cluster_state import (
    AGAIN_S,
    AGE_LIMIT_S,
    AGED_BEGIN,
    AGED_END,
    BUCKETS,
    CYCLES,
    LAST,
    NEVER,
    NEXT_AGED,
    NEXT_LATE,
    NEXT_SUBMIT,
    PROFILED,
    RUNNING,
    STARTED,
    WAITING,
    WITHHOLD_LIMIT_S,
    Cluster,
    end_of,
    node_of_job,
    put_down,
)
from slurm_sns.sim.replay.expected_ends import coming_free, drop_ended, expect_end
from slurm_sns.sim.run import Cycles


@entry_point
def advance(cluster: Cluster, cycles: Cycles, interval_s: int) -> bool:
    """Replay until `cycles` is full or no event is left; return whether events are left."""
    state = cluster.state
    state[CYCLES] = 0
    while state[CYCLES] < len(cycles.time_s):
        number = reach_next(cluster, interval_s)
        if number == NEVER:
            return False
        _cycle(cluster, cycles, number, interval_s)
    return True


class Priorities(NamedTuple):
    """Slurm's order of jobs, which are then of one project: by priority, the larger, the earlier, then by submit."""

    of_job: Integers  #: (J)
    old: Integers  #: (2) for jobs that wait longer than this limit capacity is withheld again; the first one below it


#: The parts of `Priorities.old`.
OLD_LIMIT_S, NEXT_OLD = range(2)


@entry_point
def advance_by_priority(cluster: Cluster, priorities: Priorities, cycles: Cycles, interval_s: int) -> bool:
    """The same in Slurm's order. For an over-aged job capacity is withheld at its place: it does not go first."""
    state = cluster.state
    state[CYCLES] = 0
    while state[CYCLES] < len(cycles.time_s):
        first_new = state[NEXT_SUBMIT]
        number = reach_next(cluster, interval_s)
        if number == NEVER:
            return False
        for job in range(first_new, state[NEXT_SUBMIT]):
            move_forward(cluster, priorities.of_job, job)
        if begin_cycle(cluster, cycles, number, interval_s):
            _withhold_no_more(cluster, number * interval_s)
            _withhold_for_old(cluster, priorities.old, number * interval_s)
            _run_portfolio(cluster, cycles, number * interval_s, interval_s)
    return True


@compiled
def move_forward(cluster: Cluster, priority: Integers, job: int) -> None:
    """Move a job that has just been submitted, to the only project, before those of lower priority."""
    queue, previous = cluster.queue, cluster.jobs.previous
    before = previous[job]
    if before == NOBODY or priority[before] >= priority[job]:
        return
    leave_queue(cluster, job)
    while before != NOBODY and priority[before] < priority[job]:
        before = previous[before]
    after = queue.head[0] if before == NOBODY else queue.following[before]
    if before == NOBODY:
        queue.head[0] = job
    else:
        queue.following[before] = job
    previous[job] = before
    queue.following[job] = after
    previous[after] = job  # there is one: it was at the end before


@compiled
def _withhold_for_old(cluster: Cluster, old: Integers, now_s: int) -> None:
    """Withhold capacity again for jobs that have now waited longer than the age limit."""
    state, submit_s = cluster.state, cluster.jobs.submit_s
    while old[NEXT_OLD] < state[NEXT_SUBMIT] and now_s - submit_s[old[NEXT_OLD]] > old[OLD_LIMIT_S]:
        cluster.queue.withholds[old[NEXT_OLD]] = True
        old[NEXT_OLD] += 1


@compiled
def reach_next(cluster: Cluster, interval_s: int) -> int:
    """Finish and submit what is due by the next cycle; return its number, NEVER when no event is left."""
    state, submit_s = cluster.state, cluster.jobs.submit_s
    number = _next_number(cluster, interval_s)
    if number != NEVER:
        now_s = number * interval_s
        state[LAST] = number
        _finish(cluster, number, now_s)
        while state[NEXT_SUBMIT] < len(submit_s) and submit_s[state[NEXT_SUBMIT]] <= now_s:
            _submit_next(cluster)
    return number


@compiled
def _number(second_s: int, interval_s: int) -> int:
    """The number of the first cycle that is not before this moment, which may be a fraction."""
    return int(-(-second_s // interval_s))


@compiled
def _next_number(cluster: Cluster, interval_s: int) -> int:
    """The number of the next cycle, NEVER when no event is left."""
    state, jobs = cluster.state, cluster.jobs
    next_s = state[AGAIN_S]
    if state[NEXT_SUBMIT] < len(jobs.submit_s):
        next_s = min(next_s, jobs.submit_s[state[NEXT_SUBMIT]])
    number = NEVER if next_s == NEVER else _number(next_s, interval_s)
    return number if state[RUNNING] == 0 else _next_finish(cluster, number, interval_s)


@compiled
def _next_finish(cluster: Cluster, before: int, interval_s: int) -> int:
    """The number of the next cycle in which a job finishes, or `before` when none finishes earlier."""
    state, jobs = cluster.state, cluster.jobs
    turn = state[LAST] + 1 + BUCKETS
    for number in range(state[LAST] + 1, min(before, turn)):
        job = cluster.running[number % BUCKETS]
        while job != NOBODY:
            if end_of(jobs, job) <= number * interval_s:
                return number
            job = jobs.next_ending[job]
    if before <= turn:
        return before
    first = before
    for bucket in range(BUCKETS):
        job = cluster.running[bucket]
        while job != NOBODY:
            first = min(first, _number(end_of(jobs, job), interval_s))
            job = jobs.next_ending[job]
    return first


@inlined
def _cycle(cluster: Cluster, cycles: Cycles, number: int, interval_s: int) -> None:
    if not begin_cycle(cluster, cycles, number, interval_s):
        return
    _age(cluster, number * interval_s)
    _withhold_no_more(cluster, number * interval_s)
    _run_portfolio(cluster, cycles, number * interval_s, interval_s)


@inlined
def _run_portfolio(cluster: Cluster, cycles: Cycles, now_s: int, interval_s: int) -> None:
    drop_ended(cluster.jobs, cluster.expected, now_s)
    best, kept, _ = compete(cluster.bench, _queue_at(cluster, now_s), cluster.state[PROFILED] > 0)
    dispatch(cluster, cycles, best, kept, interval_s)
    come_again(cluster, cycles)
    if cluster.bench.node_state.problem.limits.until_start:
        matches, expected = cluster.bench.matches[kept], cluster.expected
        for entry in range(matches.totals[ENTRIES]):
            if matches.kept[entry] == MATCH:
                expect_end(expected, matches.job[entry], now_s + expected.run_s[matches.job[entry]])


@compiled
def begin_cycle(cluster: Cluster, cycles: Cycles, number: int, interval_s: int) -> bool:
    """Enter the cycle of this number into `cycles`; return whether a job waits."""
    state = cluster.state
    at = state[CYCLES]
    state[CYCLES] += 1
    state[AGAIN_S] = NEVER
    cycles.time_s[at] = number * interval_s
    cycles.waiting[at] = state[WAITING]
    cycles.started[at] = 0
    cycles.chosen[at] = NOBODY
    cycles.winners[at] = 0
    return state[WAITING] > 0


@compiled
def dispatch(cluster: Cluster, cycles: Cycles, best: int, kept: int, interval_s: int) -> None:
    """Start what the member `best` has matched (entry `kept` of the bench's matches) in the cycle that has begun.

    A pass without members has no best one: NOBODY.
    """
    state, bench = cluster.state, cluster.bench
    at = state[CYCLES] - 1
    now_s = cycles.time_s[at]
    matches = bench.matches[kept]
    for entry in range(matches.totals[ENTRIES]):
        if matches.kept[entry] == MATCH:
            _start(cluster, matches, entry, now_s, interval_s)
    _drop_started(cluster)
    cycles.started[at] = matches.totals[MATCHED]
    cycles.chosen[at] = best
    if best == NOBODY:
        return
    most = 0
    for member in range(len(bench.matched)):
        most = max(most, bench.matched[member])
    for member in range(len(bench.matched)):
        if bench.matched[member] == most:
            cycles.winners[at] |= 1 << member


@compiled
def come_again(cluster: Cluster, cycles: Cycles) -> None:
    """Run another cycle as soon as possible if this one has started a job: another member may match more now."""
    at = cluster.state[CYCLES] - 1
    if cycles.started[at] > 0:
        cluster.state[AGAIN_S] = cycles.time_s[at] + 1


@compiled
def _age(cluster: Cluster, now_s: int) -> None:
    """Append the jobs that have now waited longer than the limit to the list of over-aged jobs."""
    state, jobs = cluster.state, cluster.jobs
    while state[NEXT_AGED] < state[NEXT_SUBMIT] and now_s - jobs.submit_s[state[NEXT_AGED]] > state[AGE_LIMIT_S]:
        job = state[NEXT_AGED]
        if jobs.start_s[job] == NEVER:
            leave_queue(cluster, job)
            cluster.queue.withholds[job] = True
            cluster.aged[state[AGED_END]] = job
            state[AGED_END] += 1
        state[NEXT_AGED] += 1


@compiled
def _withhold_no_more(cluster: Cluster, now_s: int) -> None:
    """Withhold no capacity for jobs that have now waited longer than the limit, unless they are over-aged."""
    state, submit_s = cluster.state, cluster.jobs.submit_s
    while state[NEXT_LATE] < state[NEXT_SUBMIT] and now_s - submit_s[state[NEXT_LATE]] > state[WITHHOLD_LIMIT_S]:
        job = state[NEXT_LATE]
        cluster.queue.withholds[job] = job < state[NEXT_AGED]
        state[NEXT_LATE] += 1


@compiled
def _queue_at(cluster: Cluster, now_s: int) -> Queue:
    """The queue with the over-aged jobs, and what is coming free."""
    state = cluster.state
    over_aged = cluster.aged[state[AGED_BEGIN] : state[AGED_END]]
    return queue_at(cluster.queue, over_aged, float(now_s), coming_free(cluster, float(now_s), inf))


@compiled
def _drop_started(cluster: Cluster) -> None:
    """Remove the started jobs from the list of over-aged jobs; none behind the queue depth has started."""
    state, aged = cluster.state, cluster.aged
    begin = state[AGED_BEGIN]
    end = min(state[AGED_END], begin + cluster.bench.node_state.problem.limits.depth)
    kept = end
    for at in range(end - 1, begin - 1, -1):
        if cluster.jobs.start_s[aged[at]] == NEVER:
            kept -= 1
            aged[kept] = aged[at]
    state[AGED_BEGIN] = kept


@compiled
def _start(cluster: Cluster, matches: Matches, entry: int, now_s: int, interval_s: int) -> None:
    jobs, job = cluster.jobs, matches.job[entry]
    choice = matches.choice[entry] - cluster.bench.node_state.problem.kinds.first[cluster.queue.kind[job]]
    put_down(jobs, matches, entry, choice)
    jobs.start_s[job] = now_s
    if len(cluster.profiled):
        cluster.state[PROFILED] -= cluster.profiled[cluster.queue.kind[job]]
    if job >= cluster.state[NEXT_AGED]:
        leave_queue(cluster, job)
    _change(cluster, job, -1)
    bucket = _number(end_of(jobs, job), interval_s) % BUCKETS
    jobs.next_ending[job] = cluster.running[bucket]
    cluster.running[bucket] = job
    cluster.state[RUNNING] += 1
    cluster.state[WAITING] -= 1
    cluster.state[STARTED] += 1


@compiled
def _change(cluster: Cluster, job: int, sign: int) -> None:
    """Take the job's resources (-1) or give them back (1), on its nodes and for its project."""
    node_state, queue, jobs = cluster.bench.node_state, cluster.queue, cluster.jobs
    problem = node_state.problem
    kind = queue.kind[job]
    alternative = problem.kinds.alternative[problem.kinds.first[kind] + jobs.choice[job]]
    nodes = problem.alternatives.nodes[alternative]
    whole = problem.alternatives.exclusive[alternative]
    for at in range(nodes):
        node = node_of_job(jobs, job, nodes, at)
        for row in range(node_state.opening.shape[0]):
            amount = problem.nodes.capacity[row, node] if whole else problem.alternatives.demand[alternative, row]
            node_state.opening[row, node] += sign * amount
        touch(node_state, node)
    for row in range(2):
        queue.used[queue.project[job], row] -= sign * nodes * problem.alternatives.demand[alternative, row]


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
    if len(cluster.profiled):
        state[PROFILED] += cluster.profiled[queue.kind[job]]


@compiled
def leave_queue(cluster: Cluster, job: int) -> None:
    """Take a job out of its project's list."""
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
def _finish(cluster: Cluster, number: int, now_s: int) -> None:
    """Take the jobs that have ended from the bucket of this cycle, and give back what they held."""
    jobs, bucket = cluster.jobs, number % BUCKETS
    job = cluster.running[bucket]
    cluster.running[bucket] = NOBODY
    while job != NOBODY:
        after = jobs.next_ending[job]
        if end_of(jobs, job) <= now_s:
            _change(cluster, job, 1)
            cluster.state[RUNNING] -= 1
        else:
            jobs.next_ending[job] = cluster.running[bucket]
            cluster.running[bucket] = job
        job = after


def room_for_cycles(count: int) -> Cycles:
    """Arrays for that many cycles."""
    return Cycles(*(np.empty(count, np.int64) for _ in Cycles._fields))
