"""The compiled passes of Slurm alone: its main pass after events, and its backfill every `bf_interval_s`.

The main pass takes the jobs in the order of their priority. A job that finds no place blocks the nodes that it may use
for all jobs behind it. Submissions and ends ask for a pass (`queue_job_scheduler`). It comes at the begin of one of the
next seconds, `batch_sched_delay_s` after the last one. So the nodes of a job are free from the second after its end on.
With `epilog` they are free at its end, and a pass follows at once (`_slurm_rpc_epilog_complete`).

The backfill goes through the first `bf_max_job_test` jobs in the same order, a fixed time after the last backfill, if
anything has changed since. Each job gets the earliest start at which enough nodes are open to it (module
`booked_time_kernel`): running jobs last until their limits, and what was booked in this pass for jobs before it stays
theirs. If that is now, the job starts. If it is within `bf_window_s`, its nodes are booked from then until its limit,
rounded to `bf_resolution_s`. Bookings last for one pass.

- Slurm books whole nodes, also for a job that needs a part of them only (the node bitmaps of `node_space`).
- Limits are whole minutes, rounded up; a job without one has a year (YEAR_MINUTES).
- A job past its limit is expected to end in the next second (`_guess_job_end`, without KillWait).
- Expected ends are looked at in groups, each as if all its jobs ended with the last of them. The first group lasts
  until FIRST_GROUP_S after the next multiple of FIRST_GROUP_S that follows the first end. Its successors reach twice as
  far each, or `bf_window_linear_s` further (`_future_run_test`). Of the running jobs those count whose nodes the job
  may use. Assumed: that Slurm also leaves out those on nodes that are booked at the time makes no difference.
- Nodes come from the tightest run of neighbouring nodes (module `neighbour_runs_kernel`). Where there are switches,
  they count as everywhere in this project (`regions`): a job on one node gets the node with the fewest idle cores that
  suffice, a job on several the first ones of the list, and lighter nodes come before heavier ones.

Until a job starts, bookings are only added in a pass. So a job has no earlier start than one before it that asked for
the same and was as short: the search begins there, and ends at once where that one found no start. For Q jobs tested, V
changes of what they ask for, N nodes, E parts of running jobs and B bookings a backfill costs O(V (N + E) + Q (N + B)).
The plain twin is `oracles.batch.slurm`.

Source: SchedMD/slurm, `src/plugins/sched/backfill/backfill.c` (commit 008acfac),
`src/plugins/topology/common/eval_nodes.c` (commit 01cec7fa), `src/plugins/select/cons_tres/job_test.c`,
`src/slurmctld/controller.c` (`_slurmctld_background`) and `proc_req.c`; slurm.conf(5).
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.best_node_kernel import find_nodes
from slurm_sns.policies.placement.compiled import compiled, entry_point, inlined, subroutine
from slurm_sns.policies.placement.cycle_kernel import CHOSEN, FIRST_CHOSEN, enter
from slurm_sns.policies.placement.kernel_arrays import (
    ENTRIES,
    MATCH,
    NOBODY,
    Flags,
    Floats,
    Integers,
    Problem,
    Releases,
)
from slurm_sns.policies.placement.node_state_kernel import (
    OPEN,
    CycleNodes,
    node_state_for,
    open_all,
    restart,
    take,
    take_over,
)
from slurm_sns.policies.placement.ready_time_kernel import NodeRoom, earliest_start, node_room, put_lack
from slurm_sns.sim.replay.booked_time_kernel import (
    NEVER_OPEN,
    Bookings,
    book,
    bookings_for,
    cancel_all,
    earliest_opening,
)
from slurm_sns.sim.replay.cluster_state import AGAIN_S, CYCLES, NEVER, NEXT_SUBMIT, RUNNING, WAITING, Cluster, put_down
from slurm_sns.sim.replay.compiled_loop import begin_cycle, dispatch, move_forward, reach_next
from slurm_sns.sim.replay.expected_ends import coming_free, drop_ended, end_if_started, expect_end
from slurm_sns.sim.replay.neighbour_runs_kernel import find_in_runs
from slurm_sns.sim.run import Cycles
from slurm_sns.sim.trace import TraceArrays

#: Of several nodes the first of the list, of one the tightest: heuristics of the portfolio, by their places in it.
SLURM_HEURISTICS = ("best-fit-cores", "first-fit")
ONE_NODE, SEVERAL_NODES = range(2)

#: Slurm's limits are whole minutes; no limit is a year (YEAR_SECONDS).
LIMIT_UNIT_S = 60
YEAR_S = 365 * 24 * 60 * 60
#: All jobs are in the list of one project: Slurm's order is the priority alone.
ALL = 0

#: The length of the first group of expected ends, and what its begin is a multiple of (`_future_run_test`).
FIRST_GROUP_S = 30.0

#: The parts of `Planner.state`: the parameters of the backfill; when it may run again; whether anything has changed
#: since it ran; the numbers of passes, and of starts in all of them, which date what is known.
INTERVAL_S, MOST_TESTS, WINDOW_S, RESOLUTION_S, DUE_S, CHANGED, PASSES, STARTS = range(8)
#: What groups of expected ends grow by; the parameters of the main pass; when it will run (NEVER: nobody has asked for
#: it), and when it ran last because somebody had.
GROWTH_S, DELAY_S, EPILOG, MAIN_DUE_S, MAIN_LAST_S = range(8, 13)


class Memory(NamedTuple):
    """What a backfill knows of the alternatives that it has looked for, W in number."""

    passed: Integers  #: (W) the pass in which it was last looked for
    length_s: Integers  #: (W) how long that job was
    start_s: Integers  #: (W) its start, or NEVER_OPEN
    ready: Integers  #: (2) of which alternative, and after how many starts, the ready times are


class Planner(NamedTuple):
    """What the passes know beside the cluster."""

    priority: Integers  #: (J, or none where all jobs are equal) the larger, the earlier
    later: CycleNodes  #: what will be free on the nodes that are open to a job
    free: Integers  #: (R, N) scratch
    room: NodeRoom  #: when nodes are ready for an alternative
    bookings: Bookings
    memory: Memory
    blocked: Flags  #: (sets of allowed nodes) jobs of the set are blocked in this pass
    state: Integers


def limits_of(trace: TraceArrays) -> Floats:
    """The limits as Slurm keeps them, in whole minutes; a year where there is none."""
    limit_s = np.ceil(trace.expected.astype(np.float64) / LIMIT_UNIT_S) * LIMIT_UNIT_S
    limit_s[limit_s <= 0] = YEAR_S
    return limit_s


def planner_for(cluster: Cluster, trace: TraceArrays, parameters: SlurmParameters) -> Planner:
    """The working memory of the passes before anything has happened."""
    problem = cluster.bench.node_state.problem
    alternatives, (resources, nodes) = problem.alternatives, problem.nodes.capacity.shape
    tests = min(parameters.bf_max_job_test, len(trace))
    of_node = 2 + parameters.bf_window_s // parameters.bf_resolution_s  # bookings of a node do not overlap
    later = node_state_for(problem)
    open_all(later)
    count = len(alternatives.nodes)
    return Planner(
        priority=trace.priority.astype(np.int64),
        later=later,
        free=np.empty((resources, nodes), np.int64),
        room=node_room(np.empty((resources, nodes), np.int64), np.empty(nodes, np.int64)),
        bookings=bookings_for(nodes, min(tests * int(alternatives.nodes.max()), nodes * of_node)),
        memory=Memory(
            passed=np.zeros(count, np.int64),
            length_s=np.zeros(count, np.int64),
            start_s=np.zeros(count, np.int64),
            ready=np.full(2, NOBODY, np.int64),
        ),
        blocked=np.zeros(len(problem.nodes.allowed), np.bool_),
        state=np.array(
            [
                parameters.bf_interval_s,
                parameters.bf_max_job_test,
                parameters.bf_window_s,
                parameters.bf_resolution_s,
                *(-NEVER, 0, 0, 0),
                parameters.bf_window_linear_s,
                parameters.batch_sched_delay_s,
                parameters.epilog,
                *(NEVER, -NEVER),
            ],
            np.int64,
        ),
    )


@entry_point
def advance_as_slurm(cluster: Cluster, planner: Planner, cycles: Cycles, interval_s: int) -> bool:
    """Replay until `cycles` is full or no event is left; return whether events are left."""
    state = cluster.state
    state[CYCLES] = 0
    while state[CYCLES] < len(cycles.time_s):
        first_new, running, waited = state[NEXT_SUBMIT], state[RUNNING], state[WAITING] > 0
        number = reach_next(cluster, interval_s)
        if number == NEVER:
            return False
        if len(planner.priority):
            for job in range(first_new, state[NEXT_SUBMIT]):
                move_forward(cluster, planner.priority, job)
        has_ended = state[RUNNING] < running
        if not waited and planner.state[MAIN_DUE_S] < number * interval_s:
            planner.state[MAIN_LAST_S] = planner.state[MAIN_DUE_S]
            planner.state[MAIN_DUE_S] = NEVER
        _ask_for_main_pass(planner.state, state[NEXT_SUBMIT] > first_new, has_ended, number * interval_s)
        if begin_cycle(cluster, cycles, number, interval_s):
            _run_passes(cluster, planner, cycles, has_ended and planner.state[EPILOG] == 1, interval_s)
    return True


@subroutine
def _ask_for_main_pass(state: Integers, is_submitted: bool, has_ended: bool, now_s: int) -> None:
    """Let submissions and ends have the main pass run, at the begin of a later second than that of a submission."""
    if not (is_submitted or has_ended):
        return
    state[CHANGED] = 1
    soonest_s = now_s if has_ended and not state[EPILOG] else now_s + 1
    if is_submitted or not state[EPILOG]:
        state[MAIN_DUE_S] = min(state[MAIN_DUE_S], max(soonest_s, state[MAIN_LAST_S] + state[DELAY_S]))


@inlined
def _run_passes(cluster: Cluster, planner: Planner, cycles: Cycles, at_once: bool, interval_s: int) -> None:
    """The main pass if it is due or shall run at once, then the backfill if it is due.

    The loop comes again when one of them will be due.
    """
    at, state = cluster.state[CYCLES] - 1, planner.state
    now_s = cycles.time_s[at]
    drop_ended(cluster.jobs, cluster.expected, now_s)
    if state[MAIN_DUE_S] <= now_s:
        state[MAIN_LAST_S] = now_s
        state[MAIN_DUE_S] = NEVER
        at_once = True
    if at_once:
        _begin_pass(cluster)
        _go_through_queue(cluster, planner, now_s)
        _end_pass(cluster, cycles, interval_s)
    if cluster.state[WAITING] == 0:
        return
    if cycles.started[at] > 0:
        state[CHANGED] = 1
    if state[DUE_S] <= now_s and state[CHANGED]:
        started = cycles.started[at]
        _begin_pass(cluster)
        _backfill(cluster, planner, now_s)
        _end_pass(cluster, cycles, interval_s)
        # Behind the jobs that were tested others may start as soon as these have left the queue.
        state[CHANGED] = cycles.started[at] > 0
        state[DUE_S] = now_s + state[INTERVAL_S]
        cycles.started[at] += started
    if cluster.state[WAITING] > 0:
        cluster.state[AGAIN_S] = min(state[MAIN_DUE_S], state[DUE_S] if state[CHANGED] else NEVER)


@subroutine
def _begin_pass(cluster: Cluster) -> None:
    restart(cluster.bench.node_state)
    cluster.bench.matches[0].totals[:] = 0


@subroutine
def _end_pass(cluster: Cluster, cycles: Cycles, interval_s: int) -> None:
    """Let the jobs run that were started in the pass."""
    dispatch(cluster, cycles, NOBODY, 0, interval_s)


@inlined
def _go_through_queue(cluster: Cluster, planner: Planner, now_s: int) -> None:
    """The main pass."""
    nodes, queue = cluster.bench.node_state, cluster.queue
    alternatives, kinds = nodes.problem.alternatives, nodes.problem.kinds
    planner.blocked[:] = False
    job = queue.head[ALL]
    while job != NOBODY and nodes.state[OPEN] > 0:
        alternative = kinds.alternative[kinds.first[queue.kind[job]]]
        allowed = alternatives.allowed[alternative]
        if allowed == NOBODY or not planner.blocked[allowed]:
            first = _find(nodes, alternative)
            if first != NOBODY:
                _start(cluster, planner, job, first, now_s)
            elif allowed == NOBODY:
                break
            else:
                planner.blocked[allowed] = True
                for node in range(len(nodes.is_open)):
                    if nodes.problem.nodes.allowed[allowed, node] and nodes.is_open[node]:
                        take(nodes, alternative, True, node)
        job = queue.following[job]


@subroutine
def _find(nodes: CycleNodes, alternative: int) -> int:
    """Where the alternative's nodes begin in `nodes.chosen`; NOBODY if it finds no place."""
    problem = nodes.problem
    if problem.nodes.switch.shape[0] == 0:
        return find_in_runs(nodes, alternative)
    heuristic = problem.limits.portfolio[SEVERAL_NODES if problem.alternatives.nodes[alternative] > 1 else ONE_NODE]
    return find_nodes(nodes, problem.scores.of[heuristic, problem.alternatives.case[alternative]], alternative)


