"""What is free on all nodes of the pool at one moment of a cycle, with and without the capacity it withholds."""

import numpy as np

from slurm_sns.model import Alternative, Job
from slurm_sns.policies.placement.cycle import SMALLEST, CycleState
from slurm_sns.policies.placement.node_arrays import Amounts, Indices, ever_holding, holding, taken


class CycleCapacity:
    """A copy of a cycle's state: of the nodes in the cycle as it stands, of the others as they were at its start.

    `free` is net of what is withheld, `free_without_withheld` is not. Capacity withheld for `observed`, the job that we
    ask about, counts as free in both: it is there for that very job, and was withheld because it is not enough.
    """

    def __init__(self, cycle: CycleState, observed: int | None = None) -> None:
        """Read the state of a cycle that is running or has run."""
        opening = cycle.opening
        self.node_arrays = opening.node_arrays
        self.free: Amounts = opening.free_amounts.copy()
        self.free[:, opening.nodes] = cycle.free
        self.free_without_withheld = self.free.copy()
        self.withheld_for: dict[int, tuple[str, ...]] = {}
        for job, alternative, nodes in cycle.withheld:
            took = taken(self.node_arrays.capacity, alternative, nodes)
            self.free_without_withheld[:, nodes] += took
            if job.id == observed:
                self.free[:, nodes] += took
            else:
                self.withheld_for[job.id] = tuple(self.node_arrays.names[node] for node in nodes)

    def permitted(self, job: Job) -> Indices:
        """The nodes the job may use."""
        mask = self.node_arrays.allows(job.allowed)
        return np.arange(len(self.node_arrays.names)) if mask is None else np.flatnonzero(mask)

    def large_enough(self, alternative: Alternative, job: Job) -> int:
        """The number of allowed nodes that hold the alternative when they are empty."""
        return int(np.count_nonzero(ever_holding(self.node_arrays, alternative, job.allowed)))

    def fitting(self, alternative: Alternative, job: Job, *, without_withheld: bool = False) -> Indices:
        """The allowed nodes on which the alternative fits; those without room for the smallest job are in no cycle."""
        free = self.free_without_withheld if without_withheld else self.free
        mask = holding(free, alternative.demand) & holding(free, SMALLEST)
        if alternative.exclusive:
            mask &= (free == self.node_arrays.capacity).all(axis=0)
        permitted = self.permitted(job)
        return permitted[mask[permitted]]

    def in_the_way(self, alternative: Alternative, job: Job) -> tuple[int, ...]:
        """The jobs for which capacity is withheld that would make the alternative fit; empty when it would not."""
        if self.withheld_for and len(self.fitting(alternative, job, without_withheld=True)) >= alternative.nodes:
            return tuple(self.withheld_for)
        return ()
