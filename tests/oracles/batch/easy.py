"""EASY backfilling: later jobs start now if the first job that finds no place can still start when it is expected to.

Jobs start in queue order up to the first that finds no place, the head job. Its shadow time is the earliest time at
which the same way of placing puts it, looked for on copies of what will be free while the active jobs end in the order
of their expected ends. A later job that finds a place now starts if it is expected to end by the shadow time, or if
the head job finds a place at the shadow time with this job still running. If the head job then finds none, a place for
the later job is sought once more, outside the head job's place.

- A job without an expected run time starts only if it leaves the head job's place free for ever.
- While the end of a job is not known, its nodes are expected to be free only after all known ends.
- A job that has outlived its expected run time is expected to end at once.
- A job that finds no place even when all active jobs have ended holds back no other: it is no head job.

Where each task has a whole node, this is EASY by counting nodes: the extra nodes are those that the head job leaves
free at the shadow time.

Source: D. Lifka, The ANL/IBM SP scheduling system, JSSPP 1995; shadow time and extra nodes as in A. Mu'alem and
D. Feitelson, IEEE TPDS 12(6), 2001. It is a baseline of Dynamic fractional resource scheduling (IPDPS 2010, section
IV-B), there with perfect knowledge of run times.
"""

from bisect import bisect_left
from math import inf, isinf

import numpy as np

from oracles.batch.batch_pass import BatchPass, Placer
from oracles.batch.expected_times import end_if_started
from oracles.batch.look_ahead import LookAhead
from slurm_sns.model import Job, Plan, Snapshot
from slurm_sns.policies.base import MakeAlternatives, no_explanation
from slurm_sns.policies.baselines.expected_times import COINCIDENT_S
from slurm_sns.policies.baselines.parameters import EasyParameters
from slurm_sns.policies.placement.kinds_of_jobs import OncePerKind
from slurm_sns.policies.placement.node_arrays import Amounts
from slurm_sns.policies.placement.pass_record import Match


class EasyBackfilling:
    """The policy EASY over a way of placing. Of the parameters it uses all but `placement`."""

    explain = staticmethod(no_explanation)

    def __init__(self, placing: Placer, parameters: EasyParameters | None = None) -> None:
        self._placing = placing
        self._parameters = parameters or EasyParameters()

    @property
    def alternatives(self) -> MakeAlternatives:
        """How the alternatives of a job are made: as the way of placing does."""
        return self._placing.alternatives

    def plan(self, snapshot: Snapshot) -> Plan:
        """Start the jobs before the head job, then those behind it that do not delay it."""
        batch = BatchPass(self._placing, snapshot)
        head: HeadJob | None = None
        reasons: dict[int, str] = {}
        for job in batch.jobs(self._parameters.queue_depth):
            match = batch.place_now(job)
            if head is None and match is not None:
                batch.start(match, "in queue order")
            elif head is None:
                head = earliest(batch, job, snapshot)
                expected = "it finds none after all active jobs have ended" if head is None else head.expectation()
                reasons[job.id] = f"{batch.lack(job)}; {expected}"
            elif match is None:
                reasons[job.id] = "finds no place now"
            elif not head.backfill(match, extra_nodes_only=self._parameters.extra_nodes_only):
                reasons[job.id] = f"would delay job {head.job.id}; {head.expectation()}"
        return batch.plan(reasons, f"behind the first {self._parameters.queue_depth} jobs of the queue (queue_depth)")


class HeadJob:
    """The head job with its place at the shadow time, while later jobs start beside it."""

    def __init__(self, batch: BatchPass, snapshot: Snapshot, place: Match, shadow_s: float, free: Amounts) -> None:
        """`free` is what will be free at the shadow time; the head job's place is in it."""
        self.job = place.job
        self._batch = batch
        self._now_s = snapshot.now_s
        self._place = place
        self._shadow_s = shadow_s
        self._free = free
        self._places = OncePerKind(self._place_beside)

    def expectation(self) -> str:
        """When this job can start, in words."""
        if isinf(self._shadow_s):
            return f"job {self.job.id} can start when jobs without an expected end have ended"
        return f"job {self.job.id} is expected to start in {self._shadow_s - float(self._now_s):.0f} s"

    def backfill(self, match: Match, *, extra_nodes_only: bool) -> bool:
        """Start a later job, here or at another place, if it does not delay the head job; return whether it starts."""
        end_s = end_if_started(match.job, match.alternative, self._now_s)
        if end_s < inf and end_s <= self._shadow_s + COINCIDENT_S and not extra_nodes_only:
            self._batch.start(match, f"backfilled: it is expected to end before job {self.job.id} starts")
        else:
            beside = self._places.of(match.job)
            if beside is None:
                return False
            self._batch.start(beside._replace(job=match.job), f"backfilled: it leaves a place for job {self.job.id}")
            self._take(beside)
        self._places = OncePerKind(self._place_beside)
        return True

    def _place_beside(self, job: Job) -> Match | None:
        """A place for a job that still runs at the shadow time, None if the head job would find none then."""
        match = self._batch.place_now(job)
        if match is not None and self._batch.place(self.job, self._less(match)) is not None:
            return match
        return self._batch.place(job, np.minimum(self._batch.free, self._less(self._place)))

    def _take(self, match: Match) -> None:
        self._free = self._less(match)
        place = self._batch.place(self.job, self._free)
        assert place is not None
        self._place = place

    def _less(self, match: Match) -> Amounts:
        """What is free at the shadow time without this place."""
        free = self._free.copy()
        free[:, match.nodes] -= self._batch.node_arrays.taken(match.alternative, match.nodes)
        return free


def earliest(batch: BatchPass, job: Job, snapshot: Snapshot) -> HeadJob | None:
    """The job with its place at the earliest expected end of active jobs at which it finds one; None if at none."""
    ahead = LookAhead(snapshot, batch.node_arrays, batch.free, batch.matches)
    # What is free only grows as jobs end, and with it what finds a place: so bisection finds the first end.
    at = bisect_left(ahead.ends_s, True, key=lambda end_s: batch.place(job, ahead.free_at(end_s)) is not None)
    if at == len(ahead.ends_s):
        return None
    free = ahead.free_at(ahead.ends_s[at])
    place = batch.place(job, free)
    assert place is not None
    return HeadJob(batch, snapshot, place, ahead.ends_s[at], free)
