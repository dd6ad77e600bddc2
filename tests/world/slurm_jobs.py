"""The job records of the simulated slurmctld, and how pyslurm shows them to us.

The rules are those seen on Slurm 26.05; the table of steps (slurm_table) holds them to a real one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from slurm_sns.model import NOTHING, Resources
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.submit import record as records

#: The SiteFactor of placed jobs.
BOOST = 2_000_000_000
#: The users' numbers.
USER_IDS = {"alice": 2001, "bob": 2002, "carol": 2003}
#: What the submit filter writes as the most nodes of a job with -n alone.
ANY_NUMBER_OF_NODES = 500_000

#: The QOS that users may ask for instead of "normal".
SMALL = "small"

WAITING = "PENDING"
ENDED = frozenset({"COMPLETED", "CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT", "DEADLINE"})
OCCUPYING = frozenset({"RUNNING", "SUSPENDED", "COMPLETING"})
_SHOWN = {WAITING: JobState.PENDING, "SUSPENDED": JobState.SUSPENDED, **dict.fromkeys(ENDED, JobState.ENDED)}
#: The reasons that Slurm shows for holds.
HOLD_REASONS = {"user": "JobHeldUser", "admin": "JobHeldAdmin", "bad": "BadConstraints"}
#: And for a hold by requeuehold, which its owner can release.
REQUEUED_HELD = "job requeued in held state"


class Now(NamedTuple):
    """A job as it truly is at one moment, for the history; `others` is what we never write.

    `is_paused`: a person has suspended it. `ran_s`: how long it had run when it was suspended last.
    """

    state: str
    hold: str
    begin_s: int
    restarts: int
    nodes: tuple[str, ...]
    gres: tuple[int, int, tuple[str, ...]]
    memory: tuple[int | None, int | None]
    tasks: int
    tasks_per_node: int | None
    min_cpus_per_node: int
    site_factor: int
    extra: str
    admin_comment: str
    deadline_s: int | None
    walltime_s: int
    array: tuple[int | None, int | None]
    partitions: tuple[str, ...]
    others: tuple[Any, ...]
    may_restart: bool = True
    is_paused: bool = False
    ran_s: int = 0

    @property
    def is_boosted(self) -> bool:
        """Whether it has the boost of a placement of ours."""
        return self.site_factor == BOOST


@dataclass(slots=True)
class ModelJob:
    """One job record. Times are wall seconds unless they end in `_true_s`; `asked` is the submission.

    `hold` is "", "user", "admin" or "bad" (Slurm itself: BadConstraints). `begin_s` is Slurm's begin time: 0 until the
    job may start, then the moment since which it may. `cores` are those on each allocated node. At `due_true_s` it
    ends, has completed, or is forgotten, whatever comes next. `is_paused`: suspended by a command, with priority 0 for
    that long; a job that preemption suspends is not. `keeps_cores`: no command has stopped it while it ran. `ran_s` is
    its run time up to its last suspension, without earlier ones. `is_missing`: it has ended, and slurmctld has lost
    that; it finds out at `due_true_s`. `several` are the partitions in which it may run, if it is not one; `partition`
    is then the one that it was last looked at in, or runs in.
    """

    id: int
    user: str
    asked: dict[str, Any]
    submit_s: int
    tasks: int = 1
    cpus_per_task: int = 1
    nodes_min: int = 1
    nodes_max: int | None = None
    tasks_per_node: int | None = None
    min_cpus_per_node: int = 1
    memory_per_cpu_mb: int | None = None
    memory_per_node_mb: int | None = None
    walltime_s: int = 3600
    run_s: float = 3.0
    fails: bool = False
    partition: str = "main"
    several: tuple[str, ...] = ()
    account: str = "physics"
    qos: str = "normal"
    name: str = "job"
    comment: str = ""
    nice: int = 0
    extra: str = ""
    admin_comment: str = ""
    site_factor: int = 0
    begin_s: int = 0
    deadline_s: int | None = None
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    ways: int = 0
    bandwidth_gbps: int = 0
    gres: tuple[str, ...] = ()
    may_restart: bool = True
    is_alone: bool = False
    dependency: tuple[str, tuple[int, ...]] | None = None
    dependency_state: str = "unfulfilled"
    array_id: int | None = None
    array_task: int | None = None
    array_tasks: tuple[int, ...] = ()
    array_limit: int | None = None
    state: str = WAITING
    hold: str = ""
    priority: int = 0
    fixed_priority: bool = False
    own_priority: int = 0
    reason: str = ""
    restarts: int = 0
    allocated: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    start_s: int = 0
    suspended_s: int = 0
    ran_s: int = 0
    keeps_cores: bool = True
    ended_s: int = 0
    due_true_s: float = 0.0
    left_true_s: float = 0.0
    will_wait: bool = False
    is_paused: bool = False
    is_missing: bool = False
    how: str = ""
    planned_on: tuple[str, ...] = ()
    planned_s: int = 0
    shown: ObservedJob | None = None
    taken: list[tuple[str, Resources]] | None = None

    @property
    def asks_in(self) -> tuple[str, ...]:
        """The partitions in which it may run."""
        return self.several or (self.partition,)

    @property
    def is_held(self) -> bool:
        """Whether it waits with priority 0. A job that runs may have a hold, too: it waits held if it is requeued."""
        return self.hold != ""

    @property
    def is_pending(self) -> bool:
        """Whether Slurm treats it as waiting: a job that is requeued does so while it still completes."""
        return self.state == WAITING or (self.state == "COMPLETING" and self.will_wait)

    @property
    def is_record(self) -> bool:
        """Whether this is the record of several waiting tasks of an array."""
        return len(self.array_tasks) > 1

    def memory_on(self, cores: int) -> int:
        """The memory that it takes on a node where it has so many cores, in MiB."""
        return self.memory_per_node_mb or (self.memory_per_cpu_mb or 0) * cores

    @property
    def fewest_nodes(self) -> int:
        """On how many nodes it runs at least."""
        return max(self.nodes_min, -(-self.tasks // self.tasks_per_node) if self.tasks_per_node else 1)

    @property
    def submitted_nodes(self) -> int:
        """On how many nodes it was to run at least when it was submitted."""
        per_node = self.asked.get("tasks_per_node")
        return max(self.nodes_min, -(-self.asked.get("tasks", 1) // per_node) if per_node else 1)

    @property
    def most_nodes(self) -> int:
        """On how many nodes it runs at most."""
        if self.nodes_max is None and self.tasks_per_node:
            return self.fewest_nodes
        return max(self.fewest_nodes, min(self.nodes_max or self.tasks, self.tasks))

    def takes(self) -> list[tuple[str, Resources]]:
        """What the job takes on each of its nodes; kept until `changed` is called.

        A job that a command suspends gives back its cores, not the rest. One that preemption suspends gives back
        nothing: only jobs of higher tiers may have its cores (seen: CPUAlloc stays).
        """
        if self.taken is None:
            has_cores = self.keeps_cores or self.state != "SUSPENDED"
            self.taken = [
                (node, Resources(cores if has_cores else 0, self.memory_on(cores), self.ways, self.bandwidth_gbps))
                for node, cores in zip(self.allocated, self.cores, strict=True)
            ]
        return self.taken


def now_of(job: ModelJob) -> Now:
    """The job as it is now."""
    return Now(
        WAITING if job.is_pending else job.state,
        job.hold,
        job.begin_s,
        job.restarts,
        job.required,
        (job.ways, job.bandwidth_gbps, job.gres),
        (job.memory_per_cpu_mb, job.memory_per_node_mb),
        job.tasks,
        job.tasks_per_node,
        job.min_cpus_per_node,
        job.site_factor,
        job.extra,
        job.admin_comment,
        job.deadline_s,
        job.walltime_s,
        (job.array_id, job.array_task),
        job.asks_in,
        (job.nice, job.qos, job.name, job.comment, job.excluded, job.fixed_priority, job.array_limit),
        job.may_restart,
        job.is_paused,
        job.ran_s,
    )


def observed(job: ModelJob) -> ObservedJob:
    """The job as our State port shows it; kept until `changed` is called."""
    if job.shown is None:
        job.shown = _observed(job)
    return job.shown


def changed(job: ModelJob) -> None:
    """Forget how the job was shown, and what it took."""
    job.shown = job.taken = None


def _ran_s(job: ModelJob) -> int:
    """RunTime: without the suspensions."""
    if job.state == WAITING or not job.start_s:
        return 0
    if job.state == "SUSPENDED":
        return job.ran_s
    until_s = job.ended_s if job.state not in OCCUPYING else job.start_s
    return job.ran_s + max(0, until_s - max(job.start_s, job.suspended_s))


def _observed(job: ModelJob) -> ObservedJob:
    waits = job.state == WAITING
    is_open = waits and job.nodes_max == ANY_NUMBER_OF_NODES
    cpus = sum(job.cores) if job.is_alone and job.cores else job.tasks * job.cpus_per_task
    nodes = len(job.allocated or job.required) or job.nodes_min
    memory = job.memory_per_node_mb * nodes if job.memory_per_node_mb else (job.memory_per_cpu_mb or 0) * cpus
    occupies = Resources(cpus, memory) if job.state in OCCUPYING or job.required else NOTHING
    array = _array(job)
    return ObservedJob(
        id=job.id,
        user_id=USER_IDS[job.user],
        user=job.user,
        submit_s=job.submit_s,
        state=_SHOWN.get(job.state, JobState.RUNNING),
        name=job.name,
        account=job.account,
        partitions=job.asks_in if job.is_pending else (job.partition,),
        qos=job.qos,
        priority=0 if job.hold or job.is_paused else job.priority,
        nice=job.nice,
        restarts=job.restarts,
        extra=job.extra,
        admin_comment=job.admin_comment,
        comment=job.comment,
        reason=job.reason,
        pinned_to=job.required,
        allocated=job.allocated,
        tasks=job.tasks,
        cpus=cpus,
        cpus_per_task=job.cpus_per_task,
        min_cpus_per_node=job.min_cpus_per_node,
        nodes_min=job.fewest_nodes,
        nodes_max=_nodes_max(job),
        has_open_nodes=is_open,
        tasks_per_node=job.tasks_per_node,
        memory_per_cpu_mb=job.memory_per_cpu_mb,
        memory_per_node_mb=job.memory_per_node_mb,
        walltime_s=job.walltime_s,
        deadline_s=job.deadline_s,
        begin_s=job.begin_s,
        start_s=job.start_s if not waits else job.planned_s,
        end_s=job.start_s + job.walltime_s if job.state in OCCUPYING else job.ended_s,
        suspended_s=job.suspended_s,
        ran_s=_ran_s(job),
        may_restart=job.may_restart,
        ways=job.ways,
        bandwidth_gbps=job.bandwidth_gbps,
        has_other_gres=bool(job.gres),
        waits_for_others=job.dependency is not None and job.dependency_state != "fulfilled",
        is_completing=job.state == "COMPLETING",
        has_succeeded=job.state == "COMPLETED",
        array_id=array[0],
        array_task=array[1],
        array_tasks=array[2],
        array_limit=job.array_limit,
        asks_for=_asks_for(job),
        planned_on=job.planned_on if waits else (),
        excluded=job.excluded,
        is_alone=job.is_alone,
        is_countable=not (job.ways or job.bandwidth_gbps or job.gres),
        occupies=occupies,
    )


def _nodes_max(job: ModelJob) -> int | None:
    """The most nodes as translate reads them: Slurm shows the tasks where the owner has set none."""
    if job.allocated or job.nodes_max == ANY_NUMBER_OF_NODES:
        return None
    if job.nodes_max is not None:
        return job.nodes_max
    least = job.fewest_nodes
    return least if least > 1 or job.tasks == 1 or job.tasks_per_node else None


def _asks_for(job: ModelJob) -> tuple[str, ...]:
    """What we do not place, as translate names it; node list and cache ways of a job of ours are looked at apart."""
    record = records.read(job.admin_comment)
    is_ours = record is not None and not record.is_slurms
    found = []
    if job.gres or ((job.ways or job.bandwidth_gbps) and not is_ours):
        found.append("gres")
    if job.deadline_s is not None and record is None:
        found.append("deadline")
    return tuple(found)


def _array(job: ModelJob) -> tuple[int | None, int | None, str]:
    if job.array_id is None:
        return None, None, ""
    if job.is_record:
        return job.array_id, None, expression(job.array_tasks)
    return job.array_id, job.array_task, ""


def expression(tasks: Sequence[int]) -> str:
    """Task numbers in Slurm's words: `3-9,12`."""
    parts: list[list[int]] = []
    for task in tasks:
        if parts and task == parts[-1][-1] + 1:
            parts[-1].append(task)
        else:
            parts.append([task])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def numbers(text: str) -> Iterable[int]:
    """The task numbers of `3-9,12`."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
