"""What we do about a job: our record of it from now on, and the changes to send.

It is the third column of the state table (CONTRIBUTING.md, "Life of a managed job"). A record is kept as long as Slurm
knows the job: a change that Slurm refused, or that was never sent, is sent again after the next look, a job that ended
may be requeued, and one that was given to Slurm stays Slurm's.
"""

from dataclasses import dataclass, replace

from slurm_sns.model import Release
from slurm_sns.scheduler.observe.job_status import JobStatus, carries_ours, is_pinned_by
from slurm_sns.scheduler.observe.limit_retries import is_limit
from slurm_sns.scheduler.observe.nice import is_boosted, without_boost
from slurm_sns.scheduler.observe.observed import ObservedJob
from slurm_sns.scheduler.observe.records import NO_MEMORY, JobRecord, OwnMemory, Stage
from slurm_sns.scheduler.settings import Settings

#: After so many placements that Slurm refused or did not start, the job is given to Slurm as it is.
MOST_FAILURES = 8

#: Slurm's reasons that a partition or an array has reached a limit for now, or that it does not find a dependency
#: fulfilled (yet) that we do: the placement may be a good one later, as after a limit of the job's owner (probing). Its
#: pauses grow like any other's, but it is never given away.
PASSING_LIMITS = ("Partition", "JobArrayTaskLimit", "Dependency")

#: Slurm's longest reason has 33 letters.
MOST_REASON = 64

#: A note names no more nodes than a line of the log can hold.
MOST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Unpin:
    """Take a placement back: clear the node list and our gres, restore nice, and memory where it is given.

    The job is held again afterwards, or not. What its owner has written since stays: `keeps_nodes`, `keeps_gres`.
    `address` names it to Slurm where its id alone would not (ObservedJob.address).
    """

    job_id: int
    nice: int
    reason: str
    own_memory: OwnMemory = NO_MEMORY
    hold: bool = True
    keeps_nodes: bool = False
    keeps_gres: bool = False
    address: str = ""


FollowUp = tuple[JobRecord | None, tuple[Unpin | Release, ...]]

#: Why a job is given to Slurm in the modes that hold nothing.
NO_LONGER_ENFORCED = "held in the mode enforce, which is over"
#: Why a job that lost its mark is.
OVERWRITTEN = "its owner overwrote the mark in Extra"
#: Why a placement is taken back from a job that stays held.
OWNER_HELD = "held by its owner after it was placed"


def follow_up(
    job: ObservedJob, what: JobStatus, record: JobRecord | None, settings: Settings, now_s: float
) -> FollowUp:
    """Our record of this job from now on (None: we keep none), and the changes to send."""
    if settings.mode != "enforce" and what in (JobStatus.WAITING, JobStatus.OVERDUE, JobStatus.REQUEUED):
        return record, handed_over(job, what, record, NO_LONGER_ENFORCED)
    if settings.mode != "enforce" and what is JobStatus.UNHELD:
        return _given_to_slurm(job, record), ()
    if what in (JobStatus.OVERDUE, JobStatus.REQUEUED, JobStatus.UNHELD):
        return _taken_back(job, what, known(record, job), settings, now_s)
    match what:
        case JobStatus.WAITING:
            return _waiting(job, record)
        case JobStatus.OWNER_HELD:
            was = replace(known(record, job), stage=Stage.OWNER_HELD, note=OWNER_HELD)
            return was, handed_over(job, what, was, OWNER_HELD)
        case JobStatus.PLACED:
            if record is not None and record.stage is Stage.PLACED:
                return record, ()
            return replace(known(record, job), stage=Stage.PLACED, placed_s=now_s), ()
        case JobStatus.CHANGED | JobStatus.MARK_LOST:
            return record, handed_over(job, what, record, _why_changed(job, what, record))
        case JobStatus.RELEASED:
            return _given_to_slurm(job, record), ()
        case JobStatus.RUNNING | JobStatus.SUSPENDED:
            return _compared(job, record), ()
        case JobStatus.ENDED | JobStatus.ADMIN_HELD:
            return record and verified(record), ()
        case _:
            return None, ()


def _taken_back(job: ObservedJob, what: JobStatus, record: JobRecord, settings: Settings, now_s: float) -> FollowUp:
    """A job whose placement is to be taken back, and that is to be held again."""
    if what is JobStatus.OVERDUE:
        return _overdue(job, record, settings, now_s)
    if what is JobStatus.REQUEUED:
        held = replace(record, submit_s=job.submit_s, restarts=job.restarts, failures=0, retry_s=0.0)
        return replace(held, stage=Stage.HOLDING, note="requeued"), (_unpin(job, held, "requeued"),)
    # Once: whoever releases the job after that is its owner.
    return replace(record, stage=Stage.HELD), (_unpin(job, record, "Slurm undid our hold"),)


def verified(record: JobRecord) -> JobRecord:
    """The record when our hold need not be looked for any more: who releases the job now is somebody else."""
    return replace(record, stage=Stage.HELD) if record.stage is Stage.HOLDING else record


def handed_over(job: ObservedJob, what: JobStatus, record: JobRecord | None, why: str) -> tuple[Unpin | Release, ...]:
    """What gives the job to Slurm as its owner wrote it: our placement taken back, our hold released.

    Nothing for a job that is Slurm's already, or that an administrator holds; one that its owner holds stays held, but
    without our boost, or its release would put it before all others. Slurm lets a job be released twice: one that is
    free already stays as it is. A job that stays pinned would wait for its nodes alone, and nobody would look after it.
    """
    if what in (JobStatus.PLACED, JobStatus.OVERDUE, JobStatus.REQUEUED):
        is_ours = True
    elif what in (JobStatus.CHANGED, JobStatus.MARK_LOST, JobStatus.OWNER_HELD):
        is_ours = carries_ours(job, record)
    elif what is JobStatus.WAITING:
        is_ours = False
    else:
        return ()
    release = (Release(job.id, why),) if job.priority == 0 and what is not JobStatus.OWNER_HELD else ()
    if not is_ours:
        return release
    was = known(record, job)
    keeps_nodes = bool(job.pinned_to and was.nodes) and not is_pinned_by(job, was)
    changes = _unpin(job, was, why, hold=False)
    return replace(changes, keeps_nodes=keeps_nodes, keeps_gres="gres" in job.asks_for), *release


