"""The simulated slurmctld for thousands of nodes: the same rules, and what a step costs is what has changed.

It counts what is taken when jobs start and end, and knows the waiting jobs whose begin time has come, so a pass looks
at these alone. What it leaves out: suspension, several partitions for a job, reservations, and Slurm's own plans.

A job with a node list starts in the main pass, as in the model that it is made from. One without waits for the next
backfill pass, and there holds up the others without a list: Slurm's search among all nodes is what costs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from slurm_sns.model import NOTHING, Resources
from slurm_sns.scheduler.observation import ObservedNode
from world.slurm import Slurm, SlurmSite, SlurmsWorld
from world.slurm_jobs import WAITING, ModelJob
from world.slurm_passes import Free, Passes, Rest, Use


class LargeSlurm(Slurm):
    """slurmctld of a large site."""

    def __init__(self, site: SlurmSite, world: SlurmsWorld) -> None:
        assert not site.suspends_by_tier, "suspension is not counted here"
        super().__init__(site, world)
        self.passes = LargePasses(self)
        self._taken = dict.fromkeys(self.nodes, NOTHING)
        #: What the jobs that have nodes take there, by job id, and those of them that complete.
        self._held: dict[int, list[tuple[str, Resources]]] = {}
        self._completing: dict[int, ModelJob] = {}
        #: The waiting jobs whose begin time has come, and the begin times that lie ahead; some are outdated.
        self._open: dict[int, ModelJob] = {}
        self._begins: list[tuple[int, int]] = []
        self._node_values: dict[str, ObservedNode] = {}
        self._changed_nodes = set(self.nodes)

    def taken(self) -> dict[str, Resources]:
        return self._taken

    def load_nodes(self) -> tuple[ObservedNode, ...]:
        assert not self.reservations, "reservations are not counted here"
        for name in sorted(self._changed_nodes):
            self._node_values[name] = self._shown_as(name, self.nodes[name], self._taken[name])
        self._changed_nodes.clear()
        return tuple(self._node_values.values())

    def open_jobs(self) -> list[ModelJob]:
        """The waiting jobs whose begin time has come."""
        now_s = self.world.wall_s()
        while self._begins and self._begins[0][0] <= now_s:
            job = self.jobs.get(heappop(self._begins)[1])
            if job is not None and job.state == WAITING and job.begin_s <= now_s:
                self._open[job.id] = job
        return list(self._open.values())

    def completing_nodes(self) -> set[str]:
        """The nodes on which a job completes."""
        return {name for job in self._completing.values() for name in job.allocated}

    def update_node(self, name: str, state: str, by: str = "admin") -> None:
        super().update_node(name, state, by)
        self._changed_nodes.add(name)

    def start(self, job: ModelJob, nodes: tuple[str, ...], cores: tuple[int, ...]) -> ModelJob:
        started = super().start(job, nodes, cores)
        self._held[started.id] = started.takes()
        for name, each in started.takes():
            self._taken[name] = self._taken[name].plus(each)
            self._changed_nodes.add(name)
        return started

    def _split(self, record: ModelJob, tasks: Iterable[int], by: str) -> dict[int | None, ModelJob]:
        found = super()._split(record, tasks, by)
        for job in found.values():
            self._follow(job)
        return found

    def _complete(self, job: ModelJob, state: str, how: str) -> None:
        super()._complete(job, state, how)
        self._completing[job.id] = job

    def _requeue(self, job: ModelJob) -> None:
        super()._requeue(job)
        self._completing[job.id] = job

    def _epilogue(self, job: ModelJob) -> None:
        self._completing.pop(job.id, None)
        for name, each in self._held.pop(job.id, ()):
            self._taken[name] = self._taken[name].minus(each)
            self._changed_nodes.add(name)
        super()._epilogue(job)

    def _tell(self, kind: str, job: ModelJob, by: str, **data: Any) -> None:
        super()._tell(kind, job, by, **data)
        self._follow(job)

    def _follow(self, job: ModelJob) -> None:
        """Note whether the job may start now, or when."""
        if job.state == WAITING and job.id in self.jobs and job.begin_s <= self.world.wall_s():
            self._open[job.id] = job
            return
        self._open.pop(job.id, None)
        if job.state == WAITING:
            heappush(self._begins, (job.begin_s, job.id))


class FreeNow(Mapping[str, Resources]):
    """What is free on each node, as it is when it is asked for."""

    def __init__(self, slurm: LargeSlurm) -> None:
        self._nodes, self._taken = slurm.nodes, slurm.taken()

    def __getitem__(self, name: str) -> Resources:
        return self._nodes[name].capacity.minus(self._taken[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


class LargePasses(Passes):
    """The passes of a large Slurm."""

    _slurm: LargeSlurm

    def __init__(self, slurm: LargeSlurm) -> None:
        super().__init__(slurm)
        self._cores: dict[str, int] = {}

    def _queue(self) -> list[tuple[int, str]]:
        waiting = [
            job
            for job in self._slurm.open_jobs()
            if job.state == WAITING and not job.is_held and (job.required or self._is_backfill)
        ]
        waiting.sort(key=lambda job: (-job.priority, job.id))
        return [(job.id, job.partition) for job in waiting]

    def _completing_nodes(self) -> set[str]:
        return self._slurm.completing_nodes()

    def _use(self) -> Use:
        limits, jobs = self._slurm.limits, self._slurm.jobs
        is_counted = limits.cores or limits.cores_of_qos or limits.jobs
        if is_counted or any(jobs[job_id].array_limit for job_id, _ in self._noted if job_id in jobs):
            return super()._use()
        return Use(())

    def _free(self) -> Free:
        return FreeNow(self._slurm)  # type: ignore[return-value] - nothing writes into it: see _take

    def _take(self, free: Free, job: ModelJob) -> None:
        """Slurm itself has counted it."""

    def _inside(self, job: ModelJob) -> Sequence[str]:
        nodes = self._slurm.partitions[job.partition].nodes
        if job.required:
            there = self._slurm._inside
            return [name for name in job.required if name not in job.excluded and job.partition in there[name]]
        return [name for name in nodes if name not in job.excluded] if job.excluded else nodes

    def _could_hold(self, job: ModelJob, inside: Sequence[str]) -> bool:
        """As in the model, but node lists are not remembered: each placement has its own."""
        if job.required:
            return self._choose(job, self._empty(inside)) is not None
        asked = (
            *(job.partition, job.excluded, job.tasks, job.cpus_per_task, job.tasks_per_node, job.nodes_min),
            *(job.min_cpus_per_node, job.nodes_max, job.memory_per_cpu_mb, job.memory_per_node_mb),
            *(job.ways, job.bandwidth_gbps, job.is_alone),
        )
        if asked not in self._is_possible:
            self._is_possible[asked] = self._choose(job, self._empty(inside)) is not None
        return self._is_possible[asked]

    def _cores_in(self, partition: str) -> int:
        if partition not in self._cores:
            self._cores[partition] = super()._cores_in(partition)
        return self._cores[partition]

    def _pass_over(self, job: ModelJob, rest: Rest) -> None:
        if job.is_held:  # by Slurm itself, which has found it impossible
            return
        if job.required:
            rest.barred.update(job.required)
        else:
            rest.full.add(job.partition)
