"""The best open nodes for each alternative of a job (compiled).

The best node is the one with the smallest key (module `node_state_kernel`). It is found in two steps, so that a search
looks at few nodes: the nodes are cut into blocks of about the square root of their number, and for each (score,
alternative) in use the smallest key of every block is kept (`CycleNodes.minima`). A search takes the smallest of those.

For each block either its smallest key is kept or a bound: an odd number below every key of the block (UNKNOWN is below
all keys). When a bound is the smallest number, its block is searched, and then the smallest is looked for again.

A match changes few nodes. These are in the log of `CycleNodes`. `find_nodes` begins by bringing the kept keys of its
score and alternative up to date from the log. The nodes of an alternative on several nodes are found one after another.
Each found node is hidden from the search for the next one, and all are made visible again at the end: the caller
decides whether they are taken.

For V alternatives in use, N nodes and M matches this costs O(V N + V M + M sqrt N) at most in a cycle, with V N
vectorised; it does not depend on the number of jobs. Later cycles on the same `CycleNodes` pay only for the nodes that
have changed since.

Mix-Fit's angle (JSSPP 2013, section 3.1) is computed only for the few nodes that can have the smallest one. The tangent
of the angle selects these nodes and gives the bounds: it grows with the angle and needs no arc tangent.
"""

import math

import numpy as np

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Integers
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
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
    CycleNodes,
    bring_up_to_date,
    choose_by_keys,
    fits,
    node_of,
    put_fitting_keys,
    smallest_simple,
)
from slurm_sns.policies.placement.region_kernel import choose_smallest, put_keys_of_region

#: Tangents are compared as integers, in units of 1e-12: the compiler vectorises the smallest of integers only.
FINE_PER_UNIT = 1e12
#: If the tangents of two nodes differ by more than this times the number of resources, their angles differ by more than
#: the 1e-9 to which angles are rounded. With n resources the tangent is at most the square root of n - 1 (one of them
#: is left); there the angle grows by an n-th of what the tangent does.
NEAR = 2000
#: Below this tangent, the arc tangent is the sum of the first six terms of its series; the error is less than 1e-14.
SMALL_TANGENT = 0.1
#: The series is not used when the angle, in units of 1e-9, is within this distance of the middle between two integers:
#: there `mix_fit` may round it the other way.
DOUBTFUL = 0.01
#: Added to the share of a resource that a node would have left (JSSPP 2013: the factor 1.01 of the authors' simulator).
CORNER = 0.01
#: If an alternative is on more nodes than this, the nodes on which it fits are counted first: that costs less than to
#: find many nodes one after another, and then too few.
FEW_NODES = 32


@compiled
def find_nodes(node_state: CycleNodes, score: int, alternative: int) -> int:
    """Put the alternative's best nodes into `node_state.chosen`; return where they begin, NOBODY when too few fit.

    A grouped score takes all nodes from one group with equally many idle cores: of the groups that are large enough,
    the one with the most idle cores. When no group is large enough, it takes the best nodes whatever their idle cores.
    """
    nodes, wanted = node_state.problem.nodes, node_state.problem.alternatives.nodes[alternative]
    bring_up_to_date(node_state, score)
    if nodes.weighs or (wanted > 1 and nodes.switch.shape[0] > 0):
        return _find_in_region(node_state, score, alternative)
    if wanted > FEW_NODES and _fitting(node_state, score, alternative) < wanted:
        return NOBODY
    slot = _up_to_date(node_state, score, alternative)
    blocks = node_state.minima[slot, : ((len(node_state.keys) - 1) >> node_state.state[BITS]) + 1]
    found, alike = _find_alike(node_state, score, alternative, blocks)
    if wanted > 1:
        _show(node_state, score, blocks, found)
    if found < wanted:
        return NOBODY
    if alike < wanted:
        _best_whatever_their_cores(node_state, found, wanted)
        return 0
    return found - wanted


