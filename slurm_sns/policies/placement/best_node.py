"""The best open nodes for each way to run a job (compiled).

For each (score, way) in use the nodes are cut into blocks of about the square root of their number, and the smallest
key of each block is kept. A match changes few nodes: they are in the field's log, and what was kept is brought up to
date from it when it is asked again. For V ways in use, N nodes and M matches this costs O(V N + V M + M sqrt N) at most
in a cycle, with V N vectorised; it does not depend on the number of jobs. Later cycles on the same field pay for the
nodes that have changed since. Several nodes are found one after another, each hidden from the next search.

Mix-Fit's angle (JSSPP 2013, section 3.1) is computed for the few nodes that can have the smallest: its tangent, which
costs no arc tangent, grows with it.
"""

import math

import numpy as np

from slurm_sns.policies.placement.arrays import NOBODY, Integers
from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.field import (
    BITS,
    LOGGED,
    NONE,
    PER_UNIT,
    PLACE_BITS,
    PLACES,
    UNKNOWN,
    USED_SLOTS,
    Field,
    fits,
    put_fitting_keys,
)
from slurm_sns.policies.placement.pool import BANDWIDTH, CORES, MEMORY, WAYS
from slurm_sns.policies.placement.smallest import nth_smallest

#: Two nodes whose tangents differ by more than this differ by more than the 1e-9 to which angles are rounded: the
#: tangent is at most the square root of 3 (of four resources one is left), where the angle grows a quarter as fast.
NEAR = 8e-9
#: What a node has left of a resource counts as this share more (JSSPP 2013: the factor 1.01 of the authors' simulator).
CORNER = 0.01
#: Changes are not looked up one by one when they are more than one in so many nodes: finding all anew costs less.
NODES_PER_CHANGE = 8
#: A way on more nodes than this is counted first: finding many nodes one after another only to fail costs more.
FEW_NODES = 32


@compiled
def find_nodes(field: Field, score: int, way: int) -> int:
    """Put the way's best nodes into `field.chosen`; where they begin in it, NOBODY when too few fit.

    A grouped score wants the nodes of the most idle cores of which there are enough with equally many, else the best
    of all whatever their idle cores.
    """
    wanted = field.problem.ways.nodes[way]
    if wanted > FEW_NODES and _fitting(field, score, way) < wanted:
        return NOBODY
    slot = _up_to_date(field, score, way)
    blocks = field.minima[slot, : _blocks(field)]
    found, alike = 0, 0
    while alike < wanted:
        key = _smallest(field, score, way, blocks)
        if key == NONE:
            break
        node = key & PLACES
        if found > 0:
            alike = alike if _are_grouped(field, score, field.chosen[found - 1], node) else 0
        field.chosen[found] = node
        field.hidden[found] = key
        found += 1
        alike += 1
        if wanted > 1:
            field.standing[score, node] = NONE
            blocks[node >> field.state[BITS]] = UNKNOWN
    begin = found - wanted
    if alike < wanted <= found:
        _best_whatever_their_cores(field, found, wanted)
        begin = 0
    if wanted > 1:
        for at in range(found):  # also those that are taken now: taking them is a change like any other
            node = field.hidden[at] & PLACES
            block = node >> field.state[BITS]
            field.standing[score, node] = node if field.problem.scores.angle[score] else field.hidden[at]
            blocks[block] = min(blocks[block], field.hidden[at])
    return max(begin, NOBODY)


@compiled
def _are_grouped(field: Field, score: int, one: int, other: int) -> bool:
    return not field.problem.scores.grouped[score] or field.free[CORES, one] == field.free[CORES, other]


@compiled
def _best_whatever_their_cores(field: Field, found: int, wanted: int) -> None:
    """Of the nodes that were found, all that fit: the best by their occupied shares alone to the front."""
    keys, span = field.keys[:found], field.problem.scores.span
    for at in range(found):
        keys[at] = field.hidden[at] + ((field.free[CORES, field.chosen[at]] * span) << PLACE_BITS)
    largest = nth_smallest(field.scratch[:found], keys, wanted)
    kept = 0
    for at in range(found):
        if keys[at] <= largest:
            field.chosen[kept] = keys[at] & PLACES
            kept += 1


@compiled
def _fitting(field: Field, score: int, way: int) -> int:
    """On how many nodes the way fits."""
    count = 0
    put_fitting_keys(field, score, way, 0, len(field.keys))
    for at in range(len(field.keys)):
        count += field.keys[at] != NONE
    return count


