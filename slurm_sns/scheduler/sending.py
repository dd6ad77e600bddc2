"""Sends what a cycle has decided: it logs each change, handles every refusal and keeps up the heartbeat meanwhile.

A policy may only change jobs that slurm_sns manages: an action on any other job is logged and not sent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from slurm_sns.errors import Refused
from slurm_sns.model import Action, Release, Requeue, Resume, SetShare, Start, Suspend
from slurm_sns.scheduler.cycle_input import Situation
from slurm_sns.scheduler.observe.follow_up import Advise, Correction
from slurm_sns.scheduler.observe.nice import OwnNice, started_with_boost
from slurm_sns.scheduler.observe.observed import ObservedJob
from slurm_sns.scheduler.observe.records import NO_MEMORY, JobRecord
from slurm_sns.scheduler.orders import NotSent, PlacementOrder, reached
from slurm_sns.scheduler.ports import Clock, Executor, Heartbeat, Log
from slurm_sns.scheduler.round_robin import round_robin
from slurm_sns.scheduler.settings import Settings

#: How often the heartbeat is written while a cycle sends changes of many jobs.
SIGN_OF_LIFE_S = 1.0
#: The most corrections in one cycle, users taking turns; the next cycle goes on. Each unpin takes two Slurm commands.
MOST_CORRECTIONS = 200
#: The most nice values that a cycle restores, after its placements; the next cycle goes on. Each takes an RPC of 2 ms
#: (seen).
MOST_RESTORED = 100
#: A nice value that Slurm does not show though it was sent twice is sent again after so long.
SENT_AGAIN_S = 60.0

#: What a policy may do to a job besides starting it.
PolicyChange = Suspend | Resume | Requeue | SetShare | Release
#: Changes of one job, each with the reason for it.
Change = Correction | PolicyChange
AnyChange = TypeVar("AnyChange", bound=Change)


class Sending:
    """Sends a scheduler's orders. If slurmctld does not answer, its methods raise Unreachable and send no more."""

    def __init__(self, executor: Executor, heartbeat: Heartbeat, clock: Clock, log: Log) -> None:
        self._executor, self._heartbeat, self._clock, self._log = executor, heartbeat, clock, log
        #: The nice values that Slurm has accepted: once, and twice.
        self._accepted: set[OwnNice] = set()
        self._restored: set[OwnNice] = set()
        self._refused: set[OwnNice] = set()
        #: Jobs whose mark Slurm did not let us change: that is not tried again.
        self._unadvised: set[int] = set()
        self._forgot_s = float("-inf")
        self._lively_s = 0.0

    def begin(self, now_s: float) -> None:
        """Note that a cycle begins; the heartbeat is next due `SIGN_OF_LIFE_S` later."""
        self._lively_s = now_s

    def correct(self, situation: Situation) -> Iterator[Correction]:
        """Send the corrections of the state table, users taking turns; yield those that Slurm has made."""
        concerned = {each.job_id for each in situation.corrections}
        users = {job.id: job.user_id for job in situation.observed if job.id in concerned} if concerned else {}
        self._unadvised &= {each.job_id for each in situation.corrections if isinstance(each, Advise)}
        wanted = [each for each in situation.corrections if not self._is_refused(each)]
        in_turn = list(round_robin(wanted, lambda each: users[each.job_id], MOST_CORRECTIONS))
        done: set[int] = set()
        for change in self._change(in_turn):
            done.add(change.job_id)
            yield change
        self._unadvised |= {each.job_id for each in in_turn if isinstance(each, Advise)} - done

    def _is_refused(self, change: Correction) -> bool:
        return isinstance(change, Advise) and change.job_id in self._unadvised

    def place(self, placements: Sequence[PlacementOrder]) -> Iterator[tuple[Start, Refused | None]]:
        """Send placements; yield each start when Slurm answers, with the refusal (None: Slurm accepted it)."""
        for answer in reached(self._executor.execute(placements)):
            if isinstance(answer.order, PlacementOrder):
                yield answer.order.start, answer.refused
            self._show_sign_of_life()

    def carry_out(self, actions: Iterable[Action], situation: Situation, settings: Settings) -> Iterator[PolicyChange]:
        """Send the actions of a plan that start no job, in the plan's sequence; yield those that Slurm has done."""
        wanted: list[PolicyChange] = []
        for action in actions:
            if isinstance(action, Start):
                continue
            hindrance = _hindrance(action, situation, settings)
            if hindrance:
                self._log(f"job {action.job_id}: {described(action)}; not sent: {hindrance}")
            else:
                wanted.append(action)
        yield from self._change(wanted)

    def restore_nice(
        self, jobs: Sequence[ObservedJob], records: Mapping[int, JobRecord], *, shows_life: bool = True
    ) -> None:
        """Give the jobs that have started their own nice values back.

        Each change is sent twice a minute at most for each start of a job: where an administrator has set the job's
        priority, Slurm accepts the change and ignores it. But slurmctld may also have been killed before the next
        cycle, though none has failed. A refusal is logged only when the next cycle meets it again: most refused jobs
        are short ones that have ended in the meantime. `shows_life` is False after a clean stop, which must not write
        the heartbeat.
        """
        found = started_with_boost(jobs, records)
        if abs(self._clock.now() - self._forgot_s) > SENT_AGAIN_S:  # slurmctld may have been killed more than once
            self.forget_restored()
            self._forgot_s = self._clock.now()
        for met in (self._accepted, self._restored, self._refused):
            met.intersection_update(found)
        for own in [own for own in found if own not in self._restored][:MOST_RESTORED]:
            if shows_life:
                self._show_sign_of_life()
            for answer in reached(self._executor.execute((own,))):
                if answer.refused is not None and own not in self._refused:
                    self._refused.add(own)
                    continue
                if answer.refused is not None:
                    self._log(f"job {own.job_id}: Slurm refused to restore its nice value: {answer.refused}")
                elif own not in self._accepted:
                    self._accepted.add(own)
                    continue
                self._restored.add(own)

    def forget_restored(self) -> None:
        """Let the next cycle send the own nice value of every job again that Slurm still shows with our boost."""
        self._accepted.clear()
        self._restored.clear()

    def split(self, situation: Situation) -> None:
        """Split off the tasks of arrays that the next cycles may place, users taking turns."""
        jobs = situation.jobs
        for split in round_robin(situation.splits, lambda each: jobs[each.array_id].user_id, MOST_CORRECTIONS):
            self._show_sign_of_life()
            for answer in reached(self._executor.execute((split,))):
                if isinstance(answer.refused, NotSent):
                    self._log(f"array {split.array_id}: no tasks are split off now: {answer.refused}")
                elif answer.refused is not None:
                    # Some of the tasks were cancelled in the meantime: the next observation shows which are left.
                    self._log(f"array {split.array_id}: Slurm refused to split tasks off: {answer.refused}")

    def _change(self, changes: Iterable[AnyChange]) -> Iterator[AnyChange]:
        """Send these changes; yield those that Slurm has made."""
        logged: set[str] = set()
        for change in changes:
            self._show_sign_of_life()
            line = f"job {change.job_id}: {described(change)}"
            for answer in reached(self._executor.execute((change,))):
                if answer.refused is not None:
                    # The job started or ended in the meantime: the next observation shows its state.
                    self._log(f"{line}; Slurm refused the change: {answer.refused}")
                    continue
                if line not in logged:
                    self._log(line)
                logged.add(line)
                yield change

    def _show_sign_of_life(self) -> None:
        """Write the heartbeat during a long cycle; also after the clock was stepped forward or back."""
        now_s = self._clock.now()
        if abs(now_s - self._lively_s) >= SIGN_OF_LIFE_S:
            self._heartbeat.beat(now_s)
            self._lively_s = now_s


def _hindrance(action: PolicyChange, situation: Situation, settings: Settings) -> str:
    """Why a policy's action must not be sent; empty when it may be sent."""
    job, record = situation.jobs.get(action.job_id), situation.records.get(action.job_id)
    if job is None or record is None or job.hints is None or job.hints.advised:
        return "slurm_sns does not manage the job"
    if not isinstance(action, Requeue) or not action.pool:
        return ""
    if action.pool not in settings.partitions:
        return f"partition {action.pool} is not managed"
    # Its own memory is restored once we see the requeue, but then the job would wait in the other partition already.
    return "" if record.own_memory == NO_MEMORY else "it was given whole nodes of its own partition"


def described(change: Change) -> str:
    """What a change does and why, for the log and the decision record."""
    match change:
        case Suspend():
            what = "suspended"
        case Resume():
            what = f"resumed on {','.join(change.nodes)}" if change.nodes else "resumed"
        case Requeue():
            what = f"requeued in {change.pool}" if change.pool else "requeued"
        case SetShare():
            what = f"given {float(change.cpu_share):g} of its CPU"
        case _:
            return change.reason
    return f"{what}: {change.reason}" if change.reason else what
