"""What agents have measured of jobs, as JSON values."""

from collections.abc import Iterable, Sequence

from slurm_sns.scheduler.answers.answer_types import MeasuredOnNode
from slurm_sns.scheduler.ports import MeasuredRun


def last_runs(found: Iterable[MeasuredRun], only_user: int | None) -> dict[str, list[MeasuredOnNode]]:
    """The last run of each job, on each of its nodes, by job id; those of one user, None: of all."""
    by_job: dict[int, list[MeasuredRun]] = {}
    for run in found:
        if only_user in (None, run.user_id):
            by_job.setdefault(run.run.job_id, []).append(run)
    return {str(job_id): _last_run(runs) for job_id, runs in by_job.items()}


def _last_run(runs: Sequence[MeasuredRun]) -> list[MeasuredOnNode]:
    """The last of these runs of a job, on each of its nodes."""
    last = max(run.run.restarts for run in runs)
    return [
        {
            "node": run.node,
            "restarts": last,
            "ended_s": run.ended_s,
            "seconds": run.seconds,
            "least_ways": run.least_ways,
            "most_ways": run.most_ways,
            "bandwidth_gbps": run.bandwidth_gbps,
            "ipc": run.ipc,
            "alone_s": run.alone_s,
            "ipc_alone": run.ipc_alone,
            "ipc_beside": run.ipc_beside,
        }
        for run in runs
        if run.run.restarts == last
    ]
