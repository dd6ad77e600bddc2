"""The look-ahead kernel: passes of the live policy over what is running and waiting now, until jobs have started.

Each pass is that of the policy (`compete`). What it starts holds its nodes until its expected end, and the next pass
comes with the next end. Nothing is submitted meanwhile. As in a replay, ends come first at one moment and a pass
follows; after a pass that started a job another one comes as soon as possible, because another member of the portfolio
may match more then. Passes are at whole multiples of the interval, as cycles are.

So that a look ahead is short, passes are coarsened: they are `LEAST_STEP_S` apart at least, and `STEP_SHARE` of the
time that they look ahead. Without either the result is that of a replay of these jobs with these run times.

The thread that calls `look_ahead` gives Python's lock away for the time of the call, so the scheduler's cycle goes on
beside it. For P passes, J jobs, N nodes and E ends it costs P times a pass, and O(N + E log E).
"""

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

from numba import njit

from slurm_sns.policies.placement.compiled import OPTIONS, compiled, inlined
from slurm_sns.policies.placement.cycle_kernel import Bench
from slurm_sns.policies.placement.kernel_arrays import (
    ENTRIES,
    MATCH,
    MATCHED,
    NOBODY,
    Flags,
    Floats,
    Integers,
    Matches,
    Queue,
    Releases,
    Small,
    queue_at,
)
from slurm_sns.policies.placement.node_state_kernel import take_over, touch
from slurm_sns.policies.placement.portfolio_kernel import compete

#: The parts of `moment`: the time of the next pass, when the look ahead began, how far it goes, and how far
#: passes are apart at least: in seconds, as a share of the time looked ahead, and the interval of cycles.
TIME_S, NOW_S, LATEST_S, LEAST_STEP_S, STEP_SHARE, INTERVAL_S = range(6)
#: The parts of `state`: whether it has begun; how many ends are in the heap; how many wanted jobs have not
#: started; the over-aged jobs that wait; the next job that may become over-aged; how many jobs with a profile wait; how
#: many passes there were; whether only the first job of the queue may be over-aged; whether withholding ends for some.
BEGUN, HEAPED, WANTED, AGED, NEXT_AGED, PROFILED, PASSES, HEAD_ONLY, ENDS_WITHHOLDING = range(9)
#: How many jobs are in `LimitedJobs.running`.
LIMITED = 9
STATES = 10


class Holders(NamedTuple):
    """What holds nodes when the look ahead begins, A in number: active jobs, then nodes where a job is completing.

    With what is free then, their parts are never more than a node has.
    """

    first: Integers  #: (A + 1) where the parts begin
    node: Integers  #: (parts) the column of the node
    amount: Integers  #: (parts, R) what each part gives back
    project: Integers  #: (A) the row of the project in the queue, or NOBODY


class LimitedJobs(NamedTuple):
    """When the jobs that have nodes end at the latest, as in `waits_for`; of use only under the rule `until_start`.

    The policy plans by limits, whenever jobs end.
    """

    end_s: Floats  #: (A + J)
    running: Integers  #: (A + J) those that have nodes, by these ends
    coming: Releases  #: what they give back; scratch


class LookAheadState(NamedTuple):
    """A look ahead: what changes while it runs, and what it finds out (`start_s`, `spread`, `waits_for`)."""

    bench: Bench
    queue: Queue
    free: Integers  #: (R, N) what is free at its begin
    holders: Holders
    run_s: Floats  #: (J) the expected run time in an alternative of slowdown 1; infinite if it is not known
    slowdown: Floats  #: (choices)
    over_aged_s: Floats  #: (J) from when on the job is over-aged; infinite: never
    ageing: Integers  #: (J) the jobs in the order of `over_aged_s`
    withhold_until_s: Floats  #: (J) until when capacity may be withheld for the job
    profiled: Flags  #: (kinds) the kind's jobs have a profile
    wanted: Flags  #: (J) the look ahead is over when these have started
    previous: Small  #: (J) the job before it in its project's list, or NOBODY
    is_aged: Flags  #: (J) it is in the list of over-aged jobs
    aged: Integers  #: (J) the over-aged jobs that wait, oldest first
    start_s: Floats  #: (J) infinite until it has started
    choice: Integers  #: (J) the choice in which it has started
    place: Integers  #: (J + 1) where its nodes begin in `spread`
    spread: Small
    waits_for: Integers  #: (J) whose end it waited for: a row of `holders`, A plus a job, or NOBODY
    last: Integers  #: (N) who has given the node back last, as in `waits_for`
    last_s: Floats  #: (N) and when
    heap_s: Floats  #: (A + J) the ends to come, a binary heap
    heap: Integers  #: (A + J) whose they are
    limited: LimitedJobs
    moment: Floats  #: TIME_S and the others above
    state: Integers  #: (STATES)


