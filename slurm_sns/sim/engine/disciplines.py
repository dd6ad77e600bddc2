"""The queue disciplines of the reproductions of Spread-n-Share: which waiting jobs are tried, and in which order.

*text*: section 4.4 of the paper. In a cycle every waiting job is tried, in the order of submits; one that finds no
place is delayed, and the next is tried.
*age limit*: the same, and a job that has waited for longer than the age limit makes all others give way.
*first job*: only the first waiting job is tried, in the order of submits.
*prototype*: the queue of the authors' prototype on their cluster.
*simulator*: the same queue as the authors' simulator serves it.

In the prototype's queue one job at a time is tried, and a job that finds no place ages more slowly. Each job has a
value, 0 at its submit, that grows by its stride in every second: by FAST, or by SLOW once the job was tried and found
no place. Any start makes all jobs fast again. The job of the largest value less its number (in the order of submits) is
tried; a job stays ahead of those that only reach it. All fast jobs grow alike, and so do all slow ones. Two heaps,
ordered by value at second 0, therefore hold the order.

Source: SSdatabase.py and SSconfig.py of Uberun, the prototype (github.com/thu-pacman/Uberun).
"""

import heapq
from math import floor

from slurm_sns.model import Job, Seconds
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.waiting_queue import WaitingQueue
from slurm_sns.sim.engine.event_loop import CycleRecord
from slurm_sns.sim.engine.matching import Matcher, Simulation
from slurm_sns.sim.progress.progress import PlacedRun, Progress
from slurm_sns.sim.trace import Trace

TEXT, AGE_LIMIT, FIRST_JOB, PROTOTYPE, SIMULATOR = "text", "age limit", "first job", "prototype", "simulator"
#: The paper demands a "configurable age limit" without a value; six hours are ours.
AGE_LIMIT_S = 6 * 3600
#: The prototype's default_stride and slow_stride, per second.
FAST, SLOW = 100, 50
#: The prototype's master tries a job, then waits for messages for at most this long.
PAUSE_S = 1

#: A job by its value at second 0, negative since heapq pops the smallest first, and its id.
_Entry = tuple[Seconds, int]


def simulation_of(
    discipline: str,
    node_arrays: NodeArrays,
    trace: Trace,
    policy: Portfolio,
    *,
    queue_depth: int,
    interval_s: int,
    progress: Progress,
) -> Simulation:
    """The simulation of the policy under a queue discipline of this module.

    `queue_depth` is the policy's own: how many jobs a cycle looks at. Under *first job* it must be 1.
    """
    if discipline in {PROTOTYPE, SIMULATOR}:
        return StrideSimulation(
            node_arrays,
            trace,
            policy,
            interval_s=interval_s,
            progress=progress,
            tries_at_events_only=discipline == SIMULATOR,
        )
    return Simulation(
        node_arrays,
        trace,
        policy,
        queue_depth=queue_depth,
        interval_s=interval_s,
        progress=progress,
        age_limit_s=AGE_LIMIT_S if discipline == AGE_LIMIT else None,
    )


def queue_depth_of(discipline: str, deepest: int) -> int:
    """How many jobs a cycle looks at under the discipline; `deepest` where all are tried."""
    return 1 if discipline == FIRST_JOB else deepest


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
