"""From one look at Slurm and our records to a snapshot to plan on, and to the state table's corrections.

The same observation, records and moment give the same situation, after the same looks: what these found of jobs' sizes
(known_ways) and of turns goes on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slurm_sns.model import NOTHING, Job, Project, Release, Resources, Snapshot
from slurm_sns.policies.sns.considered import Explanation
from slurm_sns.scheduler import arrays
from slurm_sns.scheduler.arrays import Split, Tasks
from slurm_sns.scheduler.dependencies import Others, Outlook
from slurm_sns.scheduler.follow_up import Unpin, follow_up
from slurm_sns.scheduler.free_nodes import free_nodes, placed_jobs, releases, takes_placed, unavailable_nodes
from slurm_sns.scheduler.observed import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.plannable import sort_out
from slurm_sns.scheduler.probing import waiting_for_limits
from slurm_sns.scheduler.reach import Reach
from slurm_sns.scheduler.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.spreading import NO_SPREADING, Spreading
from slurm_sns.scheduler.standing import Known, Standing, standings
from slurm_sns.scheduler.turns import NO_TURNS, Turns, is_slurms_own, turns
from slurm_sns.scheduler.withholding import NOTHING_WITHHELD, Withholding


@dataclass(frozen=True, slots=True)
class Situation:
    """What a cycle works on.

    `snapshot` holds the jobs that can be planned now; `blocked` says of the other waiting ones of ours why not.
    `corrections` are the changes to send before the plan, `splits` the tasks of arrays to split off for the next one,
    `tasks` those that are jobs of their own already. `records` are all our records as they are after this look;
    `jobs` are the observed jobs that concern us, and `nodes` all nodes, by id and name. `explanations` say how the
    alternatives of spreadable waiting jobs came about. `turns` are those of Slurm's own jobs. `not_withheld` says of
    waiting jobs why no capacity is withheld for them. `observed` are all jobs that Slurm showed, also those that do not
    concern us. `unreadable` are the records that cannot be read, or not all of them, with the reason. `repeated` are
    the jobs whose placement has met the same limit as the one before. `priority_type` is Slurm's PriorityType.
    """

    snapshot: Snapshot
    jobs: Mapping[int, ObservedJob]
    standings: Mapping[int, Standing]
    blocked: Mapping[int, str]
    corrections: tuple[Unpin | Release, ...]
    records: Mapping[int, JobRecord] = field(default_factory=dict)
    nodes: Mapping[str, ObservedNode] = field(default_factory=dict)
    explanations: Mapping[int, Explanation] = field(default_factory=dict)
    splits: tuple[Split, ...] = ()
    tasks: Tasks = field(default_factory=Tasks)
    turns: Turns = NO_TURNS
    not_withheld: Mapping[int, str] = field(default_factory=dict)
    observed: tuple[ObservedJob, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    repeated: frozenset[int] = frozenset()
    priority_type: str = ""

    @property
    def differences(self) -> dict[int, str]:
        """Of the jobs of ours that run otherwise than they were planned: how."""
        running = (record for job_id, record in self.records.items() if job_id in self.jobs)
        return {record.job_id: record.difference for record in running if record.difference}


def read(
    observation: Observation,
    records: Mapping[int, JobRecord],
    settings: Settings,
    now_s: float,
    spreading: Spreading = NO_SPREADING,
    *,
    before: Turns = NO_TURNS,
    withholding: Withholding = NOTHING_WITHHELD,
) -> Situation:
    """The situation at this moment, for a scheduler with these records and settings.

    `before` are the turns of the last situation, `withholding` is what the last plan has left.
    """
    found = standings(observation.jobs, records, settings, now_s)
    what_each_is = {job_id: what for job_id, (what, _) in found.items()}
    others, tasks = Others(observation.jobs), arrays.count(observation.jobs, what_each_is)
    reviewed = _review(observation.jobs, found, others, tasks=tasks, settings=settings, now_s=now_s)
    ours, kept, corrections = reviewed.ours, reviewed.records, reviewed.corrections
    candidates, blocked = reviewed.candidates, reviewed.blocked
    unavailable, placed = unavailable_nodes(observation, now_s), placed_jobs(observation, what_each_is)
    nodes = free_nodes(observation, placed, unavailable, settings.unmanaged_gbps_per_core)
    kept_free = turns(
        [job for job in observation.jobs if _is_slurms(job, what_each_is[job.id], settings, now_s)],
        observation.nodes,
        nodes,
        before,
        releases=lambda: releases(observation, placed, now_s),
        now_s=now_s,
        patience_s=settings.place_timeout_s,
        backfill=observation.backfill,
    )
    reach = Reach(observation, now_s, spreading, kept_free.claims)
    pauses_s = {job.user_id: withholding.pause_s(job.user_id, now_s, settings.withhold_limit_s) for job in candidates}
    plannable = sort_out(
        candidates,
        kept,
        observation,
        settings,
        reach=reach,
        others=others,
        may_withhold=lambda user_id: not pauses_s[user_id],
    )
    held = [(ours[job.id], room) for job, room in plannable.arrays]
    blocked |= plannable.infeasible | plannable.closed
    blocked |= {array.id: arrays.waits_because(array, tasks) for array, _ in held}
    if settings.mode == "enforce":
        nevers = plannable.infeasible.items()
        corrections.extend(Release(job_id, f"left to Slurm: {never}") for job_id, never in nevers)
    snapshot = Snapshot(
        nodes=nodes,
        waiting=tuple(plannable.waiting),
        projects=_projects(observation, what_each_is, settings),
        unavailable=unavailable,
        now_s=int(now_s),
    )
    return Situation(
        snapshot,
        ours,
        what_each_is,
        blocked,
        tuple(corrections),
        kept,
        {node.name: node for node in observation.nodes},
        plannable.explanations,
        tuple(arrays.splits(held, tasks)),
        tasks,
        kept_free,
        _not_withheld(plannable.waiting, ours, kept, pauses_s),
        observation.jobs,
        observation.unreadable,
        _repeated(records, kept),
        observation.priority_type,
    )


@dataclass
class _Reviewed:
    """All jobs, looked at one by one: those of ours, our records of them, and which of them may be planned now."""

    ours: dict[int, ObservedJob] = field(default_factory=dict)
    records: dict[int, JobRecord] = field(default_factory=dict)
    corrections: list[Unpin | Release] = field(default_factory=list)
    candidates: list[ObservedJob] = field(default_factory=list)
    blocked: dict[int, str] = field(default_factory=dict)


def _review(
    jobs: Iterable[ObservedJob],
    found: Mapping[int, Known],
    others: Others,
    *,
    tasks: Tasks,
    settings: Settings,
    now_s: float,
) -> _Reviewed:
    """Follow up each job, and sort out those that cannot be planned now whatever is free."""
    seen, reviewed = list(jobs), _Reviewed()
    waiting: list[ObservedJob] = []
    for job in seen:
        what, known = found[job.id]
        record, changes = follow_up(job, what, known, settings, now_s)
        is_candidate = _is_candidate(job, what, settings)
        if record is not None:
            reviewed.records[job.id] = record
        if is_candidate or _is_ours(what, record):
            reviewed.ours[job.id] = job
        reviewed.corrections.extend(changes)
        hindrance = changes[0].reason if changes else _hindrance(job, record, others, settings, now_s)
        if is_candidate and hindrance:
            reviewed.blocked[job.id] = hindrance
        elif is_candidate:
            waiting.append(job)
    reviewed.blocked |= arrays.over_limit(waiting, tasks)
    waiting = [job for job in waiting if job.id not in reviewed.blocked]
    reviewed.blocked |= waiting_for_limits(waiting, seen, reviewed.records, now_s, settings.backoff_max_s)
    reviewed.candidates = [job for job in waiting if job.id not in reviewed.blocked]
    return reviewed


def _repeated(before: Mapping[int, JobRecord], after: Mapping[int, JobRecord]) -> frozenset[int]:
    """The jobs that were placed and have met the same limit again."""
    return frozenset(
        job_id
        for job_id, record in after.items()
        if record.limited_by
        and record.stage is Stage.HOLDING
        and job_id in before
        and before[job_id].stage is Stage.PLACED
        and before[job_id].limited_by == record.limited_by
    )


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


def _is_slurms(job: ObservedJob, what: Standing, settings: Settings, now_s: float) -> bool:
    """Whether the job waits in Slurm's own queue, and we neither placed it nor plan it."""
    ours = takes_placed(what) or what in (Standing.REQUEUED, Standing.UNHELD) or _is_candidate(job, what, settings)
    return not ours and is_slurms_own(job, now_s)


