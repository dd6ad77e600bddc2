"""One scheduling pass with one heuristic: what the compiled kernel must do (`policies/placement/cycle_kernel`).

The rules are those of `policies/placement/rules.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from oracles.fair_order import FairOrder
from oracles.promises import Promises
from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.placement.heuristics import Heuristic, Scores, one_group
from slurm_sns.policies.placement.kernel_arrays import Releases
from slurm_sns.policies.placement.node_arrays import (
    CORES,
    MEMORY,
    SMALLEST,
    Amounts,
    Indices,
    NodeArrays,
    ever_holding_together,
    holding,
    roomy,
)
from slurm_sns.policies.placement.pass_record import Match, Withheld
from slurm_sns.policies.placement.ready_time_kernel import NOTHING_COMES_FREE
from slurm_sns.policies.placement.regions import Region, Regions
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.placement.use import by_use
from slurm_sns.policies.placement.waiting_queue import WaitingQueue

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


class CycleStart(NamedTuple):
    """The state at the start of a cycle, the same for every heuristic: the nodes with room for the smallest job.

    `nodes` are their indices in the node arrays; `capacity` and `free` have a column for each. `free_anywhere` has one
    for every node, `coming` is what the running jobs will give back.
    """

    node_arrays: NodeArrays
    nodes: Indices
    capacity: Amounts
    free: Amounts
    regions: Regions
    free_anywhere: Amounts
    coming: Releases

    @classmethod
    def of(cls, node_arrays: NodeArrays, free: Amounts, coming: Releases = NOTHING_COMES_FREE) -> "CycleStart":
        """The start of a cycle on nodes of which this much is free."""
        nodes = np.flatnonzero(roomy(free))
        regions = Regions(node_arrays.regions.weight[nodes], node_arrays.regions.switch[:, nodes])
        return cls(node_arrays, nodes, node_arrays.capacity[:, nodes], free[:, nodes], regions, free, coming)


class Cycle:
    """A cycle while it runs: what is free now, which alternatives have failed, what is withheld."""

    def __init__(
        self,
        opening: CycleStart,
        queue: WaitingQueue,
        choose: Callable[[Job], Heuristic],
        rules: Rules,
        *,
        keeps: bool,
        by_use: bool = False,
    ) -> None:
        """`choose` gives the heuristic for a job: the member's, the default one or the job's own.

        `keeps`: it keeps whole nodes for the first over-aged job that finds no place. `by_use`: alternatives are tried
        by their use of the cluster.
        """
        self.opening = opening
        self._free = opening.free.copy()
        self._open = np.ones(len(opening.nodes), dtype=np.bool_)
        self._open_count = len(opening.nodes)
        self._failed = FailedShapes()
        self._order = FairOrder(queue, opening.node_arrays.total)
        self._choose = choose
        self._rules = rules
        self._keeps = keeps
        self._by_use = by_use
        self._withholds_since_s = queue.withholds_since_s(rules.withhold_up_to_s)
        self._has_kept = False
        self._promises = Promises(opening.node_arrays, opening.coming, queue.now_s)

    def steps(self) -> Iterator[tuple[Job, Match | Withheld | None]]:
        """Go through the queue job by job, with what was done with each; ends early when no node has room."""
        for position in range(self._rules.queue_depth):
            job = self._order.pop() if self._open_count else None
            if job is None:
                return
            entry: Match | Withheld | None = self._match(job)
            if entry is None and job.withholds:
                entry = self._keep(job, position)
            yield job, entry

    def _keep(self, job: Job, position: int) -> Withheld | None:
        """Promise a place to the job at this position, or withhold capacity for it, as the rules say."""
        if self._rules.until_start:
            if job.submit_s < self._withholds_since_s and not job.over_aged:
                return None
            if len(self._promises) >= max(self._rules.reservations, int(job.over_aged)):
                return None
            promised = self._promises.promise(job, self._free_anywhere())
            if promised is not None or len(self._promises):
                return promised
        return self._withhold(job) if job.over_aged or self._may_withhold(job, position) else None

    def _free_anywhere(self) -> Amounts:
        """What is free now on every node."""
        free = self.opening.free_anywhere.copy()
        free[:, self.opening.nodes] = self._free
        return free

    def _may_withhold(self, job: Job, position: int) -> bool:
        """Whether capacity may be withheld for a job at this position that is not over-aged."""
        return position < self._rules.reservations and job.submit_s >= self._withholds_since_s

    def _candidates(self, free: Amounts, alternative: Alternative, allowed: frozenset[str] | None) -> Indices:
        """The columns of the nodes that are allowed, still in the cycle, and have enough free for the alternative."""
        fitting = holding(free, self.opening.node_arrays.demand(alternative.demand))
        fitting &= self._open if free is self._free else roomy(free)
        permitted = self.opening.node_arrays.allows(allowed)
        if permitted is not None:
            fitting &= permitted[self.opening.nodes]
        if alternative.exclusive:
            fitting &= (free == self.opening.capacity).all(axis=0)
        return np.flatnonzero(fitting)

    def _match(self, job: Job) -> Match | None:
        free, failed = self._free, self._failed
        if self._promises.lasts(job):
            free, failed = self._promises.beside(self._free_anywhere())[:, self.opening.nodes], FailedShapes()
        places = by_use(job.alternatives, self.opening.node_arrays) if self._by_use else range(len(job.alternatives))
        for alternative in (job.alternatives[place] for place in places):
            if failed.cover(alternative, job.allowed):
                continue
            region = self.opening.regions.find(self._candidates(free, alternative, job.allowed), alternative.nodes)
            if region is None:
                failed.add(alternative, job.allowed)
                continue
            columns = self._best(free, self._choose(job), alternative, region)
            self._take(columns, alternative)
            if self._rules.until_start:
                self._promises.matched(job, alternative, self.opening.nodes[columns])
            if self._order.shared:
                self._order.charge(job, held(self.opening.node_arrays, alternative, self.opening.nodes[columns]))
            return Match(job, alternative, self.opening.nodes[columns])
        return None

    def _best(self, free: Amounts, heuristic: Heuristic, alternative: Alternative, region: Region) -> Indices:
        """The nodes of the region that the heuristic scores best, behind the lighter ones."""
        count, candidates = alternative.nodes - len(region.lighter), region.equal
        if heuristic.grouped:
            candidates = one_group(free, candidates, count)
        demand = self.opening.node_arrays.demand(alternative.demand)
        scores = heuristic(self.opening.capacity, free, candidates, demand)
        columns = best(candidates, scores, count)
        return np.sort(np.concatenate((region.lighter, columns))) if len(region.lighter) else columns

    def _withhold(self, job: Job) -> Withheld | None:
        """Withhold capacity on the nodes with the most free memory, or keep whole nodes with the fewest used cores.

        Whole nodes are kept for the first over-aged job only.
        """
        if not (self._keeps and job.over_aged):
            return self._withhold_first(job, lambda columns: -self._free[MEMORY, columns])
        if self._has_kept:
            return None
        capacity = self.opening.capacity
        kept = self._withhold_first(
            job, lambda columns: capacity[CORES, columns] - self._free[CORES, columns], whole_nodes=True
        )
        self._has_kept = kept is not None
        return kept

    def _withhold_first(
        self, job: Job, rank: Callable[[Indices], Amounts], *, whole_nodes: bool = False
    ) -> Withheld | None:
        """Withhold capacity on the open nodes of the smallest rank that are large enough; None if there are none.

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
            if not len(columns):
                return None
            kept = replace(alternative, exclusive=True) if whole_nodes else alternative
            self._take(columns, kept)
            return Withheld(job, kept, self.opening.nodes[columns])
        return None

    def _take(self, columns: Indices, alternative: Alternative) -> None:
        """Take the capacity; a node without room for the smallest job then leaves the cycle."""
        left = self._free[:, columns] - self.opening.node_arrays.taken(alternative, self.opening.nodes[columns])
        self._free[:, columns] = left
        full = columns[(left[CORES] < SMALLEST.cores) | (left[MEMORY] < SMALLEST.memory_mb)]
        self._open[full] = False
        self._open_count -= len(full)  # all of them were open


def held(node_arrays: NodeArrays, alternative: Alternative, nodes: Indices) -> Resources:
    """What the alternative holds on these nodes together."""
    took = node_arrays.taken(alternative, nodes)
    return node_arrays.resources(np.broadcast_to(took, (len(took), len(nodes))).sum(axis=1).tolist())


def best(candidates: Indices, scores: Scores, count: int) -> Indices:
    """The `count` candidates with the smallest scores, in the machine list's order.

    `candidates` are ascending and at least `count`; `scores` has one entry for each.
    """
    if count == 1:
        first = int(np.argmin(scores))  # the first of equal ones
        return candidates[first : first + 1]
    ranked = np.argsort(scores, kind="stable")[:count]
    return np.sort(candidates[ranked])
