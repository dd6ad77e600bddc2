"""Placements that came to nothing: when the job is planned again, and when we give up. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from slurm_sns.scheduler.gate.limit_retries import is_limit
from slurm_sns.scheduler.gate.status import Status
from slurm_sns.scheduler.observation.observed import JobState, ObservedJob
from slurm_sns.scheduler.remembered import Try
from slurm_sns.scheduler.settings import Settings

#: After this many placements that Slurm refused or did not start, the job is given to Slurm as it is.
MOST_FAILURES = 8
#: Slurm's reasons for not starting a job that may pass: a partition or an array has reached a limit for now, or its
#: dependency is open again. Pauses grow as after any failure, but the job is never given to Slurm.
PASSING_LIMITS = ("Partition", "JobArrayTaskLimit", "Dependency")
#: The most letters kept of Slurm's reason; its longest one has 33.
MOST_REASON = 64


def still_meant(
    tries: Mapping[int, Try], jobs: Iterable[ObservedJob], statuses: Mapping[int, Status]
) -> dict[int, Try]:
    """The tries of jobs that wait for us still, or wait where we placed them."""
    if not tries:
        return {}
    return {
        job.id: tries[job.id]
        for job in jobs
        if job.id in tries
        and tries[job.id].submit_s == job.submit_s
        and job.state is JobState.PENDING
        and statuses[job.id] not in (Status.REQUEUED, Status.SLURMS, Status.FOREIGN)
    }


def not_started(job: ObservedJob, before: Try | None, settings: Settings, now_s: float) -> Try:
    """The try of a placed job that Slurm has not started in time, or will not start now."""
    record = job.record
    placed_s = now_s if record is None or record.placed_s is None else float(record.placed_s)
    why = f"placed on {','.join(job.pinned_to)}, but Slurm did not start it: {job.reason or 'no reason given'}"
    limited_by = job.reason[:MOST_REASON] if is_limit(job.reason) else ""
    after = failed(job, before, why, settings, now_s)
    if limited_by or job.reason.startswith(PASSING_LIMITS):
        after = replace(after, failures=min(after.failures, MOST_FAILURES - 1))
    return replace(after, limited_by=limited_by, tried_s=placed_s)


def failed(job: ObservedJob, before: Try | None, why: str, settings: Settings, now_s: float) -> Try:
    """The try after one more failed placement: the job is planned again after a pause that grows."""
    failures = 0 if before is None else before.failures
    wait_s = min(settings.backoff_max_s, settings.backoff_s * 2**failures)
    return Try(job.id, job.submit_s, failures + 1, tried_s=now_s, retry_s=now_s + wait_s, note=why)


def pause(tried: Try | None, settings: Settings, now_s: float) -> str:
    """Why the job pauses now; empty if it does not. A pause longer than ours comes from a clock that was set back."""
    if tried is None or tried.limited_by or not 0 < tried.retry_s - now_s <= settings.backoff_max_s:
        return ""
    return f"{tried.note}; tried again in {tried.retry_s - now_s:.0f} s"
