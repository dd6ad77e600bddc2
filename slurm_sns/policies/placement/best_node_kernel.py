"""The best open nodes for each alternative of a job (compiled).

The best node is the one with the smallest key (module field). It is found in two steps, so that a search looks at few
nodes: the nodes are cut into blocks of about the square root of their number, and for each (score, alternative) in use
the smallest key of every block is kept (`NodeState.minima`). A search takes the smallest of those.

What is kept of a block is the key itself, or a bound: a number that is odd, below every key of the block (UNKNOWN is
below all). When a bound is the smallest, that block is searched, and the smallest is looked for again.

A match changes few nodes. They are in the field's log, and what was kept is brought up to date from it when it is asked
for again: `find_nodes` begins with that. An alternative on several nodes is given one after another, each hidden from
the search for the next, and all are shown again at the end: whether they are taken is the caller's decision.

For V alternatives in use, N nodes and M matches this costs O(V N + V M + M sqrt N) at most in a cycle, with V N
vectorised; it does not depend on the number of jobs. Later cycles on the same field pay for the nodes that have changed
since.

Mix-Fit's angle (JSSPP 2013, section 3.1) is computed for the few nodes that can have the smallest: its tangent, which
costs no arc tangent, grows with it, and gives the bounds.
"""

import math

import numpy as np

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Integers
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, CORES, MEMORY, WAYS
from slurm_sns.policies.placement.node_state_kernel import (
    BITS,
    BOUND,
    LOGGED,
    NODES_PER_CHANGE,
    NONE,
    PER_UNIT,
    PLACE_BITS,
    PLACES,
    UNKNOWN,
    USED_SLOTS,
    NodeState,
    bring_up_to_date,
    fits,
    node_of,
    put_fitting_keys,
    smallest_simple,
)
from slurm_sns.policies.placement.order_statistics import nth_smallest

#: Tangents are compared as integers, in units of 1e-12: the compiler vectorises the smallest of integers only.
FINE_PER_UNIT = 1e12
#: Two nodes whose tangents differ by more than this differ by more than the 1e-9 to which angles are rounded: the
#: tangent is at most the square root of 3 (of four resources one is left), where the angle grows a quarter as fast.
NEAR = 8000
#: The arc tangent of less than this is taken from the first six terms of its series, which leave out less than 1e-14.
SMALL_TANGENT = 0.1
#: Unless the angle is so near to the middle between two units of 1e-9 that the twin may round it the other way.
DOUBTFUL = 0.01
#: What a node has left of a resource counts as this share more (JSSPP 2013: the factor 1.01 of the authors' simulator).
CORNER = 0.01
#: An alternative on more nodes than this is counted first: finding many nodes one after another only to fail costs
#: more.
FEW_NODES = 32


@compiled
def find_nodes(field: NodeState, score: int, alternative: int) -> int:
    """Put the alternative's best nodes into `field.chosen`; where they begin in it, NOBODY when too few fit.

    A grouped score wants the nodes of the most idle cores of which there are enough with equally many, else the best
    of all whatever their idle cores.
    """
    wanted = field.problem.alternatives.nodes[alternative]
    bring_up_to_date(field, score)
    if wanted > FEW_NODES and _fitting(field, score, alternative) < wanted:
        return NOBODY
    slot = _up_to_date(field, score, alternative)
    blocks = field.minima[slot, : _blocks(field)]
    found, alike = _find_alike(field, score, alternative, blocks)
    if wanted > 1:
        _show(field, score, blocks, found)
    if found < wanted:
        return NOBODY
    if alike < wanted:
        _best_whatever_their_cores(field, found, wanted)
        return 0
    return found - wanted


@compiled
def _find_alike(field: NodeState, score: int, alternative: int, blocks: Integers) -> tuple[int, int]:
    """Find the best nodes, one after another, until as many of equal rank as the alternative wants come together.

    They are in `field.chosen`, their keys in `field.hidden`, and of several each is hidden from the next search. How
    many were found, and how many of the last ones are of equal rank; all that fit when those are too few.
    """
    wanted = field.problem.alternatives.nodes[alternative]
    found, alike = 0, 0
    while alike < wanted:
        key = _smallest(field, score, alternative, blocks)
        if key == NONE:
            break
        node = node_of(key)
        if found > 0:
            alike = alike if _are_grouped(field, score, field.chosen[found - 1], node) else 0
        field.chosen[found] = node
        field.hidden[found] = key
        found += 1
        alike += 1
        if wanted > 1:
            field.base_key[score, node] = NONE
            blocks[node >> field.state[BITS]] = UNKNOWN
    return found, alike


