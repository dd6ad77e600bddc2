"""What a cycle works on: one observation of Slurm, reconciled with our records, and the snapshot to plan on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slurm_sns.model import ActiveJob, Snapshot
from slurm_sns.policies.sns.alternatives_report import AlternativesReport
from slurm_sns.scheduler.learning.exploring_jobs import NO_EXPLORATIONS, Explorations, Explorer
from slurm_sns.scheduler.observe.arrays import Split, Tasks
from slurm_sns.scheduler.observe.follow_up import Correction
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.observe.reconcile import reconcile
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.backlog_claims import NO_BACKLOG, Backlog
from slurm_sns.scheduler.snapshot.planning_snapshot import planning_snapshot
from slurm_sns.scheduler.snapshot.spreading import NO_SPREADING, Spreading
from slurm_sns.scheduler.snapshot.withholding import NOTHING_WITHHELD, Withholding


@dataclass(frozen=True, slots=True)
class Situation:
    """What a cycle works on.

    Attributes:
        snapshot: what the policy plans on, with the waiting jobs that can be planned now.
        jobs: the observed jobs that concern us, by job id.
        statuses: the status of every observed job, by job id.
        blocked: why our other waiting jobs cannot be planned now, by job id.
        corrections: the changes to send before the plan.
        records: all our records after this observation, by job id.
        nodes: all nodes, by name.
        explanations: how the alternatives of spreadable waiting jobs came about, by job id.
        splits: the tasks of arrays to split off for the next cycle.
        tasks: the number of array tasks that are jobs of their own already.
        backlog: the node claims of the jobs in Slurm's own queue.
        not_withheld: why no capacity is withheld for some of the waiting jobs, by job id.
        observed: all jobs that Slurm showed, also those that do not concern us.
        unreadable: why a record of Slurm's cannot be read, in whole or in part; the keys are `job 7`, `node c1`.
        repeated: the ids of jobs whose placement has met the same limit as the placement before.
        priority_type: Slurm's PriorityType.
        explorations: the exploring runs that waiting jobs are offered.
    """

    snapshot: Snapshot
    jobs: Mapping[int, ObservedJob]
    statuses: Mapping[int, JobStatus]
    blocked: Mapping[int, str]
    corrections: tuple[Correction, ...]
    records: Mapping[int, JobRecord] = field(default_factory=dict)
    nodes: Mapping[str, ObservedNode] = field(default_factory=dict)
    explanations: Mapping[int, AlternativesReport] = field(default_factory=dict)
    splits: tuple[Split, ...] = ()
    tasks: Tasks = field(default_factory=Tasks)
    backlog: Backlog = NO_BACKLOG
    not_withheld: Mapping[int, str] = field(default_factory=dict)
    observed: tuple[ObservedJob, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    repeated: frozenset[int] = frozenset()
    priority_type: str = ""
    explorations: Explorations = NO_EXPLORATIONS

    @property
    def differences(self) -> dict[int, str]:
        """How jobs of ours run differently from their plan, by job id."""
        ours = (record for job_id, record in self.records.items() if job_id in self.jobs)
        return {record.job_id: record.difference for record in ours if record.difference}


def read_situation(
    observation: Observation,
    records: Mapping[int, JobRecord],
    settings: Settings,
    now_s: float,
    spreading: Spreading = NO_SPREADING,
    *,
    backlog_before: Backlog = NO_BACKLOG,
    withholding: Withholding = NOTHING_WITHHELD,
    history: object | None = None,
    active_before: Iterable[ActiveJob] = (),
    explorer: Explorer | None = None,
) -> Situation:
    """The situation at this moment, for a scheduler with these records and settings.

    Four values come from the cycle before: `backlog_before` and `active_before` are the backlog and the active jobs of
    its situation, `withholding` says for which users capacity was withheld after its plan, and `history` is what its
    policy wants to remember. `explorer` offers exploring runs; None where exploration is off.
    """
    reconciled = reconcile(observation.jobs, records, settings, now_s)
    planning = planning_snapshot(
        observation,
        reconciled,
        settings,
        now_s,
        spreading,
        before=backlog_before,
        withholding=withholding,
        history=history,
        active_before=active_before,
        explorer=explorer,
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
        backlog=planning.backlog,
        not_withheld=planning.not_withheld,
        observed=observation.jobs,
        unreadable=observation.unreadable,
        repeated=_repeated(records, reconciled.records),
        priority_type=observation.priority_type,
        explorations=planning.explorations,
    )


def _repeated(before: Mapping[int, JobRecord], after: Mapping[int, JobRecord]) -> frozenset[int]:
    """The jobs whose placement has met the same limit as the placement before."""
    return frozenset(
        job_id
        for job_id, record in after.items()
        if record.limited_by
        and record.stage is Stage.HOLDING
        and job_id in before
        and before[job_id].stage is Stage.PLACED
        and before[job_id].limited_by == record.limited_by
    )
