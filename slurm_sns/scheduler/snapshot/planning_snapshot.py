"""The second step of a cycle's input: the snapshot that a policy plans on. The first step is the survey.

The snapshot holds the nodes with what is free on them, the waiting jobs with their alternatives, the active jobs, the
pools, and what each project holds. The node claims of the backlog decide which nodes a waiting job may use. Pure: the
same values give the same result after the same earlier cycles, whose alternatives (known_alternatives) and backlog are
carried on.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from slurm_sns.model import NOTHING, ActiveJob, Job, Project, Resources, Snapshot
from slurm_sns.policies.sns.alternatives_report import AlternativesReport
from slurm_sns.scheduler.gate.arrays import MOST_TASKS, planned_tasks
from slurm_sns.scheduler.gate.status import Status
from slurm_sns.scheduler.gate.survey import Survey, is_to_be_planned
from slurm_sns.scheduler.learning.exploration import NO_EXPLORATIONS, Explorations, Explorer
from slurm_sns.scheduler.observation.observed import Observation, ObservedJob
from slurm_sns.scheduler.remembered import Try
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.active_jobs import active_jobs, job_pools
from slurm_sns.scheduler.snapshot.backlog_claims import Backlog, next_backlog, waits_in_slurms_queue
from slurm_sns.scheduler.snapshot.counted_closids import count_closids
from slurm_sns.scheduler.snapshot.eligibility import Eligibility
from slurm_sns.scheduler.snapshot.free_nodes import (
    free_nodes,
    occupies_placement,
    placed_jobs,
    releases,
    unavailable_nodes,
)
from slurm_sns.scheduler.snapshot.plannable import Plannable, queue_key, sort_out
from slurm_sns.scheduler.snapshot.spreading import Spreading
from slurm_sns.scheduler.snapshot.withholding import Withholding


@dataclass(frozen=True, slots=True)
class Planning:
    """The snapshot for the policy, and what making it has shown.

    By job id: `blocked` says why a waiting job of ours is not in the snapshot, `explanations` how the alternatives of a
    spreadable waiting job came about, and `not_withheld` why no capacity is withheld for a waiting job. `never` says
    why jobs can never be placed, and `tasks` are the waiting jobs that are tasks of an array's record. `backlog` holds
    the node claims of the pass-through jobs. `explorations` are the exploring runs that are offered.
    """

    snapshot: Snapshot
    blocked: Mapping[int, str]
    never: Mapping[int, str]
    tasks: Mapping[int, ObservedJob]
    explanations: Mapping[int, AlternativesReport]
    not_withheld: Mapping[int, str]
    backlog: Backlog
    explorations: Explorations = NO_EXPLORATIONS


def planning_snapshot(
    observation: Observation,
    surveyed: Survey,
    settings: Settings,
    now_s: float,
    spreading: Spreading,
    *,
    before: Backlog,
    withholding: Withholding,
    history: object | None = None,
    active_before: Iterable[ActiveJob] = (),
    explorer: Explorer | None = None,
) -> Planning:
    """What to plan on at this moment.

    Four values come from the last cycle: `before` is its backlog, `active_before` are its active jobs, `withholding`
    says for which users capacity was withheld after its plan, and `history` is what its policy wants to remember.
    `explorer` offers exploring runs; None where exploration is off.
    """
    statuses, candidates = surveyed.statuses, surveyed.candidates
    observation = count_closids(observation, settings.closids)
    unavailable, placed = unavailable_nodes(observation), placed_jobs(observation, statuses)
    nodes = free_nodes(observation, placed, unavailable, settings.unmanaged_gbps_per_core)
    backlog = next_backlog(
        [job for job in observation.jobs if _is_in_backlog(job, statuses[job.id], settings, now_s)],
        observation.nodes,
        nodes,
        before,
        releases=lambda: releases(observation, placed, now_s),
        now_s=now_s,
        patience_s=settings.place_timeout_s,
        backfill=observation.backfill,
    )
    pauses_s = {job.user_id: withholding.pause_s(job.user_id, now_s, settings.withhold_limit_s) for job in candidates}
    plannable, waiting, explorations = Plannable(), list[Job](), NO_EXPLORATIONS
    tasks: dict[int, ObservedJob] = {}
    if candidates:
        eligibility = Eligibility(observation, now_s, spreading, backlog.claims)
        plannable = sort_out(
            candidates,
            surveyed.tries,
            observation,
            settings,
            eligibility=eligibility,
            may_withhold=lambda user_id: not pauses_s[user_id],
        )
        of_arrays, tasks = _of_arrays(plannable, surveyed, settings.queue_depth)
        waiting = sorted([*plannable.waiting, *of_arrays], key=queue_key) if of_arrays else plannable.waiting
        if explorer is not None:
            waiting, explorations = explorer.offers(waiting, {**surveyed.ours, **tasks}, eligibility, nodes)
    return Planning(
        Snapshot(
            nodes=nodes,
            waiting=tuple(waiting),
            projects=_projects(observation, statuses, settings),
            unavailable=unavailable,
            now_s=int(now_s),
            active=active_jobs(observation, placed, int(now_s), active_before),
            pools=job_pools(observation, settings.partitions),
            history=history,
        ),
        {**surveyed.blocked, **plannable.infeasible, **plannable.closed},
        plannable.infeasible if settings.mode == "enforce" else {},
        tasks,
        plannable.explanations,
        _not_withheld(waiting, {**surveyed.ours, **tasks}, surveyed.tries, pauses_s),
        backlog,
        explorations,
    )


def _of_arrays(plannable: Plannable, surveyed: Survey, queue_depth: int) -> tuple[list[Job], dict[int, ObservedJob]]:
    """The tasks of array records to plan, each as a job, in queue order; and the same as observed jobs, by id.

    Of each record they are as many as its nodes could hold, and of one account's records together at most
    `queue_depth` and `MOST_TASKS`; but one of each record, so that no array waits for those of another.
    """
    jobs: list[Job] = []
    tasks: dict[int, ObservedJob] = {}
    taken: Counter[str] = Counter()
    for wanted, room in plannable.arrays:
        record = surveyed.ours[wanted.id]
        most = max(1, min(room, min(queue_depth, MOST_TASKS) - taken[record.account]))
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
    return not occupies_placement(status) and not is_to_be_planned(job, status, settings)


def _not_withheld(
    waiting: Iterable[Job],
    jobs: Mapping[int, ObservedJob],
    tries: Mapping[int, Try],
    pauses_s: Mapping[int, float],
) -> dict[int, str]:
    """Why no capacity is withheld for jobs that find no place: a limit that they met, or their owner's pause."""
    found: dict[int, str] = {}
    for job in waiting:
        if not job.withholds:
            tried, pause_s = tries.get(job.id), pauses_s[jobs[job.id].user_id]
            limit = tried.limited_by if tried is not None else ""
            paused = f"its owner's jobs have used up withhold_limit_s; again possible in {pause_s:.0f} s"
            found[job.id] = f"it met a limit: {limit}" if limit else paused
    return found


def _projects(observation: Observation, statuses: Mapping[int, Status], settings: Settings) -> dict[str, Project]:
    """Every account that holds something or has a share, with both."""
    shares = dict(observation.shares) if settings.shares is None else settings.shares
    used: dict[str, Resources] = {}
    for job in observation.jobs:
        if job.state.occupies_nodes or occupies_placement(statuses[job.id]):
            used[job.account] = used.get(job.account, NOTHING).plus(job.occupies)
    return {name: Project(shares.get(name, 1.0), used.get(name, NOTHING)) for name in sorted({*shares, *used})}
