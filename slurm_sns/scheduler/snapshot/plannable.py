"""Sorts the candidates: jobs that the policy plans now, jobs that cannot start now or ever, and job arrays.

The order is that of the live queue (docs/develop/life-of-a-job.md): by the priorities that Slurm computes; or that
inside one project, and the matching cycle itself applies fair share between projects, because each match changes it.

Jobs that may preempt others are left to Slurm: only Slurm can preempt a running job. Our plans count the resources of
running jobs as taken. A job that may preempt them would wait for them, gated by us, where Slurm alone starts it at
once. Jobs that may be preempted stay managed: Slurm considers the jobs that may preempt them first (sort_job_queue2),
whatever their priorities, so no placement takes what was freed for another job. The rules are Slurm's
(preempt_p_preemptable in its plugins preempt/partition_prio and preempt/qos). What is not known counts as allowed. Jobs
with the same partitions and QOS share one answer.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

from slurm_sns.errors import Closed, ClosedForGood, Infeasible, NeverStarts
from slurm_sns.model import Job, Reason, Seconds, WaitKind
from slurm_sns.policies.base import Choice, Explanation
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.observation import Observation, ObservedJob, ObservedPartition, PreemptionRules
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.eligibility import Eligibility, kind_of
from slurm_sns.submit.judge import shares_in_part

PARTITION_PRIO, QOS = "preempt/partition_prio", "preempt/qos"
#: Words of PreemptMode by which nothing is preempted: with GANG alone jobs are time-sliced.
_HARMLESS_MODES = frozenset({"OFF", "GANG"})
#: Slurm's word for "also jobs of the same QOS".
_WITHIN = "WITHIN"

#: Why a job is Slurm's that names a partition whose jobs share cores, and others.
SHARES_IN_PART = "it names a partition whose jobs share cores, and another one; valid is one of them alone"


class Preemptors:
    """The jobs of one observation that may preempt others."""

    def __init__(self, observation: Observation) -> None:
        rules = observation.preemption
        by = rules.type if is_on(rules) else ""
        self._everybody = _why_everybody(rules) if by else ""
        self._partitions = _by_tier(observation) if by == PARTITION_PRIO else {}
        of_qos = (rules.of_qos or ()) if by == QOS else ()
        self._qos = {name: f"QOS {name} may preempt {', '.join(sorted(preempted))}" for name, preempted in of_qos}
        self._reasons: dict[tuple[tuple[str, ...], str], str] = {}

    def reason(self, job: ObservedJob) -> str:
        """Why the job may preempt others, as a clause; empty where it may not.

        A job that shows no QOS has its owner's default one, which may be any.
        """
        key = job.partitions, job.qos
        if key not in self._reasons:
            names = job.qos.split(",") if job.qos else self._qos
            found = _first(self._partitions, job.partitions) or _first(self._qos, names)
            self._reasons[key] = self._everybody or found
        return self._reasons[key]

    def in_partition(self, name: str) -> str:
        """Why any job of this partition may preempt others, whatever its QOS; empty where it may not."""
        return self._everybody or self._partitions.get(name, "")


def is_on(rules: PreemptionRules) -> bool:
    """Whether Slurm preempts any job at all."""
    return rules.type not in ("", "preempt/none") and not set(rules.mode.split(",")) <= _HARMLESS_MODES


def _first(reasons: Mapping[str, str], names: Iterable[str]) -> str:
    return next((reasons[name] for name in names if name in reasons), "")


def _why_everybody(rules: PreemptionRules) -> str:
    """Why every job may preempt others; empty where the partition or the QOS tells which."""
    if rules.type not in (PARTITION_PRIO, QOS):
        return f"PreemptType is {rules.type}"
    if rules.type == QOS and rules.of_qos is None:
        return "until slurmdbd tells which QOS may, every job counts as one that may"
    if rules.type == QOS and _WITHIN in rules.mode.split(","):
        return f"PreemptMode is {rules.mode}"
    return ""


def _by_tier(observation: Observation) -> dict[str, str]:
    """The partitions whose jobs may preempt others, with the reason: a lower partition shares a node with them."""
    shown = {partition.name: partition for partition in observation.partitions}
    found: dict[str, str] = {}
    for names in {node.partitions for node in observation.nodes}:
        found |= {name: f"partition {name} cannot be read" for name in names - shown.keys()}
        found |= _above_the_lowest([shown[name] for name in sorted(names & shown.keys())])
    return found


def _above_the_lowest(partitions: list[ObservedPartition]) -> dict[str, str]:
    """Of partitions that share a node, those above the lowest one whose jobs may be preempted; with the reason."""
    lowest = min((each for each in partitions if each.preempt_mode != "OFF"), key=attrgetter("tier"), default=None)
    if lowest is None:
        return {}
    higher = f"has a higher PriorityTier than {lowest.name} on the same nodes"
    return {each.name: f"partition {each.name} {higher}" for each in partitions if each.tier > lowest.tier}


class Ranks(NamedTuple):
    """What orders the queue beside the jobs: the tier of each partition, and the priority of each QOS.

    `of_qos` is None where the order is that of Slurm's priorities.
    """

    of_partitions: dict[str, int]
    of_qos: dict[str, int] | None


def order_key(job: ObservedJob, ranks: Ranks, *, is_limited: bool = False) -> tuple[int, ...]:
    """The sort key of the jobs, smallest first; a task has the place of its array, after the array's earlier tasks.

    Of a project's jobs: partition tier, QOS priority, nice, submit time, id, task. A job that met a limit of its
    owner's (`is_limited`) comes after the others of its tier and QOS.

    By Slurm's priority, of all jobs: partition tier, priority, submit time, id, task. Slurm
    sorts its own queue so (sort_job_queue2). A job that met a limit of its owner's comes after all others, because it
    cannot start.
    """
    tier = max((ranks.of_partitions.get(name, 1) for name in job.partitions), default=1)
    age = job.submit_s, job.array_id or job.id, job.array_task or 0
    if ranks.of_qos is None:
        return int(is_limited), -tier, -job.priority, *age
    return -tier, -ranks.of_qos.get(job.qos, 0), int(is_limited), job.nice, *age


def with_over_aged_head(
    waiting: list[Job], jobs: Mapping[int, ObservedJob], now_s: float, settings: Settings
) -> list[Job]:
    """The queue by Slurm's priority. Only its first job may be over-aged, as those go first."""
    if not waiting or not is_over_aged(jobs[waiting[0].id], now_s, settings.age_limit_s):
        return waiting
    return [replace(waiting[0], over_aged=True), *waiting[1:]]


