"""The nodes while cycles run (compiled): what is free, who takes part, what has changed.

A node's *key* is its score and twice its place in the machine list in one integer, so that the smallest key is the best
node and the first of equal ones; an odd one is no node's, but a bound. Its base key is the key as far as it does not
depend on the job.

The field lasts from cycle to cycle: a member's cycle changes it, and what was changed is put back for the next member;
at the beginning of a pass the nodes that differ from those of the last pass are taken over, unless who changes what is
free tells the field at once. Each change is logged, so that what is kept of the best nodes, and the base keys for a
score, can be brought up to date from the log when they are asked for: a member's cycle pays for its own score alone.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.cycle import SMALLEST
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Flags, Floats, Integers, Problem
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, CORES, MEMORY, WAYS

#: The place in the machine list, doubled, is the low part of a key: 2**19 nodes, scores up to 2**42.
PLACE_BITS = 20
PLACES = (1 << PLACE_BITS) - 1
SCORE_BITS = 42
NONE = 1 << (PLACE_BITS + SCORE_BITS)
#: The smallest key of a block with this bit is not known: it is larger. UNKNOWN is smaller than every key.
BOUND = 1
UNKNOWN = -NONE + BOUND

#: Angles and occupied shares are compared as the twin rounds them: in units of 1e-9.
PER_UNIT = 1e9
#: The order in which the twin adds occupied shares.
ADDED = (CORES, BANDWIDTH, WAYS)

LEAST_CORES = SMALLEST.cores
LEAST_MEMORY_MB = SMALLEST.memory_mb

#: Alternatives whose best nodes are kept at a time; beyond that the oldest is forgotten.
SLOTS = 4096
LEAST_BLOCK_BITS = 4
#: Beyond so many changes a node (4096 at the least) the log begins anew, and nothing that was kept counts any more.
LOG_PER_NODE = 4
LEAST_LOG = 4096
#: In place of how much of the log is known: so long ago that everything is found anew.
NEVER = -(1 << 40)

#: Changes are not looked up one by one when they are more than one in so many nodes: finding all anew costs less.
NODES_PER_CHANGE = 8

OPEN, LOGGED, BITS, USED_SLOTS, TOUCHED = range(5)


class NodeState(NamedTuple):
    """All nodes, in the machine list's order; those without room for the smallest job are not open."""

    problem: Problem
    opening: Integers  #: (R, N) free at the start of the cycle
    free: Integers  #: (R, N) free now
    empty: Integers  #: (N) 1 when everything is free now, else 0
    is_open: Integers  #: (N) 1 when it takes part now, else 0
    inverse: Floats  #: (R, N) 1 / configured amount, 0 where there is none
    base_key: Integers  #: (S, N) the key without what the alternative adds; NONE: the node takes no part
    settled: Integers  #: (S) how much of the log is in the base keys
    log: Integers  #: nodes in the order in which they changed
    changed: Integers  #: (N) the last entry of the log for the node, or NOBODY
    touched: Integers  #: (N) the nodes that differ from the start of the cycle
    is_touched: Flags  #: (N)
    minima: Integers  #: (slots, blocks) smallest keys, or what they are larger than
    seen: Integers  #: (slots) how much of the log is in the minima
    owner: Integers  #: (slots) alternative * S + score
    slot: Integers  #: (W * S) a slot, valid when it is owned
    chosen: Integers  #: (N) the nodes found for an alternative
    hidden: Integers  #: (N) their keys
    keys: Integers  #: (N) scratch
    scratch: Integers  #: (N)
    tangent: Integers  #: (N) scratch
    state: Integers  #: (5) OPEN, LOGGED, BITS, USED_SLOTS, TOUCHED


