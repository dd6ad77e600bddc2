"""First step of a cycle's input: the status of each of Slurm's jobs, our records from now on, and the corrections.

This step needs only the jobs and our records, no nodes. A clean stop, `sns release --all` and the watchdog therefore
take this step alone. The second step is snapshot.planning_snapshot. Pure: the same jobs, records and moment give the
same result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_sns.scheduler.observe import arrays
from slurm_sns.scheduler.observe.arrays import Tasks
from slurm_sns.scheduler.observe.dependencies import Others, Outlook
from slurm_sns.scheduler.observe.follow_up import Advise, Correction, follow_up
from slurm_sns.scheduler.observe.job_status import JobStatus, Known, statuses
from slurm_sns.scheduler.observe.limit_retries import waiting_for_limits
from slurm_sns.scheduler.observe.observed import JobState, ObservedJob
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Slurm's jobs and our records, brought together. Mappings are by job id.

    Attributes:
        statuses: the status of every job.
        found: the status of every job, with our record of it from before this observation.
        records: all our records after this observation.
        corrections: the changes to send.
        ours: the jobs that concern us.
        candidates: the jobs to plan that can be planned now, as far as the jobs alone show, in the order in which
            Slurm lists them.
        blocked: why each of the other jobs to plan cannot be planned now.
        tasks: the number of array tasks that are jobs of their own.
        others: the jobs of this observation, which show whether a dependency is fulfilled.
    """

    statuses: Mapping[int, JobStatus]
    found: Mapping[int, Known]
    records: Mapping[int, JobRecord]
    corrections: tuple[Correction, ...]
    ours: Mapping[int, ObservedJob]
    candidates: tuple[ObservedJob, ...]
    blocked: Mapping[int, str]
    tasks: Tasks
    others: Others


def reconcile(
    jobs: Sequence[ObservedJob], records: Mapping[int, JobRecord], settings: Settings, now_s: float
) -> Reconciled:
    """Bring Slurm's jobs and our records together.

    Each job goes through the state table: its status (job_status) and what we do about it (follow_up). Of the jobs to
    plan, these cannot be planned now: a job with a correction; a job that waits for a dependency, its begin time or the
    end of its pause; tasks beyond their array's limit; and jobs that wait because their owner has met a limit.
    """
    found = statuses(jobs, records, settings, now_s)
    status_of_job = {job_id: known.status for job_id, known in found.items()}
    others, tasks = Others(jobs), arrays.count(jobs, status_of_job, now_s)
    records_after: dict[int, JobRecord] = {}
    corrections: list[Correction] = []
    ours: dict[int, ObservedJob] = {}
    unblocked: list[ObservedJob] = []
    blocked: dict[int, str] = {}
    for job in jobs:
        status, record_before = found[job.id]
        record, changes = follow_up(job, status, record_before, settings, now_s)
        corrections.extend(changes)
        if record is not None:
            records_after[job.id] = record
        is_wanted = is_to_be_planned(job, status, settings)
        if is_wanted or _is_ours(status, record):
            ours[job.id] = job
        if is_wanted:
            hindrance = changes[0].reason if changes else _hindrance(job, record, others, settings, now_s)
            if hindrance:
                blocked[job.id] = hindrance
            else:
                unblocked.append(job)
    blocked |= arrays.over_limit(unblocked, tasks, now_s)
    unblocked = [job for job in unblocked if job.id not in blocked]
    blocked |= waiting_for_limits(unblocked, jobs, records_after, now_s, settings.backoff_max_s)
    return Reconciled(
        statuses=status_of_job,
        found=found,
        records=records_after,
        # What only adds a word to a mark comes last: a cycle sends so many corrections of each user.
        corrections=tuple(sorted(corrections, key=lambda change: isinstance(change, Advise))),
        ours=ours,
        candidates=tuple(job for job in unblocked if job.id not in blocked),
        blocked=blocked,
        tasks=tasks,
        others=others,
    )


def is_to_be_planned(job: ObservedJob, status: JobStatus, settings: Settings) -> bool:
    """Whether the policy plans this job. The modes advise and observe plan jobs that are not held, and change none."""
    if settings.mode == "enforce":
        return status is JobStatus.WAITING
    if settings.mode == "advise":
        return status in (JobStatus.WAITING, JobStatus.RELEASED) and job.priority > 0
    return (
        status in (JobStatus.FOREIGN, JobStatus.WAITING, JobStatus.RELEASED)
        and job.state is JobState.PENDING
        and job.is_batch
        and job.is_plain
        and job.priority > 0
        and not job.pinned_to
        and bool(job.partitions)
        and set(job.partitions) <= settings.partitions
    )


def _is_ours(status: JobStatus, record: JobRecord | None) -> bool:
    """Whether the job is shown among ours: we have a record of it, it is not Slurm's again, and it has not ended."""
    return record is not None and record.stage is not Stage.RELEASED and status is not JobStatus.ENDED


def _hindrance(job: ObservedJob, record: JobRecord | None, others: Others, settings: Settings, now_s: float) -> str:
    """Why a job to plan must wait, by its own record alone; empty when it need not.

    A pause longer than the longest that we give is over: it comes from a clock that was stepped back.
    """
    if others.outlook(job) is Outlook.OPEN:
        return Outlook.OPEN.value
    if job.begin_s > now_s:
        return f"may begin in {job.begin_s - now_s:.0f} s"
    if record is not None and not record.limited_by and 0 < record.retry_s - now_s <= settings.backoff_max_s:
        return f"{record.note}; tried again in {record.retry_s - now_s:.0f} s"
    return ""