def is_over_aged(job: ObservedJob, now_s: float, age_limit_s: int | None) -> bool:
    """Whether the job has waited longer than the limit (None: no job is ever over-aged)."""
    record = job.record
    begin_s = job.begin_s if record is None or record.is_slurms else record.begin_s or 0  # not our gate
    return age_limit_s is not None and now_s - max(job.submit_s, begin_s) > age_limit_s


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A job as it was observed and planned in the cycle before; `kind` is that of `eligibility.kind_of`.

    `is_array` is whether it is the record of several tasks.
    """

    observed: ObservedJob
    is_array: bool
    kind: object
    wanted: Job

    def is_still(self, choice: Choice, allowed: frozenset[str], over_aged: bool, withholds: bool) -> bool:
        """Whether the job is planned as before, if it is observed as before."""
        wanted = self.wanted
        return (
            wanted.allowed is allowed
            and wanted.alternatives == choice.alternatives
            and wanted.over_aged == over_aged
            and wanted.withholds == withholds
        )


class KnownJobs(NamedTuple):
    """The jobs that a cycle planned, by job id, without those that have met a limit; and what ordered its queue."""

    ranks: Ranks
    jobs: dict[int, KnownJob]


NOTHING_KNOWN = KnownJobs(Ranks({}, None), {})


@dataclass(frozen=True, slots=True)
class Plannable:
    """The candidates, sorted.

    `waiting` are the jobs for the policy, in queue order. By job id, `infeasible` says why a job can never be placed,
    and `closed` why a job cannot start now; `never` has those of both that nobody could ever start as they are.
    `arrays` are the array records of several tasks, in queue order, each with the number of tasks that its nodes could
    hold. `explanations` say, by job id, how alternatives came about that were made from a profile. `known` is for the
    next cycle.
    """

    waiting: list[Job] = field(default_factory=list)
    infeasible: dict[int, str] = field(default_factory=dict)
    closed: dict[int, str] = field(default_factory=dict)
    never: dict[int, str] = field(default_factory=dict)
    explanations: dict[int, Explanation] = field(default_factory=dict)
    arrays: list[tuple[Job, int]] = field(default_factory=list)
    known: KnownJobs = NOTHING_KNOWN


def sort_out(
    candidates: Iterable[ObservedJob],
    tries: Mapping[int, Try],
    observation: Observation,
    settings: Settings,
    *,
    eligibility: Eligibility,
    may_withhold: Callable[[int], bool] = lambda _: True,
    before: KnownJobs = NOTHING_KNOWN,
) -> Plannable:
    """Sort the candidates, and make jobs for the policy of those that can be planned now.

    In the modes advise and observe the record of an array is planned as its next task. `may_withhold` says, by user id,
    whether capacity may be withheld for a user's jobs that find no place. `before` is what the cycle before knew: it
    saves time, and changes nothing in the result.
    """
    by_priority = settings.is_by_priority(has_priorities=observation.has_priorities)
    tiers = {partition.name: partition.tier for partition in observation.partitions}
    ranks = Ranks(tiers, None if by_priority else dict(observation.qos_priorities))
    if ranks != before.ranks:
        before = NOTHING_KNOWN
    answers = _Answers(Preemptors(observation), eligibility, settings)
    found = Plannable(known=KnownJobs(ranks, {}))
    for job in candidates:
        known = before.jobs.get(job.id)
        if known is None or known.observed is not job:
            known = None
        kind = kind_of(job) if known is None else known.kind
        answer = answers.to(job, kind)
        if not isinstance(answer, tuple):
            _note(found, job, answer)
            continue
        choice, allowed = answer
        tried = tries.get(job.id)
        is_limited = tried is not None and tried.limited_by != ""
        over_aged = not (by_priority or is_limited) and is_over_aged(job, eligibility.now_s, settings.age_limit_s)
        withholds = not is_limited and may_withhold(job.user_id)
        if known is None or is_limited or not known.is_still(choice, allowed, over_aged, withholds):
            hints = job.hints
            wanted = Job(
                id=job.id,
                submit_s=job.submit_s,
                alternatives=choice.alternatives,
                order=order_key(job, ranks, is_limited=is_limited),
                project="" if by_priority else job.account,
                heuristic=None if hints is None else hints.heuristic,
                allowed=allowed,
                over_aged=over_aged,
                withholds=withholds,
                pool=job.partitions[0] if job.partitions else "",
                expected_run_s=job.walltime_s,
            )
            known = KnownJob(job, job.is_array_record, kind, wanted)
        wanted = known.wanted
        if not is_limited:
            found.known.jobs[job.id] = known
        if choice.explanation is not None:
            found.explanations[job.id] = choice.explanation
        if known.is_array and settings.mode == "enforce":
            found.arrays.append((wanted, eligibility.room(choice, allowed)))
        else:
            found.waiting.append(wanted)
    found.waiting.sort(key=queue_key)
    found.arrays.sort(key=lambda array: queue_key(array[0]))
    return found


def _note(found: Plannable, job: ObservedJob, why: Infeasible | Closed) -> None:
    """Note why the job cannot be planned."""
    if isinstance(why, Infeasible):
        reason = found.infeasible[job.id] = Reason(str(why), WaitKind.NEVER)
    else:
        told = why.args[0]
        is_of_a_kind = isinstance(told, Reason)
        reason = told if is_of_a_kind else Reason(told, WaitKind.PARTITION, ",".join(job.partitions))
        found.closed[job.id] = reason
    if isinstance(why, NeverStarts | ClosedForGood):
        found.never[job.id] = reason


class _Answers:
    """What jobs may use, asked once for all that are alike."""

    def __init__(self, preemptors: Preemptors, eligibility: Eligibility, settings: Settings) -> None:
        self._preemptors, self._eligibility, self._settings = preemptors, eligibility, settings
        self._known: dict[tuple[object, int], tuple[Choice, frozenset[str]] | Infeasible | Closed] = {}

    def to(self, job: ObservedJob, kind: object) -> tuple[Choice, frozenset[str]] | Infeasible | Closed:
        """The job's alternatives and the nodes that it may use now, or why it has none."""
        key = kind, self._eligibility.claims_ahead(job)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._found(job)
        return found

    def _found(self, job: ObservedJob) -> tuple[Choice, frozenset[str]] | Infeasible | Closed:
        try:
            _check(job, self._preemptors, self._settings)
            return self._eligibility.of(job)
        except (Infeasible, Closed) as why:
            return why.with_traceback(None)  # which would keep the whole observation in memory


def queue_key(job: Job) -> tuple[bool, Seconds, tuple[int, ...]]:
    """The sort key of the queue: over-aged jobs come first, oldest first, then all others by their `order`."""
    return not job.over_aged, job.submit_s if job.over_aged else 0, job.order


def _check(job: ObservedJob, preemptors: Preemptors, settings: Settings) -> None:
    """Check what the owner may have changed since the job was submitted, and what the submit filter does not know.

    Raises:
        Infeasible: we can no longer place the job.
    """
    unmanaged = sorted(set(job.partitions) - settings.partitions)
    if unmanaged:
        raise Infeasible(f"partition {','.join(unmanaged)} is not managed")
    if settings.sharing is not None and shares_in_part(job.partitions, settings.sharing.partitions):
        raise Infeasible(SHARES_IN_PART)
    if why := preemptors.reason(job):
        raise Infeasible(f"it may preempt jobs: {why}")
