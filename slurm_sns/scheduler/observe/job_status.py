"""The state table: the status of a job that Slurm shows (CONTRIBUTING.md, "Life of a managed job").

A pure function of the observed job, our record of it and the moment. Every row of the table is one branch here.

Slurm does not say who holds a job: a hold by the filter, by us or by the owner always has the reason JobHeldUser. So
our record decides: a job that we have placed or given to Slurm was released by us, so a later hold is not ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from slurm_sns.scheduler.observe.limit_retries import is_limit
from slurm_sns.scheduler.observe.nice import is_boosted, may_be_boosted
from slurm_sns.scheduler.observe.observed import SLURMS_HOLD, JobState, ObservedJob
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings

#: Slurm's reason for an operator's hold.
ADMINS_HOLD = "JobHeldAdmin"
#: And, before "held state" or "special exit state", for the hold of whoever has requeued the job by requeuehold (seen).
REQUEUED_HELD = "job requeued in "


class JobStatus(StrEnum):
    """What an observed job is to us; the value is shown to users."""

    WAITING = "ours, waiting"
    ADMIN_HELD = "held by Slurm or an administrator"
    OWNER_HELD = "held by its owner after we placed it"
    PLACED = "placed, Slurm is starting it"
    OVERDUE = "placed, but Slurm has not started it in time"
    UNHELD = "held again by us, but Slurm undid the hold"
    REQUEUED = "requeued after it ran"
    CHANGED = "changed by its owner: left to Slurm"
    RELEASED = "released by its owner: left to Slurm"
    MARK_LOST = "its owner overwrote our mark"
    RUNNING = "running"
    SUSPENDED = "suspended"
    FOREIGN = "not ours"
    ENDED = "ended"


class Known(NamedTuple):
    """The status of a job, and our record of it from before this observation (None: we have none)."""

    status: JobStatus
    record: JobRecord | None


def statuses(
    jobs: Sequence[ObservedJob], records: Mapping[int, JobRecord], settings: Settings, now_s: float
) -> dict[int, Known]:
    """The status of each of these jobs, with our record of it, by job id."""
    known = _known(jobs, records)
    found: dict[int, Known] = {}
    for job in jobs:
        record = known.get(job.id)
        found[job.id] = Known(status_of(job, record, now_s, settings), record)
    return found


def _known(jobs: Sequence[ObservedJob], records: Mapping[int, JobRecord]) -> dict[int, JobRecord]:
    """Our records of these jobs, by job id; a split-off task may take over the record of its array."""
    known: dict[int, JobRecord] = {}
    for job in jobs:
        if job.id not in records:
            continue
        record = _gone_back(job, records[job.id])
        if _was_lost(job, record):
            held = JobRecord(job.id, job.submit_s, Stage.HELD, nice=job.nice, restarts=job.restarts)
            known[job.id] = replace(held, taken_back=record.last_taken_back)
        elif _is_same_job(job, record):
            known[job.id] = record
    # The arrays whose mark says that they are Slurm's, or is overwritten: tasks split off since have that as well.
    telling = {job.id for job in jobs if job.array_id is not None and (job.is_slurms or job.hints is None)}
    for job in jobs:
        array = None if job.id in known else _of_array(job, known, records)
        # Two kinds of tasks take over the array's record: those that we have just split off and hold, and whose mark
        # their owner has overwritten since; and those that Slurm has split off an array that is Slurm's. The mark of an
        # array that we have given to Slurm says so: a task whose own mark does not was split off before.
        is_held = job.priority == 0 and not is_requeued_held(job)
        lost_its_mark = array is not None and is_held and job.hints is None
        is_slurms = array is not None and array.stage is Stage.RELEASED
        was_before = job.hints is not None and not job.is_slurms and job.array_id in telling
        if array is not None and is_slurms and not was_before:
            nodes = () if job.hints is None else array.nodes  # without our mark, a node list is its owner's
            known[job.id] = replace(array, job_id=job.id, nodes=nodes, is_noted=job.is_slurms)
        elif array is not None and lost_its_mark:  # a placement of the array's last task is none of this one
            known[job.id] = JobRecord(job.id, array.submit_s, Stage.HELD, nice=array.nice, restarts=array.restarts)
    return known


def _of_array(job: ObservedJob, known: Mapping[int, JobRecord], records: Mapping[int, JobRecord]) -> JobRecord | None:
    """Our record of the array that the job is a task of, or None.

    The task with the array's id may have ended, and Slurm may have forgotten it. While no scheduler runs, its record is
    kept: if the array was Slurm's, so are the tasks that Slurm has split off since.
    """
    if job.array_id is None:
        return None
    if job.array_id in known:
        return known[job.array_id]
    kept = records.get(job.array_id)
    return kept if kept is not None and kept.stage is Stage.RELEASED and _is_same_job(job, kept) else None


def _is_same_job(job: ObservedJob, record: JobRecord) -> bool:
    """Whether the record is of this job, not of an earlier one with its id.

    A requeue renews the submit time (seen). A slurmctld that is killed may lose a requeue, and requeue the job again.
    It may also lose the job, and give its id to a new one: that shows nothing of ours.
    """
    is_requeued = job.restarts > record.restarts or _is_requeued_again(job, record)
    is_run = _has_ours(job, record) and (is_requeued or _is_earlier_run(job, record))
    return (record.submit_s == job.submit_s or is_run) and not _was_lost(job, record)


def _has_ours(job: ObservedJob, record: JobRecord) -> bool:
    """Whether the job shows that it is the one on record: by our mark, our nodes, our boost or our memory.

    One that is Slurm's needs nothing of ours. Without its record, a task would look like one that we have split off,
    and a job into which its owner writes a mark by hand like one to plan.
    """
    return job.hints is not None or carries_ours(job, record) or record.stage is Stage.RELEASED


def _is_earlier_run(job: ObservedJob, record: JobRecord) -> bool:
    """Whether slurmctld has lost a requeue of the job that is on record.

    The clock may have been set back before that requeue: then only our nodes tell the job from a new one with its id.
    """
    has_ours = job.hints is not None and is_pinned_by(job, record)
    return job.restarts < record.restarts and (job.submit_s <= record.submit_s or has_ours)


def _is_requeued_again(job: ObservedJob, record: JobRecord) -> bool:
    """Whether slurmctld has lost a requeue that is on record, and the job was requeued again."""
    return job.restarts == record.restarts > 0 and job.submit_s != record.submit_s


def _gone_back(job: ObservedJob, record: JobRecord) -> JobRecord:
    """The record of the job as slurmctld has it, which may have been killed and has gone back by seconds.

    A placement that was taken back is on the job again if nobody else can have put it there: the job has our boost, or
    the word in its mark is lost, or it is free though we hold it. It may also be an earlier one: a job that we hold
    has our boost with our nodes only, because one whose nodes its owner has changed is given to Slurm, unless Slurm has
    found these nodes impossible. If it is held with both, that hold came after the placement, and is not ours. With a
    requeue slurmctld has also lost every placement that came after it.
    """
    is_earlier = _has_ours(job, record) and _is_earlier_run(job, record)
    is_requeue_lost = is_earlier or _is_requeued_again(job, record)
    if is_earlier:
        record = replace(record, submit_s=job.submit_s, restarts=job.restarts)
    was = record.with_placement_again()
    is_held, has_boost = record.stage in (Stage.HELD, Stage.HOLDING), is_boosted(job.nice, record.nice)
    # Until its placement was seen taken back, other nodes are its owner's, unless they are those of the one before.
    is_ours = is_pinned_by(job, was) if record.nodes else bool(job.pinned_to)
    if is_held and is_ours and has_boost and job.reason != SLURMS_HOLD:
        if record.nodes:
            return replace(record, nodes=job.pinned_to)
        return replace(was, nodes=job.pinned_to, stage=record.stage if job.priority > 0 else Stage.PLACED)
    if not is_pinned_by(job, was) or is_pinned_by(job, record):
        return record
    if record.nodes:  # it was placed again since; with nodes of its owner's instead, it would have our boost
        is_placed = (is_held or record.stage is Stage.PLACED) and job.priority > 0 and job.nice == record.nice
        return was if is_requeue_lost or is_placed else record
    is_unsaid = record.is_noted and job.hints is not None and not job.is_slurms
    was_free = is_held and (job.priority > 0 or job.reason == SLURMS_HOLD)  # Slurm tries no job that we hold
    return was if was_free or is_unsaid or has_boost or is_requeue_lost else record


def _was_lost(job: ObservedJob, record: JobRecord) -> bool:
    """Whether slurmctld has lost that the job was given to Slurm, or that its owner held it after its placement.

    A slurmctld that is killed goes on from the state that it saved last, up to five seconds before (seen). The job then
    is held as we held it, its mark says so again, and nobody else would ever release it. Of a job that its owner holds
    the placement is taken back and the word is written into its mark in one change: it shows the one or the other.
    """
    has_run_since = job.restarts > record.restarts  # then our hold was over
    is_held = job.state is JobState.PENDING and job.priority == 0 and not has_run_since
    is_by_us = job.hints is not None and not job.is_slurms and not is_requeued_held(job)
    is_as_filtered = is_held and is_by_us and not carries_ours(job, record)
    if record.stage is Stage.OWNER_HELD:  # a node list may be that of the run before
        return is_as_filtered and not job.pinned_to and (record.is_noted or bool(record.nodes))
    return is_as_filtered and record.is_noted


def _has_placement(job: ObservedJob, record: JobRecord) -> bool:
    """Whether the job has our boost, or nodes that slurmctld has lost, when it was killed, that we took back.

    A mark that says that the job is Slurm's says whose hold it is: then both stay until it is released.
    """
    has_ours = is_boosted(job.nice, record.nice) or (record.is_noted and is_pinned_by(job, record))
    return has_ours and not job.is_slurms


def status_of(job: ObservedJob, record: JobRecord | None, now_s: float, settings: Settings) -> JobStatus:
    """The status of this job now. `record` is our record of the same job (see `_is_same_job`), or None.

    A pinned job with our mark but without a record (the store was lost) counts as placed if it carries our boost: no
    user can give a job such a nice value, but any user can write a mark on a job with a node list of their own. Such
    a job also counts as placed if it was requeued: while it ran it had its own nice value again, and nobody else would
    clear its node list.
    """
    if job.state is JobState.ENDED:
        return JobStatus.ENDED
    if job.state is JobState.RUNNING:
        return JobStatus.RUNNING
    if job.state is JobState.SUSPENDED:
        return JobStatus.SUSPENDED
    hints = job.hints
    is_slurms = job.is_slurms
    if record is None and (hints is None or is_slurms):
        if is_slurms and _is_impossible_on_our_nodes(job, None):
            return JobStatus.CHANGED
        return JobStatus.FOREIGN if hints is None or job.priority == 0 or job.pinned_to else JobStatus.RELEASED
    if is_slurms or (record is not None and record.stage is Stage.RELEASED):
        if record is not None and record.stage is Stage.OWNER_HELD and job.priority == 0:
            return JobStatus.OWNER_HELD
        is_left = (job.priority > 0 and carries_ours(job, record)) or _is_impossible_on_our_nodes(job, record)
        if is_left:
            return JobStatus.CHANGED
        # It ran on nodes of its owner's, with what our placement had added to it, and was held and requeued since. Or
        # slurmctld has gone back to when it was held after its placement.
        keeps_ours = record is not None and (has_our_resources(job, record) or _has_placement(job, record))
        return JobStatus.OWNER_HELD if keeps_ours and job.priority == 0 else JobStatus.RELEASED
    if job.priority == 0:
        return _held(job, record, is_marked=hints is not None)
    return _released(job, record, now_s, settings, is_marked=hints is not None)


def _held(job: ObservedJob, record: JobRecord | None, *, is_marked: bool) -> JobStatus:
    """The status of a job of ours with priority 0."""
    stage = None if record is None else record.stage
    if is_requeued_held(job):
        return JobStatus.OWNER_HELD
    if not job.pinned_to and is_held_by_others(job):
        # Without its nodes Slurm has tried the job and holds it, before our hold came.
        is_ours = stage is Stage.HOLDING and job.reason == SLURMS_HOLD and is_marked
        return JobStatus.OVERDUE if is_ours else JobStatus.ADMIN_HELD
    if carries_ours(job, record):
        # Slurm or we hold it. When we take a placement back, the nodes go first: with them, a hold is not ours. But a
        # placement that Slurm refuses may leave its nodes on the job, without our boost.
        is_whole = record is not None and is_pinned_by(job, record) and is_boosted(job.nice, record.nice)
        is_ours = (stage is Stage.HELD and not is_whole) or (stage is Stage.HOLDING and not job.pinned_to)
        if job.reason == SLURMS_HOLD or (is_ours and job.pinned_to):
            has_owners_nodes = record is not None and job.pinned_to and not is_pinned_by(job, record)
            return JobStatus.CHANGED if has_owners_nodes or not is_marked else JobStatus.OVERDUE
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
    """The status of a job of ours that waits in Slurm's queue."""
    if not carries_ours(job, record):
        if record is not None and record.stage is Stage.HOLDING and is_marked and not job.pinned_to:
            return JobStatus.UNHELD
        return JobStatus.RELEASED
    is_where_we_put_it = bool(job.pinned_to) if record is None else is_pinned_by(job, record)
    if not is_where_we_put_it or not is_marked:
        return JobStatus.CHANGED
    if record is None:
        return JobStatus.PLACED
    if job.restarts > record.restarts:
        return JobStatus.REQUEUED
    if record.stage is Stage.OWNER_HELD:
        return JobStatus.CHANGED
    if record.stage in (Stage.HELD, Stage.HOLDING):  # that it is taken back is on record, and was not sent
        return JobStatus.OVERDUE
    if is_limit(job.reason):  # Slurm has looked at it since its placement, and will not start it now
        return JobStatus.OVERDUE
    # If the clock was stepped back since, `placed_s` lies in the future. Then the job is overdue, too: otherwise it
    # might wait until the clock has caught up.
    if record.stage is Stage.PLACED and abs(now_s - record.placed_s) > settings.place_timeout_s:
        return JobStatus.OVERDUE
    return JobStatus.PLACED


