"""How the simulated Slurm chooses what to start: the main pass and backfill.

The main pass goes through the queue by tier, priority and age. Behind a job for which there is no room now it starts
nothing in that partition, nor on its nodes; a job with a node list of its own holds up only these nodes. Backfill looks
at all jobs every bf_interval: it plans the first job that has no room, on the nodes where it can start soonest by the
others' time limits, and starts others only where they do not delay it. A pass takes time: what it starts is decided by
the queue at its beginning, and done at its end if that still holds.

With `suspends_by_tier` a job without room suspends running jobs of lower tiers on its nodes. They keep their memory,
and their cores against all jobs but those of higher tiers, and go on as soon as nothing runs on these cores any more.

A job whose begin time lies ahead is no part of the queue: it holds up nobody. Nothing starts on a node where a job is
completing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from slurm_sns.model import Resources
from world.slurm_jobs import HOLD_REASONS, OCCUPYING, REQUEUED_HELD, WAITING, ModelJob, changed

if TYPE_CHECKING:
    from world.slurm import Slurm

#: How soon after a change the main pass begins, at least and at most, and how long a pass takes.
MAIN_DELAY_S, PASS_TAKES_S = (0.0, 0.4), (0.0, 0.1)
#: The main pass also runs by itself this often (sched_interval).
MAIN_INTERVAL_S = 60.0


#: Other reasons of a held job are replaced by that of an administrator's hold.
HELD = frozenset({*HOLD_REASONS.values(), REQUEUED_HELD})


class Use:
    """What runs now, as limits count it: cores by account and by QOS, jobs by user, tasks by array."""

    def __init__(self, running: Iterable[ModelJob]) -> None:
        self.cores: Counter[str] = Counter()
        self.cores_of_qos: Counter[str] = Counter()
        self.jobs: Counter[str] = Counter()
        self.tasks: Counter[int | None] = Counter()
        for job in running:
            self.add(job)

    def add(self, job: ModelJob) -> None:
        self.cores[job.account] += sum(job.cores)
        self.cores_of_qos[job.qos] += sum(job.cores)
        self.jobs[job.user] += 1
        self.tasks[job.array_id] += 1


Free = dict[str, Resources]
Room = tuple[tuple[str, ...], tuple[int, ...]]


@dataclass
class Rest:
    """What a pass leaves to the jobs behind.

    The main pass starts nothing more in the partitions `full` and on the nodes `barred`. Backfill keeps nodes from a
    moment on for the first job that it has planned (`kept`).
    """

    free: Free
    full: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    kept: tuple[frozenset[str], float] | None = None


def _add_cores(free: Free, job: ModelJob, times: int = 1) -> None:
    """Count the cores that the job has on these nodes as free; `times` -1: as taken again."""
    for name, cores in zip(job.allocated, job.cores, strict=True):
        if name in free:
            free[name] = free[name]._replace(cores=free[name].cores + times * cores)


class Passes:
    """The passes of one Slurm."""

    def __init__(self, slurm: "Slurm") -> None:
        self._slurm = slurm
        self._main_s = MAIN_INTERVAL_S
        self._backfill_s = slurm.site.bf_interval_s
        self._ends_s = inf
        #: The jobs in the queue, each once for every partition in which it may run.
        self._noted: list[tuple[int, str]] = []
        self._is_backfill = False
        self._completing: set[str] = set()
        #: Whether empty nodes could hold a job that asks for this.
        self._is_possible: dict[tuple[object, ...], bool] = {}

    def wake(self) -> None:
        """Something has changed: the main pass runs soon."""
        draw = self._slurm.world.random.uniform
        self._main_s = min(self._main_s, self._slurm.world.true_s + draw(*MAIN_DELAY_S))

    def next_s(self) -> float:
        return self._ends_s if self._ends_s < inf else min(self._main_s, self._backfill_s)

    def step(self) -> None:
        """Begin or end the pass that is due."""
        now_s = self._slurm.world.true_s
        if self._ends_s <= now_s:
            self._ends_s = inf
            self._run()
        if self._ends_s == inf and min(self._main_s, self._backfill_s) <= now_s:
            self._is_backfill = self._backfill_s <= now_s
            if self._is_backfill:
                self._backfill_s = now_s + self._slurm.site.bf_interval_s
            else:
                self._main_s = now_s + MAIN_INTERVAL_S
            self._noted = self._queue()
            self._ends_s = now_s + self._slurm.world.random.uniform(*PASS_TAKES_S)

    # --- one pass

    def _queue(self) -> list[tuple[int, str]]:
        waiting = []
        for job in self._slurm.jobs.values():
            if job.state == WAITING:
                if not job.is_held:
                    waiting.append(job)
                elif job.reason not in HELD:
                    self._slurm.note(job, HOLD_REASONS["admin"])
        entries = [(job, name) for job in waiting for name in job.asks_in]
        tiers = {name: each.tier for name, each in self._slurm.partitions.items()}
        entries.sort(key=lambda entry: (-tiers[entry[1]], -entry[0].priority, entry[0].id))
        return [(job.id, name) for job, name in entries]

    def _run(self) -> None:
        slurm = self._slurm
        if self._is_backfill:
            for node in slurm.nodes.values():
                node.is_planned = False
        if slurm.site.suspends_by_tier:
            self._let_preempted_go_on()
        if not self._noted:
            return
        rest = Rest(self._free())
        self._completing = self._completing_nodes()
        use = self._use()
        for job_id, name in self._noted:
            while True:
                job = slurm.jobs.get(job_id)
                if job is None or job.state != WAITING or job.is_held or name not in job.asks_in:
                    break
                job.partition = name
                if job.several and not self._could_hold(job, self._inside(job)):
                    slurm.note(job, "Resources")
                    break
                if job.partition in rest.full:
                    slurm.note(job, "Priority")
                    break
                why = self._hindrance(job, use)
                if why:
                    slurm.note(job, why)
                    break
                room = self._room(job, rest) or self._preempted_room(job, rest)
                if room is None:
                    self._pass_over(job, rest)
                    break
                was_record = job.is_record
                started = slurm.start(job, *room)
                self._take(rest.free, started)
                use.add(started)
                if not was_record:
                    break

    def _let_preempted_go_on(self) -> None:
        suspended = [job for job in self._slurm.jobs.values() if job.state == "SUSPENDED"]
        preempted = [job for job in suspended if not job.is_paused]
        if not preempted:
            return
        free = self._free()
        for job in suspended:
            if job.keeps_cores:
                _add_cores(free, job)
        for job in preempted:
            if all(cores <= free[name].cores for name, cores in zip(job.allocated, job.cores, strict=True)):
                self._slurm.go_on(job)
                _add_cores(free, job, -1)

    def _preempted_room(self, job: ModelJob, rest: Rest) -> Room | None:
        """Room for the job on the cores of jobs of lower tiers; those of them that run are suspended then.

        Which of several Slurm would suspend was not seen: the table has one node and one such job.
        """
        slurm = self._slurm
        if not slurm.site.suspends_by_tier or job.is_held or job.is_alone:
            return None
        tier = slurm.partitions[job.partition].tier
        lower = [
            other
            for other in slurm.jobs.values()
            if other.state in ("RUNNING", "SUSPENDED")
            and other.keeps_cores
            and slurm.partitions[other.partition].tier < tier
        ]
        usable = {name: rest.free[name] for name in self._inside(job) if self._is_usable(job, name)}
        running = [other for other in lower if other.state == "RUNNING"]
        for other in lower:
            if other.state == "SUSPENDED":
                _add_cores(usable, other)
        for number in range(len(running) + 1):
            if number:
                _add_cores(usable, running[number - 1])
            room = self._choose(job, usable)
            if room is not None:
                for victim in running[:number]:
                    if set(victim.allocated) & set(room[0]):
                        slurm.preempt(victim)
                return room
        return None

    def _pass_over(self, job: ModelJob, rest: Rest) -> None:
        """There is no room for the job now."""
        if job.is_held:  # by Slurm itself, which has found it impossible
            return
        if self._is_backfill:
            rest.kept = rest.kept or self._plan(job)
        elif job.required and len(job.required) >= job.fewest_nodes:
            rest.barred.update(job.required)
        else:
            rest.full.add(job.partition)
            rest.barred.update(self._slurm.partitions[job.partition].nodes)

    def _completing_nodes(self) -> set[str]:
        return {name for job in self._slurm.jobs.values() if job.state == "COMPLETING" for name in job.allocated}

    def _use(self) -> Use:
        return Use(job for job in self._slurm.jobs.values() if job.state in ("RUNNING", "SUSPENDED"))

    def _free(self) -> Free:
        taken = self._slurm.taken()
        return {name: node.capacity.minus(taken[name]) for name, node in self._slurm.nodes.items()}

    def _take(self, free: Free, job: ModelJob) -> None:
        for name, each in job.takes():
            free[name] = free[name].minus(each)

    # --- one job

    def _hindrance(self, job: ModelJob, use: Use) -> str:
        """Why the job must not start now, whatever is free: Slurm's reason."""
        slurm = self._slurm
        if job.dependency is not None:
            slurm.check_dependency(job)
            if job.dependency_state != "fulfilled":
                slurm.wait_for_others(job)
                return "DependencyNeverSatisfied" if job.dependency_state == "failed" else "Dependency"
        if job.begin_s > slurm.world.wall_s():
            return "BeginTime"
        if job.begin_s == 0:  # it may start from now on
            slurm.begin(job)
        partition = slurm.partitions[job.partition]
        if partition.state not in ("UP", "DRAIN"):
            return "PartitionDown" if partition.state == "DOWN" else "PartitionInactive"
        limit = self._limit_of_partition(job)
        if limit:
            return limit
        if job.array_limit and use.tasks[job.array_id] >= job.array_limit:
            slurm.wait_for_others(job)
            return "JobArrayTaskLimit"
        if use.jobs[job.user] >= slurm.limits.jobs.get(job.user, inf):
            return "AssocMaxJobsLimit"
        cores = job.tasks * job.cpus_per_task
        if use.cores_of_qos[job.qos] + cores > slurm.limits.cores_of_qos.get(job.qos, inf):
            return "QOSGrpCpuLimit"
        if use.cores[job.account] + cores > slurm.limits.cores.get(job.account, inf):
            return "AssocGrpCpuLimit"
        return ""

    def is_impossible(self, job: ModelJob) -> bool:
        """Whether the nodes of its partition could never hold the job, or its node list is not in the partition."""
        if self._limit_of_partition(job):
            return False  # Slurm lets it wait
        return not self._could_hold(job, self._inside(job))

    def would_start(self, job: ModelJob) -> bool:
        """Whether the job could start now by what is free, and nothing in its partition keeps it from that."""
        partition = self._slurm.partitions[job.partition]
        inside = [name for name in self._inside(job) if self._is_there(job, name)]
        if partition.state not in ("UP", "DRAIN") or self._limit_of_partition(job):
            return False
        free = self._free()
        return self._choose(job, {name: free[name] for name in inside}) is not None

    def _could_hold(self, job: ModelJob, inside: Sequence[str]) -> bool:
        """Whether these nodes could hold the job if they were empty."""
        asked = (
            *(tuple(inside), job.required, job.tasks, job.cpus_per_task, job.tasks_per_node, job.nodes_min),
            job.min_cpus_per_node,
            *(job.nodes_max, job.memory_per_cpu_mb, job.memory_per_node_mb, job.ways, job.bandwidth_gbps, job.is_alone),
        )
        known = self._is_possible.get(asked)
        if known is None:
            known = self._is_possible[asked] = self._choose(job, self._empty(inside)) is not None
        return known

    def _inside(self, job: ModelJob) -> list[str]:
        """The nodes of its partition that it may use."""
        return [name for name in self._slurm.partitions[job.partition].nodes if name not in job.excluded]

    def _limit_of_partition(self, job: ModelJob) -> str:
        """What is too large for the partition as it is configured now."""
        partition = self._slurm.partitions[job.partition]
        if partition.max_time_s is not None and job.walltime_s > partition.max_time_s:
            return "PartitionTimeLimit"
        if job.nodes_min > min(len(partition.nodes), partition.max_nodes or len(partition.nodes)):
            return "PartitionNodeLimit"
        return "PartitionConfig" if job.tasks * job.cpus_per_task > self._cores_in(job.partition) else ""

    def _cores_in(self, partition: str) -> int:
        nodes = self._slurm.nodes
        return sum(nodes[name].capacity.cores for name in self._slurm.partitions[partition].nodes)

    def _room(self, job: ModelJob, rest: Rest) -> Room | None:
        """Nodes and cores on each for the job now; None if there are none, with the reason noted."""
        slurm, inside = self._slurm, self._inside(job)
        if not self._could_hold(job, inside):
            slurm.hold_as_bad(job)
            return None
        nodes = slurm.nodes
        usable = [name for name in inside if name not in rest.barred and self._is_usable(job, name)]
        if rest.kept is not None and slurm.world.wall_s() + job.walltime_s > rest.kept[1]:
            usable = [name for name in usable if name not in rest.kept[0]]
        if job.is_alone:
            usable = [name for name in usable if rest.free[name] == nodes[name].capacity]
        room = self._choose(job, {name: rest.free[name] for name in usable})
        if room is None:
            is_away = any(not self._is_usable(job, name) for name in job.required)
            is_away = is_away or all(self._is_reserved(job, name) for name in inside)
            slurm.note(job, "ReqNodeNotAvail" if is_away else "Resources")
            return None
        if job.is_alone:
            return room[0], tuple(nodes[name].capacity.cores for name in room[0])
        return room

    def _empty(self, names: Iterable[str]) -> Free:
        return {name: self._slurm.nodes[name].capacity for name in names}

    def _is_usable(self, job: ModelJob, name: str) -> bool:
        return name not in self._completing and self._is_there(job, name)

    def _is_there(self, job: ModelJob, name: str) -> bool:
        return self._slurm.nodes[name].state == "up" and not self._is_reserved(job, name)

    def _is_reserved(self, job: ModelJob, name: str) -> bool:
        """Whether a reservation that is not over has the node before the job could end there."""
        if not self._slurm.reservations:
            return False
        now_s = self._slurm.world.wall_s()
        return any(
            name in each.nodes and each.begin_s < now_s + job.walltime_s and now_s < each.end_s
            for each in self._slurm.reservations.values()
        )

    def _choose(self, job: ModelJob, free: Free) -> Room | None:
        """The first nodes, required ones before others, on which the job's tasks have room.

        A required node list means these nodes, and more if they are too few for the job's least number of nodes. Of
        a list with more nodes than that, Slurm takes as many as it needs, and no other node.
        """
        fewest = job.fewest_nodes
        must = job.required if len(job.required) <= fewest else ()
        if must and not set(must) <= set(free):
            return None
        if job.required:
            candidates = [*must, *(name for name in free if name not in must and (must or name in job.required))]
        else:
            candidates = list(free)
        can = {name: self._most_tasks(job, free[name]) for name in candidates}
        if any(can[name] == 0 for name in must):
            return None
        fitting = [name for name in candidates if can[name]]
        for number in range(fewest, min(job.most_nodes, len(fitting)) + 1):
            chosen = fitting[:number]
            if number > len(must):
                rest = sorted(fitting[len(must) :], key=lambda name: -can[name])
                chosen = [*must, *rest[: number - len(must)]]
            tasks = self._spread(job, [can[name] for name in chosen])
            if tasks is not None:
                order = sorted(range(number), key=lambda at: chosen[at])
                return tuple(chosen[at] for at in order), tuple(tasks[at] * job.cpus_per_task for at in order)
        return None

    def _most_tasks(self, job: ModelJob, free: Resources) -> int:
        if job.ways > free.ways or job.bandwidth_gbps > free.bandwidth_gbps:
            return 0
        if free.cores < job.min_cpus_per_node:
            return 0
        tasks = max(free.cores // job.cpus_per_task, 0)  # below 0 where a suspended job was resumed among others
        if job.memory_per_node_mb:
            tasks = tasks if job.memory_per_node_mb <= free.memory_mb else 0
        elif job.memory_per_cpu_mb:
            tasks = min(tasks, free.memory_mb // (job.memory_per_cpu_mb * job.cpus_per_task))
            if job.is_alone and job.memory_per_cpu_mb * free.cores > free.memory_mb:  # it gets all cores
                return 0
        if not job.tasks_per_node:
            return tasks
        # Slurm takes no node that could not hold so many tasks, even if there are fewer for it.
        return job.tasks_per_node if tasks >= min(job.tasks_per_node, job.tasks) else 0

    def _spread(self, job: ModelJob, most: Sequence[int]) -> list[int] | None:
        """Block distribution: one task on each node, the rest on the first nodes."""
        left = job.tasks - len(most)
        if left < 0:
            return None
        tasks = []
        for each in most:
            more = min(left, each - 1)
            tasks.append(1 + more)
            left -= more
        return tasks if left == 0 else None

    def _plan(self, job: ModelJob) -> tuple[frozenset[str], float] | None:
        """Plan the first job without room: on which nodes, and when, as the others' time limits say."""
        slurm = self._slurm
        ends: dict[float, list[ModelJob]] = defaultdict(list)
        for other in slurm.jobs.values():
            if other.state in OCCUPYING:
                ends[max(other.start_s + other.walltime_s, slurm.world.wall_s())].append(other)
        free = self._free()
        for end_s in sorted(ends):
            for other in ends[end_s]:
                for name, each in other.takes():
                    free[name] = free[name].plus(each)
            usable = {name: free[name] for name in slurm.partitions[job.partition].nodes if self._is_there(job, name)}
            room = self._choose(job, {name: each for name, each in usable.items() if name not in job.excluded})
            if room is not None:
                job.planned_on, job.planned_s = room[0], int(end_s)
                changed(job)
                for name in room[0]:
                    slurm.nodes[name].is_planned = True
                return frozenset(room[0]), end_s
        return None
