"""What a cycle works on: an observation, what it means (gate.survey), and the snapshot that a policy plans on.

The snapshot holds the nodes with what is free on them, the waiting jobs with their alternatives, the active jobs, the
pools, and what each project holds. The node claims of the backlog decide which nodes a waiting job may use. Pure: the
same values give the same result after the same earlier cycles, which leave what they carry on (`Carried`) and the
alternatives that they found (spreading).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slurm_sns.model import (
    NOTHING,
    ActiveJob,
    Alternative,
    Job,
    Node,
    Plan,
    Project,
    Reason,
    Resources,
    Snapshot,
    WaitKind,
)
from slurm_sns.policies.base import Explanation
from slurm_sns.policies.spread_n_share.exploration import ExplorationStep
from slurm_sns.policies.spread_n_share.learning import Key, LearnableJob
from slurm_sns.scheduler.gate.arrays import MOST_TASKS, MOST_TASKS_BY_SCONTROL, planned_tasks
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.gate.job_status import Status, has_nodes_of, is_limit
from slurm_sns.scheduler.gate.orders import GateOrder, free
from slurm_sns.scheduler.gate.survey import Survey, is_to_be_planned, survey
from slurm_sns.scheduler.observation import Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.backlog_claims import NO_BACKLOG, Backlog, next_backlog, waits_in_slurms_queue
from slurm_sns.scheduler.snapshot.eligibility import Eligibility
from slurm_sns.scheduler.snapshot.free_nodes import (
    active_jobs,
    completing_jobs,
    count_closids,
    free_nodes,
    job_pools,
    placed_jobs,
    unavailable_nodes,
)
from slurm_sns.scheduler.snapshot.plannable import (
    NOTHING_KNOWN,
    KnownJobs,
    Plannable,
    queue_key,
    sort_out,
    with_over_aged_head,
)
from slurm_sns.scheduler.snapshot.shared_cores import count_shared_cores
from slurm_sns.scheduler.snapshot.spreading import NEVER_SPREAD, SpreadRules
from slurm_sns.scheduler.snapshot.uneven_cores import with_sure_bandwidth
from slurm_sns.scheduler.snapshot.widening import Widening, widenings
from slurm_sns.wire.values import NodeState

#: The most letters of the text about a difference, which names nodes: it must fit into one line of the log.
MOST_TEXT = 1000
#: A pause is so many times as long as the time before it: capacity is withheld in vain for at most a fifth of the time.
PAUSE_FACTOR = 4


@dataclass(frozen=True, slots=True)
class WithholdingClock:
    """Since when capacity has been withheld for each user's jobs (Unix seconds), and for which jobs it is now.

    Capacity that is withheld for a whole wait has no end: it stands idle until the job finds its place, however long
    that takes. So it is withheld for the jobs of one user for at most `matching.withhold_limit_s`, and then not at all
    for four times as long. A place that is kept from a job's start on (`matching.withhold: until-start`) has an end,
    and is not counted; in a pause there is none either. The limit is by user rather than by job, so that submitting the
    same job again gains nothing. When a job for which capacity was withheld is placed, the time of its user ends, and
    the next withholding starts a new one.
    """

    since_s: Mapping[int, float] = field(default_factory=dict)
    jobs: frozenset[int] = frozenset()

    def pause_s(self, user_id: int, now_s: float, limit_s: float | None) -> float:
        """How long from now no capacity is withheld for the user's jobs, in seconds; 0 when it may be."""
        since_s = self.since_s.get(user_id)
        if limit_s is None or since_s is None or now_s - since_s < limit_s:
            return 0.0
        return max(0.0, since_s + (1 + PAUSE_FACTOR) * limit_s - now_s)

    def after(self, plan: Plan, user_of: Mapping[int, int], now_s: float, limit_s: float | None) -> "WithholdingClock":
        """The state after this plan. A moment in the future was noted before the clock was set back: it is dropped."""
        if limit_s is None:
            return NOTHING_WITHHELD
        served = {user_of[start.job_id] for start in plan.starts if start.job_id in self.jobs}
        lasts_s = (1 + PAUSE_FACTOR) * limit_s
        since_s = {
            user_id: at_s
            for user_id, at_s in self.since_s.items()
            if user_id not in served and 0 <= now_s - at_s < lasts_s
        }
        for job_id in plan.report.withheld_for:
            since_s.setdefault(user_of[job_id], now_s)
        return WithholdingClock(since_s, frozenset(plan.report.withheld_for))


