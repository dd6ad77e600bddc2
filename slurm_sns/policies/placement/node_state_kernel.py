"""The nodes while cycles run (compiled): what is free, which nodes take part, which have changed.

A node's *key* is one integer made of its score and twice its place in the machine list. The best node has the smallest
key; of nodes with equal scores that is the first. Keys are even; an odd number is a bound. A node's *base key* is the
part of its key that does not depend on the job.

`CycleNodes` lasts from cycle to cycle. A member's cycle changes it, and `restart` puts the changed nodes back for the
next member. At the beginning of a pass `take_over` copies what is free on the nodes that differ from the last pass. A
caller that changes `opening` itself calls `touch` for each changed node instead. Each change is logged. The kept best
nodes and the base keys for a score are brought up to date from the log when they are needed, so a member's cycle pays
for its own score only.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.heuristics import ADDED
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Flags, Floats, Integers, Problem
from slurm_sns.policies.placement.node_arrays import CORES, GPUS, MEMORY, SMALLEST
from slurm_sns.policies.placement.order_statistics import nth_smallest

#: The place in the machine list, doubled, is the low part of a key: 2**19 nodes, scores up to 2**42.
PLACE_BITS = 20
PLACES = (1 << PLACE_BITS) - 1
SCORE_BITS = 42
NONE = 1 << (PLACE_BITS + SCORE_BITS)
#: A number with this bit is a bound: the block's smallest key is not known, but larger. UNKNOWN is below every key.
BOUND = 1
UNKNOWN = -NONE + BOUND

#: Angles are compared in units of 1e-9, and occupied shares where they fit (`Scores.unit`).
PER_UNIT = 1e9

LEAST_CORES = SMALLEST.cores
LEAST_MEMORY_MB = SMALLEST.memory_mb

#: For how many (score, alternative) pairs the best nodes are kept; when all slots are in use, the oldest one is reused.
SLOTS = 4096
LEAST_BLOCK_BITS = 4
#: The log has room for this many changes per node, and for LEAST_LOG at least. When it is full it begins again, and
#: everything that was kept is found anew.
LOG_PER_NODE = 4
LEAST_LOG = 4096
#: A value of `settled` that is so far back in the log that every base key is computed anew.
NEVER = -(1 << 40)

#: With more than one change per this many nodes, everything is computed anew: that costs less than change by change.
NODES_PER_CHANGE = 8

OPEN, LOGGED, BITS, USED_SLOTS, TOUCHED = range(5)


class CycleNodes(NamedTuple):
    """All nodes, in the machine list's order; those without room for the smallest job are not open."""

    problem: Problem
    opening: Integers  #: (R, N) free at the start of the cycle
    free: Integers  #: (R, N) free now
    empty: Integers  #: (N) 1 when everything is free now, else 0
    is_open: Integers  #: (N) 1 when the node takes part now, else 0
    inverse: Floats  #: (R, N) 1 / configured amount, 0 where there is none
    base_key: Integers  #: (S, N) the key without what the alternative adds; NONE when the node takes no part
    settled: Integers  #: (S) how many entries of the log the base keys include
    log: Integers  #: nodes in the order in which they changed
    changed: Integers  #: (N) the last entry of the log for the node, or NOBODY
    touched: Integers  #: (N) the nodes that differ from the start of the cycle
    is_touched: Flags  #: (N)
    minima: Integers  #: (slots, blocks) the smallest keys, or bounds below them
    seen: Integers  #: (slots) how many entries of the log the minima include
    owner: Integers  #: (slots) alternative * S + score
    slot: Integers  #: (W * S) a slot, valid when `owner` of the slot points back here
    chosen: Integers  #: (N) the nodes found for an alternative
    hidden: Integers  #: (N) their keys
    keys: Integers  #: (N) scratch
    scratch: Integers  #: (N)
    tangent: Integers  #: (N) scratch
    state: Integers  #: (5) OPEN, LOGGED, BITS, USED_SLOTS, TOUCHED


