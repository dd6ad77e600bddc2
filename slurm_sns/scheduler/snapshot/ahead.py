"""Jobs placed ahead: those that wait for other jobs only, so that Slurm starts them in the moment when these end. Pure.

A gated job whose dependency is fulfilled, or whose array has room by its limit (`%3`), waits for our next cycle and
then for Slurm's next look at updated jobs, a second and a half. One that is placed already is started by the pass that
slurmctld makes when a job ends. The dependency and the limit stay Slurm's: it starts nothing before its time.

A job is placed ahead only while nothing waits for room: then the nodes that it takes would stand idle. As soon as a job
of ours or of Slurm's own queue waits, all placements ahead are taken back. It gets nodes on which nothing runs: Slurm
starts nothing where a job is completing, so a task beside its siblings might find its node closed.
"""

from collections.abc import Iterator
from dataclasses import replace

from slurm_sns.model import Job, Plan, Reason, Snapshot, WaitKind
from slurm_sns.scheduler.gate.arrays import busy_tasks, planned_tasks
from slurm_sns.scheduler.gate.job_status import Status, own_begin_s
from slurm_sns.scheduler.gate.orders import round_robin
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.eligibility import Eligibility
from slurm_sns.scheduler.snapshot.plannable import sort_out
from slurm_sns.scheduler.snapshot.situation import Explorations, Situation
from slurm_sns.scheduler.snapshot.spreading import SpreadRules

#: Why a job is placed that may not start yet.
WHY_AHEAD = "placed ahead, as nothing waits for room: Slurm starts it when the jobs end that it waits for"
#: The most jobs that are placed ahead at a time. Each is looked at in every pass of Slurm's.
MOST_AHEAD = 32
#: So many times as many tasks of an array as its limit allows are placed, those that run among them. A task of a second
#: may end before the next cycle: then the third wave is there. A cycle adds one wave, on nodes of its own.
WAVES = 3


def to_take_back(situation: Situation, plan: Plan) -> tuple[list[ObservedJob], str]:
    """The jobs placed ahead that are to be gated again after this plan, and why."""
    ahead = situation.surveyed.ahead
    if not ahead:
        return [], ""
    if _is_room_wanted(situation, plan):
        return list(ahead), "gated again, as others wait for room"
    usable = {node.name for node in situation.snapshot.nodes}
    return [job for job in ahead if not usable.issuperset(job.pinned_to)], "gated again, as its nodes are not available"


def ahead_of_time(situation: Situation, plan: Plan, settings: Settings, spreading: SpreadRules) -> Situation | None:
    """The situation in which jobs that wait for others alone are planned; None where none is to be placed ahead.

    `plan` is this cycle's plan for all others, as it was carried out.
    """
    if _is_room_wanted(situation, plan):
        return None
    jobs = _chosen(situation, plan)
    if not jobs or situation.counted is None:
        return None
    eligibility = Eligibility(situation.counted, float(situation.snapshot.now_s), spreading)
    found = sort_out(
        jobs.values(),
        situation.surveyed.tries,
        situation.counted,
        settings,
        eligibility=eligibility,
        may_withhold=lambda _: False,
    )
    snapshot = _with_idle_nodes(situation, plan, found.waiting)
    if not (snapshot.waiting and snapshot.nodes):
        return None
    return replace(
        situation,
        snapshot=snapshot,
        tasks={job_id: job for job_id, job in jobs.items() if job_id not in situation.jobs},
        explanations=found.explanations,
        explorations=Explorations(),
        widenings={},
    )


def _is_room_wanted(situation: Situation, plan: Plan) -> bool:
    """Whether a job of ours that could start waits, or one of Slurm's own queue."""
    started = {start.job_id for start in plan.starts}
    return bool(situation.backlog.claims) or any(job.id not in started for job in situation.snapshot.waiting)


def _chosen(situation: Situation, plan: Plan) -> dict[int, ObservedJob]:
    """The jobs to place ahead now, users taking turns, by id."""
    able = _waiting_for_others(situation, plan)
    most = max(0, MOST_AHEAD - len(situation.surveyed.ahead))
    return {job.id: job for job in round_robin(able, lambda job: job.user_id, most)}


def _waiting_for_others(situation: Situation, plan: Plan) -> Iterator[ObservedJob]:
    """The gated jobs and tasks that wait for other jobs alone."""
    started = [situation.job(start.job_id) for start in plan.starts]
    busy = busy_tasks(situation.observed, situation.statuses)
    busy.update(job.array_id for job in started if job is not None and job.array_id is not None)
    left: dict[int, int] = {}
    for job in situation.jobs.values():
        if situation.statuses[job.id] is not Status.GATED or job.id in situation.surveyed.tries:
            continue
        why = situation.blocked.get(job.id)
        kind = None if why is None else Reason.of(why).kind
        if kind is WaitKind.DEPENDENCY and not job.is_array_record:
            if not _begins_later(job, float(situation.snapshot.now_s)):
                yield job
        elif job.array_id is not None and job.array_limit and kind in (None, WaitKind.ARRAY_LIMIT):
            limit = job.array_limit
            most = left.setdefault(job.array_id, min(limit, WAVES * limit - busy[job.array_id], MOST_AHEAD))
            tasks = planned_tasks(job, most + limit) if job.is_array_record else [job]
            for task in [each for each in tasks if _is_beyond(each, situation, kind)][: max(0, most)]:
                left[job.array_id] -= 1
                yield task


def _begins_later(job: ObservedJob, now_s: float) -> bool:
    begin_s = None if job.record is None else own_begin_s(job, job.record, now_s)
    return begin_s is not None and begin_s > now_s


def _is_beyond(task: ObservedJob, situation: Situation, kind: WaitKind | None) -> bool:
    """Whether this cycle has not planned the task: the limit of its array leaves no room for it."""
    return task.id not in situation.tasks and (kind is not None or task.id not in situation.jobs)


def _with_idle_nodes(situation: Situation, plan: Plan, waiting: list[Job]) -> Snapshot:
    """The snapshot with these jobs alone, and the nodes that nothing is on and this cycle has placed nothing on.

    Nobody knows when the jobs start, so no node is among them that a reservation has now or later.
    """
    snapshot = situation.snapshot
    taken = {name for start in plan.starts for name in start.nodes}
    for each in situation.observation.reservations:
        if each.end_s > snapshot.now_s:
            taken |= each.nodes
    nodes = tuple(node for node in snapshot.nodes if node.free == node.capacity and node.name not in taken)
    return replace(snapshot, nodes=nodes, waiting=tuple(waiting))