@subroutine
def _start(cluster: Cluster, planner: Planner, job: int, first: int, now_s: int) -> None:
    """Start a job on the nodes that are in the bench's `chosen` from `first` on."""
    bench, kinds = cluster.bench, cluster.bench.node_state.problem.kinds
    choice = kinds.first[cluster.queue.kind[job]]
    bench.state[FIRST_CHOSEN] = first
    bench.state[CHOSEN] = bench.node_state.problem.alternatives.nodes[kinds.alternative[choice]]
    matches = bench.matches[0]
    enter(bench, matches, job, choice, MATCH)
    put_down(cluster.jobs, matches, matches.totals[ENTRIES] - 1, 0)
    expect_end(cluster.expected, job, end_if_started(cluster.expected, job, choice, now_s))
    planner.state[STARTS] += 1


# --- backfill


@inlined
def _backfill(cluster: Cluster, planner: Planner, now_s: int) -> None:
    """Start the jobs whose earliest start is now, and book nodes for the others."""
    queue, kinds, state = cluster.queue, cluster.bench.node_state.problem.kinds, planner.state
    state[PASSES] += 1
    cancel_all(planner.bookings)
    job, tests = queue.head[ALL], 0
    while job != NOBODY and tests < state[MOST_TESTS]:
        alternative = kinds.alternative[kinds.first[queue.kind[job]]]
        if _earliest_start(cluster, planner, job, alternative, now_s) != NEVER_OPEN:
            _start_or_book(cluster, planner, job, alternative, now_s)
        job = queue.following[job]
        tests += 1


