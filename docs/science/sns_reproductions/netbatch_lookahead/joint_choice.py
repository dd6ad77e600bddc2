"""Max-Jobs with a joint choice: nodes for the first jobs of the queue are chosen together, not one job at a time.

The members match the cycle as they do without it. Then the first ten jobs that fit on some machine, the *window*, are
looked at again: is there an assignment to machines that starts more of them than every member does? If so, each member
matches the rest of the queue behind that assignment, too, and the schedule that starts most jobs is dispatched (on a
tie, one of the members' own). A job that fits on no machine cannot start whatever is chosen, and has no place in the
window. What is promised to the first job of the queue stays: if it fits somewhere it starts, else capacity is withheld
for it.

The search (`fill_window`) tries all assignments, depth first, and leaves out what cannot start more jobs than are known
to start: by what is free of cores and of memory in total and on each machine. Machines that have equally much free are
tried once, equal jobs in one order. It ends after `MOST_STEPS`; such a window counts as not proven.

Source: Max-Jobs paper (JSSPP 2013), section 6: "since the PPM considers the jobs one at a time there is a limit on the
optimizations that can be applied. Looking further into the queue and considering more than one job may yield
significant improvements" (of backfilling: Shmueli and Feitelson, the paper's reference 9).
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.compiled import compiled, entry_point, inlined
from slurm_sns.policies.placement.cycle_kernel import CHOSEN, FIRST_CHOSEN, Bench, enter, go_through, run, withhold
from slurm_sns.policies.placement.fair_order_kernel import begin, line_up, turns_for
from slurm_sns.policies.placement.kernel_arrays import (
    ENTRIES,
    MATCH,
    MATCHED,
    NOBODY,
    WITHHELD,
    Flags,
    Integers,
    Matches,
    Queue,
    room_for_matches,
    withholding,
)
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.policies.placement.node_state_kernel import restart
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.sim.replay.cluster_state import CYCLES, NEVER, Cluster
from slurm_sns.sim.replay.compiled_loop import begin_cycle, come_again, dispatch, reach_next
from slurm_sns.sim.replay.trace_replay import cluster_of, to_the_end
from slurm_sns.sim.run import Cycles, TraceRun
from slurm_sns.sim.trace import TraceArrays

#: How many jobs are chosen for together, and after how many assignments of one job a search gives up.
WINDOW, MOST_STEPS = 10, 20_000

#: The parts of `Window.state`: how many jobs the window has, whether the first of them must start, how many machines it
#: has to choose from, and how many of its jobs the best assignment starts.
SIZE, FORCED, PLACES, STARTS = range(4)
#: The parts of `Window.tally`: cycles in which a job waits; those in which every member leaves a job of the window
#: waiting; those in which an assignment starts more of the window than any member; those in which the whole cycle then
#: starts more; how many jobs all cycles start; those whose search gave up.
WAITING, SHORT, BETTER, ADOPTED, JOBS, UNPROVEN = range(6)


class Window(NamedTuple):
    """The jobs that are chosen for together, in the order of the search: the one that must start, then the largest."""

    job: Integers  #: (WINDOW)
    demand: Integers  #: (2, WINDOW) cores and memory in MB
    place: Integers  #: (WINDOW) of the best assignment: which of `node`, NOBODY for a job that does not start
    trial: Integers  #: (WINDOW) of the one being tried: which of `node`; their number for a job that does not start
    node: Integers  #: (N) the machines on which some job of the window fits, those with the least free memory first
    free: Integers  #: (2, N) what is free on them
    fits: Integers  #: (K) 1 when jobs of this kind fit on some machine, 0 when not, NOBODY when it is not known
    state: Integers  #: (4) SIZE, FORCED, PLACES, STARTS
    tally: Integers  #: (6) WAITING and the others above
    matched: Integers  #: (members) how many jobs each member would start, summed over the same cycles
    most: Integers  #: (1) how many the best of them would, that is Max-Jobs


class Rest(NamedTuple):
    """What the members work on behind a joint choice."""

    bench: Bench  #: shares nodes and tables with the cluster's bench; its line and its matches are its own
    withholds: Flags  #: (J) False: the first job has had its capacity withheld


def window_for(kinds: int, nodes: int, members: int) -> Window:
    """An empty window."""
    return Window(
        job=np.zeros(WINDOW, np.int64),
        demand=np.zeros((2, WINDOW), np.int64),
        place=np.zeros(WINDOW, np.int64),
        trial=np.zeros(WINDOW, np.int64),
        node=np.zeros(nodes, np.int64),
        free=np.zeros((2, nodes), np.int64),
        fits=np.zeros(kinds, np.int64),
        state=np.zeros(4, np.int64),
        tally=np.zeros(6, np.int64),
        matched=np.zeros(members, np.int64),
        most=np.zeros(1, np.int64),
    )


def replay_jointly(
    node_arrays: NodeArrays, records: TraceArrays, rules: Rules, *, interval_s: int
) -> tuple[TraceRun, Window]:
    """Replay the trace of one project whose jobs ask for one machine each; the run, and the window with its counts.

    Raises:
        BadInput: there are several projects, jobs that ask for more than cores and memory of one machine, or another
            number of reservations than 1.
    """
    cluster = cluster_of(node_arrays, records, rules, {})
    alternatives = cluster.bench.node_state.problem.alternatives
    if len(records.projects) > 1 or rules.reservations != 1:
        raise BadInput(f"{len(records.projects)} projects, {rules.reservations} reservations; valid: one of each")
    if not alternatives.simple.all() or alternatives.nodes.max(initial=1) > 1:
        raise BadInput("a job asks for several machines or for further resources; valid: cores and memory of one")
    entries = min(rules.queue_depth, len(records))
    room = len(cluster.bench.matches[0].node)
    bench = cluster.bench._replace(
        turns=turns_for(1, entries), matches=(room_for_matches(entries, room), room_for_matches(0, 0))
    )
    rest = Rest(bench, np.zeros(len(records), np.bool_))
    window = window_for(len(records.kinds), len(node_arrays.names), len(rules.portfolio))
    found = to_the_end(
        records, cluster, rules.portfolio, lambda cycles: advance_jointly(cluster, window, rest, cycles, interval_s)
    )
    return found, window


@entry_point
def advance_jointly(cluster: Cluster, window: Window, rest: Rest, cycles: Cycles, interval_s: int) -> bool:
    """Replay until `cycles` is full or no event is left; return whether events are left."""
    state = cluster.state
    state[CYCLES] = 0
    while state[CYCLES] < len(cycles.time_s):
        number = reach_next(cluster, interval_s)
        if number == NEVER:
            return False
        if begin_cycle(cluster, cycles, number, interval_s):
            best, kept = _compete(cluster, window, rest)
            dispatch(cluster, cycles, best, kept, interval_s)
            come_again(cluster, cycles)
    return True


@inlined
def _compete(cluster: Cluster, window: Window, rest: Rest) -> tuple[int, int]:
    """The member that starts most jobs, by itself or behind a joint choice, and the entry of the matches."""
    bench, queue = cluster.bench, cluster.queue
    limits = bench.node_state.problem.limits
    begin(bench.turns, queue)
    line_up(bench.turns, queue, limits.depth)
    restart(bench.node_state)
    _open_window(bench, queue, window)
    window.tally[WAITING] += 1
    best, kept, most = NOBODY, 0, 0
    window.state[STARTS] = 0
    bench.matched[:] = 0
    for member in range(len(limits.portfolio)):
        matches = bench.matches[1 - kept]
        run(bench, matches, queue, member)
        matched = matches.totals[MATCHED]
        bench.matched[member] = matched
        window.matched[member] += matched
        window.state[STARTS] = max(window.state[STARTS], _started_of(window, matches))
        if best == NOBODY or matched > most:
            best, kept, most = member, 1 - kept, matched
        if matched == 0:  # then no member matches any job
            break
    window.most[0] += most
    known = window.state[STARTS]
    if known < window.state[SIZE]:
        window.tally[SHORT] += 1
        if not fill_window(window):
            window.tally[UNPROVEN] += 1
        if window.state[STARTS] > known:
            window.tally[BETTER] += 1
            plain = most
            for member in range(len(limits.portfolio)):
                matches = bench.matches[1 - kept]
                _run_behind(cluster, matches, window, rest, member)
                if matches.totals[MATCHED] > most:
                    best, kept, most = member, 1 - kept, matches.totals[MATCHED]
            window.tally[ADOPTED] += most > plain
    window.tally[JOBS] += most
    return best, kept


@compiled
def _open_window(bench: Bench, queue: Queue, window: Window) -> None:
    """Put the first jobs that fit somewhere into the window, and the machines on which one of them fits."""
    node_state, line = bench.node_state, bench.turns.line
    nodes = len(node_state.is_open)
    window.fits[:] = NOBODY
    window.state[:] = 0
    first = line[0]
    window.state[FORCED] = _fits_somewhere(bench, window, queue.kind[first], NOBODY, NOBODY)
    kept_node, kept_alternative = NOBODY, NOBODY
    if window.state[FORCED] == 0:
        choice, count = withhold(node_state, queue.kind[first], WITHHELD)
        if choice != NOBODY and count > 0:
            kept_node, kept_alternative = node_state.chosen[0], node_state.problem.kinds.alternative[choice]
            window.fits[:] = NOBODY
    position = 1 - window.state[FORCED]
    while position < node_state.problem.limits.depth and window.state[SIZE] < WINDOW:
        job = line[position]
        if job == NOBODY:
            break
        if _fits_somewhere(bench, window, queue.kind[job], kept_node, kept_alternative) == 1:
            _put_in(bench, queue, window, job)
        position += 1
    demand = node_state.problem.alternatives.demand
    for node in range(nodes):
        cores, memory = node_state.free[CORES, node], node_state.free[MEMORY, node]
        if node == kept_node:
            cores -= demand[kept_alternative, CORES]
            memory -= demand[kept_alternative, MEMORY]
        for at in range(window.state[SIZE]):
            if window.demand[CORES, at] <= cores and window.demand[MEMORY, at] <= memory:
                _put_node(window, node, cores, memory)
                break


@compiled
def _fits_somewhere(bench: Bench, window: Window, kind: int, kept_node: int, kept_alternative: int) -> int:
    """1 when a job of this kind fits on some machine, with this alternative withheld on one of them; else 0."""
    if window.fits[kind] == NOBODY:
        node_state, problem = bench.node_state, bench.node_state.problem
        demand = problem.alternatives.demand
        alternative = problem.kinds.alternative[problem.kinds.first[kind]]
        window.fits[kind] = 0
        for node in range(len(node_state.is_open)):
            cores, memory = node_state.free[CORES, node], node_state.free[MEMORY, node]
            if node == kept_node:
                cores -= demand[kept_alternative, CORES]
                memory -= demand[kept_alternative, MEMORY]
            if demand[alternative, CORES] <= cores and demand[alternative, MEMORY] <= memory:
                window.fits[kind] = 1
                break
    return int(window.fits[kind])


@compiled
def _put_in(bench: Bench, queue: Queue, window: Window, job: int) -> None:
    """Put a job into the window: the largest memory first, then the most cores, but behind one that must start."""
    problem = bench.node_state.problem
    demand = problem.alternatives.demand
    alternative = problem.kinds.alternative[problem.kinds.first[queue.kind[job]]]
    cores, memory = demand[alternative, CORES], demand[alternative, MEMORY]
    at = window.state[SIZE]
    while at > window.state[FORCED] and (
        window.demand[MEMORY, at - 1] < memory
        or (window.demand[MEMORY, at - 1] == memory and window.demand[CORES, at - 1] < cores)
    ):
        window.job[at] = window.job[at - 1]
        window.demand[CORES, at] = window.demand[CORES, at - 1]
        window.demand[MEMORY, at] = window.demand[MEMORY, at - 1]
        at -= 1
    window.job[at] = job
    window.demand[CORES, at] = cores
    window.demand[MEMORY, at] = memory
    window.state[SIZE] += 1


@compiled
def _put_node(window: Window, node: int, cores: int, memory: int) -> None:
    """Put a machine where it belongs: the least free memory first, then the fewest free cores."""
    at = window.state[PLACES]
    while at > 0 and (
        window.free[MEMORY, at - 1] > memory
        or (window.free[MEMORY, at - 1] == memory and window.free[CORES, at - 1] > cores)
    ):
        window.node[at] = window.node[at - 1]
        window.free[CORES, at] = window.free[CORES, at - 1]
        window.free[MEMORY, at] = window.free[MEMORY, at - 1]
        at -= 1
    window.node[at] = node
    window.free[CORES, at] = cores
    window.free[MEMORY, at] = memory
    window.state[PLACES] += 1


@compiled
def _started_of(window: Window, matches: Matches) -> int:
    """How many jobs of the window a schedule starts."""
    started = 0
    for entry in range(matches.totals[ENTRIES]):
        if matches.kept[entry] == MATCH:
            for at in range(window.state[SIZE]):
                started += window.job[at] == matches.job[entry]
        if started == window.state[SIZE]:
            break
    return started


@inlined
def _run_behind(cluster: Cluster, matches: Matches, window: Window, rest: Rest, member: int) -> None:
    """The joint choice, and behind it the member's walk through the rest of the queue."""
    bench, queue = cluster.bench, cluster.queue
    node_state, line = bench.node_state, bench.turns.line
    kinds = node_state.problem.kinds
    restart(node_state)
    matches.totals[:] = 0
    bench.state[FIRST_CHOSEN] = 0
    if window.state[FORCED] == 0:
        choice, bench.state[CHOSEN] = withhold(node_state, queue.kind[line[0]], WITHHELD)
        if choice != NOBODY:
            enter(bench, matches, line[0], choice, WITHHELD)
    for at in range(window.state[SIZE]):
        if window.place[at] != NOBODY:
            node_state.chosen[0] = window.node[window.place[at]]
            bench.state[FIRST_CHOSEN], bench.state[CHOSEN] = 0, 1
            enter(bench, matches, window.job[at], kinds.first[queue.kind[window.job[at]]], MATCH)
    count, position = 0, 1 - window.state[FORCED]
    while position < node_state.problem.limits.depth and line[position] != NOBODY:
        is_in = False
        for at in range(window.state[SIZE]):
            is_in |= window.job[at] == line[position]
        if not is_in:
            rest.bench.turns.line[count] = line[position]
            count += 1
        position += 1
    rest.bench.turns.line[count] = NOBODY
    rest.bench.turns.state[:] = 0
    behind = withholding(queue, rest.withholds)
    spare = rest.bench.matches[0]
    go_through(rest.bench, spare, behind, member)
    for entry in range(spare.totals[ENTRIES]):
        last = matches.totals[ENTRIES]
        matches.job[last] = spare.job[entry]
        matches.choice[last] = spare.choice[entry]
        matches.kept[last] = spare.kept[entry]
        matches.node[matches.first[last]] = spare.node[spare.first[entry]]
        matches.first[last + 1] = matches.first[last] + 1
        matches.totals[ENTRIES] += 1
    matches.totals[MATCHED] += spare.totals[MATCHED]