def unlocked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that Python calls, which lets other threads run Python meanwhile (`compiled.entry_point`)."""
    try:
        made: Callable[..., Any] = njit(function, **OPTIONS, nogil=True, cache=True)
    except RuntimeError:  # no cache directory is writable: compile in each process
        made = njit(function, **OPTIONS, nogil=True)
    return made


@unlocked
def look_ahead(ahead: LookAheadState, most_passes: int) -> bool:
    """Go on for at most so many passes; return whether there is more to find out."""
    state = ahead.state
    if not state[BEGUN]:
        take_over(ahead.bench.node_state, ahead.free)
        state[BEGUN] = 1
    for _ in range(most_passes):
        started = _pass(ahead)
        if state[WANTED] == 0 or not _reach_next(ahead, started):
            return False
    return True


@inlined
def _pass(ahead: LookAheadState) -> int:
    """One pass of the policy; return how many jobs it has started."""
    bench, queue, state = ahead.bench, ahead.queue, ahead.state
    now_s = ahead.moment[TIME_S]
    state[PASSES] += 1
    _age(ahead, now_s)
    if state[ENDS_WITHHOLDING]:
        for job in range(len(ahead.run_s)):
            if now_s > ahead.withhold_until_s[job] and not ahead.is_aged[job]:
                queue.withholds[job] = False
    with_aged = queue_at(queue, ahead.aged[: state[AGED]], now_s, _coming_free(ahead, now_s))
    _, kept, _ = compete(bench, with_aged, state[PROFILED] > 0)
    matches = bench.matches[kept]
    for entry in range(matches.totals[ENTRIES]):
        if matches.kept[entry] == MATCH:
            _start(ahead, matches, entry, now_s)
    _drop_started(ahead)
    return int(matches.totals[MATCHED])


@compiled
def _reach_next(ahead: LookAheadState, started: int) -> bool:
    """Go to the next pass, and give back what has ended by then; False if there is none up to the latest moment."""
    moment, state = ahead.moment, ahead.state
    next_s = ahead.heap_s[0] if state[HEAPED] > 0 else inf
    if started > 0:
        next_s = min(next_s, moment[TIME_S] + 1)
    if next_s == inf:
        return False
    step_s = max(moment[LEAST_STEP_S], moment[STEP_SHARE] * (moment[TIME_S] - moment[NOW_S]))
    next_s = max(next_s, moment[TIME_S] + step_s)
    interval_s = moment[INTERVAL_S]
    next_s = -(-next_s // interval_s) * interval_s
    if next_s > moment[LATEST_S]:
        return False
    moment[TIME_S] = next_s
    while state[HEAPED] > 0 and ahead.heap_s[0] <= next_s:
        end_s = ahead.heap_s[0]
        _give_back(ahead, _pop(ahead), end_s)
    return True


# --- limits


@compiled
def _coming_free(ahead: LookAheadState, now_s: float) -> Releases:
    """What the jobs that have nodes give back at their limits; overdue ones now."""
    limited, holders = ahead.limited, ahead.holders
    coming, count, to = limited.coming, len(holders.project), 0
    problem = ahead.bench.node_state.problem
    alternatives, capacity = problem.alternatives, problem.nodes.capacity
    for at in range(ahead.state[LIMITED]):
        whose = limited.running[at]
        job, alternative = whose - count, 0
        if job >= 0:
            alternative = problem.kinds.alternative[ahead.choice[job]]
            first, end = ahead.place[job], ahead.place[job] + alternatives.nodes[alternative]
        else:
            first, end = holders.first[whose], holders.first[whose + 1]
        for part in range(first, end):
            node = ahead.spread[part] if job >= 0 else holders.node[part]
            coming.end_s[to], coming.node[to] = max(limited.end_s[whose], now_s), node
            for row in range(capacity.shape[0]):
                amount = holders.amount[part, row] if job < 0 else alternatives.demand[alternative, row]
                if job >= 0 and alternatives.exclusive[alternative]:
                    amount = capacity[row, node]
                coming.amount[to, row] = amount
            to += 1
    return Releases(coming.end_s[:to], coming.node[:to], coming.amount[:to])


@compiled
def _hold(ahead: LookAheadState, whose: int, end_s: float) -> None:
    """Add one that has nodes until then at the latest."""
    limited, at = ahead.limited, ahead.state[LIMITED]
    limited.end_s[whose] = end_s
    while at > 0 and limited.end_s[limited.running[at - 1]] > end_s:
        limited.running[at] = limited.running[at - 1]
        at -= 1
    limited.running[at] = whose
    ahead.state[LIMITED] += 1


@compiled
def _let_go(ahead: LookAheadState, whose: int) -> None:
    """Take out one that has nodes no more."""
    running, kept = ahead.limited.running, 0
    for at in range(ahead.state[LIMITED]):
        if running[at] != whose:
            running[kept] = running[at]
            kept += 1
    ahead.state[LIMITED] = kept


# --- over-aged jobs


@compiled
def _age(ahead: LookAheadState, now_s: float) -> None:
    """Put the jobs that are over-aged now at the end of their list, oldest first."""
    state, queue = ahead.state, ahead.queue
    if state[HEAD_ONLY]:
        job = queue.head[0] if len(queue.head) else NOBODY
        if state[AGED] == 0 and job != NOBODY and ahead.over_aged_s[job] < now_s:
            _let_age(ahead, job)
        return
    while state[NEXT_AGED] < len(ahead.ageing):
        job = ahead.ageing[state[NEXT_AGED]]
        if ahead.over_aged_s[job] >= now_s:
            break
        if ahead.start_s[job] == inf and not ahead.is_aged[job]:
            _let_age(ahead, job)
        state[NEXT_AGED] += 1


@compiled
def _let_age(ahead: LookAheadState, job: int) -> None:
    _leave_queue(ahead, job)
    ahead.queue.withholds[job] = True
    ahead.is_aged[job] = True
    ahead.aged[ahead.state[AGED]] = job
    ahead.state[AGED] += 1


@compiled
def _drop_started(ahead: LookAheadState) -> None:
    """Take the jobs that have started from the list of over-aged ones."""
    kept = 0
    for at in range(ahead.state[AGED]):
        job = ahead.aged[at]
        if ahead.start_s[job] == inf:
            ahead.aged[kept] = job
            kept += 1
    ahead.state[AGED] = kept


@compiled
def _leave_queue(ahead: LookAheadState, job: int) -> None:
    """Take a job out of its project's list."""
    queue, before, after = ahead.queue, ahead.previous[job], ahead.queue.following[job]
    if before == NOBODY:
        queue.head[queue.project[job]] = after
    else:
        queue.following[before] = after
    if after != NOBODY:
        ahead.previous[after] = before


