"""The runner of DFRS: jobs that share the CPU by fractions."""

from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.policies.placement.node_arrays import MEMORY
from slurm_sns.sim.replay.fluid_replay import replay_fluid
from slurm_sns.sim.request import SimulationRequest
from slurm_sns.sim.results.fluid_results import fluid_job_lines, fluid_summary, measure_fluid, units
from slurm_sns.sim.runners.replay_parts import Replay, ReportProgress, Result, require_no_pools
from slurm_sns.sim.traces.cluster_nodes import read_cluster
from slurm_sns.sim.traces.fluid_trace import read_fluid


def fluid(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """DFRS: jobs that share the CPU by fractions.

    Raises:
        BadInput: as in `matching`.
    """
    true_nodes, partitions = read_cluster(nodes)
    require_no_pools(trace, asked)
    policy = asked.policy
    assert isinstance(policy, Dfrs)  # noqa: S101  the specification names both
    jobs, node_arrays = read_fluid(trace, true_nodes, load_factor=load_factor, limit=limit, partitions=partitions)
    unit = units(node_arrays, true_nodes)
    periodic = {"period_s": policy.period_s} if policy.algorithm.packs_periodically else {}

    def run(report: ReportProgress) -> Result:
        of = replay_fluid(
            node_arrays,
            jobs,
            policy.algorithm,
            period_s=policy.period_s,
            penalty_s=asked.penalty_s,
            progress=report,
        )
        return Result(
            lambda: measure_fluid(of, node_arrays),
            {"jobs.csv": fluid_job_lines(of, node_arrays.names, unit)},
            lambda: {**periodic, "penalty_s": asked.penalty_s, **fluid_summary(of, unit[MEMORY])},
        )

    return Replay(len(jobs), jobs.dropped, jobs.unsorted, run, counts="jobs submitted")
