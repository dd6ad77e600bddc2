"""The event-driven simulation of matching: each cycle matches the queue to what is free, as the live loop does.

A job started at s with run time r ends at s + r, and its nodes are free in a cycle at s + r.

Source: Max-Jobs paper (JSSPP 2013), section 5.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Protocol

import numpy as np

from slurm_sns.model import Job, Project, Seconds, total
from slurm_sns.policies.placement.kernel_arrays import Releases
from slurm_sns.policies.placement.node_arrays import Amounts, NodeArrays
from slurm_sns.policies.placement.pass_record import Schedule
from slurm_sns.policies.placement.ready_time_kernel import NOTHING_COMES_FREE, in_order_of_ends
from slurm_sns.policies.placement.waiting_queue import WaitingQueue
from slurm_sns.sim.engine.event_loop import CycleRecord, EventLoop
from slurm_sns.sim.progress.progress import Fixed, PlacedRun, Progress
from slurm_sns.sim.trace import Trace


class Matcher(Protocol):
    """Matches a queue to what is free, without giving reasons: the inner function of a portfolio's `plan`."""

    @property
    def asks_for_ends(self) -> bool:
        """Whether a schedule depends on what running jobs will give back."""
        ...

    def schedule(
        self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue, coming: Releases = NOTHING_COMES_FREE
    ) -> Schedule:
        """The matches of one cycle; neither `free` nor `queue` is changed. `coming` is what running jobs give back."""
        ...


class Simulation(EventLoop):
    """A cluster on which a trace is replayed by matching."""

    def __init__(
        self,
        node_arrays: NodeArrays,
        trace: Trace,
        scheduler: Matcher,
        *,
        queue_depth: int,
        interval_s: int,
        shares: Mapping[str, float] | None = None,
        progress: Progress | None = None,
        age_limit_s: int | None = None,
    ) -> None:
        """Start without jobs. A project that `shares` does not name has share 1.

        `progress` says when jobs end; if it is None, each job runs as long as the trace says. Jobs that have waited
        longer than `age_limit_s` go first, oldest first, and have capacity withheld for them.
        """
        run_s = {each.job.id: each.run_s for each in trace.jobs}
        super().__init__(trace, interval_s)
        self._progress = progress or Fixed(lambda job, _alternative: run_s[job.id])
        self._node_arrays = node_arrays
        self._scheduler = scheduler
        self._queue_depth = queue_depth
        self._age_limit_s = age_limit_s
        self._free = node_arrays.capacity.copy()
        self._running: dict[int, PlacedRun] = {}
        self._projects = {project: Project(share) for project, share in (shares or {}).items()}
        self._queue = WaitingQueue(self._projects)
        self._many_projects = len({each.job.project for each in trace.jobs}) > 1
        self._waiting = 0
        self._next_aged = 0

    @property
    def waiting(self) -> int:
        """The number of waiting jobs."""
        return self._waiting

    def submit(self, job: Job) -> None:
        """Add the job to the queue."""
        self._queue.add(job)
        self._waiting += 1

    def cycle(self, now_s: Seconds) -> CycleRecord:
        """Start what the scheduler matches."""
        waiting = self._waiting
        if not waiting:
            return CycleRecord(now_s, 0, 0, "", ())
        if self._age_limit_s is not None:
            self._age(now_s - self._age_limit_s)
        self._queue.now_s = now_s
        coming = self._coming_free(now_s) if self._scheduler.asks_for_ends else NOTHING_COMES_FREE
        schedule = self._scheduler.schedule(self._node_arrays, self._free, self._queue, coming)
        for match in schedule.matches:
            self._start(PlacedRun(*match, start_s=now_s, end_s=now_s))
        if schedule.matches:
            self._queue.remove({match.job.id for match in schedule.matches}, self._queue_depth)
            self._waiting -= len(schedule.matches)
            self.want_cycle(now_s + 1)
        most = len(schedule.matches)
        winners = tuple(member for member, count in schedule.matched.items() if count == most)
        return CycleRecord(now_s, waiting, most, schedule.chosen, winners)

    def finish(self, placed: PlacedRun) -> None:
        """Free what the job held, and update the ends that change with it."""
        self._free[:, placed.nodes] += self._node_arrays.taken(placed.alternative, placed.nodes)
        del self._running[placed.job.id]
        self.expect(self._progress.finish(placed))
        self._charge(placed, -1)

    def _coming_free(self, now_s: Seconds) -> Releases:
        """What the running jobs will give back when they are expected to end; overdue ones now."""
        capacity = self._node_arrays.capacity
        ends_s, nodes, amounts = [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros((len(capacity), 0), np.int64)]
        for placed in self._running.values():
            run_s, shape = placed.job.expected_run_s, (len(capacity), len(placed.nodes))
            end_s = inf if run_s is None else max(float(placed.start_s + run_s), float(now_s))
            ends_s.append(np.full(len(placed.nodes), end_s))
            nodes.append(placed.nodes)
            amounts.append(np.broadcast_to(self._node_arrays.taken(placed.alternative, placed.nodes), shape))
        return in_order_of_ends(np.concatenate(ends_s), np.concatenate(nodes), np.hstack(amounts).T)

    def _age(self, before_s: Seconds) -> None:
        """Mark the jobs that still wait and were submitted before this second as over-aged: they go first."""
        jobs = self.trace.jobs
        while self._next_aged < len(jobs) and jobs[self._next_aged].job.submit_s < before_s:
            job = jobs[self._next_aged].job
            self._next_aged += 1
            if job.id not in self.placements:
                own = self._queue.by_project[job.project]
                own.pop(0)  # all before it have started or are over-aged
                if not own:
                    del self._queue.by_project[job.project]
                self._queue.add(replace(job, over_aged=True))

    def _start(self, placed: PlacedRun) -> None:
        self._free[:, placed.nodes] -= self._node_arrays.taken(placed.alternative, placed.nodes)
        self._running[placed.job.id] = placed
        self.expect(self._progress.start(placed))
        self._charge(placed, 1)

    def _charge(self, placed: PlacedRun, sign: int) -> None:
        """Update what the job's project holds; skipped with a single project, where it decides nothing."""
        if not self._many_projects:
            return
        held = total([placed.alternative.demand] * placed.alternative.nodes)
        project = self._projects.get(placed.job.project, Project())
        used = project.used.plus(held.times(sign))
        self._projects[placed.job.project] = Project(project.share, used)
