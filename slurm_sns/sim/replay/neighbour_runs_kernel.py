"""Slurm's choice of nodes without a topology: from the tightest run of neighbouring nodes (compiled).

A *run* is a maximal sequence of nodes that follow each other in the list, all of one weight, on each of which the job
fits. Slurm takes nodes from one run after another until there are enough. The next run is the first of the least weight
that suffices and has the fewest cores, or if none suffices, the one with the most cores. For a job on one node the idle
cores count, for a job on several its own on each node. Of the run a job on one node gets the node with the fewest idle
cores, a job on several the first ones. One scan of N nodes for each run taken. The oracle is `oracles.batch.slurm`.

Source: SchedMD/slurm, `_eval_nodes_consec` in `src/plugins/topology/common/eval_nodes.c`.
"""

from slurm_sns.policies.placement.compiled import compiled, subroutine
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Integers
from slurm_sns.policies.placement.node_arrays import CORES
from slurm_sns.policies.placement.node_state_kernel import CycleNodes, fits

#: The marks of nodes: they cannot be used, can be, or are chosen.
UNUSABLE, USABLE, CHOSEN_NODE = range(3)


@compiled
def find_in_runs(node_state: CycleNodes, alternative: int) -> int:
    """Put the alternative's nodes into the first places of `chosen`, in their order; NOBODY if too few fit, else 0."""
    wanted, mark = node_state.problem.alternatives.nodes[alternative], node_state.scratch
    count = 0
    for node in range(len(mark)):
        usable = node_state.is_open[node] == 1 and fits(node_state, alternative, node)
        mark[node] = USABLE if usable else UNUSABLE
        count += usable
    if count < wanted:
        return NOBODY
    missing = wanted
    while missing > 0:
        begin, end = _best_run(node_state, mark, wanted, missing)
        if wanted == 1:
            begin = _tightest(node_state, begin, end)
            end = begin + 1
        for node in range(begin, min(end, begin + missing)):
            mark[node] = CHOSEN_NODE
        missing -= end - begin
    found = 0
    for node in range(len(mark)):
        if mark[node] == CHOSEN_NODE:
            node_state.chosen[found] = node
            found += 1
    return 0


@subroutine
def _best_run(node_state: CycleNodes, mark: Integers, wanted: int, missing: int) -> tuple[int, int]:
    """Begin and end of the run to take nodes from."""
    weight, cores = node_state.problem.nodes.weight, node_state.free[CORES]
    best_begin, best_end, best_size, best_suffices = 0, 0, 0, False
    node = 0
    while node < len(mark):
        begin, size = node, 0
        while node < len(mark) and mark[node] == USABLE and weight[node] == weight[begin]:
            size += cores[node] if wanted == 1 else 1
            node += 1
        if node == begin:
            node += 1
            continue
        suffices = node - begin >= missing
        if best_end == 0 or weight[begin] < weight[best_begin]:
            is_better = True
        elif weight[begin] > weight[best_begin]:
            is_better = False
        elif suffices:
            is_better = not best_suffices or size < best_size
        else:
            is_better = not best_suffices and size > best_size
        if is_better:
            best_begin, best_end, best_size, best_suffices = begin, node, size, suffices
    return best_begin, best_end


@subroutine
def _tightest(node_state: CycleNodes, begin: int, end: int) -> int:
    """The node of the run with the fewest idle cores, of equal ones the first."""
    cores, best = node_state.free[CORES], begin
    for node in range(begin + 1, end):
        if cores[node] < cores[best]:
            best = node
    return best
