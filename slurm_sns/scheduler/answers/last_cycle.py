"""The last cycle, planned again with one job changed or added, and what its nodes had when it was that job's turn.

Nothing of it is sent: the snapshot of that cycle is planned by the live policy, with all its other jobs as they were.
What was free at a job's turn follows from the record of the pass (placement.pass_record): it says which changes are
worth planning at all, and costs a thousandth of a plan.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.model import Alternative, Job, Plan, Seconds, Snapshot, Start
from slurm_sns.policies.base import Explanation
from slurm_sns.policies.placement.node_arrays import MEMORY, Indices
from slurm_sns.policies.placement.pass_record import MemberRecord, PassRecord
from slurm_sns.policies.placement.reasons import FreeCapacity
from slurm_sns.scheduler.observation import Observation, ObservedJob
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.eligibility import Eligibility
from slurm_sns.scheduler.snapshot.plannable import queue_key, sort_out
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.scheduler.snapshot.spreading import SpreadRules

PlanSnapshot = Callable[[Snapshot], Plan]


class LastCycle:
    """What the last cycle planned on, for plans of it with one job changed or added."""

    def __init__(self, situation: Situation, settings: Settings, spreading: SpreadRules, plan: PlanSnapshot) -> None:
        """`spreading` knows no alternatives of earlier cycles: those belong to the thread of the loop."""
        self._situation, self._settings, self._plan = situation, settings, plan
        self.snapshot = situation.snapshot
        self.observation: Observation = situation.counted or situation.observation
        self.claims = situation.backlog.claims
        self._eligibility = Eligibility(
            self.observation, float(self.snapshot.now_s), replace(spreading, known=None), self.claims
        )

    @property
    def now_s(self) -> Seconds:
        """The moment of that cycle."""
        return self.snapshot.now_s

    def job_of(self, observed: ObservedJob, like: Job | None = None) -> tuple[Job, Explanation | None]:
        """The job as that cycle would have planned it, and how its alternatives came about.

        It has the place in the queue of `like`, the same job as it is now, if that is given.

        Raises:
            Infeasible: it can never be placed so.
            Closed: it could not start in that cycle, whatever is free.
        """
        found = sort_out(
            [observed],
            self._situation.surveyed.tries,
            self.observation,
            self._settings,
            eligibility=self._eligibility,
            may_withhold=lambda _: like is None or like.withholds,
        )
        if observed.id in found.infeasible:
            raise Infeasible(found.infeasible[observed.id])
        if observed.id in found.closed:
            raise Closed(found.closed[observed.id])
        made = found.waiting[0] if found.waiting else found.arrays[0][0]
        if like is not None:
            made = replace(made, order=like.order, over_aged=like.over_aged)
        return made, found.explanations.get(observed.id)

    def with_job(self, job: Job) -> Snapshot:
        """The snapshot with this job: where it waits already, else at its place in the queue."""
        waiting = [job if each.id == job.id else each for each in self.snapshot.waiting]
        if all(each is not job for each in waiting):
            insort(waiting, job, key=queue_key)
        return replace(self.snapshot, waiting=tuple(waiting))

    def plan(self, job: Job) -> Plan:
        """The plan of that cycle with this job."""
        return self._plan(self.with_job(job))

    def start_of(self, job: Job) -> Start | None:
        """Where the job would have started in that cycle; None if it would have waited."""
        return next((start for start in self.plan(job).starts if start.job_id == job.id), None)


class Turn:
    """What the nodes had at the job's turn in one member's cycle of a pass, and how many jobs that member matched."""

    def __init__(self, record: PassRecord, of: MemberRecord, turn: int) -> None:
        self.matched = of.matched
        self._moment = FreeCapacity(record, of, of.entries_before(turn))  # before capacity is withheld for it
        #: In how many seconds the first job starts for which a place is kept from its start on; infinite without one.
        self.first_promise_s = float(min(self._moment.promised.values(), default=inf))

    def passes(self, job: Job) -> bool:
        """Whether no place that is kept from a start on is closed to the job: it ends before."""
        return (inf if job.expected_run_s is None else job.expected_run_s) <= self.first_promise_s

    def fitting(self, alternative: Alternative, job: Job) -> Indices:
        """The nodes that have enough for the alternative and that the job may use."""
        return self._moment.fitting(alternative, job)

    def holds(self, job: Job) -> bool:
        """Whether enough nodes that are connected fit for one of its alternatives."""
        return any(self._suffices(each, self.fitting(each, job)) for each in job.alternatives)

    def most_memory_mb(self, alternative: Alternative, job: Job, *, off_promised: bool = False) -> int:
        """The largest memory on each node with which the alternative fits, all else as it is; 0 where none does.

        It is an order statistic: what is free on the n-th best of the nodes that have all else, for n nodes; where
        switches join nodes, on those of the best switch. `off_promised`: without the nodes of promised places.
        """
        bare = replace(alternative, demand=alternative.demand._replace(memory_mb=1))
        columns = self.fitting(bare, job)
        if off_promised:
            columns = np.setdiff1d(columns, self._moment.promised_nodes, assume_unique=True)
        memory_mb = self._moment.free[MEMORY, columns]
        amounts = np.unique(memory_mb)
        too_large = bisect_left(
            amounts, True, key=lambda amount: not self._suffices(bare, columns[memory_mb >= amount])
        )
        return int(amounts[too_large - 1]) if too_large else 0

    def _suffices(self, alternative: Alternative, fitting: Indices) -> bool:
        return len(fitting) >= alternative.nodes and not self._moment.apart(alternative, fitting)


def turns(plan: Plan, job_id: int) -> Iterator[Turn]:
    """The job's turns in the members' cycles that have reached it, that of the chosen member first.

    None where the policy keeps no record of the pass, or no cycle came as far as the job.
    """
    record = plan.record
    place = record.place_of(job_id) if isinstance(record, PassRecord) else None
    if not isinstance(record, PassRecord) or place is None:
        return
    for name in sorted(record.members, key=lambda name: name != plan.report.chosen):
        turn = record.members[name].turn_of(place)
        if turn is not None:
            yield Turn(record, record.members[name], turn)
