"""The runner of policies that choose the geometry of jobs, and what their summaries have more."""

from typing import Any

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.sim.engine.matching import Matcher, Simulation
from slurm_sns.sim.engine.spreading_policies import progress_of
from slurm_sns.sim.profiling.learning_cluster import LearningCluster, laboratory_of
from slurm_sns.sim.progress.progress import Progress
from slurm_sns.sim.request import AUTHORS, SimulationRequest
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.runners.matching import match_compiled, portfolio_of
from slurm_sns.sim.runners.program_summary import spreading_summary
from slurm_sns.sim.runners.replay_parts import (
    Replay,
    ReportProgress,
    Result,
    require_jobs_of_nodes,
    result_of,
    settings_of,
    spreading_of,
)
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.cluster_nodes import read_cluster
from slurm_sns.sim.traces.program_trace import TraceReader


def programs(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """A policy that matches and may choose the geometry of jobs, whose run times may depend on it.

    Raises:
        BadInput: as in `matching`.
    """
    node_arrays, partitions = read_cluster(nodes)
    require_jobs_of_nodes(trace, asked)
    spreading, policy = spreading_of(asked), portfolio_of(asked)
    profiles = spreading.programs(node_arrays)
    reader = TraceReader(node_arrays, asked.name, profiles, spreading.parameters, partitions=partitions)
    spread = reader.read(trace, load_factor=load_factor, limit=limit)
    if spreading.learn is not None and not spread.profiled:
        raise BadInput(f"{trace}: no job has a profile to learn; valid for --learn: a CSV of programs in --profiles")

    def progress() -> Progress:
        return progress_of(spreading.progress, asked.name, node_arrays, spread.model)

    def run(report: ReportProgress) -> Result:
        learnt: dict[str, Any] = {}
        if spreading.learn is None and spreading.progress == AUTHORS:
            of = match_compiled(node_arrays, spread.records, asked, report)
        elif spreading.learn is None:
            of = _match_plainly(node_arrays, spread.records, asked, report, scheduler=policy, progress=progress())
        else:
            exploration = Exploration(spreading.parameters)
            laboratory = laboratory_of(node_arrays, profiles, exploration, spread=spreading.learn, seed=spreading.seed)
            learning = LearningCluster(laboratory, policy, progress(), spread.profiled)
            of = _match_plainly(node_arrays, spread.records, asked, report, scheduler=learning, progress=learning)
            learnt = {"learn": spreading.learn, **laboratory.counts()}
        return result_of(of, node_arrays, lambda: {**spreading_summary(spread, of, spreading), **learnt}, spreads=True)

    return Replay(len(spread.records), spread.records.dropped, 0, run, settings_of(asked, policy.rules.on(node_arrays)))


def _match_plainly(
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
        records.values(),
        scheduler,
        queue_depth=rules.queue_depth,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=progress,
    )
    return simulation.run(report).as_run(records, rules.on(node_arrays).portfolio)
