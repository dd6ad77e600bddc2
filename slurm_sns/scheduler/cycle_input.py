"""What a cycle works on: one look at Slurm, reconciled with our records, and the snapshot to plan on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slurm_sns.model import ActiveJob, Release, Snapshot
from slurm_sns.policies.sns.alternatives_report import AlternativesReport
from slurm_sns.scheduler.observe.arrays import Split, Tasks
from slurm_sns.scheduler.observe.follow_up import Unpin
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.observe.reconcile import reconcile
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.backlog_claims import NO_TURNS, Backlog
from slurm_sns.scheduler.snapshot.planning_snapshot import planning_snapshot
from slurm_sns.scheduler.snapshot.spreading import NO_SPREADING, Spreading
from slurm_sns.scheduler.snapshot.withholding import NOTHING_WITHHELD, Withholding


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
    statuses: Mapping[int, JobStatus]
    blocked: Mapping[int, str]
    corrections: tuple[Unpin | Release, ...]
    records: Mapping[int, JobRecord] = field(default_factory=dict)
    nodes: Mapping[str, ObservedNode] = field(default_factory=dict)
    explanations: Mapping[int, AlternativesReport] = field(default_factory=dict)
    splits: tuple[Split, ...] = ()
    tasks: Tasks = field(default_factory=Tasks)
    turns: Backlog = NO_TURNS
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
    before: Backlog = NO_TURNS,
    withholding: Withholding = NOTHING_WITHHELD,
    history: object | None = None,
    active_before: Iterable[ActiveJob] = (),
) -> Situation:
    """The situation at this moment, for a scheduler with these records and settings.

    `before` are the turns of the last situation, `active_before` its active jobs; `withholding` is what the last plan
    has left, `history` what its policy wants to remember.
    """
    reconciled = reconcile(observation.jobs, records, settings, now_s)
    planning = planning_snapshot(
        observation,
        reconciled,
        settings,
        now_s,
        spreading,
        before=before,
        withholding=withholding,
        history=history,
        active_before=active_before,
    )
    return Situation(
        snapshot=planning.snapshot,
        jobs=reconciled.ours,
        statuses=reconciled.statuses,
        blocked=planning.blocked,
        corrections=(*reconciled.corrections, *planning.releases),
        records=reconciled.records,
        nodes={node.name: node for node in observation.nodes},
        explanations=planning.explanations,
        splits=planning.splits,
        tasks=reconciled.tasks,
        turns=planning.turns,
        not_withheld=planning.not_withheld,
        observed=observation.jobs,
        unreadable=observation.unreadable,
        repeated=_repeated(records, reconciled.records),
        priority_type=observation.priority_type,
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