def node_state_for(problem: Problem) -> CycleNodes:
    """The state before the first pass, which does not yet know what is free."""
    resources, nodes = problem.nodes.capacity.shape
    scores, alternatives = len(problem.scores.angle), len(problem.alternatives.nodes)
    slots = max(1, min(SLOTS, len(problem.limits.scores) * alternatives))
    bits = LEAST_BLOCK_BITS
    while (1 << (2 * bits)) < nodes:
        bits += 1
    state = np.zeros(5, np.int64)
    state[BITS] = bits
    capacity = problem.nodes.capacity
    inverse = np.divide(1.0, capacity, out=np.zeros(capacity.shape), where=capacity > 0)
    return CycleNodes(
        problem=problem,
        opening=np.full((resources, nodes), -NONE, np.int64),
        free=np.full((resources, nodes), -NONE, np.int64),
        empty=np.zeros(nodes, np.int64),
        is_open=np.zeros(nodes, np.int64),
        inverse=inverse,
        base_key=np.full((scores, nodes), NONE, np.int64),
        settled=np.full(scores, NEVER, np.int64),
        log=np.empty(max(LOG_PER_NODE * nodes, LEAST_LOG), np.int64),
        changed=np.full(nodes, NOBODY, np.int64),
        touched=np.empty(nodes, np.int64),
        is_touched=np.zeros(nodes, np.bool_),
        minima=np.empty((slots, (nodes >> bits) + 1), np.int64),
        seen=np.empty(slots, np.int64),
        owner=np.full(slots, NOBODY, np.int64),
        slot=np.zeros(scores * alternatives, np.int64),
        chosen=np.empty(nodes, np.int64),
        hidden=np.empty(nodes, np.int64),
        keys=np.empty(nodes, np.int64),
        scratch=np.empty(nodes, np.int64),
        tangent=np.empty(nodes, np.int64),
        state=state,
    )


def open_all(node_state: CycleNodes) -> None:
    """Make everything free at the start of the first pass."""
    node_state.opening[:] = node_state.problem.nodes.capacity
    node_state.touched[:] = np.arange(len(node_state.touched))
    node_state.is_touched[:] = True
    node_state.state[TOUCHED] = len(node_state.touched)


@compiled
def take_over(node_state: CycleNodes, free: Integers) -> None:
    """Begin a pass with this much free: nodes that differ are touched, and `restart` brings them up to date."""
    opening = node_state.opening
    for node in range(free.shape[1]):
        differs = False
        for row in range(free.shape[0]):
            differs |= opening[row, node] != free[row, node]
        if differs:
            for row in range(free.shape[0]):
                opening[row, node] = free[row, node]
            touch(node_state, node)


@compiled
def restart(node_state: CycleNodes) -> None:
    """Put the touched nodes back to the start of the pass, for the next member of the portfolio."""
    for at in range(node_state.state[TOUCHED]):
        node = node_state.touched[at]
        node_state.is_touched[node] = False
        for row in range(node_state.free.shape[0]):
            node_state.free[row, node] = node_state.opening[row, node]
        settle(node_state, node)
    node_state.state[TOUCHED] = 0


@compiled
def take(node_state: CycleNodes, alternative: int, whole: bool, node: int) -> None:
    """Take the alternative's capacity, or the whole node. A node without room for the smallest job leaves the cycle."""
    alternatives, capacity = node_state.problem.alternatives, node_state.problem.nodes.capacity
    for row in range(node_state.free.shape[0]):
        node_state.free[row, node] -= capacity[row, node] if whole else alternatives.demand[alternative, row]
    touch(node_state, node)
    settle(node_state, node)


@compiled
def give(node_state: CycleNodes, alternative: int, whole: bool, node: int) -> None:
    """Give back what `take` has taken."""
    alternatives, capacity = node_state.problem.alternatives, node_state.problem.nodes.capacity
    for row in range(node_state.free.shape[0]):
        node_state.free[row, node] += capacity[row, node] if whole else alternatives.demand[alternative, row]
    touch(node_state, node)
    settle(node_state, node)


