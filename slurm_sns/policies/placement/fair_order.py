"""The order in which a cycle looks at the waiting jobs.

Over-aged jobs come first, oldest first. Then the project with the smallest used / share, first in first out inside it.
Used is the larger of the fractions of all cores and of all memory that the project holds: running plus matched so far
in this schedule. Each match changes a ratio, so the order is decided job by job, by a heap of projects rather than by
sorting. Among equal ratios the project with the older first job comes first, then the project's name decides.

Source: Max-Jobs paper (JSSPP 2013), section 1, on fair share; the measure of use and the ties are ours.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import NamedTuple

from slurm_sns.model import Job, Project, Resources, Seconds

NEWCOMER = Project()


@dataclass
class WaitingQueue:
    """The waiting jobs by project, each list in the order of its jobs, what the projects hold, and the time."""

    projects: Mapping[str, Project] = field(default_factory=dict)
    over_aged: list[Job] = field(default_factory=list)
    by_project: dict[str, list[Job]] = field(default_factory=dict)
    now_s: Seconds = 0

    @classmethod
    def of(cls, waiting: Iterable[Job], projects: Mapping[str, Project], now_s: Seconds = 0) -> "WaitingQueue":
        """The queue of a snapshot's jobs, which come in queue order."""
        queue = cls(projects, now_s=now_s)
        for job in waiting:
            queue.add(job)
        queue.over_aged.sort(key=lambda job: (job.submit_s, job.order))
        return queue

    def add(self, job: Job) -> None:
        """Put a job at the end of its project's list."""
        if job.over_aged:
            self.over_aged.append(job)
        else:
            self.by_project.setdefault(job.project, []).append(job)

    def remove(self, jobs: Collection[int], depth: int) -> None:
        """Take out jobs by id; all of them are among the first `depth` of the ordered queue."""
        self.over_aged = [job for job in self.over_aged if job.id not in jobs]
        for project, waiting in list(self.by_project.items()):
            waiting[:depth] = [job for job in waiting[:depth] if job.id not in jobs]
            if not waiting:
                del self.by_project[project]

    def withholds_since_s(self, limit_s: Seconds | None) -> Seconds:
        """When a job that has waited as long as the limit was submitted; None: no limit."""
        return -inf if limit_s is None else self.now_s - limit_s

    def all_jobs(self) -> list[Job]:
        """All jobs: the over-aged ones, then those of each project."""
        return [*self.over_aged, *chain.from_iterable(self.by_project.values())]

    def __len__(self) -> int:
        return len(self.over_aged) + sum(map(len, self.by_project.values()))


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
