"""One row for each of our jobs, as queue, explain and the overview show it, in the order of the queue."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from slurm_sns.model import Job, Node, Reason, Start, WaitKind
from slurm_sns.scheduler.answers.answer_types import (
    QueuedJobBase,
    QueueRow,
    WaitCause,
    amounts,
)
from slurm_sns.scheduler.answers.redaction import Redaction
from slurm_sns.scheduler.answers.start_answers import start_of
from slurm_sns.scheduler.answers.view import (
    View,
    whys_unpartitioned,
)
from slurm_sns.scheduler.gate.job_status import Status, is_held
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.snapshot.free_nodes import completing_jobs
from slurm_sns.scheduler.start_estimates.board import NO_ESTIMATES, Estimates

#: A waiting job's reason names at most so many completing jobs.
MOST_COMPLETING = 3

#: The names of a pass-through job's states.
_PASS_THROUGH_STATES = {
    JobState.PENDING: "waiting",
    JobState.RUNNING: "running",
    JobState.SUSPENDED: "suspended",
    JobState.ENDED: "ended",
}

#: The state of a job that has ended but not left all its nodes yet, and of a gated job that somebody holds.
COMPLETING, HELD = "completing", "held"

#: What is waited for there is on nodes: it depends on the features that these must have.
_ON_NODES = (WaitKind.RESOURCES, WaitKind.NODES, WaitKind.TOO_LARGE)


def queue(
    view: View, only_user: int | None, estimates: Estimates = NO_ESTIMATES, *, users: Collection[str] | None = None
) -> Iterator[QueueRow]:
    """Our jobs, waiting ones first, in the order in which a cycle plans them: of all users, or of those that are given.

    `only_user` is the user who asks; None is an admin, who may see all jobs.
    """
    jobs = (
        job
        for user_id, own in view.once(_queued_by_user).items()
        if only_user in (None, user_id)
        for job in own
        if users is None or job.user in users
    )
    return rows(view, _in_queue_order(view, jobs), redaction_of(view, only_user), estimates)


def _queued_by_user(view: View) -> dict[int, list[ObservedJob]]:
    """Our jobs, and the tasks of an array's record that were placed, by owner."""
    started, found = view.once(_starts), dict[int, list[ObservedJob]]()
    for job in chain(view.situation.jobs.values(), (job for job in view.situation.tasks.values() if job.id in started)):
        found.setdefault(job.user_id, []).append(job)
    return found


def _in_queue_order(view: View, jobs: Iterable[ObservedJob]) -> list[ObservedJob]:
    places = view.once(queue_places)
    last = len(places) + 1
    return sorted(jobs, key=lambda job: (job.state is not JobState.PENDING, places.get(job.id, last), job.id))


def rows(
    view: View, jobs: Iterable[ObservedJob], redaction: Redaction, estimates: Estimates = NO_ESTIMATES
) -> Iterator[QueueRow]:
    """One row for each job, as it is after the cycle: the observation does not show yet what the cycle placed."""
    starts, places, ending_on = view.once(_starts), view.once(queue_places), view.once(_completing)
    jobs, waiting = list(jobs), view.situation.snapshot.waiting
    shared = {} if view.agents is None else whys_unpartitioned(view.agents, jobs)
    told = lru_cache(None)(amounts)  # many jobs ask for the same
    for job in jobs:
        started = starts.get(job.id)
        place = places.get(job.id)
        planned = None if place is None else waiting[place - 1]
        alternative = started.alternative if started else planned.alternatives[0] if planned else None
        row = _row(view, job, started)
        ending = "" if started or planned is None else _waits_for(planned, ending_on)
        reason = redaction.text("; ".join(filter(None, (row["reason"], ending, shared.get(job.id)))))
        yield {
            **row,
            "reason": reason,
            "waits": None if started else _wait_cause(view, job, Reason.of(row["reason"]), redaction),
            "position": None if started else place,
            "over_aged": planned is not None and planned.over_aged,
            "demand": None if alternative is None else {"nodes": alternative.nodes, **told(alternative.demand)},
            "starts": None if started else start_of(view, job, redaction, estimates.of.get(job.id)),
        }