# --- the search


@entry_point
def fill_window(window: Window) -> bool:
    """Find an assignment that starts more jobs of the window than STARTS, which becomes its number; the place of each.

    Returns whether it is proven that none starts more. `free` is as before afterwards, unless that is not proven.
    """
    size, places, trial = window.state[SIZE], window.state[PLACES], window.trial
    if _most_from(window, 0) <= window.state[STARTS]:
        return True
    depth, started, steps = 0, 0, 0
    trial[0], is_new = -1, True
    while depth >= 0:
        steps += 1
        if steps > MOST_STEPS:
            return False
        if not is_new and trial[depth] < places:
            _change(window, depth, 1)
            started -= 1
        trial[depth], is_new = _next_place(window, depth), False
        if trial[depth] > places:
            depth -= 1
            continue
        if trial[depth] < places:
            _change(window, depth, -1)
            started += 1
            if started > window.state[STARTS]:
                _keep(window, depth, started)
        if depth + 1 < size and started + _most_from(window, depth + 1) > window.state[STARTS]:
            depth, is_new = depth + 1, True
            trial[depth] = _before_first(window, depth)
    return True


@compiled
def _change(window: Window, depth: int, sign: int) -> None:
    """Take what the job at this depth demands (-1), or give it back (1)."""
    place = window.trial[depth]
    window.free[CORES, place] += sign * window.demand[CORES, depth]
    window.free[MEMORY, place] += sign * window.demand[MEMORY, depth]


