"""What we do about a job: our record of it from now on, and the changes to send.

This is the third column of the state table (CONTRIBUTING.md, "Life of a managed job"). A record is kept as long as
Slurm knows the job, for three reasons: a change that Slurm refused, or that was never sent, is sent again after the
next observation; a job that has ended may be requeued; and a job that was given to Slurm must stay Slurm's.
"""

from dataclasses import dataclass, replace

from slurm_sns.model import Release
from slurm_sns.scheduler.observe.job_status import (
    JobStatus,
    carries_ours,
    has_our_gres,
    has_our_resources,
    is_held_by_others,
    is_pinned_by,
)
from slurm_sns.scheduler.observe.limit_retries import is_limit
from slurm_sns.scheduler.observe.nice import (
    has_basic_boost,
    is_boosted,
    may_be_boosted,
    stays_while_held,
    without_boost,
)
from slurm_sns.scheduler.observe.observed import ObservedJob
from slurm_sns.scheduler.observe.records import NO_MEMORY, JobRecord, OwnMemory, Stage
from slurm_sns.scheduler.settings import Settings
from slurm_sns.submit import mark

#: After this many placements that Slurm refused or did not start, the job is given to Slurm as it is.
MOST_FAILURES = 8

#: Slurm's reasons for not starting a job that may pass: a partition or an array has reached a limit for now, or Slurm
#: does not find a dependency fulfilled (yet) that we do. Another try may succeed later, as after a limit of the job's
#: owner (limit_retries). The pauses between the tries grow as after any failure, but the job is never given to Slurm.
PASSING_LIMITS = ("Partition", "JobArrayTaskLimit", "Dependency")

#: The most letters kept of Slurm's reason; its longest one has 33.
MOST_REASON = 64

#: The most letters of the text about a difference, which names nodes: it must fit into one line of the log.
MOST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Unpin:
    """Take a placement back: clear the node list and our gres, restore nice, and restore `own_memory` if it is given.

    `hold` says whether the job is held again afterwards, `was_held` whether it was held when we looked. With
    `keeps_nodes` or `keeps_gres` the node list or the gres stays, because the job's owner has written it since. With
    `checks_hold` the job is read once more first, and keeps its nice value if somebody holds it: Slurm would start it
    (nice.stays_while_held). `mark` is the job's new mark; None leaves it. `address` names the job to Slurm where its id
    alone would mean other jobs as well (ObservedJob.address).
    """

    job_id: int
    nice: int
    reason: str
    own_memory: OwnMemory = NO_MEMORY
    hold: bool = True
    was_held: bool = False
    keeps_nodes: bool = False
    keeps_gres: bool = False
    checks_hold: bool = False
    address: str = ""
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Advise:
    """Write `advised` into the mark of a job that its owner has released: a later hold is then not ours.

    Slurm may lose the release, if slurmctld is killed. Then it has lost this word, too, and the job is ours again.
    """

    job_id: int
    reason: str


#: A change that brings a job in line with its status.
Correction = Unpin | Release | Advise
#: Our record of a job from now on (None: we keep none), and the changes to send.
FollowUp = tuple[JobRecord | None, tuple[Correction, ...]]

#: Why a job is given to Slurm in the modes that hold nothing.
NO_LONGER_ENFORCED = "held in the mode enforce, which is no longer set"
#: Why a job that lost its mark is given to Slurm.
OVERWRITTEN = "its owner overwrote the mark in Extra"
#: Why a mark gets the word that its job is Slurm's.
OWNER_RELEASED = "left to Slurm by its owner"
#: Why a placement is taken back from a job that stays held.
OWNER_HELD = "held by its owner after it was placed"


def follow_up(
    job: ObservedJob, status: JobStatus, record: JobRecord | None, settings: Settings, now_s: float
) -> FollowUp:
    """Our record of this job from now on (None: we keep none), and the changes to send."""
    if settings.mode != "enforce" and status in (JobStatus.WAITING, JobStatus.OVERDUE, JobStatus.REQUEUED):
        # A task needs a record of its own: its array's may soon say that the rest of the array is Slurm's.
        kept = _waiting(job, record)[0] if status is JobStatus.WAITING else record
        return kept, handed_over(job, status, record, NO_LONGER_ENFORCED)
    if settings.mode != "enforce" and status is JobStatus.UNHELD:
        return _given_to_slurm(job, record), ()
    if status in (JobStatus.OVERDUE, JobStatus.REQUEUED, JobStatus.UNHELD):
        return _taken_back(job, status, known(record, job), settings, now_s)
    match status:
        case JobStatus.WAITING:
            return _waiting(job, record)
        case JobStatus.ENDED | JobStatus.ADMIN_HELD:
            return record and verified(noted(record, job)), ()
        case JobStatus.OWNER_HELD:
            return _owner_held(job, known(record, job))
        case JobStatus.PLACED:
            if record is not None and record.stage is Stage.PLACED:
                return record, ()
            return replace(known(record, job), stage=Stage.PLACED, placed_s=now_s), ()
        case JobStatus.CHANGED | JobStatus.MARK_LOST:
            kept = record or _new_record(job)
            return kept, handed_over(job, status, record, _why_changed(job, status, record))
        case JobStatus.RELEASED:
            return _given_to_slurm(job, record), _advice(job, settings)
        case JobStatus.RUNNING | JobStatus.SUSPENDED:
            compared = _compared(job, record and noted(record, job))
            is_slurms = compared is not None and compared.stage is Stage.RELEASED
            return compared, _advice(job, settings) if is_slurms and status is JobStatus.RUNNING else ()
        case _:
            return None, ()


