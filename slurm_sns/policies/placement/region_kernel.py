"""The nodes of an alternative where nodes differ in weight or lie under switches (compiled). Twin: module `regions`.

Every search looks at all nodes: for N nodes and L levels of switches it costs O(N), and on several nodes O(L N), where
`best_node_kernel` keeps what it found before.
"""

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Integers
from slurm_sns.policies.placement.node_arrays import CORES
from slurm_sns.policies.placement.node_state_kernel import (
    NONE,
    PLACE_BITS,
    CycleNodes,
    choose_by_keys,
    node_of,
    put_fitting_keys,
)
from slurm_sns.policies.placement.order_statistics import nth_smallest, sort
from slurm_sns.policies.placement.regions import NO_SWITCH

#: Instead of a switch: all nodes, whatever their switch; and that no switch has enough nodes.
ANY_SWITCH, NO_REGION = -1, -2


@compiled
def put_keys_of_region(node_state: CycleNodes, score: int, alternative: int) -> int:
    """Choose the region of an alternative; return how many of its nodes remain to be chosen, NOBODY if there is none.

    The nodes that are lighter than others of the region are at the front of `node_state.chosen`. Of the nodes from
    which the rest is to be chosen the base keys are in `node_state.keys`; of all others NONE.
    """
    nodes, keys = node_state.problem.nodes, node_state.keys
    wanted = int(node_state.problem.alternatives.nodes[alternative])
    put_fitting_keys(node_state, score, alternative, 0, len(keys))
    if wanted == 1:
        return 1 if _keep_lightest(node_state) else NOBODY
    levels = nodes.switch.shape[0]
    level, switch, heaviest = 0, NO_REGION, 0
    if levels == 0:
        heaviest = _weight_needed(node_state, wanted)
        switch = NO_REGION if heaviest == NOBODY else ANY_SWITCH
    for each in range(levels):
        level = each
        switch, heaviest = _best_switch(node_state, wanted, level)
        if switch != NO_REGION:
            break
    if switch == NO_REGION:
        return NOBODY
    lighter = 0
    for node in range(len(keys)):
        if keys[node] == NONE:
            continue
        is_inside = switch == ANY_SWITCH or nodes.switch[level, node] == switch
        if is_inside and nodes.weight[node] < heaviest:
            node_state.chosen[lighter] = node
            lighter += 1
        if not is_inside or nodes.weight[node] != heaviest:
            keys[node] = NONE
    return wanted - lighter


@compiled
def choose_smallest(node_state: CycleNodes, score: int, alternative: int, missing: int) -> None:
    """Choose the missing nodes by the smallest keys in `node_state.keys`, behind those that are chosen already.

    A grouped score takes them from one group with equally many idle cores, as `best_node_kernel.find_nodes` does.
    """
    wanted = node_state.problem.alternatives.nodes[alternative]
    at = wanted - missing
    if missing == 1:
        smallest = NONE
        for node in range(len(node_state.keys)):
            smallest = min(smallest, node_state.keys[node])
        node_state.chosen[at] = node_of(smallest)
        return
    found = 0
    for node in range(len(node_state.keys)):
        if node_state.keys[node] != NONE:
            node_state.hidden[found] = node_state.keys[node]
            found += 1
    keys = node_state.hidden[:found]
    if node_state.problem.scores.grouped[score]:
        _put_group_first(node_state, keys, missing)
    choose_by_keys(node_state, keys, missing, at)


@compiled
def _put_group_first(node_state: CycleNodes, keys: Integers, missing: int) -> None:
    """Change the keys so that the smallest are those of the group to take; without one, of all by shares alone."""
    sort(keys)
    cores, span = node_state.free[CORES], node_state.problem.scores.span
    alike = 0
    for at in range(len(keys)):
        alike = alike + 1 if at > 0 and cores[node_of(keys[at])] == cores[node_of(keys[at - 1])] else 1
        if alike == missing:
            for before in range(at + 1 - missing):
                keys[before] += NONE  # it is of a group that is too small: behind all others
            return
    for at in range(len(keys)):
        keys[at] += (cores[node_of(keys[at])] * span) << PLACE_BITS


@compiled
def _best_switch(node_state: CycleNodes, wanted: int, level: int) -> tuple[int, int]:
    """The switch of this level to take, and the largest weight that is needed there; NO_REGION if none has enough.

    The weights of the nodes that fit are sorted by switch first, so that each is looked at a few times only.
    """
    nodes, keys, counts, ends = node_state.problem.nodes, node_state.keys, node_state.tangent, node_state.chosen
    counts[:] = 0
    last = NO_SWITCH
    for node in range(len(keys)):
        switch = nodes.switch[level, node]
        if keys[node] != NONE and switch != NO_SWITCH:
            counts[switch] += 1
            last = max(last, switch)
    before = 0
    for switch in range(last + 1):
        ends[switch] = before
        before += counts[switch]
    for node in range(len(keys)):
        switch = nodes.switch[level, node]
        if keys[node] != NONE and switch != NO_SWITCH:
            node_state.hidden[ends[switch]] = nodes.weight[node]
            ends[switch] += 1
    best, best_weight, best_spare = NO_REGION, 0, 0
    for switch in range(last + 1):
        if counts[switch] < wanted:
            continue
        weights = node_state.hidden[ends[switch] - counts[switch] : ends[switch]]
        weight = nth_smallest(node_state.scratch[: len(weights)], weights, wanted)
        spare = 0
        for at in range(len(weights)):
            spare += weights[at] <= weight
        if best == NO_REGION or weight < best_weight or (weight == best_weight and spare < best_spare):
            best, best_weight, best_spare = switch, weight, spare
    return best, best_weight


@compiled
def _weight_needed(node_state: CycleNodes, wanted: int) -> int:
    """The largest weight of the `wanted` lightest nodes; NOBODY when there are fewer nodes."""
    nodes, found = node_state.problem.nodes, 0
    for node in range(len(node_state.keys)):
        if node_state.keys[node] != NONE:
            node_state.hidden[found] = nodes.weight[node]
            found += 1
    if found < wanted:
        return NOBODY
    return nth_smallest(node_state.scratch[:found], node_state.hidden[:found], wanted)


@compiled
def _keep_lightest(node_state: CycleNodes) -> bool:
    """Keep the keys of the lightest nodes only; False when there are no keys. The compiler vectorises both loops."""
    keys, weight = node_state.keys, node_state.problem.nodes.weight
    lightest = NONE
    for node in range(len(keys)):
        lightest = min(lightest, weight[node] if keys[node] != NONE else NONE)
    for node in range(len(keys)):
        keys[node] = keys[node] if weight[node] == lightest else NONE
    return lightest != NONE
