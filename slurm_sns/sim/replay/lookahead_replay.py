"""Replay a trace of any length with lookahead, in one compiled loop (module `lookahead_loop`)."""

import numpy as np

from slurm_sns.errors import BadInput
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.fair_order_kernel import turns_for
from slurm_sns.policies.placement.kernel_arrays import room_for_matches
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.engine.lookahead import ArrivalSource, Lookahead, MatchComparison
from slurm_sns.sim.replay.lookahead_loop import Ahead, advance_ahead, arrays_for
from slurm_sns.sim.replay.trace_replay import Replayed, cluster_of, to_the_end
from slurm_sns.sim.traces.trace_arrays import TraceArrays


def replay_ahead(
    node_arrays: NodeArrays,
    records: TraceArrays,
    parameters: MatchingParameters,
    lookahead: Lookahead,
    *,
    interval_s: int,
) -> Replayed:
    """Replay the trace of one project.

    Raises:
        BadInput: the trace has several projects.
    """
    if len(records.projects) > 1:
        raise BadInput(f"{len(records.projects)} projects; valid with lookahead: one")
    cluster = cluster_of(node_arrays, records, parameters, {})
    bench = cluster.bench
    entries = min(parameters.queue_depth, len(records))
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
    return to_the_end(records, cluster, lambda cycles: advance_ahead(cluster, ahead, cycles, interval_s))
