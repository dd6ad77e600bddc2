"""What a pass wrote down of its members' cycles: whose turn it was when, and which nodes were taken then.

From that follows what was free at any job's turn: nothing has to be planned again to explain a plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from slurm_sns.model import Alternative, Job, Seconds
from slurm_sns.policies.placement.kernel_arrays import MATCH, PROMISED, WHOLE, Floats, Integers
from slurm_sns.policies.placement.node_arrays import Amounts, Indices, NodeArrays


class Match(NamedTuple):
    """A job, the alternative it runs in and its nodes, by their index in the node arrays."""

    job: Job
    alternative: Alternative
    nodes: Indices


class Withheld(NamedTuple):
    """Capacity that no other job gets in this cycle; the nodes are given by their index in the node arrays.

    A promise is kept from `start_s` on, and takes nothing now; None: from now on.
    """

    job: Job
    alternative: Alternative
    nodes: Indices
    start_s: float | None = None


@dataclass(frozen=True, eq=False)
class MemberRecord:
    """One member's cycle, in the order of its turns.

    `order` are the jobs that it looked at, by their place in the record's `jobs`. An entry is a match, or capacity
    withheld (`kept`): for a job (`job`) in an alternative (`choice`, its place in the record's `choices`) on the nodes
    `node[first[entry]:first[entry + 1]]`; a promise from `start_s` on.
    """

    order: Integers
    job: Integers
    choice: Integers
    kept: Integers
    start_s: Floats
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
class PassRecord:
    """A pass: the nodes, what was free on them at its start, the jobs, their alternatives, and each member's cycle.

    `free_amounts` has a column for each node, and must stay unchanged. `best_first`: alternatives were tried by use of
    the cluster, because the members had matched so many jobs at most, and not the whole queue, best alternatives first;
    None: they were tried best first.
    """

    node_arrays: NodeArrays
    free_amounts: Amounts
    jobs: Sequence[Job]
    choices: Sequence[Alternative]
    members: Mapping[str, MemberRecord]
    best_first: int | None = None
    now_s: Seconds = 0

    def place_of(self, job_id: int) -> int | None:
        """The place of the job in `jobs`; None if no cycle could look at it."""
        return next((at for at, job in enumerate(self.jobs) if job.id == job_id), None)

    def entries(self, of: MemberRecord, at: slice | Indices = slice(None)) -> list[Match | Withheld]:
        """These entries of the member's cycle, by default all."""
        columns = (of.job, of.choice, of.kept, of.start_s, of.first[:-1], of.first[1:])
        found: list[Match | Withheld] = []
        for job, choice, kept, start_s, first, end in zip(*(column[at].tolist() for column in columns), strict=True):
            nodes, alternative = of.node[first:end], self.choices[choice]
            if kept == MATCH:
                found.append(Match(self.jobs[job], alternative, nodes))
            else:
                alternative = replace(alternative, exclusive=True) if kept == WHOLE else alternative
                found.append(Withheld(self.jobs[job], alternative, nodes, start_s if kept == PROMISED else None))
        return found

    def withheld(self, of: MemberRecord, count: int | None = None) -> list[Withheld]:
        """The capacity that the member had withheld after so many entries; None: after all."""
        entries = self.entries(of, np.flatnonzero(of.kept[:count] != MATCH))
        return [each for each in entries if isinstance(each, Withheld)]

    def left(self, of: MemberRecord, count: int | None = None) -> Amounts:
        """What was free on all nodes after so many entries of the member's cycle; None: after all."""
        count = len(of.job) if count is None else count
        left, end = self.free_amounts.copy(), int(of.first[count])
        if end:
            nodes, sizes = of.node[:end], np.diff(of.first[: count + 1])
            chosen, at = np.unique(of.choice[:count], return_inverse=True)
            taken = [self.choices[choice] for choice in chosen.tolist()]
            demand = self.node_arrays.demands([each.demand for each in taken]).T[:, at]
            whole = np.array([each.exclusive for each in taken])[at] | (of.kept[:count] == WHOLE)
            amounts = np.where(
                np.repeat(whole, sizes), self.node_arrays.capacity[:, nodes], np.repeat(demand, sizes, axis=1)
            )
            is_taken = np.repeat(of.kept[:count] != PROMISED, sizes)
            for row, amount in zip(left, amounts, strict=True):
                np.subtract.at(row, nodes[is_taken], amount[is_taken])
        return left


@dataclass(frozen=True)
class Schedule:
    """The winner's matches in queue order, and how many jobs each competing member matched, in portfolio order.

    `withheld` is the capacity that no other job gets, promises included.
    """

    chosen: str
    matches: tuple[Match, ...]
    withheld: tuple[Withheld, ...]
    matched: dict[str, int]
    record: PassRecord = field(repr=False)

    @classmethod
    def of(cls, record: PassRecord, chosen: str) -> "Schedule":
        """The schedule of the chosen member."""
        entries = record.entries(record.members[chosen])
        return cls(
            chosen,
            tuple([each for each in entries if isinstance(each, Match)]),
            tuple([each for each in entries if isinstance(each, Withheld)]),
            {member: of.matched for member, of in record.members.items()},
            record,
        )
