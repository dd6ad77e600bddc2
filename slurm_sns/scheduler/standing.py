"""The state table: what a job that Slurm shows is to us (CONTRIBUTING.md, "Life of a managed job").

A pure function of the observed job, our record of it and the moment. Every row of the table is one branch here.
"""

from enum import StrEnum

from slurm_sns.scheduler.observed import JobState, ObservedJob
from slurm_sns.scheduler.records import JobRecord, Stage
from slurm_sns.submit import mark

#: Slurm's reasons for a hold of an operator's, and for its own of a job that could never run as it is: with the nodes
#: that we gave it, or at all. The filter's hold, ours and an owner's all read JobHeldUser.
ADMINS_HOLD, SLURMS_HOLD = "JobHeldAdmin", "BadConstraints"


class Standing(StrEnum):
    """What an observed job is to us."""

    WAITING = "ours, waiting"
    ADMIN_HELD = "held by Slurm or an administrator"
    OWNER_HELD = "held by its owner after we placed it"
    PLACED = "placed, Slurm is starting it"
    OVERDUE = "placed, but Slurm has not started it in time"
    REQUEUED = "requeued after it ran"
    RELEASED = "released by its owner: Slurm's from now on"
    MARK_LOST = "its owner overwrote our mark"
    OCCUPYING = "running"
    FOREIGN = "not ours"
    ENDED = "ended"


def standing(job: ObservedJob, record: JobRecord | None, now_s: float, place_timeout_s: float) -> Standing:
    """What this job is to us now.

    `record` is ours of the same job (same id and submit time), or None. A pinned job with our mark but without a
    record (the store was lost) counts as placed if it carries our boost: no user can give a job a nice value below 0,
    but he can write a mark on a job with a node list of his own.
    """
    if job.state is JobState.ENDED:
        return Standing.ENDED
    if job.state is JobState.OCCUPYING:
        return Standing.OCCUPYING
    is_marked = mark.read(job.extra) is not None
    if not is_marked and record is None:
        return Standing.FOREIGN
    if job.priority == 0 and not job.pinned_to and _is_held_by_others(job):
        return Standing.ADMIN_HELD
    if not is_marked:
        return Standing.MARK_LOST
    if record is None and job.pinned_to and job.nice >= 0:
        return Standing.FOREIGN
    if job.priority == 0:
        if not job.pinned_to:
            return Standing.WAITING
        return Standing.OVERDUE if job.reason == SLURMS_HOLD else Standing.OWNER_HELD
    if not job.pinned_to:
        return Standing.RELEASED
    if record is not None and job.restarts > record.restarts:
        return Standing.REQUEUED
    # Placed in the future, by a clock that was stepped back since: overdue too, or it might wait for as long as that.
    if record is not None and record.stage is Stage.PLACED and abs(now_s - record.placed_s) > place_timeout_s:
        return Standing.OVERDUE
    return Standing.PLACED


def _is_held_by_others(job: ObservedJob) -> bool:
    """Of a job that we hold Slurm says JobHeldAdmin, too, once a dependency has failed (seen)."""
    return job.reason in (ADMINS_HOLD, SLURMS_HOLD) and not job.has_failed_dependency