def carries_ours(job: ObservedJob, record: JobRecord | None) -> bool:
    """Whether the job carries a placement of ours: our node list, or our boost, memory or gres without it.

    Of a held job without a record, our boost alone says nothing: it is planned again.
    """
    if record is None:
        has_boost = may_be_boosted(job.nice)
        return (bool(job.pinned_to) and (has_boost or job.restarts > 0)) or (has_boost and job.priority > 0)
    return is_pinned_by(job, record) or is_boosted(job.nice, record.nice) or has_our_resources(job, record)


def has_our_resources(job: ObservedJob, record: JobRecord) -> bool:
    """Whether the job still has the memory of whole nodes, or the gres, that its placement gave it.

    Once the placement was taken back, they are its owner's.
    """
    is_left = record.stage in (Stage.OWNER_HELD, Stage.RELEASED) and not job.is_slurms
    if not (is_left or record.stage in (Stage.PLACED, Stage.RUNNING)):
        return False
    is_given = record.given_memory_mb not in (0, record.memory_per_node_mb)
    has_memory = is_given and job.memory_per_cpu_mb is None and job.memory_per_node_mb == record.given_memory_mb
    return has_memory or has_our_gres(job, record)


def has_our_gres(job: ObservedJob, record: JobRecord) -> bool:
    """Whether the job's cache ways and bandwidth are those that its last placement gave it."""
    given = (record.given_ways, record.given_bandwidth_gbps)
    return any(given) and (job.ways, job.bandwidth_gbps) == given