@compiled
def _find_in_region(node_state: CycleNodes, score: int, alternative: int) -> int:
    """The same where the nodes must lie under one switch, or lighter ones come first."""
    missing = put_keys_of_region(node_state, score, alternative)
    if missing == NOBODY:
        return NOBODY
    if node_state.problem.scores.angle[score]:
        _put_tangents(node_state, alternative, 0, len(node_state.keys))
        for node in range(len(node_state.keys)):
            if node_state.keys[node] != NONE:
                angle = _angle(node_state, alternative, node, node_state.tangent[node])
                node_state.keys[node] = (angle << PLACE_BITS) + 2 * node
    choose_smallest(node_state, score, alternative, missing)
    return 0


@compiled
def _find_alike(node_state: CycleNodes, score: int, alternative: int, blocks: Integers) -> tuple[int, int]:
    """Find the best nodes one after another, until the last ones are as many nodes of equal rank as are wanted.

    The nodes are in `node_state.chosen`, their keys in `node_state.hidden`. If several nodes are wanted, each found one
    is hidden from the next search. Returns how many nodes were found, and how many of the last ones are of equal rank;
    if these are too few, every node on which the alternative fits has been found.
    """
    wanted, is_grouped = node_state.problem.alternatives.nodes[alternative], node_state.problem.scores.grouped[score]
    cores = node_state.free[CORES]
    found, alike = 0, 0
    while alike < wanted:
        key = _smallest(node_state, score, alternative, blocks)
        if key == NONE:
            break
        node = node_of(key)
        if found > 0 and is_grouped and cores[node_state.chosen[found - 1]] != cores[node]:
            alike = 0  # under a grouped score nodes of equal rank have equally many idle cores
        node_state.chosen[found] = node
        node_state.hidden[found] = key
        found += 1
        alike += 1
        if wanted > 1:
            node_state.base_key[score, node] = NONE
            blocks[node >> node_state.state[BITS]] = UNKNOWN
    return found, alike


@compiled
def _show(node_state: CycleNodes, score: int, blocks: Integers, found: int) -> None:
    """Make the nodes that were hidden from the search visible again.

    This includes the nodes that will be taken: taking a node is logged like any other change.
    """
    for at in range(found):
        node = node_of(node_state.hidden[at])
        block = node >> node_state.state[BITS]
        node_state.base_key[score, node] = 2 * node if node_state.problem.scores.angle[score] else node_state.hidden[at]
        blocks[block] = min(blocks[block], node_state.hidden[at])


@compiled
def _best_whatever_their_cores(node_state: CycleNodes, found: int, wanted: int) -> None:
    """Put the best nodes by occupied shares alone at the front of `node_state.chosen`; it holds all nodes that fit."""
    keys, span = node_state.keys[:found], node_state.problem.scores.span
    for at in range(found):
        keys[at] = node_state.hidden[at] + ((node_state.free[CORES, node_state.chosen[at]] * span) << PLACE_BITS)
    choose_by_keys(node_state, keys, wanted, 0)


@compiled
def _fitting(node_state: CycleNodes, score: int, alternative: int) -> int:
    """The number of nodes on which the alternative fits."""
    count = 0
    put_fitting_keys(node_state, score, alternative, 0, len(node_state.keys))
    for at in range(len(node_state.keys)):
        count += node_state.keys[at] != NONE
    return count


@compiled
def _smallest(node_state: CycleNodes, score: int, alternative: int, blocks: Integers) -> int:
    """The smallest key of all nodes for this alternative; NONE when it fits on none."""
    while True:
        best = NONE
        for block in range(len(blocks)):
            best = min(best, blocks[block])
        if not best & BOUND:
            return best
        for block in range(len(blocks)):
            if blocks[block] == best:
                blocks[block] = _best_of_block(node_state, score, alternative, block, best == UNKNOWN)


@compiled
def _best_of_block(node_state: CycleNodes, score: int, alternative: int, block: int, bound_will_do: bool) -> int:
    """The smallest key of the block; with `bound_will_do` a bound, where the key costs more to find."""
    begin = block << node_state.state[BITS]
    end = min(begin + (1 << node_state.state[BITS]), len(node_state.keys))
    is_angle = node_state.problem.scores.angle[score]
    if not is_angle and node_state.problem.alternatives.simple[alternative]:
        return smallest_simple(node_state, score, alternative, begin, end)
    put_fitting_keys(node_state, score, alternative, begin, end)
    if is_angle:
        return _smallest_angle(node_state, alternative, begin, end, bound_will_do)
    best = NONE
    for at in range(end - begin):
        best = min(best, node_state.keys[at])
    return best