NOTHING_WITHHELD = WithholdingClock()


@dataclass(frozen=True, slots=True)
class Carried:
    """What a cycle carries to the next one.

    Attributes:
        backlog: the node claims of the jobs in Slurm's own queue.
        active: the jobs that had nodes; of unchanged ones the values are reused.
        withholding: since when capacity is withheld for each user's jobs.
        history: what the policy wants to remember.
        settled: the gated jobs that change by nothing but their gates, by id.
        known: the jobs that were planned.
    """

    backlog: Backlog = NO_BACKLOG
    active: tuple[ActiveJob, ...] = ()
    withholding: WithholdingClock = NOTHING_WITHHELD
    history: object | None = None
    settled: Mapping[int, ObservedJob] = field(default_factory=dict)
    known: KnownJobs = NOTHING_KNOWN


def explores(key: Key, step: ExplorationStep) -> str:
    """What an exploring run does, in words."""
    program, processes = key
    how = "its ways are changed while it runs" if step.samples else "it is timed"
    return f"explores {program} with {processes} processes at scale {step.scale}: {how}"


@dataclass(frozen=True, slots=True)
class ExploringRun:
    """An exploring run that a waiting job is offered on the nodes `allowed`.

    It explores if it is started with `alternative`.
    """

    job: LearnableJob
    step: ExplorationStep
    alternative: Alternative
    allowed: frozenset[str]

    def __str__(self) -> str:
        return explores(self.job.key, self.step)


@dataclass(frozen=True, slots=True)
class Explorations:
    """What is offered in a cycle, and why other jobs, whose programs are not explored yet, are not: by job id."""

    offered: Mapping[int, ExploringRun] = field(default_factory=dict)
    not_offered: Mapping[int, str] = field(default_factory=dict)


#: Offers exploring runs in one cycle: given the waiting jobs, the observed ones by id, which nodes each may use and the
#: nodes of the snapshot, it gives the waiting jobs, some with an exploring alternative before the others.
Offer = Callable[
    [Sequence[Job], Mapping[int, ObservedJob], Eligibility, Sequence[Node]], tuple[list[Job], Explorations]
]


