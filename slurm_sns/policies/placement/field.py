"""The open nodes of a cycle while it runs (compiled): what is free, who has left, what has changed.

A node's *key* is its score and its place in the machine list in one integer, so that the smallest key is the best node
and the first of equal ones. Its standing is the key as far as it does not depend on the job.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.arrays import NOBODY, Floats, Integers, Problem
from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.cycle import SMALLEST
from slurm_sns.policies.placement.pool import CORES, MEMORY

#: The place in the machine list is the low part of a key: 2**20 nodes, scores up to 2**42.
PLACE_BITS = 20
PLACES = (1 << PLACE_BITS) - 1
NONE = 1 << 62

LEAST_CORES = SMALLEST.cores
LEAST_MEMORY_MB = SMALLEST.memory_mb

#: Ways whose best nodes are kept at a time; beyond that the oldest is forgotten.
SLOTS = 2048
LEAST_BLOCK_BITS = 4

COLUMNS, OPEN, LOGGED, BITS, USED_SLOTS = range(5)


class Field(NamedTuple):
    """Columns are the nodes that were open at the start of the cycle, in the machine list's order."""

    problem: Problem
    node: Integers  #: (N) index in the machine list
    opening: Integers  #: (R, N) free at the start
    free: Integers  #: (R, N) free now
    capacity: Integers  #: (R, N)
    inverse: Floats  #: (2, N) 1 / configured cores, memory
    standing: Integers  #: (H, N) the key without what the way adds; NONE: the node has left the cycle
    log: Integers  #: columns in the order in which they changed
    changed: Integers  #: (N) the last entry of the log for the column, or NOBODY
    minima: Integers  #: (slots, blocks) smallest keys
    seen: Integers  #: (slots) how much of the log is in the minima
    owner: Integers  #: (slots) heuristic * W + way
    slot: Integers  #: (H * W) a slot, valid when it is owned
    keys: Integers  #: (N) scratch
    scratch: Integers  #: (N)
    tangent: Floats  #: (N) scratch
    state: Integers  #: (5) COLUMNS, OPEN, LOGGED, BITS, USED_SLOTS


def field_for(problem: Problem, takes: int) -> Field:
    """A field for cycles in which nodes are taken at most so often."""
    resources, nodes = problem.machines.capacity.shape
    heuristics, ways = len(problem.heuristics.angle), len(problem.ways.nodes)
    slots = max(1, min(SLOTS, heuristics * ways))
    return Field(
        problem=problem,
        node=np.empty(nodes, np.int64),
        opening=np.empty((resources, nodes), np.int64),
        free=np.empty((resources, nodes), np.int64),
        capacity=np.empty((resources, nodes), np.int64),
        inverse=np.empty((2, nodes), np.float64),
        standing=np.empty((heuristics, nodes), np.int64),
        log=np.empty(takes, np.int64),
        changed=np.empty(nodes, np.int64),
        minima=np.empty((slots, (nodes >> LEAST_BLOCK_BITS) + 1), np.int64),
        seen=np.empty(slots, np.int64),
        owner=np.empty(slots, np.int64),
        slot=np.zeros(heuristics * ways, np.int64),
        keys=np.empty(nodes, np.int64),
        scratch=np.empty(nodes, np.int64),
        tangent=np.empty(nodes, np.float64),
        state=np.zeros(5, np.int64),
    )


@compiled
def open_nodes(field: Field, free: Integers) -> None:
    """Begin a cycle: the columns are the nodes with room for the smallest job."""
    machines = field.problem.machines
    columns = 0
    for node in range(free.shape[1]):
        if free[CORES, node] >= LEAST_CORES and free[MEMORY, node] >= LEAST_MEMORY_MB:
            field.node[columns] = node
            for row in range(free.shape[0]):
                field.opening[row, columns] = free[row, node]
                field.capacity[row, columns] = machines.capacity[row, node]
            field.inverse[CORES, columns] = 1.0 / machines.capacity[CORES, node]
            field.inverse[MEMORY, columns] = 1.0 / machines.capacity[MEMORY, node]
            columns += 1
    bits = LEAST_BLOCK_BITS
    while (1 << (2 * bits)) < columns:
        bits += 1
    field.state[COLUMNS] = columns
    field.state[BITS] = bits


@compiled
def restart(field: Field) -> None:
    """Put everything back to the start of the cycle, for the next member of the portfolio."""
    columns = field.state[COLUMNS]
    for row in range(field.free.shape[0]):
        for column in range(columns):
            field.free[row, column] = field.opening[row, column]
    field.changed[:columns] = NOBODY
    for heuristic in field.problem.limits.rows:
        for column in range(columns):
            field.standing[heuristic, column] = _standing(field, heuristic, column)
    field.owner[:] = NOBODY
    field.state[OPEN] = columns
    field.state[LOGGED] = 0
    field.state[USED_SLOTS] = 0


@compiled
def _standing(field: Field, heuristic: int, column: int) -> int:
    heuristics = field.problem.heuristics
    score = 0
    for row in range(field.free.shape[0]):
        score += heuristics.free[heuristic, row] * field.free[row, column]
        score += heuristics.configured[heuristic, row] * field.capacity[row, column]
    return (score << PLACE_BITS) + column


@compiled
def fits(field: Field, way: int, column: int) -> bool:
    """Whether the node has enough of everything, is allowed, and empty where that is asked; not whether it is open."""
    ways = field.problem.ways
    if field.free[CORES, column] < ways.demand[way, CORES] or field.free[MEMORY, column] < ways.demand[way, MEMORY]:
        return False
    if ways.simple[way]:
        return True
    for row in range(MEMORY + 1, field.free.shape[0]):
        if ways.demand[way, row] > 0 and field.free[row, column] < ways.demand[way, row]:
            return False
    if ways.allowed[way] != NOBODY and not field.problem.machines.allowed[ways.allowed[way], field.node[column]]:
        return False
    if ways.exclusive[way]:
        for row in range(field.free.shape[0]):
            if field.free[row, column] != field.capacity[row, column]:
                return False
    return True


@compiled
def take(field: Field, way: int, column: int) -> None:
    """Take the capacity; a node left without room for the smallest job leaves the cycle."""
    ways = field.problem.ways
    for row in range(field.free.shape[0]):
        field.free[row, column] -= field.capacity[row, column] if ways.exclusive[way] else ways.demand[way, row]
    stays = field.free[CORES, column] >= LEAST_CORES and field.free[MEMORY, column] >= LEAST_MEMORY_MB
    for heuristic in field.problem.limits.rows:
        field.standing[heuristic, column] = _standing(field, heuristic, column) if stays else NONE
    if not stays:
        field.state[OPEN] -= 1
    field.log[field.state[LOGGED]] = column
    field.changed[column] = field.state[LOGGED]
    field.state[LOGGED] += 1
