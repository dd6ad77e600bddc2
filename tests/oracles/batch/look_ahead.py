"""What will be free on the nodes when active jobs have ended, if they end as expected."""

from collections.abc import Sequence

import numpy as np

from oracles.batch.expected_times import end_if_started, expected_end_s
from slurm_sns.model import Resources, Snapshot
from slurm_sns.policies.baselines.expected_times import COINCIDENT_S
from slurm_sns.policies.placement.node_arrays import Amounts, NodeArrays
from slurm_sns.policies.placement.pass_record import Match


class LookAhead:
    """The expected ends of the active jobs and of those that start now.

    `ends_s` are the distinct ones, ascending. The last is infinite if the end of some job is not known: at that time
    all jobs have ended.
    """

    def __init__(self, snapshot: Snapshot, node_arrays: NodeArrays, free: Amounts, started: Sequence[Match]) -> None:
        """`free` is what the active and the started jobs leave."""
        at = {name: column for column, name in enumerate(node_arrays.names)}
        columns: list[int] = []
        ends_s: list[float] = []
        demands: list[Resources] = []
        for job in snapshot.active:
            # A node that is down is not in the snapshot, and nothing can be placed on it when the job ends.
            parts = [at[name] for name in job.nodes if name in at]
            columns += parts
            ends_s += [expected_end_s(job, snapshot.now_s)] * len(parts)
            demands += [job.demand] * len(parts)
        for match in started:
            columns += match.nodes.tolist()
            ends_s += [end_if_started(match.job, match.alternative, snapshot.now_s)] * len(match.nodes)
            demands += [match.alternative.demand] * len(match.nodes)
        self._capacity = node_arrays.capacity
        self._free = free
        self._columns = np.array(columns, dtype=np.intp)
        self._ends_s = np.array(ends_s, dtype=np.float64)
        self._demands = node_arrays.amounts(demands)
        self.ends_s: list[float] = np.unique(self._ends_s).tolist()

    def free_at(self, time_s: float) -> Amounts:
        """What is free at this time, when the jobs that are expected to end by then have ended.

        A node on which no job is left is empty: an exclusive job has held more of it than its demand.
        """
        ended = self._ends_s <= time_s + COINCIDENT_S
        free = self._free.copy()
        columns, count = self._columns[ended], free.shape[1]
        free += np.array([np.bincount(columns, row, count) for row in self._demands[:, ended]]).astype(np.int64)
        emptied = np.bincount(columns, minlength=count) > 0
        emptied &= np.bincount(self._columns[~ended], minlength=count) == 0
        free[:, emptied] = self._capacity[:, emptied]
        return free
