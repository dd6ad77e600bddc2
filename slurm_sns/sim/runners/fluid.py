"""DFRS: jobs that share the CPU by fractions."""

from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.sim.replay.fluid_replay import replay_fluid
from slurm_sns.sim.request import SimulationRequest
from slurm_sns.sim.results.fluid_results import fluid_summary, measure_fluid, write_fluid
from slurm_sns.sim.runners.replay import Replay, ReportProgress, Result, require_no_pools
from slurm_sns.sim.traces.fluid_csv import read_fluid
from slurm_sns.sim.traces.nodes_csv import read_nodes


def fluid(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """DFRS: jobs that share the CPU by fractions.

    Raises:
        BadInput: as in `matching`.
    """
    node_arrays = read_nodes(nodes)
    require_no_pools(trace, asked)
    policy = asked.policy
    assert isinstance(policy, Dfrs)  # noqa: S101  the specification names both
    workload = read_fluid(trace, node_arrays, load_factor=load_factor, limit=limit)
    periodic = {"period_s": policy.period_s} if policy.algorithm.packs_periodically else {}

    def run(report: ReportProgress) -> Result:
        of = replay_fluid(
            workload.node_arrays,
            workload.trace,
            policy.algorithm,
            period_s=policy.period_s,
            penalty_s=asked.penalty_s,
            progress=report,
        )
        return Result(
            lambda: measure_fluid(of, workload.trace, workload.node_arrays),
            lambda out, summary: write_fluid(out, of, workload, node_arrays, summary),
            lambda: {**periodic, "penalty_s": asked.penalty_s, **fluid_summary(of, workload, node_arrays)},
        )

    return Replay(len(workload.trace), workload.trace.dropped, workload.unsorted, run, counts="jobs submitted")
