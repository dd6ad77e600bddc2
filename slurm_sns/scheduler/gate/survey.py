"""First step of a cycle's input: what each of Slurm's jobs is to us, what follows from that, and which may be planned.

It needs the jobs alone, no nodes. Pure: the same jobs, tries and moment give the same result. The second step is
snapshot.situation.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slurm_sns.model import Reason, WaitKind
from slurm_sns.scheduler.gate.arrays import busy_tasks, limit_reached, within_limits
from slurm_sns.scheduler.gate.failed_placements import MOST_FAILURES, Try, pause, still_meant, waiting_for_limits
from slurm_sns.scheduler.gate.job_status import (
    NEVER_SATISFIED,
    Status,
    is_held,
    is_limit,
    own_begin_s,
    status_of,
    waits_for_others,
)
from slurm_sns.scheduler.gate.leases import Leases, leases, next_gate_s
from slurm_sns.scheduler.gate.orders import GateOrder, follow_up, free, renew
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.settings import Settings
from slurm_sns.submit.judge import ADVISE

#: In the modes that gate nothing, why a gated job is given to Slurm.
NOT_ENFORCED = "mode not enforce"
#: Why a job is given to Slurm whose owner asks for that (`sns release JOBID`).
ASKED = "opened by its owner"


@dataclass(frozen=True, slots=True)
class Survey:
    """What one observation of Slurm's jobs means. Mappings are by job id.

    Attributes:
        statuses: the status of every job.
        gated: how many jobs are gated.
        lease: how long gates stand now.
        follow_ups: the orders of the state table, with the reason for each.
        ours: the jobs that concern us.
        candidates: the jobs that may be planned now, as far as the jobs alone show, in the order in which Slurm lists
            them.
        blocked: why each of the other jobs to plan cannot be planned now, and what those placed ahead wait for.
        rooms: how many tasks of a limited array's record may be planned now.
        tries: the tries that still count.
        ahead: the jobs that are placed ahead.
        settled: those of the candidates that stay so, as long as Slurm shows them unchanged, until their gates lapse.
    """

    statuses: Mapping[int, Status]
    gated: int
    lease: Leases
    follow_ups: tuple[tuple[GateOrder, str], ...]
    ours: Mapping[int, ObservedJob]
    candidates: tuple[ObservedJob, ...]
    blocked: Mapping[int, str]
    rooms: Mapping[int, int] = field(default_factory=dict)
    tries: Mapping[int, Try] = field(default_factory=dict)
    ahead: tuple[ObservedJob, ...] = ()
    settled: Mapping[int, ObservedJob] = field(default_factory=dict)


#: Before the first look.
NONE_SETTLED: Mapping[int, ObservedJob] = {}


def survey(
    jobs: Sequence[ObservedJob],
    tries: Mapping[int, Try],
    settings: Settings,
    now_s: float,
    asked: Collection[int] = (),
    *,
    refused: Collection[int] = (),
    before: Mapping[int, ObservedJob] = NONE_SETTLED,
) -> Survey:
    """What these jobs mean at this moment.

    `before` are the settled jobs of the survey before with these settings: they save time, and change nothing.

    The jobs with the ids `asked` are to be left to Slurm. Those with the ids `refused` have the nodes of a placement
    that Slurm did not accept: each is what it would be without them, and its order clears them.
    A gated job cannot be planned now if somebody holds it, if it waits for other jobs, for its owner's begin time or
    for the end of its pause, if its array's limit leaves no room, or if its owner has met a limit.
    """
    if refused:
        jobs = [replace(job, pinned_to=()) if job.id in refused else job for job in jobs]
    special = {*tries, *asked, *refused}
    still = {job.id for job in jobs if before.get(job.id) is job and job.begin_s > now_s and job.id not in special}
    others = [job for job in jobs if job.id not in still]
    statuses = dict.fromkeys(still, Status.GATED)
    statuses |= {job.id: status_of(job, now_s, settings.place_timeout_s) for job in others}
    tries = still_meant(tries, others, statuses)
    gated = len(still) + sum(statuses[job.id] is Status.GATED for job in others)
    lease = leases(settings.heartbeat_timeout_s, settings.gate_lease_s, gated)
    follow_ups: list[tuple[GateOrder, str]] = []
    ours: dict[int, ObservedJob] = {}
    wanted: list[ObservedJob] = []
    blocked: dict[int, str] = {}
    settled: dict[int, ObservedJob] = {}
    for job in jobs:
        if job.id in still:
            settled[job.id] = ours[job.id] = job
            wanted.append(job)
            continue
        status = statuses[job.id]
        tried, is_asked = tries.get(job.id), job.id in asked
        order, why = _follow_up(job, status, tried, is_asked, lease=lease, settings=settings, now_s=now_s)
        if job.id in refused:
            order, why = _cleared(job, order, why, lease, now_s)
        if order is not None:
            follow_ups.append((order, why))
        is_wanted = order is None and is_to_be_planned(job, status, settings)
        if is_wanted or _is_ours(job, status):
            ours[job.id] = job
        if is_wanted:
            hindrance = _hindrance(job, tried, settings, now_s)
            if hindrance:
                blocked[job.id] = hindrance
            else:
                wanted.append(job)
                if status is Status.GATED and job.id not in special and _is_on_its_own(job):
                    settled[job.id] = job
        elif status is Status.AHEAD:
            blocked[job.id] = _dependency(job) if waits_for_others(job) else limit_reached(job.array_limit or 0)
        elif status in _UNPLANNED or (status is Status.GATED and order is not None):
            blocked[job.id] = Reason(why or status.value, _KINDS.get(status, WaitKind.OTHER))
    rooms, beyond = within_limits(wanted, busy_tasks(others, statuses), now_s)
    wanted = _without(wanted, beyond)
    placed = {job.id for job in others if statuses[job.id].has_placement}
    limited = waiting_for_limits(wanted, jobs, placed, tries, now_s=now_s, longest_s=settings.backoff_max_s)
    blocked |= beyond | limited
    return Survey(
        statuses,
        gated,
        lease,
        tuple(follow_ups),
        ours,
        tuple(_without(wanted, limited)),
        blocked,
        rooms,
        tries,
        tuple(ours[job_id] for job_id in sorted(placed) if statuses[job_id] is Status.AHEAD),
        settled,
    )


def _without(jobs: list[ObservedJob], ids: Collection[int]) -> list[ObservedJob]:
    return [job for job in jobs if job.id not in ids] if ids else jobs


def _is_on_its_own(job: ObservedJob) -> bool:
    """Whether no moment but that of its gate changes what a gated job is."""
    return job.record is not None and job.record.begin_s is None


#: The statuses of waiting jobs of ours that are put right first, and planned in a later cycle.
_UNPLANNED = frozenset({Status.REQUEUED, Status.HALF_APPLIED, Status.HELD_PLACED, Status.LAPSED, Status.OWN_TIME})


#: What those among them wait for that somebody has to end.
_KINDS = {Status.HELD_PLACED: WaitKind.HELD, Status.OWN_TIME: WaitKind.BEGIN_TIME}


def is_to_be_planned(job: ObservedJob, status: Status, settings: Settings) -> bool:
    """Whether the policy plans this job. The modes advise and observe plan jobs that Slurm may start, and change none.

    In the mode observe the filter writes nothing, so every plain job of the managed partitions is planned.
    """
    if settings.mode == "enforce":
        return status is Status.GATED
    waits = job.state is JobState.PENDING and job.priority > 0 and not job.pinned_to
    record = job.record
    is_advised = record is not None and record.free_why == ADVISE
    if settings.mode == "advise" or is_advised:
        return waits and is_advised and status is Status.SLURMS
    is_managed = bool(job.partitions) and set(job.partitions) <= settings.partitions
    is_plain = job.is_plain and (job.gpus is None or settings.places_gpus)
    return waits and status is Status.FOREIGN and job.is_batch and is_plain and is_managed


def _is_ours(job: ObservedJob, status: Status) -> bool:
    """Whether the job is shown among ours: it waits for us, is placed, or runs where we placed it."""
    if status in (Status.FOREIGN, Status.SLURMS, Status.ENDED, Status.TAKEN):
        return False
    return status is not Status.RUNNING or (job.record is not None and job.record.is_placed)


def _follow_up(
    job: ObservedJob,
    status: Status,
    tried: Try | None,
    is_asked: bool,
    *,
    lease: Leases,
    settings: Settings,
    now_s: float,
) -> tuple[GateOrder | None, str]:
    """The order of the state table for this job, and why it is sent; None where nothing is to be done.

    `is_asked`: its owner asks to leave it to Slurm.
    """
    if is_asked and status is not Status.RUNNING:
        return free(job, ASKED, now_s), "left to Slurm, as its owner asked"
    if status in (Status.FOREIGN, Status.SLURMS, Status.ENDED):
        return None, ""
    if settings.mode != "enforce" and status is not Status.RUNNING:
        return free(job, NOT_ENFORCED, now_s), f"left to Slurm: the mode is {settings.mode}"
    if status is Status.GATED:
        if tried is not None and tried.failures >= MOST_FAILURES:
            why = f"{tried.failures} placements failed"
            return free(job, why, now_s), f"left to Slurm after {why}: {tried.note}"
        return None, ""
    gate_s = next_gate_s(job, now_s, lease)
    if status is Status.LAPSED and gate_s is not None:
        return None, ""  # among the renewals, which are sent first
    return follow_up(job, status, gate_s, now_s), _why(job, status)


def _cleared(
    job: ObservedJob, order: GateOrder | None, why: str, lease: Leases, now_s: float
) -> tuple[GateOrder | None, str]:
    """The order that also clears the nodes of a refused placement, and why it is sent; None for a job of others."""
    if order is None:
        gate_s = next_gate_s(job, now_s, lease)
        order = free(job, "deadline", now_s) if gate_s is None else renew(job, gate_s, now_s)
        why = "cleared the nodes of a placement that Slurm refused"
    return (order, why) if order is None else (replace(order, nodes=()), why)


def _why(job: ObservedJob, status: Status) -> str:
    """Why the table's order is sent to a job of this status."""
    match status:
        case Status.OVERDUE:
            reason = job.reason or "no reason given"
            return f"placed on {','.join(job.pinned_to)}, but Slurm did not start it: {reason}"
        case Status.TAKEN if job.unreadable:
            return f"left to Slurm: its record cannot be read: {job.unreadable}"
        case Status.TAKEN:
            gres = ("gres",) if job.ways or job.bandwidth_gbps else ()
            asked = "a node list" if job.pinned_to else ", ".join(dict.fromkeys((*job.asks_for, *gres)))
            return f"left to Slurm: its owner {f'asks for {asked}' if asked else 'opened or changed it'}"
        case Status.LAPSED:
            return "left to Slurm: its deadline is near"
        case _:
            return status.value


