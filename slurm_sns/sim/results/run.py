"""The run of a trace: when each job started and ended, where and in which alternative, and every cycle.

All results of a simulation are written and computed from it, whatever has simulated it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative
from slurm_sns.policies.placement.node_arrays import MEMORY, NodeArrays
from slurm_sns.sim.traces.trace_arrays import TraceArrays

Integers = NDArray[np.int64]


class Cycles(NamedTuple):
    """The cycles of a run, or of a part of it."""

    time_s: Integers
    waiting: Integers
    started: Integers
    chosen: Integers  #: a member of the portfolio, -1 for none
    winners: Integers  #: a bit for each member that reached the maximum


@dataclass(frozen=True)
class TraceRun:
    """The jobs in the order of the records; `choice` is the position of a job's alternative among those of its kind.

    A job on one node has it in `place`, a job on several has its nodes in `spread` from `place` on. Moments are
    integers, or floats if some are no whole seconds. `members` are the portfolio in its order, none for a policy that
    has none.
    """

    records: TraceArrays
    start_s: NDArray[Any]
    end_s: NDArray[Any]
    choice: NDArray[np.int8]
    place: Integers
    spread: NDArray[np.int32]
    cycles: Cycles
    members: Sequence[str]

    def alternative(self, job: int) -> Alternative:
        """The alternative in which a job ran."""
        return self.records.choices[int(self.records.kind[job])][int(self.choice[job])]

    def nodes(self, job: int) -> Sequence[int]:
        """The nodes of a job, by their index in the pool."""
        count, begin = self.alternative(job).nodes, int(self.place[job])
        return [begin] if count == 1 else self.spread[begin : begin + count].tolist()

    def held(self, node_arrays: NodeArrays) -> NDArray[np.float64]:
        """Cores and memory that each job held, shape (2, jobs): of a job on empty nodes all that these have."""
        choices = [each for of_kind in self.records.choices for each in of_kind]
        of_job = np.cumsum([0, *map(len, self.records.choices)])[self.records.kind] + self.choice
        nodes = np.array([each.nodes for each in choices])
        demand = np.array([each.demand[: MEMORY + 1] for each in choices])
        held: NDArray[np.float64] = (nodes[:, np.newaxis] * demand).astype(np.float64).T[:, of_job]
        whole = np.flatnonzero(np.array([each.exclusive for each in choices])[of_job])
        if len(whole):
            is_one = nodes[of_job[whole]] == 1
            for row, capacity in enumerate(node_arrays.capacity[: MEMORY + 1]):
                up_to = np.concatenate([[0], np.cumsum(capacity[self.spread])])
                first = np.where(is_one, 0, self.place[whole])
                last = np.where(is_one, 0, first + nodes[of_job[whole]])
                alone = capacity[np.where(is_one, self.place[whole], 0)]
                held[row, whole] = np.where(is_one, alone, up_to[last] - up_to[first])
        return held
