"""When the jobs of a snapshot would start if each ran for its expected time: the live policy on a copy.

A `Scene` is the snapshot as the kernel's arrays (module `look_ahead_kernel`), made once and looked ahead on several
times, with other run times each time. It shares nothing with the live policy.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.estimates.look_ahead_kernel import (
    AGED,
    BEGUN,
    ENDS_WITHHOLDING,
    HEAD_ONLY,
    HEAPED,
    LIMITED,
    PASSES,
    PROFILED,
    STATES,
    TIME_S,
    WANTED,
    Holders,
    LimitedJobs,
    LookAheadState,
    look_ahead,
)
from slurm_sns.model import ActiveJob, Job, Resources, Snapshot
from slurm_sns.policies.placement.cycle_kernel import bench_for
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Problem, Releases
from slurm_sns.policies.placement.kernel_matching import KindTable, kernel_rules, kernel_table, tabulate
from slurm_sns.policies.placement.kinds_of_jobs import OncePerKind
from slurm_sns.policies.placement.node_arrays import CORES, WAYS, NodeArrays
from slurm_sns.policies.placement.portfolio import has_profile
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.placement.waiting_queue import WaitingQueue

Floats = NDArray[np.float64]

#: The kernel is called for so many passes at a time; between two calls the time that is left is looked at.
PASSES_AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class Course:
    """How a look ahead goes.

    Attributes:
        interval_s: the time between two cycles, whole seconds.
        least_step_s: how far its passes are apart at least.
        step_share: the same as a share of the time looked ahead.
        furthest_s: how far it goes.
        age_limit_s: a job that waits longer is over-aged; None: no job becomes so.
        ages_head_only: only the first job of the queue may be over-aged, as in Slurm's order.
        withhold_for_s: capacity is withheld for jobs so long from the begin on, then for over-aged ones only; None: no
            limit. A cluster limits it by user, which nobody can foretell.
        most_jobs: so many jobs of the queue are looked at; those behind them start after the look ahead.
    """

    interval_s: int = 1
    least_step_s: float = 60.0
    step_share: float = 0.01
    furthest_s: float = 7 * 86400.0
    age_limit_s: int | None = None
    ages_head_only: bool = False
    withhold_for_s: float | None = None
    most_jobs: int = 10_000


#: Every pass of a replay at every second: for comparisons with one.
EXACT = Course(least_step_s=0.0, step_share=0.0, furthest_s=inf)


class PlannedStart(NamedTuple):
    """When and where a look ahead has started a job, and the job whose end it had waited for (None: for nothing)."""

    at_s: float
    nodes: tuple[str, ...]
    waits_for: int | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a look ahead has found: the starts by job id; a job without one starts after `until_s`."""

    starts: Mapping[int, PlannedStart]
    until_s: float
    passes: int