@compiled
def _smallest(field: Field, score: int, way: int, blocks: Integers) -> int:
    """The smallest key of all nodes for this way; NONE when it fits on none."""
    while True:
        best = NONE
        for block in range(len(blocks)):
            best = min(best, blocks[block])
        if best != UNKNOWN:
            return best
        for block in range(len(blocks)):
            if blocks[block] == UNKNOWN:
                blocks[block] = _best_of_block(field, score, way, block)


@compiled
def _best_of_block(field: Field, score: int, way: int, block: int) -> int:
    """The smallest key of the block."""
    begin = block << field.state[BITS]
    end = min(begin + (1 << field.state[BITS]), len(field.keys))
    put_fitting_keys(field, score, way, begin, end)
    if field.problem.scores.angle[score]:
        return _smallest_angle(field, way, begin, end)
    best = NONE
    for at in range(end - begin):
        best = min(best, field.keys[at])
    return best


@compiled
def _blocks(field: Field) -> int:
    return ((len(field.keys) - 1) >> field.state[BITS]) + 1


@compiled
def _up_to_date(field: Field, score: int, way: int) -> int:
    """The slot of this way, with all changes so far in it."""
    owner = way * len(field.problem.scores.angle) + score
    slot = field.slot[owner]
    is_new = field.owner[slot] != owner
    if is_new:
        slot = field.state[USED_SLOTS] % len(field.owner)
        field.state[USED_SLOTS] += 1
        field.owner[slot] = owner
        field.slot[owner] = slot
        field.seen[slot] = 0
    if is_new or (field.state[LOGGED] - field.seen[slot]) * NODES_PER_CHANGE > len(field.keys):
        field.minima[slot, :] = UNKNOWN
    else:
        for at in range(field.seen[slot], field.state[LOGGED]):
            node = field.log[at]
            if field.changed[node] == at:  # else it has changed again since
                _refresh(field, score, way, slot, node)
    field.seen[slot] = field.state[LOGGED]
    return slot


@compiled
def _refresh(field: Field, score: int, way: int, slot: int, node: int) -> None:
    """Bring the minimum of the changed node's block up to date."""
    block = node >> field.state[BITS]
    known = field.minima[slot, block]
    is_known = known != NONE and known & PLACES == node
    if known == UNKNOWN or (not is_known and _is_worse_angle(field, score, way, node, known >> PLACE_BITS)):
        return
    key = _key_of(field, score, way, node)
    if key < known:
        field.minima[slot, block] = key
    elif is_known and key != known:  # it was the best and has got worse
        field.minima[slot, block] = UNKNOWN


@compiled
def _key_of(field: Field, score: int, way: int, node: int) -> int:
    """The node's key for this way; NONE where it does not fit or takes no part."""
    standing = field.standing[score, node]
    if standing == NONE or not fits(field, way, node):
        return NONE
    if field.problem.scores.angle[score]:
        return (_angle(field, way, node) << PLACE_BITS) + node
    return standing


@compiled
def _smallest_angle(field: Field, way: int, begin: int, end: int) -> int:
    """The smallest key by angle of the nodes with a key in `field.keys`: tangents of all, angles of the smallest."""
    keys, tangent = field.keys[: end - begin], field.tangent[: end - begin]
    _put_tangents(field, way, begin, end)
    smallest = np.inf
    for at in range(len(keys)):
        tangent[at] = tangent[at] if keys[at] != NONE else np.inf
        smallest = min(smallest, tangent[at])
    best = NONE
    if smallest == np.inf:
        return best
    last = NOBODY
    for at in range(len(keys)):
        # A node in the same state as the last one that was looked at has the same angle and comes after it.
        if tangent[at] <= smallest + NEAR and (last == NOBODY or not _are_alike(field, last, begin + at)):
            last = begin + at
            best = min(best, (_angle(field, way, last) << PLACE_BITS) + last)
    return best


@compiled
def _are_alike(field: Field, one: int, other: int) -> bool:
    """Whether two nodes are in the same state."""
    capacity = field.problem.machines.capacity
    for row in range(field.free.shape[0]):
        if field.free[row, one] != field.free[row, other] or capacity[row, one] != capacity[row, other]:
            return False
    return True


