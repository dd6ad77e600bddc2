"""The waiting jobs of a snapshot: by project, and those that are over-aged."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from slurm_sns.model import Job, Project, Seconds

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

    def __len__(self) -> int:
        return len(self.over_aged) + sum(map(len, self.by_project.values()))