@compiled
def touch(node_state: CycleNodes, node: int) -> None:
    """Note that what is free on the node, now or in `opening`, changes: `restart` sets it to `opening`."""
    if not node_state.is_touched[node]:
        node_state.is_touched[node] = True
        node_state.touched[node_state.state[TOUCHED]] = node
        node_state.state[TOUCHED] += 1


@compiled
def settle(node_state: CycleNodes, node: int) -> None:
    """Bring the node's other values in line with what is free on it, and log the change."""
    stays = node_state.free[CORES, node] >= LEAST_CORES and node_state.free[MEMORY, node] >= LEAST_MEMORY_MB
    node_state.state[OPEN] += int(stays) - node_state.is_open[node]
    node_state.is_open[node] = int(stays)
    node_state.empty[node] = int(_is_empty(node_state, node))
    if node_state.state[LOGGED] == len(node_state.log):
        node_state.owner[:] = NOBODY
        node_state.changed[:] = NOBODY
        node_state.settled[:] = NEVER
        node_state.state[LOGGED] = 0
    node_state.log[node_state.state[LOGGED]] = node
    node_state.changed[node] = node_state.state[LOGGED]
    node_state.state[LOGGED] += 1


@compiled
def bring_up_to_date(node_state: CycleNodes, score: int) -> None:
    """Bring the base keys of the nodes for this score up to date."""
    since, logged, nodes = node_state.settled[score], node_state.state[LOGGED], node_state.free.shape[1]
    all_anew = (logged - since) * NODES_PER_CHANGE > nodes
    for at in range(logged - 1 if all_anew else since, logged):
        node = 0 if all_anew else node_state.log[at]
        if all_anew or node_state.changed[node] == at:  # else it has changed again since
            _put_base_keys(node_state, score, node, nodes if all_anew else node + 1)
    node_state.settled[score] = logged


@compiled
def _put_base_keys(node_state: CycleNodes, score: int, begin: int, end: int) -> None:
    """Compute the base keys of the nodes from `begin` to `end`: weights times amounts, plus occupied shares."""
    scores, capacity = node_state.problem.scores, node_state.problem.nodes.capacity
    base_key = node_state.base_key[score, begin:end]
    cores, memory, is_open = (
        node_state.free[CORES, begin:end],
        node_state.free[MEMORY, begin:end],
        node_state.is_open[begin:end],
    )
    per_core, per_mb = scores.free[score, CORES], scores.free[score, MEMORY]
    for at in range(len(base_key)):
        base_key[at] = per_core * cores[at] + per_mb * memory[at]
    for row in range(min(len(capacity), scores.free.shape[1])):
        if row > MEMORY:
            _add(base_key, node_state.free[row, begin:end], scores.free[score, row])
        _add(base_key, capacity[row, begin:end], scores.configured[score, row])
    if scores.grouped[score]:
        for at in range(len(base_key)):
            base_key[at] += _occupied(node_state, score, begin + at) - cores[at] * scores.span
    for at in range(len(base_key)):
        base_key[at] = (base_key[at] << PLACE_BITS) + 2 * (begin + at) if is_open[at] == 1 else NONE


@compiled
def node_of(key: int) -> int:
    """The node of a key."""
    return (key & PLACES) >> 1


@compiled
def _add(sums: Integers, amount: Integers, weight: int) -> None:
    if weight != 0:
        for at in range(len(sums)):
            sums[at] += weight * amount[at]


@compiled
def _occupied(node_state: CycleNodes, score: int, node: int) -> int:
    """The weighted sum of the occupied shares, by the arithmetic of `Heuristic`, operation by operation."""
    scores, capacity = node_state.problem.scores, node_state.problem.nodes.capacity
    occupied = 0.0
    for at in range(len(ADDED) + max(0, capacity.shape[0] - GPUS)):
        row = ADDED[at] if at < len(ADDED) else GPUS + at - len(ADDED)
        if scores.occupied[score, row] > 0 and capacity[row, node] > 0:
            occupied += scores.occupied[score, row] * (
                (capacity[row, node] - node_state.free[row, node]) / capacity[row, node]
            )
    return int(np.rint(occupied * scores.unit))


