"""Pauses of jobs that share cores: who may be paused, the signal before it, the requeue, and the budget of a day.

A run gets its signal once: a newcomer that comes and goes signals nobody again. All jobs that are paused for one
newcomer are paused together, when each has had its time since the signal: a newcomer that cannot have all of them gets
none. The work that a pause loses is stored before it is sent.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from slurm_sns.durations import duration
from slurm_sns.log import Log
from slurm_sns.model import ActiveJob, Plan, Requeue
from slurm_sns.policies.base import Explanation
from slurm_sns.policies.dfrs.shares import lost_s
from slurm_sns.scheduler.gate.orders import Answer, Order, RequeueOrder, SignalOrder
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob
from slurm_sns.scheduler.ports import RestartNote
from slurm_sns.scheduler.sharing.book import DAY_S, Book, Pause
from slurm_sns.scheduler.snapshot.shared_cores import shares_cores
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.sharing.rules import SharingRules

#: Sends orders, and gives Slurm's answers; it raises Unreachable if slurmctld does not answer.
Send = Callable[[Iterable[Order]], Iterator[Answer]]
#: A job that Slurm did not requeue is not paused for so long.
REFUSED_S = 60.0
#: The most jobs that one cycle signals or requeues.
MOST_PAUSED = 20


class Pauses:
    """Pauses jobs of partitions that share; `number` counts them since the scheduler began."""

    def __init__(self, rules: SharingRules, book: Book, log: Log) -> None:
        self._rules, self._book, self._log = rules, book, log
        self.number = 0
        #: When runs got their signal, by job and restarts; and when Slurm refused to requeue a job.
        self._signalled_s: dict[tuple[int, int], float] = {}
        self._refused_s: dict[int, float] = {}

    def begin(self, jobs: Iterable[ObservedJob], now_s: float) -> None:
        """Forget the runs that have ended, and old refusals."""
        running = {(job.id, job.restarts) for job in jobs if job.state is JobState.RUNNING}
        self._signalled_s = {key: at_s for key, at_s in self._signalled_s.items() if key in running}
        self._refused_s = {job: at_s for job, at_s in self._refused_s.items() if abs(now_s - at_s) < REFUSED_S}

    def may(self, active: ActiveJob, job: ObservedJob, observation: Observation, now_s: float) -> bool:
        """Whether the running job may be paused: its owner allows it, it has run for a while, the budget has room."""
        rules, hints, record = self._rules, job.hints, job.record
        if not rules.pauses or hints is None or not hints.restartable or record is None or not record.is_placed:
            return False
        is_able = active.may_restart and job.state is JobState.RUNNING and job.restarts < rules.max_restarts
        if not is_able or now_s - job.start_s < rules.protect_s or job.id in self._refused_s:
            return False
        return self._book.lost_core_s + _lost_core_s(active, now_s) <= self.most_lost_core_s(observation)

    def most_lost_core_s(self, observation: Observation) -> float:
        """The budget of a day, in core-seconds."""
        nodes = (node for node in observation.nodes if shares_cores(node, self._rules))
        return self._rules.most_lost * DAY_S * sum(node.capacity.cores for node in nodes)

    def carry_out(self, situation: Situation, plan: Plan, send: Send) -> Iterator[tuple[int, RestartNote]]:
        """Pause the jobs that the plan wants away, as far as they may be; yield each with what is noted of it."""
        active = {job.id: job for job in situation.snapshot.active if job.may_restart}
        together: dict[str, list[Requeue]] = {}
        for each in plan.actions:
            if isinstance(each, Requeue):
                together.setdefault(each.reason, []).append(each)
        left = MOST_PAUSED
        for victims in together.values():
            if all(each.job_id in active for each in victims) and len(victims) <= left:
                left -= len(victims)
                yield from self._together(situation, [(each, active[each.job_id]) for each in victims], send)

    def _together(
        self, situation: Situation, victims: Sequence[tuple[Requeue, ActiveJob]], send: Send
    ) -> Iterator[tuple[int, RestartNote]]:
        """Pause the jobs of one newcomer, if the budget has room for all and each has had its signal long enough."""
        now_s = float(situation.snapshot.now_s)
        seen: Mapping[int, ObservedJob] = {job.id: job for job in situation.observed}
        losses = [_lost_core_s(active, now_s) for _, active in victims]
        if self._book.lost_core_s + sum(losses) > self.most_lost_core_s(situation.observation):
            return
        are_told = [self._is_told(seen[each.job_id], now_s, send) for each, _ in victims]
        if not all(are_told):
            return
        for (each, _), lost_core_s in zip(victims, losses, strict=True):
            pause = Pause(now_s, each.job_id, lost_core_s)
            if self._requeued(pause, send):
                self.number += 1
                why = f"{each.reason}; at most {duration(lost_core_s)} of core time are lost"
                self._log(f"job {each.job_id}: {why}")
                yield each.job_id, RestartNote(why, Explanation(), (), is_proposal=False)

    def _is_told(self, job: ObservedJob, now_s: float, send: Send) -> bool:
        """Whether its signal, if there is one, was sent long enough ago; it is sent first."""
        if not self._rules.signal:
            return True
        key = (job.id, job.restarts)
        if key not in self._signalled_s:
            told = f"job {job.id}: it is to be paused in {self._rules.grace_s} s, and gets {self._rules.signal} first"
            address = str(job.id) if job.task is None else job.label  # an array's id alone would mean all its tasks
            for answer in send([SignalOrder(job.id, self._rules.signal, address)]):
                self._log(told if answer.refused is None else f"{told}: {answer.refused}")
            self._signalled_s[key] = now_s
        return abs(now_s - self._signalled_s[key]) >= self._rules.grace_s

    def _requeued(self, pause: Pause, send: Send) -> bool:
        if not self._book.add(pause):
            return False
        for answer in send([RequeueOrder(pause.job_id, JobState.RUNNING)]):
            if answer.refused is not None:
                self._book.take_back(pause)
                self._refused_s[pause.job_id] = pause.at_s
                why = f"it is not paused, as Slurm refused to requeue it: {answer.refused}"
                self._log(f"job {pause.job_id}: {why}")
                return False
        return True


def _lost_core_s(active: ActiveJob, now_s: float) -> float:
    return lost_s(active, now_s) * active.demand.cores * len(active.nodes)
