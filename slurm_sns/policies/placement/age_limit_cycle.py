"""A cycle that keeps nodes for the oldest over-aged job that cannot start: Spread-n-Share's age limit.

At its first scale that the cluster can hold, the n nodes with the fewest used cores (the machine list's order on ties)
are kept: nobody else gets anything on them. One job at a time. They are chosen anew in each cycle; kept nodes only ever
empty, so the sum of the n fewest used cores never grows and the job starts at last.

Source: Spread-n-Share (SC'19), section 4.4, asks that nobody starves; how is our choice.
"""

from slurm_sns.model import Job
from slurm_sns.policies.placement.cycle import Cycle
from slurm_sns.policies.placement.node_arrays import CORES, Amounts, Indices


class KeepingCycle(Cycle):
    """A cycle in which an over-aged job that finds no place has whole nodes kept for it."""

    _keeps = False

    def _withhold(self, job: Job) -> None:
        """Keep nodes for the first over-aged job; at reserving positions withhold capacity as ever."""
        if not job.over_aged:
            super()._withhold(job)
            return
        if not self._keeps:
            self._keeps = self._withhold_first(job, self._used_cores, whole_nodes=True)

    def _used_cores(self, columns: Indices) -> Amounts:
        used: Amounts = self.opening.capacity[CORES, columns] - self.free[CORES, columns]
        return used
