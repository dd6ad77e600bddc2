"""The cycle kernel: one scheduling pass with one heuristic, compiled. In plain Python: tests/oracles/cycle.py.

Problem: jobs in queue order, each with one or several alternatives (a number of nodes and a demand of R resources on
each), and nodes with what is free. Job by job, the first alternative that fits on enough nodes gets the nodes that the
heuristic scores best; ties go to the first in the machine list. Alternatives are tried best first, or by use: the
least slowdown times dominant share first.

Shapes: module `kernel_arrays` (R resources, N nodes, W alternatives, K kinds, J jobs, P projects, H heuristics). The
arguments `free` and `queue` are not changed. Order of results: matches in queue order, a match's nodes in the machine
list's order.

Method: an alternative that has failed fails again, and so does every alternative at least as large on the same nodes
(free capacity only shrinks). For the others `best_node_kernel` finds the best nodes. A member's cycle with Q jobs
looked at, V distinct alternatives among them, N nodes and M matched nodes costs O(Q + V N + V M + M sqrt N). The
working memory (`Bench`) keeps the state of the nodes: another pass on the same nodes costs O(N) once, and for each
alternative of an earlier pass only as much as has changed since.

A job that finds no place has capacity withheld for it at the first `reservations` positions of the queue. For an
over-aged job it always is: where the member keeps whole nodes, so for the first such job only.

Source: Max-Jobs paper (JSSPP 2013), sections 1-5, Spread-n-Share (SC'19), section 4.4. The module `rules` says
how we decide what they leave open.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.best_node_kernel import find_nodes
from slurm_sns.policies.placement.compiled import compiled, inlined
from slurm_sns.policies.placement.failures_kernel import WALK, WalkFailures, fail, failures_for, forget, must_fail
from slurm_sns.policies.placement.fair_order_kernel import SHARED, FairOrderState, begin, charge, job_at, turns_for
from slurm_sns.policies.placement.kernel_arrays import (
    COST,
    ENTRIES,
    GAIN,
    LOOKED_AT,
    MATCH,
    MATCHED,
    NOBODY,
    PROMISED,
    WHOLE,
    WHOLE_QUEUE,
    WITHHELD,
    AlternativeArrays,
    Integers,
    JobKinds,
    KernelNodes,
    KernelRules,
    Matches,
    Problem,
    Queue,
    room_for_matches,
)
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
from slurm_sns.policies.placement.node_state_kernel import (
    NONE,
    OPEN,
    PLACE_BITS,
    CycleNodes,
    choose_by_keys,
    node_of,
    node_state_for,
    open_all,
    restart,
    settle,
    take,
    take_over,
    touch,
)
from slurm_sns.policies.placement.order_statistics import sort
from slurm_sns.policies.placement.promise_kernel import (
    FIRST,
    KEPT,
    MOST_TRIED,
    TRIED,
    Promises,
    promise,
    promise_nothing,
    promises_for,
    stay,
)
from slurm_sns.policies.placement.region_kernel import ANY_SWITCH, NO_REGION
from slurm_sns.policies.placement.regions import NO_SWITCH
from slurm_sns.policies.placement.ties import TieRecord, tie_record

KEPT_WHOLE, FIRST_CHOSEN, CHOSEN = range(3)
#: Whether alternatives are tried by use; whether that is another order for some job that was looked at; how many jobs
#: were matched best first, before that.
BY_USE, DIFFERS, BEST_FIRST = range(3, 6)
STATES = 6


class Bench(NamedTuple):
    """The working memory of cycles, used again from cycle to cycle."""

    node_state: CycleNodes
    turns: FairOrderState
    matches: tuple[Matches, Matches]  #: the best schedule so far and the one being made
    log: Matches  #: what each member did, for who asks
    failures: WalkFailures
    promises: Promises  #: this and the next two are of use only where capacity is withheld until a job's start
    beside: CycleNodes  #: what a job may take that is not expected to end before the first promised start
    failures_beside: WalkFailures
    matched: Integers  #: (members) the number of jobs that each member matched
    value: Integers  #: (members, 2) the sums of gains and of costs of each member's matches
    turn: Integers  #: (members) the members in the order of their turns
    record: TieRecord
    state: Integers  #: (STATES) KEPT_WHOLE, FIRST_CHOSEN, CHOSEN and the others


def bench_for(
    problem: Problem,
    jobs: int,
    projects: int,
    takes: int,
    *,
    releases: int = 0,
    logs: bool = False,
    record: TieRecord | None = None,
) -> Bench:
    """The working memory for queues of at most this many jobs and projects.

    `takes` is the largest number of times that nodes are taken in a cycle, `releases` that of what running jobs give
    back, of use only where capacity is withheld until a job's start. With `logs` the cycles of all members are
    written down. `record` is that of the passes before, None for none.
    """
    limits = problem.limits
    members = len(limits.portfolio)
    entries = min(limits.depth, jobs)
    looked_at = entries if logs else 0
    if limits.until_start:
        takes += problem.nodes.capacity.shape[1] * max(limits.reservations, 1)
    node_state = node_state_for(problem)
    beside = node_state
    if limits.until_start:
        beside = node_state_for(problem)
        open_all(beside)
    return Bench(
        node_state=node_state,
        turns=turns_for(projects, entries),
        matches=(room_for_matches(entries, takes, looked_at), room_for_matches(entries, takes, looked_at)),
        log=room_for_matches(entries, takes, entries, rows=(members if logs else 0,)),
        failures=failures_for(problem.alternatives, problem.kinds),
        promises=promises_for(problem, *((entries, takes, releases) if limits.until_start else (0, 0, 0))),
        beside=beside,
        failures_beside=failures_for(problem.alternatives, problem.kinds),
        matched=np.zeros(members, np.int64),
        value=np.zeros((members, 2), np.int64),
        turn=np.arange(members),
        record=record or tie_record(members),
        state=np.zeros(STATES, np.int64),
    )


@inlined
def run(bench: Bench, matches: Matches, queue: Queue, member: int) -> None:
    """One member's cycle, from the nodes as they are at the start of the pass."""
    restart(bench.node_state)
    go_through(bench, matches, queue, member)


