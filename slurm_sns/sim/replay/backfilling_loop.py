"""The compiled pass of FCFS and EASY: jobs in queue order, then those behind the head job that do not delay it.

Jobs start in queue order up to the first that finds no place, the head job. FCFS ends there. EASY looks for the head
job's *shadow time*: the earliest expected end of running jobs at which the same way of placing puts it on what will be
free then. A later job that finds a place now starts if it is expected to end by the shadow time, or if the head job
finds a place at the shadow time with this job still running. If the head job then finds none, a place for the later job
is sought once more, outside the head job's place.

- A job without an expected run time starts only if it leaves the head job's place free for ever.
- While the end of a job is not known, its nodes are expected to be free only after all known ends.
- A job that has outlived its expected run time is expected to end at once.
- A job that finds no place even when all running jobs have ended holds back no other: it is no head job.

The head job is looked for only when a later job finds a place. A pass over Q jobs costs O(Q), and one search for nodes
for each alternative in question. The head job costs one sweep over the running jobs' ends for each alternative (module
`ready_time_kernel`) and a search; each kind of job that would still run at the shadow time costs O(nodes) and a few
searches.

Source: D. Lifka, The ANL/IBM SP scheduling system, JSSPP 1995; shadow time and extra nodes as in A. Mu'alem and
D. Feitelson, IEEE TPDS 12(6), 2001. FCFS and EASY are the baselines of Dynamic fractional resource scheduling (IPDPS
2010, section IV-B), there with perfect knowledge of run times. The plain twins are in tests/oracles.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from slurm_sns.policies.baselines.expected_times import COINCIDENT_S
from slurm_sns.policies.placement.best_node_kernel import find_nodes
from slurm_sns.policies.placement.compiled import compiled, entry_point, inlined, subroutine
from slurm_sns.policies.placement.cycle_kernel import (
    CHOSEN,
    FIRST_CHOSEN,
    Bench,
    enter,
    held_by_last,
    heuristic_of,
)
from slurm_sns.policies.placement.failures_kernel import WALK, fail, forget, must_fail
from slurm_sns.policies.placement.fair_order_kernel import SHARED, begin, charge, job_at, line_up
from slurm_sns.policies.placement.kernel_arrays import (
    ENTRIES,
    MATCH,
    NOBODY,
    Floats,
    Integers,
    Matches,
    Releases,
)
from slurm_sns.policies.placement.node_state_kernel import (
    OPEN,
    CycleNodes,
    give,
    node_state_for,
    open_all,
    restart,
    take,
    take_over,
)
from slurm_sns.policies.placement.ready_time_kernel import (
    NodeRoom,
    earliest_start,
    node_room,
    put_lack,
)
from slurm_sns.sim.replay.cluster_state import CYCLES, NEVER, Cluster, node_of_job, put_down
from slurm_sns.sim.replay.compiled_loop import begin_cycle, dispatch, reach_next
from slurm_sns.sim.replay.expected_ends import alternative_of, coming_free, drop_ended, end_if_started, expect_end
from slurm_sns.sim.run import Cycles

#: The algorithms. EASY_EXTRA_NODES starts no job only because it ends before the head job starts.
FCFS, EASY, EASY_EXTRA_NODES = range(3)

#: The parts of `HeadJob.state`: the algorithm, jobs of this pass that found no place before the head job was looked
#: for, the head job and its kind, the size of its place and its choice there, and the number of starts, which dates
#: what failed.
ALGORITHM, BEHIND, HEAD, HEAD_KIND, PLACE, CHOICE, STARTS = range(7)


class HeadJob(NamedTuple):
    """The head job of a pass."""

    behind: Integers  #: (depth) the jobs that found no place before there was a head job, in queue order
    place: Integers  #: (N) its nodes at the shadow time
    shadow_s: Floats  #: (1)
    failed_beside: Integers  #: (K) after how many starts no place beside the head job was found for the kind
    free: Integers  #: (R, N) scratch
    state: Integers


class Backfilling(NamedTuple):
    """What the pass knows beside the cluster."""

    head: HeadJob
    shadow: CycleNodes  #: what will be free at the shadow time
    beside: CycleNodes  #: what is free both now and at the shadow time outside the head job's place
    room: NodeRoom  #: when nodes are ready for the head job; scratch


def backfilling_for(cluster: Cluster, algorithm: int) -> Backfilling:
    """The working memory of the pass before anything has happened."""
    problem = cluster.bench.node_state.problem
    resources, nodes = problem.nodes.capacity.shape
    shadow, beside = node_state_for(problem), node_state_for(problem)
    open_all(shadow)
    open_all(beside)
    state = np.zeros(7, np.int64)
    state[ALGORITHM] = algorithm
    return Backfilling(
        HeadJob(
            behind=np.empty(min(problem.limits.depth, len(cluster.jobs.start_s)), np.int64),
            place=np.empty(nodes, np.int64),
            shadow_s=np.zeros(1, np.float64),
            failed_beside=np.full(len(problem.kinds.own), NOBODY, np.int64),
            free=np.empty(problem.nodes.capacity.shape, np.int64),
            state=state,
        ),
        shadow,
        beside,
        node_room(np.empty((resources, nodes), np.int64), np.empty(nodes, np.int64)),
    )


@entry_point
def advance_in_order(cluster: Cluster, backfilling: Backfilling, cycles: Cycles, interval_s: int) -> bool:
    """Replay until `cycles` is full or no event is left; return whether events are left."""
    state = cluster.state
    state[CYCLES] = 0
    while state[CYCLES] < len(cycles.time_s):
        number = reach_next(cluster, interval_s)
        if number == NEVER:
            return False
        if begin_cycle(cluster, cycles, number, interval_s):
            _run_pass(cluster, backfilling, number * interval_s)
            dispatch(cluster, cycles, NOBODY, 0, interval_s)
    return True


@inlined
def _run_pass(cluster: Cluster, backfilling: Backfilling, now_s: int) -> None:
    """Put the jobs that start into the first entry of the bench's matches; they count as running."""
    bench, queue = cluster.bench, cluster.queue
    begin(bench.turns, queue)
    line_up(bench.turns, queue, bench.node_state.problem.limits.depth)
    if backfilling.head.state[ALGORITHM] != FCFS:
        drop_ended(cluster.jobs, cluster.expected, now_s)
    _start_in_order(cluster, backfilling, bench.matches[0], now_s)


