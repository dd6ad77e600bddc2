"""When jobs give back what they hold on nodes: at their time limits, as in Slurm's own backfill.

A job may end earlier than its limit; its nodes are then ready earlier than stated here. A job that runs beyond its
limit may end at any moment.
"""

from bisect import insort
from collections.abc import Iterable
from math import ceil, inf

from slurm_sns.model import Resources
from slurm_sns.scheduler.observation.observed import ObservedJob

#: A job beyond its time limit is assumed to end after so many seconds.
ANY_MOMENT_S = 1.0


class Releases:
    """What comes free on each node, and when."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s
        self._of: dict[str, list[tuple[float, Resources]]] = {}

    def add(self, nodes: Iterable[str], end_s: float, amount: Resources) -> None:
        """Add `amount`, which is held on each of these nodes until `end_s` (inf: not known)."""
        for name in nodes:
            insort(self._of.setdefault(name, []), (max(end_s, self.now_s + ANY_MOMENT_S), amount))

    def ready_s(self, node: str, needed: Resources, free: Resources) -> float:
        """When `needed` will be free on the node, on which `free` is free now; inf: not known."""
        if needed.within(free):
            return self.now_s
        for end_s, amount in self._of.get(node, ()):
            free = free.plus(amount)
            if needed.within(free):
                return end_s
        return inf


def of_running(jobs: Iterable[ObservedJob], now_s: float) -> Releases:
    """The releases of all jobs that hold nodes. Slurm tells what a job holds in all: here it is split equally."""
    releases = Releases(now_s)
    for job in jobs:
        if job.state.occupies_nodes and job.allocated:
            count = len(job.allocated)
            share = Resources(*(ceil(amount / count) for amount in job.occupies))
            releases.add(job.allocated, inf if job.walltime_s is None or not job.end_s else job.end_s, share)
    return releases