class Scene:
    """A snapshot under a policy of these rules, ready to look ahead on.

    `members` are those that compete, None for all of the portfolio: with one the look ahead is shorter. `problem`,
    `queue`, `free` and `holders` are the snapshot as arrays.
    """

    def __init__(self, rules: Rules, snapshot: Snapshot, course: Course, members: Sequence[str] | None = None) -> None:
        nodes = NodeArrays.of(snapshot.nodes)
        rules = rules.on(nodes)
        if members is not None:
            rules = replace(rules, portfolio=tuple(members))
        self.course = course
        self.now_s = float(snapshot.now_s)
        self.nodes = rules.unshared(nodes)
        self.free = free = nodes.amounts([node.free for node in snapshot.nodes])
        free[WAYS] -= nodes.capacity[WAYS] - self.nodes.capacity[WAYS]
        waiting = snapshot.waiting[: course.most_jobs]
        self._table = KindTable(self.nodes, rules)
        queued = WaitingQueue.of(waiting, snapshot.projects, snapshot.now_s)
        every = replace(rules, queue_depth=max(1, len(waiting)))
        self.jobs, self.queue = tabulate(queued, self.nodes, every, OncePerKind(self._table.kind).of)
        self.problem = self._make_problem(rules)
        names = sorted(queued.by_project)
        self.active = tuple(each for each in snapshot.active if not each.in_storage)
        completing = [name for name in snapshot.completing if name in self.nodes.names]
        self.holders = _holders(
            self.active, completing, self.nodes, free=free, projects={name: row for row, name in enumerate(names)}
        )
        self._ahead = self._make_ahead(rules, free, waiting)

    @property
    def job_ids(self) -> tuple[int, ...]:
        """The waiting jobs, in the order in which their run times are given."""
        return tuple(job.id for job in self.jobs)

    def outlook(
        self,
        run_s: Floats,
        end_s: Floats,
        wanted: Collection[int] | None = None,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> Outlook:
        """Look ahead until the `wanted` jobs have started (None: all); their starts.

        `run_s` are the expected run times of `job_ids` in an alternative of slowdown 1, `end_s` the expected ends of
        the `active` jobs: those in the past are now. Both are infinite where nothing is known. It ends early when
        `goes_on`, which is asked every few passes, says so.
        """
        ahead = self._begin(run_s, end_s, wanted)
        more = bool(self.jobs)
        while more and goes_on():
            more = look_ahead(ahead, PASSES_AT_A_TIME)
        starts: dict[int, PlannedStart] = {}
        for at in np.flatnonzero((ahead.start_s < inf) & ahead.wanted).tolist():
            nodes = ahead.spread[ahead.place[at] : ahead.place[at] + self._nodes_of(ahead, at)].tolist()
            names = tuple(self.nodes.names[node] for node in nodes)
            starts[self.jobs[at].id] = PlannedStart(float(ahead.start_s[at]), names, self._whose(ahead.waits_for[at]))
        return Outlook(starts, float(ahead.moment[TIME_S]), int(ahead.state[PASSES]))

    def _nodes_of(self, ahead: LookAheadState, job: int) -> int:
        problem = self.problem
        return int(problem.alternatives.nodes[problem.kinds.alternative[ahead.choice[job]]])

    def _whose(self, number: int) -> int | None:
        if number == NOBODY:
            return None
        if number < len(self.active):
            return self.active[number].id
        count = len(self.holders.project)
        return None if number < count else self.jobs[number - count].id

    def _make_problem(self, rules: Rules) -> Problem:
        scores = kernel_table(rules.beta, self.nodes, self._table.cases)
        nodes, alternatives, kinds = self._table.arrays()
        limits = kernel_rules(rules, scores, self._table.own)
        return Problem(nodes, alternatives, kinds, scores, limits)

    def _make_ahead(self, rules: Rules, free: NDArray[np.int64], waiting: Sequence[Job]) -> LookAheadState:
        """The look ahead with its working memory; `_begin` sets what each one begins with."""
        problem, queue, jobs = self.problem, self.queue, self.jobs
        count, parts = len(jobs), len(self.holders.project)
        most_nodes = np.array([max(each.nodes for each in job.alternatives) for job in jobs], np.int64)
        place = np.zeros(count + 1, np.int64)
        np.cumsum(most_nodes, out=place[1:])
        takes = _most_takes(np.maximum(self.nodes.capacity, free)[CORES], min(count, rules.queue_depth))
        over_aged_s = _over_aged_s(jobs, self.course.age_limit_s)
        until_s = self.now_s + (inf if self.course.withhold_for_s is None else self.course.withhold_for_s)
        up_to_s = inf if rules.withhold_up_to_s is None else rules.withhold_up_to_s
        most_parts = len(self.holders.node) + int(place[-1]) if rules.until_start else 0
        coming = Releases(
            np.empty(most_parts, np.float64),
            np.empty(most_parts, np.int64),
            np.empty((most_parts, len(free)), np.int64),
        )
        return LookAheadState(
            bench=bench_for(problem, max(1, count), max(1, len(queue.head)), takes, releases=len(coming.end_s)),
            queue=queue._replace(),
            free=free,
            holders=self.holders,
            run_s=np.empty(count, np.float64),
            slowdown=np.array([each.slowdown for each in self._table.choices], np.float64),
            over_aged_s=over_aged_s,
            ageing=_ageing(jobs, over_aged_s, waiting),
            withhold_until_s=np.array([min(until_s, job.submit_s + up_to_s) for job in jobs], np.float64),
            profiled=self._profiled(),
            wanted=np.empty(count, np.bool_),
            previous=np.empty(count, np.int32),
            is_aged=np.empty(count, np.bool_),
            aged=np.empty(count, np.int64),
            start_s=np.empty(count, np.float64),
            choice=np.empty(count, np.int64),
            place=place,
            spread=np.empty(int(place[-1]), np.int32),
            waits_for=np.empty(count, np.int64),
            last=np.empty(len(self.nodes.names), np.int64),
            last_s=np.zeros(len(self.nodes.names), np.float64),
            heap_s=np.empty(parts + count, np.float64),
            heap=np.empty(parts + count, np.int64),
            limited=LimitedJobs(np.empty(parts + count, np.float64), np.empty(parts + count, np.int64), coming),
            moment=np.empty(6, np.float64),
            state=np.zeros(STATES, np.int64),
        )

    def _profiled(self) -> NDArray[np.bool_]:
        """For each kind, whether its jobs have a profile."""
        found = np.zeros(len(self._table), np.bool_)
        for job, kind in zip(self.jobs, self.queue.kind.tolist(), strict=True):
            found[kind] = found[kind] or has_profile(job.alternatives)
        return found

    def _begin(self, run_s: Floats, end_s: Floats, wanted: Collection[int] | None) -> LookAheadState:
        """The look ahead as it begins, with these run times."""
        ahead, jobs, queue = self._ahead, self.jobs, self.queue
        count, aged = len(jobs), len(queue.over_aged)
        ahead.run_s[:] = run_s
        ahead.wanted[:] = True if wanted is None else np.fromiter((job.id in wanted for job in jobs), np.bool_, count)
        ahead.previous[:] = NOBODY
        behind = np.flatnonzero(queue.following != NOBODY)
        behind = behind[behind >= aged]
        ahead.previous[queue.following[behind]] = behind
        ahead.is_aged[:] = np.arange(count) < aged
        ahead.aged[:aged] = queue.over_aged
        ahead.start_s[:] = inf
        ahead.waits_for[:] = NOBODY
        ahead.last[:] = NOBODY
        course = self.course
        latest_s = self.now_s + course.furthest_s
        ahead.moment[:] = (
            self.now_s,
            self.now_s,
            latest_s,
            course.least_step_s,
            course.step_share,
            float(course.interval_s),
        )
        end_s = np.maximum(self._with_completing(end_s), self.now_s + 1)
        known = np.flatnonzero(end_s < inf)
        known = known[np.argsort(end_s[known], kind="stable")]
        ahead.heap_s[: len(known)] = end_s[known]
        ahead.heap[: len(known)] = known
        state = ahead.state
        state[:] = 0
        state[HEAPED], state[WANTED], state[AGED] = len(known), int(ahead.wanted.sum()), aged
        state[PROFILED] = int(ahead.profiled[queue.kind].sum()) if count else 0
        state[HEAD_ONLY] = course.ages_head_only
        state[ENDS_WITHHOLDING] = bool((ahead.withhold_until_s < inf).any())
        state[BEGUN] = 0
        if self.problem.limits.until_start:
            limits_s = [inf if job.expected_end_s is None else float(job.expected_end_s) for job in self.active]
            limit_s = self._with_completing(np.array(limits_s, np.float64))
            ahead.limited.end_s[: len(limit_s)] = limit_s
            ahead.limited.running[: len(limit_s)] = np.argsort(limit_s, kind="stable")
            state[LIMITED] = len(limit_s)
        fresh = queue._replace(
            head=queue.head.copy(),
            following=queue.following.copy(),
            used=queue.used.copy(),
            withholds=queue.withholds.copy(),
        )
        return ahead._replace(queue=fresh)

    def _with_completing(self, end_s: Floats) -> Floats:
        """The ends of the active jobs, and of what holds the nodes where a job is completing: at any moment."""
        return np.concatenate([end_s, np.full(len(self.holders.project) - len(end_s), self.now_s)])


def _most_takes(cores: NDArray[np.int64], jobs: int) -> int:
    """How often nodes with so many cores can be taken in one pass: each time one core or more goes."""
    return min(int(np.maximum(cores, 0).sum()) + len(cores), jobs * len(cores))


def _over_aged_s(jobs: Sequence[Job], limit_s: int | None) -> Floats:
    if limit_s is None:
        return np.full(len(jobs), inf)
    return np.array([float(job.submit_s) + limit_s for job in jobs], np.float64)


def _ageing(jobs: Sequence[Job], over_aged_s: Floats, waiting: Sequence[Job]) -> NDArray[np.int64]:
    """The jobs by when they are over-aged; those of one moment as the live queue sorts them, of whatever project."""
    turns = {job.id: at for at, job in enumerate(sorted(waiting, key=lambda job: job.order))}
    return np.lexsort((np.array([turns[job.id] for job in jobs], np.int64), over_aged_s))


def _holders(
    active: Iterable[ActiveJob],
    completing: Sequence[str],
    nodes: NodeArrays,
    *,
    free: NDArray[np.int64],
    projects: Mapping[str, int],
) -> Holders:
    """What the active jobs hold on these nodes, and all else of the nodes `completing`; no more than is not free.

    What jobs have elsewhere is left out. Slurm tells what a job has on all nodes together: split equally and rounded
    up it may be more than a node has.
    """
    columns = {name: at for at, name in enumerate(nodes.names)}
    first, node, amount, project = [0], list[int](), list[Resources](), list[int]()
    for job in active:
        own = [columns[name] for name in job.nodes if name in columns]
        node += own
        amount += [job.demand] * len(own)
        first.append(len(node))
        project.append(projects.get(job.project, NOBODY))
    for name in completing:
        node.append(columns[name])
        amount.append(nodes.resources(nodes.capacity[:, columns[name]].tolist()))  # as much as is left
        first.append(len(node))
        project.append(NOBODY)
    at = np.array(node, np.int64)
    wanted = np.ascontiguousarray(nodes.amounts(amount).T)  # the kernel is compiled for one layout
    return Holders(
        np.array(first, np.int64), at, _within(nodes.capacity - free, at, wanted), np.array(project, np.int64)
    )


def _within(room: NDArray[np.int64], node: NDArray[np.int64], amount: NDArray[np.int64]) -> NDArray[np.int64]:
    """The amounts (parts, R), cut where the parts of a node, the first ones first, are more than its room (R, N)."""
    order = np.argsort(node, kind="stable")
    sums = np.cumsum(amount[order], axis=0)
    before = sums - amount[order]
    begins = np.flatnonzero(np.diff(node[order], prepend=-1))  # where the parts of another node begin
    of_node = before - np.repeat(before[begins], np.diff(begins, append=len(node)), axis=0)
    cut = np.empty_like(amount)
    cut[order] = np.clip(room.T[node[order]] - of_node, 0, amount[order])
    return cut
