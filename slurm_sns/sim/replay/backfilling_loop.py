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

The head job is looked for only when a later job finds a place. With Q jobs looked at, R running and N nodes a pass
costs O(Q + N + R), beside the searches for nodes: one for each alternative in question, and a few for each job that is
backfilled.

Source: D. Lifka, The ANL/IBM SP scheduling system, JSSPP 1995; shadow time and extra nodes as in A. Mu'alem and
D. Feitelson, IEEE TPDS 12(6), 2001. FCFS and EASY are the baselines of Dynamic fractional resource scheduling (IPDPS
2010, section IV-B), there with perfect knowledge of run times. The plain twins are in tests/oracles.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from slurm_sns.policies.baselines.expected_times import COINCIDENT_S
from slurm_sns.policies.placement.best_node_kernel import find_nodes
from slurm_sns.policies.placement.compiled import compiled, entry_point, subroutine
from slurm_sns.policies.placement.cycle_kernel import (
    CHOSEN,
    FAILURES,
    FIRST_CHOSEN,
    RUN,
    Bench,
    enter,
    fail,
    held_by_last,
    heuristic_of,
    must_fail,
)
from slurm_sns.policies.placement.fair_order_kernel import SHARED, begin, charge, job_at, line_up
from slurm_sns.policies.placement.kernel_arrays import ENTRIES, MATCH, NOBODY, Floats, Integers
from slurm_sns.policies.placement.node_arrays import CORES
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
from slurm_sns.sim.replay.compiled_loop import (
    CYCLES,
    NEVER,
    Cluster,
    Jobs,
    begin_cycle,
    dispatch,
    end_of,
    node_of_job,
    put_down,
    reach_next,
)
from slurm_sns.sim.results.run import Cycles
from slurm_sns.sim.traces.trace_arrays import TraceArrays

#: The algorithms. EASY_EXTRA_NODES starts no job only because it ends before the head job starts.
FCFS, EASY, EASY_EXTRA_NODES = range(3)

#: The parts of `Backfilling.state`: the algorithm, running jobs, jobs of this pass that found no place before the head
#: job was looked for, the head job, the size of its place, and the number of starts so far, which dates what failed.
ALGORITHM, RUNNING, BEHIND, HEAD, PLACE, STARTS = range(6)


class Backfilling(NamedTuple):
    """What the pass knows beside the cluster. `head_of` and `shadow_s` are those of the last head job."""

    expected_s: Floats  #: (J) the expected run time in an alternative of slowdown 1; infinite if nothing is known
    slowdown: Floats  #: (choices)
    expected_end_s: Floats  #: (J) of a running job
    running: Integers  #: (cores of all nodes) the running jobs by expected end
    behind: Integers  #: (depth) the jobs that found no place before there was a head job, in queue order
    shadow: CycleNodes  #: what will be free at the shadow time
    beside: CycleNodes  #: what is free both now and at the shadow time outside the head job's place
    free: Integers  #: (R, N) scratch
    place: Integers  #: (N) the head job's nodes at the shadow time
    choice: Integers  #: (1) the choice in which it is there
    failed_beside: Integers  #: (K) after how many starts no place beside the head job was found for the kind
    shadow_s: Floats  #: (1)
    state: Integers


