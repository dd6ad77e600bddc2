"""Nodes that are kept for a job from the moment at which it can start, and not before (compiled).

Under the rule `until-start` a job without a place is promised one. If running jobs and those that this pass starts end
when they are expected to, it can start at some moment (module `ready_time_kernel`). Of the nodes that are ready by then
it gets those that become ready last, among these the ones with the fewest free cores: what is free sooner is left for
others.

- A job that is expected to end before any promised start is matched on what is free now.
- Any other one is matched on what is free both now and at the promised starts, outside the promised places.

So no promised start moves, and no place has to be chosen again. With several promises a later one leaves the places of
the earlier ones alone from now on, as if these jobs started at once. What overlaps with the first promised start, a job
or an earlier place, counts as still there at the later ones. Each promise costs O(R (N + E)) for E releases.

Source: this project's own. It keeps EASY's promise (D. Lifka, JSSPP 1995) in one walk, for any heuristic and resource.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.compiled import compiled, subroutine
from slurm_sns.policies.placement.kernel_arrays import (
    ENTRIES,
    MATCH,
    NOBODY,
    PROMISED,
    AlternativeArrays,
    Floats,
    Integers,
    Matches,
    Problem,
    Queue,
    Releases,
)
from slurm_sns.policies.placement.node_arrays import CORES
from slurm_sns.policies.placement.node_state_kernel import PLACE_BITS, CycleNodes, node_of
from slurm_sns.policies.placement.order_statistics import nth_smallest, sort
from slurm_sns.policies.placement.ready_time_kernel import NodeRoom, earliest_start, node_room, put_lack
from slurm_sns.policies.placement.rules import MOST_PROMISES

#: A key of an entry is in how many seconds it is expected to end, above this many bits of its number.
ENTRY_BITS, LONGEST_S = 22, 1 << 40
#: A key of a node is how long before the start it is ready, above this many bits of its free cores.
CORE_BITS, LONGEST_READY_S = 11, 1 << 30
MOST_CORES = (1 << CORE_BITS) - 1

KEPT, TRIED = range(2)
#: In a walk a place is looked for so many jobs at most, whatever is found: each look costs one at all running jobs.
MOST_TRIED = MOST_PROMISES + 16

#: The parts of `Promises.at_s`: the first and the last promised start.
FIRST, LAST = range(2)


class Promises(NamedTuple):
    """The promises of one walk, and the working memory that they need."""

    later: Integers  #: (R, N) what is free at the promised starts, outside the promised places
    places: Integers  #: (R, N) the promised places
    left: Integers  #: (R, N) scratch
    room: NodeRoom  #: when nodes are ready; scratch
    coming: Releases  #: what running jobs and entries of this walk will give back; scratch
    keys: Integers  #: (depth) scratch
    at_s: Floats  #: (2) FIRST, LAST; FIRST is infinite before the first promise
    number: Integers  #: (2) how many promises are KEPT, and for how many jobs one was TRIED


def promises_for(problem: Problem, entries: int, takes: int, releases: int) -> Promises:
    """The working memory for so many entries of a cycle, their nodes, and what running jobs will give back."""
    rows, nodes = problem.nodes.capacity.shape
    parts = takes + releases
    return Promises(
        later=np.zeros((rows, nodes), np.int64),
        places=np.zeros((rows, nodes), np.int64),
        left=np.zeros((rows, nodes), np.int64),
        room=node_room(np.empty((rows, nodes), np.int64), np.empty(nodes, np.int64)),
        coming=Releases(np.empty(parts, np.float64), np.empty(parts, np.int64), np.empty((parts, rows), np.int64)),
        keys=np.empty(max(entries, nodes), np.int64),
        at_s=np.full(2, inf),
        number=np.zeros(2, np.int64),
    )


@compiled
def promise_nothing(promises: Promises) -> None:
    """Begin a walk without promises."""
    promises.number[:] = 0
    promises.at_s[FIRST] = inf


@subroutine
def promise(promises: Promises, node_state: CycleNodes, matches: Matches, queue: Queue, job: int) -> tuple[int, int]:
    """Keep a place for the job; return the choice, NOBODY if no end gives it one; and how many nodes it has.

    These are then the first ones of `node_state.chosen`, the start is in the next entry of `matches`, and
    `promises.left` is what a job may take now that is not expected to end before the first promised start.
    """
    problem, free, chosen = node_state.problem, node_state.free, node_state.chosen
    kinds, alternatives, capacity = problem.kinds, problem.alternatives, problem.nodes.capacity
    room, left, kind = promises.room, promises.left, queue.kind[job]
    promises.number[TRIED] += 1
    coming = _line_up(promises, problem, matches, queue)
    _put_left(promises, free)
    end = kinds.first[kind + 1]
    best, start_s = NOBODY, inf
    for choice in range(kinds.first[kind], end + 1):  # at last the best one again, so that `room` is of it
        at = choice if choice < end else best
        if at == NOBODY:
            return NOBODY, 0
        put_lack(room, problem, left, kinds.alternative[at])
        found_s = earliest_start(room, alternatives.nodes[kinds.alternative[at]], coming, queue.now_s)
        if found_s < start_s:
            best, start_s = at, found_s
    alternative = kinds.alternative[best]
    wanted, whole = alternatives.nodes[alternative], alternatives.exclusive[alternative]
    _choose(promises, chosen, wanted, start_s)
    is_first = promises.number[KEPT] == 0
    for at in range(len(coming.end_s)):
        if coming.end_s[at] > start_s:
            break
        for row in range(left.shape[0]):
            left[row, coming.node[at]] += coming.amount[at, row]
    for at in range(wanted):
        node = chosen[at]
        for row in range(left.shape[0]):
            amount = capacity[row, node] if whole else alternatives.demand[alternative, row]
            promises.places[row, node] += amount
            left[row, node] -= amount
            if not is_first and start_s < promises.at_s[LAST]:  # it has started by then
                promises.later[row, node] -= amount
    _put_later(promises, free)
    promises.at_s[LAST] = start_s if is_first else max(promises.at_s[LAST], start_s)
    promises.at_s[FIRST] = min(promises.at_s[FIRST], start_s)
    promises.number[KEPT] += 1
    matches.start_s[matches.totals[ENTRIES]] = start_s
    return best, wanted


@compiled
def stay(
    promises: Promises, capacity: Integers, alternatives: AlternativeArrays, alternative: int, nodes: Integers
) -> None:
    """A job that takes these nodes now still has them at the promised starts."""
    whole = alternatives.exclusive[alternative]
    for at in range(len(nodes)):
        node = nodes[at]
        for row in range(promises.later.shape[0]):
            promises.later[row, node] -= capacity[row, node] if whole else alternatives.demand[alternative, row]


# --- the steps of a promise


@compiled
def _line_up(promises: Promises, problem: Problem, matches: Matches, queue: Queue) -> Releases:
    """What running jobs, the matches so far and jobs with a promise will give back, in the order of their ends."""
    running, coming, keys = queue.coming, promises.coming, promises.keys
    alternatives, capacity = problem.alternatives, problem.nodes.capacity
    count = 0
    for entry in range(matches.totals[ENTRIES]):
        span_s = queue.run_s[matches.job[entry]]
        if matches.kept[entry] == PROMISED:
            span_s += matches.start_s[entry] - queue.now_s
        runs = matches.kept[entry] == MATCH or matches.kept[entry] == PROMISED  # else nobody ends there
        if runs and span_s < LONGEST_S:
            keys[count] = (int(np.ceil(span_s)) << ENTRY_BITS) + entry
            count += 1
    sort(keys[:count])
    at, to = 0, 0
    for each in range(count + 1):  # at last what is left of the running jobs
        end_s = queue.now_s + (keys[each] >> ENTRY_BITS) if each < count else inf
        while at < len(running.end_s) and running.end_s[at] <= end_s:
            coming.end_s[to], coming.node[to] = running.end_s[at], running.node[at]
            for row in range(coming.amount.shape[1]):
                coming.amount[to, row] = running.amount[at, row]
            at, to = at + 1, to + 1
        if each == count:
            break
        entry = keys[each] & ((1 << ENTRY_BITS) - 1)
        alternative = problem.kinds.alternative[matches.choice[entry]]
        for part in range(matches.first[entry], matches.first[entry + 1]):
            node = matches.node[part]
            coming.end_s[to], coming.node[to] = end_s, node
            for row in range(coming.amount.shape[1]):
                whole = alternatives.exclusive[alternative]
                coming.amount[to, row] = capacity[row, node] if whole else alternatives.demand[alternative, row]
            to += 1
    return Releases(coming.end_s[:to], coming.node[:to], coming.amount[:to])


@compiled
def _put_left(promises: Promises, free: Integers) -> None:
    """Put into `left` what would be free if the jobs with a promise started now."""
    left, places = promises.left, promises.places
    for row in range(left.shape[0]):
        for node in range(left.shape[1]):
            if promises.number[KEPT] == 0:
                places[row, node] = 0
            left[row, node] = free[row, node] - places[row, node]


@compiled
def _choose(promises: Promises, chosen: Integers, wanted: int, start_s: float) -> None:
    """Put the nodes of the place into `chosen`: of those ready by the start, those ready last."""
    room, left, keys = promises.room, promises.left, promises.keys
    part = 0
    while room.ready[part] < wanted:
        part += 1
    count = 0
    for node in range(len(room.part)):
        if room.part[node] == part and room.ready_s[node] <= start_s:
            early_s = min(int(start_s - room.ready_s[node]), LONGEST_READY_S)
            cores = min(max(left[CORES, node], 0), MOST_CORES)
            keys[count] = (((early_s << CORE_BITS) + cores) << PLACE_BITS) + 2 * node
            count += 1
    largest, to = nth_smallest(room.ready[:count], keys[:count], wanted), 0
    for at in range(count):
        if keys[at] <= largest:
            chosen[to] = node_of(keys[at])
            to += 1


@compiled
def _put_later(promises: Promises, free: Integers) -> None:
    """Bring `later` up to date with `left`, what is free at the new start outside all places; and `left` with both."""
    left, later = promises.left, promises.later
    for row in range(left.shape[0]):
        for node in range(left.shape[1]):
            at_start = left[row, node]
            later[row, node] = at_start if promises.number[KEPT] == 0 else min(later[row, node], at_start)
            left[row, node] = min(free[row, node], later[row, node])