# --- starts and ends


@compiled
def _start(ahead: LookAheadState, matches: Matches, entry: int, now_s: float) -> None:
    """Let the job of this entry hold its nodes until its expected end."""
    job, choice = matches.job[entry], matches.choice[entry]
    first, place = matches.first[entry], ahead.place[job]
    ahead.start_s[job] = now_s
    ahead.choice[job] = choice
    latest_s = -inf
    for at in range(matches.first[entry + 1] - first):
        node = matches.node[first + at]
        ahead.spread[place + at] = node
        if ahead.last[node] != NOBODY and ahead.last_s[node] > latest_s:
            latest_s = ahead.last_s[node]
            ahead.waits_for[job] = ahead.last[node]
    if not ahead.is_aged[job]:
        _leave_queue(ahead, job)
    if ahead.wanted[job]:
        ahead.state[WANTED] -= 1
    ahead.state[PROFILED] -= ahead.profiled[ahead.queue.kind[job]]
    _change(ahead, job, -1)
    end_s = now_s + ahead.run_s[job] * ahead.slowdown[choice]
    if end_s < inf:
        _push(ahead, end_s, len(ahead.holders.project) + job)
    if ahead.bench.node_state.problem.limits.until_start:
        _hold(ahead, len(ahead.holders.project) + job, now_s + ahead.queue.run_s[job])