@compiled
def _let_run(cluster: Cluster, backfilling: Backfilling, matches: Matches, entry: int, now_s: int) -> None:
    """Put down where the job of this entry runs, and expect its end where the algorithm looks ahead."""
    kinds, expected = cluster.bench.node_state.problem.kinds, cluster.expected
    job, choice = matches.job[entry], matches.choice[entry]
    put_down(cluster.jobs, matches, entry, choice - kinds.first[cluster.queue.kind[job]])
    if backfilling.head.state[ALGORITHM] != FCFS:
        expect_end(expected, job, end_if_started(expected, job, choice, now_s))


@inlined
def _start_in_order(cluster: Cluster, backfilling: Backfilling, matches: Matches, now_s: int) -> None:
    """Put the jobs that start into `matches`."""
    bench, queue = cluster.bench, cluster.queue
    expected, head = cluster.expected, backfilling.head
    nodes, algorithm = bench.node_state, head.state[ALGORITHM]
    restart(nodes)
    forget(bench.failures)
    matches.totals[:] = 0
    head.state[STARTS] += 1  # what failed in the last pass may succeed now
    head.state[BEHIND] = 0
    head.state[HEAD] = NOBODY
    for position in range(nodes.problem.limits.depth):
        job = job_at(bench.turns, queue, position) if nodes.state[OPEN] > 0 else NOBODY
        if job == NOBODY:
            break
        kind = queue.kind[job]
        choice = _match(bench, kind)
        if choice == NOBODY:
            if algorithm == FCFS:
                break
            if head.state[HEAD] == NOBODY:
                head.behind[head.state[BEHIND]] = job
                head.state[BEHIND] += 1
            continue
        if head.state[BEHIND] > 0 and head.state[HEAD] == NOBODY:
            _look_for_head(cluster, backfilling, now_s)
        if head.state[HEAD] != NOBODY:
            end_s = end_if_started(expected, job, choice, now_s)
            is_in_time = algorithm == EASY and end_s < inf and end_s <= head.shadow_s[0] + COINCIDENT_S
            if not is_in_time:
                choice = _leave_place(bench, backfilling, kind, choice)
            if choice == NOBODY:
                continue
        enter(bench, matches, job, choice, MATCH)
        if bench.turns.state[SHARED]:
            held = held_by_last(nodes, matches, nodes.problem.kinds.alternative[choice])
            charge(bench.turns, queue, job, held, False)
        _let_run(cluster, backfilling, matches, matches.totals[ENTRIES] - 1, now_s)
        head.state[STARTS] += 1


