"""Matching on values by the compiled kernel: values to arrays, one call, matches back to values.

Tables and working memory of one pass are used again by the next pass on the same nodes; results do not depend on that.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from slurm_sns.model import Job
from slurm_sns.policies.placement.cycle import CycleStart, Match, Withheld
from slurm_sns.policies.placement.cycle_kernel import Bench, bench_for
from slurm_sns.policies.placement.fair_order import FairOrder, WaitingQueue
from slurm_sns.policies.placement.heuristic_names import PAPER_BETA
from slurm_sns.policies.placement.kernel_arrays import (
    ENTRIES,
    LOOKED_AT,
    KernelRules,
    MemberLogs,
    Problem,
    Scores,
)
from slurm_sns.policies.placement.kernel_input import KindTable, TabulatedQueue, tabulate
from slurm_sns.policies.placement.kernel_weights import NAMES, ROWS, kernel_holds, kernel_table
from slurm_sns.policies.placement.kinds_of_jobs import OncePerKind
from slurm_sns.policies.placement.node_arrays import CORES, WAYS, Amounts, NodeArrays, held
from slurm_sns.policies.placement.pass_record import MemberRecord, PassRecord
from slurm_sns.policies.placement.portfolio_kernel import DOES_NOT_COMPETE, schedule
from slurm_sns.policies.specification import DEFAULT_QUEUE_DEPTH

#: A session whose tables hold more kinds of jobs at the end of a pass serves no other pass: the memory of a scheduler
#: that runs for months is bounded.
MOST_KINDS = 4096
#: A working memory has room for so many jobs and projects at least: a short queue that grows does not need a new one.
LEAST_ROOM = 32


@dataclass
class KernelCycle:
    """The winning member's cycle after it has run, with the same attributes as `cycle.Cycle`."""

    record: PassRecord
    matches: tuple[Match, ...]
    withheld: list[Withheld]
    _of: MemberRecord = field(repr=False)
    _queue: WaitingQueue = field(repr=False)
    _depth: int

    @classmethod
    def of(cls, record: PassRecord, member: str, queue: WaitingQueue, depth: int) -> "KernelCycle":
        """The cycle of this member."""
        of = record.members[member]
        entries = record.entries(of)
        matches = tuple([each for each in entries if isinstance(each, Match)])
        return cls(record, matches, [each for each in entries if isinstance(each, Withheld)], of, queue, depth)

    @property
    def opening(self) -> CycleStart:
        """The start of the cycle."""
        return self.record.opening

    @cached_property
    def free(self) -> Amounts:
        """What is free on the nodes of the opening."""
        return self.record.moment(self._of).free

    def not_reached(self) -> tuple[Job, ...]:
        """The jobs behind the queue depth."""
        if len(self._queue) <= self._depth:
            return ()
        nodes, looked_at = self.record.node_arrays, len(self._of.order)
        order = FairOrder(self._queue, nodes.total)
        charged = {match.job.id: match for match in self.matches} if order.shared else {}
        for _ in range(looked_at):
            job = order.pop()
            if job is not None and job.id in charged:
                match = charged[job.id]
                order.charge(job, held(nodes.capacity, match.alternative, match.nodes))
        return tuple(iter(order.pop, None))[self._depth - looked_at :]


class KernelResult(NamedTuple):
    """The best member's cycle, its name, and how many jobs each competing member matched, in portfolio order."""

    cycle: KernelCycle
    best: str
    matched: dict[str, int]


