"""For whom capacity is withheld in a cycle, and on which nodes, compiled. Twin: `cycle.Cycle` and `cycle.KeepingCycle`.

A job that finds no place has capacity withheld for it at the first `reservations` positions of the queue. For an
over-aged job it always is: where the member keeps whole nodes, so for the first such job only.

Source: Max-Jobs paper (JSSPP 2013), sections 1, 2 and 5; the module `cycle` says how we decide what it leaves open.
"""

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.kernel_arrays import (
    NOBODY,
    WHOLE,
    WITHHELD,
    AlternativeArrays,
    KernelNodes,
    KernelRules,
)
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
from slurm_sns.policies.placement.node_state_kernel import NONE, PLACE_BITS, PLACES, CycleNodes
from slurm_sns.policies.placement.order_statistics import nth_smallest
from slurm_sns.policies.placement.region_kernel import ANY_SWITCH, NO_REGION
from slurm_sns.policies.placement.regions import NO_SWITCH


@compiled
def way_to_withhold(limits: KernelRules, member: int, position: int, over_aged: bool, has_kept_whole: bool) -> int:
    """How capacity is withheld for a job without a match: WHOLE nodes, its demand (WITHHELD), or NOBODY: not at all."""
    if over_aged and limits.keeps[member]:
        return NOBODY if has_kept_whole else WHOLE
    return WITHHELD if over_aged or position < limits.reservations else NOBODY


@compiled
def withhold(node_state: CycleNodes, kind: int, how: int) -> tuple[int, int]:
    """Choose the nodes on which capacity is withheld for a job of this kind.

    Returns the choice, NOBODY when there is none, and how many nodes of `node_state.chosen` it has, from the first on.

    It takes the first alternative that the cluster could ever hold, and the open nodes that are large enough for it:
    to withhold the demand those with the most free memory, to keep whole nodes those with the fewest used cores.
    """
    nodes, alternatives, kinds = node_state.problem.nodes, node_state.problem.alternatives, node_state.problem.kinds
    for choice in range(kinds.first[kind], kinds.first[kind + 1]):
        alternative = kinds.alternative[choice]
        if how == WITHHELD and alternatives.simple[alternative] and alternatives.nodes[alternative] == 1:
            node = _most_free_memory(node_state, alternative)
            if node != NOBODY:
                node_state.chosen[0] = node
                return choice, 1
        home = _home(node_state, alternative)
        if home == NO_REGION:
            continue
        count = 0
        for node in range(len(node_state.keys)):
            is_there = home == ANY_SWITCH or nodes.switch[-1, node] == home
            if is_there and node_state.is_open[node] == 1 and _is_large_enough(nodes, alternatives, alternative, node):
                used = nodes.capacity[CORES, node] - node_state.free[CORES, node]
                score = used if how == WHOLE else -node_state.free[MEMORY, node]
                node_state.keys[count] = (score << PLACE_BITS) + node
                count += 1
        if count == 0:
            return NOBODY, 0
        wanted = min(alternatives.nodes[alternative], count)
        keys = node_state.keys[:count]
        largest = nth_smallest(node_state.scratch[:count], keys, wanted)
        chosen = 0
        for at in range(count):
            if keys[at] <= largest:
                node_state.chosen[chosen] = keys[at] & PLACES
                chosen += 1
        return choice, chosen
    return NOBODY, 0


@compiled
def _most_free_memory(node_state: CycleNodes, alternative: int) -> int:
    """The open node with the most free memory that is large enough for a simple alternative; NOBODY if there is none.

    The general search of `withhold` finds the same node. This one is a single loop that the compiler vectorises: where
    capacity is withheld for every unmatched job, it decides how long a replay takes.
    """
    nodes, alternatives = node_state.problem.nodes, node_state.problem.alternatives
    is_open, memory = node_state.is_open[:], node_state.free[MEMORY, :]
    all_cores, all_memory = nodes.capacity[CORES, :], nodes.capacity[MEMORY, :]
    needs_cores, needs_memory = alternatives.demand[alternative, CORES], alternatives.demand[alternative, MEMORY]
    smallest = NONE
    for node in range(len(is_open)):
        large_enough = (all_cores[node] >= needs_cores) & (all_memory[node] >= needs_memory)
        key = (-memory[node] << PLACE_BITS) + node if large_enough & (is_open[node] == 1) else NONE
        smallest = min(smallest, key)
    return NOBODY if smallest == NONE else smallest & PLACES


@compiled
def _home(node_state: CycleNodes, alternative: int) -> int:
    """The first switch of the highest level with enough nodes that are large enough; NO_REGION if there is none.

    ANY_SWITCH where all nodes are connected alike, for a job on one node always.
    """
    nodes, alternatives, counts = node_state.problem.nodes, node_state.problem.alternatives, node_state.tangent
    wanted, levels = alternatives.nodes[alternative], nodes.switch.shape[0]
    if wanted == 1 or levels == 0:
        for node in range(nodes.capacity.shape[1]):
            if wanted == 0:
                break
            wanted -= _is_large_enough(nodes, alternatives, alternative, node)
        return ANY_SWITCH if wanted == 0 else NO_REGION
    counts[:] = 0
    first = NO_REGION
    for node in range(nodes.capacity.shape[1]):
        switch = nodes.switch[-1, node]
        if switch != NO_SWITCH and _is_large_enough(nodes, alternatives, alternative, node):
            counts[switch] += 1
            if counts[switch] >= wanted and (first == NO_REGION or switch < first):
                first = switch
    return first


@compiled
def _is_large_enough(nodes: KernelNodes, alternatives: AlternativeArrays, alternative: int, node: int) -> bool:
    """Whether the node could hold the alternative if it were empty."""
    for row in range(nodes.capacity.shape[0]):
        demand = alternatives.demand[alternative, row]
        if (row <= MEMORY or demand > 0) and nodes.capacity[row, node] < demand:
            return False
    allowed = alternatives.allowed[alternative]
    return allowed == NOBODY or nodes.allowed[allowed, node]
