"""The portfolio kernel: the heuristics compete, compiled. Twin: `Portfolio.schedule(..., plainly=True)`.

The best of several heuristics' schedules is the one with the most matches, among those the one with the smallest sum of
slowdowns, among equal ones the first.

Source: Max-Jobs paper (JSSPP 2013), section 4.
"""

from slurm_sns.policies.placement.compiled import compiled, entry_point
from slurm_sns.policies.placement.cycle_kernel import Bench, run
from slurm_sns.policies.placement.fair_order_kernel import begin, line_up
from slurm_sns.policies.placement.kernel_arrays import (
    ENTRIES,
    LOOKED_AT,
    MATCHED,
    NOBODY,
    SLOWDOWN,
    Integers,
    Matches,
    Queue,
)
from slurm_sns.policies.placement.node_state_kernel import take_over

#: The number of matches of a member that does not compete.
DOES_NOT_COMPETE = -1


@entry_point
def schedule(bench: Bench, free: Integers, queue: Queue, some_profiled: bool) -> tuple[int, int]:
    """The best member of the portfolio (its position), and how many members ran: `bench.log` has what they did."""
    take_over(bench.node_state, free)
    best, _, ran = compete(bench, queue, some_profiled)
    return best, ran


@compiled
def compete(bench: Bench, queue: Queue, some_profiled: bool) -> tuple[int, int, int]:
    """The best member, the entry of `bench.matches` that holds its schedule, and how many members ran.

    `bench.node_state` already knows what is free. `some_profiled`: some waiting job has a profile.
    """
    limits = bench.node_state.problem.limits
    begin(bench.turns, queue)
    line_up(bench.turns, queue, limits.depth)
    best, kept, ran = NOBODY, 0, 0
    some_keep = False
    for member in range(len(limits.portfolio)):
        competes = some_profiled or not limits.for_profiled[member]
        bench.matched[member] = 0 if competes else DOES_NOT_COMPETE
        some_keep |= competes and limits.keeps[member]
    for member in range(len(limits.portfolio)):
        if bench.matched[member] == DOES_NOT_COMPETE:
            continue
        matches = bench.matches[1 - kept]
        run(bench, matches, queue, member)
        ran += 1
        bench.matched[member] = matches.totals[MATCHED]
        if len(bench.log.totals):
            _write_down(bench, matches, member)
        if best == NOBODY or _is_better(matches, bench.matches[kept]):
            best, kept = member, 1 - kept
        # Until its first match a cycle is the same for every member, except for those that keep whole nodes: if one
        # member matches nothing, no other does.
        if matches.totals[MATCHED] == 0 and not (some_keep and len(queue.over_aged) > 0):
            break
    return best, kept, ran


@compiled
def _write_down(bench: Bench, matches: Matches, member: int) -> None:
    log, entries = bench.log, matches.totals[ENTRIES]
    for at in range(entries):
        log.job[member, at] = matches.job[at]
        log.choice[member, at] = matches.choice[at]
        log.kept[member, at] = matches.kept[at]
        log.first[member, at + 1] = matches.first[at + 1]
    for at in range(matches.first[entries]):
        log.node[member, at] = matches.node[at]
    for at in range(matches.totals[LOOKED_AT]):
        log.order[member, at] = matches.order[at]
    for at in range(len(matches.totals)):
        log.totals[member, at] = matches.totals[at]


@compiled
def _is_better(matches: Matches, than: Matches) -> bool:
    if matches.totals[MATCHED] != than.totals[MATCHED]:
        return matches.totals[MATCHED] > than.totals[MATCHED]
    return matches.totals[SLOWDOWN] < than.totals[SLOWDOWN]
