"""Slurm alone in plain Python: the main pass after events, and the backfill that books nodes for waiting jobs.

Second by second what ends is freed and what is submitted joins the queue. The main pass runs when it was asked for. The
backfill runs if `bf_interval_s` is over since the last one and anything has changed since. Each moment is tried in
turn: no shortcut of the compiled passes is used here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

import numpy as np

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.node_arrays import SMALLEST, NodeArrays
from slurm_sns.sim.trace import TraceJob

MINUTE_S = 60
YEAR_S = 365 * 24 * 60 * 60
#: The length of the first group of expected ends.
GROUP_S = 30


class Running(NamedTuple):
    """A job that runs: what it holds of each of its nodes, until when, and when its limit is over."""

    holds: dict[int, Resources]
    free_s: int
    limit_s: int


class Booking(NamedTuple):
    """Nodes that are kept for a waiting job; `planned_s` is its planned start."""

    job: int
    nodes: tuple[int, ...]
    begin_s: int
    end_s: int
    planned_s: int


@dataclass
class PlainSlurm:
    """A replay. `starts` are the second and the nodes of each job by id; `plans` the bookings of each backfill."""

    node_arrays: NodeArrays
    jobs: Sequence[TraceJob]
    parameters: SlurmParameters = field(default_factory=SlurmParameters)
    #: By id, where jobs have some; the larger, the earlier.
    priority: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Nothing has happened yet."""
        self.capacity = [self.node_arrays.resources(column) for column in self.node_arrays.capacity.T.tolist()]
        self.starts: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.plans: list[tuple[int, list[Booking]]] = []
        self._running: list[Running] = []
        self._queue: list[TraceJob] = []

    def run(self) -> "PlainSlurm":
        """Until all jobs have started."""
        to_come = list(self.jobs)
        due_s, has_changed, now_s = 0, False, 0
        main_due_s: int | None = None  # nobody has asked for the main pass
        last_main_s = -YEAR_S
        parameters = self.parameters
        while to_come or self._queue:
            moments = [each.job.submit_s for each in to_come[:1]] + [each.free_s for each in self._running]
            if has_changed and self._queue:
                moments.append(due_s)
            if main_due_s is not None:
                moments.append(main_due_s)
            now_s = min(moments)
            running = len(self._running)
            self._running = [each for each in self._running if each.free_s > now_s]
            has_ended = len(self._running) < running
            new = [each for each in to_come if each.job.submit_s <= now_s]
            to_come = to_come[len(new) :]
            self._queue = sorted([*self._queue, *new], key=lambda each: -self.priority.get(each.job.id, 0))
            has_changed |= has_ended or bool(new)
            if new or (has_ended and not parameters.epilog):
                # One second begins before what happens in it: only the ends are those of the second before.
                soonest_s = now_s if has_ended and not parameters.epilog else now_s + 1
                wanted_s = max(soonest_s, last_main_s + parameters.batch_sched_delay_s)
                main_due_s = wanted_s if main_due_s is None else min(main_due_s, wanted_s)
            before = len(self.starts)
            is_due = main_due_s is not None and main_due_s <= now_s
            if is_due:
                last_main_s, main_due_s = now_s, None
            if is_due or (has_ended and parameters.epilog):
                self._go_through_queue(now_s)
            has_changed |= len(self.starts) > before
            if self._queue and now_s >= due_s and has_changed:
                has_changed = self._backfill(now_s)
                due_s = now_s + parameters.bf_interval_s
        return self

    def _go_through_queue(self, now_s: int) -> None:
        """The main pass: who finds no place blocks the nodes that it may use."""
        blocked: set[int] = set()
        for each in list(self._queue):
            free = self._free(now_s, {})
            place = self._choose(each.job, free, set(free) - blocked)
            if place is None:
                blocked |= self._may_use(each.job)
            else:
                self._start(each, place, now_s)

    def _backfill(self, now_s: int) -> bool:
        """Start or book; return whether any job has started."""
        booked: list[Booking] = []
        self.plans.append((now_s, booked))
        before = len(self.starts)
        for each in self._queue[: self.parameters.bf_max_job_test].copy():
            limit_s = limit_of(each.job)
            ends_s = self._expected_ends(each.job, now_s)
            for moment_s in self._moments(now_s, [*ends_s.values(), *(each.end_s for each in booked)]):
                free = self._free(moment_s, {} if moment_s == now_s else ends_s)
                is_open = {node for node in free if not in_the_way(booked, node, moment_s, moment_s + limit_s)}
                place = self._choose(each.job, free, is_open)
                if place is None:
                    continue
                if moment_s == now_s:
                    self._start(each, place, now_s)
                else:
                    step_s = self.parameters.bf_resolution_s
                    begin_s, end_s = moment_s // step_s * step_s, ceil((moment_s + limit_s) / step_s) * step_s
                    booked.append(Booking(each.job.id, place, begin_s, end_s, moment_s))
                break
        return len(self.starts) > before

    def _moments(self, now_s: int, changes_s: Iterable[int]) -> list[int]:
        """When something may become free, within the window."""
        return sorted(each for each in {now_s, *changes_s} if now_s <= each <= now_s + self.parameters.bf_window_s)

    def _expected_ends(self, job: Job, now_s: int) -> dict[int, int]:
        """When each running job is expected to end, by its place in the list, in groups; none behind the window."""
        usable = self._may_use(job)
        ends_s = {
            at: expected_end_s(each, now_s)
            for at, each in enumerate(self._running)
            if usable & set(each.holds) and each.limit_s <= now_s + self.parameters.bf_window_s
        }
        return grouped_ends(ends_s, self.parameters.bf_window_linear_s)

    def _free(self, moment_s: int, ends_s: dict[int, int]) -> dict[int, Resources]:
        """What is free on each node at that moment, if running jobs end at these times, others not at all."""
        free = dict(enumerate(self.capacity))
        for at, each in enumerate(self._running):
            if at not in ends_s or ends_s[at] > moment_s:
                for node, holds in each.holds.items():
                    free[node] = free[node].minus(holds)
        return free

    def _may_use(self, job: Job) -> set[int]:
        names = self.node_arrays.names
        return {node for node, name in enumerate(names) if job.allowed is None or name in job.allowed}

    def _choose(self, job: Job, free: dict[int, Resources], usable: set[int]) -> tuple[int, ...] | None:
        """The nodes: of the tightest runs of neighbours; under switches those of one region, the lightest first."""
        asked = job.alternatives[0]
        fitting = sorted(node for node in usable & self._may_use(job) if self._fits(asked, node, free[node]))
        regions = self.node_arrays.regions
        region = regions.find(np.array(fitting, np.intp), asked.nodes)
        if region is None:
            return None
        if len(regions.switch) == 0:
            size = {node: free[node].cores if asked.nodes == 1 else 1 for node in fitting}
            return tuple(sorted(runs_of(fitting, asked.nodes, size, dict(enumerate(regions.weight.tolist())))))
        equal = region.equal.tolist()
        if asked.nodes == 1:
            equal.sort(key=lambda node: (free[node].cores, node))
        chosen = [*region.lighter.tolist(), *equal][: asked.nodes]
        return tuple(sorted(chosen))

    def _fits(self, asked: Alternative, node: int, free: Resources) -> bool:
        if asked.exclusive and free != self.capacity[node]:
            return False
        return SMALLEST.within(free) and asked.demand.within(free)

    def _start(self, each: TraceJob, place: tuple[int, ...], now_s: int) -> None:
        asked = each.job.alternatives[0]
        holds = {node: self.capacity[node] if asked.exclusive else asked.demand for node in place}
        free_s = now_s + int(each.run_s) + (0 if self.parameters.epilog else 1)
        self._running.append(Running(holds, free_s, now_s + limit_of(each.job)))
        self.starts[each.job.id] = now_s, place
        self._queue.remove(each)


