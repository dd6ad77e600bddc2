"""What a cycle works on: one observation of Slurm, what it means, and the snapshot to plan on."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from slurm_sns.model import ActiveJob, Snapshot
from slurm_sns.policies.sns.alternatives_report import AlternativesReport
from slurm_sns.scheduler.gate.limit_retries import is_limit
from slurm_sns.scheduler.gate.orders import GateOrder, free
from slurm_sns.scheduler.gate.status import Status, has_nodes_of
from slurm_sns.scheduler.gate.survey import Survey, survey
from slurm_sns.scheduler.learning.exploration import NO_EXPLORATIONS, Explorations, Explorer
from slurm_sns.scheduler.observation.observed import Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.remembered import Try
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.backlog_claims import NO_BACKLOG, Backlog
from slurm_sns.scheduler.snapshot.planning_snapshot import planning_snapshot
from slurm_sns.scheduler.snapshot.spreading import NO_SPREADING, Spreading
from slurm_sns.scheduler.snapshot.withholding import NOTHING_WITHHELD, Withholding

#: The most letters of the text about a difference, which names nodes: it must fit into one line of the log.
MOST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Situation:
    """What a cycle works on.

    Attributes:
        snapshot: what the policy plans on, with the waiting jobs that can be planned now.
        surveyed: what the observed jobs mean.
        observation: what was observed.
        tasks: the waiting jobs that are tasks of an array's record, by id.
        blocked: why our other waiting jobs cannot be planned now, by job id.
        follow_ups: the orders to send before the plan, each with the reason for it.
        nodes: all nodes, by name.
        explanations: how the alternatives of spreadable waiting jobs came about, by job id.
        backlog: the node claims of the jobs in Slurm's own queue.
        not_withheld: why no capacity is withheld for some of the waiting jobs, by job id.
        repeated: the ids of jobs whose placement has met the same limit as the placement before.
        explorations: the exploring runs that waiting jobs are offered.
    """

    snapshot: Snapshot
    surveyed: Survey
    observation: Observation
    tasks: Mapping[int, ObservedJob]
    blocked: Mapping[int, str]
    follow_ups: tuple[tuple[GateOrder, str], ...]
    nodes: Mapping[str, ObservedNode] = field(default_factory=dict)
    explanations: Mapping[int, AlternativesReport] = field(default_factory=dict)
    backlog: Backlog = NO_BACKLOG
    not_withheld: Mapping[int, str] = field(default_factory=dict)
    repeated: frozenset[int] = frozenset()
    explorations: Explorations = NO_EXPLORATIONS

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
    def unreadable(self) -> Mapping[str, str]:
        """Why a record of Slurm's cannot be read, in whole or in part; the keys are `job 7`, `node c1`."""
        return self.observation.unreadable

    @property
    def differences(self) -> dict[int, str]:
        """How jobs of ours run differently from their plan, by job id."""
        found = ((job.id, _difference(job)) for job in self.jobs.values() if job.state.occupies_nodes)
        return {job_id: how for job_id, how in found if how}

    def job(self, job_id: int) -> ObservedJob | None:
        """The job of ours, or the task of an array's record, with this id."""
        return self.jobs.get(job_id) or self.tasks.get(job_id)


def read_situation(
    observation: Observation,
    tries: Mapping[int, Try],
    settings: Settings,
    now_s: float,
    spreading: Spreading = NO_SPREADING,
    *,
    backlog_before: Backlog = NO_BACKLOG,
    withholding: Withholding = NOTHING_WITHHELD,
    history: object | None = None,
    active_before: Iterable[ActiveJob] = (),
    explorer: Explorer | None = None,
    asked: Collection[int] = (),
    refused: Collection[int] = (),
) -> Situation:
    """The situation at this moment, for a scheduler with these tries and settings.

    Four values come from the cycle before: `backlog_before` and `active_before` are the backlog and the active jobs of
    its situation, `withholding` says for which users capacity was withheld after its plan, and `history` is what its
    policy wants to remember. `explorer` offers exploring runs; None where exploration is off. `asked` are the ids of
    jobs whose owners ask to leave them to Slurm, `refused` those of jobs with the nodes of a placement that Slurm did
    not accept.
    """
    surveyed = survey(observation.jobs, tries, settings, now_s, asked, refused=refused)
    planning = planning_snapshot(
        observation,
        surveyed,
        settings,
        now_s,
        spreading,
        before=backlog_before,
        withholding=withholding,
        history=history,
        active_before=active_before,
        explorer=explorer,
    )
    nevers = ((free(surveyed.ours[job_id], why, now_s), why) for job_id, why in planning.never.items())
    return Situation(
        snapshot=planning.snapshot,
        surveyed=surveyed,
        observation=observation,
        tasks=planning.tasks,
        blocked=planning.blocked,
        follow_ups=(
            *surveyed.follow_ups,
            *((order, f"left to Slurm: {why}") for order, why in nevers if order is not None),
        ),
        nodes={node.name: node for node in observation.nodes},
        explanations=planning.explanations,
        backlog=planning.backlog,
        not_withheld=planning.not_withheld,
        repeated=_repeated(surveyed),
        explorations=planning.explorations,
    )


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
    if record is None or not has_nodes_of(job, record) or job.is_completing or set(job.allocated) == set(record.nodes):
        return ""
    return f"runs on {','.join(job.allocated)}, planned on {','.join(record.nodes)}"[:MOST_TEXT]