@compiled
def fits(node_state: CycleNodes, alternative: int, node: int) -> bool:
    """Whether the node is allowed, has enough of everything, and is empty if the alternative is exclusive.

    It does not look at whether the node is open.
    """
    alternatives = node_state.problem.alternatives
    if (
        node_state.free[CORES, node] < alternatives.demand[alternative, CORES]
        or node_state.free[MEMORY, node] < alternatives.demand[alternative, MEMORY]
    ):
        return False
    if alternatives.simple[alternative]:
        return True
    for row in range(MEMORY + 1, node_state.free.shape[0]):
        if (
            alternatives.demand[alternative, row] > 0
            and node_state.free[row, node] < alternatives.demand[alternative, row]
        ):
            return False
    if (
        alternatives.allowed[alternative] != NOBODY
        and not node_state.problem.nodes.allowed[alternatives.allowed[alternative], node]
    ):
        return False
    return not alternatives.exclusive[alternative] or node_state.empty[node] == 1


@compiled
def _is_empty(node_state: CycleNodes, node: int) -> bool:
    """Whether everything is free on the node."""
    for row in range(node_state.free.shape[0]):
        if node_state.free[row, node] != node_state.problem.nodes.capacity[row, node]:
            return False
    return True


@compiled
def put_fitting_keys(node_state: CycleNodes, score: int, alternative: int, begin: int, end: int) -> None:
    """Put the base keys of nodes `begin` to `end` into `node_state.keys`; NONE where the alternative does not fit.

    The compiler vectorises only loops over slices counted from 0 with one condition each.
    """
    alternatives = node_state.problem.alternatives
    keys, base_key = node_state.keys[: end - begin], node_state.base_key[score, begin:end]
    cores, memory = node_state.free[CORES, begin:end], node_state.free[MEMORY, begin:end]
    needs_cores, needs_memory = alternatives.demand[alternative, CORES], alternatives.demand[alternative, MEMORY]
    for at in range(len(keys)):
        keys[at] = base_key[at] if (cores[at] >= needs_cores) & (memory[at] >= needs_memory) else NONE
    if alternatives.simple[alternative]:
        return
    for row in range(MEMORY + 1, node_state.free.shape[0]):
        if alternatives.demand[alternative, row] > 0:
            _keep_at_least(keys, node_state.free[row, begin:end], alternatives.demand[alternative, row])
    if alternatives.exclusive[alternative]:
        _keep_at_least(keys, node_state.empty[begin:end], 1)
    if alternatives.allowed[alternative] != NOBODY:
        allowed = node_state.problem.nodes.allowed[alternatives.allowed[alternative], begin:end]
        for at in range(len(keys)):
            keys[at] = keys[at] if allowed[at] else NONE


@compiled
def smallest_simple(node_state: CycleNodes, score: int, alternative: int, begin: int, end: int) -> int:
    """The smallest base key of the nodes from `begin` to `end` on which a simple alternative fits, in one loop."""
    base_key = node_state.base_key[score, begin:end]
    cores, memory = node_state.free[CORES, begin:end], node_state.free[MEMORY, begin:end]
    needs_cores, needs_memory = (
        node_state.problem.alternatives.demand[alternative, CORES],
        node_state.problem.alternatives.demand[alternative, MEMORY],
    )
    smallest = NONE
    for at in range(len(base_key)):
        key = base_key[at] if (cores[at] >= needs_cores) & (memory[at] >= needs_memory) else NONE
        smallest = min(smallest, key)
    return smallest


@compiled
def _keep_at_least(keys: Integers, amount: Integers, needed: int) -> None:
    """Replace the key by NONE where the amount is less than what is needed."""
    for at in range(len(keys)):
        keys[at] = keys[at] if amount[at] >= needed else NONE


@compiled
def choose_by_keys(node_state: CycleNodes, keys: Integers, wanted: int, at: int) -> None:
    """Put the nodes of the `wanted` smallest keys into `node_state.chosen`, from `at` on."""
    largest = nth_smallest(node_state.scratch[: len(keys)], keys, wanted)
    for each in range(len(keys)):
        if keys[each] <= largest:
            node_state.chosen[at] = node_of(keys[each])
            at += 1
