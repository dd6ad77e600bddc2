"""The best open node for each way to run a job (compiled).

For each (heuristic, way) in use the nodes are cut into blocks of about the square root of their number, and the
smallest key of each block is kept. A match changes few nodes: they are in the field's log, and what was kept is brought
up to date from it when it is asked again. For V ways in use, N open nodes and M matches this costs O(V N + V M +
M sqrt N) at most in a cycle, with V N vectorised; it does not depend on the number of jobs.

Mix-Fit's angle (JSSPP 2013, section 3.1) is computed for the few nodes that can have the smallest: its tangent, which
costs no arc tangent, grows with it.
"""

import math

import numpy as np

from slurm_sns.policies.placement.arrays import NOBODY
from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.field import BITS, COLUMNS, LOGGED, NONE, PLACE_BITS, PLACES, USED_SLOTS, Field, fits
from slurm_sns.policies.placement.pool import CORES, MEMORY

#: Two nodes whose tangents differ by more than this differ by more than the 1e-9 to which angles are rounded.
NEAR = 4e-9


@compiled
def key_of(field: Field, heuristic: int, way: int, column: int) -> int:
    """The node's key for this way; NONE where it does not fit or has left the cycle."""
    standing = field.standing[heuristic, column]
    if standing == NONE or not fits(field, way, column):
        return NONE
    if field.problem.heuristics.angle[heuristic]:
        demand = field.problem.ways.demand
        return (_angle(field, column, demand[way, CORES], demand[way, MEMORY]) << PLACE_BITS) + column
    return standing


@compiled
def _angle(field: Field, column: int, cores: int, memory: int) -> int:
    """Mix-Fit's angle in units of 1e-9: the twin's arithmetic, operation by operation."""
    cores_configured = field.capacity[CORES, column]
    memory_configured = field.capacity[MEMORY, column]
    cores_used = cores_configured - field.free[CORES, column] + cores
    memory_used = memory_configured - field.free[MEMORY, column] + memory
    left_cores = (1.01 * cores_configured - cores_used) / cores_configured
    left_memory = (1.01 * memory_configured - memory_used) / memory_configured
    return int(np.rint(abs(math.pi / 4 - math.atan(left_cores / left_memory)) * 1e9))


@compiled
def _tangent(left_cores: float, left_memory: float) -> float:
    """The tangent of Mix-Fit's angle, for what is left over as fractions less 0.01; grows with the angle."""
    return abs(left_cores - left_memory) / (left_cores + left_memory + 0.02)


@compiled
def _best_of_block(field: Field, heuristic: int, way: int, block: int) -> int:
    """The smallest key of the block."""
    ways, heuristics = field.problem.ways, field.problem.heuristics
    begin = block << field.state[BITS]
    end = min(begin + (1 << field.state[BITS]), field.state[COLUMNS])
    if not ways.simple[way]:
        best = NONE
        for column in range(begin, end):
            best = min(best, key_of(field, heuristic, way, column))
        return best
    if heuristics.angle[heuristic]:
        return _smallest_angle(field, heuristic, way, begin, end)
    # Slices that are counted from 0: without them the compiler does not vectorise.
    cores, memory = field.free[CORES, begin:end], field.free[MEMORY, begin:end]
    standing = field.standing[heuristic, begin:end]
    needs_cores, needs_memory = ways.demand[way, CORES], ways.demand[way, MEMORY]
    best = NONE
    for at in range(len(standing)):
        key = standing[at] if (cores[at] >= needs_cores) & (memory[at] >= needs_memory) else NONE
        best = min(best, key)
    return best


@compiled
def _smallest_angle(field: Field, heuristic: int, way: int, begin: int, end: int) -> int:
    """The smallest key of these columns by angle: tangents of all of them, the angle of those near the smallest."""
    ways = field.problem.ways
    cores, memory = field.free[CORES, begin:end], field.free[MEMORY, begin:end]
    standing = field.standing[heuristic, begin:end]
    per_core, per_memory = field.inverse[CORES, begin:end], field.inverse[MEMORY, begin:end]
    needs_cores, needs_memory = ways.demand[way, CORES], ways.demand[way, MEMORY]
    tangent = field.tangent[: end - begin]
    smallest = np.inf
    for at in range(len(tangent)):
        left_cores = (cores[at] - needs_cores) * per_core[at]
        left_memory = (memory[at] - needs_memory) * per_memory[at]
        fitting = (cores[at] >= needs_cores) & (memory[at] >= needs_memory) & (standing[at] != NONE)
        tangent[at] = _tangent(left_cores, left_memory) if fitting else np.inf
        smallest = min(smallest, tangent[at])
    best = NONE
    if smallest == np.inf:
        return best
    last = NOBODY
    for at in range(len(tangent)):
        # A node in the same state as the last one that was looked at has the same angle and comes after it.
        if tangent[at] <= smallest + NEAR and (last == NOBODY or not _are_alike(field, last, begin + at)):
            last = begin + at
            best = min(best, (_angle(field, last, needs_cores, needs_memory) << PLACE_BITS) + last)
    return best


