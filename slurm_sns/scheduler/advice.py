"""What we would start now on a cluster that is Slurm's alone, and what Slurm then did. Pure; nothing is ever sent.

A look plans as a cycle of the scheduler in the mode observe does: each plain batch job of the managed partitions that
Slurm may start is a candidate, all others are Slurm's own and are respected. A start in the plan is an advice. The
first advice on a job stands: its moment and its nodes are compared with those on which Slurm starts the job.

Each look plans on what Slurm has made of the cluster, not on what we would have made of it. So the seconds are those of
each job alone. They are no forecast: a job that starts earlier here would hold its nodes from then on.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import repeat

from slurm_sns.model import Plan, Start
from slurm_sns.policies.base import Policy
from slurm_sns.scheduler.answers.pass_through import reason
from slurm_sns.scheduler.gate.job_status import status_of
from slurm_sns.scheduler.gate.survey import is_to_be_planned
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.backlog_claims import FIRST_OF_ITS_QUEUE
from slurm_sns.scheduler.snapshot.situation import Carried, Situation, read_situation
from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives, SpreadRules

#: A job, or a task of an array by the array's id and its number.
JobKey = int | tuple[int, int]

#: So many seconds apart, our start and Slurm's are the same: a placement of ours is sent within a second, and Slurm
#: starts the job in its next pass, at most every 2 seconds (sched_min_interval).
SAME_S = 3.0


class Comparison(StrEnum):
    """How Slurm's start of a job compares with our advice."""

    SAME = "same"
    """Slurm started it within `SAME_S` of our advice."""
    EARLIER = "earlier"
    """We would have started it before Slurm did."""
    LATER = "later"
    """Slurm started it, and our plan of the look before let it wait. In between we might have started it, too."""
    GONE = "gone"
    """It is no longer there, and nobody saw it start: it was cancelled, or it ended between two looks."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A job that we would start at `at_s` on these nodes; `heuristic` is the one whose schedule was chosen."""

    key: JobKey
    label: str
    user_id: int
    user: str
    tasks: int
    nodes: tuple[str, ...]
    heuristic: str
    at_s: float
    partitions: tuple[str, ...] = ()
    cpus: int = 1


@dataclass(frozen=True, slots=True)
class AdviceOutcome:
    """What Slurm did about a job: how its start compares, and by how many seconds ours would have been earlier.

    `nodes` are those on which Slurm started it; `on_same_nodes` compares them with those of the advice. `partitions`
    are those of the advice, or of Slurm's start if there was none.
    """

    label: str
    comparison: Comparison
    seconds: float | None = None
    nodes: tuple[str, ...] = ()
    on_same_nodes: bool = False
    partitions: tuple[str, ...] = ()
    cpus: int = 1


@dataclass(frozen=True, slots=True)
class StillWaiting:
    """A job of an earlier advice that Slurm has not started.

    `others` are the jobs that Slurm has started on nodes of the advice since the look before.
    """

    advice: Advice
    since_s: float
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdviceLook:
    """One look: what it was planned on, the plan, the advices of this look, and what became of earlier ones.

    `managed` is how many of the waiting jobs we would manage, also those that cannot start yet. `left_to_slurm` counts
    the others by the reason why they are Slurm's own.
    """

    situation: Situation
    plan: Plan
    advices: tuple[Advice, ...]
    outcomes: tuple[AdviceOutcome, ...]
    waiting: tuple[StillWaiting, ...]
    managed: int
    left_to_slurm: Mapping[str, int]
    at_s: float

    @property
    def pending(self) -> int:
        """How many records of jobs wait in Slurm; the waiting tasks of an array are one."""
        return sum(job.state is JobState.PENDING for job in self.situation.observed)


