"""The runners of FCFS and EASY, and of Slurm alone."""

from dataclasses import asdict, replace

from slurm_sns.errors import BadInput
from slurm_sns.policies.baselines.parameters import BatchParameters, EasyParameters, SlurmParameters
from slurm_sns.policies.combined.batch import placing
from slurm_sns.policies.placement.node_arrays import MEMORY, NodeArrays
from slurm_sns.policies.registry import REGISTRY
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.replay.backfilling_loop import EASY, EASY_EXTRA_NODES, FCFS
from slurm_sns.sim.replay.trace_replay import replay_as_slurm, replay_in_order
from slurm_sns.sim.request import SimulationRequest, SpreadingRequest
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.runners.program_summary import spreading_summary
from slurm_sns.sim.runners.replay_parts import (
    Replay,
    ReportProgress,
    Result,
    require_no_pools,
    result_of,
    settings_of,
    spreading_of,
)
from slurm_sns.sim.trace import SMALLEST_MEMORY_MB, TraceArrays
from slurm_sns.sim.traces.cluster_nodes import read_cluster, read_site_cluster
from slurm_sns.sim.traces.fluid_trace import has_tasks, on_whole_nodes, read_fluid
from slurm_sns.sim.traces.program_trace import ProgramTrace, TraceReader
from slurm_sns.sim.traces.site_partitions import SitePartitions

#: A job that a heuristic places has its alternatives from this policy: its own geometry.
MAX_JOBS = "max-jobs"
#: A job that has its nodes alone has its only alternative from this policy.
CE = "ce"


def in_order(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """FCFS and EASY over any way of placing; of jobs with fluid needs each task has a node of its own.

    Raises:
        BadInput: as in `matching`, or an option needs another trace.
    """
    node_arrays, partitions = read_cluster(nodes)
    require_no_pools(trace, asked)
    spreading, batch = spreading_of(asked), asked.parameters_of(BatchParameters)
    algorithm = FCFS
    if isinstance(batch, EasyParameters):
        algorithm = EASY_EXTRA_NODES if batch.extra_nodes_only else EASY
    placement = placing(batch.placement, asked.parameters_of(SpreadingParameters))
    rules = replace(placement.rules, queue_depth=batch.queue_depth)
    placed_as = batch.placement if batch.placement in REGISTRY else MAX_JOBS
    records, spread = _batch_jobs(
        trace, (node_arrays, partitions), spreading, placed_as, load_factor=load_factor, limit=limit
    )

    def run(report: ReportProgress) -> Result:
        of = replay_in_order(
            node_arrays,
            records,
            rules,
            algorithm,
            interval_s=asked.interval_s,
            shares=asked.shares,
            progress=report,
        )
        return _batch_result(of, node_arrays, spread, spreading, batch)

    unsorted = records.unsorted if spread is None else 0
    return Replay(len(records), records.dropped, unsorted, run, settings_of(asked))


def slurm_alone(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """Slurm without slurm_sns: jobs keep their geometry. What is not asked for is as the site's slurm.conf says it.

    Raises:
        BadInput: as in `in_order`.
    """
    node_arrays, partitions, of_site = read_site_cluster(nodes)
    require_no_pools(trace, asked)
    spreading, parameters = spreading_of(asked), asked.parameters_of(SlurmParameters)
    if of_site is not None:
        given = asked.given & asdict(parameters).keys()
        parameters = replace(of_site, **{name: getattr(parameters, name) for name in given})
    placed_as = CE if parameters.exclusive else MAX_JOBS
    records, spread = _batch_jobs(
        trace, (node_arrays, partitions), spreading, placed_as, load_factor=load_factor, limit=limit
    )

    def run(report: ReportProgress) -> Result:
        of = replay_as_slurm(node_arrays, records, parameters, interval_s=asked.interval_s, progress=report)
        return _batch_result(of, node_arrays, spread, spreading, parameters)

    unsorted = records.unsorted if spread is None else 0
    return Replay(len(records), records.dropped, unsorted, run, settings_of(asked))


def _batch_jobs(
    trace: str,
    cluster: tuple[NodeArrays, SitePartitions],
    spreading: SpreadingRequest,
    placed_as: str,
    *,
    load_factor: float,
    limit: int | None,
) -> tuple[TraceArrays, ProgramTrace | None]:
    """The jobs with the alternatives of this policy; None as the second: each task has a node of its own."""
    node_arrays, partitions = cluster
    if has_tasks(trace):
        return _on_whole_nodes(trace, node_arrays, spreading, load_factor, limit), None
    reader = TraceReader(
        node_arrays,
        placed_as,
        spreading.programs(node_arrays),
        spreading.parameters,
        spreading.user_estimates,
        partitions=partitions,
    )
    spread = reader.read(trace, load_factor=load_factor, limit=limit)
    return spread.records, spread


def _batch_result(
    of: TraceRun,
    node_arrays: NodeArrays,
    spread: ProgramTrace | None,
    spreading: SpreadingRequest,
    parameters: BatchParameters | SlurmParameters,
) -> Result:
    """The result, with the policy's parameters among the summary's entries."""
    if spread is None:
        return result_of(of, node_arrays, lambda: asdict(parameters))
    estimates = {"user_estimates": spreading.user_estimates}
    return result_of(
        of,
        node_arrays,
        lambda: {**spreading_summary(spread, of, spreading), **asdict(parameters), **estimates},
        spreads=True,
    )


def _on_whole_nodes(
    trace: str, node_arrays: NodeArrays, spreading: SpreadingRequest, load_factor: float, limit: int | None
) -> TraceArrays:
    """The jobs of a trace of fluid needs, each task alone on a node.

    Raises:
        BadInput: as in `in_order`, nodes have so little memory that they count as full, or no job is left.
    """
    if spreading.user_estimates:
        raise BadInput(f"{trace}: a CSV has no time limits; valid with user estimates: SWF, sacct")
    if spreading.profiles is not None:
        raise BadInput(f"{trace}: jobs have tasks and no programs; valid with --profiles: a CSV of programs")
    jobs, _ = read_fluid(trace, node_arrays, load_factor=load_factor, limit=limit)
    least_mb = int(node_arrays.capacity[MEMORY].min())
    if least_mb < SMALLEST_MEMORY_MB:
        raise BadInput(f"nodes have {least_mb} MiB; valid with fcfs and easy: {SMALLEST_MEMORY_MB} or more")
    return on_whole_nodes(jobs.that_fit(jobs.tasks <= len(node_arrays.names), trace), node_arrays)
