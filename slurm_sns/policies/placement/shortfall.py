"""What is free on all nodes at one moment of a cycle, with and without the withheld capacity, and what a job lacks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.placement.cycle import SMALLEST, CycleState
from slurm_sns.policies.placement.node_arrays import Amounts, Indices, NodeArrays, ever_holding, holding, taken


class FreeCapacity:
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

    def apart(self, alternative: Alternative, fitting: Indices) -> str:
        """That no switch joins enough of the nodes on which the alternative fits; empty where one does."""
        most = self.node_arrays.regions.most_together(fitting)
        is_apart = 1 < alternative.nodes <= len(fitting) and most < alternative.nodes
        return f"; no switch joins more than {most} of them" if is_apart else ""

    def in_the_way(self, alternative: Alternative, job: Job) -> tuple[int, ...]:
        """The jobs for which capacity is withheld, if the alternative would fit without that; otherwise empty."""
        if not self.withheld_for:
            return ()
        fitting = self.fitting(alternative, job, if_none_withheld=True)
        is_enough = len(fitting) >= alternative.nodes and not self.apart(alternative, fitting)
        return tuple(self.withheld_for) if is_enough else ()


@dataclass(frozen=True, slots=True)
class Lack:
    """A node and how much it lacks of each resource (0 where there is enough)."""

    node: str
    lacks: Resources
    not_empty: bool = False

    def __str__(self) -> str:
        """As in: c3 lacks 4 cores and 2000 MiB."""
        units = (
            "core" if self.lacks.cores == 1 else "cores",
            "MiB",
            "ways",
            "GB/s of bandwidth",
            "CLOSID (each job with cache ways there has one)",
        )
        parts = [f"{amount} {unit}" for amount, unit in zip(self.lacks, units, strict=True) if amount > 0]
        if parts:
            return f"{self.node} lacks {' and '.join(parts)}"
        return (
            f"{self.node} is not empty" if self.not_empty else f"{self.node} has no room for even 1 core and 1024 MiB"
        )


def nearest(
    node_arrays: NodeArrays, free: Amounts, columns: Indices, alternative: Alternative, count: int
) -> tuple[Lack, ...]:
    """The `count` nodes, among these columns, that come nearest to fitting, the nearest first.

    Fewer missing resources are nearer, then a smaller sum of missing amounts as shares of the node's capacity.
    """
    if not len(columns):
        return ()
    among = slice(None) if len(columns) == len(node_arrays.names) else columns  # a slice of all nodes needs no copy
    kinds, shares = np.zeros(len(columns), np.int64), np.zeros(len(columns))
    for row, needed in enumerate(alternative.demand):
        if needed > 0:
            lacks = np.maximum(needed - free[row, among], 0)
            kinds += lacks > 0
            shares += lacks / np.maximum(node_arrays.capacity[row, among], 1)
    not_empty = np.zeros(len(columns), np.bool_)
    if alternative.exclusive:
        not_empty = (free[:, among] != node_arrays.capacity[:, among]).any(axis=0)
        kinds += not_empty
    return tuple(
        Lack(
            node_arrays.names[columns[at]],
            _lacking(free, columns[at], alternative.demand),
            not_empty=bool(not_empty[at]),
        )
        for at in _first(kinds, shares, count)
    )


def _first(kinds: Amounts, shares: NDArray[np.float64], count: int) -> Indices:
    """The first `count` columns by `kinds`, then by `shares`; on a tie the first in the machine list."""
    if count == 1:  # for one node there is no need to sort ten thousand
        fewest = np.flatnonzero(kinds == kinds.min())
        return fewest[[np.argmin(shares[fewest])]]
    return np.lexsort((shares, kinds))[:count]


def _lacking(free: Amounts, column: np.intp, demand: Resources) -> Resources:
    return Resources(
        *(max(needed - int(free[row, column]), 0) if needed > 0 else 0 for row, needed in enumerate(demand))
    )
