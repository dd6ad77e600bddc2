"""The state table of the gate: what a job is to us, by the job that Slurm shows and the moment alone.

No record of ours beside the job is needed: what we changed in it stands in its AdminComment (submit.record), and a
field of the job is ours exactly if it equals what the record says. Each row of the table is a member of `Status`.

A hold, which is priority 0 with any reason but BadConstraints, is somebody else's: we never hold, and never release.
`now_s` is read after the observation: a placement opens the gate by slurmctld's clock, and a begin time that lies
ahead, and is not our gate, counts as its owner's.
"""

import re
from enum import StrEnum

from slurm_sns.scheduler.observation import SLURMS_HOLD, JobState, ObservedJob
from slurm_sns.submit.record import Record

#: Slurm's reasons for limits of associations and QOS (job_state_reason.c); a QOS also limits its accounts and users.
_LIMIT = re.compile(r"Assoc|QOS|Max\w+Per(Account|User)$")


def is_limit(reason: str) -> bool:
    """Whether Slurm's reason is a limit of the job's user, account or QOS."""
    return _LIMIT.match(reason) is not None


#: How Slurm's reasons for waiting for other jobs begin: Dependency, DependencyNeverSatisfied.
_DEPENDENCY = "Dependency"
#: Slurm's reason for a dependency that can never be fulfilled.
NEVER_SATISFIED = "DependencyNeverSatisfied"
#: Slurm's reason where as many tasks of an array run as its `%N` allows.
_ARRAY_LIMIT = "JobArrayTaskLimit"


class Status(StrEnum):
    """What an observed job is to us, a member for each row of the table; the value is shown to users.

    A member knows two things besides, as attributes: all jobs of a site are asked for them in each cycle.

    Attributes:
        is_starting: whether Slurm is to start a job of this status at once.
        has_placement: whether such a job counts as holding the nodes of its placement, on which it has not started. One
            that is placed ahead waits for other jobs. An overdue one may start before its placement is taken back.
    """

    is_starting: bool
    has_placement: bool

    FOREIGN = "not ours"
    SLURMS = "left to Slurm"
    ENDED = "ended"
    RUNNING = "running"
    REQUEUED = "requeued after it ran"
    PLACED = "placed, Slurm is starting it"
    AHEAD = "placed, Slurm starts it when other jobs end"
    OVERDUE = "placed, but Slurm has not started it in time"
    HALF_APPLIED = "placed, but Slurm made only a part of the change"
    HELD_PLACED = "held after we placed it"
    CHANGED = "changed by its owner after we placed it"
    GATED = "waiting"
    LAPSED = "its gate has lapsed"
    OWN_TIME = "waits for a begin time of its owner"
    TAKEN = "opened or changed by its owner: left to Slurm from now on"


for _each in Status:
    _each.is_starting = _each in (Status.PLACED, Status.OVERDUE)
    _each.has_placement = _each.is_starting or _each is Status.AHEAD


def status_of(job: ObservedJob, now_s: float, place_timeout_s: float) -> Status:
    """The status of this job now. Every job has exactly one; nothing is raised."""
    record = job.record
    if record is None or job.is_special:
        return Status.FOREIGN
    if record.is_slurms:
        return Status.SLURMS
    if job.state is JobState.ENDED:
        return Status.ENDED
    if job.state.occupies_nodes:
        return Status.RUNNING
    if job.restarts > record.restarts:
        return Status.REQUEUED
    if record.is_placed:
        return _placed(job, record, now_s, place_timeout_s)
    return _waiting(job, record, now_s)


def _placed(job: ObservedJob, record: Record, now_s: float, place_timeout_s: float) -> Status:
    """The status of a pending job whose record names a placement. What its owner changed goes before a hold."""
    is_ahead = job.begin_s > now_s
    if not has_nodes_of(job, record) or (is_ahead and job.begin_s != record.gate_s):
        return Status.CHANGED
    if is_ahead:
        return Status.HALF_APPLIED
    if is_held(job):
        return Status.HELD_PLACED
    if (waits_for_others(job) or job.reason == _ARRAY_LIMIT) and job.reason != NEVER_SATISFIED:
        return Status.AHEAD
    # Slurm sets the begin time when the job waits for others no more. A clock that was set back since would otherwise
    # make the job wait until it has caught up: hence abs.
    is_late = abs(now_s - max(record.placed_s or 0, job.begin_s)) > place_timeout_s
    will_not_start = job.reason in (SLURMS_HOLD, NEVER_SATISFIED) or is_limit(job.reason)
    return Status.OVERDUE if is_late or will_not_start else Status.PLACED


def _waiting(job: ObservedJob, record: Record, now_s: float) -> Status:
    """The status of a pending job without a placement of ours: all nodes and gres on it are its owner's."""
    has_gres = job.ways > 0 or job.bandwidth_gbps > 0 or job.has_other_gres
    if job.pinned_to or has_gres or not job.is_plain:
        return Status.TAKEN
    if job.begin_s > now_s:
        return Status.GATED if job.begin_s == record.gate_s else Status.OWN_TIME
    return Status.LAPSED if job.begin_s in (0, record.gate_s) else Status.TAKEN


def has_nodes_of(job: ObservedJob, record: Record) -> bool:
    """Whether the job's node list is that of the placement on record, in any order."""
    return bool(job.pinned_to) and set(job.pinned_to) == set(record.nodes)


def is_held(job: ObservedJob) -> bool:
    """Whether its owner or an administrator holds the job. Slurm's own hold ends when a placement is taken back."""
    return job.priority == 0 and job.reason != SLURMS_HOLD


def own_begin_s(job: ObservedJob, record: Record, now_s: float) -> int | None:
    """The begin time that the owner has set and that still lies ahead; None if there is none.

    A begin time that is not our gate is the owner's, except after a requeue, when Slurm sets one (requeue_delay).
    """
    if job.begin_s > now_s and job.begin_s != record.gate_s and job.restarts <= record.restarts:
        return job.begin_s
    return record.begin_s if record.begin_s is not None and record.begin_s > now_s else None


def waits_for_others(job: ObservedJob) -> bool:
    """Whether the job waits for other jobs.

    The dependency itself is looked at beside Slurm's reason: after an update the reason is None until Slurm's next pass
    (seen), and the gate may have been renewed just now.
    """
    return job.waits_for_others or job.reason.startswith(_DEPENDENCY)