@inlined
def go_through(bench: Bench, matches: Matches, queue: Queue, member: int) -> None:
    """One member's walk through the queue, from the nodes as the last walk has left them."""
    limits, kinds = bench.node_state.problem.limits, bench.node_state.problem.kinds
    if bench.turns.state[SHARED]:
        begin(bench.turns, queue)
    forget(bench.failures)
    forget(bench.failures_beside)
    promise_nothing(bench.promises)
    bench.state[KEPT_WHOLE] = 0
    matches.totals[:] = 0
    logs = len(matches.order) > 0
    position = 0
    while position < limits.depth and bench.node_state.state[OPEN] > 0:
        job = job_at(bench.turns, queue, position)
        if job == NOBODY:
            break
        matches.totals[LOOKED_AT] = position
        if logs:
            matches.order[position] = job
        kind = queue.kind[job]
        if limits.adaptive:
            bench.state[DIFFERS] |= _has_two_orders(kinds, kind)
        over_aged = position < len(queue.over_aged)
        heuristic = heuristic_of(bench.node_state.problem, member, kind)
        stays = limits.until_start and queue.now_s + queue.run_s[job] > bench.promises.at_s[FIRST]
        node_state, failures = bench.node_state, bench.failures
        if stays:
            node_state, failures = bench.beside, bench.failures_beside
        choice, how = _match(bench, node_state, failures, heuristic, kind), MATCH
        if choice != NOBODY and stays:
            _stay(bench, kinds.alternative[choice])
        elif choice == NOBODY and queue.withholds[job]:
            choice, how = _keep(bench, matches, queue, member, job)
        if choice != NOBODY:
            enter(bench, matches, job, choice, how)
            if how == MATCH and bench.turns.state[SHARED]:
                held = held_by_last(bench.node_state, matches, kinds.alternative[choice])
                charge(bench.turns, queue, job, held, over_aged)
        position += 1
    matches.totals[LOOKED_AT] = position
    if limits.adaptive and matches.totals[MATCHED] == position:
        is_last = position == limits.depth or job_at(bench.turns, queue, position) == NOBODY
        matches.totals[WHOLE_QUEUE] = is_last


