"""Sends what a cycle has decided: it logs each change, handles every refusal and keeps up the heartbeat meanwhile.

A policy may only change jobs that slurm_sns manages: an action on any other job is logged and not sent.
"""

from collections.abc import Iterable, Iterator, Sequence

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.model import Action, Release, Requeue, Resume, SetShare, Start, Suspend
from slurm_sns.scheduler.gate.orders import Answer, GateOrder, Order, reached
from slurm_sns.scheduler.ports import Ports
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.task_ids import task_of

#: How often the heartbeat is written while a cycle sends changes of many jobs.
SIGN_OF_LIFE_S = 1.0

#: What a policy may do to a job besides starting it and giving it to Slurm.
PolicyChange = Suspend | Resume | Requeue | SetShare


class OrderQueue:
    """Sends a scheduler's orders. If slurmctld does not answer, its methods raise Unreachable and send no more.

    So they do when this process stood still for longer than the heartbeat's timeout: the watchdog has freed jobs since.
    """

    def __init__(self, ports: Ports, timeout_s: float) -> None:
        self._executor, self._heartbeat = ports.executor, ports.heartbeat
        self._clock, self._log = ports.clock, ports.log
        self._timeout_s = timeout_s
        self._lively_s = self._lively_steady_s = 0.0
        #: The jobs, and the arrays of tasks, for which orders of the gate were sent in this cycle.
        self.changed: set[int] = set()

    def begin(self, now_s: float) -> None:
        """Note that a cycle begins; the heartbeat is next due `SIGN_OF_LIFE_S` later."""
        self._lively_s, self._lively_steady_s = now_s, self._clock.steady()
        self.changed = set()

    def send(self, orders: Iterable[GateOrder]) -> Iterator[tuple[GateOrder, Refused | None]]:
        """Send these orders; yield each when Slurm answers, with the refusal (None: Slurm has made the change)."""
        for answer in self._answers(orders):
            if isinstance(answer.order, GateOrder):
                self.changed.add((task_of(answer.order.job_id) or (answer.order.job_id,))[0])
                yield answer.order, answer.refused
            self.show_sign_of_life()

    def follow_up(self, changes: Sequence[tuple[GateOrder, str]]) -> Iterator[tuple[GateOrder, str]]:
        """Send these orders, each with the reason for it; log all, and yield those that Slurm has carried out.

        A refused one is not tried again here: the job has started, ended or been changed in the meantime, and the next
        observation shows what is to be done.
        """
        whys = {order.job_id: why for order, why in changes}
        logged: set[str] = set()
        for order, refusal in self.send(order for order, _ in changes):
            why = whys[order.job_id]
            line = f"job {order.job_id}: {why or order.kind}"
            if refusal is not None:
                self._log(f"{line}; Slurm refused the change: {refusal}")
                continue
            if why and line not in logged:
                self._log(line)
            logged.add(line)
            yield order, why

    def carry_out(self, actions: Iterable[Action], situation: Situation, settings: Settings) -> Iterator[PolicyChange]:
        """Send the actions of a plan on running jobs, in the plan's sequence; yield those that Slurm has done."""
        for action in actions:
            if isinstance(action, Start | Release):
                continue
            hindrance = _hindrance(action, situation, settings)
            if hindrance:
                self._log(f"job {action.job_id}: {described(action)}; not sent: {hindrance}")
                continue
            self.show_sign_of_life()
            for answer in self._answers((action,)):
                line = f"job {action.job_id}: {described(action)}"
                if answer.refused is not None:
                    self._log(f"{line}; Slurm refused the change: {answer.refused}")
                else:
                    self._log(line)
                    yield action

    def _answers(self, orders: Iterable[Order]) -> Iterator[Answer]:
        answers = iter(reached(self._executor.execute(orders)))
        self._check_pace(self._still_s())
        for answer in answers:
            still_s = self._still_s()  # before the caller shows a sign of life
            yield answer
            self._check_pace(max(still_s, self._still_s()))

    def _still_s(self) -> float:
        """How long ago the last sign of life was; by the steady clock, so that nothing is lost when the time is set."""
        return self._clock.steady() - self._lively_steady_s

    def _check_pace(self, still_s: float) -> None:
        if still_s > self._timeout_s:
            raise Unreachable(f"this process stood still for {still_s:.0f} s")

    def show_sign_of_life(self) -> None:
        """Write the heartbeat during a long cycle; also after the clock was stepped forward or back."""
        now_s = self._clock.now()
        if abs(now_s - self._lively_s) >= SIGN_OF_LIFE_S:
            self._heartbeat.beat(now_s)
            self._lively_s, self._lively_steady_s = now_s, self._clock.steady()


def _hindrance(action: PolicyChange, situation: Situation, settings: Settings) -> str:
    """Why a policy's action must not be sent; empty when it may be sent."""
    job = situation.jobs.get(action.job_id)
    if job is None or job.record is None:
        return "slurm_sns does not manage the job"
    if not isinstance(action, Requeue) or not action.pool:
        return ""
    if action.pool not in settings.partitions:
        return f"partition {action.pool} is not managed"
    # Its own memory is restored once we see the requeue, but then the job would wait in the other partition already.
    return "" if job.record.own_memory is None else "it was given whole nodes of its own partition"


def described(action: PolicyChange) -> str:
    """What an action does and why, for the log and the decision record."""
    match action:
        case Suspend():
            what = "suspended"
        case Resume():
            what = f"resumed on {','.join(action.nodes)}" if action.nodes else "resumed"
        case Requeue():
            what = f"requeued in {action.pool}" if action.pool else "requeued"
        case SetShare():
            what = f"given {float(action.cpu_share):g} of its CPU"
    return f"{what}: {action.reason}" if action.reason else what