@compiled
def _change(ahead: LookAheadState, job: int, sign: int) -> None:
    """Take what the started job holds (-1) or give it back (1), on its nodes and for its project."""
    node_state, queue = ahead.bench.node_state, ahead.queue
    problem = node_state.problem
    alternatives, capacity = problem.alternatives, problem.nodes.capacity
    alternative = problem.kinds.alternative[ahead.choice[job]]
    nodes, whole = alternatives.nodes[alternative], alternatives.exclusive[alternative]
    for at in range(nodes):
        node = ahead.spread[ahead.place[job] + at]
        for row in range(capacity.shape[0]):
            amount = capacity[row, node] if whole else alternatives.demand[alternative, row]
            node_state.opening[row, node] += sign * amount
        touch(node_state, node)
    project = queue.project[job]
    if project != NOBODY:  # of an over-aged job whose project has no other one waiting
        for row in range(2):
            queue.used[project, row] -= sign * nodes * alternatives.demand[alternative, row]


@compiled
def _give_back(ahead: LookAheadState, whose: int, end_s: float) -> None:
    """Give back what is held until then."""
    holders = ahead.holders
    count = len(holders.project)
    if ahead.state[LIMITED] > 0:
        _let_go(ahead, whose)
    if whose >= count:
        job = whose - count
        _change(ahead, job, 1)
        alternative = ahead.bench.node_state.problem.kinds.alternative[ahead.choice[job]]
        for at in range(ahead.bench.node_state.problem.alternatives.nodes[alternative]):
            _note_end(ahead, ahead.spread[ahead.place[job] + at], whose, end_s)
        return
    node_state, project = ahead.bench.node_state, holders.project[whose]
    capacity = node_state.problem.nodes.capacity
    for at in range(holders.first[whose], holders.first[whose + 1]):
        node = holders.node[at]
        for row in range(capacity.shape[0]):
            node_state.opening[row, node] += holders.amount[at, row]
        touch(node_state, node)
        _note_end(ahead, node, whose, end_s)
        if project != NOBODY:
            for row in range(2):
                ahead.queue.used[project, row] -= holders.amount[at, row]


@compiled
def _note_end(ahead: LookAheadState, node: int, whose: int, end_s: float) -> None:
    ahead.last[node] = whose
    ahead.last_s[node] = end_s


# --- the heap of ends


@compiled
def _push(ahead: LookAheadState, end_s: float, whose: int) -> None:
    heap_s, heap = ahead.heap_s, ahead.heap
    at = ahead.state[HEAPED]
    ahead.state[HEAPED] += 1
    while at > 0 and heap_s[(at - 1) // 2] > end_s:
        heap_s[at] = heap_s[(at - 1) // 2]
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap_s[at] = end_s
    heap[at] = whose


@compiled
def _pop(ahead: LookAheadState) -> int:
    """Take the earliest end; whose it is."""
    heap_s, heap, state = ahead.heap_s, ahead.heap, ahead.state
    whose = heap[0]
    state[HEAPED] -= 1
    count = state[HEAPED]
    end_s, moved, at = heap_s[count], heap[count], 0
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and heap_s[below + 1] < heap_s[below]:
            below += 1
        if heap_s[below] >= end_s:
            break
        heap_s[at] = heap_s[below]
        heap[at] = heap[below]
        at = below
    heap_s[at] = end_s
    heap[at] = moved
    return int(whose)