@dataclass(frozen=True)
class Rules:
    """How a portfolio's cycles match.

    `portfolio`: the heuristics that compete. `queue_depth`: how many jobs of the ordered queue a cycle looks at.
    `reservations`: at how many of the first queue positions capacity is withheld for a job without a match.
    `default_heuristic`: if given, every member uses it for jobs that name none. `beta`: the weight of occupied ways in
    `idlest`. `keeper`: the member whose cycles keep whole nodes for the oldest over-aged job that finds no place.
    `weighs`: among schedules with equally many matches the smaller sum of predicted slowdowns wins. `for_profiled`: the
    members that compete only in a cycle where some queued job has a profile. `shared_ways`: ways of each node that no
    job is given.
    """

    portfolio: tuple[str, ...]
    queue_depth: int = DEFAULT_QUEUE_DEPTH
    reservations: int = 1
    default_heuristic: str | None = None
    beta: float = PAPER_BETA
    keeper: str | None = None
    weighs: bool = False
    for_profiled: tuple[str, ...] = ()
    shared_ways: int = 0

    @property
    def heuristics(self) -> tuple[str, ...]:
        """The heuristic of each member."""
        return tuple(self.default_heuristic or member for member in self.portfolio)

    def unshared(self, node_arrays: NodeArrays) -> NodeArrays:
        """The nodes without the ways that no job is given."""
        if not self.shared_ways:
            return node_arrays
        capacity = node_arrays.capacity.copy()
        capacity[WAYS] -= np.minimum(capacity[WAYS], self.shared_ways)
        return node_arrays.with_capacity(capacity)

    @property
    def only_for_profiled(self) -> tuple[str, ...]:
        """The members that do not compete while no queued job has a profile: none if no other member were left."""
        return () if set(self.portfolio) <= set(self.for_profiled) else self.for_profiled


class Kernel:
    """The kernel for one policy. Threads may share it: a thread that finds the session in use makes its own."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._table = kernel_table(rules.beta)
        self._sessions: deque[_Session] = deque(maxlen=1)

    def run(
        self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue, *, some_profiled: bool
    ) -> KernelResult | None:
        """The best member's cycle; None if the kernel cannot compute it: jobs without cores, scores out of range."""
        try:
            session = self._sessions.pop()
        except IndexError:
            session = None
        if session is None or session.node_arrays is not node_arrays or session.is_full:
            session = _Session(node_arrays, self._rules, self._table)
        ran = session.run(free, queue, some_profiled)
        self._sessions.append(session)
        return ran


class _Room(NamedTuple):
    """The size of a working memory, or the size that a pass needs: jobs, projects, times that nodes are taken."""

    jobs: int
    projects: int
    takes: int

    def holds(self, needed: "_Room") -> bool:
        return self.jobs >= needed.jobs and self.projects >= needed.projects and self.takes >= needed.takes


