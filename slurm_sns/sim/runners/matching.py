"""Portfolios are replayed by the compiled loop; by the event engine where the kernel does not hold the nodes."""

from collections.abc import Callable

from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.sim.engine.matching import Matcher, Simulation
from slurm_sns.sim.progress.progress import Progress
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.request import SimulationRequest
from slurm_sns.sim.results.run import TraceRun
from slurm_sns.sim.runners.replay import (
    Replay,
    ReportProgress,
    Result,
    is_compiled,
    require_jobs_of_nodes,
    result_of,
    settings_of_run,
)
from slurm_sns.sim.traces.nodes_csv import read_nodes
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.traces.trace_arrays import TraceArrays


def matching(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """A policy that matches jobs which keep their geometry.

    Raises:
        BadInput: a file cannot be read; the message names file, line and what would be valid.
    """
    node_arrays = read_nodes(nodes)
    require_jobs_of_nodes(trace, asked)
    records = read_records(trace, node_arrays, load_factor=load_factor, limit=limit)

    def run(report: ReportProgress) -> Result:
        return result_of(match(node_arrays, records, asked, report), node_arrays)

    return Replay(
        len(records), records.dropped, records.unsorted, run, settings_of_run(asked, portfolio_of(asked).rules)
    )


def match(
    node_arrays: NodeArrays,
    records: TraceArrays,
    asked: SimulationRequest,
    report: ReportProgress,
    progress: Callable[[], Progress] | None = None,
) -> TraceRun:
    """Replay the trace by the compiled loop; by the event engine, with `progress`, what the kernel does not hold."""
    policy = portfolio_of(asked)
    if not is_compiled(node_arrays, policy.rules, records):
        model = None if progress is None else progress()
        return match_plainly(node_arrays, records, asked, report, scheduler=policy, progress=model)
    return replay(
        node_arrays,
        records,
        policy.rules,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=report,
    )


def match_plainly(
    node_arrays: NodeArrays,
    records: TraceArrays,
    asked: SimulationRequest,
    report: ReportProgress,
    *,
    scheduler: Matcher,
    progress: Progress | None,
) -> TraceRun:
    """Replay the trace by the event engine; without a progress model jobs run as long as the trace says."""
    rules = portfolio_of(asked).rules
    simulation = Simulation(
        node_arrays,
        records.trace(),
        scheduler,
        queue_depth=rules.queue_depth,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=progress,
    )
    return simulation.run(report).as_run(records, rules.portfolio)


def portfolio_of(asked: SimulationRequest) -> Portfolio:
    """The policy, which is a portfolio."""
    assert isinstance(asked.policy, Portfolio)  # noqa: S101  the specification names both
    return asked.policy