def field_for(problem: Problem) -> NodeState:
    """A field of nodes about which nothing is known yet."""
    resources, nodes = problem.machines.capacity.shape
    scores, alternatives = len(problem.scores.angle), len(problem.alternatives.nodes)
    slots = max(1, min(SLOTS, len(problem.limits.scores) * alternatives))
    bits = LEAST_BLOCK_BITS
    while (1 << (2 * bits)) < nodes:
        bits += 1
    state = np.zeros(5, np.int64)
    state[BITS] = bits
    capacity = problem.machines.capacity
    inverse = np.divide(1.0, capacity, out=np.zeros(capacity.shape), where=capacity > 0)
    return NodeState(
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


def open_all(field: NodeState) -> None:
    """Before the first pass: everything is free."""
    field.opening[:] = field.problem.machines.capacity
    field.touched[:] = np.arange(len(field.touched))
    field.is_touched[:] = True
    field.state[TOUCHED] = len(field.touched)


@compiled
def take_over(field: NodeState, free: Integers) -> None:
    """Begin a pass with this much free: the nodes that differ are touched, `restart` settles them."""
    opening = field.opening
    for node in range(free.shape[1]):
        differs = False
        for row in range(free.shape[0]):
            differs |= opening[row, node] != free[row, node]
        if differs:
            for row in range(free.shape[0]):
                opening[row, node] = free[row, node]
            touch(field, node)


@compiled
def restart(field: NodeState) -> None:
    """Put everything back to the start of the pass, for the next member of the portfolio."""
    for at in range(field.state[TOUCHED]):
        node = field.touched[at]
        field.is_touched[node] = False
        for row in range(field.free.shape[0]):
            field.free[row, node] = field.opening[row, node]
        _settle(field, node)
    field.state[TOUCHED] = 0


@compiled
def take(field: NodeState, alternative: int, whole: bool, node: int) -> None:
    """Take the alternative's capacity, or the whole node. A node without room for the smallest job leaves the cycle."""
    alternatives, capacity = field.problem.alternatives, field.problem.machines.capacity
    for row in range(field.free.shape[0]):
        field.free[row, node] -= capacity[row, node] if whole else alternatives.demand[alternative, row]
    touch(field, node)
    _settle(field, node)


@compiled
def touch(field: NodeState, node: int) -> None:
    """The node, or its opening, is to be changed: `restart` puts it back, or takes it over."""
    if not field.is_touched[node]:
        field.is_touched[node] = True
        field.touched[field.state[TOUCHED]] = node
        field.state[TOUCHED] += 1


@compiled
def _settle(field: NodeState, node: int) -> None:
    """Work out what follows from what is free on the node, and log that it has changed."""
    stays = field.free[CORES, node] >= LEAST_CORES and field.free[MEMORY, node] >= LEAST_MEMORY_MB
    field.state[OPEN] += int(stays) - field.is_open[node]
    field.is_open[node] = int(stays)
    field.empty[node] = int(_is_empty(field, node))
    if field.state[LOGGED] == len(field.log):
        field.owner[:] = NOBODY
        field.changed[:] = NOBODY
        field.settled[:] = NEVER
        field.state[LOGGED] = 0
    field.log[field.state[LOGGED]] = node
    field.changed[node] = field.state[LOGGED]
    field.state[LOGGED] += 1


@compiled
def bring_up_to_date(field: NodeState, score: int) -> None:
    """Bring the base keys of the nodes for this score up to date."""
    since, logged, nodes = field.settled[score], field.state[LOGGED], field.free.shape[1]
    all_anew = (logged - since) * NODES_PER_CHANGE > nodes
    for at in range(logged - 1 if all_anew else since, logged):
        node = 0 if all_anew else field.log[at]
        if all_anew or field.changed[node] == at:  # else it has changed again since
            _put_base_keys(field, score, node, nodes if all_anew else node + 1)
    field.settled[score] = logged


@compiled
def _put_base_keys(field: NodeState, score: int, begin: int, end: int) -> None:
    """Compute the base keys of the nodes from `begin` to `end`: weights times amounts, and occupied shares."""
    scores, capacity = field.problem.scores, field.problem.machines.capacity
    base_key = field.base_key[score, begin:end]
    cores, memory, is_open = field.free[CORES, begin:end], field.free[MEMORY, begin:end], field.is_open[begin:end]
    per_core, per_mb = scores.free[score, CORES], scores.free[score, MEMORY]
    for at in range(len(base_key)):
        base_key[at] = per_core * cores[at] + per_mb * memory[at]
    for row in range(field.free.shape[0]):
        if row > MEMORY:
            _add(base_key, field.free[row, begin:end], scores.free[score, row])
        _add(base_key, capacity[row, begin:end], scores.configured[score, row])
    if scores.grouped[score]:
        for at in range(len(base_key)):
            base_key[at] += _occupied(field, score, begin + at) - cores[at] * scores.span
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
def _occupied(field: NodeState, score: int, node: int) -> int:
    """The weighted sum of the occupied shares, by the twin's arithmetic, operation by operation."""
    scores, capacity = field.problem.scores, field.problem.machines.capacity
    occupied = 0.0
    for row in ADDED:
        if scores.occupied[score, row] > 0 and capacity[row, node] > 0:
            occupied += scores.occupied[score, row] * (
                (capacity[row, node] - field.free[row, node]) / capacity[row, node]
            )
    return int(np.rint(occupied * PER_UNIT))


@compiled
def fits(field: NodeState, alternative: int, node: int) -> bool:
    """Whether the node has enough of everything, is allowed, and empty where that is asked; not whether it is open."""
    alternatives = field.problem.alternatives
    if (
        field.free[CORES, node] < alternatives.demand[alternative, CORES]
        or field.free[MEMORY, node] < alternatives.demand[alternative, MEMORY]
    ):
        return False
    if alternatives.simple[alternative]:
        return True
    for row in range(MEMORY + 1, field.free.shape[0]):
        if alternatives.demand[alternative, row] > 0 and field.free[row, node] < alternatives.demand[alternative, row]:
            return False
    if (
        alternatives.allowed[alternative] != NOBODY
        and not field.problem.machines.allowed[alternatives.allowed[alternative], node]
    ):
        return False
    return not alternatives.exclusive[alternative] or field.empty[node] == 1


@compiled
def _is_empty(field: NodeState, node: int) -> bool:
    """Whether everything is free on the node."""
    for row in range(field.free.shape[0]):
        if field.free[row, node] != field.problem.machines.capacity[row, node]:
            return False
    return True


@compiled
def put_fitting_keys(field: NodeState, score: int, alternative: int, begin: int, end: int) -> None:
    """Put the base keys of the nodes from `begin` to `end` into `field.keys`; NONE where the alternative does not fit.

    Slices that are counted from 0, one condition a loop: without them the compiler does not vectorise.
    """
    alternatives = field.problem.alternatives
    keys, base_key = field.keys[: end - begin], field.base_key[score, begin:end]
    cores, memory = field.free[CORES, begin:end], field.free[MEMORY, begin:end]
    needs_cores, needs_memory = alternatives.demand[alternative, CORES], alternatives.demand[alternative, MEMORY]
    for at in range(len(keys)):
        keys[at] = base_key[at] if (cores[at] >= needs_cores) & (memory[at] >= needs_memory) else NONE
    if alternatives.simple[alternative]:
        return
    for row in range(MEMORY + 1, field.free.shape[0]):
        if alternatives.demand[alternative, row] > 0:
            _keep_at_least(keys, field.free[row, begin:end], alternatives.demand[alternative, row])
    if alternatives.exclusive[alternative]:
        _keep_at_least(keys, field.empty[begin:end], 1)
    if alternatives.allowed[alternative] != NOBODY:
        allowed = field.problem.machines.allowed[alternatives.allowed[alternative], begin:end]
        for at in range(len(keys)):
            keys[at] = keys[at] if allowed[at] else NONE


@compiled
def smallest_simple(field: NodeState, score: int, alternative: int, begin: int, end: int) -> int:
    """The smallest base key of the nodes from `begin` to `end` on which a simple alternative fits: in one loop."""
    base_key = field.base_key[score, begin:end]
    cores, memory = field.free[CORES, begin:end], field.free[MEMORY, begin:end]
    needs_cores, needs_memory = (
        field.problem.alternatives.demand[alternative, CORES],
        field.problem.alternatives.demand[alternative, MEMORY],
    )
    smallest = NONE
    for at in range(len(base_key)):
        key = base_key[at] if (cores[at] >= needs_cores) & (memory[at] >= needs_memory) else NONE
        smallest = min(smallest, key)
    return smallest


@compiled
def _keep_at_least(keys: Integers, amount: Integers, needed: int) -> None:
    """NONE instead of the key where the amount is less than what is needed."""
    for at in range(len(keys)):
        keys[at] = keys[at] if amount[at] >= needed else NONE