class _Session:
    """Passes over the same nodes."""

    def __init__(self, node_arrays: NodeArrays, rules: Rules, scores: Scores) -> None:
        self.node_arrays = node_arrays
        self._rules = rules
        self._scores = scores
        self._table = KindTable(node_arrays, ROWS, weighs=rules.weighs)
        self._kinds = OncePerKind(self._table.kind)
        self._holds: dict[tuple[int, bool], bool] = {}
        self._bench: Bench | None = None
        self._room = _Room(0, 0, 0)
        self._tables = (0, 0, 0)

    @property
    def is_full(self) -> bool:
        """Whether its tables hold so many kinds of jobs that most of them are likely to be of jobs that are gone."""
        return len(self._table) > MOST_KINDS

    def run(self, free: Amounts, queue: WaitingQueue, some_profiled: bool) -> KernelResult | None:
        """One pass; None as in `Kernel.run`."""
        depth = self._rules.queue_depth
        tabulated = tabulate(queue, self.node_arrays, depth, self._kinds.of)
        if not len(self._table) or self._table.least_cores < 1 or not self._is_in_range(some_profiled):
            return None
        bench = self._bench_for(tabulated, free)
        best, ran = schedule(bench, free, tabulated.queue, some_profiled)
        members = [at for at, count in enumerate(bench.matched.tolist()) if count != DOES_NOT_COMPETE]
        record = self._record(bench.log, members, ran, tabulated.jobs, free)
        cycle = KernelCycle.of(record, self._rules.portfolio[best], queue, self._rules.queue_depth)
        matched = {self._rules.portfolio[at]: int(bench.matched[at]) for at in members}
        return KernelResult(cycle, self._rules.portfolio[best], matched)

    def _is_in_range(self, some_profiled: bool) -> bool:
        """Whether the scores of the competing members, and of the heuristics that jobs name, fit into the kernel."""
        rules, own = self._rules, self._table.own
        key = (len(own), some_profiled)
        if key not in self._holds:
            left_out = () if some_profiled else rules.only_for_profiled
            competing = (each for each in rules.portfolio if each not in left_out)
            used = {*(rules.default_heuristic or each for each in competing), *(NAMES[row] for row in own)}
            self._holds[key] = kernel_holds(self.node_arrays, used, rules.beta)
        return self._holds[key]

    def _bench_for(self, tabulated: TabulatedQueue, free: Amounts) -> Bench:
        """The working memory of the last pass if it is large enough, otherwise a new one with spare room."""
        table = self._table
        tables = (table.generation, len(table.cases), len(table.own))
        jobs, projects = len(tabulated.jobs), len(tabulated.queue.head)
        # each time takes one core or more of an open node
        takes = int(np.maximum(free[CORES], 0).sum()) + free.shape[1]
        if self._bench is None or self._tables != tables or not self._room.holds(_Room(jobs, projects, takes)):
            most_takes = int(np.maximum(self.node_arrays.capacity[CORES], free[CORES]).sum()) + free.shape[1]
            self._room = _Room(max(LEAST_ROOM, 2 * jobs), max(LEAST_ROOM, 2 * projects), most_takes)
            self._tables = tables
            self._bench = bench_for(self._problem(), *self._room, logs=True)
        return self._bench

    def _problem(self) -> Problem:
        nodes, alternatives, kinds = self._table.arrays()
        limits = kernel_rules(self._rules, self._scores, self._table.own, self._table.cases)
        return Problem(nodes, alternatives, kinds, self._scores, limits)

    def _record(
        self, log: MemberLogs, competing: Sequence[int], ran: int, jobs: Sequence[Job], free: Amounts
    ) -> PassRecord:
        """What the competing members did; the first `ran` of them have run.

        The others would have done what the last one has done: none of them would have matched anything.
        """
        cycles = [_written_down(log, at) for at in competing[:ran]]
        members = {self._rules.portfolio[at]: cycles[min(turn, ran - 1)] for turn, at in enumerate(competing)}
        # A copy: the caller may change `free` while the record is still read.
        return PassRecord(self.node_arrays, free.copy(), jobs, self._table.choices, members)


def _written_down(log: MemberLogs, member: int) -> MemberRecord:
    """A copy of one member's row: the next pass overwrites it."""
    totals = log.totals[member]
    entries, looked_at = int(totals[ENTRIES]), int(totals[LOOKED_AT])
    first = log.first[member, : entries + 1].copy()
    return MemberRecord(
        log.order[member, :looked_at].copy(),
        log.job[member, :entries].copy(),
        log.choice[member, :entries].copy(),
        log.kept[member, :entries].copy(),
        first,
        log.node[member, : first[-1]].copy(),
    )


def kernel_rules(rules: Rules, scores: Scores, own: Iterable[int] = (), cases: Iterable[int] = (0,)) -> KernelRules:
    """The rules as the kernel reads them, for jobs that name these heuristics and have demands of these cases."""
    portfolio = [ROWS[heuristic] for heuristic in rules.heuristics]
    used = {int(scores.of[heuristic, case]) for heuristic in {*own, *portfolio} for case in cases}
    return KernelRules(
        depth=rules.queue_depth,
        reservations=rules.reservations,
        portfolio=np.array(portfolio, dtype=np.int64),
        for_profiled=np.array([member in rules.only_for_profiled for member in rules.portfolio]),
        keeps=np.array([member == rules.keeper for member in rules.portfolio]),
        scores=np.array(sorted(used), dtype=np.int64),
    )
