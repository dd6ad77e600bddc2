"""One scheduling pass with one heuristic: the plain twin of the compiled kernel.

Jobs are taken in queue order, and the alternatives of a job best first. The first alternative for which enough nodes
are free is matched to the nodes that the heuristic scores best, and that capacity is gone for the rest of the cycle.
When a job at one of the first `reservations` positions finds no place, capacity is withheld for it, so that jobs behind
it cannot take it in this cycle.

Source: Max-Jobs paper (JSSPP 2013), sections 1, 2 and 5, and its authors' simulator. The paper withholds for every
unmatched job, the simulator at the first `reservations` positions of the queue. Neither says what to do for a job on n
nodes: here capacity is withheld on the n suitable nodes with the most free memory, or on all suitable nodes if there
are fewer.

Spread-n-Share (SC'19), section 4.4, asks that no job starves. How `KeepingCycle` prevents it is our own choice. The
first alternative of the first over-aged job without a place that the cluster could ever hold asks for n nodes, and the
n nodes with the fewest used cores (the first in the machine list on ties) are kept for it. Nodes are kept for one job
at a time and chosen anew in each cycle. No job starts on kept nodes, so the sum of the n smallest numbers of used cores
never grows, and at last the job starts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.placement.best_by_score import GroupHeuristic, best, one_group
from slurm_sns.policies.placement.fair_order import FairOrder, WaitingQueue
from slurm_sns.policies.placement.node_arrays import (
    CORES,
    MEMORY,
    Amounts,
    Indices,
    Mask,
    NodeArrays,
    ever_holding_together,
    held,
    holding,
    taken,
)
from slurm_sns.policies.placement.regions import Region, Regions

#: (nodes, demand) of an alternative that found too few nodes.
Failure = tuple[int, Resources]
Allowed = frozenset[str] | None


class FailedShapes:
    """The alternatives that have failed in this cycle, by their shape: allowed nodes, exclusive, nodes, demand.

    Free capacity only shrinks while a cycle runs. So an alternative fails if it asks for at least as much as one that
    has failed, with the same allowed nodes. This is exact, and it makes a long queue of similar jobs cheap.
    """

    def __init__(self) -> None:
        self._seen: set[tuple[Allowed, bool, int, Resources]] = set()
        self._failures: dict[tuple[Allowed, bool], list[Failure]] = {}

    def cover(self, alternative: Alternative, allowed: Allowed) -> bool:
        """Whether this alternative must fail because an equal or smaller one has failed."""
        shape = (allowed, alternative.exclusive, alternative.nodes, alternative.demand)
        if shape in self._seen:
            return True
        failures = self._failures.get(shape[:2])
        if failures is None:
            return False
        for nodes, demand in failures:
            if nodes <= alternative.nodes and demand.within(alternative.demand):
                self._seen.add(shape)
                return True
        return False

    def add(self, alternative: Alternative, allowed: Allowed) -> None:
        """Remember that this alternative found too few nodes, and forget failures that are at least as large."""
        nodes, demand = alternative.nodes, alternative.demand
        self._seen.add((allowed, alternative.exclusive, nodes, demand))
        failures = self._failures.setdefault((allowed, alternative.exclusive), [])
        failures[:] = [old for old in failures if not (nodes <= old[0] and demand.within(old[1]))]
        failures.append((nodes, demand))


#: The smallest job: a node without room for it takes no part in a cycle.
SMALLEST = Resources(cores=1, memory_mb=1024)

#: (capacity, free, candidates, demand) -> one score per candidate; the smallest is the best.
Heuristic = Callable[[Amounts, Amounts, Indices, Resources], NDArray[np.generic]]


class Match(NamedTuple):
    """A job, the alternative it runs in and its nodes, by their index in the node arrays."""

    job: Job
    alternative: Alternative
    nodes: Indices


class Withheld(NamedTuple):
    """Capacity that no other job gets in this cycle; the nodes are given by their index in the node arrays."""

    job: Job
    alternative: Alternative
    nodes: Indices


class CycleStep(NamedTuple):
    """What a cycle did with the next job of the ordered queue."""

    job: Job
    match: Match | None


@dataclass(frozen=True, slots=True)
class CycleLimits:
    """How many jobs a cycle looks at and how often it withholds capacity: see MatchingParameters."""

    queue_depth: int
    reservations: int


@dataclass
class CycleStart:
    """The state at the start of a cycle, the same for every heuristic: the nodes with room for the smallest job.

    `nodes` are their indices in the node arrays; `capacity` and `free` have a column for each. `free_amounts` has a
    column for every node of the cluster; `total` is the capacity of the whole cluster.
    """

    node_arrays: NodeArrays
    free_amounts: Amounts
    nodes: Indices
    capacity: Amounts
    free: Amounts
    total: Resources
    regions: Regions
    _allowed: dict[frozenset[str], Mask] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, node_arrays: NodeArrays, free: Amounts) -> "CycleStart":
        """The start of a cycle on nodes of which this much is free."""
        nodes = np.flatnonzero(holding(free, SMALLEST))
        return cls(
            node_arrays,
            free,
            nodes,
            node_arrays.capacity[:, nodes],
            free[:, nodes],
            node_arrays.total,
            node_arrays.regions.among(nodes),
        )

    def allows(self, allowed: frozenset[str]) -> Mask:
        """Which of the nodes in the cycle a job may use."""
        if allowed not in self._allowed:
            mask = self.node_arrays.allows(allowed)
            assert mask is not None  # noqa: S101  a set was given, so there is a mask
            self._allowed[allowed] = mask[self.nodes]
        return self._allowed[allowed]


class CycleState(Protocol):
    """What a cycle has left free and withheld at some moment."""

    @property
    def opening(self) -> CycleStart:
        """The start of the cycle."""
        ...

    @property
    def free(self) -> Amounts:
        """What is free on the nodes of the opening."""
        ...

    @property
    def withheld(self) -> list[Withheld]:
        """The capacity that no other job gets."""
        ...


class EndedCycle(CycleState, Protocol):
    """A cycle that has run."""

    def not_reached(self) -> tuple[Job, ...]:
        """The jobs behind the queue depth."""
        ...


class Cycle:
    """A cycle while it runs: what is free now, which alternatives have failed, what is withheld."""

    def __init__(
        self, opening: CycleStart, queue: WaitingQueue, choose: Callable[[Job], Heuristic], limits: CycleLimits
    ) -> None:
        """`choose` gives the heuristic for a job: the member's, the default one or the job's own."""
        self.opening = opening
        self.free = opening.free.copy()
        self.withheld: list[Withheld] = []
        self._open = np.ones(len(opening.nodes), dtype=np.bool_)
        self._open_count = len(opening.nodes)
        self._failed = FailedShapes()
        self._order = FairOrder(queue, opening.total)
        self._choose = choose
        self._limits = limits
        self._looked_at = 0

    def steps(self) -> Iterator[CycleStep]:
        """Go through the queue job by job; `free` is up to date after each step. Ends early when no node has room."""
        for position in range(self._limits.queue_depth):
            job = self._order.pop() if self._open_count else None
            if job is None:
                return
            self._looked_at += 1
            match = self._match(job)
            if match is None and job.withholds and (position < self._limits.reservations or job.over_aged):
                self._withhold(job)
            yield CycleStep(job, match)

    def not_reached(self) -> tuple[Job, ...]:
        """The jobs behind the queue depth. Call it once, after the cycle has run: it uses up the rest of the queue."""
        rest = list(iter(self._order.pop, None))
        return tuple(rest[self._limits.queue_depth - self._looked_at :])

    def candidates(self, alternative: Alternative, allowed: frozenset[str] | None) -> Indices:
        """The columns of the nodes that are allowed, still in the cycle, and have enough free for the alternative."""
        fitting = holding(self.free, alternative.demand)
        fitting &= self._open
        if allowed is not None:
            fitting &= self.opening.allows(allowed)
        if alternative.exclusive:
            fitting &= (self.free == self.opening.capacity).all(axis=0)
        return np.flatnonzero(fitting)

    def _match(self, job: Job) -> Match | None:
        for alternative in job.alternatives:
            if self._failed.cover(alternative, job.allowed):
                continue
            region = self.opening.regions.find(self.candidates(alternative, job.allowed), alternative.nodes)
            if region is None:
                self._failed.add(alternative, job.allowed)
                continue
            columns = self._best(self._choose(job), alternative, region)
            self._take(columns, alternative)
            if self._order.shared:
                self._order.charge(job, held(self.opening.capacity, alternative, columns))
            return Match(job, alternative, self.opening.nodes[columns])
        return None

    def _best(self, heuristic: Heuristic, alternative: Alternative, region: Region) -> Indices:
        """The nodes of the region that the heuristic scores best, behind the lighter ones."""
        count, candidates = alternative.nodes - len(region.lighter), region.equal
        if isinstance(heuristic, GroupHeuristic):
            candidates = one_group(self.free, candidates, count)
        scores = heuristic(self.opening.capacity, self.free, candidates, alternative.demand)
        columns = best(candidates, scores, count)
        return np.sort(np.concatenate((region.lighter, columns))) if len(region.lighter) else columns

    def _withhold(self, job: Job) -> None:
        """Withhold capacity on the nodes with the most free memory."""
        self._withhold_first(job, lambda columns: -self.free[MEMORY, columns])

    def _withhold_first(self, job: Job, rank: Callable[[Indices], Amounts], *, whole_nodes: bool = False) -> bool:
        """Withhold capacity on the open nodes of the smallest rank that are large enough; False if there are none.

        It is the demand of the first alternative that the cluster could ever hold, or whole nodes with `whole_nodes`.
        On ties the first nodes in the machine list are taken.
        """
        for alternative in job.alternatives:
            home = ever_holding_together(self.opening.node_arrays, alternative, job.allowed)
            if home is None:
                continue
            # an open node has room for the smallest job
            columns = np.flatnonzero(home[self.opening.nodes] & self._open)
            columns = np.sort(columns[np.argsort(rank(columns), kind="stable")[: alternative.nodes]])
            if len(columns):
                kept = replace(alternative, exclusive=True) if whole_nodes else alternative
                self._take(columns, kept)
                self.withheld.append(Withheld(job, kept, self.opening.nodes[columns]))
            return len(columns) > 0
        return False

    def _take(self, columns: Indices, alternative: Alternative) -> None:
        """Take the capacity; a node without room for the smallest job then leaves the cycle."""
        left = self.free[:, columns] - taken(self.opening.capacity, alternative, columns)
        self.free[:, columns] = left
        full = columns[(left[CORES] < SMALLEST.cores) | (left[MEMORY] < SMALLEST.memory_mb)]
        self._open[full] = False
        self._open_count -= len(full)  # all of them were open


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
