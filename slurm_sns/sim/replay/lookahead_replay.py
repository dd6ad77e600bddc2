"""Max-Jobs with lookahead: each member's schedule is also judged by what is left for the jobs that come next.

The paper suspects that "packing jobs very densely leads to reduced performance in a successive scheduling round". This
is our own test of that, and not the paper's "looking further into the queue", which is a joint choice among queued jobs
(page netbatch-lookahead has both). Here each member matches the cycle, and then, by the same kernel on what is
left free, jobs that stand for the next arrivals. Nothing of that second matching is dispatched; it only helps to choose
among the members. A trace of any length is replayed in one compiled loop: that of `compiled_loop` with another way to
choose.

Which jobs stand for the next arrivals is a choice (`ArrivalSource`): those that were submitted last, which a live
scheduler knows, or the true next ones, which only a simulation knows and which bound what a forecast could gain. How
they count is another (`MatchComparison`).

Source: Max-Jobs paper (JSSPP 2013), end of section 5, and sections 6 and 7.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.compiled import compiled, entry_point, inlined
from slurm_sns.policies.placement.cycle_kernel import Bench, go_through, run
from slurm_sns.policies.placement.fair_order_kernel import begin, line_up, turns_for
from slurm_sns.policies.placement.kernel_arrays import (
    MATCHED,
    NOBODY,
    Flags,
    Integers,
    room_for_matches,
    withholding,
)
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.sim.replay.cluster_state import CYCLES, NEVER, NEXT_SUBMIT, Cluster
from slurm_sns.sim.replay.compiled_loop import begin_cycle, come_again, dispatch, reach_next
from slurm_sns.sim.replay.trace_replay import cluster_of, to_the_end
from slurm_sns.sim.run import Cycles, TraceRun
from slurm_sns.sim.trace import TraceArrays

#: The parts of `Ahead.rules`: whether the true next jobs are known, whether matches are summed, and the window.
KNOWN, SUM, WINDOW_S = range(3)
#: More than the number of matches of any cycle.
MATCHES_BITS = 31


class ArrivalSource(IntEnum):
    """Which jobs stand for the next arrivals: those submitted in the last `window_s`, or in the next."""

    RECENT = 0
    KNOWN = 1


class MatchComparison(IntEnum):
    """How a member's matches M and those of the next arrivals N are compared: by M, then by N; or by M + N."""

    TIES = 0
    SUM = 1


@dataclass(frozen=True)
class Lookahead:
    """How far we look, and what counts; `window_s` is in seconds, at least 1."""

    arrivals: ArrivalSource
    counting: MatchComparison
    window_s: int

    def __post_init__(self) -> None:
        """Check the window.

        Raises:
            BadInput: it is not positive.
        """
        if self.window_s < 1:
            raise BadInput(f"the window of a lookahead is {self.window_s} s; valid: 1 or more")


class Ahead(NamedTuple):
    """What looking ahead works on."""

    bench: Bench  #: shares nodes and tables with the cluster's bench; its line and its matches are its own
    withholds: Flags  #: (J) False: nothing is withheld for jobs that have not come yet
    rules: Integers  #: (3) KNOWN, SUM, WINDOW_S


def replay_ahead(
    node_arrays: NodeArrays,
    trace: TraceArrays,
    rules: Rules,
    lookahead: Lookahead,
    *,
    interval_s: int,
) -> TraceRun:
    """Replay the trace of one project.

    Raises:
        BadInput: the trace has several projects.
    """
    if len(trace.projects) > 1:
        raise BadInput(f"{len(trace.projects)} projects; valid with lookahead: one")
    rules = rules.on(node_arrays)
    cluster = cluster_of(node_arrays, trace, rules, {})
    bench = cluster.bench
    entries = min(rules.queue_depth, len(trace))
    ahead = Ahead(
        bench=bench._replace(
            turns=turns_for(1, entries),
            matches=(room_for_matches(entries, len(bench.matches[0].node)), room_for_matches(0, 0)),
        ),
        withholds=np.zeros(len(trace), np.bool_),
        rules=np.array([lookahead.arrivals, lookahead.counting, lookahead.window_s], np.int64),
    )
    return to_the_end(trace, cluster, rules.portfolio, lambda cycles: advance_ahead(cluster, ahead, cycles, interval_s))


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


@inlined
def _compete(cluster: Cluster, ahead: Ahead, now_s: int) -> tuple[int, int]:
    """The best member of the portfolio and the entry of the bench's matches that holds its schedule."""
    bench, queue = cluster.bench, cluster.queue
    limits = bench.node_state.problem.limits
    begin(bench.turns, queue)
    line_up(bench.turns, queue, limits.depth)
    _line_up_arrivals(cluster, ahead, now_s)
    arrivals = withholding(queue, ahead.withholds)
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
