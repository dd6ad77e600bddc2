"""What we do about a job: our record of it from now on, and the change to send.

It is the third column of the state table (CONTRIBUTING.md, "Life of a managed job"). A record is kept until Slurm
shows that the job is out of our hands, so that a change that Slurm refused, or that was never sent, is sent again
after the next look. That of a job that has ended is kept as long as Slurm knows the job, which may be requeued.
"""

from dataclasses import dataclass, replace

from slurm_sns.scheduler.observed import ObservedJob
from slurm_sns.scheduler.records import NO_MEMORY, JobRecord, OwnMemory, Stage
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.standing import Standing

#: After so many placements that Slurm refused or did not start, the job is given to Slurm as it is.
MOST_FAILURES = 8

#: Slurm's reasons that a user, an account, a partition or an array has reached a limit for now, or that it does not
#: find a dependency fulfilled (yet) that we do: the placement may be a good one later. Its pauses grow like any
#: other's, but it is never given away.
PASSING_LIMITS = ("Assoc", "QOS", "Partition", "JobArrayTaskLimit", "Dependency")


@dataclass(frozen=True, slots=True)
class Unpin:
    """Take a placement back: clear the node list, restore nice, and memory where it is given; hold again, or not."""

    job_id: int
    nice: int
    reason: str
    own_memory: OwnMemory = NO_MEMORY
    hold: bool = True


@dataclass(frozen=True, slots=True)
class Release:
    """Give a held job to Slurm."""

    job_id: int
    reason: str


FollowUp = tuple[JobRecord | None, Unpin | Release | None]


def follow_up(job: ObservedJob, what: Standing, record: JobRecord | None, settings: Settings, now_s: float) -> FollowUp:
    """Our record of this job from now on (None: we keep none), and the change to send."""
    if settings.mode != "enforce":
        return _left_over(what, record, is_held=job.priority == 0)
    match what:
        case Standing.WAITING:
            return _waiting(job, record, settings)
        case Standing.OWNER_HELD:
            note = "held by its owner after it was placed"
            return replace(_known(record, job, settings), stage=Stage.OWNER_HELD, nodes=(), note=note), None
        case Standing.PLACED:
            if record is not None and record.stage is Stage.PLACED:
                return record, None
            placed = _known(record, job, settings)
            return replace(placed, stage=Stage.PLACED, nodes=job.pinned_to, placed_s=now_s), None
        case Standing.OVERDUE:
            why = f"placed on {','.join(job.pinned_to)}, but Slurm did not start it: {job.reason or 'no reason given'}"
            known = _known(record, job, settings)
            held = failed(known, why, settings, now_s)
            if job.reason.startswith(PASSING_LIMITS):
                held = replace(held, failures=min(held.failures, MOST_FAILURES - 1))
            return held, _unpin(held, why)
        case Standing.REQUEUED:
            known = _known(record, job, settings)
            held = replace(known, submit_s=job.submit_s, restarts=job.restarts, failures=0, retry_s=0.0)
            return replace(held, stage=Stage.HELD, nodes=(), note="requeued"), _unpin(held, "requeued")
        case Standing.MARK_LOST if job.priority == 0:
            return record, Release(job.id, "its owner overwrote the mark in Extra")
        case Standing.OCCUPYING | Standing.ENDED | Standing.ADMIN_HELD:
            return record, None
        case _:
            return None, None


def _unpin(record: JobRecord, why: str, *, hold: bool = True) -> Unpin:
    return Unpin(record.job_id, record.nice, why, record.own_memory, hold)


def failed(record: JobRecord, why: str, settings: Settings, now_s: float) -> JobRecord:
    """The record after one more placement that came to nothing: held, and planned again after a growing pause."""
    wait_s = min(settings.backoff_max_s, settings.backoff_s * 2**record.failures)
    failures = record.failures + 1
    return replace(record, stage=Stage.HELD, nodes=(), failures=failures, retry_s=now_s + wait_s, note=why)


def _waiting(job: ObservedJob, record: JobRecord | None, settings: Settings) -> FollowUp:
    if record is None:
        return JobRecord(job.id, job.submit_s, Stage.HELD, nice=job.nice, restarts=job.restarts), None
    # The nice that Slurm shows is the owner's, also where he changes it; only where he cleared our node list himself
    # our boost is still in it.
    nice = record.nice if job.nice == record.nice + settings.nice_boost else job.nice
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
    )
    if held.failures < MOST_FAILURES:
        return held, None
    return held, Release(job.id, f"left to Slurm after {held.failures} placements that failed: {held.note}")


def _left_over(what: Standing, record: JobRecord | None, *, is_held: bool) -> FollowUp:
    """Observe and advise hold nothing and keep no records: a record is of a job that an earlier enforce holds."""
    over = "held in the mode enforce, which is over"
    if record is None or record.stage is Stage.OWNER_HELD:
        return None, None
    is_left_held = what is Standing.WAITING or (what is Standing.MARK_LOST and is_held)
    if is_left_held or (what is Standing.ADMIN_HELD and record.stage is Stage.PLACED):  # Slurm's hold, for our nodes
        return record, Release(record.job_id, over)
    if what in (Standing.OVERDUE, Standing.REQUEUED):
        return record, _unpin(record, over, hold=False)
    return (record, None) if what in (Standing.PLACED, Standing.OCCUPYING) else (None, None)


def _known(record: JobRecord | None, job: ObservedJob, settings: Settings) -> JobRecord:
    """The record of a pinned job; where it was lost, made again from what Slurm shows."""
    if record is not None:
        return record
    nice = job.nice - settings.nice_boost
    return JobRecord(job.id, job.submit_s, Stage.PLACED, nice=nice, restarts=job.restarts)