@inlined
def _keep(bench: Bench, matches: Matches, queue: Queue, member: int, job: int) -> tuple[int, int]:
    """Choose nodes to promise to the job whose turn it is, or to withhold for it, as the rules say.

    Returns the choice, NOBODY for none, and how they are kept.
    """
    limits, position = bench.node_state.problem.limits, matches.totals[LOOKED_AT]
    over_aged = position < len(queue.over_aged)
    bench.state[FIRST_CHOSEN] = 0
    if limits.until_start:
        number, failures, kind = bench.promises.number, bench.failures_beside, queue.kind[job]
        is_first = number[KEPT] == 0
        if number[KEPT] >= max(limits.reservations, int(over_aged)) or number[TRIED] >= MOST_TRIED:
            return NOBODY, NOBODY
        choice = NOBODY
        if not is_first or failures.kind[kind] != failures.state[WALK]:
            choice, bench.state[CHOSEN] = promise(bench.promises, bench.node_state, matches, queue, job)
        if choice != NOBODY:
            if is_first:
                forget(failures)
            take_over(bench.beside, bench.promises.left)
            restart(bench.beside)
            return choice, PROMISED
        if not is_first:
            return NOBODY, NOBODY
        failures.kind[kind] = failures.state[WALK]  # nor for another job of the kind
    how = way_to_withhold(limits, member, position, over_aged, bench.state[KEPT_WHOLE] == 1)
    choice = NOBODY
    if how != NOBODY:
        choice, bench.state[CHOSEN] = withhold(bench.node_state, queue.kind[job], how)
    return choice, how


@compiled
def _has_two_orders(kinds: JobKinds, kind: int) -> bool:
    """Whether the kind's alternatives are tried in another order by use than best first."""
    differs = False
    for at in range(kinds.first[kind], kinds.first[kind + 1]):
        differs |= kinds.by_use[at] != at
    return differs


@compiled
def heuristic_of(problem: Problem, member: int, kind: int) -> int:
    """The heuristic by which the member matches jobs of this kind: the one that they name, else its own."""
    own = problem.kinds.own[kind]
    return problem.limits.portfolio[member] if own == NOBODY else own


@inlined
def _match(bench: Bench, node_state: CycleNodes, failures: WalkFailures, heuristic: int, kind: int) -> int:
    """Choose the best of these nodes for the first alternative that fits; return the choice, NOBODY when none fits."""
    kinds, alternatives = node_state.problem.kinds, node_state.problem.alternatives
    walk = failures.state[WALK]
    if failures.kind[kind] == walk:
        return NOBODY
    for at in range(kinds.first[kind], kinds.first[kind + 1]):
        choice = kinds.by_use[at] if bench.state[BY_USE] else at
        alternative = kinds.alternative[choice]
        if must_fail(failures, alternatives, alternative):
            continue
        score = node_state.problem.scores.of[heuristic, alternatives.case[alternative]]
        first = find_nodes(node_state, score, alternative)
        if first != NOBODY:
            bench.state[FIRST_CHOSEN] = first
            bench.state[CHOSEN] = alternatives.nodes[alternative]
            return choice
        fail(failures, alternatives, alternative)
    failures.kind[kind] = walk
    return NOBODY