@compiled
def _up_to_date(node_state: CycleNodes, score: int, alternative: int) -> int:
    """The slot of this score and alternative, brought up to date with all changes so far."""
    owner = alternative * len(node_state.problem.scores.angle) + score
    slot = node_state.slot[owner]
    is_new = node_state.owner[slot] != owner
    if is_new:
        slot = node_state.state[USED_SLOTS] % len(node_state.owner)
        node_state.state[USED_SLOTS] += 1
        node_state.owner[slot] = owner
        node_state.slot[owner] = slot
        node_state.seen[slot] = 0
    if is_new or (node_state.state[LOGGED] - node_state.seen[slot]) * NODES_PER_CHANGE > len(node_state.keys):
        node_state.minima[slot, :] = UNKNOWN
    else:
        for at in range(node_state.seen[slot], node_state.state[LOGGED]):
            node = node_state.log[at]
            if node_state.changed[node] == at:  # else it has changed again since
                _refresh(node_state, score, alternative, slot, node)
    node_state.seen[slot] = node_state.state[LOGGED]
    return slot


@compiled
def _refresh(node_state: CycleNodes, score: int, alternative: int, slot: int, node: int) -> None:
    """Bring the minimum of the changed node's block up to date."""
    block = node >> node_state.state[BITS]
    known = node_state.minima[slot, block]
    is_known = known != NONE and known & PLACES == 2 * node
    if known == UNKNOWN:
        return
    key = _key_of(node_state, score, alternative, node, known)
    if key < known:
        node_state.minima[slot, block] = key
    elif is_known and key != known:  # it was the best and has got worse; the other keys are larger than `known`
        node_state.minima[slot, block] = known + BOUND


@compiled
def _key_of(node_state: CycleNodes, score: int, alternative: int, node: int, known: int) -> int:
    """The node's key for this alternative, NONE where it does not fit or takes no part.

    Where the key is larger than `known`, any larger number may be returned.
    """
    base_key = node_state.base_key[score, node]
    if base_key == NONE or not fits(node_state, alternative, node):
        return NONE
    if not node_state.problem.scores.angle[score]:
        return base_key
    _put_tangents(node_state, alternative, node, node + 1)
    angle = _least_angle(node_state.tangent[0])
    if angle <= known >> PLACE_BITS:
        angle = _angle(node_state, alternative, node, node_state.tangent[0])
    return (angle << PLACE_BITS) + 2 * node


@compiled
def _smallest_angle(node_state: CycleNodes, alternative: int, begin: int, end: int, bound_will_do: bool) -> int:
    """The smallest key by angle among the nodes with a key in `node_state.keys`.

    It computes the tangents of all nodes, but the angles of those with the smallest tangents only.
    """
    keys, tangent = node_state.keys[: end - begin], node_state.tangent[: end - begin]
    near = _put_tangents(node_state, alternative, begin, end) * NEAR
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
        if tangent[at] <= smallest + near and (last == NOBODY or not _are_alike(node_state, last, begin + at)):
            last = begin + at
            best = min(best, (_angle(node_state, alternative, last, tangent[at]) << PLACE_BITS) + 2 * last)
    return best


@compiled
def _least_angle(tangent: int) -> int:
    """A number below the angle of this tangent, in units of 1e-9: atan t > t - t^3 / 3 for t > 0."""
    value = tangent / FINE_PER_UNIT
    return int((value - value * value * value / 3) * PER_UNIT) - 3


@compiled
def _are_alike(node_state: CycleNodes, one: int, other: int) -> bool:
    """Whether two nodes have equal capacity and equal free amounts."""
    capacity = node_state.problem.nodes.capacity
    for row in range(node_state.free.shape[0]):
        if node_state.free[row, one] != node_state.free[row, other] or capacity[row, one] != capacity[row, other]:
            return False
    return True


