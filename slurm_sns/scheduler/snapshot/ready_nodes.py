"""Which nodes are ready for a job first, and when, if jobs end at their time limits. Pure; needs numpy."""

from collections.abc import Mapping, Sequence

import numpy as np

from slurm_sns.model import NOTHING, Alternative, Resources
from slurm_sns.policies.placement.kernel_arrays import NOBODY
from slurm_sns.policies.placement.node_arrays import MEMORY, NodeArrays
from slurm_sns.policies.placement.ready_time_kernel import Active, coming_free, earliest_start, node_room
from slurm_sns.scheduler.observation import ObservedNode


class ReadyNodes:
    """The nodes of one cycle with what is free there now (none where it is not stated), and what comes free later."""

    def __init__(
        self, nodes: Sequence[ObservedNode], free: Mapping[str, Resources], active: Active, now_s: float
    ) -> None:
        self._nodes = NodeArrays.sized([node.name for node in nodes], [node.capacity for node in nodes])
        self._names = self._nodes.names
        self._now_s = now_s
        self._free = self._nodes.amounts([free.get(name, NOTHING) for name in self._names])
        self._releases = coming_free(self._nodes, self._free, active, now_s)

    def soonest(
        self, columns: Sequence[int], alternative: Alternative, *, takes_all: bool
    ) -> tuple[frozenset[str], float]:
        """The nodes, of these columns, on which the alternative can start first, and when (inf: not known).

        Of nodes that are ready at the same moment, those with the most free now are taken, cores before memory. With
        `takes_all` the job needs all cores and all memory of its nodes, whatever its demand.
        """
        need = np.array(self._nodes.demand(alternative.demand), np.int64)[:, np.newaxis]
        if takes_all:
            need = self._nodes.capacity.copy()
            need[MEMORY + 1 :] = 0
        may_use = np.zeros(len(self._names), np.bool_)
        may_use[columns] = True
        may_use &= (need <= self._nodes.capacity).all(axis=0)
        room = node_room(need - self._free, np.where(may_use, 0, NOBODY))
        start_s = earliest_start(room, alternative.nodes, self._releases, self._now_s)
        able = np.flatnonzero(may_use)
        chosen = able[np.lexsort((*-self._free[::-1, able], room.ready_s[able]))[: alternative.nodes]]
        return frozenset(self._names[column] for column in chosen), start_s