@compiled
def _show(field: NodeState, score: int, blocks: Integers, found: int) -> None:
    """Let the nodes that were hidden while others were found take part again.

    Also those that are taken now: taking them is a change like any other.
    """
    for at in range(found):
        node = node_of(field.hidden[at])
        block = node >> field.state[BITS]
        field.base_key[score, node] = 2 * node if field.problem.scores.angle[score] else field.hidden[at]
        blocks[block] = min(blocks[block], field.hidden[at])


@compiled
def _are_grouped(field: NodeState, score: int, one: int, other: int) -> bool:
    """Whether two nodes are of equal rank: under a grouped score those with equally many idle cores, else any two."""
    return not field.problem.scores.grouped[score] or field.free[CORES, one] == field.free[CORES, other]


@compiled
def _best_whatever_their_cores(field: NodeState, found: int, wanted: int) -> None:
    """Of the nodes that were found, all that fit: the best by their occupied shares alone to the front."""
    keys, span = field.keys[:found], field.problem.scores.span
    for at in range(found):
        keys[at] = field.hidden[at] + ((field.free[CORES, field.chosen[at]] * span) << PLACE_BITS)
    largest = nth_smallest(field.scratch[:found], keys, wanted)
    kept = 0
    for at in range(found):
        if keys[at] <= largest:
            field.chosen[kept] = node_of(keys[at])
            kept += 1


@compiled
def _fitting(field: NodeState, score: int, alternative: int) -> int:
    """On how many nodes the alternative fits."""
    count = 0
    put_fitting_keys(field, score, alternative, 0, len(field.keys))
    for at in range(len(field.keys)):
        count += field.keys[at] != NONE
    return count


@compiled
def _smallest(field: NodeState, score: int, alternative: int, blocks: Integers) -> int:
    """The smallest key of all nodes for this alternative; NONE when it fits on none."""
    while True:
        best = NONE
        for block in range(len(blocks)):
            best = min(best, blocks[block])
        if not best & BOUND:
            return best
        for block in range(len(blocks)):
            if blocks[block] == best:
                blocks[block] = _best_of_block(field, score, alternative, block, best == UNKNOWN)


@compiled
def _best_of_block(field: NodeState, score: int, alternative: int, block: int, bound_will_do: bool) -> int:
    """The smallest key of the block, or a bound where finding it costs more."""
    begin = block << field.state[BITS]
    end = min(begin + (1 << field.state[BITS]), len(field.keys))
    is_angle = field.problem.scores.angle[score]
    if not is_angle and field.problem.alternatives.simple[alternative]:
        return smallest_simple(field, score, alternative, begin, end)
    put_fitting_keys(field, score, alternative, begin, end)
    if is_angle:
        return _smallest_angle(field, alternative, begin, end, bound_will_do)
    best = NONE
    for at in range(end - begin):
        best = min(best, field.keys[at])
    return best


@compiled
def _blocks(field: NodeState) -> int:
    """How many blocks the nodes are cut into."""
    return ((len(field.keys) - 1) >> field.state[BITS]) + 1


@compiled
def _up_to_date(field: NodeState, score: int, alternative: int) -> int:
    """The slot of this alternative, with all changes so far in it."""
    owner = alternative * len(field.problem.scores.angle) + score
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
                _refresh(field, score, alternative, slot, node)
    field.seen[slot] = field.state[LOGGED]
    return slot


@compiled
def _refresh(field: NodeState, score: int, alternative: int, slot: int, node: int) -> None:
    """Bring the minimum of the changed node's block up to date."""
    block = node >> field.state[BITS]
    known = field.minima[slot, block]
    is_known = known != NONE and known & PLACES == 2 * node
    if known == UNKNOWN:
        return
    key = _key_of(field, score, alternative, node, known)
    if key < known:
        field.minima[slot, block] = key
    elif is_known and key != known:  # it was the best and has got worse: the others are behind it still
        field.minima[slot, block] = known + BOUND


@compiled
def _key_of(field: NodeState, score: int, alternative: int, node: int, known: int) -> int:
    """The node's key for this alternative, NONE where it does not fit or takes no part.

    Where the key is larger than `known`, any larger number may be returned.
    """
    base_key = field.base_key[score, node]
    if base_key == NONE or not fits(field, alternative, node):
        return NONE
    if not field.problem.scores.angle[score]:
        return base_key
    _put_tangents(field, alternative, node, node + 1)
    angle = _least_angle(field.tangent[0])
    if angle <= known >> PLACE_BITS:
        angle = _angle(field, alternative, node, field.tangent[0])
    return (angle << PLACE_BITS) + 2 * node