@inlined
def _match(bench: Bench, kind: int) -> int:
    """Choose the nodes of the first choice that fits now; NOBODY if none fits."""
    failures, kinds, alternatives = (
        bench.failures,
        bench.node_state.problem.kinds,
        bench.node_state.problem.alternatives,
    )
    walk = failures.state[WALK]
    if failures.kind[kind] == walk:
        return NOBODY
    is_open = False
    for at in range(kinds.first[kind], kinds.first[kind + 1]):
        is_open |= not must_fail(failures, alternatives, kinds.alternative[at])
    choice = NOBODY
    if is_open:
        choice, bench.state[FIRST_CHOSEN], bench.state[CHOSEN] = _first_place(bench.node_state, kind)
    if choice == NOBODY:
        failures.kind[kind] = walk
        for at in range(kinds.first[kind], kinds.first[kind + 1]):
            if failures.failed[kinds.alternative[at]] != walk:
                fail(failures, alternatives, kinds.alternative[at])
    return choice


@subroutine
def _first_place(node_state: CycleNodes, kind: int) -> tuple[int, int, int]:
    """The first choice of the kind that finds nodes, and where in `chosen` these begin and how many they are."""
    kinds, alternatives = node_state.problem.kinds, node_state.problem.alternatives
    heuristic = heuristic_of(node_state.problem, 0, kind)
    for choice in range(kinds.first[kind], kinds.first[kind + 1]):
        alternative = kinds.alternative[choice]
        score = node_state.problem.scores.of[heuristic, alternatives.case[alternative]]
        first = find_nodes(node_state, score, alternative)
        if first != NOBODY:
            return choice, first, alternatives.nodes[alternative]
    return NOBODY, 0, 0


# --- the head job and its place


@inlined
def _look_for_head(cluster: Cluster, backfilling: Backfilling, now_s: int) -> None:
    """Find the first of the jobs without a place to which some expected end gives one, and the shadow time."""
    head = backfilling.head
    coming = coming_free(cluster, float(now_s), inf)
    for at in range(head.state[BEHIND]):
        head.state[HEAD] = head.behind[at]
        head.state[HEAD_KIND] = cluster.queue.kind[head.behind[at]]
        _show(backfilling.shadow, cluster.bench.node_state.free)
        if _finds_shadow_time(cluster, backfilling, coming, now_s):
            return
    head.state[HEAD] = NOBODY
    head.state[BEHIND] = 0


@subroutine
def _show(node_state: CycleNodes, free: Integers) -> None:
    """Let this be free on the nodes."""
    take_over(node_state, free)
    restart(node_state)


@inlined
def _finds_shadow_time(cluster: Cluster, backfilling: Backfilling, coming: Releases, now_s: int) -> bool:
    """Let running jobs end in `shadow` until the head job finds a place there."""
    expected, head, shadow, room = cluster.expected, backfilling.head, backfilling.shadow, backfilling.room
    kind, problem = head.state[HEAD_KIND], shadow.problem
    start_s = inf
    for choice in range(problem.kinds.first[kind], problem.kinds.first[kind + 1]):
        alternative = problem.kinds.alternative[choice]
        put_lack(room, problem, shadow.free, alternative)
        start_s = min(start_s, earliest_start(room, problem.alternatives.nodes[alternative], coming, float(now_s)))
    head.shadow_s[0] = -inf
    for at in range(expected.number[0]):
        job = expected.running[at]
        end_s = max(expected.end_s[job], float(now_s))
        if head.shadow_s[0] == -inf and end_s + COINCIDENT_S >= start_s:
            head.shadow_s[0] = end_s
        elif head.shadow_s[0] > -inf and end_s > head.shadow_s[0] + COINCIDENT_S:
            break
        _end_in_shadow(cluster, shadow, job)
    return head.shadow_s[0] > -inf and _finds_place(head, shadow)