@compiled
def _put_tangents(field: Field, way: int, begin: int, end: int) -> None:
    """Put the tangents of Mix-Fit's angle into `field.tangent`, whether the way fits or not."""
    ways, tangent = field.problem.ways, field.tangent[: end - begin]
    cores, memory = field.free[CORES, begin:end], field.free[MEMORY, begin:end]
    per_core, per_memory = field.inverse[CORES, begin:end], field.inverse[MEMORY, begin:end]
    needs_cores, needs_memory = ways.demand[way, CORES], ways.demand[way, MEMORY]
    if ways.case[way] == 0:
        for at in range(len(tangent)):
            left_cores = (cores[at] - needs_cores) * per_core[at] + CORNER
            left_memory = (memory[at] - needs_memory) * per_memory[at] + CORNER
            tangent[at] = abs(left_cores - left_memory) / (left_cores + left_memory)
        return
    cache, bandwidth = field.free[WAYS, begin:end], field.free[BANDWIDTH, begin:end]
    per_way, per_gbps = field.inverse[WAYS, begin:end], field.inverse[BANDWIDTH, begin:end]
    needs_ways, needs_gbps = ways.demand[way, WAYS], ways.demand[way, BANDWIDTH]
    with_ways, with_gbps = needs_ways > 0, needs_gbps > 0
    count = 2 + int(with_ways) + int(with_gbps)
    for at in range(len(tangent)):
        left_cores = (cores[at] - needs_cores) * per_core[at] + CORNER
        left_memory = (memory[at] - needs_memory) * per_memory[at] + CORNER
        left_ways = (cache[at] - needs_ways) * per_way[at] + CORNER if with_ways else 0.0
        left_gbps = (bandwidth[at] - needs_gbps) * per_gbps[at] + CORNER if with_gbps else 0.0
        mean = (left_cores + left_memory + left_ways + left_gbps) / count
        off = (left_cores - mean) ** 2 + (left_memory - mean) ** 2
        off += (left_ways - mean) ** 2 if with_ways else 0.0
        off += (left_gbps - mean) ** 2 if with_gbps else 0.0
        tangent[at] = math.sqrt(off / count) / mean


@compiled
def _is_worse_angle(field: Field, score: int, way: int, node: int, known: int) -> bool:
    """Whether the node's angle is certainly larger than this one: by a bound that costs no arc tangent."""
    if not field.problem.scores.angle[score] or field.standing[score, node] == NONE or not fits(field, way, node):
        return False
    demand, case = field.problem.ways.demand, field.problem.ways.case[way]
    left_cores = (field.free[CORES, node] - demand[way, CORES]) * field.inverse[CORES, node] + CORNER
    left_memory = (field.free[MEMORY, node] - demand[way, MEMORY]) * field.inverse[MEMORY, node] + CORNER
    tangent = abs(left_cores - left_memory) / (left_cores + left_memory)
    if case:
        total, squares, count = left_cores + left_memory, left_cores**2 + left_memory**2, 2
        for row in range(WAYS, BANDWIDTH + 1):
            if case & (row - MEMORY):
                left = (field.free[row, node] - demand[way, row]) * field.inverse[row, node] + CORNER
                total, squares, count = total + left, squares + left**2, count + 1
        tangent = math.sqrt(max(0.0, squares * count / (total * total) - 1))
    # atan t > t - t^3 / 3 for t > 0; the squares lose half of the digits, less than 1e-7 near 0.
    bound = tangent - tangent * tangent * tangent / 3 - (1e-7 if case else 0.0)
    return bound * PER_UNIT > known + 2


@compiled
def _angle(field: Field, way: int, node: int) -> int:
    """Mix-Fit's angle in units of 1e-9: the twin's arithmetic, operation by operation."""
    left_cores = _left(field, way, node, CORES)
    left_memory = _left(field, way, node, MEMORY)
    case = field.problem.ways.case[way]
    if case == 0:
        return int(np.rint(abs(math.pi / 4 - math.atan(left_cores / left_memory)) * PER_UNIT))
    total, count = left_cores + left_memory, 2
    for row in range(WAYS, BANDWIDTH + 1):
        if case & (row - MEMORY):
            total += _left(field, way, node, row)
            count += 1
    mean = total / count
    off = (left_cores - mean) ** 2 + (left_memory - mean) ** 2
    for row in range(WAYS, BANDWIDTH + 1):
        if case & (row - MEMORY):
            off += (_left(field, way, node, row) - mean) ** 2
    return int(np.rint(math.atan2(math.sqrt(off), mean * math.sqrt(count)) * PER_UNIT))


@compiled
def _left(field: Field, way: int, node: int, row: int) -> float:
    """What would be left of the resource, as a share of what the node has of it, by the authors' factor 1.01."""
    configured = field.problem.machines.capacity[row, node]
    used = configured - field.free[row, node] + field.problem.ways.demand[way, row]
    return (1.01 * configured - used) / configured
