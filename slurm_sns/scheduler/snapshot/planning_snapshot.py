"""The second step of a cycle's input: the snapshot that a policy plans on. The first step is reconcile.

The snapshot holds the nodes with what is free on them, the waiting jobs with their alternatives, the active jobs, the
pools, and what each project holds. The node claims of the backlog decide which nodes a waiting job may use. Pure: the
same values give the same result after the same earlier cycles, whose alternatives (known_alternatives) and backlog are
carried on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurm_sns.model import NOTHING, ActiveJob, Job, Project, Release, Resources, Snapshot
from slurm_sns.policies.sns.alternatives_report import AlternativesReport
from slurm_sns.scheduler.learning.exploring_jobs import NO_EXPLORATIONS, Explorations, Explorer
from slurm_sns.scheduler.observe import arrays
from slurm_sns.scheduler.observe.arrays import Split
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import Observation, ObservedJob
from slurm_sns.scheduler.observe.reconcile import Reconciled, is_to_be_planned
from slurm_sns.scheduler.observe.records import JobRecord
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
from slurm_sns.scheduler.snapshot.plannable import Plannable, sort_out
from slurm_sns.scheduler.snapshot.spreading import Spreading
from slurm_sns.scheduler.snapshot.withholding import Withholding


@dataclass(frozen=True, slots=True)
class Planning:
    """The snapshot for the policy, and what making it has shown.

    By job id: `blocked` says why a waiting job of ours is not in the snapshot, `explanations` how the alternatives of a
    spreadable waiting job came about, and `not_withheld` why no capacity is withheld for a waiting job. `releases` give
    the jobs to Slurm that can never be placed. `splits` are the tasks of arrays to split off for the next cycle.
    `backlog` holds the node claims of the pass-through jobs. `explorations` are the exploring runs that are offered.
    """

    snapshot: Snapshot
    blocked: Mapping[int, str]
    releases: tuple[Release, ...]
    splits: tuple[Split, ...]
    explanations: Mapping[int, AlternativesReport]
    not_withheld: Mapping[int, str]
    backlog: Backlog
    explorations: Explorations = NO_EXPLORATIONS


def planning_snapshot(
    observation: Observation,
    reconciled: Reconciled,
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
    statuses, candidates = reconciled.statuses, reconciled.candidates
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
    if candidates:
        eligibility = Eligibility(observation, now_s, spreading, backlog.claims)
        plannable = sort_out(
            candidates,
            reconciled.records,
            observation,
            settings,
            eligibility=eligibility,
            others=reconciled.others,
            may_withhold=lambda user_id: not pauses_s[user_id],
        )
        waiting = plannable.waiting
        if explorer is not None:
            waiting, explorations = explorer.offers(waiting, reconciled.ours, eligibility, nodes)
    held_arrays = [(reconciled.ours[job.id], room) for job, room in plannable.arrays]
    unsplit = {array.id: arrays.waits_because(array, reconciled.tasks) for array, _ in held_arrays}
    nevers = plannable.infeasible if settings.mode == "enforce" else {}
    return Planning(
        Snapshot(
            nodes=nodes,
            waiting=tuple(waiting),
            projects=_projects(observation, statuses, settings),
            unavailable=unavailable,
            now_s=int(now_s),
            active=active_jobs(observation, placed, reconciled.records, int(now_s), active_before),
            pools=job_pools(observation, settings.partitions),
            history=history,
        ),
        {**reconciled.blocked, **plannable.infeasible, **plannable.closed, **unsplit},
        tuple(Release(job_id, f"left to Slurm: {never}") for job_id, never in nevers.items()),
        tuple(arrays.splits(held_arrays, reconciled.tasks, settings.queue_depth)),
        plannable.explanations,
        _not_withheld(waiting, reconciled.ours, reconciled.records, pauses_s),
        backlog,
        explorations,
    )


def _is_in_backlog(job: ObservedJob, status: JobStatus, settings: Settings, now_s: float) -> bool:
    """Whether the job waits in Slurm's own queue, and we neither placed it nor plan it."""
    if not waits_in_slurms_queue(job, now_s):  # most jobs of a long queue are held or run
        return False
    is_placed = occupies_placement(status) or status in (JobStatus.REQUEUED, JobStatus.UNHELD)
    return not is_placed and not is_to_be_planned(job, status, settings)


def _not_withheld(
    waiting: Iterable[Job],
    jobs: Mapping[int, ObservedJob],
    records: Mapping[int, JobRecord],
    pauses_s: Mapping[int, float],
) -> dict[int, str]:
    """Why no capacity is withheld for jobs that find no place: a limit that they met, or their owner's pause."""
    found: dict[int, str] = {}
    for job in waiting:
        if not job.withholds:
            record, pause_s = records.get(job.id), pauses_s[jobs[job.id].user_id]
            limit = record.limited_by if record is not None else ""
            paused = f"its owner's jobs have used up withhold_limit_s; again possible in {pause_s:.0f} s"
            found[job.id] = f"it met a limit: {limit}" if limit else paused
    return found


def _projects(observation: Observation, statuses: Mapping[int, JobStatus], settings: Settings) -> dict[str, Project]:
    """Every account that holds something or has a share, with both."""
    shares = dict(observation.shares) if settings.shares is None else settings.shares
    used: dict[str, Resources] = {}
    for job in observation.jobs:
        if job.state.occupies_nodes or occupies_placement(statuses[job.id]):
            used[job.account] = used.get(job.account, NOTHING).plus(job.occupies)
    return {name: Project(shares.get(name, 1.0), used.get(name, NOTHING)) for name in sorted({*shares, *used})}