@compiled
def _put_tangents(node_state: CycleNodes, alternative: int, begin: int, end: int) -> int:
    """Put the tangents of Mix-Fit's angle into `node_state.tangent`; any number where the alternative does not fit.

    Returns the number of resources that are compared. The compiler vectorises the loop for cores and memory alone.
    """
    alternatives, tangent = node_state.problem.alternatives, node_state.tangent[: end - begin]
    cores, memory = node_state.free[CORES, begin:end], node_state.free[MEMORY, begin:end]
    per_core, per_memory = node_state.inverse[CORES, begin:end], node_state.inverse[MEMORY, begin:end]
    needs_cores, needs_memory = alternatives.demand[alternative, CORES], alternatives.demand[alternative, MEMORY]
    case = alternatives.case[alternative]
    if case == 0:
        for at in range(len(tangent)):
            left_cores = (cores[at] - needs_cores) * per_core[at] + CORNER
            left_memory = (memory[at] - needs_memory) * per_memory[at] + CORNER
            tangent[at] = int(abs(left_cores - left_memory) / (left_cores + left_memory) * FINE_PER_UNIT)
        return 2
    demanded, count = node_state.problem.scores.demanded, 2
    for row in range(MEMORY + 1, node_state.free.shape[0]):
        count += int(demanded[case, row])
    for at in range(len(tangent)):
        left_cores = (cores[at] - needs_cores) * per_core[at] + CORNER
        left_memory = (memory[at] - needs_memory) * per_memory[at] + CORNER
        mean = left_cores + left_memory
        for row in range(MEMORY + 1, node_state.free.shape[0]):
            if demanded[case, row]:
                mean += _about_left(node_state, alternative, begin + at, row)
        mean /= count
        off = (left_cores - mean) ** 2 + (left_memory - mean) ** 2
        for row in range(MEMORY + 1, node_state.free.shape[0]):
            if demanded[case, row]:
                off += (_about_left(node_state, alternative, begin + at, row) - mean) ** 2
        tangent[at] = int(math.sqrt(off / count) / mean * FINE_PER_UNIT)
    return count


@compiled
def _about_left(node_state: CycleNodes, alternative: int, node: int, row: int) -> float:
    """What `_left` gives but for the last digits, without its division."""
    needs = node_state.problem.alternatives.demand[alternative, row]
    return (node_state.free[row, node] - needs) * node_state.inverse[row, node] + CORNER


@compiled
def _angle(node_state: CycleNodes, alternative: int, node: int, tangent: int) -> int:
    """Mix-Fit's angle in units of 1e-9, as `heuristics.mix_fit` rounds it."""
    value = (tangent + 0.5) / FINE_PER_UNIT
    if value < SMALL_TANGENT:
        square = value * value
        series = 1 - square * (1 / 3 - square * (1 / 5 - square * (1 / 7 - square * (1 / 9 - square / 11))))
        units = value * series * PER_UNIT
        if abs(units - np.floor(units) - 0.5) > DOUBTFUL:
            return int(np.rint(units))
    return _angle_in_full(node_state, alternative, node)


@compiled
def _angle_in_full(node_state: CycleNodes, alternative: int, node: int) -> int:
    """The angle by the arithmetic of `heuristics.mix_fit`, operation by operation."""
    left_cores = _left(node_state, alternative, node, CORES)
    left_memory = _left(node_state, alternative, node, MEMORY)
    case = node_state.problem.alternatives.case[alternative]
    if case == 0:
        return int(np.rint(abs(math.pi / 4 - math.atan(left_cores / left_memory)) * PER_UNIT))
    demanded = node_state.problem.scores.demanded
    total, count = left_cores + left_memory, 2
    for row in range(MEMORY + 1, node_state.free.shape[0]):
        if demanded[case, row]:
            total += _left(node_state, alternative, node, row)
            count += 1
    mean = total / count
    off = (left_cores - mean) ** 2 + (left_memory - mean) ** 2
    for row in range(MEMORY + 1, node_state.free.shape[0]):
        if demanded[case, row]:
            off += (_left(node_state, alternative, node, row) - mean) ** 2
    return int(np.rint(math.atan2(math.sqrt(off), mean * math.sqrt(count)) * PER_UNIT))


@compiled
def _left(node_state: CycleNodes, alternative: int, node: int, row: int) -> float:
    """The share of the node's capacity that would be left, with the factor 1.01 of the paper's authors."""
    configured = node_state.problem.nodes.capacity[row, node]
    used = configured - node_state.free[row, node] + node_state.problem.alternatives.demand[alternative, row]
    return (1.01 * configured - used) / configured
