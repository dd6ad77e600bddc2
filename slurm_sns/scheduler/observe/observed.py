"""What one look at Slurm shows: plain values, as the slurm package translates them and the state table reads them.

Units as in `slurm_sns.model`; times are Unix seconds, 0 or None where Slurm knows none.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from slurm_sns.model import NOTHING, Resources
from slurm_sns.scheduler.observe.tres_limits import NO_LIMITS, TresLimits
from slurm_sns.submit.hints import Hints


class JobState(StrEnum):
    """The states of a Slurm job that make a difference to us."""

    PENDING = "pending"
    RUNNING = "running"
    """Running, completing, configuring, resizing, stopped."""
    SUSPENDED = "suspended"
    """It has its nodes, memory and gres, and has given its cores back."""
    ENDED = "ended"

    @property
    def occupies_nodes(self) -> bool:
        """Whether a job in this state holds nodes: what Slurm says it holds."""
        return self is JobState.RUNNING or self is JobState.SUSPENDED


class Dependency(NamedTuple):
    """Another job that a job waits for. Of an array, `task` is the one meant, None for all of them.

    `kind` is Slurm's word (afterok, afterany, ...); `state` is what Slurm last saw: unfulfilled, fulfilled or failed.
    It looks at a held job's dependencies every 30 s only.
    """

    kind: str
    job_id: int
    task: int | None
    state: str


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """One job record of slurmctld.

    `hints` are those of our mark in `extra`, None where there is no mark that can be read. `priority` is 0 while
    the job is held. `pinned_to` is the job's required node list. `tasks_per_node`, `nodes_min` and `nodes_max` are
    what the job asks for, None where it leaves the choice open; `has_open_nodes`: our filter wrote so at its
    submission, and our tasks per node leave it as it is. `held` is what it occupies in all, as Slurm says, while it
    is not pending. `begin_s` is when it may start at the earliest, `suspended_s` when it was last suspended or
    resumed; `may_restart` is Slurm's Requeue flag. `waits_for` are the dependencies that can be read of a job that
    `waits_for_others`; `any_suffices`: one of them is enough. While the job waits, `planned_on` are the nodes on
    which Slurm has planned it from `start_s` on. `is_alone`: it asks for whole nodes; `is_countable`: nodes, cores
    and memory are all that it asks for. `asks_for` names what its record shows that we do not place, in the words
    of submit.submission, with nothing of what a placement of ours adds to the job. `unreadable` says which part of
    its record cannot be read; what it occupies is counted all the same.

    The waiting tasks of an array are one record, whose job id is the array's, `array_id`, until each is split off and
    gets a job id of its own; the last one keeps the array's. So a record is that of one task, `array_task`, or that of
    several, `array_tasks` in Slurm's words (`3-9,12`, cut off with `...` where it is long). `array_limit` is how many
    tasks of the array may run at a time.
    """

    id: int
    user_id: int
    submit_s: int
    state: JobState
    user: str = ""
    name: str = ""
    account: str = ""
    partitions: tuple[str, ...] = ()
    qos: str = ""
    priority: int = 0
    nice: int = 0
    restarts: int = 0
    extra: str = ""
    hints: Hints | None = None
    comment: str = ""
    reason: str = ""
    pinned_to: tuple[str, ...] = ()
    allocated: tuple[str, ...] = ()
    tasks: int = 1
    cpus: int = 1
    cpus_per_task: int = 1
    min_cpus_per_node: int = 1
    nodes_min: int | None = None
    nodes_max: int | None = None
    has_open_nodes: bool = False
    tasks_per_node: int | None = None
    memory_per_cpu_mb: int | None = None
    memory_per_node_mb: int | None = None
    walltime_s: int | None = None
    begin_s: int = 0
    start_s: int = 0
    end_s: int = 0
    suspended_s: int = 0
    may_restart: bool = False
    ways: int = 0
    bandwidth_gbps: int = 0
    waits_for_others: bool = False
    waits_for: tuple[Dependency, ...] = ()
    any_suffices: bool = False
    is_completing: bool = False
    is_batch: bool = True
    has_succeeded: bool = False
    array_id: int | None = None
    array_task: int | None = None
    array_tasks: str = ""
    array_limit: int | None = None
    asks_for: tuple[str, ...] = ()
    planned_on: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    is_alone: bool = False
    is_countable: bool = True
    occupies: Resources = NOTHING
    unreadable: str = ""

    @property
    def label(self) -> str:
        """The job as squeue names it: `41`, the task `41_7`, the waiting tasks `41_[8-99%5]`."""
        if self.array_id is None:
            return str(self.id)
        if self.array_task is not None:
            return f"{self.array_id}_{self.array_task}"
        limit = f"%{self.array_limit}" if self.array_limit else ""
        return f"{self.array_id}_[{self.array_tasks}{limit}]"

    @property
    def address(self) -> str:
        """What names this record alone to Slurm's commands: to them, an array's id means all of its tasks."""
        if self.array_task is not None:
            return f"{self.array_id}_{self.array_task}"
        is_cut_off = self.array_tasks.endswith("...")
        return f"{self.array_id}_[{self.array_tasks}]" if self.array_tasks and not is_cut_off else str(self.id)

    @property
    def task(self) -> tuple[int, int] | None:
        """The array and the task that the job is; None for any other."""
        return None if self.array_id is None or self.array_task is None else (self.array_id, self.array_task)

    @property
    def is_plain(self) -> bool:
        """Whether the job uses nothing that we do not place, as far as its record shows."""
        return not self.asks_for and not self.unreadable

    @property
    def has_failed_dependency(self) -> bool:
        """Whether Slurm has found that one of the job's dependencies can never be fulfilled."""
        return any(each.state == "failed" for each in self.waits_for)

    @property
    def is_array_record(self) -> bool:
        """Whether this is the record of several waiting tasks of an array."""
        return bool(self.array_tasks)


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """One node record. `unavailable` says why nothing may be planned on it, empty when it may (powered down).

    `is_planned`: Slurm keeps it for a job that waits. `unreadable` says which part of its record cannot be read.
    """

    name: str
    partitions: frozenset[str]
    capacity: Resources
    allocated: Resources
    threads_per_core: int = 1
    unavailable: str = ""
    is_planned: bool = False
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class ObservedReservation:
    """A Slurm reservation: these nodes are not ours from `start_s` to `end_s`. `unreadable`: why it cannot be read."""

    name: str
    nodes: frozenset[str]
    start_s: int
    end_s: int
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """A Slurm partition and what it allows a job; None: no limit. `tier` orders the queue.

    `preempt_mode` is what happens to its jobs when they are preempted, in Slurm's words (`OFF`, `REQUEUE`): its own or,
    where it has none, the cluster's.
    """

    name: str
    state: str = "UP"
    tier: int = 1
    nodes_min: int = 0
    nodes_max: int | None = None
    walltime_s: int | None = None
    preempt_mode: str = ""

    @property
    def starts_jobs(self) -> bool:
        """Whether jobs that wait here may start. One that drains takes no new ones, but starts those that it has."""
        return self.state in ("UP", "DRAIN")


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """Slurm's PreemptType and PreemptMode (`GANG,SUSPEND`); no type: nothing is preempted.

    `of_qos` are the QOS that each QOS may preempt, itself among them where its jobs may preempt each other; None until
    slurmdbd has said so.
    """

    type: str = ""
    mode: str = "OFF"
    of_qos: tuple[tuple[str, frozenset[str]], ...] | None = ()


