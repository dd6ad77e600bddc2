"""Policies of Spread-n-Share's family, whose jobs' run times may depend on where they run."""

from typing import Any

from slurm_sns.errors import BadInput
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.sim.engine.spreading_policies import progress_of
from slurm_sns.sim.profiling.learning_cluster import LearningCluster, laboratory_of
from slurm_sns.sim.progress.progress import Progress
from slurm_sns.sim.request import AUTHORS, SimulationRequest
from slurm_sns.sim.runners.matching import match, match_plainly, portfolio_of
from slurm_sns.sim.runners.replay import (
    Replay,
    ReportProgress,
    Result,
    require_jobs_of_nodes,
    result_of,
    settings_of_run,
    spreading_of,
    spreading_summary,
)
from slurm_sns.sim.traces.nodes_csv import read_nodes
from slurm_sns.sim.traces.program_trace import TraceReader


def programs(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """A policy that matches and may choose the geometry of jobs, whose run times may depend on it.

    Raises:
        BadInput: as in `matching`.
    """
    node_arrays = read_nodes(nodes)
    require_jobs_of_nodes(trace, asked)
    spreading, policy = spreading_of(asked), portfolio_of(asked)
    profiles = spreading.programs(node_arrays)
    spread = TraceReader(node_arrays, asked.name, profiles, spreading.parameters).read(
        trace, load_factor=load_factor, limit=limit
    )
    if spreading.learn is not None and not spread.profiled:
        raise BadInput(f"{trace}: no job has a profile to learn; valid for --learn: a CSV of programs in --profiles")

    def progress() -> Progress:
        return progress_of(spreading.progress, asked.name, node_arrays, spread.model)

    def run(report: ReportProgress) -> Result:
        learnt: dict[str, Any] = {}
        if spreading.learn is None and spreading.progress == AUTHORS:
            of = match(node_arrays, spread.records, asked, report, progress)
        elif spreading.learn is None:
            of = match_plainly(node_arrays, spread.records, asked, report, scheduler=policy, progress=progress())
        else:
            laboratory = laboratory_of(
                node_arrays,
                profiles,
                Exploration(spreading.parameters),
                spread=spreading.learn,
                seed=spreading.seed,
            )
            learning = LearningCluster(laboratory, policy, progress(), spread.profiled)
            of = match_plainly(node_arrays, spread.records, asked, report, scheduler=learning, progress=learning)
            learnt = {"learn": spreading.learn, **laboratory.counts()}
        return result_of(of, node_arrays, lambda: {**spreading_summary(spread, of, spreading), **learnt}, spreads=True)

    return Replay(len(spread.records), spread.records.dropped, 0, run, settings_of_run(asked, policy.rules))