@dataclass
class Adviser:
    """Plans look after look. It remembers what a cycle hands on to the next one, and the advices not yet followed."""

    policy: Policy
    settings: Settings
    _carried: Carried = field(default_factory=Carried)
    _standing: dict[JobKey, Advice] = field(default_factory=dict)
    _passed_over: Mapping[JobKey, str] = field(default_factory=dict)
    _last_s: float = 0.0
    _known: KnownAlternatives = field(default_factory=KnownAlternatives)

    def look(self, observation: Observation, now_s: float) -> AdviceLook:
        """Plan on this observation, and compare it with earlier advices."""
        outcomes, waiting = self._follow(observation.jobs, now_s)
        self._last_s = now_s
        settings = replace(self.settings, mode="observe")
        observation = _without_plans_for_candidates(observation, settings, now_s)
        rules = SpreadRules(self.policy.alternatives, known=self._known, never_in=settings.sharing_partitions)
        situation = read_situation(observation, {}, settings, now_s, rules, carried=self._carried)
        plan = self.policy.plan(situation.snapshot)
        users = situation.users({*plan.report.withheld_for, *(start.job_id for start in plan.starts)})
        withholding = self._carried.withholding.after(plan, users, now_s, settings.withhold_limit_s)
        self._carried = replace(situation.carried(self._carried), withholding=withholding, history=plan.history)
        started = {start.job_id: start for start in plan.starts}
        advices = tuple(
            _advice(start, situation.jobs[job_id], plan.report.chosen, now_s)
            for job_id, start in started.items()
            if job_id in situation.jobs
        )
        for advice in advices:
            self._standing.setdefault(advice.key, advice)
        candidates = (situation.jobs[job.id] for job in situation.snapshot.waiting if job.id not in started)
        self._passed_over = {key_of(job): _label(job) for job in candidates if key_of(job) not in self._standing}
        pending = [job for job in observation.jobs if job.state is JobState.PENDING]
        others = [job for job in pending if not is_to_be_planned(job, situation.statuses[job.id], settings)]
        left = Counter(reason(job, settings) for job in others)
        return AdviceLook(situation, plan, advices, outcomes, waiting, len(pending) - len(others), left, now_s)

    def _follow(
        self, jobs: Iterable[ObservedJob], now_s: float
    ) -> tuple[tuple[AdviceOutcome, ...], tuple[StillWaiting, ...]]:
        """What has become of the standing advices, which ends those of them that Slurm has decided."""
        jobs = tuple(jobs)
        started = {key_of(job): job for job in jobs if _has_started(job)}
        pending = {key_of(job) for job in jobs if job.state is JobState.PENDING}
        outcomes: list[AdviceOutcome] = []
        waiting: list[StillWaiting] = []
        for key, advice in list(self._standing.items()):
            if key in started:
                outcomes.append(_compared(advice, started[key]))
            elif key in pending or _waits_in_an_array(key, pending):
                others = tuple(_others(advice, started.values(), self._last_s))
                waiting.append(StillWaiting(advice, max(0.0, now_s - advice.at_s), others))
                continue
            else:
                outcomes.append(
                    AdviceOutcome(advice.label, Comparison.GONE, partitions=advice.partitions, cpus=advice.cpus)
                )
            del self._standing[key]
        for key, label in self._passed_over.items():
            if key in started:
                outcomes.append(_let_wait(label, started[key]))
        return tuple(outcomes), tuple(waiting)


def _without_plans_for_candidates(observation: Observation, settings: Settings, now_s: float) -> Observation:
    """The observation, in which no node is kept for the first job of Slurm's queue if that is a candidate.

    Slurm marks nodes as planned for such a job (reason Resources) before its backfill says which nodes they are (seen).
    Nodes that nobody names are not planned on, as the job could be Slurm's own. Here it is one that we would place.
    """
    firsts = [
        job
        for job in observation.jobs
        if job.state is JobState.PENDING and job.reason == FIRST_OF_ITS_QUEUE and not job.planned_on
    ]
    statuses = (status_of(job, now_s, settings.place_timeout_s) for job in firsts)
    if not firsts or not all(map(is_to_be_planned, firsts, statuses, repeat(settings))):
        return observation
    nodes = tuple(replace(node, is_planned=False) if node.is_planned else node for node in observation.nodes)
    return replace(observation, nodes=nodes)


