"""A cycle that keeps nodes for the oldest over-aged job that cannot start: Spread-n-Share's age limit.

The job's first alternative that the cluster could ever hold asks for n nodes. The n nodes with the fewest used cores
(the first in the machine list on ties) are kept: no other job gets anything on them. Nodes are kept for one job at a
time and chosen anew in each cycle. No job starts on kept nodes, so the sum of the n smallest numbers of used cores
never grows, and at last the job starts.

Source: Spread-n-Share (SC'19), section 4.4, asks that no job starves. How we prevent it is our own choice.
"""

from slurm_sns.model import Job
from slurm_sns.policies.placement.cycle import Cycle
from slurm_sns.policies.placement.node_arrays import CORES, Amounts, Indices


class KeepingCycle(Cycle):
    """A cycle that keeps whole nodes for the first over-aged job that finds no place."""

    _keeps = False

    def _withhold(self, job: Job) -> None:
        """Keep whole nodes for the first over-aged job; for other jobs withhold capacity as `Cycle` does."""
        if not job.over_aged:
            super()._withhold(job)
            return
        if not self._keeps:
            self._keeps = self._withhold_first(job, self._used_cores, whole_nodes=True)

    def _used_cores(self, columns: Indices) -> Amounts:
        used: Amounts = self.opening.capacity[CORES, columns] - self.free[CORES, columns]
        return used
