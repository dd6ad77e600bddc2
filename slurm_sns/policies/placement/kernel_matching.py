"""Matching on values by the compiled kernel: values to arrays, one call, matches back to values.

Tables and working memory of one pass are used again by the next pass on the same nodes; results do not depend on that.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.placement.cycle_kernel import Bench, bench_for
from slurm_sns.policies.placement.heuristic_names import ADAPTIVE
from slurm_sns.policies.placement.heuristics import HEURISTICS, NO_WEIGHTS, Heuristic, Weights, heuristics_of
from slurm_sns.policies.placement.kernel_arrays import (
    ENTRIES,
    LOOKED_AT,
    NOBODY,
    AlternativeArrays,
    Flags,
    Integers,
    JobKinds,
    KernelNodes,
    KernelRules,
    Matches,
    Problem,
    Queue,
    Releases,
    Scores,
)
from slurm_sns.policies.placement.kinds_of_jobs import Allowed, OncePerKind
from slurm_sns.policies.placement.node_arrays import CORES, GPUS, MEMORY, WAYS, Amounts, NodeArrays, scored
from slurm_sns.policies.placement.node_state_kernel import PER_UNIT, SCORE_BITS
from slurm_sns.policies.placement.pass_record import MemberRecord, PassRecord, Schedule
from slurm_sns.policies.placement.portfolio_kernel import DOES_NOT_COMPETE, schedule
from slurm_sns.policies.placement.ready_time_kernel import NOTHING_COMES_FREE
from slurm_sns.policies.placement.rules import MOST_PROMISES, Rules
from slurm_sns.policies.placement.ties import KINDS, TieRecord, tie_record
from slurm_sns.policies.placement.use import by_use
from slurm_sns.policies.placement.waiting_queue import NEWCOMER, WaitingQueue

#: A session whose tables hold more kinds of jobs than this, and more than twice those of the last pass, serves no other
#: pass: the memory of a scheduler that runs for months is bounded by its queue.
MOST_KINDS = 4096
#: A working memory has room for so many jobs and projects at least: a short queue that grows does not need a new one.
LEAST_ROOM = 32
#: The tables begin with room for this many entries, and double when they are full.
FIRST_ROOM = 64

#: The number of each heuristic in the kernel's table.
ROWS = {name: row for row, name in enumerate(HEURISTICS)}
#: The rows beyond cores and memory that an alternative demands and scores look at (`node_arrays.scored`).
Case = tuple[int, ...]
#: The cases before any alternative is known.
FIRST_CASES: tuple[Case, ...] = ((),)

#: Number of nodes, demand, exclusive, number of the set of allowed nodes.
AlternativeKey = tuple[int, Resources, bool, int]


class Kernel:
    """The kernel for one policy. Threads may share it: a thread that finds the session in use makes its own."""

    def __init__(self, rules: Rules) -> None:
        """Begin without passes."""
        self._rules = rules
        self._record = tie_record(len(rules.with_gpus) + len(rules.portfolio))
        self._sessions: deque[_Session] = deque(maxlen=1)

    def run(
        self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue, coming: Releases, *, some_profiled: bool
    ) -> Schedule:
        """The best member's schedule; `coming` is what running jobs will give back."""
        try:
            session = self._sessions.pop()
        except IndexError:
            session = None
        if session is not None and session.is_full:
            node_arrays.forget_masks()
            session = None
        if session is None or session.node_arrays is not node_arrays:
            session = _Session(node_arrays, self._rules.on(node_arrays), self._record)
        ran = session.run(free, queue, coming, some_profiled)
        self._sessions.append(session)
        return ran