def _dependency(job: ObservedJob) -> Reason:
    """Why a job waits for other jobs."""
    named = f" ({job.reason})" if job.reason.startswith("Depend") else ""
    kind = WaitKind.NEVER if job.reason == NEVER_SATISFIED else WaitKind.DEPENDENCY
    return Reason(f"waits for its dependency{named}", kind, "dependency" if kind is WaitKind.NEVER else "")


def _hindrance(job: ObservedJob, tried: Try | None, settings: Settings, now_s: float) -> str:
    """Why a job to plan must wait, by its own record alone; empty when it need not."""
    record = job.record
    if is_held(job):
        return Reason(f"held ({job.reason or 'priority 0'})", WaitKind.HELD, job.reason)
    if waits_for_others(job):
        return _dependency(job)
    is_slurms = record is None or record.is_slurms
    if is_slurms and is_limit(job.reason):  # Slurm has looked at it, and would not start it wherever it were placed
        return Reason(f"has met a limit ({job.reason})", WaitKind.LIMIT, job.reason)
    begin_s = job.begin_s if record is None or is_slurms else own_begin_s(job, record, now_s)
    if begin_s is not None and begin_s > now_s:
        return Reason(f"may begin in {begin_s - now_s:.0f} s", WaitKind.BEGIN_TIME)
    return pause(tried, settings, now_s)