@subroutine
def _earliest_start(cluster: Cluster, planner: Planner, job: int, alternative: int, now_s: int) -> int:
    """When the job can start; NEVER_OPEN if that is behind the window."""
    memory, room, state = planner.memory, planner.room, planner.state
    problem = cluster.bench.node_state.problem
    length_s = int(cluster.expected.run_s[job])
    from_s = now_s
    if memory.passed[alternative] == state[PASSES] and memory.length_s[alternative] <= length_s:
        from_s = memory.start_s[alternative]
        if from_s == NEVER_OPEN:
            return from_s
    if (
        memory.ready[0] != alternative
        or memory.ready[1] != state[STARTS]
        or state[PASSES] != memory.passed[alternative]
    ):
        put_lack(room, problem, cluster.bench.node_state.free, alternative)
        coming = _coming(cluster, planner, alternative, now_s)
        earliest_start(room, len(room.part) + 1, coming, float(now_s))  # so many are never ready: all are looked at
        memory.ready[0] = alternative
        memory.ready[1] = state[STARTS]
    start_s = earliest_opening(room, planner.bookings, problem.alternatives.nodes[alternative], length_s, from_s)
    if start_s > now_s + state[WINDOW_S]:
        start_s = NEVER_OPEN
    memory.passed[alternative] = state[PASSES]
    memory.length_s[alternative] = length_s
    memory.start_s[alternative] = start_s
    return start_s


