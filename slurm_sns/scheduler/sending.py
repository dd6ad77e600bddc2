"""Sends what a cycle has decided: a line of the log for each change, every refusal met, a sign of life meanwhile.

A policy may only change jobs that slurm_sns manages: an action on any other job is not sent, and the log says so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from slurm_sns.errors import Refused
from slurm_sns.model import Action, Release, Requeue, Resume, SetShare, Start, Suspend
from slurm_sns.scheduler.cycle_input import Situation
from slurm_sns.scheduler.observe.follow_up import Unpin
from slurm_sns.scheduler.observe.nice import OwnNice, started_with_boost
from slurm_sns.scheduler.observe.observed import ObservedJob
from slurm_sns.scheduler.observe.records import NO_MEMORY, JobRecord
from slurm_sns.scheduler.orders import PlacementOrder, reached
from slurm_sns.scheduler.ports import Clock, Executor, Heartbeat, Log
from slurm_sns.scheduler.round_robin import round_robin
from slurm_sns.scheduler.settings import Settings

#: While a cycle sends changes of many jobs it shows a sign of life this often.
SIGN_OF_LIFE_S = 1.0
#: An unpin is two commands of Slurm's: so many in one cycle, of each user in turn; the next one goes on.
MOST_CORRECTIONS = 200
#: A restored nice value is an RPC of 2 ms (seen): so many in one cycle, after its placements; the next one goes on.
MOST_RESTORED = 100

#: What a policy may do to a job besides starting it.
PolicyChange = Suspend | Resume | Requeue | SetShare | Release
#: Changes of one job, each with the reason for it.
Change = Unpin | PolicyChange
AnyChange = TypeVar("AnyChange", bound=Change)


class Sending:
    """Sends a scheduler's orders. Its methods raise Unreachable: slurmctld does not answer, the rest was not sent."""

    def __init__(self, executor: Executor, heartbeat: Heartbeat, clock: Clock, log: Log) -> None:
        self._executor, self._heartbeat, self._clock, self._log = executor, heartbeat, clock, log
        self._restored: set[OwnNice] = set()
        self._refused: set[OwnNice] = set()
        self._lively_s = 0.0

    def begin(self, now_s: float) -> None:
        """A cycle begins; its first sign of life is due `SIGN_OF_LIFE_S` later."""
        self._lively_s = now_s

    def correct(self, situation: Situation) -> dict[int, str]:
        """Send the corrections of the state table, those of each user in turn; what was done, by job."""
        concerned = {each.job_id for each in situation.corrections}
        users = {job.id: job.user_id for job in situation.observed if job.id in concerned} if concerned else {}
        in_turn = round_robin(situation.corrections, lambda each: users[each.job_id], MOST_CORRECTIONS)
        return {change.job_id: said(change) for change in self._change(in_turn)}

    def place(self, placements: Sequence[PlacementOrder]) -> Iterator[tuple[Start, Refused | None]]:
        """Send placements; each start as Slurm answers it, with its refusal, None where it took the placement."""
        for answer in reached(self._executor.execute(placements)):
            if isinstance(answer.order, PlacementOrder):
                yield answer.order.start, answer.refused
            self._show_sign_of_life()

    def carry_out(self, actions: Iterable[Action], situation: Situation, settings: Settings) -> Iterator[PolicyChange]:
        """Send the actions of a plan that start nothing, in their order; those that Slurm has done."""
        wanted: list[PolicyChange] = []
        for action in actions:
            if isinstance(action, Start):
                continue
            hindrance = _hindrance(action, situation, settings)
            if hindrance:
                self._log(f"job {action.job_id}: {said(action)}; not sent: {hindrance}")
            else:
                wanted.append(action)
        yield from self._change(wanted)

    def restore_nice(
        self, jobs: Sequence[ObservedJob], records: Mapping[int, JobRecord], *, shows_life: bool = True
    ) -> None:
        """Give the jobs that have started their own nice values again.

        Each is asked for once: Slurm says yes and ignores it where an administrator has set the job's priority. A
        short job has ended in the meantime: only one that is still there at the next look, and refused again, is worth
        a line.
        """
        found = started_with_boost(jobs, records)
        self._restored.intersection_update(found)
        self._refused.intersection_update(found)
        for own in [own for own in found if own not in self._restored][:MOST_RESTORED]:
            if shows_life:
                self._show_sign_of_life()
            for answer in reached(self._executor.execute((own,))):
                if answer.refused is not None and own not in self._refused:
                    self._refused.add(own)
                    continue
                if answer.refused is not None:
                    self._log(f"job {own.job_id}: Slurm refused to restore its nice value: {answer.refused}")
                self._restored.add(own)

    def split(self, situation: Situation) -> None:
        """Split off the tasks of arrays that the next cycles may place, those of each user in turn."""
        jobs = situation.jobs
        for split in round_robin(situation.splits, lambda each: jobs[each.array_id].user_id, MOST_CORRECTIONS):
            self._show_sign_of_life()
            for answer in reached(self._executor.execute((split,))):
                if answer.refused is not None:
                    # Some of the tasks were cancelled in the meantime: the next look shows which are there.
                    self._log(f"array {split.array_id}: Slurm refused to split tasks off: {answer.refused}")

    def _change(self, changes: Iterable[AnyChange]) -> Iterator[AnyChange]:
        """Send these changes; those that Slurm has made."""
        logged: set[str] = set()
        for change in changes:
            self._show_sign_of_life()
            line = f"job {change.job_id}: {said(change)}"
            for answer in reached(self._executor.execute((change,))):
                if answer.refused is not None:
                    # The job started or ended in the meantime: the next look shows what it is now.
                    self._log(f"{line}; Slurm refused the change: {answer.refused}")
                    continue
                if line not in logged:
                    self._log(line)
                logged.add(line)
                yield change

    def _show_sign_of_life(self) -> None:
        """Beat in the middle of a cycle that takes long; a clock that was stepped, either way, counts as long."""
        now_s = self._clock.now()
        if abs(now_s - self._lively_s) >= SIGN_OF_LIFE_S:
            self._heartbeat.beat(now_s)
            self._lively_s = now_s


def _hindrance(action: PolicyChange, situation: Situation, settings: Settings) -> str:
    """Why a policy's action must not be sent; empty when it may."""
    job, record = situation.jobs.get(action.job_id), situation.records.get(action.job_id)
    if job is None or record is None or job.hints is None or job.hints.advised:
        return "slurm_sns does not manage the job"
    if not isinstance(action, Requeue) or not action.pool:
        return ""
    if action.pool not in settings.partitions:
        return f"partition {action.pool} is not managed"
    # Its own memory is restored when the requeue is seen, but by then the job would wait in the other partition.
    return "" if record.own_memory == NO_MEMORY else "it was given whole nodes of its own partition"


def said(change: Change) -> str:
    """What a change does, with its reason."""
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
