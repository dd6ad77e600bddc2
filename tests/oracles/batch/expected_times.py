"""When jobs are expected to end.

Slurm's backfill does the same, to a second, for a job over its time limit (`_guess_job_end` of its select plugins,
without OverTimeLimit).
"""

from math import inf

from slurm_sns.model import ActiveJob, ActiveState, Alternative, Job, Seconds
from slurm_sns.policies.baselines.expected_times import expected_run_s


def end_if_started(job: Job, alternative: Alternative, now_s: Seconds) -> float:
    """When the job is expected to end if it starts now; infinite if nothing is known."""
    run_s = expected_run_s(job, alternative)
    return inf if run_s is None else float(now_s + run_s)


def expected_end_s(job: ActiveJob, now_s: Seconds) -> float:
    """When an active job is expected to end, now at the earliest; infinite if it is suspended or nothing is known."""
    if job.expected_end_s is None or job.state is ActiveState.SUSPENDED:
        return inf
    return max(float(job.expected_end_s), float(now_s))
