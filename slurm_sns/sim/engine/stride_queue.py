"""The queue of Spread-n-Share's prototype: one job at a time is tried, and a job that finds no place ages more slowly.

Each job has a value, 0 at its submit, that grows by its stride in every second: by FAST, or by SLOW once the job was
tried and found no place. Any start makes all jobs fast again. The job of the largest value less its number (in the
order of submits) is tried; a job stays ahead of those that only reach it.

All fast jobs grow alike, and so do all slow ones. Two heaps, ordered by value at second 0, therefore hold the order.

Source: SSdatabase.py and SSconfig.py of Uberun, the prototype (github.com/thu-pacman/Uberun).
"""

import heapq
from math import floor

from slurm_sns.model import Job, Seconds
from slurm_sns.policies.placement.fair_order import WaitingQueue
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.engine.event_loop import CycleRecord
from slurm_sns.sim.engine.matching import Matcher, Simulation
from slurm_sns.sim.progress.progress import PlacedRun, Progress
from slurm_sns.sim.traces.trace import Trace

#: The prototype's default_stride and slow_stride, per second.
FAST, SLOW = 100, 50
#: The prototype's master tries a job, then waits for messages for at most this long.
PAUSE_S = 1

#: A job by its value at second 0, negative since heapq pops the smallest first, and its id.
_Entry = tuple[Seconds, int]


class StrideQueue:
    """The waiting jobs; every method is told the time, which never goes back."""

    def __init__(self) -> None:
        """Start without jobs."""
        self._jobs: dict[int, Job] = {}
        self._fast: list[_Entry] = []
        self._slow: list[_Entry] = []
        self._submitted = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: Job, now_s: Seconds) -> None:
        """A job is submitted."""
        self._jobs[job.id] = job
        heapq.heappush(self._fast, (FAST * now_s + self._submitted, job.id))
        self._submitted += 1

    def first(self, now_s: Seconds) -> Job:
        """The job to try now; the queue must not be empty."""
        return self._jobs[self._heap(now_s)[0][1]]

    def stuck(self, now_s: Seconds) -> None:
        """The first job has found no place: it is slow until the next start."""
        heap = self._heap(now_s)
        if heap is self._fast:
            at_0, job_id = heapq.heappop(heap)
            heapq.heappush(self._slow, (at_0 - (FAST - SLOW) * now_s, job_id))

    def start(self, now_s: Seconds) -> None:
        """The first job has started: it leaves the queue, and all others are fast again."""
        _, job_id = heapq.heappop(self._heap(now_s))
        del self._jobs[job_id]
        for at_0, slow_id in self._slow:
            heapq.heappush(self._fast, (at_0 + (FAST - SLOW) * now_s, slow_id))
        self._slow.clear()

    def overtaken_s(self) -> int | None:
        """The first whole second in which a fast job is ahead of the slow ones; None if that never comes."""
        if not self._slow or not self._fast:
            return None
        return floor((self._fast[0][0] - self._slow[0][0]) / (FAST - SLOW)) + 1

    def _heap(self, now_s: Seconds) -> list[_Entry]:
        """The heap whose top is the first job."""
        if not self._slow or not self._fast:
            return self._slow or self._fast
        slow, fast = SLOW * now_s - self._slow[0][0], FAST * now_s - self._fast[0][0]
        return self._slow if slow >= fast else self._fast


class StrideSimulation(Simulation):
    """A cluster whose jobs wait in the prototype's queue.

    As on the authors' cluster, a job is tried at each submit and finish, and again after a pause for as long as another
    job may come first. `tries_at_events_only`: as in the authors' simulator, jobs are tried at each submit and finish
    until one of them finds no place.
    """

    def __init__(
        self,
        node_arrays: NodeArrays,
        trace: Trace,
        scheduler: Matcher,
        *,
        interval_s: int,
        progress: Progress,
        tries_at_events_only: bool = False,
    ) -> None:
        """Start without jobs; the arguments are those of `Simulation`."""
        super().__init__(node_arrays, trace, scheduler, queue_depth=1, interval_s=interval_s, progress=progress)
        self._strides = StrideQueue()
        self._tries_at_events_only = tries_at_events_only

    @property
    def waiting(self) -> int:
        """The number of waiting jobs."""
        return len(self._strides)

    def submit(self, job: Job) -> None:
        """Add the job to the queue."""
        self._strides.add(job, job.submit_s)

    def cycle(self, now_s: Seconds) -> CycleRecord:
        """Try the first job; in the simulator's variant also those that follow, until one is stuck."""
        waiting, started = self.waiting, 0
        while self.waiting and self._try_first(now_s):
            started += 1
            if not self._tries_at_events_only:
                self.want_cycle(now_s + PAUSE_S)
                break
        overtaken_s = None if self._tries_at_events_only else self._strides.overtaken_s()
        if overtaken_s is not None:
            self.want_cycle(max(overtaken_s, now_s + PAUSE_S))
        return CycleRecord(now_s, waiting, started, "", ())

    def _try_first(self, now_s: Seconds) -> bool:
        """Whether the first job has found a place."""
        queue = WaitingQueue(self._projects)
        queue.add(self._strides.first(now_s))
        matches = self._scheduler.schedule(self._node_arrays, self._free, queue).matches
        for match in matches:
            self._strides.start(now_s)
            self._start(PlacedRun(*match, start_s=now_s, end_s=now_s))
        if not matches:
            self._strides.stuck(now_s)
        return bool(matches)
