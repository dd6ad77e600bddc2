"""The cycle kernel: one scheduling pass of a portfolio of heuristics, compiled, exact against `cycle.Cycle`.

Problem: jobs in queue order, each with one or several ways to run (so many nodes, so much of R resources on each), and
nodes with what is free. Job by job, the first way that enough nodes fit gets those that the heuristic scores best, ties
to the first in the machine list. The best of several heuristics' schedules is the one of the most matches, the first of
equal ones.

Shapes: `arrays` (R resources, N nodes, W ways, K kinds, J jobs, P projects, H heuristics). Nothing that is given is
changed. Order of results: matches in queue order, a match's nodes in the machine list's order.

Method: a way that has failed fails again, and so does every way at least as large on the same nodes (free capacity only
shrinks); among the others `best_node` knows the best. Complexity of a member's cycle with Q jobs looked at, V distinct
ways among them, N open nodes and M matches: O(Q + V N + V M + M sqrt N); a job on n > 1 nodes adds O(N).

Source: Max-Jobs paper (JSSPP 2013), sections 1-4; what it leaves open: see `cycle`.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.arrays import (
    ENTRIES,
    LOOKED_AT,
    MATCHED,
    NOBODY,
    Integers,
    Machines,
    Matches,
    Problem,
    Queue,
    Ways,
    room_for_matches,
)
from slurm_sns.policies.placement.best_node import best_node, fitting_keys, is_kept
from slurm_sns.policies.placement.compiled import compiled, entry_point
from slurm_sns.policies.placement.field import (
    COLUMNS,
    NONE,
    OPEN,
    PLACE_BITS,
    PLACES,
    Field,
    field_for,
    open_nodes,
    restart,
    take,
)
from slurm_sns.policies.placement.pool import CORES, MEMORY
from slurm_sns.policies.placement.smallest import nth_smallest
from slurm_sns.policies.placement.turns import SHARED, Turns, begin, charge, next_job, turns_for

FAILURES, RUN = range(2)


class Bench(NamedTuple):
    """The working memory of cycles, used again from cycle to cycle."""

    field: Field
    turns: Turns
    matches: tuple[Matches, Matches]  #: the best schedule so far and the one being made
    way_failed: Integers  #: (W) the last run in which the way failed
    kind_failed: Integers  #: (K) the last run in which all ways of the kind failed
    failures: Integers  #: (W) the failed ways of this run that no other covers
    matched: Integers  #: (members) jobs that each member matched
    state: Integers  #: (2) entries of `failures`, the number of this run


def bench_for(problem: Problem, jobs: int, projects: int, takes: int) -> Bench:
    """A bench for queues of that many jobs and projects, in which nodes are taken at most so often in a cycle."""
    count = len(problem.ways.nodes)
    entries = min(problem.limits.depth, jobs)
    return Bench(
        field=field_for(problem, takes),
        turns=turns_for(projects),
        matches=(room_for_matches(entries, takes), room_for_matches(entries, takes)),
        way_failed=np.zeros(count, np.int64),
        kind_failed=np.zeros(len(problem.kinds.own), np.int64),
        failures=np.zeros(count, np.int64),
        matched=np.zeros(len(problem.limits.portfolio), np.int64),
        state=np.zeros(2, np.int64),
    )


@entry_point
def schedule(bench: Bench, free: Integers, queue: Queue) -> tuple[int, int]:
    """The best member of the portfolio (its position) and the entry of `bench.matches` that holds its schedule."""
    open_nodes(bench.field, free)
    portfolio = bench.field.problem.limits.portfolio
    best, best_matched, kept = 0, -1, 0
    bench.matched[:] = 0
    for member in range(len(portfolio)):
        matches = bench.matches[1 - kept]
        _run(bench, matches, queue, portfolio[member])
        matched = matches.totals[MATCHED]
        bench.matched[member] = matched
        if matched > best_matched:
            best, best_matched, kept = member, matched, 1 - kept
        if matched == 0:  # until the first match all members' cycles are the same
            break
    return best, kept


@compiled
def _run(bench: Bench, matches: Matches, queue: Queue, member: int) -> None:
    """One member's cycle."""
    limits, kinds = bench.field.problem.limits, bench.field.problem.kinds
    restart(bench.field)
    begin(bench.turns, queue)
    bench.state[FAILURES] = 0
    bench.state[RUN] += 1
    run = bench.state[RUN]
    matches.totals[:] = 0
    position = 0
    while position < limits.depth and bench.field.state[OPEN] > 0:
        job = next_job(bench.turns, queue)
        if job == NOBODY:
            break
        kind = queue.kind[job]
        over_aged = position < len(queue.over_aged)
        way = NOBODY
        if bench.kind_failed[kind] != run:
            heuristic = member if kinds.own[kind] == NOBODY else kinds.own[kind]
            way = _match(bench, matches, heuristic, kind)
        if way != NOBODY:
            if bench.turns.state[SHARED]:
                charge(bench.turns, queue, job, _held(bench.field, matches, way), over_aged)
            _enter(matches, bench.field, job, way, False)
        elif position < limits.reservations or over_aged:
            way = _withhold(bench.field, matches, kind)
            if way != NOBODY:
                _enter(matches, bench.field, job, way, True)
        position += 1
    matches.totals[LOOKED_AT] = position


