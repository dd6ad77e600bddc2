"""The second step of a look: what a policy plans on. The first is reconcile.

The nodes with what is free there, the waiting jobs with their alternatives, the jobs that have nodes, the pools, what
jobs of Slurm's own have a turn on, and what each project holds. Pure: the same values give the same result, after the
same looks, for what these found of jobs' sizes (known_ways) and of turns goes on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurm_sns.model import NOTHING, ActiveJob, Job, Project, Release, Resources, Snapshot
from slurm_sns.policies.sns.alternatives_report import AlternativesReport
from slurm_sns.scheduler.observe import arrays
from slurm_sns.scheduler.observe.arrays import Split
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import Observation, ObservedJob
from slurm_sns.scheduler.observe.reconcile import Reconciled, is_to_be_planned
from slurm_sns.scheduler.observe.records import JobRecord
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.active_jobs import active_jobs, job_pools
from slurm_sns.scheduler.snapshot.backlog_claims import Backlog, is_slurms_own, turns
from slurm_sns.scheduler.snapshot.eligibility import Eligibility
from slurm_sns.scheduler.snapshot.free_nodes import free_nodes, placed_jobs, releases, takes_placed, unavailable_nodes
from slurm_sns.scheduler.snapshot.plannable import sort_out
from slurm_sns.scheduler.snapshot.spreading import Spreading
from slurm_sns.scheduler.snapshot.withholding import Withholding


@dataclass(frozen=True, slots=True)
class Planning:
    """The snapshot for the policy, and what making it has shown.

    `blocked` says of all waiting jobs of ours that are not in the snapshot why not. `releases` give those to Slurm that
    can never be placed, `splits` are the tasks of arrays to split off for the next cycle. `explanations` say how the
    alternatives of spreadable waiting jobs came about, `not_withheld` of waiting jobs why no capacity is withheld for
    them. `turns` are those of Slurm's own jobs.
    """

    snapshot: Snapshot
    blocked: Mapping[int, str]
    releases: tuple[Release, ...]
    splits: tuple[Split, ...]
    explanations: Mapping[int, AlternativesReport]
    not_withheld: Mapping[int, str]
    turns: Backlog


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
) -> Planning:
    """What to plan on at this moment.

    `before` are the turns of the last look, `active_before` its active jobs; `withholding` is what the last plan has
    left, `history` what its policy wants to remember.
    """
    statuses, candidates = reconciled.statuses, reconciled.candidates
    unavailable, placed = unavailable_nodes(observation, now_s), placed_jobs(observation, statuses)
    nodes = free_nodes(observation, placed, unavailable, settings.unmanaged_gbps_per_core)
    kept_free = turns(
        [job for job in observation.jobs if _is_slurms(job, statuses[job.id], settings, now_s)],
        observation.nodes,
        nodes,
        before,
        releases=lambda: releases(observation, placed, now_s),
        now_s=now_s,
        patience_s=settings.place_timeout_s,
        backfill=observation.backfill,
    )
    pauses_s = {job.user_id: withholding.pause_s(job.user_id, now_s, settings.withhold_limit_s) for job in candidates}
    plannable = sort_out(
        candidates,
        reconciled.records,
        observation,
        settings,
        reach=Eligibility(observation, now_s, spreading, kept_free.claims),
        others=reconciled.others,
        may_withhold=lambda user_id: not pauses_s[user_id],
    )
    held_arrays = [(reconciled.ours[job.id], room) for job, room in plannable.arrays]
    unsplit = {array.id: arrays.waits_because(array, reconciled.tasks) for array, _ in held_arrays}
    nevers = plannable.infeasible if settings.mode == "enforce" else {}
    return Planning(
        Snapshot(
            nodes=nodes,
            waiting=tuple(plannable.waiting),
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
        _not_withheld(plannable.waiting, reconciled.ours, reconciled.records, pauses_s),
        kept_free,
    )


def _is_slurms(job: ObservedJob, what: JobStatus, settings: Settings, now_s: float) -> bool:
    """Whether the job waits in Slurm's own queue, and we neither placed it nor plan it."""
    ours = takes_placed(what) or what in (JobStatus.REQUEUED, JobStatus.UNHELD) or is_to_be_planned(job, what, settings)
    return not ours and is_slurms_own(job, now_s)


def _not_withheld(
    waiting: Iterable[Job],
    jobs: Mapping[int, ObservedJob],
    records: Mapping[int, JobRecord],
    pauses_s: Mapping[int, float],
) -> dict[int, str]:
    """Why no capacity is withheld for jobs for which it would be otherwise."""
    found: dict[int, str] = {}
    for job in waiting:
        if not job.withholds:
            record, pause_s = records.get(job.id), pauses_s[jobs[job.id].user_id]
            limit = record.limited_by if record is not None else ""
            found[job.id] = f"it met a limit: {limit}" if limit else f"for {pause_s:.0f} s more (withhold_limit_s)"
    return found


def _projects(observation: Observation, statuses: Mapping[int, JobStatus], settings: Settings) -> dict[str, Project]:
    """Every account that holds something or has a share, with both."""
    shares = dict(observation.shares) if settings.shares is None else settings.shares
    used: dict[str, Resources] = {}
    for job in observation.jobs:
        if job.state.occupies_nodes or takes_placed(statuses[job.id]):
            used[job.account] = used.get(job.account, NOTHING).plus(job.occupies)
    return {name: Project(shares.get(name, 1.0), used.get(name, NOTHING)) for name in sorted({*shares, *used})}
