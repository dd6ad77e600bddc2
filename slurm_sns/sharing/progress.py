"""By which part of its cores each job goes on where jobs share cores, and how much of its run it has made so far.

A job's need on a node is the cores that it asked for there. Its yield is the smallest part of its need that one of its
nodes has for it: 1 where the node has enough for all, else the node's cores over the needs of all jobs there. It
follows from placements, and is not measured: a job that is idle has it, too, so idling stretches no limit. A job's
virtual time is the integral of its yield over the time that it has run.

Source: Dynamic fractional resource scheduling (IPDPS 2010), sections II-B and III-A (the yields before the improvement
of their average, which the kernel's scheduler makes by itself where time is given by weights).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharingJob:
    """A job on nodes whose cores are shared: its nodes, each named once, and the cores that it needs on each."""

    id: int
    nodes: tuple[str, ...]
    cores: int


def yields(cores: Mapping[str, int], jobs: Iterable[SharingJob]) -> dict[int, float]:
    """The yield of each job; `cores` are those of the nodes, 0 where they are not known: such a node has enough."""
    jobs = tuple(jobs)
    needed: dict[str, int] = {}
    for job in jobs:
        for name in job.nodes:
            needed[name] = needed.get(name, 0) + job.cores
    part = {name: min(1.0, cores[name] / need) for name, need in needed.items() if need and cores.get(name, 0) > 0}
    return {job.id: min((part.get(name, 1.0) for name in job.nodes), default=1.0) for job in jobs}


@dataclass(frozen=True, slots=True)
class RunProgress:
    """What a job has made of its run: `ran_s` seconds (without suspensions), of which `virtual_s` at the full speed.

    `before_s` is the virtual time of its runs that were paused. `restarts` tells its runs apart.
    """

    restarts: int = 0
    ran_s: float = 0.0
    virtual_s: float = 0.0
    before_s: float = 0.0

    @property
    def all_s(self) -> float:
        """The virtual time of all its runs, by which its priority falls."""
        return self.before_s + self.virtual_s

    def after(self, restarts: int, ran_s: float, part: float) -> "RunProgress":
        """The same a moment later: it has run for `ran_s` by now, since the last look with the yield `part`."""
        here = self if restarts == self.restarts else RunProgress(restarts, before_s=self.all_s)
        return RunProgress(
            restarts, max(ran_s, here.ran_s), here.virtual_s + max(0.0, ran_s - here.ran_s) * part, here.before_s
        )