@dataclass(frozen=True, slots=True)
class Situation:
    """What a cycle works on.

    Attributes:
        snapshot: what the policy plans on, with the waiting jobs that can be planned now.
        surveyed: what the observed jobs mean.
        observation: what was observed.
        tasks: the waiting jobs that are tasks of an array's record, by id.
        blocked: why our other waiting jobs cannot be planned now, by job id.
        never: those of them that nobody could ever start as they are.
        follow_ups: the orders to send before the plan, each with the reason for it.
        nodes: all nodes, by name.
        explanations: how the alternatives of spreadable waiting jobs came about, by job id.
        backlog: the node claims of the jobs in Slurm's own queue.
        not_withheld: why no capacity is withheld for some of the waiting jobs, by job id.
        repeated: the ids of jobs whose placement has met the same limit as the placement before.
        explorations: the exploring runs that waiting jobs are offered.
        counted: the observation with what Slurm itself does not count; None if nothing was observed.
        widenings: the jobs that may run in more partitions if this cycle does not start them, by id.
        known: the jobs that were planned, for the next cycle.
        holding: the observed jobs without those that are gated and wait for us alone, which hold nothing.
    """

    snapshot: Snapshot
    surveyed: Survey
    observation: Observation
    tasks: Mapping[int, ObservedJob]
    blocked: Mapping[int, str]
    follow_ups: tuple[tuple[GateOrder, str], ...]
    nodes: Mapping[str, ObservedNode] = field(default_factory=dict)
    explanations: Mapping[int, Explanation] = field(default_factory=dict)
    backlog: Backlog = NO_BACKLOG
    not_withheld: Mapping[int, str] = field(default_factory=dict)
    repeated: frozenset[int] = frozenset()
    explorations: Explorations = Explorations()
    counted: Observation | None = None
    never: Mapping[int, str] = field(default_factory=dict)
    widenings: Mapping[int, Widening] = field(default_factory=dict)
    known: KnownJobs = NOTHING_KNOWN
    holding: tuple[ObservedJob, ...] = ()

    def carried(self, earlier: Carried) -> Carried:
        """What this situation hands on to the next cycle; `earlier` is what was carried so far."""
        return replace(
            earlier,
            backlog=self.backlog,
            active=self.snapshot.active,
            settled=self.surveyed.settled,
            known=self.known,
        )

    @property
    def jobs(self) -> Mapping[int, ObservedJob]:
        """The observed jobs that concern us, by job id."""
        return self.surveyed.ours

    @property
    def statuses(self) -> Mapping[int, Status]:
        """The status of every observed job, by job id."""
        return self.surveyed.statuses

    @property
    def observed(self) -> tuple[ObservedJob, ...]:
        """All jobs that Slurm showed, also those that do not concern us."""
        return self.observation.jobs

    @property
    def differences(self) -> dict[int, str]:
        """How jobs of ours run differently from their plan, by job id."""
        ours = (job for job in self.holding if job.state.occupies_nodes and job.id in self.jobs)
        found = ((job.id, _difference(job)) for job in ours)
        return {job_id: how for job_id, how in found if how}

    def job(self, job_id: int) -> ObservedJob | None:
        """The job of ours, or the task of an array's record, with this id."""
        return self.jobs.get(job_id) or self.tasks.get(job_id)

    def users(self, job_ids: Iterable[int]) -> dict[int, int]:
        """The users, by job id, of those of these jobs that are ours."""
        found = ((job_id, self.job(job_id)) for job_id in job_ids)
        return {job_id: job.user_id for job_id, job in found if job is not None}