def backfilling_for(cluster: Cluster, records: TraceArrays, algorithm: int) -> Backfilling:
    """The working memory of the pass before anything has happened."""
    problem = cluster.bench.node_state.problem
    count, nodes = len(records), problem.nodes.capacity.shape[1]
    expected_s = records.expected_s.astype(np.float64)
    expected_s[expected_s <= 0] = inf
    shadow, beside = node_state_for(problem), node_state_for(problem)
    open_all(shadow)
    open_all(beside)
    state = np.zeros(6, np.int64)
    state[ALGORITHM] = algorithm
    return Backfilling(
        expected_s=expected_s,
        slowdown=np.array([each.slowdown for of_kind in records.choices for each in of_kind], np.float64),
        expected_end_s=np.empty(count, np.float64),
        running=np.empty(min(count, int(problem.nodes.capacity[0].sum())), np.int64),
        behind=np.empty(min(problem.limits.depth, count), np.int64),
        shadow=shadow,
        beside=beside,
        free=np.empty(problem.nodes.capacity.shape, np.int64),
        place=np.empty(nodes, np.int64),
        choice=np.zeros(1, np.int64),
        failed_beside=np.full(len(problem.kinds.own), NOBODY, np.int64),
        shadow_s=np.zeros(1, np.float64),
        state=state,
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
            _start_in_order(cluster, backfilling, number * interval_s)
            dispatch(cluster, cycles, NOBODY, 0, interval_s)
    return True


@compiled
def _start_in_order(cluster: Cluster, of: Backfilling, now_s: int) -> None:
    """Put the jobs that start into the first of the bench's matches."""
    bench, queue = cluster.bench, cluster.queue
    depth = bench.node_state.problem.limits.depth
    begin(bench.turns, queue)
    line_up(bench.turns, queue, depth)
    restart(bench.node_state)
    bench.state[FAILURES] = 0
    bench.state[RUN] += 1
    bench.matches[0].totals[:] = 0
    if of.state[ALGORITHM] != FCFS:
        _drop_ended(cluster.jobs, of, now_s)
    of.state[STARTS] += 1  # what failed in the last pass may succeed now
    of.state[BEHIND] = 0
    of.state[HEAD] = NOBODY
    for position in range(depth):
        if bench.node_state.state[OPEN] == 0:
            break
        job = job_at(bench.turns, queue, position)
        if job == NOBODY:
            break
        kind = queue.kind[job]
        choice = _match(bench, kind)
        if choice == NOBODY:
            if of.state[ALGORITHM] == FCFS:
                break
            if of.state[HEAD] == NOBODY:
                of.behind[of.state[BEHIND]] = job
                of.state[BEHIND] += 1
            continue
        if of.state[BEHIND] > 0 and of.state[HEAD] == NOBODY:
            _look_for_head(cluster, of, now_s)
        if of.state[HEAD] != NOBODY and not _is_in_time(of, job, choice, now_s):
            choice = _leave_place(cluster, of, kind, choice)
            if choice == NOBODY:
                continue
        _start(cluster, of, job, choice, now_s)


@compiled
def _match(bench: Bench, kind: int) -> int:
    """Choose the nodes of the first choice that fits now; NOBODY if none fits."""
    run, kinds = bench.state[RUN], bench.node_state.problem.kinds
    if bench.kind_failed[kind] == run:
        return NOBODY
    is_open = False
    for at in range(kinds.first[kind], kinds.first[kind + 1]):
        is_open |= not must_fail(bench, kinds.alternative[at])
    choice = NOBODY
    if is_open:
        choice, bench.state[FIRST_CHOSEN], bench.state[CHOSEN] = _first_place(
            bench.node_state, heuristic_of(bench, 0, kind), kind
        )
    if choice == NOBODY:
        bench.kind_failed[kind] = run
        for at in range(kinds.first[kind], kinds.first[kind + 1]):
            if bench.alternative_failed[kinds.alternative[at]] != run:
                fail(bench, kinds.alternative[at])
    return choice


@compiled
def _start(cluster: Cluster, of: Backfilling, job: int, choice: int, now_s: int) -> None:
    """Let the job start in this choice, on the nodes that the bench has chosen."""
    bench, matches = cluster.bench, cluster.bench.matches[0]
    enter(bench, matches, job, choice, MATCH)
    if bench.turns.state[SHARED]:
        alternative = bench.node_state.problem.kinds.alternative[choice]
        charge(bench.turns, cluster.queue, job, held_by_last(bench.node_state, matches, alternative), False)
    put_down(cluster, matches, matches.totals[ENTRIES] - 1)
    if of.state[ALGORITHM] != FCFS:
        _expect_end(of, job, choice, now_s)
    of.state[STARTS] += 1


# --- running jobs, by expected end


@compiled
def _drop_ended(jobs: Jobs, of: Backfilling, now_s: int) -> None:
    """Take the jobs that have ended from the list."""
    kept = 0
    for at in range(of.state[RUNNING]):
        if end_of(jobs, of.running[at]) > now_s:
            of.running[kept] = of.running[at]
            kept += 1
    of.state[RUNNING] = kept


@compiled
def _expect_end(of: Backfilling, job: int, choice: int, now_s: int) -> None:
    """Add a job that starts now."""
    end_s = _end_if_started(of, job, choice, now_s)
    of.expected_end_s[job] = end_s
    at = of.state[RUNNING]
    while at > 0 and of.expected_end_s[of.running[at - 1]] > end_s:
        of.running[at] = of.running[at - 1]
        at -= 1
    of.running[at] = job
    of.state[RUNNING] += 1


@compiled
def _end_if_started(of: Backfilling, job: int, choice: int, now_s: int) -> float:
    # Without a product whole seconds stay whole.
    run_s = of.expected_s[job] if of.slowdown[choice] == 1 else of.expected_s[job] * of.slowdown[choice]
    return float(now_s + run_s)


@compiled
def _is_in_time(of: Backfilling, job: int, choice: int, now_s: int) -> bool:
    """Whether the job may start because it is expected to end by the shadow time."""
    end_s = _end_if_started(of, job, choice, now_s)
    return of.state[ALGORITHM] == EASY and end_s < inf and end_s <= of.shadow_s[0] + COINCIDENT_S


# --- the head job and its place


@compiled
def _look_for_head(cluster: Cluster, of: Backfilling, now_s: int) -> None:
    """Find the first of the jobs behind which others wait that some expected end gives a place, and the shadow time."""
    for at in range(of.state[BEHIND]):
        job = of.behind[at]
        _show_now(cluster.bench.node_state.free, of.shadow)
        if _finds_shadow_time(cluster, of, cluster.queue.kind[job], now_s):
            of.state[HEAD] = job
            return
    of.state[BEHIND] = 0


@subroutine
def _show_now(free: Integers, node_state: CycleNodes) -> None:
    """Let this be free on the nodes."""
    take_over(node_state, free)
    restart(node_state)


@compiled
def _finds_shadow_time(cluster: Cluster, of: Backfilling, kind: int, now_s: int) -> bool:
    """Let running jobs end in `of.shadow` until a job of this kind finds a place there."""
    kinds, alternatives = of.shadow.problem.kinds, of.shadow.problem.alternatives
    free_cores, needed = 0, NEVER
    for node in range(of.shadow.free.shape[1]):
        free_cores += of.shadow.free[CORES, node]
    for choice in range(kinds.first[kind], kinds.first[kind + 1]):
        alternative = kinds.alternative[choice]
        needed = min(needed, alternatives.nodes[alternative] * alternatives.demand[alternative, CORES])
    ended = 0
    for at in range(of.state[RUNNING]):
        end_s = max(of.expected_end_s[of.running[at]], float(now_s))
        if at > 0 and end_s == of.shadow_s[0]:
            continue
        of.shadow_s[0] = end_s
        while ended < of.state[RUNNING] and max(of.expected_end_s[of.running[ended]], float(now_s)) <= (
            end_s + COINCIDENT_S
        ):
            free_cores += _end_in_shadow(cluster, of, of.running[ended])
            ended += 1
        if free_cores >= needed and _finds_place(cluster, of, kind):
            return True
    return False


@compiled
def _end_in_shadow(cluster: Cluster, of: Backfilling, job: int) -> int:
    """Free what the job holds; return how many cores these are."""
    jobs, problem = cluster.jobs, of.shadow.problem
    alternative = problem.kinds.alternative[problem.kinds.first[cluster.queue.kind[job]] + jobs.choice[job]]
    whole, nodes, cores = problem.alternatives.exclusive[alternative], problem.alternatives.nodes[alternative], 0
    for at in range(nodes):
        node = node_of_job(jobs, job, nodes, at)
        cores -= of.shadow.free[CORES, node]
        give(of.shadow, alternative, whole, node)
        cores += of.shadow.free[CORES, node]
    return cores


@compiled
def _finds_place(cluster: Cluster, of: Backfilling, kind: int) -> bool:
    """Whether a job of this kind finds a place at the shadow time; it is put into `of.place`."""
    choice, first, count = _first_place(of.shadow, heuristic_of(cluster.bench, 0, kind), kind)
    if choice == NOBODY:
        return False
    of.choice[0] = choice
    of.state[PLACE] = count
    for at in range(count):
        of.place[at] = of.shadow.chosen[first + at]
    return True


@subroutine
def _first_place(node_state: CycleNodes, heuristic: int, kind: int) -> tuple[int, int, int]:
    """The first choice of the kind that finds nodes, and where in `chosen` these begin and how many they are."""
    kinds, alternatives = node_state.problem.kinds, node_state.problem.alternatives
    for choice in range(kinds.first[kind], kinds.first[kind + 1]):
        alternative = kinds.alternative[choice]
        score = node_state.problem.scores.of[heuristic, alternatives.case[alternative]]
        first = find_nodes(node_state, score, alternative)
        if first != NOBODY:
            return choice, first, alternatives.nodes[alternative]
    return NOBODY, 0, 0


# --- jobs that still run at the shadow time


@compiled
def _leave_place(cluster: Cluster, of: Backfilling, kind: int, choice: int) -> int:
    """Choose nodes for a job that still runs at the shadow time; NOBODY if the head job would find no place then.

    The job has found nodes in this choice; it keeps them if the head job finds others. Otherwise its nodes are sought
    outside the head job's place. The job and the head job then have their places in `of.shadow`.
    """
    bench = cluster.bench
    if of.failed_beside[kind] == of.state[STARTS]:
        return NOBODY
    for is_second in range(2):
        if is_second:
            _give_chosen(bench, of.shadow, choice)
            _put_beside(bench.node_state.free, of)
            choice, first, count = _first_place(of.beside, heuristic_of(bench, 0, kind), kind)
            if choice == NOBODY:
                break
            for at in range(count):
                bench.node_state.chosen[at] = of.beside.chosen[first + at]
            bench.state[FIRST_CHOSEN], bench.state[CHOSEN] = 0, count
        _take_chosen(bench, of.shadow, choice)
        if _finds_place(cluster, of, cluster.queue.kind[of.state[HEAD]]):
            return choice
    of.failed_beside[kind] = of.state[STARTS]
    return NOBODY


@compiled
def _take_chosen(bench: Bench, node_state: CycleNodes, choice: int) -> None:
    """Take the nodes that the bench has chosen in another state of the nodes."""
    alternative = node_state.problem.kinds.alternative[choice]
    whole = node_state.problem.alternatives.exclusive[alternative]
    for at in range(bench.state[CHOSEN]):
        take(node_state, alternative, whole, bench.node_state.chosen[bench.state[FIRST_CHOSEN] + at])


@compiled
def _give_chosen(bench: Bench, node_state: CycleNodes, choice: int) -> None:
    """Give them back."""
    alternative = node_state.problem.kinds.alternative[choice]
    whole = node_state.problem.alternatives.exclusive[alternative]
    for at in range(bench.state[CHOSEN]):
        give(node_state, alternative, whole, bench.node_state.chosen[bench.state[FIRST_CHOSEN] + at])


@compiled
def _put_beside(free: Integers, of: Backfilling) -> None:
    """Show in `of.beside` what is free both now and at the shadow time outside the head job's place."""
    problem = of.shadow.problem
    alternative = problem.kinds.alternative[of.choice[0]]
    whole = problem.alternatives.exclusive[alternative]
    for row in range(free.shape[0]):
        for node in range(free.shape[1]):
            of.free[row, node] = of.shadow.free[row, node]
        for at in range(of.state[PLACE]):
            node = of.place[at]
            amount = problem.nodes.capacity[row, node] if whole else problem.alternatives.demand[alternative, row]
            of.free[row, node] -= amount
        for node in range(free.shape[1]):
            of.free[row, node] = min(of.free[row, node], free[row, node])
    _show_now(of.free, of.beside)