def _taken_back(job: ObservedJob, status: JobStatus, record: JobRecord, settings: Settings, now_s: float) -> FollowUp:
    """The follow-up for a job that is to be held again: take its placement back."""
    if status is JobStatus.OVERDUE:
        return _overdue(job, record, settings, now_s)
    if status is JobStatus.REQUEUED:
        held = replace(record, submit_s=job.submit_s, restarts=job.restarts, failures=0, retry_s=0.0)
        return replace(held, stage=Stage.HOLDING, note="requeued"), (_unpin(job, held, "requeued"),)
    # We hold it again only once: if it is released after that, its owner did it.
    return replace(record, stage=Stage.HELD), (_unpin(job, record, "Slurm undid our hold"),)


def _advice(job: ObservedJob, settings: Settings) -> tuple[Advise, ...]:
    """What lets the mark of a job that its owner has released say so; nothing while it is held."""
    is_new = job.priority > 0 and job.hints is not None and not job.is_slurms and settings.mode == "enforce"
    return (Advise(job.id, OWNER_RELEASED),) if is_new and not job.is_completing else ()


def noted(record: JobRecord, job: ObservedJob) -> JobRecord:
    """The record of a job that is Slurm's, or that its owner holds, once the job's mark says so.

    A mark that says so no longer while the job is free was changed by people: a hold from now on is its owner's.
    """
    if record.stage not in (Stage.RELEASED, Stage.OWNER_HELD):
        return record
    is_unsaid = job.priority > 0 and job.hints is not None
    is_noted = job.is_slurms or (record.is_noted and not is_unsaid)
    return record if is_noted == record.is_noted else replace(record, is_noted=is_noted)


def verified(record: JobRecord) -> JobRecord:
    """The record once our hold is verified: if the job is released from now on, somebody else did it."""
    return replace(record, stage=Stage.HELD) if record.stage is Stage.HOLDING else record


def handed_over(job: ObservedJob, status: JobStatus, record: JobRecord | None, why: str) -> tuple[Unpin | Release, ...]:
    """The changes that give the job to Slurm as its owner wrote it: take our placement back, release our hold.

    There are none for a job that is Slurm's already, or that an administrator holds. A job that its owner holds stays
    held, but loses our boost: otherwise the owner's release would put it ahead of all other jobs. Slurm accepts the
    release of a job that is not held and changes nothing. Our node list must go: the job would wait for these nodes
    alone, and nobody would take it back. But of a job without our mark that its owner holds, only our node list may say
    that the hold is not ours: there it stays until our record says so, or until the job is free.
    """
    was = known(record, job)
    if status in (JobStatus.PLACED, JobStatus.OVERDUE, JobStatus.REQUEUED):
        is_ours = True
    elif status in (JobStatus.CHANGED, JobStatus.MARK_LOST):
        is_ours = carries_ours(job, record)
    elif status is JobStatus.OWNER_HELD:
        is_ours = carries_ours(job, was)
    elif status is JobStatus.WAITING:
        is_ours = False
    else:
        return ()
    if status is JobStatus.OWNER_HELD and not _shows_its_owners_hold(job, record):
        return ()
    # A boosted job of which our record never knew nodes has those of a placement that slurmctld has gone back to.
    is_unknown = was.last_taken_back is None and is_boosted(job.nice, was.nice)
    keeps_nodes = not is_ours or (bool(job.pinned_to) and not is_pinned_by(job, was) and not is_unknown)
    is_held = job.priority == 0 and status is not JobStatus.OWNER_HELD
    release = (Release(job.id, why, job.pinned_to if keeps_nodes else ()),) if is_held else ()
    if not is_ours or _has_only_what_stays(job, status, was):
        return release
    changes = _unpin(job, was, why, hold=False)
    # The last change says in the mark that we no longer hold the job: after a crash in between, it is still ours.
    new_mark = mark.without_grant(job.hints) if release else mark.given_to_slurm(job.hints)
    return replace(changes, keeps_nodes=keeps_nodes, mark=new_mark), *release