@compiled
def _smallest_angle(field: NodeState, alternative: int, begin: int, end: int, bound_will_do: bool) -> int:
    """The smallest key by angle of the nodes with a key in `field.keys`: tangents of all, angles of the smallest."""
    keys, tangent = field.keys[: end - begin], field.tangent[: end - begin]
    _put_tangents(field, alternative, begin, end)
    smallest = NONE
    for at in range(len(keys)):
        tangent[at] = tangent[at] if keys[at] != NONE else NONE
        smallest = min(smallest, tangent[at])
    if smallest == NONE:
        return NONE
    if bound_will_do:
        return (_least_angle(smallest) << PLACE_BITS) + BOUND
    best = NONE
    last = NOBODY
    for at in range(len(keys)):
        # A node in the same state as the last one that was looked at has the same angle and comes after it.
        if tangent[at] <= smallest + NEAR and (last == NOBODY or not _are_alike(field, last, begin + at)):
            last = begin + at
            best = min(best, (_angle(field, alternative, last, tangent[at]) << PLACE_BITS) + 2 * last)
    return best


@compiled
def _least_angle(tangent: int) -> int:
    """Less than the angle of this tangent, in units of 1e-9: atan t > t - t^3 / 3 for t > 0."""
    value = tangent / FINE_PER_UNIT
    return int((value - value * value * value / 3) * PER_UNIT) - 3


@compiled
def _are_alike(field: NodeState, one: int, other: int) -> bool:
    """Whether two nodes are in the same state."""
    capacity = field.problem.machines.capacity
    for row in range(field.free.shape[0]):
        if field.free[row, one] != field.free[row, other] or capacity[row, one] != capacity[row, other]:
            return False
    return True


@compiled
def _put_tangents(field: NodeState, alternative: int, begin: int, end: int) -> None:
    """Put the tangents of Mix-Fit's angle into `field.tangent`, any number where the alternative does not fit."""
    alternatives, tangent = field.problem.alternatives, field.tangent[: end - begin]
    cores, memory = field.free[CORES, begin:end], field.free[MEMORY, begin:end]
    per_core, per_memory = field.inverse[CORES, begin:end], field.inverse[MEMORY, begin:end]
    needs_cores, needs_memory = alternatives.demand[alternative, CORES], alternatives.demand[alternative, MEMORY]
    if alternatives.case[alternative] == 0:
        for at in range(len(tangent)):
            left_cores = (cores[at] - needs_cores) * per_core[at] + CORNER
            left_memory = (memory[at] - needs_memory) * per_memory[at] + CORNER
            tangent[at] = int(abs(left_cores - left_memory) / (left_cores + left_memory) * FINE_PER_UNIT)
        return
    cache, bandwidth = field.free[WAYS, begin:end], field.free[BANDWIDTH, begin:end]
    per_way, per_gbps = field.inverse[WAYS, begin:end], field.inverse[BANDWIDTH, begin:end]
    needs_ways, needs_gbps = alternatives.demand[alternative, WAYS], alternatives.demand[alternative, BANDWIDTH]
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
        tangent[at] = int(math.sqrt(off / count) / mean * FINE_PER_UNIT)


@compiled
def _angle(field: NodeState, alternative: int, node: int, tangent: int) -> int:
    """Mix-Fit's angle in units of 1e-9, as the twin rounds it."""
    value = (tangent + 0.5) / FINE_PER_UNIT
    if value < SMALL_TANGENT:
        square = value * value
        series = 1 - square * (1 / 3 - square * (1 / 5 - square * (1 / 7 - square * (1 / 9 - square / 11))))
        units = value * series * PER_UNIT
        if abs(units - np.floor(units) - 0.5) > DOUBTFUL:
            return int(np.rint(units))
    return _angle_as_twin(field, alternative, node)


@compiled
def _angle_as_twin(field: NodeState, alternative: int, node: int) -> int:
    """The angle by the twin's arithmetic, operation by operation."""
    left_cores = _left(field, alternative, node, CORES)
    left_memory = _left(field, alternative, node, MEMORY)
    case = field.problem.alternatives.case[alternative]
    if case == 0:
        return int(np.rint(abs(math.pi / 4 - math.atan(left_cores / left_memory)) * PER_UNIT))
    total, count = left_cores + left_memory, 2
    for row in range(WAYS, BANDWIDTH + 1):
        if case & (row - MEMORY):
            total += _left(field, alternative, node, row)
            count += 1
    mean = total / count
    off = (left_cores - mean) ** 2 + (left_memory - mean) ** 2
    for row in range(WAYS, BANDWIDTH + 1):
        if case & (row - MEMORY):
            off += (_left(field, alternative, node, row) - mean) ** 2
    return int(np.rint(math.atan2(math.sqrt(off), mean * math.sqrt(count)) * PER_UNIT))


@compiled
def _left(field: NodeState, alternative: int, node: int, row: int) -> float:
    """What would be left of the resource, as a share of what the node has of it, by the authors' factor 1.01."""
    configured = field.problem.machines.capacity[row, node]
    used = configured - field.free[row, node] + field.problem.alternatives.demand[alternative, row]
    return (1.01 * configured - used) / configured