def read_situation(
    observation: Observation,
    tries: Mapping[int, Try],
    settings: Settings,
    now_s: float,
    spreading: SpreadRules = NEVER_SPREAD,
    *,
    carried: Carried = Carried(),
    states: Mapping[str, NodeState] | None = None,
    offer: Offer | None = None,
    asked: Collection[int] = (),
    refused: Collection[int] = (),
) -> Situation:
    """The situation at this moment, for a scheduler with these tries and settings.

    `carried` is what the cycle before left. `states` is what the agents say of their nodes. `offer` offers exploring
    runs; None where exploration is off. `asked` are the ids of jobs whose owners ask to leave them to Slurm, `refused`
    those of jobs with the nodes of a placement that Slurm did not accept.
    """
    surveyed = survey(observation.jobs, tries, settings, now_s, asked, refused=refused, before=carried.settled)
    statuses, candidates = surveyed.statuses, surveyed.candidates
    counted = _counted(observation, settings, states or {})
    # Jobs that are gated and no more than that hold nothing: of a long queue nearly all.
    holding = replace(counted, jobs=tuple(job for job in counted.jobs if job.id not in surveyed.settled))
    unavailable, placed = unavailable_nodes(counted), placed_jobs(holding, statuses)
    nodes = free_nodes(
        holding, placed, unavailable, settings.unmanaged_gbps_per_core, heeds_weight=settings.heeds_weight
    )
    active = active_jobs(holding, placed, int(now_s), carried.active)
    completing = tuple(completing_jobs(holding.jobs))
    backlog = next_backlog(
        [job for job in holding.jobs if _is_in_backlog(job, statuses[job.id], settings, now_s)],
        counted.nodes,
        nodes,
        carried.backlog,
        active=active,
        completing=completing,
        now_s=now_s,
        patience_s=settings.place_timeout_s,
        backfill=counted.backfill,
    )
    clock, limit_s = carried.withholding, settings.withhold_limit_s
    pauses_s = {user_id: clock.pause_s(user_id, now_s, limit_s) for user_id in clock.since_s}
    plannable, waiting, explorations = Plannable(), list[Job](), Explorations()
    tasks: dict[int, ObservedJob] = {}
    by_id = surveyed.ours
    widened: dict[int, Widening] = {}
    if candidates:
        eligibility = Eligibility(counted, now_s, spreading, backlog.claims)
        plannable = sort_out(
            candidates,
            surveyed.tries,
            counted,
            settings,
            eligibility=eligibility,
            may_withhold=lambda user_id: not pauses_s.get(user_id),
            before=carried.known,
        )
        most = MOST_TASKS if counted.names_tasks else MOST_TASKS_BY_SCONTROL
        of_arrays, tasks = _of_arrays(plannable, surveyed, min(settings.queue_depth, most))
        waiting = sorted([*plannable.waiting, *of_arrays], key=queue_key) if of_arrays else plannable.waiting
        by_id = {**surveyed.ours, **tasks} if tasks else surveyed.ours
        if settings.is_by_priority(has_priorities=counted.has_priorities):
            waiting = with_over_aged_head(waiting, by_id, now_s, settings)
        if offer is not None:
            waiting, explorations = offer(waiting, by_id, eligibility, nodes)
        left = (job for job in candidates if job.id not in plannable.infeasible)
        widened = widenings(left, eligibility, counted, settings, now_s)
    is_partly_seen = any(node.unreadable for node in observation.nodes)  # such a node may hold what no other one can
    return Situation(
        snapshot=Snapshot(
            nodes=nodes,
            waiting=tuple(waiting),
            projects=_projects(holding, statuses, settings),
            unavailable=unavailable,
            now_s=int(now_s),
            active=active,
            pools=job_pools(counted, settings.partitions),
            history=carried.history,
            completing=completing,
        ),
        surveyed=surveyed,
        observation=observation,
        tasks=tasks,
        blocked={**surveyed.blocked, **plannable.infeasible, **plannable.closed},
        follow_ups=(*surveyed.follow_ups, *_freed_for_good(plannable, surveyed, settings, now_s)),
        nodes={node.name: node for node in observation.nodes},
        explanations=plannable.explanations,
        backlog=backlog,
        not_withheld=_not_withheld(waiting, by_id, surveyed.tries, pauses_s),
        repeated=_repeated(surveyed),
        explorations=explorations,
        counted=counted,
        never={**_never_by_dependency(surveyed), **({} if is_partly_seen else plannable.never)},
        widenings=widened,
        known=plannable.known,
        holding=holding.jobs,
    )


def _never_by_dependency(surveyed: Survey) -> dict[int, str]:
    return {job_id: why for job_id, why in surveyed.blocked.items() if Reason.of(why).kind is WaitKind.NEVER}


def _counted(observation: Observation, settings: Settings, states: Mapping[str, NodeState]) -> Observation:
    """The observation with what Slurm does not count: CLOSIDs, shared cores, bandwidth by socket, switches on paper."""
    observation = replace(observation, topology=observation.topology.without(settings.never_across))
    observation = count_shared_cores(observation, settings.sharing)
    return with_sure_bandwidth(count_closids(observation, settings.closids), states)


