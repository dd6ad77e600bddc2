"""When jobs are expected to end.

A job's expected run time is that at slowdown 1; in another alternative the job takes its slowdown times as long. A job
that has outlived its expectation is expected to end at once. Slurm's backfill does the same, to a second, for a job
over its time limit (`_guess_job_end` of its select plugins, without OverTimeLimit).
"""

from math import inf

from slurm_sns.model import ActiveJob, ActiveState, Alternative, Job, Seconds

#: Two moments less than this apart count as one: it is the largest rounding error of times in floats.
COINCIDENT_S = 1e-6


def expected_run_s(job: Job, alternative: Alternative) -> Seconds | None:
    """How long the job is expected to run in this alternative, None if nothing is known."""
    if job.expected_run_s is None or alternative.slowdown == 1:
        return job.expected_run_s  # without a product whole seconds stay whole, and fractions exact
    return float(job.expected_run_s) * alternative.slowdown


def end_if_started(job: Job, alternative: Alternative, now_s: Seconds) -> float:
    """When the job is expected to end if it starts now; infinite if nothing is known."""
    run_s = expected_run_s(job, alternative)
    return inf if run_s is None else float(now_s + run_s)


def expected_end_s(job: ActiveJob, now_s: Seconds) -> float:
    """When an active job is expected to end, now at the earliest; infinite if it is suspended or nothing is known."""
    if job.expected_end_s is None or job.state is ActiveState.SUSPENDED:
        return inf
    return max(float(job.expected_end_s), float(now_s))
