"""The portfolio kernel: the heuristics compete, compiled. Twin: `portfolio.Portfolio.schedule_plainly`.

The best of several heuristics' schedules is the one with the most matches, among those the one with the smallest sum of
slowdowns, among equal ones the first.

Source: Max-Jobs paper (JSSPP 2013), section 4.
"""

from slurm_sns.policies.placement.compiled import compiled, entry_point
from slurm_sns.policies.placement.cycle_kernel import Bench, run
from slurm_sns.policies.placement.fair_order_kernel import begin, line_up
from slurm_sns.policies.placement.kernel_arrays import MATCHED, NOBODY, SLOWDOWN, Integers, Matches, Queue
from slurm_sns.policies.placement.node_state_kernel import take_over


@entry_point
def schedule(bench: Bench, free: Integers, queue: Queue) -> tuple[int, int]:
    """The best member of the portfolio (its position) and the entry of `bench.matches` that holds its schedule."""
    take_over(bench.node_state, free)
    return compete(bench, queue)


@compiled
def compete(bench: Bench, queue: Queue) -> tuple[int, int]:
    """The same as `schedule`, where `bench.node_state` already knows what is free."""
    limits = bench.node_state.problem.limits
    begin(bench.turns, queue)
    line_up(bench.turns, queue, limits.depth)
    best, kept = NOBODY, 0
    bench.matched[:] = 0
    some_keep = False
    for member in range(len(limits.portfolio)):
        some_keep |= limits.keeps[member]
    for member in range(len(limits.portfolio)):
        matches = bench.matches[1 - kept]
        run(bench, matches, queue, member)
        bench.matched[member] = matches.totals[MATCHED]
        if best == NOBODY or _is_better(matches, bench.matches[kept]):
            best, kept = member, 1 - kept
        # Until its first match a cycle is the same for every member, except for those that keep whole nodes: if one
        # member matches nothing, no other does.
        if matches.totals[MATCHED] == 0 and not (some_keep and len(queue.over_aged) > 0):
            break
    return best, kept


@compiled
def _is_better(matches: Matches, than: Matches) -> bool:
    if matches.totals[MATCHED] != than.totals[MATCHED]:
        return matches.totals[MATCHED] > than.totals[MATCHED]
    return matches.totals[SLOWDOWN] < than.totals[SLOWDOWN]