class _Session:
    """Passes over the same nodes."""

    def __init__(self, node_arrays: NodeArrays, rules: Rules, record: TieRecord) -> None:
        self.node_arrays = node_arrays
        self._rules = rules
        self._tie_record = record
        self._table = KindTable(node_arrays, rules)
        self._kinds = OncePerKind(self._table.kind)
        self._bench: Bench | None = None
        self._room = (0, 0, 0, 0)
        self._tables = (0, 0, 0)
        self._kinds_of_last = 0

    @property
    def is_full(self) -> bool:
        """Whether its tables hold so many kinds of jobs that most of them are likely to be of jobs that are gone."""
        return len(self._table) > max(MOST_KINDS, 2 * self._kinds_of_last)

    def run(self, free: Amounts, queue: WaitingQueue, coming: Releases, some_profiled: bool) -> Schedule:
        """One pass."""
        jobs, arrays = tabulate(queue, self.node_arrays, self._rules, self._kinds.of)
        self._kinds_of_last = int(np.count_nonzero(np.bincount(arrays.kind)))
        arrays = arrays._replace(coming=coming)
        bench = self._bench_for(arrays, free)
        best, ran, best_first = schedule(bench, free, arrays, some_profiled)
        turns = [at for at in bench.turn.tolist() if bench.matched[at] != DOES_NOT_COMPETE]
        record = replace(self._record(bench.log, turns, ran, jobs, free), now_s=queue.now_s)
        if best_first != NOBODY:
            record = replace(record, best_first=best_first)
        return Schedule.of(record, self._rules.portfolio[best])

    def _bench_for(self, queue: Queue, free: Amounts) -> Bench:
        """The working memory of the last pass if it is large enough, otherwise a new one with spare room."""
        table = self._table
        tables = (table.generation, len(table.cases), len(table.own))
        jobs, projects, releases = len(queue.kind), len(queue.head), len(queue.coming.end_s)
        needed = jobs, projects, self._most_takes(free[CORES], jobs), releases
        is_large = all(room >= need for room, need in zip(self._room, needed, strict=True))
        if self._bench is None or self._tables != tables or not is_large:
            cores, jobs = np.maximum(self.node_arrays.capacity[CORES], free[CORES]), max(LEAST_ROOM, 2 * jobs)
            self._room = jobs, max(LEAST_ROOM, 2 * projects), self._most_takes(cores, jobs), 2 * releases
            self._tables = tables
            scores = kernel_table(self._rules.beta, self.node_arrays, table.cases)
            limits = kernel_rules(self._rules, scores, table.own)
            nodes, alternatives, kinds = table.arrays()
            problem = Problem(nodes, alternatives, kinds, scores, limits)
            *room, releases = self._room
            self._bench = bench_for(problem, *room, releases=releases, logs=True, record=self._tie_record)
        return self._bench

    def _most_takes(self, cores: Integers, jobs: int) -> int:
        """How often nodes with so many free cores can be taken for so many jobs: each time one core or more goes."""
        nodes = len(cores)
        return min(int(np.maximum(cores, 0).sum()) + nodes, min(jobs, self._rules.queue_depth) * nodes)

    def _record(self, log: Matches, turns: Sequence[int], ran: int, jobs: Sequence[Job], free: Amounts) -> PassRecord:
        """What the competing members did, which had these turns; the first `ran` of them have run.

        The others would have done what the last one has done: none of them would have matched anything.
        """
        cycles = [_written_down(log, at) for at in turns[:ran]]
        of = {at: cycles[min(turn, ran - 1)] for turn, at in enumerate(turns)}
        members = {self._rules.portfolio[at]: of[at] for at in sorted(of)}
        # A copy: the caller may change `free` while the record is still read.
        return PassRecord(self.node_arrays, free.copy(), jobs, self._table.choices, members)


def _written_down(log: Matches, member: int) -> MemberRecord:
    """A copy of one member's row: the next pass overwrites it."""
    totals = log.totals[member]
    entries, looked_at = int(totals[ENTRIES]), int(totals[LOOKED_AT])
    first = log.first[member, : entries + 1].copy()
    return MemberRecord(
        log.order[member, :looked_at].copy(),
        log.job[member, :entries].copy(),
        log.choice[member, :entries].copy(),
        log.kept[member, :entries].copy(),
        log.start_s[member, :entries].copy(),
        first,
        log.node[member, : first[-1]].copy(),
    )


