"""What a pass wrote down of its members' cycles: whose turn it was when, and which nodes were taken then.

From that follows what was free at any job's turn: nothing has to be planned again to explain a plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from slurm_sns.model import Alternative, Job
from slurm_sns.policies.placement.cycle import Cycle, CycleStart, Match, Withheld
from slurm_sns.policies.placement.fair_order import WaitingQueue
from slurm_sns.policies.placement.kernel_arrays import MATCH, WHOLE, WITHHELD, Integers
from slurm_sns.policies.placement.node_arrays import Amounts, Indices, NodeArrays


@dataclass(frozen=True, eq=False)
class MemberRecord:
    """One member's cycle, in the order of its turns.

    `order` are the jobs that it looked at, by their place in the record's `jobs`. An entry is a match, or capacity
    withheld (`kept`): for a job (`job`) in an alternative (`choice`, its place in the record's `choices`) on the nodes
    `node[first[entry]:first[entry + 1]]`.
    """

    order: Integers
    job: Integers
    choice: Integers
    kept: Integers
    first: Integers
    node: Integers

    @property
    def matched(self) -> int:
        """How many jobs it matched."""
        return int(np.count_nonzero(self.kept == MATCH))

    def turn_of(self, job: int) -> int | None:
        """At which turn it looked at this job, from 0; None if it did not reach it."""
        found = np.flatnonzero(self.order == job)
        return int(found[0]) if len(found) else None

    def entries_before(self, turn: int) -> int:
        """How many entries there were before this turn."""
        return int(np.count_nonzero(np.isin(self.job, self.order[:turn])))


@dataclass(frozen=True, eq=False)
class Moment:
    """A member's cycle at one moment (a `CycleState`)."""

    opening: CycleStart
    free: Amounts
    withheld: list[Withheld]


@dataclass(frozen=True, eq=False)
class PassRecord:
    """A pass: the nodes, what was free on them at its start, the jobs, their alternatives, and each member's cycle.

    `free_amounts` has a column for each node, and must stay unchanged.
    """

    node_arrays: NodeArrays
    free_amounts: Amounts
    jobs: Sequence[Job]
    choices: Sequence[Alternative]
    members: Mapping[str, MemberRecord]

    @cached_property
    def opening(self) -> CycleStart:
        """The start of each cycle."""
        return CycleStart.of(self.node_arrays, self.free_amounts)

    def place_of(self, job_id: int) -> int | None:
        """The place of the job in `jobs`; None if no cycle could look at it."""
        return next((at for at, job in enumerate(self.jobs) if job.id == job_id), None)

    def entries(self, of: MemberRecord, begin: int = 0, end: int | None = None) -> list[Match | Withheld]:
        """The entries of the member's cycle from one to before another; None: to the last."""
        first = of.first.tolist()
        columns = zip(*(column[begin:end].tolist() for column in (of.job, of.choice, of.kept)), strict=True)
        found: list[Match | Withheld] = []
        for entry, (job, choice, kept) in enumerate(columns, begin):
            nodes, alternative = of.node[first[entry] : first[entry + 1]], self.choices[choice]
            if kept == MATCH:
                found.append(Match(self.jobs[job], alternative, nodes))
            else:
                alternative = replace(alternative, exclusive=True) if kept == WHOLE else alternative
                found.append(Withheld(self.jobs[job], alternative, nodes))
        return found

    def matches(self, of: MemberRecord) -> tuple[Match, ...]:
        """The member's matches."""
        return tuple([each for each in self.entries(of) if isinstance(each, Match)])

    def moment(self, of: MemberRecord, count: int | None = None) -> Moment:
        """The member's cycle when it had made so many entries; None: all, at its end."""
        count = len(of.job) if count is None else count
        left, end = self.free_amounts.copy(), int(of.first[count])
        if end:
            nodes, sizes = of.node[:end], np.diff(of.first[: count + 1])
            chosen, at = np.unique(of.choice[:count], return_inverse=True)
            taken = [self.choices[choice] for choice in chosen.tolist()]
            demand = np.array([each.demand for each in taken], np.int64).T[:, at]
            whole = np.array([each.exclusive for each in taken])[at] | (of.kept[:count] == WHOLE)
            amounts = np.where(
                np.repeat(whole, sizes), self.node_arrays.capacity[:, nodes], np.repeat(demand, sizes, axis=1)
            )
            for row, amount in zip(left, amounts, strict=True):
                np.subtract.at(row, nodes, amount)
        kept = np.flatnonzero(of.kept[:count] != MATCH).tolist()
        withheld = [each for entry in kept for each in self.entries(of, entry, entry + 1) if isinstance(each, Withheld)]
        return Moment(self.opening, left[:, self.opening.nodes], withheld)


class PlainRecords:
    """The records of plain cycles over the same queue, each written down while it runs."""

    def __init__(self, queue: WaitingQueue) -> None:
        self.jobs = queue.all_jobs()
        self._places = {job.id: at for at, job in enumerate(self.jobs)}
        self._choices: dict[Alternative, int] = {}

    @property
    def choices(self) -> tuple[Alternative, ...]:
        """The alternatives of all entries so far."""
        return tuple(self._choices)

    def of(self, cycle: Cycle) -> MemberRecord:
        """Run the cycle, and write it down as the kernel does."""
        order, entries = list[int](), list[tuple[int, int, int]]()
        nodes, withheld = list[Indices](), 0
        for step in cycle.steps():
            order.append(self._places[step.job.id])
            made: list[Match | Withheld] = [] if step.match is None else [step.match]
            made += cycle.withheld[withheld:]
            withheld = len(cycle.withheld)
            for each in made:
                choice = self._choices.setdefault(each.alternative, len(self._choices))
                entries.append((order[-1], choice, MATCH if isinstance(each, Match) else WITHHELD))
                nodes.append(each.nodes)
        job, choices, kept = np.array(entries, np.int64).reshape(-1, 3).T
        first = np.cumsum([0, *map(len, nodes)], dtype=np.int64)
        node = np.concatenate([np.zeros(0, np.int64), *nodes])
        return MemberRecord(np.array(order, np.int64), job, choices, kept, first, node)
