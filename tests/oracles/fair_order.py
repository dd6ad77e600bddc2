"""The fair order, job by job: what `policies/placement/fair_order_kernel` must do."""

import heapq
from typing import NamedTuple

from slurm_sns.model import Job, Resources
from slurm_sns.policies.placement.waiting_queue import NEWCOMER, WaitingQueue


class Head(NamedTuple):
    """A project in the heap, ordered by its ratio and by its oldest job that was not looked at yet."""

    ratio: float
    order: tuple[int, ...]
    project: str
    position: int


class FairOrder:
    """One walk through the queue: `pop` gives the next job, `charge` counts a matched job against its project.

    `shared` is False when a single project waits: then the order is first in first out and `charge` is not needed.
    """

    def __init__(self, queue: WaitingQueue, capacity: Resources) -> None:
        """Begin at the first job; `capacity` is the capacity of all nodes together."""
        self._queue = queue
        self.shared = len(queue.by_project) > 1
        self._capacity = capacity
        self._over_aged = iter(queue.over_aged)
        self._matched: dict[str, Resources] = {}
        self._ratios = {project: self._ratio(project) for project in queue.by_project}
        self._heads = [
            Head(self._ratios[project], jobs[0].order, project, 0) for project, jobs in queue.by_project.items() if jobs
        ]
        heapq.heapify(self._heads)
        self._last: Head | None = None

    def pop(self) -> Job | None:
        """The next job, None when all were given."""
        job = next(self._over_aged, None)
        if job is not None:
            return job
        head = self._next_head()
        self._last = head
        return self._queue.by_project[head.project][head.position] if head else None

    def charge(self, job: Job, held: Resources) -> None:
        """Count what a matched job takes, over all its nodes, against its project."""
        self._matched[job.project] = self._matched.get(job.project, Resources(0, 0)).plus(held)
        if job.project not in self._ratios:
            return
        self._ratios[job.project] = self._ratio(job.project)
        if job.over_aged:  # its project's head is still in the heap with the old ratio
            self._heads = [head._replace(ratio=self._ratios[head.project]) for head in self._heads]
            heapq.heapify(self._heads)

    def _next_head(self) -> Head | None:
        last = self._last
        if last is not None:
            jobs = self._queue.by_project[last.project]
            position = last.position + 1
            if position < len(jobs):
                following = Head(self._ratios[last.project], jobs[position].order, last.project, position)
                return heapq.heappushpop(self._heads, following)
        return heapq.heappop(self._heads) if self._heads else None

    def _ratio(self, name: str) -> float:
        """Used / share. One division each, so that ratios that are equal as fractions are equal as floats."""
        project = self._queue.projects.get(name, NEWCOMER)
        used = project.used.plus(self._matched.get(name, Resources(0, 0)))
        return max(
            _fraction(used.cores, self._capacity.cores * project.share),
            _fraction(used.memory_mb, self._capacity.memory_mb * project.share),
        )


def _fraction(part: int, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