def _is_impossible_on_our_nodes(job: ObservedJob, record: JobRecord | None) -> bool:
    """Whether Slurm itself holds the job because it could never run as we placed it: on these nodes, with this memory.

    If its owner has given it to Slurm meanwhile, nobody else would take these back.
    """
    if record is None:
        is_ours = bool(job.pinned_to) and may_be_boosted(job.nice)
    else:
        is_ours = is_pinned_by(job, record) or has_our_resources(job, record)
    return job.priority == 0 and job.reason == SLURMS_HOLD and is_ours


def is_pinned_by(job: ObservedJob, record: JobRecord) -> bool:
    """Whether the job's node list is that of its last placement, as our record has it."""
    return bool(job.pinned_to) and set(job.pinned_to) == set(record.nodes)


def is_requeued_held(job: ObservedJob) -> bool:
    """Whether a held job was requeued and held in one command, which we never do."""
    return job.priority == 0 and job.reason.startswith(REQUEUED_HELD)


def is_held_by_others(job: ObservedJob) -> bool:
    """Whether a held job is held by an administrator, by Slurm, or by whoever has requeued it.

    Once its dependencies can never be fulfilled, Slurm gives a job that we hold the reason JobHeldAdmin, too (seen). Of
    several of which one suffices, all must have failed (test_job_dependency in job_scheduler.c).
    """
    is_others = job.reason in (ADMINS_HOLD, SLURMS_HOLD) and not job.has_failed_dependency
    return is_others or is_requeued_held(job)
