"""How long jobs are expected to run, and which moments count as one.

A job's expected run time is that at slowdown 1; in another alternative the job takes its slowdown times as long.
"""

from slurm_sns.model import Alternative, Job, Seconds

#: Two moments less than this apart count as one: it is the largest rounding error of times in floats.
COINCIDENT_S = 1e-6


def expected_run_s(job: Job, alternative: Alternative) -> Seconds | None:
    """How long the job is expected to run in this alternative, None if nothing is known."""
    if job.expected_run_s is None or alternative.slowdown == 1:
        return job.expected_run_s  # without a product whole seconds stay whole, and fractions exact
    return float(job.expected_run_s) * alternative.slowdown