def _is_ours(what: Standing, record: JobRecord | None) -> bool:
    """Whether the job is shown among ours: one that was given to Slurm is not, nor one that has ended."""
    return record is not None and record.stage is not Stage.RELEASED and what is not Standing.ENDED


def _is_candidate(job: ObservedJob, what: Standing, settings: Settings) -> bool:
    """Whether the planner plans this job. advise and observe plan jobs that are not held, and never touch them."""
    if settings.mode == "enforce":
        return what is Standing.WAITING
    if settings.mode == "advise":
        return what in (Standing.WAITING, Standing.RELEASED) and job.priority > 0
    return (
        what in (Standing.FOREIGN, Standing.WAITING, Standing.RELEASED)
        and job.state is JobState.PENDING
        and job.is_batch
        and job.is_plain
        and job.priority > 0
        and not job.pinned_to
        and bool(job.partitions)
        and set(job.partitions) <= settings.partitions
    )


def _hindrance(job: ObservedJob, record: JobRecord | None, others: Others, settings: Settings, now_s: float) -> str:
    """Why a waiting job of ours cannot be planned now at all; empty when it can.

    A pause longer than any that we give is what is left of one after the clock was stepped back: it is over.
    """
    if others.outlook(job) is Outlook.OPEN:
        return Outlook.OPEN.value
    if job.begin_s > now_s:
        return f"may begin in {job.begin_s - now_s:.0f} s"
    if record is not None and not record.limited_by and 0 < record.retry_s - now_s <= settings.backoff_max_s:
        return f"{record.note}; tried again in {record.retry_s - now_s:.0f} s"
    return ""


def _projects(observation: Observation, standings: Mapping[int, Standing], settings: Settings) -> dict[str, Project]:
    """Every account that holds something or has a share, with both."""
    shares = dict(observation.shares) if settings.shares is None else settings.shares
    used: dict[str, Resources] = {}
    for job in observation.jobs:
        if job.state.occupies_nodes or takes_placed(standings[job.id]):
            used[job.account] = used.get(job.account, NOTHING).plus(job.occupies)
    return {name: Project(shares.get(name, 1.0), used.get(name, NOTHING)) for name in sorted({*shares, *used})}