def _unpin(job: ObservedJob, record: JobRecord, why: str, *, hold: bool = True) -> Unpin:
    address = "" if job.address == str(job.id) else job.address
    return Unpin(record.job_id, record.nice, why, record.own_memory, hold, address=address)


def _overdue(job: ObservedJob, record: JobRecord, settings: Settings, now_s: float) -> FollowUp:
    why = f"placed on {','.join(job.pinned_to)}, but Slurm did not start it: {job.reason or 'no reason given'}"
    limited_by = job.reason[:MOST_REASON] if is_limit(job.reason) else ""
    held = replace(failed(record, why, settings, now_s), stage=Stage.HOLDING, limited_by=limited_by)
    if limited_by or job.reason.startswith(PASSING_LIMITS):
        held = replace(held, failures=min(held.failures, MOST_FAILURES - 1))
    return held, (_unpin(job, held, why),)


def _why_changed(job: ObservedJob, what: JobStatus, record: JobRecord | None) -> str:
    if what is JobStatus.MARK_LOST:
        return OVERWRITTEN
    if job.unreadable:
        return f"left to Slurm: its record cannot be read: {job.unreadable}"
    if carries_ours(job, record) and job.priority > 0:
        return "left to Slurm: its owner has changed or released it since it was placed"
    asked = "a node list" if job.pinned_to else ", ".join(job.asks_for) or "gres"
    return f"left to Slurm: its owner asks for {asked}"


def failed(record: JobRecord, why: str, settings: Settings, now_s: float) -> JobRecord:
    """The record after one more placement that came to nothing: held, and planned again after a growing pause."""
    wait_s = min(settings.backoff_max_s, settings.backoff_s * 2**record.failures)
    failures = record.failures + 1
    return replace(record, stage=Stage.HELD, failures=failures, retry_s=now_s + wait_s, note=why)


def _waiting(job: ObservedJob, record: JobRecord | None) -> FollowUp:
    if record is None:
        return JobRecord(job.id, job.submit_s, Stage.HELD, nice=job.nice, restarts=job.restarts), ()
    # The nice that Slurm shows is the owner's, also where he changes it; only where he cleared our node list himself
    # our boost is still in it.
    nice = record.nice if is_boosted(job.nice, record.nice) else job.nice
    # Made anew: at 10,000 waiting jobs, dataclasses.replace is what a cycle spends most of its time on here.
    held = JobRecord(
        record.job_id,
        job.submit_s,
        Stage.HELD,
        placed_s=record.placed_s,
        restarts=job.restarts,
        nice=nice,
        failures=record.failures,
        retry_s=record.retry_s,
        note=record.note,
        limited_by=record.limited_by,
    )
    if held.failures < MOST_FAILURES:
        return held, ()
    return held, (Release(job.id, f"left to Slurm after {held.failures} placements that failed: {held.note}"),)


def _given_to_slurm(job: ObservedJob, record: JobRecord | None) -> JobRecord | None:
    """A job that was held by us once and is Slurm's from now on; one that the filter never held needs no record."""
    if record is None and (job.hints is None or job.hints.advised):
        return None
    released = record or JobRecord(job.id, job.submit_s, Stage.RELEASED, nice=job.nice, restarts=job.restarts)
    return released if released.stage is Stage.RELEASED else replace(released, stage=Stage.RELEASED)


def _compared(job: ObservedJob, record: JobRecord | None) -> JobRecord | None:
    """The record of a job that runs; of one that we placed, once, with what runs otherwise than it was planned."""
    if record is None:
        return replace(known(None, job), stage=Stage.RUNNING) if _runs_by_ours(job) else None
    if record.stage is not Stage.PLACED:
        return record
    return replace(record, stage=Stage.RUNNING, difference=difference(job, record)[:MOST_TEXT], limited_by="")


def _runs_by_ours(job: ObservedJob) -> bool:
    """Whether a job without a record runs where we placed it, as far as its mark and our boost still show it."""
    return job.hints is not None and not job.hints.advised and carries_ours(job, None)


def difference(job: ObservedJob, record: JobRecord) -> str:
    """How the job runs otherwise than it was placed; empty where it does not."""
    found = []
    if set(job.allocated) != set(record.nodes):
        found.append(f"runs on {','.join(job.allocated)}, planned on {','.join(record.nodes)}")
    if record.tasks and job.tasks != record.tasks:
        found.append(f"runs {job.tasks} tasks, planned {record.tasks}")
    return "; ".join(found)


def known(record: JobRecord | None, job: ObservedJob) -> JobRecord:
    """The record of a job with a placement of ours; where it was lost, made again from what Slurm and the mark show."""
    if record is not None:
        return record
    return JobRecord(job.id, job.submit_s, Stage.PLACED, job.pinned_to, nice=own_nice_of(job), restarts=job.restarts)


def own_nice_of(job: ObservedJob) -> int:
    """The owner's nice value of a job without a record; while our boost is on it, one above 0 is in the mark only."""
    noted = None if job.hints is None else job.hints.nice
    return without_boost(job.nice) if job.nice >= 0 or noted is None else noted