def _freed_for_good(
    plannable: Plannable, surveyed: Survey, settings: Settings, now_s: float
) -> Iterator[tuple[GateOrder, str]]:
    """The orders that leave to Slurm the jobs that can never be placed, each with the reason for it."""
    if settings.mode != "enforce":
        return
    for job_id, why in plannable.infeasible.items():
        order = free(surveyed.ours[job_id], why, now_s)
        if order is not None:
            yield order, f"left to Slurm: {why}"


def _of_arrays(plannable: Plannable, surveyed: Survey, most_tasks: int) -> tuple[list[Job], dict[int, ObservedJob]]:
    """The tasks of array records to plan, each as a job, in queue order; and the same as observed jobs, by id.

    Of each record they are as many as its nodes could hold, and of one account's records together at most
    `most_tasks`; but one of each record, so that no array waits for those of another.
    """
    jobs: list[Job] = []
    tasks: dict[int, ObservedJob] = {}
    taken: Counter[str] = Counter()
    for wanted, room in plannable.arrays:
        record = surveyed.ours[wanted.id]
        most = max(1, min(room, most_tasks - taken[record.account]))
        for task in planned_tasks(record, min(most, surveyed.rooms.get(record.id, most))):
            jobs.append(replace(wanted, id=task.id, order=(*wanted.order[:-1], task.array_task or 0)))
            tasks[task.id] = task
            taken[record.account] += 1
            if wanted.id in plannable.explanations:
                plannable.explanations[task.id] = plannable.explanations[wanted.id]
    return jobs, tasks


def _is_in_backlog(job: ObservedJob, status: Status, settings: Settings, now_s: float) -> bool:
    """Whether the job waits in Slurm's own queue, and we neither placed it nor plan it."""
    if not waits_in_slurms_queue(job, now_s):  # most jobs of a long queue are gated or run
        return False
    return not status.has_placement and not is_to_be_planned(job, status, settings)


def _not_withheld(
    waiting: Iterable[Job], jobs: Mapping[int, ObservedJob], tries: Mapping[int, Try], pauses_s: Mapping[int, float]
) -> dict[int, str]:
    """Why no capacity is withheld for jobs that find no place: a limit that they met, or their owner's pause."""
    found: dict[int, str] = {}
    for job in waiting:
        if not job.withholds:
            tried, pause_s = tries.get(job.id), pauses_s.get(jobs[job.id].user_id, 0.0)
            limit = tried.limited_by if tried is not None else ""
            paused = f"its owner's jobs have used up withhold_limit_s; again possible in {pause_s:.0f} s"
            found[job.id] = f"it met a limit: {limit}" if limit else paused
    return found


def _projects(observation: Observation, statuses: Mapping[int, Status], settings: Settings) -> dict[str, Project]:
    """Every account that holds something or has a share, with both."""
    shares = dict(observation.shares) if settings.shares is None else settings.shares
    used: dict[str, Resources] = {}
    for job in observation.jobs:
        if job.state.occupies_nodes or statuses[job.id].has_placement:
            used[job.account] = used.get(job.account, NOTHING).plus(job.occupies)
    return {name: Project(shares.get(name, 1.0), used.get(name, NOTHING)) for name in sorted({*shares, *used})}


def _repeated(surveyed: Survey) -> frozenset[int]:
    """The jobs whose placement has met the same limit as the placement before."""
    return frozenset(
        job_id
        for job_id, tried in surveyed.tries.items()
        if surveyed.statuses[job_id] is Status.OVERDUE
        and is_limit(tried.limited_by)
        and surveyed.ours[job_id].reason.startswith(tried.limited_by)
    )


def _difference(job: ObservedJob) -> str:
    """How a job that runs where it was placed runs differently; empty if it does not. A completing job leaves nodes."""
    record = job.record
    if record is None or job.allocated == record.nodes or job.is_completing or not has_nodes_of(job, record):
        return ""
    if set(job.allocated) == set(record.nodes):
        return ""
    return f"runs on {','.join(job.allocated)}, planned on {','.join(record.nodes)}"[:MOST_TEXT]