@compiled
def enter(bench: Bench, matches: Matches, job: int, choice: int, how: int) -> None:
    """Add an entry with the chosen nodes to `matches`, and take them, unless that is for later."""
    node_state = bench.node_state
    kinds, alternatives = node_state.problem.kinds, node_state.problem.alternatives
    entry, alternative, count = matches.totals[ENTRIES], kinds.alternative[choice], bench.state[CHOSEN]
    first = matches.first[entry]
    nodes = matches.node[first : first + count]
    for at in range(count):
        nodes[at] = node_state.chosen[bench.state[FIRST_CHOSEN] + at]
    sort(nodes)
    if how != PROMISED:
        for at in range(count):
            take(node_state, alternative, alternatives.exclusive[alternative] or how == WHOLE, nodes[at])
    if bench.promises.number[KEPT] > 0:
        _follow(bench, nodes)
    matches.first[entry + 1] = first + count
    matches.job[entry] = job
    matches.choice[entry] = choice
    matches.kept[entry] = how
    matches.totals[ENTRIES] += 1
    if how == MATCH:
        matches.totals[MATCHED] += 1
        matches.totals[GAIN] += kinds.gain[choice]
        matches.totals[COST] += kinds.cost[choice]
    if how == WHOLE:
        bench.state[KEPT_WHOLE] = 1


@compiled
def _stay(bench: Bench, alternative: int) -> None:
    """A job that was matched beside the promised places is still there at their starts."""
    first = bench.state[FIRST_CHOSEN]
    nodes = bench.node_state.chosen[first : first + bench.state[CHOSEN]]
    for at in range(len(nodes)):
        nodes[at] = bench.beside.chosen[first + at]
    problem = bench.node_state.problem
    stay(bench.promises, problem.nodes.capacity, problem.alternatives, alternative, nodes)


@compiled
def _follow(bench: Bench, nodes: Integers) -> None:
    """Bring what is free beside the promised places in line with what is free now on these nodes."""
    beside, free, later = bench.beside, bench.node_state.free, bench.promises.later
    for at in range(len(nodes)):
        node = nodes[at]
        for row in range(free.shape[0]):
            beside.free[row, node] = min(free[row, node], later[row, node])
        touch(beside, node)
        settle(beside, node)


@compiled
def held_by_last(node_state: CycleNodes, matches: Matches, alternative: int) -> tuple[int, int]:
    """The cores and memory, over all its nodes, of the match that was added last."""
    alternatives, capacity = node_state.problem.alternatives, node_state.problem.nodes.capacity
    entry = matches.totals[ENTRIES] - 1
    cores, memory = 0, 0
    for at in range(matches.first[entry], matches.first[entry + 1]):
        node = matches.node[at]
        whole = alternatives.exclusive[alternative]
        cores += capacity[CORES, node] if whole else alternatives.demand[alternative, CORES]
        memory += capacity[MEMORY, node] if whole else alternatives.demand[alternative, MEMORY]
    return cores, memory


@compiled
def way_to_withhold(limits: KernelRules, member: int, position: int, over_aged: bool, has_kept_whole: bool) -> int:
    """How capacity is withheld for a job without a match: WHOLE nodes, its demand (WITHHELD), or NOBODY: not at all."""
    if over_aged and limits.keeps[member]:
        return NOBODY if has_kept_whole else WHOLE
    return WITHHELD if over_aged or position < limits.reservations else NOBODY


