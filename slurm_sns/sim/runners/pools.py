"""The runner of rescheduling: jobs of pools, whose suspended jobs may restart in another pool."""

from dataclasses import asdict, replace

from slurm_sns.policies.rescheduling.parameters import KEPT, ReschedulingParameters
from slurm_sns.sim.replay.pool_replay import SAMPLE_S, replay_pools
from slurm_sns.sim.request import SimulationRequest
from slurm_sns.sim.results.pool_results import measure_pools, pool_job_lines, pool_summary
from slurm_sns.sim.runners.replay_parts import Replay, ReportProgress, Result
from slurm_sns.sim.traces.nodes_csv import read_site
from slurm_sns.sim.traces.pool_trace import read_pool_trace

#: Samples of a site with pools, one each minute: 19 years.
MOST_SAMPLES = 10_000_000


def pools(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """Rescheduling: jobs of pools, whose suspended jobs may restart in another pool.

    Raises:
        BadInput: as in `matching`.
    """
    site, parameters = read_site(nodes), asked.parameters_of(ReschedulingParameters)
    records = read_pool_trace(trace, site, load_factor=load_factor, limit=limit)

    def run(report: ReportProgress) -> Result:
        # The clock begins at the first submit: it is sampled each minute, and traces may count seconds since 1970.
        begin = int(records.submit[0])
        jobs = replace(records, submit=records.submit - begin)
        span_s = int(jobs.submit[-1]) // records.ticks_per_s
        sample_until_s = span_s if span_s < MOST_SAMPLES * SAMPLE_S else 0
        of = replay_pools(site, jobs, parameters, sample_until_s=sample_until_s, progress=report)
        return Result(
            lambda: measure_pools(site, of, keeps_memory=parameters.suspended_memory == KEPT),
            {"jobs.csv": pool_job_lines(site, of, begin)},
            lambda: {**asdict(parameters), **pool_summary(of)},
        )

    return Replay(len(records), records.dropped, records.unsorted, run, counts="jobs ended")
