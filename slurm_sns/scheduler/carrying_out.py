"""Carries out what a cycle has decided, and keeps our records true to it.

A placement is on record before it is sent, so a crash between the two leaves a held job that is planned again, never a
job started twice.
"""

from collections.abc import Sequence
from dataclasses import replace

from slurm_sns.errors import Refused, SnsError, Unreachable
from slurm_sns.model import Action, Plan, Release, Start
from slurm_sns.scheduler.agents.granting import Granting
from slurm_sns.scheduler.cycle_input import Situation
from slurm_sns.scheduler.hearing import Hearing
from slurm_sns.scheduler.observe.follow_up import Advise, Correction, Unpin, failed
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.nice import boosted
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.orders import NotSent, PlacementOrder, Replaced
from slurm_sns.scheduler.ports import Clock, Log
from slurm_sns.scheduler.sending import PolicyChange, Sending, described
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.geometry import whole_memory_mb
from slurm_sns.scheduler.stored_records import StoredRecords
from slurm_sns.submit import mark


class CarryingOut:
    """Sends corrections and plans; `placed` counts the placements that Slurm has accepted."""

    def __init__(
        self,
        sending: Sending,
        records: StoredRecords,
        hearing: Hearing,
        grants: Granting,
        *,
        settings: Settings,
        clock: Clock,
        log: Log,
    ) -> None:
        self._sending, self._records, self._hearing, self._grants = sending, records, hearing, grants
        self._settings, self._clock, self._log = settings, clock, log
        self.placed = 0

    def correct(self, situation: Situation) -> dict[int, str]:
        """Send the corrections; return what was done, by job id.

        A job that is given to Slurm is Slurm's from this moment on: its owner may hold it before the next cycle. Its
        mark says so, if it has one. A job whose hold Slurm has undone is held once more: if that hold is not sent now,
        the next cycle sends it.

        Raises:
            Unreachable: slurmctld does not answer.
        """
        notes: dict[int, str] = {}
        records = self._records.now
        concerned = {change.job_id for change in situation.corrections}
        unheld = {job_id for job_id in concerned if situation.statuses[job_id] is JobStatus.UNHELD}
        marked = {job.id for job in situation.observed if job.id in concerned and job.hints is not None}
        for job_id in unheld:
            records[job_id] = replace(records[job_id], stage=Stage.HOLDING)
        for change in self._sending.correct(situation):
            notes[change.job_id] = described(change)
            record = records.get(change.job_id)
            # Of a job that is held the placement is taken back first: the release that follows gives it to Slurm.
            is_freed = isinstance(change, Unpin) and not (change.hold or change.was_held)
            is_given = isinstance(change, Release | Advise) or is_freed
            if is_given and record is not None and record.stage is not Stage.OWNER_HELD:
                records[change.job_id] = replace(record, stage=Stage.RELEASED, is_noted=change.job_id in marked)
            elif _is_untold(change, record):
                records[change.job_id] = records[change.job_id].without_nodes()
            elif record is not None and change.job_id in unheld:
                records[change.job_id] = replace(record, stage=Stage.HELD)
        return notes

    def commit(self, situation: Situation, plan: Plan, notes: dict[int, str]) -> tuple[Plan, Unreachable | None]:
        """Carry the plan's actions out: pin and release every started job, one RPC each; add notes on all others.

        The actions are sent in the plan's order, except that all placements are sent together, in the place of the
        first one: the suspensions before it make room for them.

        Returns:
            The plan as it was carried out, and the error that ended the sending early (None: all was sent). Jobs whose
            placement was not sent are still held.
        """
        if not plan.actions:
            self._records.store()
            return replace(plan, waiting={**plan.waiting, **notes}) if notes else plan, None
        now_s = self._clock.now()
        sampled = self._record_placements(plan.starts, situation, now_s)
        first = next((at for at, action in enumerate(plan.actions) if isinstance(action, Start)), len(plan.actions))
        placed: list[Start] = []
        others, lost = self._change(situation, plan.actions[:first])
        if lost is None:
            orders = [self._placement(start, situation, samples=start.job_id in sampled) for start in plan.starts]
            lost = self._place(orders, placed, notes)
        self.placed += len(placed)
        if lost is None:
            self._records.store()
            later, lost = self._change(situation, plan.actions[first:])
            others += later
        notes |= {action.job_id: described(action) for action in others}
        return replace(plan, actions=(*placed, *others), waiting={**plan.waiting, **notes}), lost

    def _record_placements(self, starts: Sequence[Start], situation: Situation, now_s: float) -> frozenset[int]:
        """Store the placements that are about to be sent; return the ids of the jobs whose ways are to be changed.

        Raises:
            SnsError: the store does not answer. Nothing is placed then: nodes that the jobs have by now are not ours.
        """
        before = self._records.now
        self._records.now = before | {start.job_id: _placement_record(start, situation, now_s) for start in starts}
        try:
            self._records.store()
            return self._hearing.place(starts, situation, now_s)
        except SnsError:
            self._records.now = before
            raise

    def _place(
        self, orders: Sequence[PlacementOrder], placed: list[Start], notes: dict[int, str]
    ) -> Unreachable | None:
        """Send the placements and add those that Slurm accepted to `placed`; return the error that ended this early."""
        records = self._records.now
        try:
            for start, refusal in self._sending.place(orders):
                if refusal is None:
                    records[start.job_id] = replace(records[start.job_id], placed_s=self._clock.now())
                    self._log_placement(start, placed[-1] if placed else None)
                    placed.append(start)
                else:
                    notes[start.job_id] = self._note_refusal(refusal, start)
        except Unreachable as problem:
            return problem
        return None

    def _change(
        self, situation: Situation, actions: Sequence[Action]
    ) -> tuple[tuple[PolicyChange, ...], Unreachable | None]:
        """Send the actions that start no job; return those that were done, and the error that ended this early."""
        done: list[PolicyChange] = []
        try:
            done.extend(self._sending.carry_out(actions, situation, self._settings))  # keeps what came before
        except Unreachable as problem:
            return tuple(done), problem
        return tuple(done), None

    def _placement(self, start: Start, situation: Situation, *, samples: bool) -> PlacementOrder:
        """The order that places the job of this start; `samples`: its ways are to be changed while it runs."""
        job, record = situation.jobs[start.job_id], self._records.now[start.job_id]
        own_nice, memory_mb = record.nice, record.given_memory_mb or None
        tasks = None if start.alternative.tasks_per_node is None else job.tasks
        nice = boosted(own_nice, situation.priority_type)
        extra = mark.of_placement(job.hints, own_nice, self._grants.of(start, job, samples=samples))
        return PlacementOrder(start, nice, memory_mb, tasks, extra, Replaced.of(job))

    def _note_refusal(self, refusal: Refused, start: Start) -> str:
        """Log and record that Slurm refused the placement; return the reason why the job waits now."""
        why = f"Slurm refused the placement on {','.join(start.nodes)}: {refusal}"
        self._log(f"job {start.job_id}: {why}")
        record = self._records.now[start.job_id]
        if isinstance(refusal, NotSent):  # then nodes that the job has by now are its owner's
            record = replace(record, nodes=())
        self._records.now[start.job_id] = failed(record, why, self._settings, self._clock.now())
        return why

    def _log_placement(self, start: Start, previous: Start | None) -> None:
        """Log one line for a placed job, with the reason unless it equals that of the line before."""
        why = "" if previous is not None and previous.reason == start.reason else f": {start.reason}"
        self._log(f"job {start.job_id}: placed on {','.join(start.nodes)}{why}")


def _is_untold(change: Correction, record: JobRecord | None) -> bool:
    """Whether this takes a placement back from a job that its owner holds, and no word in its mark will say so."""
    is_owners = record is not None and record.stage is Stage.OWNER_HELD
    return is_owners and isinstance(change, Unpin) and not change.hold and change.mark is None


def _placement_record(start: Start, situation: Situation, now_s: float) -> JobRecord:
    """The record of a job that is about to be placed.

    If it gets whole nodes, it gets their memory, and its own memory request is kept, too.
    """
    job, demand = situation.jobs[start.job_id], start.alternative.demand
    tasks = 0 if start.alternative.tasks_per_node is None else job.tasks
    known = situation.records[start.job_id]
    record = replace(known, stage=Stage.PLACED, nodes=start.nodes, placed_s=now_s, tasks=tasks, difference="")
    record = replace(record, given_ways=demand.ways, given_bandwidth_gbps=demand.bandwidth_gbps)
    if not start.alternative.exclusive:
        return record
    return replace(
        record,
        memory_per_cpu_mb=job.memory_per_cpu_mb,
        memory_per_node_mb=job.memory_per_node_mb or 0,
        given_memory_mb=whole_memory_mb([situation.nodes[name] for name in start.nodes]),
    )