class KindTable:
    """The numbers of the distinct alternatives and kinds of jobs on these nodes, given as they are met.

    New entries go into the same arrays while these have room; `generation` counts the arrays that were replaced by
    larger ones. `choices` are the alternatives behind the kernel's choices, `cases` the numbers of the cases of their
    demands, `own` the rows of the heuristics that jobs name. A job with an unknown heuristic gets the member's.
    """

    def __init__(self, node_arrays: NodeArrays, rules: Rules) -> None:
        """Begin with empty tables."""
        resources, nodes = node_arrays.capacity.shape
        self._node_arrays = node_arrays
        self._rules = rules
        self.generation = 0
        self.choices: list[Alternative] = []
        self.cases: dict[Case, int] = {case: number for number, case in enumerate(FIRST_CASES)}
        self.own: set[int] = set()
        self._alternatives: dict[AlternativeKey, int] = {}
        self._kinds: dict[tuple[tuple[Alternative, ...], int, int], int] = {}
        self._sets: dict[Allowed, int] = {None: NOBODY}
        self._rows = 0
        self._masks = np.zeros((1, nodes), np.bool_)
        self._alternative_arrays = AlternativeArrays(
            nodes=np.zeros(FIRST_ROOM, np.int64),
            demand=np.zeros((FIRST_ROOM, resources), np.int64),
            exclusive=np.zeros(FIRST_ROOM, np.bool_),
            allowed=np.zeros(FIRST_ROOM, np.int64),
            case=np.zeros(FIRST_ROOM, np.int64),
            simple=np.zeros(FIRST_ROOM, np.bool_),
        )
        self._kind_arrays = JobKinds(
            first=np.zeros(FIRST_ROOM + 1, np.int64),
            alternative=np.zeros(FIRST_ROOM, np.int64),
            gain=np.zeros(FIRST_ROOM, np.int64),
            cost=np.zeros(FIRST_ROOM, np.int64),
            by_use=np.zeros(FIRST_ROOM, np.int64),
            own=np.zeros(FIRST_ROOM, np.int64),
        )

    def __len__(self) -> int:
        return len(self._kinds)

    def arrays(self) -> tuple[KernelNodes, AlternativeArrays, JobKinds]:
        """The tables; later entries are in the same arrays as long as `generation` stays the same."""
        return kernel_nodes(self._node_arrays, self._masks), self._alternative_arrays, self._kind_arrays

    def kind(self, job: Job) -> int:
        """The number of the job's kind, which is added if it is new."""
        number = self._sets.get(job.allowed)
        if number is None:
            number = self._sets[job.allowed] = self._new_set(job.allowed)
        own = ROWS.get(job.heuristic or "", NOBODY)
        kind, begin = len(self._kinds), len(self.choices)
        if (known := self._kinds.setdefault((job.alternatives, number, own), kind)) != kind:
            return known
        end = begin + len(job.alternatives)
        sizes = (kind + 2, end, end, end, end, kind + 1)
        self._kind_arrays = kinds = JobKinds(*map(self._with_room, self._kind_arrays, sizes))
        kinds.first[kind + 1] = end
        kinds.own[kind] = own
        choices = [_with_a_core(each) for each in job.alternatives]
        kinds.alternative[begin:end] = [self._alternative(each, number) for each in choices]
        worth = worth_of(choices, self._node_arrays, self._rules)
        kinds.gain[begin:end], kinds.cost[begin:end], order = worth
        kinds.by_use[begin:end] = np.array(order) + begin
        self.choices.extend(choices)
        if own != NOBODY:
            self.own.add(own)
        return kind

    def _new_set(self, allowed: Allowed) -> int:
        """The row of the masks for a new set of allowed nodes; NOBODY for a set that holds every node."""
        mask = self._node_arrays.allows(allowed)
        if mask is None or mask.all():
            return NOBODY
        row, self._rows = self._rows, self._rows + 1
        self._masks = self._with_room(self._masks, self._rows)
        self._masks[row] = mask
        return row

    def _alternative(self, of: Alternative, allowed: int) -> int:
        key = (of.nodes, of.demand, of.exclusive, allowed)
        number = self._alternatives.get(key)
        if number is None:
            number = self._alternatives[key] = len(self._alternatives)
            demand = self._node_arrays.demand(of.demand)
            case = self.cases.setdefault(scored(demand), len(self.cases))
            simple = not of.exclusive and allowed == NOBODY and not any(demand[WAYS:])
            self._alternative_arrays = AlternativeArrays(
                *(self._with_room(column, number + 1) for column in self._alternative_arrays)
            )
            values: tuple[Any, ...] = (of.nodes, demand, of.exclusive, allowed, case, simple)
            for column, value in zip(self._alternative_arrays, values, strict=True):
                column[number] = value
        return number

    def _with_room(self, array: NDArray[Any], entries: int) -> NDArray[Any]:
        """The array if it has room for this many entries, otherwise a copy with room for twice as many."""
        if entries <= len(array):
            return array
        self.generation += 1
        longer = np.zeros((2 * entries, *array.shape[1:]), array.dtype)
        longer[: len(array)] = array
        return longer