def _row(view: View, job: ObservedJob, started: Start | None) -> QueuedJobBase:
    nodes = started.nodes if started else (job.allocated or job.pinned_to)
    if view.mode == "enforce" or not is_ours(view, job):
        state = Status.PLACED.value if started else state_of(view, job)
    else:
        state = "would be placed" if started else "would wait"
    return {
        "job_id": job.id,
        "label": job.label,
        "user": job.user,
        "account": job.account,
        "name": job.name,
        "partition": ",".join(job.partitions),
        "tasks": job.tasks,
        "cpus": job.cpus,
        "state": state,
        "submit_s": job.submit_s,
        "start_s": job.start_s,
        "nodes": list(nodes),
        "reason": started.reason if started else reason_of(view, job),
    }


def state_of(view: View, job: ObservedJob) -> str:
    """The job's status, `held` if somebody holds it; for any other job, whether it waits, runs, or has ended.

    A completing job has ended for its owner, whatever we count it as.
    """
    if job.is_completing:
        return COMPLETING
    status = view.situation.statuses.get(job.id, Status.GATED)  # a task of a gated array's record
    if job.state is JobState.SUSPENDED or not is_ours(view, job) or view.mode != "enforce":
        return _PASS_THROUGH_STATES[job.state]
    return HELD if status is Status.GATED and is_held(job) else status.value


def reason_of(view: View, job: ObservedJob) -> Reason:
    """Why the job waits: our reason, or Slurm's where we have none (a placed job)."""
    text = view.restarts.decided.get(job.id) or view.sharing.jobs.get(job.id) or _own_reason(view, job.id)
    if job.is_array_record and text is None:
        first = next((task for task in view.situation.tasks.values() if task.array_id == job.id), None)
        return Reason.of(job.reason if first is None else _own_reason(view, first.id) or "")
    return Reason.of(text or job.reason)


def _own_reason(view: View, job_id: int) -> str | None:
    return view.situation.blocked.get(job_id, view.plan.waiting.get(job_id))


def _wait_cause(view: View, job: ObservedJob, reason: Reason, redaction: Redaction) -> WaitCause | None:
    """What a waiting job of ours waits for, by its reason; None for any other job."""
    is_starting = view.situation.statuses.get(job.id, Status.GATED).is_starting  # a planned task has no status
    if job.state is not JobState.PENDING or is_starting or not is_ours(view, job):
        return None
    features = job.constraint if reason.kind in _ON_NODES else ""
    return {"kind": reason.kind.value, "about": redaction.text(reason.about), "features": features}


def _waits_for(waiting: Job, ending_on: Sequence[tuple[Node, int]]) -> str:
    """The completing jobs whose nodes could hold the waiting job, as one sentence; empty where there are none."""
    told = [
        f"job {completing} is still completing on {node.name}"
        for node, completing in ending_on
        if (waiting.allowed is None or node.name in waiting.allowed)
        and any(each.demand.within(node.capacity) for each in waiting.alternatives)
    ]
    more = len(told) - MOST_COMPLETING
    return ", ".join(told[:MOST_COMPLETING]) + (f" and {more} more" if more > 0 else "")


def is_ours(view: View, job: ObservedJob) -> bool:
    """Whether we gate, plan or have placed the job; also true of an ended job that we placed: its record stays."""
    has_ended_here = job.state is JobState.ENDED and job.record is not None and job.record.is_placed
    return view.situation.job(job.id) is not None or has_ended_here


def redaction_of(view: View, only_user: int | None) -> Redaction:
    """What this user may read of the view; None is an admin."""
    if only_user is None:
        return Redaction(None)
    return Redaction(view.once(_ids_by_user).get(only_user, frozenset()))


def _ids_by_user(view: View) -> dict[int, set[int]]:
    """The ids of our jobs and of the planned tasks, by owner."""
    found: dict[int, set[int]] = {}
    for job in chain(view.situation.jobs.values(), view.situation.tasks.values()):
        found.setdefault(job.user_id, set()).add(job.id)
    return found


def queue_places(view: View) -> dict[int, int]:
    """The places of the planned jobs in the queue, from 1, by job id."""
    return {job.id: place for place, job in enumerate(view.situation.snapshot.waiting, 1)}


def _starts(view: View) -> dict[int, Start]:
    return {start.job_id: start for start in view.plan.starts}


def _completing(view: View) -> list[tuple[Node, int]]:
    """The nodes of the snapshot on which a job is completing, each with that job's id."""
    completing = completing_jobs(view.situation.observed)
    return [(node, completing[node.name]) for node in view.situation.snapshot.nodes if node.name in completing]