@compiled
def withhold(node_state: CycleNodes, kind: int, how: int) -> tuple[int, int]:
    """Choose the nodes on which capacity is withheld for a job of this kind.

    Returns the choice, NOBODY when there is none, and how many nodes of `node_state.chosen` it has, from the first on.

    It takes the first alternative that the cluster could ever hold, and the open nodes that are large enough for it:
    to withhold the demand those with the most free memory, to keep whole nodes those with the fewest used cores.
    """
    nodes, alternatives, kinds = node_state.problem.nodes, node_state.problem.alternatives, node_state.problem.kinds
    for choice in range(kinds.first[kind], kinds.first[kind + 1]):
        alternative = kinds.alternative[choice]
        if how == WITHHELD and alternatives.simple[alternative] and alternatives.nodes[alternative] == 1:
            node = _most_free_memory(node_state, alternative)
            if node != NOBODY:
                node_state.chosen[0] = node
                return choice, 1
        home = _home(node_state, alternative)
        if home == NO_REGION:
            continue
        count = 0
        for node in range(len(node_state.keys)):
            is_there = home == ANY_SWITCH or nodes.switch[-1, node] == home
            if is_there and node_state.is_open[node] == 1 and _is_large_enough(nodes, alternatives, alternative, node):
                used = nodes.capacity[CORES, node] - node_state.free[CORES, node]
                score = used if how == WHOLE else -node_state.free[MEMORY, node]
                node_state.keys[count] = (score << PLACE_BITS) + 2 * node
                count += 1
        if count == 0:
            return NOBODY, 0
        wanted = min(alternatives.nodes[alternative], count)
        choose_by_keys(node_state, node_state.keys[:count], wanted, 0)
        return choice, wanted
    return NOBODY, 0


@compiled
def _most_free_memory(node_state: CycleNodes, alternative: int) -> int:
    """The open node with the most free memory that is large enough for a simple alternative; NOBODY if there is none.

    The general search of `withhold` finds the same node. This one is a single loop that the compiler vectorises: where
    capacity is withheld for every unmatched job, it decides how long a replay takes.
    """
    nodes, alternatives = node_state.problem.nodes, node_state.problem.alternatives
    is_open, memory = node_state.is_open[:], node_state.free[MEMORY, :]
    all_cores, all_memory = nodes.capacity[CORES, :], nodes.capacity[MEMORY, :]
    needs_cores, needs_memory = alternatives.demand[alternative, CORES], alternatives.demand[alternative, MEMORY]
    smallest = NONE
    for node in range(len(is_open)):
        large_enough = (all_cores[node] >= needs_cores) & (all_memory[node] >= needs_memory)
        key = (-memory[node] << PLACE_BITS) + 2 * node if large_enough & (is_open[node] == 1) else NONE
        smallest = min(smallest, key)
    return NOBODY if smallest == NONE else node_of(smallest)


@compiled
def _home(node_state: CycleNodes, alternative: int) -> int:
    """The first switch of the highest level with enough nodes that are large enough; NO_REGION if there is none.

    ANY_SWITCH where all nodes are connected alike, for a job on one node always.
    """
    nodes, alternatives, counts = node_state.problem.nodes, node_state.problem.alternatives, node_state.tangent
    wanted, levels = alternatives.nodes[alternative], nodes.switch.shape[0]
    if wanted == 1 or levels == 0:
        for node in range(nodes.capacity.shape[1]):
            if wanted == 0:
                break
            wanted -= _is_large_enough(nodes, alternatives, alternative, node)
        return ANY_SWITCH if wanted == 0 else NO_REGION
    counts[:] = 0
    first = NO_REGION
    for node in range(nodes.capacity.shape[1]):
        switch = nodes.switch[-1, node]
        if switch != NO_SWITCH and _is_large_enough(nodes, alternatives, alternative, node):
            counts[switch] += 1
            if counts[switch] >= wanted and (first == NO_REGION or switch < first):
                first = switch
    return first


@compiled
def _is_large_enough(nodes: KernelNodes, alternatives: AlternativeArrays, alternative: int, node: int) -> bool:
    """Whether the node could hold the alternative if it were empty."""
    for row in range(nodes.capacity.shape[0]):
        demand = alternatives.demand[alternative, row]
        if (row <= MEMORY or demand > 0) and nodes.capacity[row, node] < demand:
            return False
    allowed = alternatives.allowed[alternative]
    return allowed == NOBODY or nodes.allowed[allowed, node]