@subroutine
def _coming(cluster: Cluster, planner: Planner, alternative: int, now_s: int) -> Releases:
    """What running jobs give back within the window, in the groups in which Slurm looks at them."""
    latest_s = float(now_s + planner.state[WINDOW_S])
    coming = coming_free(cluster, float(now_s + 1), latest_s)
    problem = cluster.bench.node_state.problem
    _group(coming, problem, problem.alternatives.allowed[alternative], float(planner.state[GROWTH_S]))
    return coming


@compiled
def _group(coming: Releases, problem: Problem, allowed: int, growth_s: float) -> None:
    """Let all of a group be given back when the last of it is that a job on these nodes may use."""
    end_s = coming.end_s
    first, base_s, length_s, last_s = 0, 0.0, FIRST_GROUP_S, 0.0
    for at in range(len(end_s)):
        if allowed != NOBODY and not problem.nodes.allowed[allowed, coming.node[at]]:
            continue
        now_s = end_s[at]
        if base_s == 0:
            base_s = now_s - now_s % FIRST_GROUP_S + FIRST_GROUP_S
        elif now_s > base_s + length_s:
            end_s[first:at] = last_s
            first = at
            while now_s > base_s + length_s:
                length_s += growth_s if growth_s > 0 else length_s
        last_s = now_s
    if base_s > 0:
        end_s[first:] = last_s


