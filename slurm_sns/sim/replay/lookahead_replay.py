"""Max-Jobs with lookahead: each member's schedule is also judged by what is left for the jobs that come next.

The paper suspects that "packing jobs very densely leads to reduced performance in a successive scheduling round" and
hopes for "looking further into the queue". Here each member matches the cycle, and then, by the same code on what is
left free, jobs that stand for the next arrivals. Nothing of that second matching is dispatched; it only helps to choose
among the members. A trace of any length is replayed in one compiled loop (module `lookahead_loop`).

Which jobs stand for the next arrivals is a choice (`ArrivalSource`): those that were submitted last, which a live
scheduler knows, or the true next ones, which only a simulation knows and which bound what a forecast could gain. How
they count is another (`MatchComparison`).

Source: Max-Jobs paper (JSSPP 2013), end of section 5, and sections 6 and 7.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.cycle import Rules
from slurm_sns.policies.placement.fair_order_kernel import turns_for
from slurm_sns.policies.placement.kernel_arrays import room_for_matches
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.replay.lookahead_loop import Ahead, advance_ahead, arrays_for
from slurm_sns.sim.replay.trace_replay import cluster_of, to_the_end
from slurm_sns.sim.results.run import TraceRun
from slurm_sns.sim.traces.trace_arrays import TraceArrays


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


def replay_ahead(
    node_arrays: NodeArrays,
    records: TraceArrays,
    rules: Rules,
    lookahead: Lookahead,
    *,
    interval_s: int,
) -> TraceRun:
    """Replay the trace of one project.

    Raises:
        BadInput: the trace has several projects.
    """
    if len(records.projects) > 1:
        raise BadInput(f"{len(records.projects)} projects; valid with lookahead: one")
    cluster = cluster_of(node_arrays, records, rules, {})
    bench = cluster.bench
    entries = min(rules.queue_depth, len(records))
    ahead = Ahead(
        bench=bench._replace(
            turns=turns_for(1, entries),
            matches=(room_for_matches(entries, len(bench.matches[0].node)), room_for_matches(0, 0)),
        ),
        withholds=np.zeros(len(records), np.bool_),
        rules=arrays_for(
            (lookahead.arrivals is ArrivalSource.KNOWN, lookahead.counting is MatchComparison.SUM, lookahead.window_s)
        ),
    )
    return to_the_end(
        records, cluster, rules.portfolio, lambda cycles: advance_ahead(cluster, ahead, cycles, interval_s)
    )
