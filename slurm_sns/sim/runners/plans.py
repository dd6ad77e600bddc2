"""The runner of any policy that makes plans: of one that is no portfolio each cycle carries out the plan."""

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.request import SimulationRequest
from slurm_sns.sim.runners.matching import matching
from slurm_sns.sim.runners.replay_parts import (
    Replay,
    ReportProgress,
    Result,
    require_jobs_of_nodes,
    result_of,
    settings_of,
)
from slurm_sns.sim.runners.spreading import programs
from slurm_sns.sim.traces.cluster_nodes import read_cluster
from slurm_sns.sim.traces.read_trace import read_records


def by_plans(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """A portfolio as our own are; of any other policy each cycle carries out the plan.

    Raises:
        BadInput: as in `matching`, or an option that a policy known by its plans alone has no use for.
    """
    if isinstance(asked.policy, Portfolio):
        runner = matching if asked.spreading is None else programs
        return runner(trace, nodes, asked, load_factor, limit)
    spreading = asked.spreading
    if spreading is not None and (spreading.profiles, spreading.learn, spreading.user_estimates) != (None, None, False):
        raise BadInput(
            f"--profiles and --user-estimates go with portfolios, fcfs, easy and slurm, not with {asked.name}"
        )
    node_arrays, partitions = read_cluster(nodes)
    require_jobs_of_nodes(trace, asked)
    records = read_records(trace, node_arrays, load_factor=load_factor, limit=limit, partitions=partitions)
    policy = asked.policy
    assert policy is not None  # noqa: S101  its specification has a factory

    def run(report: ReportProgress) -> Result:
        simulation = PlannedSimulation(
            node_arrays, records.values(), policy, interval_s=asked.interval_s, shares=asked.shares
        )
        return result_of(simulation.run(report).as_run(records), node_arrays)

    return Replay(len(records), records.dropped, records.unsorted, run, settings_of(asked))
