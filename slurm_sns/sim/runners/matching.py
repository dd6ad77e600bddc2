"""The runner of portfolios whose jobs keep their geometry."""

from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.request import SimulationRequest
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.runners.replay_parts import (
    Replay,
    ReportProgress,
    Result,
    require_jobs_of_nodes,
    result_of,
    settings_of,
)
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.cluster_nodes import read_cluster
from slurm_sns.sim.traces.read_trace import read_records


def matching(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """A policy that matches jobs which keep their geometry.

    Raises:
        BadInput: a file cannot be read; the message names file, line and what would be valid.
    """
    node_arrays, partitions = read_cluster(nodes)
    require_jobs_of_nodes(trace, asked)
    records = read_records(trace, node_arrays, load_factor=load_factor, limit=limit, partitions=partitions)

    def run(report: ReportProgress) -> Result:
        return result_of(match_compiled(node_arrays, records, asked, report), node_arrays)

    settings = settings_of(asked, portfolio_of(asked).rules.on(node_arrays))
    return Replay(len(records), records.dropped, records.unsorted, run, settings)


def match_compiled(
    node_arrays: NodeArrays, records: TraceArrays, asked: SimulationRequest, report: ReportProgress
) -> TraceRun:
    """Replay the trace by the compiled loop."""
    return replay(
        node_arrays,
        records,
        portfolio_of(asked).rules,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=report,
    )


def portfolio_of(asked: SimulationRequest) -> Portfolio:
    """The policy, which is a portfolio."""
    assert isinstance(asked.policy, Portfolio)  # noqa: S101  the specification names both
    return asked.policy