def _has_only_what_stays(job: ObservedJob, status: JobStatus, record: JobRecord) -> bool:
    """Whether a job that its owner holds has nothing of ours but a boost that stays until the owner releases it."""
    is_said = job.is_slurms or job.hints is None
    has_more = is_pinned_by(job, record) or has_our_resources(job, record)
    return status is JobStatus.OWNER_HELD and is_said and stays_while_held(job) and not has_more


def _shows_its_owners_hold(job: ObservedJob, record: JobRecord | None) -> bool:
    """Whether a job that its owner holds can be told from one that we hold when our placement is gone."""
    is_recorded = record is not None and record.stage is Stage.OWNER_HELD
    return job.hints is not None or is_recorded or is_held_by_others(job)


def _unpin(job: ObservedJob, record: JobRecord, why: str, *, hold: bool = True) -> Unpin:
    address = "" if job.address == str(job.id) else job.address
    nice = record.nice if is_boosted(job.nice, record.nice) else job.nice  # its owner has changed it since
    has_ours = job.memory_per_cpu_mb is None and job.memory_per_node_mb == record.given_memory_mb
    own_memory = record.own_memory if has_ours or not record.given_memory_mb else NO_MEMORY  # as above
    return Unpin(
        record.job_id,
        nice,
        why,
        own_memory,
        hold,
        was_held=job.priority == 0,
        keeps_gres=_has_owners_gres(job, record),
        checks_hold=has_basic_boost(job),
        address=address,
        mark=mark.without_grant(job.hints),
    )


def _has_owners_gres(job: ObservedJob, record: JobRecord) -> bool:
    """Whether the job asks for gres that its placement did not give it.

    A job has one text for all of its gres: where it names others beside ours, its owner has written all of it. Of a
    job without our mark, any gres is among what it asks for.
    """
    if has_our_gres(job, record):
        return job.has_other_gres
    return "gres" in job.asks_for or (record.given_ways is not None and bool(job.ways or job.bandwidth_gbps))


def _overdue(job: ObservedJob, record: JobRecord, settings: Settings, now_s: float) -> FollowUp:
    if record.stage in (Stage.HELD, Stage.HOLDING):  # it failed once, and the change has not reached Slurm
        return replace(record, stage=Stage.HOLDING), (_unpin(job, record, record.note),)
    why = f"placed on {','.join(job.pinned_to)}, but Slurm did not start it: {job.reason or 'no reason given'}"
    limited_by = job.reason[:MOST_REASON] if is_limit(job.reason) else ""
    held = replace(failed(record, why, settings, now_s), stage=Stage.HOLDING, limited_by=limited_by)
    if limited_by or job.reason.startswith(PASSING_LIMITS):
        held = replace(held, failures=min(held.failures, MOST_FAILURES - 1))
    return held, (_unpin(job, held, why),)


def _why_changed(job: ObservedJob, status: JobStatus, record: JobRecord | None) -> str:
    if status is JobStatus.MARK_LOST:
        return OVERWRITTEN
    if job.unreadable:
        return f"left to Slurm: its record cannot be read: {job.unreadable}"
    if carries_ours(job, record) and job.priority > 0:
        return "left to Slurm: its owner has changed or released it since it was placed"
    asked = "a node list" if job.pinned_to else ", ".join(job.asks_for) or "gres"
    return f"left to Slurm: its owner asks for {asked}"


def failed(record: JobRecord, why: str, settings: Settings, now_s: float) -> JobRecord:
    """The record after one more failed placement: the job is held, and planned again after a pause that grows."""
    wait_s = min(settings.backoff_max_s, settings.backoff_s * 2**record.failures)
    failures = record.failures + 1
    return replace(record, stage=Stage.HELD, failures=failures, retry_s=now_s + wait_s, note=why)


def _new_record(job: ObservedJob) -> JobRecord:
    """The record of a held job without one. If the record was lost, our nodes or our boost may be on the job."""
    nodes = job.pinned_to if carries_ours(job, None) else ()
    nice = own_nice_of(job) if may_be_boosted(job.nice) else job.nice
    return JobRecord(job.id, job.submit_s, Stage.HELD, nodes, nice=nice, restarts=job.restarts)


def _waiting(job: ObservedJob, record: JobRecord | None) -> FollowUp:
    if record is None:
        return _new_record(job), ()
    # The nice that Slurm shows is the owner's, also after the owner changed it. Our boost is still in it only if the
    # owner has cleared our node list.
    nice = record.nice if is_boosted(job.nice, record.nice) else job.nice
    if _says_waiting(record, job, nice):
        return record, () if record.failures < MOST_FAILURES else _given_up(record)
    # Made by the constructor: at 10,000 waiting jobs, dataclasses.replace would take most of the time spent here.
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
        taken_back=record.last_taken_back,
    )
    return held, () if held.failures < MOST_FAILURES else _given_up(held)