@compiled
def _before_first(window: Window, depth: int) -> int:
    """The place before the first that is tried: of equal jobs, a later one gets no earlier place than one before it."""
    is_equal = (
        window.demand[CORES, depth] == window.demand[CORES, depth - 1]
        and window.demand[MEMORY, depth] == window.demand[MEMORY, depth - 1]
    )
    return window.trial[depth - 1] - 1 if is_equal else -1


@compiled
def _next_place(window: Window, depth: int) -> int:
    """The next place to try: one of the machines, their number for a job that does not start, or one more: none."""
    places = window.state[PLACES]
    begin = -1 if depth == 0 else _before_first(window, depth)
    for place in range(window.trial[depth] + 1, places):
        cores, memory = window.free[CORES, place], window.free[MEMORY, place]
        if cores < window.demand[CORES, depth] or memory < window.demand[MEMORY, depth]:
            continue
        is_new = True
        for earlier in range(begin + 1, place):
            is_new &= window.free[CORES, earlier] != cores or window.free[MEMORY, earlier] != memory
        if is_new:
            return place
    must_start = depth == 0 and window.state[FORCED] == 1
    return int(places if window.trial[depth] < places and not must_start else places + 1)


@compiled
def _keep(window: Window, depth: int, started: int) -> None:
    """Write down the assignment that is being tried."""
    for at in range(window.state[SIZE]):
        starts = at <= depth and window.trial[at] < window.state[PLACES]
        window.place[at] = window.trial[at] if starts else NOBODY
    window.state[STARTS] = started