@compiled
def _match(bench: Bench, matches: Matches, heuristic: int, kind: int) -> int:
    """Take the best nodes for the first way that fits; NOBODY when none does."""
    field, kinds, ways = bench.field, bench.field.problem.kinds, bench.field.problem.ways
    for at in range(kinds.first[kind], kinds.first[kind + 1]):
        way = kinds.way[at]
        if bench.way_failed[way] == bench.state[RUN]:
            continue
        if not is_kept(field, heuristic, way) and _covered(bench, way):
            continue
        first = matches.first[matches.totals[ENTRIES]]
        if ways.nodes[way] == 1:
            key = best_node(field, heuristic, way)
            if key != NONE:
                matches.node[first] = key & PLACES
                take(field, way, key & PLACES)
                matches.first[matches.totals[ENTRIES] + 1] = first + 1
                return way
        else:
            count = fitting_keys(field, heuristic, way)
            if count >= ways.nodes[way]:
                last = _take_best(field, matches, way, count)
                matches.first[matches.totals[ENTRIES] + 1] = last
                return way
        _fail(bench, way)
    bench.kind_failed[kind] = bench.state[RUN]
    return NOBODY


@compiled
def _take_best(field: Field, matches: Matches, way: int, count: int) -> int:
    """Take the nodes of the smallest of `count` keys, as many as the way asks for or all; the end of their list."""
    wanted = min(field.problem.ways.nodes[way], count)
    keys = field.keys[:count]
    largest = nth_smallest(field.scratch[:count], keys, wanted)
    end = matches.first[matches.totals[ENTRIES]]
    for at in range(count):
        if keys[at] <= largest:
            matches.node[end] = keys[at] & PLACES
            end += 1
            take(field, way, keys[at] & PLACES)
    return end


@compiled
def _covered(bench: Bench, way: int) -> bool:
    """Whether the way must fail because one at most as large, of the same nodes, has failed."""
    for at in range(bench.state[FAILURES]):
        if _as_large(bench.field.problem.ways, way, bench.failures[at]):
            bench.way_failed[way] = bench.state[RUN]
            return True
    return False


@compiled
def _fail(bench: Bench, way: int) -> None:
    """Remember that the way found too few nodes; larger ones that it covers are forgotten."""
    bench.way_failed[way] = bench.state[RUN]
    kept = 0
    for at in range(bench.state[FAILURES]):
        if not _as_large(bench.field.problem.ways, bench.failures[at], way):
            bench.failures[kept] = bench.failures[at]
            kept += 1
    bench.failures[kept] = way
    bench.state[FAILURES] = kept + 1


@compiled
def _as_large(ways: Ways, way: int, other: int) -> bool:
    """Whether the way asks for at least as much as the other, of the same nodes."""
    if ways.nodes[way] < ways.nodes[other] or ways.allowed[way] != ways.allowed[other]:
        return False
    if ways.exclusive[way] != ways.exclusive[other]:
        return False
    for row in range(ways.demand.shape[1]):  # noqa: SIM110  compiled code has no generators
        if ways.demand[way, row] < ways.demand[other, row]:
            return False
    return True


@compiled
def _withhold(field: Field, matches: Matches, kind: int) -> int:
    """Keep the nodes of the most free memory among those whose size could hold the first possible way."""
    machines, ways, kinds = field.problem.machines, field.problem.ways, field.problem.kinds
    for at in range(kinds.first[kind], kinds.first[kind + 1]):
        way = kinds.way[at]
        if not _is_possible(machines, ways, way):
            continue
        count = 0
        for column in range(field.state[COLUMNS]):
            is_open = field.standing[field.problem.limits.rows[0], column] != NONE
            if is_open and _is_large_enough(machines, ways, way, field.node[column]):
                field.keys[count] = (-field.free[MEMORY, column] << PLACE_BITS) + column
                count += 1
        if count == 0:
            return NOBODY
        last = _take_best(field, matches, way, count)
        matches.first[matches.totals[ENTRIES] + 1] = last
        return way
    return NOBODY


@compiled
def _is_possible(machines: Machines, ways: Ways, way: int) -> bool:
    """Whether enough nodes of the whole cluster are large enough."""
    missing = ways.nodes[way]
    for node in range(machines.capacity.shape[1]):
        if missing == 0:
            break
        missing -= _is_large_enough(machines, ways, way, node)
    return missing == 0


@compiled
def _is_large_enough(machines: Machines, ways: Ways, way: int, node: int) -> bool:
    """Whether the node could hold the way if it were empty."""
    for row in range(machines.capacity.shape[0]):
        demand = ways.demand[way, row]
        if (row <= MEMORY or demand > 0) and machines.capacity[row, node] < demand:
            return False
    allowed = ways.allowed[way]
    return allowed == NOBODY or machines.allowed[allowed, node]


@compiled
def _held(field: Field, matches: Matches, way: int) -> tuple[int, int]:
    """Cores and memory over all nodes of the match that was just made."""
    ways = field.problem.ways
    entry = matches.totals[ENTRIES]
    cores, memory = 0, 0
    for at in range(matches.first[entry], matches.first[entry + 1]):
        column = matches.node[at]
        cores += field.capacity[CORES, column] if ways.exclusive[way] else ways.demand[way, CORES]
        memory += field.capacity[MEMORY, column] if ways.exclusive[way] else ways.demand[way, MEMORY]
    return cores, memory


@compiled
def _enter(matches: Matches, field: Field, job: int, way: int, kept: bool) -> None:
    """Write the entry whose columns were just taken; columns become indices in the machine list."""
    entry = matches.totals[ENTRIES]
    matches.job[entry] = job
    matches.way[entry] = way
    matches.kept[entry] = kept
    for at in range(matches.first[entry], matches.first[entry + 1]):
        matches.node[at] = field.node[matches.node[at]]
    matches.totals[ENTRIES] += 1
    if not kept:
        matches.totals[MATCHED] += 1