def grouped_ends(ends_s: Mapping[int, int], linear_s: int = 0) -> dict[int, int]:
    """The ends if all jobs of a group end with its last one. Groups are twice as long each, or longer by `linear_s`."""
    if not ends_s:
        return {}
    first_s = (min(ends_s.values()) // GROUP_S + 1) * GROUP_S
    lengths_s = [GROUP_S]
    while first_s + lengths_s[-1] < max(ends_s.values()):
        lengths_s.append(lengths_s[-1] + (linear_s or lengths_s[-1]))
    group = {at: next(each for each in lengths_s if end_s <= first_s + each) for at, end_s in ends_s.items()}
    return {at: max(end_s for other, end_s in ends_s.items() if group[other] == group[at]) for at in ends_s}


def runs_of(fitting: Sequence[int], count: int, size: Mapping[int, int], weight: Mapping[int, int]) -> list[int]:
    """So many nodes, from the lightest runs of neighbours: of the smallest that suffices, or the largest and others."""
    runs: list[list[int]] = []
    for node in fitting:
        if runs and runs[-1][-1] == node - 1 and weight[node] == weight[node - 1]:
            runs[-1].append(node)
        else:
            runs.append([node])
    chosen: list[int] = []
    while (missing := count - len(chosen)) > 0:
        lightest = min(weight[run[0]] for run in runs)
        light = [run for run in runs if weight[run[0]] == lightest]
        sizes = {run[0]: sum(size[node] for node in run) for run in light}
        enough = [run for run in light if len(run) >= missing]
        best = min(enough, key=lambda run: sizes[run[0]]) if enough else max(light, key=lambda run: sizes[run[0]])
        runs.remove(best)
        chosen += sorted(best, key=lambda node: size[node])[:missing]
    return chosen


def limit_of(job: Job) -> int:
    """The limit in seconds: whole minutes, a year where there is none."""
    return YEAR_S if job.expected_run_s is None else ceil(job.expected_run_s / MINUTE_S) * MINUTE_S


def expected_end_s(job: Running, now_s: int) -> int:
    """At the limit; in the next second if that is over."""
    return max(job.limit_s, now_s + 1)


def in_the_way(booked: Iterable[Booking], node: int, begin_s: int, end_s: int) -> bool:
    """Whether a booking of the node lies between these moments. One that begins at the end does, as in Slurm."""
    return any(node in each.nodes and begin_s < each.end_s and each.begin_s <= end_s for each in booked)
