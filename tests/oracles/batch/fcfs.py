"""FCFS, first come, first served: jobs start in queue order, and the first that finds no place stops the cycle.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section IV-B: one of its two batch baselines.
"""

from oracles.batch.batch_pass import BatchPass, Placer
from slurm_sns.model import Plan, Snapshot
from slurm_sns.policies.base import MakeAlternatives, no_explanation
from slurm_sns.policies.baselines.parameters import BatchParameters


class FirstComeFirstServed:
    """The policy FCFS over a way of placing. Of the parameters it uses the queue depth only."""

    explain = staticmethod(no_explanation)

    def __init__(self, placing: Placer, parameters: BatchParameters | None = None) -> None:
        self._placing = placing
        self._queue_depth = (parameters or BatchParameters()).queue_depth

    @property
    def alternatives(self) -> MakeAlternatives:
        """How the alternatives of a job are made: as the way of placing does."""
        return self._placing.alternatives

    def plan(self, snapshot: Snapshot) -> Plan:
        """Start the jobs before the first that finds no place."""
        batch = BatchPass(self._placing, snapshot)
        for job in batch.jobs(self._queue_depth):
            match = batch.place_now(job)
            if match is None:
                return batch.plan({job.id: batch.lack(job)}, f"behind job {job.id}, which finds no place yet")
            batch.start(match, "in queue order")
        return batch.plan({}, f"behind the first {self._queue_depth} jobs of the queue (queue_depth)")