@compiled
def _most_from(window: Window, depth: int) -> int:
    """At least as many as can start of the jobs from this depth on."""
    size, places = window.state[SIZE], window.state[PLACES]
    least_cores, least_memory = window.demand[CORES, depth], window.demand[MEMORY, depth]
    for at in range(depth + 1, size):
        least_cores = min(least_cores, window.demand[CORES, at])
        least_memory = min(least_memory, window.demand[MEMORY, at])
    cores, memory, slots = 0, 0, 0
    for place in range(places):
        room = min(window.free[CORES, place] // least_cores, window.free[MEMORY, place] // least_memory)
        if room > 0:
            cores += window.free[CORES, place]
            memory += window.free[MEMORY, place]
            slots += room
    by_total = min(_how_many(window, CORES, depth, cores), _how_many(window, MEMORY, depth, memory))
    return int(min(slots, size - depth, by_total))


@compiled
def _how_many(window: Window, row: int, depth: int, total: int) -> int:
    """How many of the jobs from this depth on the total of one resource holds, the smallest first."""
    count, after, last = 0, -1, -1
    while count < window.state[SIZE] - depth:
        least, least_at = NEVER, -1
        for at in range(depth, window.state[SIZE]):
            amount = window.demand[row, at]
            is_later = amount > after or (amount == after and at > last)
            if is_later and amount < least:
                least, least_at = amount, at
        total -= least
        if total < 0:
            break
        after, last = least, least_at
        count += 1
    return count
