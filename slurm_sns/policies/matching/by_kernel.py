"""Max-Jobs on values, by the compiled kernel: values to arrays, one call, matches back to values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from slurm_sns.model import Alternative, Job
from slurm_sns.policies.matching.keys import KEYS, PLAIN_ONLY, ROWS, ROWS_OF_ALL, kernel_table
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.arrays import (
    ENTRIES,
    LOOKED_AT,
    NOBODY,
    Integers,
    Kinds,
    Limits,
    Matches,
    Problem,
    Ways,
    largest_number_of_takes,
)
from slurm_sns.policies.placement.cycle import Match, Opening, Withheld
from slurm_sns.policies.placement.kernel import bench_for, schedule
from slurm_sns.policies.placement.pool import CORES, MEMORY, Amounts, Pool, held, taken
from slurm_sns.policies.placement.queue import FairOrder, WaitingQueue
from slurm_sns.policies.placement.tabulate import KindTable, tabulate


@dataclass
class KernelCycle:
    """The winning member's cycle after it has run: what `cycle.Cycle` would show of it."""

    opening: Opening
    free: Amounts
    withheld: list[Withheld]
    matches: tuple[Match, ...]
    _queue: WaitingQueue = field(repr=False)
    _depth: int
    _looked_at: int

    def not_reached(self) -> tuple[Job, ...]:
        """The jobs behind the queue depth."""
        if len(self._queue) <= self._depth:
            return ()
        order = FairOrder(self._queue, self.opening.total)
        charged = {match.job.id: match for match in self.matches} if order.shared else {}
        capacity = self.opening.pool.capacity
        for _ in range(self._looked_at):
            job = order.pop()
            if job is not None and job.id in charged:
                match = charged[job.id]
                order.charge(job, held(capacity, match.alternative, match.nodes))
        return tuple(iter(order.pop, None))[self._depth - self._looked_at :]


class Ran(NamedTuple):
    """The best member by its position, its cycle, and how many jobs each member matched."""

    cycle: KernelCycle
    best: int
    matched: Integers


def run_kernel(parameters: MatchingParameters, pool: Pool, free: Amounts, queue: WaitingQueue) -> Ran | None:
    """The best member's cycle; None where the kernel does not do it: see `kernel_does`."""
    table = KindTable()
    tabulated = tabulate(queue, pool, parameters.queue_depth, table, ROWS_OF_ALL)
    machines, ways, kinds = table.arrays(pool)
    if not kernel_does(parameters, ways, kinds):
        return None
    problem = Problem(machines, ways, kinds, kernel_table(len(pool.capacity)), limits_of(parameters, kinds))
    takes = largest_number_of_takes(free, ways)
    bench = bench_for(problem, len(tabulated.jobs), len(tabulated.queue.head), takes)
    best, kept = schedule(bench, free, tabulated.queue)
    found = _Found(bench.matches[kept], tabulated.jobs, [way for way, _ in table.ways])
    return Ran(_ended(Opening.of(pool, free), found, queue, parameters.queue_depth), best, bench.matched)


def kernel_does(parameters: MatchingParameters, ways: Ways, kinds: Kinds) -> bool:
    """Whether the kernel knows every heuristic in use, for what the jobs demand.

    It wants at least one core on each node, and has Mix-Fit for cores and memory only.
    """
    names = {*parameters.portfolio, parameters.default_heuristic or parameters.portfolio[0]}
    if not len(kinds.own) or not names <= KEYS.keys() or (kinds.own == PLAIN_ONLY).any():
        return False
    angle = any(KEYS[name].angle for name in names) or (kinds.own == ROWS["mix-fit"]).any()
    more = (ways.demand[:, MEMORY + 1 :] > 0).any()
    return bool((ways.demand[:, CORES] >= 1).all() and not (angle and more))


def limits_of(parameters: MatchingParameters, kinds: Kinds) -> Limits:
    """The parameters as the kernel reads them."""
    portfolio = [ROWS[parameters.default_heuristic or member] for member in parameters.portfolio]
    named = {int(row) for row in kinds.own if row != NOBODY}
    return Limits(
        depth=parameters.queue_depth,
        reservations=parameters.reservations,
        portfolio=np.array(portfolio, dtype=np.int64),
        rows=np.array(sorted(named.union(portfolio)), dtype=np.int64),
    )


class _Found(NamedTuple):
    """A member's entries and what their numbers mean."""

    matches: Matches
    jobs: Sequence[Job]
    ways: Sequence[Alternative]


def _ended(opening: Opening, numbers: _Found, queue: WaitingQueue, depth: int) -> KernelCycle:
    """The values of one member's entries."""
    found, jobs, ways = numbers
    left = opening.pool_free.copy()
    matches: list[Match] = []
    withheld: list[Withheld] = []
    entries = int(found.totals[ENTRIES])
    first = found.first[: entries + 1].tolist()
    columns = zip(
        found.job[:entries].tolist(), found.way[:entries].tolist(), found.kept[:entries].tolist(), strict=True
    )
    for entry, (job, way, kept) in enumerate(columns):
        nodes = found.node[first[entry] : first[entry + 1]]
        if kept:
            withheld.append(Withheld(jobs[job], ways[way], nodes))
        else:
            matches.append(Match(jobs[job], ways[way], nodes))
    for _, alternative, nodes in chain(matches, withheld):
        left[:, nodes] -= taken(opening.pool.capacity, alternative, nodes)
    return KernelCycle(
        opening, left[:, opening.nodes], withheld, tuple(matches), queue, depth, int(found.totals[LOOKED_AT])
    )
