"""Restarts of suspended jobs: decides after the plan of a cycle, and requeues the jobs for which it pays.

Slurm chooses whom it suspends, and resumes. The decision record has the terms of each restart and each proposal. A
refusal by Slurm concerns its job alone, which stays. A defect is logged once, and costs restarts, never a cycle.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from slurm_sns.durations import duration
from slurm_sns.errors import Unreachable
from slurm_sns.log import Outage
from slurm_sns.model import Plan, Snapshot
from slurm_sns.restarts.decision import RestartDecision, SuspendedJob, decide
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.gate.orders import RequeueOrder, reached
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.ports import Ports, RestartNote
from slurm_sns.scheduler.restarts.candidates import MOST_DECIDED, candidates, past_jobs, suspended_job, tiers_of
from slurm_sns.scheduler.restarts.kept_places import KeptPlace, still_kept, with_kept
from slurm_sns.scheduler.restarts.ledger import Ledger, Restarted
from slurm_sns.scheduler.restarts.places import Place, find_places
from slurm_sns.scheduler.restarts.words import explained, told
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.scheduler.snapshot.spreading import SpreadRules

#: A job that stays is decided on again after this time.
AGAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class RestartView:
    """What is told: the last decision on each suspended job, by job id, and the restarts of the last day."""

    decided: Mapping[int, str] = field(default_factory=dict)
    restarted: tuple[Restarted, ...] = ()


NO_RESTARTS_YET = RestartView()


@dataclass(frozen=True, slots=True)
class _Decided:
    """When a job was decided on last, and what came of it. A restart that was proposed is final."""

    at_s: float
    why: str
    is_final: bool = False


class Restarter:
    """Decides on suspended jobs, and restarts them. `plan_again` is the policy's plan.

    Raises:
        SnsError: the store does not answer at the start.
    """

    def __init__(
        self, rules: RestartRules, ports: Ports, settings: Settings, plan_again: Callable[[Snapshot], Plan]
    ) -> None:
        self._rules, self._settings, self._plan_again = rules, settings, plan_again
        self._executor, self._log = ports.executor, ports.log
        self._ledger = Ledger(ports.history, rules, ports.log)
        self._outage = Outage(ports.log, "; no suspended job is restarted meanwhile")
        self._kept: dict[int, KeptPlace] = {}
        #: By the job and the moment of its suspension.
        self._decided: dict[tuple[int, int], _Decided] = {}

    @property
    def trouble(self) -> str:
        """What keeps jobs from being restarted now; empty when nothing does."""
        return "; ".join(filter(None, (self._ledger.trouble, self._outage.now)))

    @property
    def view(self) -> RestartView:
        """What is told of restarts now."""
        return RestartView({job_id: each.why for (job_id, _), each in self._decided.items()}, self._ledger.restarted)

    def begin(self, situation: Situation) -> Situation:
        """Learn from what is seen; the situation in which the places of requeued jobs are kept."""
        now_s = float(situation.snapshot.now_s)
        try:
            self._ledger.learn(past_jobs(situation.observation, self._ledger.past), now_s)
            self._kept = still_kept(self._kept, situation)
            return with_kept(situation, self._kept)
        except Exception as problem:  # noqa: BLE001 - a defect here must not keep jobs from being placed
            self._outage.met_defect(problem, now_s)
            return situation

    def act(
        self, situation: Situation, plan: Plan, spreading: SpreadRules
    ) -> tuple[dict[int, RestartNote], Unreachable | None]:
        """Decide on the suspended jobs that are due; `plan` is the cycle's own.

        Returns:
            What was restarted or proposed, by job id, and the error that ended this early (None: nothing did).
        """
        now_s, notes = float(situation.snapshot.now_s), dict[int, RestartNote]()
        try:
            for job_id, note in self._decisions(situation, plan, spreading):
                notes[job_id] = note
        except Unreachable as lost:
            return notes, lost
        except Exception as problem:  # noqa: BLE001 - as in `begin`
            self._outage.met_defect(problem, now_s)
            return notes, None
        self._outage.over(now_s)
        return notes, None

    def _decisions(self, situation: Situation, plan: Plan, spreading: SpreadRules) -> Iterator[tuple[int, RestartNote]]:
        now_s = float(situation.snapshot.now_s)
        suspended = candidates(situation.observed, self._rules, now_s)
        known = {_key(job) for job in suspended}
        self._decided = {key: each for key, each in self._decided.items() if key in known}
        due = [job for job in suspended if self._is_due(job, now_s)][:MOST_DECIDED]
        if not due:
            return
        places = find_places(
            [(job, self._rules.group_of(job.partitions[0])) for job in due],
            situation,
            plan,
            settings=self._settings,
            spreading=spreading,
            plan_again=self._plan_again,
        )
        for job in due:
            note = self._decide(job, places.get(job.id), situation)
            if note is not None:
                yield job.id, note

    def _is_due(self, job: ObservedJob, now_s: float) -> bool:
        last = self._decided.get(_key(job))
        if last is None:
            return self._rules.sends or not self._ledger.has_proposed(job.id, job.suspended_s)
        return not (last.is_final or abs(now_s - last.at_s) < AGAIN_S)

    def _decide(self, job: ObservedJob, place: Place | None, situation: Situation) -> RestartNote | None:
        now_s = float(situation.snapshot.now_s)
        known = suspended_job(job, situation.observation, self._ledger.past, now_s)
        decision = None if known is None else self._decision(known, place, situation)
        if known is None or decision is None:
            why = "suspended: it stays, as nobody knows how long it will run or stay suspended"
            self._decided[_key(job)] = _Decided(now_s, why)
            return None
        why, restart = told(now_s - job.suspended_s, known, decision), decision.restart
        if restart is None:
            self._decided[_key(job)] = _Decided(now_s, f"{why}: it stays")
            return None
        is_proposal = not self._rules.sends
        lost = Restarted(now_s, job.id, job.user_id, float(known.lost_s) * job.occupies.cores, is_proposal)
        if hindrance := self._send(lost):
            self._decided[_key(job)] = _Decided(now_s, f"{why}: it stays, as {hindrance}")
            return None
        done = "a restart is proposed" if is_proposal else "restarted"
        why = f"{why}: {done}, at most {duration(float(known.lost_s))} of work lost"
        self._decided[_key(job)] = _Decided(now_s, why, is_final=True)
        if not is_proposal and place is not None and restart.nodes:
            until_s = now_s + situation.observation.requeue_s + self._settings.place_timeout_s
            self._kept[job.id] = KeptPlace(place, until_s, job.restarts)
        self._log(f"job {job.id}: {why}")
        return RestartNote(why, explained(decision, lost.lost_core_s), restart.nodes, is_proposal)

    def _decision(self, known: SuspendedJob, place: Place | None, situation: Situation) -> RestartDecision | None:
        tier, now_s = tiers_of(situation.observation).get(known.partition, 1), float(situation.snapshot.now_s)
        names = self._rules.group_of(known.partition)
        averages = {name: self._ledger.past.averages(name, tier, now_s) for name in names}
        places = [(name, () if place is None or place.partition != name else place.nodes) for name in names]
        return decide(known, averages, places, self._rules.gain_s)

    def _send(self, restart: Restarted) -> str:
        """Note the restart, and send it unless it is only proposed; why that could not be done, empty if it was."""
        if not self._ledger.allows(restart):
            most = self._rules.lost_core_hours_per_user_day
            return f"restarts may lose at most {most} core-hours of its owner's work in 24 hours"
        if not self._ledger.add(restart):
            return "the store does not answer"
        if restart.is_proposal:
            return ""
        for answer in reached(self._executor.execute([RequeueOrder(restart.job_id)])):
            if answer.refused is not None:
                self._ledger.take_back(restart)
                return f"Slurm refused to requeue it: {answer.refused}"
        return ""


def _key(job: ObservedJob) -> tuple[int, int]:
    return job.id, job.suspended_s
