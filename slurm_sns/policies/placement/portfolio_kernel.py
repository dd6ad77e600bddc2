"""The portfolio kernel: the heuristics compete, compiled. In plain Python: tests/oracles/portfolio.py.

The best of several heuristics' schedules is the one with the most matches, among those the one with the smallest sum of
slowdowns, among equal ones the one whose member had its turn first (module `ties`).

Under the adaptive order, if that is not the whole queue, the members run once more with each job's alternatives by use,
the least slowdown times dominant share first, and the best of these schedules counts.

Source: Max-Jobs paper (JSSPP 2013), section 4. Ties and the adaptive order are ours.
"""

from slurm_sns.policies.placement.compiled import compiled, entry_point, inlined
from slurm_sns.policies.placement.cycle_kernel import BEST_FIRST, BY_USE, DIFFERS, Bench, run
from slurm_sns.policies.placement.fair_order_kernel import begin, line_up
from slurm_sns.policies.placement.kernel_arrays import (
    COST,
    ENTRIES,
    GAIN,
    LOOKED_AT,
    MATCHED,
    NOBODY,
    WHOLE_QUEUE,
    Integers,
    Matches,
    Queue,
)
from slurm_sns.policies.placement.node_state_kernel import take_over
from slurm_sns.policies.placement.ties import BY_RECORD, remember, take_turns

#: The number of matches of a member that does not compete.
DOES_NOT_COMPETE = -1


#: The rules for ties, as the kernel calls them.
_take_turns, _remember = compiled(take_turns), compiled(remember)


@entry_point
def schedule(bench: Bench, free: Integers, queue: Queue, some_profiled: bool) -> tuple[int, int, int]:
    """The best member (its position), how many ran, and how many jobs the best matched in the paper's order.

    The last is NOBODY if that order ruled. `bench.log` has what the members did, and `bench.turn` in which order.
    """
    take_over(bench.node_state, free)
    best, _, ran = compete(bench, queue, some_profiled)
    return best, ran, bench.state[BEST_FIRST] if bench.state[BY_USE] else NOBODY


@inlined
def compete(bench: Bench, queue: Queue, some_profiled: bool) -> tuple[int, int, int]:
    """The best member, the entry of `bench.matches` that holds its schedule, and how many members ran.

    `bench.node_state` already knows what is free. `some_profiled`: some waiting job has a profile.
    """
    limits = bench.node_state.problem.limits
    begin(bench.turns, queue)
    line_up(bench.turns, queue, limits.depth)
    _take_turns(limits.ties, limits.turns, bench.record, bench.turn)
    some_keep = False
    for member in range(len(limits.portfolio)):
        competes = some_profiled or not limits.for_profiled[member]
        bench.matched[member] = 0 if competes else DOES_NOT_COMPETE
        some_keep |= competes and limits.keeps[member]
    some_keep &= len(queue.over_aged) > 0
    best, kept, ran = NOBODY, 0, 0
    bench.state[DIFFERS] = 0
    for by_use in range(2):
        bench.state[BY_USE] = by_use
        best, kept, ran = _run_all(bench, queue, some_keep)
        totals = bench.matches[kept].totals
        if totals[WHOLE_QUEUE] or totals[MATCHED] == 0 or bench.state[DIFFERS] == 0:
            break
        if not by_use:
            bench.state[BEST_FIRST] = totals[MATCHED]
    if limits.ties == BY_RECORD and bench.matched[best] > 0:
        _remember(bench.record, _equally_good(bench, best))
    return best, kept, ran


@inlined
def _run_all(bench: Bench, queue: Queue, some_keep: bool) -> tuple[int, int, int]:
    """Run the members in turn; the best, the entry of its matches, and how many ran.

    `some_keep`: some member may keep whole nodes in this pass.
    """
    best, kept, ran = NOBODY, 0, 0
    for at in range(len(bench.turn)):
        member = bench.turn[at]
        if bench.matched[member] == DOES_NOT_COMPETE:
            continue
        matches = bench.matches[1 - kept]
        run(bench, matches, queue, member)
        ran += 1
        bench.matched[member] = matches.totals[MATCHED]
        bench.value[member, 0], bench.value[member, 1] = matches.totals[GAIN], matches.totals[COST]
        if len(bench.log.totals):
            _write_down(bench, matches, member)
        if best == NOBODY or _is_better(bench.value, member, best):
            best, kept = member, 1 - kept
        # Until its first match a cycle is the same for every member, except for those that keep whole nodes: if one
        # member matches nothing, no other does.
        if matches.totals[MATCHED] == 0 and not some_keep:
            break
    return best, kept, ran


@compiled
def _write_down(bench: Bench, matches: Matches, member: int) -> None:
    log, entries = bench.log, matches.totals[ENTRIES]
    for at in range(entries):
        log.job[member, at] = matches.job[at]
        log.choice[member, at] = matches.choice[at]
        log.kept[member, at] = matches.kept[at]
        log.start_s[member, at] = matches.start_s[at]
        log.first[member, at + 1] = matches.first[at + 1]
    for at in range(matches.first[entries]):
        log.node[member, at] = matches.node[at]
    for at in range(matches.totals[LOOKED_AT]):
        log.order[member, at] = matches.order[at]
    for at in range(len(matches.totals)):
        log.totals[member, at] = matches.totals[at]


@compiled
def _is_better(value: Integers, member: int, than: int) -> bool:
    if value[member, 0] != value[than, 0]:
        return value[member, 0] > value[than, 0]
    return value[member, 1] < value[than, 1]


@compiled
def _equally_good(bench: Bench, best: int) -> int:
    """The members whose schedules are as good as the best one's, a bit for each."""
    found = 0
    for member in range(len(bench.matched)):
        if bench.matched[member] != DOES_NOT_COMPETE and not _is_better(bench.value, best, member):
            found |= 1 << member
    return found