NO_PREEMPTION = PreemptionRules()


class Backfill(NamedTuple):
    """Slurm plans once in `interval_s` (bf_interval), and no job further ahead than `window_s` (bf_window)."""

    window_s: float = 86_400.0
    interval_s: float = 30.0


#: That of a slurm.conf that says nothing.
BACKFILL = Backfill()


@dataclass(frozen=True, slots=True)
class Observation:
    """One bulk look: jobs first, then nodes, so that a job that starts in between is counted twice and never missed.

    `nodes` are in the order of Slurm's configuration, which is the machine list's order. `qos_priorities` order the
    queue, `qos_freedoms` are each QOS's flags, some of which free its jobs of a partition's limit; `shares` are Slurm's
    association shares by account, `tres_limits` what is limited for whom, `preemption` who may preempt others,
    `priority_type` is PriorityType. Who only releases jobs sees none of that.
    """

    jobs: tuple[ObservedJob, ...]
    nodes: tuple[ObservedNode, ...]
    reservations: tuple[ObservedReservation, ...] = ()
    partitions: tuple[ObservedPartition, ...] = ()
    qos_priorities: tuple[tuple[str, int], ...] = ()
    qos_freedoms: tuple[tuple[str, frozenset[str]], ...] = ()
    shares: tuple[tuple[str, float], ...] = ()
    tres_limits: TresLimits = NO_LIMITS
    backfill: Backfill = BACKFILL
    preemption: PreemptionRules = NO_PREEMPTION
    priority_type: str = "priority/multifactor"

    @property
    def unreadable(self) -> dict[str, str]:
        """The records that cannot be read, or not all of them: `job 7`, `node c1`, with the reason."""
        named = [(f"job {each.id}", each.unreadable) for each in self.jobs if each.unreadable]
        named += [(f"node {each.name}", each.unreadable) for each in self.nodes if each.unreadable]
        named += [(f"reservation {each.name}", each.unreadable) for each in self.reservations if each.unreadable]
        return dict(named)
