"""The first step of a look: what each of Slurm's jobs is to us, our records from now on, and the corrections to send.

It needs the jobs and our records alone, no nodes, so that a clean stop, `sns release --all` and the watchdog take this
step and no other. The second step is planning_snapshot. Pure: the same jobs, records and moment give the same result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_sns.model import Release
from slurm_sns.scheduler.observe import arrays
from slurm_sns.scheduler.observe.arrays import Tasks
from slurm_sns.scheduler.observe.dependencies import Others, Outlook
from slurm_sns.scheduler.observe.follow_up import Unpin, follow_up
from slurm_sns.scheduler.observe.job_status import JobStatus, Known, statuses
from slurm_sns.scheduler.observe.limit_retries import waiting_for_limits
from slurm_sns.scheduler.observe.observed import JobState, ObservedJob
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Slurm's jobs and our records, brought together.

    `statuses` says of every job what it is to us, `found` the same with our record of the job before this look.
    `records` are all our records as they are after it, `corrections` the changes to send. `ours` are the jobs that
    concern us, by id. Of those that we are to plan, `candidates` can be planned now as far as the jobs alone show it
    (in the order in which Slurm lists them), and `blocked` says of the others why not. `tasks` counts the tasks of
    arrays that are jobs of their own, `others` tells what the jobs wait for.
    """

    statuses: Mapping[int, JobStatus]
    found: Mapping[int, Known]
    records: Mapping[int, JobRecord]
    corrections: tuple[Unpin | Release, ...]
    ours: Mapping[int, ObservedJob]
    candidates: tuple[ObservedJob, ...]
    blocked: Mapping[int, str]
    tasks: Tasks
    others: Others


def reconcile(
    jobs: Sequence[ObservedJob], records: Mapping[int, JobRecord], settings: Settings, now_s: float
) -> Reconciled:
    """Bring Slurm's jobs and our records together.

    Each job goes through the state table: what it is to us (job_status) and what we do about it (follow_up). Of those
    that we are to plan, these cannot be planned now: one with a correction; one that waits for a dependency, its begin
    time or the end of its pause; tasks beyond their array's limit; and those of an owner who has met a limit.
    """
    found = statuses(jobs, records, settings, now_s)
    what_each_is = {job_id: what for job_id, (what, _) in found.items()}
    others, tasks = Others(jobs), arrays.count(jobs, what_each_is)
    after: dict[int, JobRecord] = {}
    corrections: list[Unpin | Release] = []
    ours: dict[int, ObservedJob] = {}
    waiting: list[ObservedJob] = []
    blocked: dict[int, str] = {}
    for job in jobs:
        what, before = found[job.id]
        record, changes = follow_up(job, what, before, settings, now_s)
        corrections.extend(changes)
        if record is not None:
            after[job.id] = record
        is_wanted = is_to_be_planned(job, what, settings)
        if is_wanted or _is_ours(what, record):
            ours[job.id] = job
        if is_wanted:
            hindrance = changes[0].reason if changes else _hindrance(job, record, others, settings, now_s)
            if hindrance:
                blocked[job.id] = hindrance
            else:
                waiting.append(job)
    blocked |= arrays.over_limit(waiting, tasks)
    waiting = [job for job in waiting if job.id not in blocked]
    blocked |= waiting_for_limits(waiting, jobs, after, now_s, settings.backoff_max_s)
    candidates = tuple(job for job in waiting if job.id not in blocked)
    return Reconciled(what_each_is, found, after, tuple(corrections), ours, candidates, blocked, tasks, others)


def is_to_be_planned(job: ObservedJob, what: JobStatus, settings: Settings) -> bool:
    """Whether the policy plans this job. advise and observe plan jobs that are not held, and never touch them."""
    if settings.mode == "enforce":
        return what is JobStatus.WAITING
    if settings.mode == "advise":
        return what in (JobStatus.WAITING, JobStatus.RELEASED) and job.priority > 0
    return (
        what in (JobStatus.FOREIGN, JobStatus.WAITING, JobStatus.RELEASED)
        and job.state is JobState.PENDING
        and job.is_batch
        and job.is_plain
        and job.priority > 0
        and not job.pinned_to
        and bool(job.partitions)
        and set(job.partitions) <= settings.partitions
    )


def _is_ours(what: JobStatus, record: JobRecord | None) -> bool:
    """Whether the job is shown among ours: one that was given to Slurm is not, nor one that has ended."""
    return record is not None and record.stage is not Stage.RELEASED and what is not JobStatus.ENDED


def _hindrance(job: ObservedJob, record: JobRecord | None, others: Others, settings: Settings, now_s: float) -> str:
    """Why a waiting job of ours cannot be planned now at all; empty when it can.

    A pause longer than any that we give is what is left of one after the clock was stepped back: it is over.
    """
    if others.outlook(job) is Outlook.OPEN:
        return Outlook.OPEN.value
    if job.begin_s > now_s:
        return f"may begin in {job.begin_s - now_s:.0f} s"
    if record is not None and not record.limited_by and 0 < record.retry_s - now_s <= settings.backoff_max_s:
        return f"{record.note}; tried again in {record.retry_s - now_s:.0f} s"
    return ""
