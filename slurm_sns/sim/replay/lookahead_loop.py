"""The compiled event loop of a replay with lookahead: the loop of `compiled_loop` with another way to choose.

Each member matches the cycle, and then the jobs that stand for the next arrivals on what it has left free, by the same
kernel without putting the nodes back in between. Module `lookahead_replay` says why.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.compiled import compiled, entry_point
from slurm_sns.policies.placement.cycle_kernel import Bench, go_through, run
from slurm_sns.policies.placement.fair_order_kernel import begin, line_up
from slurm_sns.policies.placement.kernel_arrays import MATCHED, NOBODY, Flags, Integers, Queue
from slurm_sns.sim.replay.compiled_loop import (
    CYCLES,
    NEVER,
    NEXT_SUBMIT,
    Cluster,
    begin_cycle,
    come_again,
    dispatch,
    reach_next,
)
from slurm_sns.sim.results.run import Cycles

#: The parts of `Ahead.rules`: whether the true next jobs are known, whether matches are summed, and the window.
KNOWN, SUM, WINDOW_S = range(3)
#: More than the number of matches of any cycle.
MATCHES_BITS = 31


class Ahead(NamedTuple):
    """What looking ahead works on."""

    bench: Bench  #: shares nodes and tables with the cluster's bench; its line and its matches are its own
    withholds: Flags  #: (J) False: nothing is withheld for jobs that have not come yet
    rules: Integers  #: (3) KNOWN, SUM, WINDOW_S


@entry_point
def advance_ahead(cluster: Cluster, ahead: Ahead, cycles: Cycles, interval_s: int) -> bool:
    """Replay until `cycles` is full or no event is left; return whether events are left."""
    state = cluster.state
    state[CYCLES] = 0
    while state[CYCLES] < len(cycles.time_s):
        number = reach_next(cluster, interval_s)
        if number == NEVER:
            return False
        if begin_cycle(cluster, cycles, number, interval_s):
            best, kept = _compete(cluster, ahead, number * interval_s)
            dispatch(cluster, cycles, best, kept, interval_s)
            come_again(cluster, cycles)
    return True


@compiled
def _compete(cluster: Cluster, ahead: Ahead, now_s: int) -> tuple[int, int]:
    """The best member of the portfolio and the entry of the bench's matches that holds its schedule."""
    bench, queue = cluster.bench, cluster.queue
    limits = bench.node_state.problem.limits
    begin(bench.turns, queue)
    line_up(bench.turns, queue, limits.depth)
    _line_up_arrivals(cluster, ahead, now_s)
    arrivals = Queue(
        queue.over_aged,
        queue.head,
        queue.following,
        queue.kind,
        queue.project,
        queue.order,
        queue.whole,
        queue.used,
        ahead.withholds,
    )
    best, kept, most = NOBODY, 0, -1
    bench.matched[:] = 0
    for member in range(len(limits.portfolio)):
        matches = bench.matches[1 - kept]
        run(bench, matches, queue, member)
        matched = matches.totals[MATCHED]
        bench.matched[member] = matched
        if matched == 0:  # then no member matches any job
            best, kept = (member, 1 - kept) if best == NOBODY else (best, kept)
            break
        spare = ahead.bench.matches[0]
        go_through(ahead.bench, spare, arrivals, member)
        follows = spare.totals[MATCHED]
        value = matched + follows if ahead.rules[SUM] else (matched << MATCHES_BITS) + follows
        if value > most:
            best, kept, most = member, 1 - kept, value
    return best, kept


@compiled
def _line_up_arrivals(cluster: Cluster, ahead: Ahead, now_s: int) -> None:
    """Put the jobs that stand for the next arrivals into the line, as many as a cycle looks at."""
    line, submit_s = ahead.bench.turns.line, cluster.jobs.submit_s
    first, end = cluster.state[NEXT_SUBMIT], cluster.state[NEXT_SUBMIT]
    if ahead.rules[KNOWN]:
        while end < len(submit_s) and submit_s[end] <= now_s + ahead.rules[WINDOW_S]:
            end += 1
    else:
        while first > 0 and submit_s[first - 1] > now_s - ahead.rules[WINDOW_S]:
            first -= 1
    count = min(end - first, len(line) - 1)
    for at in range(count):
        line[at] = first + at
    line[count] = NOBODY
    ahead.bench.turns.state[:] = 0


def arrays_for(rules: tuple[bool, bool, int]) -> Integers:
    """`Ahead.rules` from whether the next jobs are known, whether matches are summed, and the window in seconds."""
    return np.array(rules, dtype=np.int64)