@compiled
def _end_in_shadow(cluster: Cluster, shadow: CycleNodes, job: int) -> None:
    """Free what the job holds."""
    alternative, alternatives = alternative_of(cluster, job), shadow.problem.alternatives
    nodes = alternatives.nodes[alternative]
    for at in range(nodes):
        give(shadow, alternative, alternatives.exclusive[alternative], node_of_job(cluster.jobs, job, nodes, at))


@compiled
def _finds_place(head: HeadJob, shadow: CycleNodes) -> bool:
    """Whether the head job finds a place at the shadow time; it is put into `head`."""
    choice, first, count = _first_place(shadow, head.state[HEAD_KIND])
    if choice == NOBODY:
        return False
    head.state[CHOICE] = choice
    head.state[PLACE] = count
    for at in range(count):
        head.place[at] = shadow.chosen[first + at]
    return True


# --- jobs that still run at the shadow time


@inlined
def _leave_place(bench: Bench, backfilling: Backfilling, kind: int, choice: int) -> int:
    """Choose nodes for a job that still runs at the shadow time; NOBODY if the head job would find no place then.

    The job has found nodes in this choice; it keeps them if the head job finds others. Otherwise its nodes are sought
    outside the head job's place. The job and the head job then have their places in `shadow`.
    """
    chosen, (head, shadow, beside, _) = bench.node_state.chosen, backfilling
    if head.failed_beside[kind] == head.state[STARTS]:
        return NOBODY
    for is_second in range(2):
        if is_second:
            _change_chosen(shadow, chosen, bench.state, choice, -1)
            _put_free_beside(head, shadow, bench.node_state.free)
            _show(beside, head.free)
            choice, first, count = _first_place(beside, kind)
            if choice == NOBODY:
                break
            for at in range(count):
                chosen[at] = beside.chosen[first + at]
            bench.state[FIRST_CHOSEN], bench.state[CHOSEN] = 0, count
        _change_chosen(shadow, chosen, bench.state, choice, 1)
        if _finds_place(head, shadow):
            return choice
    head.failed_beside[kind] = head.state[STARTS]
    return NOBODY


@compiled
def _change_chosen(shadow: CycleNodes, chosen: Integers, state: Integers, choice: int, sign: int) -> None:
    """Take the nodes that the bench has chosen (1), or give them back (-1); `state` is that of the bench."""
    alternative = shadow.problem.kinds.alternative[choice]
    whole = shadow.problem.alternatives.exclusive[alternative]
    for at in range(state[CHOSEN]):
        node = chosen[state[FIRST_CHOSEN] + at]
        if sign > 0:
            take(shadow, alternative, whole, node)
        else:
            give(shadow, alternative, whole, node)


@compiled
def _put_free_beside(head: HeadJob, shadow: CycleNodes, free: Integers) -> None:
    """Put into `head.free` what is free both now and at the shadow time outside the head job's place."""
    problem = shadow.problem
    alternative = problem.kinds.alternative[head.state[CHOICE]]
    whole = problem.alternatives.exclusive[alternative]
    for row in range(free.shape[0]):
        for node in range(free.shape[1]):
            head.free[row, node] = shadow.free[row, node]
        for at in range(head.state[PLACE]):
            node = head.place[at]
            amount = problem.nodes.capacity[row, node] if whole else problem.alternatives.demand[alternative, row]
            head.free[row, node] -= amount
        for node in range(free.shape[1]):
            head.free[row, node] = min(head.free[row, node], free[row, node])