def _with_a_core(alternative: Alternative) -> Alternative:
    """The alternative with one core or more: by the cores that are taken the kernel's memory is measured."""
    demand = alternative.demand
    return alternative if demand.cores > 0 else replace(alternative, demand=demand._replace(cores=1))


def worth_of(
    alternatives: Sequence[Alternative], node_arrays: NodeArrays, rules: Rules
) -> tuple[list[int], list[int], list[int]]:
    """The columns `gain`, `cost` and `by_use` of a kind's choices; the last one counts from the kind's first choice."""
    gain = [1] * len(alternatives)
    cost = [slowdown_units(each) if rules.weighs else 0 for each in alternatives]
    return gain, cost, by_use(alternatives, node_arrays) if rules.order == ADAPTIVE else [*range(len(alternatives))]


def tabulate(
    waiting: WaitingQueue, node_arrays: NodeArrays, rules: Rules, kind_of: Callable[[Job], int]
) -> tuple[Sequence[Job], Queue]:
    """The jobs that a cycle can look at, and the same as arrays; `kind_of` gives the number of a job's kind."""
    depth, since_s = rules.queue_depth, waiting.withholds_since_s(rules.withhold_up_to_s)
    names = sorted(waiting.by_project)
    lists = [waiting.by_project[name][:depth] for name in names]
    jobs = [*waiting.over_aged[:depth], *(job for each in lists for job in each)]
    aged = min(len(waiting.over_aged), depth)
    head = np.full(len(names), NOBODY, dtype=np.int64)
    following = np.arange(1, len(jobs) + 1, dtype=np.int32)
    at = aged
    for number, each in enumerate(lists):
        if each:
            head[number] = at
            at += len(each)
            following[at - 1] = NOBODY
    numbers = {name: number for number, name in enumerate(names)}
    projects, total = [waiting.projects.get(name, NEWCOMER) for name in names], node_arrays.total
    whole = [(total.cores * each.share, total.memory_mb * each.share) for each in projects]
    used = [(each.used.cores, each.used.memory_mb) for each in projects]
    return jobs, Queue(
        over_aged=np.arange(aged, dtype=np.int64),
        head=head,
        following=following,
        kind=np.fromiter(map(kind_of, jobs), np.int32, len(jobs)),
        project=np.fromiter((numbers.get(job.project, NOBODY) for job in jobs), np.int32, len(jobs)),
        order=_ranks(jobs) if len(names) > 1 else np.zeros(len(jobs), np.int64),
        whole=np.array(whole, dtype=np.float64).reshape(len(names), 2),
        used=np.array(used, dtype=np.int64).reshape(len(names), 2),
        withholds=np.fromiter(
            (job.withholds and (job.over_aged or job.submit_s >= since_s) for job in jobs), np.bool_, len(jobs)
        ),
        now_s=float(waiting.now_s),
        run_s=np.fromiter(
            (inf if job.expected_run_s is None else job.expected_run_s for job in jobs), np.float64, len(jobs)
        ),
        coming=NOTHING_COMES_FREE,
    )


def _ranks(jobs: Sequence[Job]) -> Integers:
    """One integer per job; the integers compare as the jobs' `order` does."""
    ranks = {order: rank for rank, order in enumerate(sorted({job.order for job in jobs}))}
    return np.fromiter((ranks[job.order] for job in jobs), np.int64, len(jobs))


