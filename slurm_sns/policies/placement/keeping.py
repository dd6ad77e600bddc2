"""A cycle that keeps nodes for the oldest over-aged job that cannot start: Spread-n-Share's age limit.

At its first scale that the cluster can hold, the n nodes with the fewest used cores (the machine list's order on ties)
are kept: nobody else gets anything on them. One job at a time. They are chosen anew in each cycle; kept nodes only ever
empty, so the sum of the n fewest used cores never grows and the job starts at last.

Source: Spread-n-Share (SC'19), section 4.4, asks that nobody starves; how is our choice.
"""

from dataclasses import replace

import numpy as np

from slurm_sns.model import Job
from slurm_sns.policies.placement.cycle import Cycle, Withheld
from slurm_sns.policies.placement.pool import CORES, holding
from slurm_sns.policies.placement.size import fits_ever


class KeepingCycle(Cycle):
    """A cycle in which an over-aged job that finds no place has whole nodes kept for it."""

    _keeps = False

    def _withhold(self, job: Job) -> None:
        """Keep nodes for the first over-aged job; at reserving positions withhold capacity as ever."""
        if not job.over_aged:
            super()._withhold(job)
            return
        if self._keeps:
            return
        for alternative in job.alternatives:
            if not fits_ever(self.opening.pool, alternative, job.allowed):
                continue
            suitable = holding(self.opening.capacity, alternative.demand) & self._open
            if job.allowed is not None:
                suitable &= self.opening.allows(job.allowed)
            columns = np.flatnonzero(suitable)
            used = self.opening.capacity[CORES, columns] - self.free[CORES, columns]
            columns = np.sort(columns[np.argsort(used, kind="stable")[: alternative.nodes]])
            if len(columns):
                whole = replace(alternative, exclusive=True)
                self._take(columns, whole)
                self.withheld.append(Withheld(job, whole, self.opening.nodes[columns]))
                self._keeps = True
            return