def key_of(job: ObservedJob) -> JobKey:
    """The job's key. For an array's record of several tasks it is that of the first, which Slurm starts first."""
    if job.array_id is None:
        return job.id
    return job.array_id, job.array_task if job.array_task is not None else _first_task(job.array_tasks)


def _first_task(tasks: str) -> int:
    """The first of `3-9,12`."""
    digits = tasks[: next((at for at, letter in enumerate(tasks) if not letter.isdigit()), len(tasks))]
    return int(digits or 0)


def _waits_in_an_array(key: JobKey, pending: Iterable[JobKey]) -> bool:
    """Whether an earlier task of the same array is the first that waits: a requeued one came back before this task."""
    return isinstance(key, tuple) and any(
        isinstance(each, tuple) and each[0] == key[0] and each[1] < key[1] for each in pending
    )


def _label(job: ObservedJob) -> str:
    key = key_of(job)
    return f"{key[0]}_{key[1]}" if isinstance(key, tuple) else str(key)


def _has_started(job: ObservedJob) -> bool:
    return job.state is not JobState.PENDING and job.start_s > 0 and bool(job.allocated)


def _advice(start: Start, job: ObservedJob, chosen: str, now_s: float) -> Advice:
    nodes = tuple(dict.fromkeys(start.nodes))
    return Advice(
        key_of(job), _label(job), job.user_id, job.user, job.tasks, nodes, chosen, now_s, job.partitions, job.cpus
    )


def _compared(advice: Advice, job: ObservedJob) -> AdviceOutcome:
    seconds = job.start_s - advice.at_s
    comparison = Comparison.EARLIER if seconds > SAME_S else Comparison.SAME
    on_same_nodes = set(job.allocated) == set(advice.nodes)
    return AdviceOutcome(
        advice.label, comparison, max(0.0, seconds), job.allocated, on_same_nodes, advice.partitions, advice.cpus
    )


def _let_wait(label: str, job: ObservedJob) -> AdviceOutcome:
    return AdviceOutcome(label, Comparison.LATER, None, job.allocated, partitions=job.partitions, cpus=job.cpus)


def _others(advice: Advice, started: Iterable[ObservedJob], last_s: float) -> Iterator[str]:
    """The jobs that Slurm has started on nodes of the advice since then and since the look at `last_s`."""
    wanted, since_s = set(advice.nodes), max(advice.at_s, last_s)
    for job in started:
        if job.start_s > since_s and not wanted.isdisjoint(job.allocated):
            yield _label(job)


@dataclass
class AdviceSummary:
    """The sum of all looks."""

    looks: int = 0
    advised: int = 0
    counts: dict[Comparison, int] = field(default_factory=lambda: dict.fromkeys(Comparison, 0))
    earlier_s: float = 0.0
    on_same_nodes: int = 0
    still_waiting: int = 0

    def add(self, look: AdviceLook) -> None:
        """Count this look too."""
        self.looks += 1
        earlier = {each.advice.key for each in look.waiting}
        self.advised += sum(advice.key not in earlier for advice in look.advices)
        self.still_waiting = len(look.waiting) + sum(advice.key not in earlier for advice in look.advices)
        for outcome in look.outcomes:
            self.counts[outcome.comparison] += 1
            self.on_same_nodes += outcome.on_same_nodes
            if outcome.comparison is Comparison.EARLIER:
                self.earlier_s += outcome.seconds or 0.0

    @property
    def mean_earlier_s(self) -> float | None:
        """How much earlier the jobs would have started that would have started earlier, in seconds on average."""
        count = self.counts[Comparison.EARLIER]
        return self.earlier_s / count if count else None