def kernel_rules(rules: Rules, scores: Scores, own: Iterable[int] = ()) -> KernelRules:
    """The rules as the kernel reads them, for jobs that name these heuristics."""
    portfolio = [ROWS[rules.default_heuristic or member] for member in rules.portfolio]
    used = {int(score) for heuristic in {*own, *portfolio} for score in scores.of[heuristic]}
    return KernelRules(
        depth=rules.queue_depth,
        reservations=min(rules.reservations, MOST_PROMISES) if rules.until_start else rules.reservations,
        until_start=rules.until_start,
        portfolio=np.array(portfolio, dtype=np.int64),
        for_profiled=np.array([member in rules.only_for_profiled for member in rules.portfolio]),
        keeps=np.array([member == rules.keeper for member in rules.portfolio]),
        ties=KINDS[rules.ties],
        turns=np.array(rules.turns, dtype=np.int64),
        adaptive=rules.order == ADAPTIVE,
        scores=np.array(sorted(used), dtype=np.int64),
    )


def slowdown_units(alternative: Alternative) -> int:
    """The predicted slowdown in whole units of 1e-9, so that a sum does not depend on the order of its terms."""
    return round(alternative.slowdown * PER_UNIT)


def kernel_nodes(node_arrays: NodeArrays, masks: Flags) -> KernelNodes:
    """The nodes as the kernel reads them; `masks` are the sets of nodes to which alternatives are restricted."""
    regions = node_arrays.regions
    return KernelNodes(node_arrays.capacity, masks, regions.weight, regions.switch, regions.weighs)


def kernel_table(beta: float, node_arrays: NodeArrays, cases: Iterable[Case] = FIRST_CASES) -> Scores:
    """The heuristics as the kernel reads them, on these nodes, for demands of these cases.

    Occupied shares are counted in units of 1e-9; on nodes so large that a score would not fit into the kernel's
    integers, 1,100 cores with the paper's beta, in larger ones.
    """
    listed, gpus = list(cases), len(node_arrays.gpu_names)
    most_cores, unit = int(node_arrays.capacity[CORES].max(initial=0)), PER_UNIT
    while (most_cores + 1) * span_of(beta + gpus, unit) >= 1 << SCORE_BITS:
        unit /= 10
    demanded = np.zeros((len(listed), GPUS + gpus), np.bool_)
    for case, more in enumerate(listed):
        demanded[case, list(more)] = True
    scores: dict[tuple[Heuristic, Weights], int] = {}
    of = [
        [scores.setdefault(_demanding(each, more, gpus), len(scores)) for more in listed]
        for each in heuristics_of(beta).values()
    ]
    return Scores(
        of=np.array(of, dtype=np.int64),
        demanded=demanded,
        angle=np.array([each.angle for each, _ in scores]),
        grouped=np.array([each.grouped for each, _ in scores]),
        free=np.array([each.free for each, _ in scores], dtype=np.int64),
        configured=np.array([each.configured for each, _ in scores], dtype=np.int64),
        occupied=np.array([occupied for _, occupied in scores], dtype=np.float64),
        span=span_of(beta + gpus, unit),
        unit=unit,
    )


def _demanding(heuristic: Heuristic, more: Case, gpus: int) -> tuple[Heuristic, Weights]:
    """The same for a job that demands only these resources beside cores and memory: the others get no weight.

    Free GPUs keep theirs. Also returned are the weights of the occupied shares of all resources, with so many rows of
    GPUs. Without such rows a heuristic that ranks by free GPUs first is the one that ranks by its other weights.
    """

    def kept(weights: Weights) -> Weights:
        return tuple(weight if row in {CORES, MEMORY, *more} else 0 for row, weight in enumerate(weights))

    occupied = kept((*heuristic.occupied, 0, *[heuristic.occupied_gpus] * gpus))
    free, configured = kept(heuristic.free), kept(heuristic.configured)
    if gpus:
        free, configured = (*free, 0, heuristic.free_gpus), (*configured, 0, 0)
    left = replace(heuristic, free=free, configured=configured, occupied=NO_WEIGHTS, occupied_gpus=0, free_gpus=0)
    return left, occupied


def span_of(weights: float, unit: float) -> int:
    """A number larger than any sum of occupied shares in this many units; `weights`: all but of cores and bandwidth."""
    return ceil((2 + weights) * unit) + 2