@subroutine
def _start_or_book(cluster: Cluster, planner: Planner, job: int, alternative: int, now_s: int) -> None:
    """Choose nodes of those that are open to the job at its start, and start it there or book them."""
    later, bench, bookings, state = planner.later, cluster.bench, planner.bookings, planner.state
    start_s = planner.memory.start_s[alternative]
    _show_open(cluster, planner, alternative, start_s, now_s)
    first = _find(later, alternative)
    if first == NOBODY:
        return
    count = later.problem.alternatives.nodes[alternative]
    if start_s == now_s:
        for at in range(count):
            bench.node_state.chosen[at] = later.chosen[first + at]
        _start(cluster, planner, job, 0, now_s)
        state[PASSES] += 1  # groups of expected ends are others now, and some may end sooner
        return
    begin_s = start_s // state[RESOLUTION_S] * state[RESOLUTION_S]
    length_s = int(cluster.expected.run_s[job])
    end_s = -(-(start_s + length_s) // state[RESOLUTION_S]) * state[RESOLUTION_S]
    for at in range(count):
        book(bookings, later.chosen[first + at], begin_s, end_s)


@compiled
def _show_open(cluster: Cluster, planner: Planner, alternative: int, start_s: int, now_s: int) -> None:
    """Let `later` be what is free at that moment on the nodes that are open to the job; nothing on the others."""
    free, open_s, now = planner.free, planner.bookings.open_s, cluster.bench.node_state.free
    for row in range(free.shape[0]):
        for node in range(free.shape[1]):
            free[row, node] = now[row, node] if open_s[node] == start_s else 0
    if start_s > now_s:
        coming = _coming(cluster, planner, alternative, now_s)
        for at in range(len(coming.end_s)):
            node = coming.node[at]
            if coming.end_s[at] <= start_s and open_s[node] == start_s:
                for row in range(free.shape[0]):
                    free[row, node] += coming.amount[at, row]
    take_over(planner.later, free)
    restart(planner.later)
