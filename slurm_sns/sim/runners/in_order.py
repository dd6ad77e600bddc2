"""FCFS and EASY over any way of placing."""

from dataclasses import asdict, replace

from slurm_sns.errors import BadInput
from slurm_sns.policies.baselines.parameters import BatchParameters, EasyParameters
from slurm_sns.policies.combined.batch import placing
from slurm_sns.policies.placement.node_arrays import CORES
from slurm_sns.policies.registry import REGISTRY
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.replay.backfilling_loop import EASY, EASY_EXTRA_NODES, FCFS
from slurm_sns.sim.replay.trace_replay import replay_in_order
from slurm_sns.sim.request import SimulationRequest
from slurm_sns.sim.runners.replay import (
    Replay,
    ReportProgress,
    Result,
    is_compiled,
    require_no_pools,
    result_of,
    settings_of_run,
    spreading_of,
    spreading_summary,
)
from slurm_sns.sim.traces.fluid_csv import has_tasks, on_whole_nodes, read_fluid
from slurm_sns.sim.traces.nodes_csv import read_nodes
from slurm_sns.sim.traces.program_trace import TraceReader

#: A job that a heuristic places has its alternatives from this policy: its own geometry.
MAX_JOBS = "max-jobs"


def in_order(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """FCFS and EASY. The jobs may be tasks with fluid needs, each of which has a node of its own.

    Raises:
        BadInput: as in `matching`, an option needs another trace, or the nodes are larger than the kernel holds.
    """
    node_arrays = read_nodes(nodes)
    require_no_pools(trace, asked)
    spreading, batch = spreading_of(asked), asked.parameters_of(BatchParameters)
    algorithm = FCFS
    if isinstance(batch, EasyParameters):
        algorithm = EASY_EXTRA_NODES if batch.extra_nodes_only else EASY
    placement = placing(batch.placement, asked.parameters_of(SpreadingParameters))
    rules = replace(placement.rules, queue_depth=batch.queue_depth)
    spread = None
    if has_tasks(trace):
        if spreading.user_estimates:
            raise BadInput(f"{trace}: a CSV has no time limits; valid with user estimates: SWF")
        if spreading.profiles is not None:
            raise BadInput(f"{trace}: jobs have tasks and no programs; valid with --profiles: a CSV of programs")
        workload = read_fluid(trace, node_arrays, load_factor=load_factor, limit=limit)
        records = on_whole_nodes(workload, node_arrays)
    else:
        makes_alternatives = batch.placement if batch.placement in REGISTRY else MAX_JOBS
        reader = TraceReader(
            node_arrays,
            makes_alternatives,
            spreading.programs(node_arrays),
            spreading.parameters,
            spreading.user_estimates,
        )
        spread = reader.read(trace, load_factor=load_factor, limit=limit)
        records = spread.records
    if not is_compiled(node_arrays, rules, records):
        cores = int(node_arrays.capacity[CORES].max())
        raise BadInput(
            f"{nodes}: {len(node_arrays.names)} nodes of up to {cores} cores, with beta {rules.beta:g}, are too large "
            f"for --policy {asked.name}; valid: 2^19 nodes, and with cs and sns (cores + 1) * (2 + beta) below 4,398"
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
        if spread is None:
            return result_of(of, node_arrays, lambda: asdict(batch))
        estimates = {"user_estimates": spreading.user_estimates}
        return result_of(
            of,
            node_arrays,
            lambda: {**spreading_summary(spread, of, spreading), **asdict(batch), **estimates},
            spreads=True,
        )

    unsorted = records.unsorted if spread is None else 0
    return Replay(len(records), records.dropped, unsorted, run, settings_of_run(asked))
