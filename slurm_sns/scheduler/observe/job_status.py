"""The state table: what a job that Slurm shows is to us (CONTRIBUTING.md, "Life of a managed job").

A pure function of the observed job, our record of it and the moment. Every row of the table is one branch here.

Whose a hold is, Slurm does not say: the filter's, ours and an owner's all read JobHeldUser. So it is told by what came
before. A job that we have placed or given to Slurm was released by us: whoever holds it then, it was not us.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from slurm_sns.scheduler.observe.limit_retries import is_limit
from slurm_sns.scheduler.observe.nice import is_boosted
from slurm_sns.scheduler.observe.observed import JobState, ObservedJob
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings

Known = tuple["JobStatus", JobRecord | None]

#: Slurm's reasons for a hold of an operator's, and for its own of a job that could never run as it is: with the nodes
#: that we gave it, or at all.
ADMINS_HOLD, SLURMS_HOLD = "JobHeldAdmin", "BadConstraints"


class JobStatus(StrEnum):
    """What an observed job is to us."""

    WAITING = "ours, waiting"
    ADMIN_HELD = "held by Slurm or an administrator"
    OWNER_HELD = "held by its owner after we placed it"
    PLACED = "placed, Slurm is starting it"
    OVERDUE = "placed, but Slurm has not started it in time"
    UNHELD = "held again by us, but Slurm undid the hold"
    REQUEUED = "requeued after it ran"
    CHANGED = "changed by its owner: left to Slurm"
    RELEASED = "released by its owner: Slurm's from now on"
    MARK_LOST = "its owner overwrote our mark"
    RUNNING = "running"
    SUSPENDED = "suspended"
    FOREIGN = "not ours"
    ENDED = "ended"


def statuses(
    jobs: Sequence[ObservedJob], records: Mapping[int, JobRecord], settings: Settings, now_s: float
) -> dict[int, Known]:
    """What each of these jobs is to us, and our record of it, by id."""
    known = _known(jobs, records)
    return {job.id: (status_of(job, known.get(job.id), now_s, settings), known.get(job.id)) for job in jobs}


def _known(jobs: Sequence[ObservedJob], records: Mapping[int, JobRecord]) -> dict[int, JobRecord]:
    """Our records of the jobs that are still there."""
    known = {job.id: records[job.id] for job in jobs if _is_same_job(job, records.get(job.id))}
    for job in jobs:
        array = known.get(job.array_id) if job.array_id is not None and job.id not in known else None
        # A task that we have just split off, and whose mark its owner has overwritten since: it is held by us. And one
        # that Slurm has split off an array that is Slurm's.
        lost_its_mark = array is not None and job.priority == 0 and job.hints is None
        if array is not None and (lost_its_mark or array.stage is Stage.RELEASED):
            known[job.id] = replace(array, job_id=job.id)
    return known


def _is_same_job(job: ObservedJob, record: JobRecord | None) -> bool:
    """Whether the record is of this job, not of an earlier one with its id. A requeue renews the submit time (seen)."""
    return record is not None and (record.submit_s == job.submit_s or job.restarts > record.restarts)


def status_of(job: ObservedJob, record: JobRecord | None, now_s: float, settings: Settings) -> JobStatus:
    """What this job is to us now. `record` is ours of the same job (same id and submit time), or None.

    A pinned job with our mark but without a record (the store was lost) counts as placed if it carries our boost: no
    user can give a job a nice value below 0, but he can write a mark on a job with a node list of his own. It counts so
    too if it was requeued: while it ran it had its own nice value again, and nobody else would take its nodes off.
    """
    if job.state is JobState.ENDED:
        return JobStatus.ENDED
    if job.state is JobState.RUNNING:
        return JobStatus.RUNNING
    if job.state is JobState.SUSPENDED:
        return JobStatus.SUSPENDED
    hints = job.hints
    if record is None and (hints is None or hints.advised):  # the filter never held it
        return JobStatus.FOREIGN if hints is None or job.priority == 0 or job.pinned_to else JobStatus.RELEASED
    if record is not None and record.stage is Stage.RELEASED:
        is_left = job.priority > 0 and carries_ours(job, record)
        return JobStatus.CHANGED if is_left else JobStatus.RELEASED
    if job.priority == 0:
        return _held(job, record, is_marked=hints is not None)
    return _released(job, record, now_s, settings, is_marked=hints is not None)


def _held(job: ObservedJob, record: JobRecord | None, *, is_marked: bool) -> JobStatus:
    """A job of ours with priority 0."""
    if not job.pinned_to and is_held_by_others(job):
        return JobStatus.ADMIN_HELD
    stage = None if record is None else record.stage
    if carries_ours(job, record):
        is_ours = stage in (Stage.HELD, Stage.HOLDING)
        if job.reason == SLURMS_HOLD or (is_ours and job.pinned_to):  # the hold is Slurm's, or ours
            return JobStatus.OVERDUE if is_marked else JobStatus.CHANGED
        if not is_ours:
            return JobStatus.OWNER_HELD
    if stage is Stage.OWNER_HELD:
        return JobStatus.OWNER_HELD
    if not is_marked:
        return JobStatus.MARK_LOST
    is_changed = job.pinned_to or not job.is_plain or job.ways or job.bandwidth_gbps
    return JobStatus.CHANGED if is_changed else JobStatus.WAITING


def _released(
    job: ObservedJob, record: JobRecord | None, now_s: float, settings: Settings, *, is_marked: bool
) -> JobStatus:
    """A job of ours that waits in Slurm's queue."""
    if not carries_ours(job, record):
        if record is not None and record.stage is Stage.HOLDING and is_marked and not job.pinned_to:
            return JobStatus.UNHELD
        return JobStatus.FOREIGN if record is None and job.pinned_to else JobStatus.RELEASED
    is_where_we_put_it = record is None or is_pinned_by(job, record)
    if not is_where_we_put_it or not is_marked:
        return JobStatus.CHANGED
    if record is None:
        return JobStatus.PLACED
    if job.restarts > record.restarts:
        return JobStatus.REQUEUED
    if record.stage is Stage.OWNER_HELD:
        return JobStatus.CHANGED
    if is_limit(job.reason):  # Slurm has looked at it since its placement, and will not start it now
        return JobStatus.OVERDUE
    # Placed in the future, by a clock that was stepped back since: overdue too, or it might wait for as long as that.
    if record.stage is Stage.PLACED and abs(now_s - record.placed_s) > settings.place_timeout_s:
        return JobStatus.OVERDUE
    return JobStatus.PLACED


def carries_ours(job: ObservedJob, record: JobRecord | None) -> bool:
    """Whether a placement of ours is on the job: our nodes, or our boost without them."""
    if record is None:
        return bool(job.pinned_to) and (job.nice < 0 or job.restarts > 0)
    return is_pinned_by(job, record) or is_boosted(job.nice, record.nice)


def is_pinned_by(job: ObservedJob, record: JobRecord) -> bool:
    """Whether the job's node list is that of its last placement."""
    return bool(job.pinned_to) and set(job.pinned_to) == set(record.nodes)


def is_held_by_others(job: ObservedJob) -> bool:
    """Whether a held job is held by an administrator or by Slurm.

    Of a job that we hold Slurm says JobHeldAdmin, too, once a dependency has failed (seen).
    """
    return job.reason in (ADMINS_HOLD, SLURMS_HOLD) and not job.has_failed_dependency
