"""What is free on all nodes at one moment of a cycle, with and without the withheld capacity."""

import numpy as np

from slurm_sns.model import Alternative, Job
from slurm_sns.policies.placement.cycle import SMALLEST, CycleState
from slurm_sns.policies.placement.node_arrays import Amounts, Indices, ever_holding, holding, taken


class CycleCapacity:
    """What is free now on the nodes that take part in the cycle, and at its start on the other nodes.

    `free` does not include withheld capacity; `free_if_none_withheld` does. Capacity that is withheld for the job
    `observed` counts as free in both: it is there for this job, and was withheld because it is not enough.
    """

    def __init__(self, cycle: CycleState, observed: int | None = None) -> None:
        """Copy the state of a cycle that is running or has run; `observed` is the id of the job to be explained."""
        opening = cycle.opening
        self.node_arrays = opening.node_arrays
        self.free: Amounts = opening.free_amounts.copy()
        self.free[:, opening.nodes] = cycle.free
        self.free_if_none_withheld = self.free.copy()
        self.withheld_for: dict[int, tuple[str, ...]] = {}
        for job, alternative, nodes in cycle.withheld:
            took = taken(self.node_arrays.capacity, alternative, nodes)
            self.free_if_none_withheld[:, nodes] += took
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

    def fitting(self, alternative: Alternative, job: Job, *, if_none_withheld: bool = False) -> Indices:
        """The allowed nodes on which the alternative fits, and which have room for the smallest job."""
        free = self.free_if_none_withheld if if_none_withheld else self.free
        mask = holding(free, alternative.demand) & holding(free, SMALLEST)
        if alternative.exclusive:
            mask &= (free == self.node_arrays.capacity).all(axis=0)
        permitted = self.permitted(job)
        return permitted[mask[permitted]]

    def in_the_way(self, alternative: Alternative, job: Job) -> tuple[int, ...]:
        """The jobs for which capacity is withheld, if the alternative would fit without that; otherwise empty."""
        if self.withheld_for and len(self.fitting(alternative, job, if_none_withheld=True)) >= alternative.nodes:
            return tuple(self.withheld_for)
        return ()
