"""The event-driven simulation of matching: submits, finishes and cycles on one heap of (time, priority, sequence).

Time is in whole seconds. In one second finishes come first, then submits, then, at multiples of the interval, one
cycle. A cycle runs only when something was submitted or finished since the last one, or the last one matched something.
A job started at s with run time r ends at s + r, and its nodes are free in a cycle at s + r. A model of progress says
when jobs end, and may time running ones anew; what the heap then holds of their old ends is passed over.

Source: Max-Jobs paper (JSSPP 2013), section 5; the heap as in SimPy's core.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from slurm_sns.errors import SnsError
from slurm_sns.model import Project, Resources, total
from slurm_sns.policies.placement.pool import Amounts, Pool, taken
from slurm_sns.policies.placement.portfolio import Schedule
from slurm_sns.policies.placement.queue import WaitingQueue
from slurm_sns.sim.progress import Fixed, Placement, Progress
from slurm_sns.sim.trace import Trace, TraceJob

FINISH, SUBMIT, CYCLE = range(3)


class Scheduler(Protocol):
    """Matches a queue to what is free, without words."""

    def schedule(self, pool: Pool, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The matches of one cycle; neither `free` nor `queue` is changed."""
        ...


class CycleRecord(NamedTuple):
    """A cycle: how many jobs waited, how many were started, by whose schedule; who reached the maximum."""

    time_s: int
    waiting: int
    started: int
    chosen: str
    winners: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """Every job's placement, in the trace's order, and every cycle that ran."""

    placements: tuple[Placement, ...]
    cycles: tuple[CycleRecord, ...]


class Simulation:
    """A cluster on which a trace is replayed."""

    def __init__(
        self,
        pool: Pool,
        trace: Trace,
        scheduler: Scheduler,
        *,
        queue_depth: int,
        interval_s: int,
        shares: Mapping[str, float] | None = None,
        progress: Progress | None = None,
        age_limit_s: int | None = None,
    ) -> None:
        """Nothing runs and nobody waits yet. A project that `shares` does not name has share 1.

        `progress` says when jobs end; None: each runs as long as the trace says. Jobs that have waited longer than
        `age_limit_s` go first, oldest first, and have capacity withheld for them.
        """
        self._pool = pool
        self._trace = trace
        self._scheduler = scheduler
        self._queue_depth = queue_depth
        self._interval_s = interval_s
        self._age_limit_s = age_limit_s
        self._free = pool.capacity.copy()
        self._projects = {project: Project(share) for project, share in (shares or {}).items()}
        self._queue = WaitingQueue(self._projects)
        self._many_projects = len({each.job.project for each in trace.jobs}) > 1
        run_s = {each.job.id: each.run_s for each in trace.jobs}
        self._progress = progress or Fixed(lambda job, _alternative: run_s[job.id])
        self._waiting = 0
        self._placements: dict[int, Placement] = {}
        self._cycles: list[CycleRecord] = []
        self._events: list[tuple[int, int, int, TraceJob | Placement | None]] = []
        self._sequence = 0
        self._next_submit = 0
        self._next_aged = 0
        self._cycle_due_s: int | None = None

    def run(self, progress: Callable[[int], None] = lambda _started: None) -> Outcome:
        """Replay the whole trace; `progress` is told after each cycle how many jobs have been started."""
        self._submit_next()
        while self._events:
            time_s, _, _, subject = heapq.heappop(self._events)
            if isinstance(subject, Placement):
                if self._placements[subject.job.id] is subject:
                    self._finish(subject)
                    self._want_cycle(time_s)
            elif isinstance(subject, TraceJob):
                self._queue.add(subject.job)
                self._waiting += 1
                self._submit_next()
                self._want_cycle(time_s)
            else:
                self._cycle(time_s)
                progress(len(self._placements))
        if self._waiting:
            raise SnsError(f"the simulation ended with {self._waiting} jobs that never started; this is a defect")
        return Outcome(tuple(self._placements[each.job.id] for each in self._trace.jobs), tuple(self._cycles))

    def _push(self, time_s: int, priority: int, subject: TraceJob | Placement | None) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (time_s, priority, self._sequence, subject))

    def _submit_next(self) -> None:
        """Put the next submit on the heap: one at a time keeps it small."""
        if self._next_submit < len(self._trace.jobs):
            job = self._trace.jobs[self._next_submit]
            self._next_submit += 1
            self._push(job.job.submit_s, SUBMIT, job)

    def _want_cycle(self, time_s: int) -> None:
        """See that a cycle runs at the first multiple of the interval that is not before this second."""
        if self._cycle_due_s is None:
            self._cycle_due_s = -(-time_s // self._interval_s) * self._interval_s
            self._push(self._cycle_due_s, CYCLE, None)

    def _cycle(self, now_s: int) -> None:
        self._cycle_due_s = None
        waiting = self._waiting
        if not waiting:
            self._cycles.append(CycleRecord(now_s, 0, 0, "", ()))
            return
        if self._age_limit_s is not None:
            self._age(now_s - self._age_limit_s)
        schedule = self._scheduler.schedule(self._pool, self._free, self._queue)
        for match in schedule.matches:
            self._start(Placement(*match, start_s=now_s, end_s=now_s))
        if schedule.matches:
            self._queue.remove({match.job.id for match in schedule.matches}, self._queue_depth)
            self._waiting -= len(schedule.matches)
            self._want_cycle(now_s + 1)
        most = len(schedule.matches)
        winners = tuple(member for member, count in schedule.matched.items() if count == most)
        self._cycles.append(CycleRecord(now_s, waiting, most, schedule.chosen, winners))

    def _age(self, before_s: int) -> None:
        """Let the jobs that were submitted before this second and still wait go first."""
        jobs = self._trace.jobs
        while self._next_aged < len(jobs) and jobs[self._next_aged].job.submit_s < before_s:
            job = jobs[self._next_aged].job
            self._next_aged += 1
            if job.id not in self._placements:
                own = self._queue.by_project[job.project]
                own.pop(0)  # all before it have started or are over-aged
                if not own:
                    del self._queue.by_project[job.project]
                self._queue.add(replace(job, over_aged=True))

    def _start(self, placed: Placement) -> None:
        self._free[:, placed.nodes] -= taken(self._pool.capacity, placed.alternative, placed.nodes)
        self._expect(self._progress.start(placed))
        self._charge(placed, 1)

    def _expect(self, timed: Iterable[Placement]) -> None:
        """Wait for these ends, in the place of those that the same jobs had before."""
        for placed in timed:
            self._placements[placed.job.id] = placed
            self._push(placed.end_s, FINISH, placed)

    def _finish(self, placed: Placement) -> None:
        self._free[:, placed.nodes] += taken(self._pool.capacity, placed.alternative, placed.nodes)
        self._expect(self._progress.finish(placed))
        self._charge(placed, -1)

    def _charge(self, placed: Placement, sign: int) -> None:
        """Keep what the projects hold; with a single project it decides nothing."""
        if not self._many_projects:
            return
        held = total([placed.alternative.demand] * placed.alternative.nodes)
        project = self._projects.get(placed.job.project, Project())
        used = project.used.plus(Resources(*(sign * amount for amount in held)))
        self._projects[placed.job.project] = Project(project.share, used)