@compiled
def _are_alike(field: Field, one: int, other: int) -> bool:
    """Whether two nodes are in the same state, as far as cores and memory go."""
    return (
        field.free[CORES, one] == field.free[CORES, other]
        and field.free[MEMORY, one] == field.free[MEMORY, other]
        and field.capacity[CORES, one] == field.capacity[CORES, other]
        and field.capacity[MEMORY, one] == field.capacity[MEMORY, other]
    )


@compiled
def best_node(field: Field, heuristic: int, way: int) -> int:
    """The smallest key of all nodes for this way; NONE when it fits on none."""
    slot = _up_to_date(field, heuristic, way)
    minima = field.minima[slot, : _blocks(field)]
    best = NONE
    for block in range(len(minima)):
        best = min(best, minima[block])
    return best


@compiled
def is_kept(field: Field, heuristic: int, way: int) -> bool:
    """Whether the way has been tried in this cycle with this heuristic, and is not forgotten."""
    owner = heuristic * len(field.problem.ways.nodes) + way
    return field.owner[field.slot[owner]] == owner


@compiled
def _blocks(field: Field) -> int:
    return ((field.state[COLUMNS] - 1) >> field.state[BITS]) + 1


@compiled
def _up_to_date(field: Field, heuristic: int, way: int) -> int:
    """The slot of this way, with all changes so far in it."""
    owner = heuristic * len(field.problem.ways.nodes) + way
    slot = field.slot[owner]
    if field.owner[slot] != owner:
        slot = field.state[USED_SLOTS] % len(field.owner)
        field.state[USED_SLOTS] += 1
        field.owner[slot] = owner
        field.slot[owner] = slot
        for block in range(_blocks(field)):
            field.minima[slot, block] = _best_of_block(field, heuristic, way, block)
    else:
        for at in range(field.seen[slot], field.state[LOGGED]):
            column = field.log[at]
            if field.changed[column] == at:  # else it has changed again since
                _refresh(field, heuristic, way, slot, column)
    field.seen[slot] = field.state[LOGGED]
    return slot


@compiled
def _refresh(field: Field, heuristic: int, way: int, slot: int, column: int) -> None:
    """Bring the minimum of the changed node's block up to date."""
    block = column >> field.state[BITS]
    known = field.minima[slot, block]
    if known & PLACES != column and _is_worse_angle(field, heuristic, way, column, known >> PLACE_BITS):
        return
    key = key_of(field, heuristic, way, column)
    if key < known:
        field.minima[slot, block] = key
    elif known != NONE and (known & PLACES) == column and key != known:  # it was the best and has got worse
        field.minima[slot, block] = _best_of_block(field, heuristic, way, block)


@compiled
def _is_worse_angle(field: Field, heuristic: int, way: int, column: int, known: int) -> bool:
    """Whether the node's angle is certainly larger than this one: by a bound that costs no arc tangent."""
    if not field.problem.heuristics.angle[heuristic] or field.standing[heuristic, column] == NONE:
        return False
    demand = field.problem.ways.demand
    left_cores = (field.free[CORES, column] - demand[way, CORES]) * field.inverse[CORES, column]
    left_memory = (field.free[MEMORY, column] - demand[way, MEMORY]) * field.inverse[MEMORY, column]
    if left_cores < 0 or left_memory < 0:
        return False
    tangent = _tangent(left_cores, left_memory)
    return (tangent - tangent * tangent * tangent / 3) * 1e9 > known + 2  # atan t > t - t^3 / 3 for t > 0


@compiled
def fitting_keys(field: Field, heuristic: int, way: int) -> int:
    """Put the keys of all nodes on which the way fits into `field.keys`, in the machine list's order; their number."""
    count = 0
    for column in range(field.state[COLUMNS]):
        key = key_of(field, heuristic, way, column)
        if key != NONE:
            field.keys[count] = key
            count += 1
    return count
