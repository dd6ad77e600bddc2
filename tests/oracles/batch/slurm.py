"""Slurm alone in plain Python: the main pass at each event, and the backfill that books nodes for waiting jobs.

Second by second what ends is freed, what is submitted joins the queue, and the main pass runs. The backfill runs if
`bf_interval_s` is over since the last one and anything has changed since. Each moment is tried in turn: no shortcut of
the compiled passes is used here.
"""

from collections.abc import Iterable, Sequence
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


class Running(NamedTuple):
    """A job that runs: what it holds of each of its nodes, when it ends, and when its limit is over."""

    holds: dict[int, Resources]
    end_s: int
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
        self.capacity = [Resources(*map(int, column)) for column in self.node_arrays.capacity.T]
        self.starts: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.plans: list[tuple[int, list[Booking]]] = []
        self._running: list[Running] = []
        self._queue: list[TraceJob] = []

    def run(self) -> "PlainSlurm":
        """Until all jobs have started."""
        to_come = list(self.jobs)
        due_s, has_changed, now_s = 0, False, 0
        while to_come or self._queue:
            moments = [each.job.submit_s for each in to_come[:1]] + [each.end_s for each in self._running]
            if has_changed and self._queue:
                moments.append(due_s)
            now_s = min(moments)
            self._running = [each for each in self._running if each.end_s > now_s]
            while to_come and to_come[0].job.submit_s <= now_s:
                self._queue.append(to_come.pop(0))
            self._queue.sort(key=lambda each: -self.priority.get(each.job.id, 0))
            has_changed = True
            self._go_through_queue(now_s)
            if self._queue and now_s >= due_s:
                has_changed = self._backfill(now_s)
                due_s = now_s + self.parameters.bf_interval_s
        return self

    def _go_through_queue(self, now_s: int) -> None:
        """The main pass: who finds no place blocks the nodes that it may use."""
        blocked: set[int] = set()
        for each in list(self._queue):
            free = self._free(now_s, now_s)
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
            for moment_s in self._moments(now_s, booked):
                free = self._free(moment_s, now_s)
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

    def _moments(self, now_s: int, booked: Iterable[Booking]) -> list[int]:
        """When something may become free, within the window."""
        ends = {expected_end_s(each, now_s) for each in self._running} | {each.end_s for each in booked}
        return sorted(each for each in {now_s, *ends} if now_s <= each <= now_s + self.parameters.bf_window_s)

    def _free(self, moment_s: int, now_s: int) -> dict[int, Resources]:
        """What is free on each node at that moment, if running jobs end at their limits."""
        free = dict(enumerate(self.capacity))
        for each in self._running:
            if moment_s == now_s or expected_end_s(each, now_s) > moment_s:
                for node, holds in each.holds.items():
                    free[node] = free[node].minus(holds)
        return free

    def _may_use(self, job: Job) -> set[int]:
        names = self.node_arrays.names
        return {node for node, name in enumerate(names) if job.allowed is None or name in job.allowed}

    def _choose(self, job: Job, free: dict[int, Resources], usable: set[int]) -> tuple[int, ...] | None:
        """The nodes: the lightest of one region, of one node the tightest, of several the first."""
        asked = job.alternatives[0]
        fitting = sorted(node for node in usable & self._may_use(job) if self._fits(asked, node, free[node]))
        region = self.node_arrays.regions.find(np.array(fitting, np.intp), asked.nodes)
        if region is None:
            return None
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
        self._running.append(Running(holds, now_s + int(each.run_s), now_s + limit_of(each.job)))
        self.starts[each.job.id] = now_s, place
        self._queue.remove(each)


def limit_of(job: Job) -> int:
    """The limit in seconds: whole minutes, a year where there is none."""
    return YEAR_S if job.expected_run_s is None else ceil(job.expected_run_s / MINUTE_S) * MINUTE_S


def expected_end_s(job: Running, now_s: int) -> int:
    """At the limit; in the next second if that is over."""
    return max(job.limit_s, now_s + 1)


def in_the_way(booked: Iterable[Booking], node: int, begin_s: int, end_s: int) -> bool:
    """Whether a booking of the node lies between these moments. One that begins at the end does, as in Slurm."""
    return any(node in each.nodes and begin_s < each.end_s and each.begin_s <= end_s for each in booked)
