"""From one look at Slurm and our records to a snapshot to plan on, and to the state table's corrections.

Pure: the same observation, records and moment give the same situation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, inf

from slurm_sns.model import NOTHING, Job, Node, Project, Resources, Snapshot
from slurm_sns.policies.sns.considered import Explanation
from slurm_sns.scheduler import arrays
from slurm_sns.scheduler.arrays import Split, Tasks
from slurm_sns.scheduler.dependencies import Others, Outlook
from slurm_sns.scheduler.follow_up import Release, Unpin, follow_up
from slurm_sns.scheduler.geometry import placed_demand
from slurm_sns.scheduler.observed import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.plannable import sort_out
from slurm_sns.scheduler.probing import waiting_for_limits
from slurm_sns.scheduler.reach import Reach
from slurm_sns.scheduler.records import JobRecord, Stage
from slurm_sns.scheduler.releases import Releases, of_running
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.spreading import NO_SPREADING, Spreading
from slurm_sns.scheduler.standing import Standing, standings
from slurm_sns.scheduler.turns import NO_TURNS, Turns, is_slurms_own, turns
from slurm_sns.scheduler.withholding import NOTHING_WITHHELD, Withholding

#: Slurm starts nothing on a node while a job there completes (slurmctld's cg_node_bitmap), though it counts that job's
#: resources as free. That is usually over in a fraction of a second, and a job placed in the meantime starts first
#: thing after; a node whose epilog takes longer than this is left out.
COMPLETING_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Situation:
    """What a cycle works on.

    `snapshot` holds the jobs that can be planned now; `blocked` says of the other waiting ones of ours why not.
    `corrections` are the changes to send before the plan, `splits` the tasks of arrays to split off for the next one,
    `tasks` those that are jobs of their own already. `records` are all our records as they are after this look;
    `jobs` are the observed jobs that concern us, and `nodes` all nodes, by id and name. `explanations` say how the
    alternatives of spreadable waiting jobs came about. `turns` are those of Slurm's own jobs.
    `not_withheld` says of waiting jobs why no capacity is withheld for them. `observed` are all jobs that Slurm showed,
    also those that do not concern us. `unreadable` are the records that cannot be read, or not all of them, with the
    reason. `repeated` are the jobs whose placement has met the same limit as the one before. `priority_type` is Slurm's
    PriorityType.
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
    ours: dict[int, ObservedJob] = {}
    kept: dict[int, JobRecord] = {}
    corrections: list[Unpin | Release] = []
    candidates: list[ObservedJob] = []
    blocked: dict[int, str] = {}
    others, tasks = Others(observation.jobs), arrays.count(observation.jobs, what_each_is)
    for job in observation.jobs:
        what, known = found[job.id]
        record, changes = follow_up(job, what, known, settings, now_s)
        is_candidate = _is_candidate(job, what, settings)
        if record is not None:
            kept[job.id] = record
        if is_candidate or _is_ours(what, record):
            ours[job.id] = job
        corrections.extend(changes)
        hindrance = changes[0].reason if changes else _hindrance(job, record, others, settings, now_s)
        if is_candidate and hindrance:
            blocked[job.id] = hindrance
        elif is_candidate:
            candidates.append(job)
    held_back = waiting_for_limits(candidates, observation.jobs, kept, now_s, settings.backoff_max_s)
    candidates = [job for job in candidates if job.id not in held_back]
    held_back |= arrays.over_limit(candidates, tasks)
    candidates = [job for job in candidates if job.id not in held_back]
    unavailable, placed = _unavailable(observation, now_s), _placed(observation, what_each_is)
    nodes = _nodes(observation, placed, unavailable, settings.unmanaged_gbps_per_core)
    kept_free = turns(
        [job for job in observation.jobs if _is_slurms(job, what_each_is[job.id], settings, now_s)],
        observation.nodes,
        nodes,
        before,
        releases=lambda: _releases(observation, placed, now_s),
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
    blocked |= held_back | plannable.infeasible | plannable.closed
    blocked |= {array.id: arrays.waits_because(array, tasks) for array, _ in held}
    if settings.mode == "enforce":
        nevers = plannable.infeasible.items()
        corrections.extend(Release(job_id, f"left to Slurm: {never}") for job_id, never in nevers)
    snapshot = Snapshot(
        nodes=nodes,
        waiting=tuple(plannable.waiting),
        projects=_projects(observation, what_each_is, settings),
        unavailable=unavailable,
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
    ours = _takes_placed(what) or what is Standing.REQUEUED or _is_candidate(job, what, settings)
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


def _takes_placed(what: Standing) -> bool:
    """An overdue job may start before we have unpinned it, so it counts as taken for one cycle more."""
    return what in (Standing.PLACED, Standing.OVERDUE)


def _unavailable(observation: Observation, now_s: float) -> dict[str, str]:
    """The nodes on which nothing can be planned now, with the reason."""
    reasons = {node.name: node.unavailable for node in observation.nodes if node.unavailable}
    # What Slurm keeps a node for is known where the job is: see turns. Where it is not, nothing may be planned there.
    known = {name for job in observation.jobs for name in job.planned_on}
    reasons.update((node.name, "planned") for node in observation.nodes if node.is_planned and node.name not in known)
    for job in observation.jobs:
        if job.is_completing and now_s - job.end_s > COMPLETING_GRACE_S:
            reasons.update((name, f"job {job.id} is completing there") for name in job.allocated if name not in reasons)
    return reasons


def _placed(
    observation: Observation, standings: Mapping[int, Standing]
) -> list[tuple[ObservedJob, dict[str, Resources]]]:
    """The placed jobs that have not started yet, each with what it will take on its nodes.

    That is no more than a node has: the job's owner may have written any number into it since.
    """
    by_name = {node.name: node for node in observation.nodes}
    found = []
    for job in observation.jobs:
        if _takes_placed(standings[job.id]):
            pinned = [by_name[name] for name in job.pinned_to if name in by_name]
            demand = placed_demand(job, pinned) if pinned else NOTHING
            found.append((job, {node.name: Resources(*map(min, demand, node.capacity)) for node in pinned}))
    return found


def _releases(
    observation: Observation, placed: Iterable[tuple[ObservedJob, Mapping[str, Resources]]], now_s: float
) -> Releases:
    """What comes free on the nodes, and when: of what runs, and of what we have placed."""
    releases = of_running(observation.jobs, now_s)
    for job, taken in placed:
        end_s = inf if job.walltime_s is None else now_s + job.walltime_s
        for name, amount in taken.items():
            releases.add((name,), end_s, amount)
    return releases


def _nodes(
    observation: Observation,
    placed: Iterable[tuple[ObservedJob, Mapping[str, Resources]]],
    unavailable: Mapping[str, str],
    unmanaged_gbps_per_core: float,
) -> tuple[Node, ...]:
    """The nodes that can be planned on, with what running and placed jobs leave free."""
    taken: dict[str, Resources] = {}
    for _, amounts in placed:
        for name, amount in amounts.items():
            taken[name] = taken.get(name, NOTHING).plus(amount)
    if unmanaged_gbps_per_core:
        for name, drawn in _drawn_unmanaged(observation, unmanaged_gbps_per_core).items():
            taken[name] = taken.get(name, NOTHING).plus(drawn)
    return tuple(
        Node(node.name, node.capacity, node.capacity.minus(node.allocated).minus(taken.get(node.name, NOTHING)))
        for node in observation.nodes
        if node.name not in unavailable
    )


def _drawn_unmanaged(observation: Observation, gbps_per_core: float) -> dict[str, Resources]:
    """The bandwidth that running jobs without profile are taken to draw on nodes which have bandwidth to give away."""
    cores = {node.name: node.allocated.cores for node in observation.nodes if node.capacity.bandwidth_gbps}
    threads = {node.name: node.threads_per_core for node in observation.nodes}
    for job in observation.jobs:
        if job.state is JobState.OCCUPYING and job.bandwidth_gbps:
            for name in job.allocated:
                if name in cores:
                    cores[name] -= ceil(job.cpus / len(job.allocated) / threads[name])
    return {name: Resources(0, 0, 0, ceil(gbps_per_core * max(0, count))) for name, count in cores.items()}


def _projects(observation: Observation, standings: Mapping[int, Standing], settings: Settings) -> dict[str, Project]:
    """Every account that holds something or has a share, with both."""
    shares = dict(observation.shares) if settings.shares is None else settings.shares
    used: dict[str, Resources] = {}
    for job in observation.jobs:
        if job.state is JobState.OCCUPYING or _takes_placed(standings[job.id]):
            used[job.account] = used.get(job.account, NOTHING).plus(job.occupies)
    return {name: Project(shares.get(name, 1.0), used.get(name, NOTHING)) for name in sorted({*shares, *used})}