def _owner_held(job: ObservedJob, record: JobRecord) -> FollowUp:
    is_placed = is_pinned_by(job, record)
    kept = record if is_placed or record.stage is not Stage.OWNER_HELD else record.without_nodes()
    held = replace(kept, stage=Stage.OWNER_HELD, note=OWNER_HELD, submit_s=job.submit_s, restarts=job.restarts)
    was = noted(held, job)
    return was, handed_over(job, JobStatus.OWNER_HELD, was, OWNER_HELD)


def _says_waiting(record: JobRecord, job: ObservedJob, nice: int) -> bool:
    """Whether the record is that of a waiting job already, as that of nearly every job of a long queue."""
    return (
        record.stage is Stage.HELD
        and record.submit_s == job.submit_s
        and record.restarts == job.restarts
        and record.nice == nice
        and not (record.nodes or record.tasks or record.difference)
        and record.memory_per_cpu_mb is None
        and record.memory_per_node_mb is None
    )


def _given_up(held: JobRecord) -> tuple[Release]:
    why = f"left to Slurm after {held.failures} placements that failed: {held.note}"
    return (Release(held.job_id, why),)


def _given_to_slurm(job: ObservedJob, record: JobRecord | None) -> JobRecord | None:
    """The record of a job that is Slurm's from now on; None for a job that the filter never held."""
    if record is None and (job.hints is None or job.hints.advised):
        return None
    released = record or JobRecord(job.id, job.submit_s, Stage.RELEASED, nice=job.nice, restarts=job.restarts)
    if released.stage is not Stage.RELEASED:
        released = replace(released, stage=Stage.RELEASED)
    if not is_pinned_by(job, released):
        released = released.without_nodes()
    if job.priority > 0 and (released.given_memory_mb or released.given_ways or released.given_bandwidth_gbps):
        # It has its own memory and gres, or what its owner has given it since.
        released = replace(released, given_memory_mb=0, given_ways=0, given_bandwidth_gbps=0)
    return noted(released, job)


def _compared(job: ObservedJob, record: JobRecord | None) -> JobRecord | None:
    """The record of a running job. When it has just started from our placement, note how it differs from the plan."""
    if record is None and _runs_by_ours(job):
        return replace(known(None, job), stage=Stage.RUNNING)
    if record is None:  # its owner released it before we saw it, unless a node list could be ours
        return None if job.pinned_to else _given_to_slurm(job, None)
    if record.stage is Stage.HOLDING and job.priority == 0 and not (job.pinned_to or job.is_slurms):
        return record  # our hold met a job that had just started: should it be requeued, that hold is ours
    if record.stage in (Stage.HELD, Stage.HOLDING) and not job.pinned_to:  # its owner released it before we saw that
        return noted(replace(record, stage=Stage.RELEASED), job)
    if record.stage not in (Stage.PLACED, Stage.HELD, Stage.HOLDING):
        return record
    is_where_we_put_it = not job.pinned_to or is_pinned_by(job, record) or set(job.allocated) == set(record.nodes)
    if not is_where_we_put_it:  # its owner has given it other nodes before it started
        return replace(record, stage=Stage.RELEASED, limited_by="")
    return replace(record, stage=Stage.RUNNING, difference=difference(job, record)[:MOST_TEXT], limited_by="")


def _runs_by_ours(job: ObservedJob) -> bool:
    """Whether a job without a record runs where we placed it, as far as its mark and our boost still show.

    With our boost it does even if its mark says that it is Slurm's: the watchdog gave it away while it was placed.
    """
    is_ours = job.hints is not None and (not job.hints.advised or may_be_boosted(job.nice))
    return is_ours and carries_ours(job, None)


def difference(job: ObservedJob, record: JobRecord) -> str:
    """How the job runs differently from its placement; empty if it does not."""
    found = []
    if set(job.allocated) != set(record.nodes):
        found.append(f"runs on {','.join(job.allocated)}, planned on {','.join(record.nodes)}")
    if record.tasks and job.tasks != record.tasks:
        found.append(f"runs {job.tasks} tasks, planned {record.tasks}")
    return "; ".join(found)


def known(record: JobRecord | None, job: ObservedJob) -> JobRecord:
    """The record of a job with our placement; if the record was lost, made again from what Slurm and the mark show."""
    if record is not None:
        return record
    return JobRecord(job.id, job.submit_s, Stage.PLACED, job.pinned_to, nice=own_nice_of(job), restarts=job.restarts)


def own_nice_of(job: ObservedJob) -> int:
    """The owner's nice value of a job without a record. Of a boosted job, only the mark shows a value above 0."""
    noted = None if job.hints is None else job.hints.nice
    return without_boost(job.nice) if job.nice >= 0 or noted is None else noted
