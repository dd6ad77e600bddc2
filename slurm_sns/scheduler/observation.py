"""What one observation of Slurm shows, as plain values: the slurm package makes them, the state table reads them.

Units are those of `slurm_sns.model`. Times are Unix seconds, 0 or None if Slurm has none. Trackable resources (TRES)
have Slurm's names: mem, node, billing, gres/llc. Of their limits only whom they limit matters here, not the amounts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from slurm_sns import task_ids
from slurm_sns.gpus import GpuRequest
from slurm_sns.model import NOTHING, Resources
from slurm_sns.submit import record as records
from slurm_sns.submit.hints import Hints
from slurm_sns.submit.record import Record
from slurm_sns.topology import FLAT, Topology

Names = frozenset[str]
NOTHING_LIMITED: Names = frozenset()


@dataclass(frozen=True, slots=True)
class TresLimits:
    """The limited TRES of each user's associations (with their accounts up to the root), each QOS and each partition.

    The limits of a user who is not in `of_users` are unknown. `are_enforced` is True if AccountingStorageEnforce
    contains limits.
    """

    of_users: Mapping[str, Names] = field(default_factory=dict)
    of_qos: Mapping[str, Names] = field(default_factory=dict)
    of_partitions: Mapping[str, Names] = field(default_factory=dict)
    are_enforced: bool = True

    def anywhere(self, user: str) -> Names | None:
        """The TRES limited in any of the user's accounts or in any QOS; None: not known."""
        if not self.are_enforced:
            return NOTHING_LIMITED
        own = self.of_users.get(user)
        return None if own is None else own.union(*self.of_qos.values())

    def of_job(self, user: str, qos: str, partitions: tuple[str, ...]) -> Names:
        """The TRES known to be limited for a job of this user in this QOS and these partitions."""
        if not self.are_enforced:
            return NOTHING_LIMITED
        there = (self.of_partitions.get(name, NOTHING_LIMITED) for name in partitions)
        return self.of_users.get(user, NOTHING_LIMITED).union(self.of_qos.get(qos, NOTHING_LIMITED), *there)


NO_LIMITS = TresLimits(are_enforced=False)
UNKNOWN = TresLimits()


#: Slurm's reason for its own hold of a job that could never run as it is: at all, or on the nodes that we gave it.
SLURMS_HOLD = "BadConstraints"


#: What stands for a text that is not UTF-8.
UNREADABLE = "?"


class JobState(StrEnum):
    """The states of a Slurm job that slurm_sns tells apart. `occupies_nodes`: whether a job in this state has nodes."""

    occupies_nodes: bool

    PENDING = "pending"
    RUNNING = "running"
    """Running, completing, configuring, resizing, stopped."""
    SUSPENDED = "suspended"
    """It keeps its nodes, memory and gres, and has given its cores back."""
    ENDED = "ended"


for _each in JobState:
    _each.occupies_nodes = _each in (JobState.RUNNING, JobState.SUSPENDED)


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """One job record of slurmctld.

    The waiting tasks of an array are one record with the array's job id, until a task is split off and gets a job id of
    its own; the last task keeps the array's. So a record stands for one task (`array_task`) or for several
    (`array_tasks`).

    Attributes:
        id: Slurm's job id.
        admin_comment: the job's AdminComment.
        record: our record in it; None if there is none.
        extra: the job's Extra field, which has the grant of a placement beside its owner's own text.
        is_special: a cron, federated or heterogeneous job.
        priority: 0 while the job is held; our boost is in it while the job is placed.
        restarts: Slurm's count of the job's restarts.
        pinned_to: the job's required node list.
        allocated: the nodes that the job has.
        nodes_min, nodes_max, tasks_per_node: what the job asks for; None if it leaves the choice open.
        has_open_nodes: our submit filter set the maximum number of nodes to any number at submission. A placement that
            sets tasks per node leaves that maximum as it is.
        begin_s: when it may start at the earliest, 0 if Slurm has no such time: our gate, or its owner's begin time.
        deadline_s: when it must have ended (--deadline); None if it has no deadline.
        time_min_s: the shortest time limit that it accepts (--time-min).
        start_s: when it started; for a waiting job, when Slurm plans to start it.
        suspended_s: when it was last suspended or resumed.
        ran_s: how long it had run when it was last started, suspended or resumed (`ran_at`), or has run in all.
        may_restart: Slurm's Requeue flag.
        ways, bandwidth_gbps: the cache ways and the bandwidth that it asks for on each node, as gres.
        gpus: the GPUs that it asks for; None if it asks for none, or in a way that we do not place.
        own_gres: what its owner asks for in Slurm's field of ways and bandwidth (TresPerNode), in the owner's words.
        has_other_gres: whether it asks for any other gres, or for gres that cannot be read.
        waits_for_others: Slurm shows a dependency that is not fulfilled.
        array_id: the job id of its array; None for any other job.
        array_tasks: the waiting tasks in Slurm's words (`3-9,12`), cut off with `...` if they are many.
        array_limit: how many tasks of the array may run at a time.
        asks_for: what the record shows that we do not place, in the words of submit.submission. What a placement of
            ours adds to the job is not among them.
        planned_on: the nodes on which Slurm has planned the waiting job from `start_s` on.
        constraint: the features that its nodes are to have (--constraint), in Slurm's grammar.
        excluded: the nodes that it must not get (-x).
        is_alone: it asks for whole nodes (--exclusive): Slurm gives it all cores, and the memory that it asks for.
        is_countable: nodes, cores and memory are all that the job asks for.
        occupies: the cores and the memory that it takes in all, by Slurm's record, while it has nodes or waits with a
            node list.
        unreadable: which part of the record cannot be read; what the job occupies is counted all the same.
        mail_to: whom Slurm mails when the job fails, as its owner wrote it; empty if nobody, or if it is not a waiting
            job of ours.
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
    admin_comment: str = ""
    extra: str = ""
    is_special: bool = False
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
    time_min_s: int | None = None
    deadline_s: int | None = None
    begin_s: int = 0
    start_s: int = 0
    end_s: int = 0
    suspended_s: int = 0
    ran_s: int = 0
    may_restart: bool = False
    ways: int = 0
    bandwidth_gbps: int = 0
    gpus: GpuRequest | None = None
    own_gres: str = ""
    has_other_gres: bool = False
    waits_for_others: bool = False
    is_completing: bool = False
    is_batch: bool = True
    has_succeeded: bool = False
    array_id: int | None = None
    array_task: int | None = None
    array_tasks: str = ""
    array_limit: int | None = None
    asks_for: tuple[str, ...] = ()
    planned_on: tuple[str, ...] = ()
    constraint: str = ""
    excluded: tuple[str, ...] = ()
    is_alone: bool = False
    is_countable: bool = True
    occupies: Resources = NOTHING
    unreadable: str = ""
    mail_to: str = ""
    record: Record | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "record", records.read(self.admin_comment))

    @property
    def hints(self) -> Hints | None:
        """The hints of its owner; None if it has no record of ours."""
        record = self.record
        return None if record is None else record.hints

    @property
    def wants_empty_nodes(self) -> bool:
        """Whether it asks for nodes that no other job uses: by --exclusive, or by --sns-exclusive."""
        return self.is_alone or (self.hints is not None and self.hints.exclusive)

    @property
    def label(self) -> str:
        """The job as squeue names it: a job `41`, a task `41_7`, waiting tasks `41_[8-99%5]`."""
        if self.array_id is None:
            return str(self.id)
        if self.array_task is not None:
            return f"{self.array_id}_{self.array_task}"
        limit = f"%{self.array_limit}" if self.array_limit else ""
        return f"{self.array_id}_[{self.array_tasks}{limit}]"

    def ran_at(self, now_s: float) -> int:
        """How long the job has run by then, without the times in which it was suspended."""
        if self.state is not JobState.RUNNING:
            return self.ran_s
        return self.ran_s + max(0, int(now_s) - (self.suspended_s or self.start_s))

    @property
    def stored_name(self) -> str:
        """What past runs are stored under: the first 64 letters of the job's name, `?` for what is no text."""
        return self.name[:64].encode(errors="replace").decode()

    @property
    def task(self) -> tuple[int, int] | None:
        """The array id and the task number of the job; None if it is not one task of an array."""
        return None if self.array_id is None or self.array_task is None else (self.array_id, self.array_task)

    @property
    def task_address(self) -> str:
        """What Slurm calls one task of an array's record that has no id of its own yet; empty for any other job."""
        return self.label if task_ids.task_of(self.id) is not None else ""

    @property
    def is_plain(self) -> bool:
        """Whether the job asks for nothing that we do not place, as far as its record shows."""
        return not self.asks_for and not self.unreadable

    @property
    def fewest_nodes(self) -> int:
        """The fewest nodes that the job asks for, 1 where it leaves that open.

        There `nodes_min` is Slurm's own number, which a placement that was taken back has changed.
        """
        return 1 if self.nodes_max is None else self.nodes_min or 1

    @property
    def is_array_record(self) -> bool:
        """Whether this is the record of several waiting tasks of an array."""
        return bool(self.array_tasks)


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """One node record of slurmctld.

    `unavailable` says why nothing may be planned on the node; it is empty if jobs may be planned there, also on a node
    that is powered down. `features` are the active ones: for others, a node would have to be rebooted. Nodes of lower
    `weight` are taken first. `sockets` as Slurm counts them. `is_planned`: Slurm keeps the node for a waiting job.
    So many jobs may have each core (`jobs_to_a_core`); where they are several, `allocated` counts each job's cores.
    `unreadable` says which part of the record cannot be read.
    """

    name: str
    partitions: frozenset[str]
    capacity: Resources
    allocated: Resources
    threads_per_core: int = 1
    features: Names = frozenset()
    weight: int = 1
    sockets: int = 1
    unavailable: str = ""
    is_planned: bool = False
    unreadable: str = ""
    jobs_to_a_core: int = 1

    def left(self, taken: Resources = NOTHING) -> Resources:
        """What is left for one more job when `taken` is gone, too; it may be negative. It has no core twice."""
        left = self.capacity.minus(self.allocated).minus(taken)
        if self.jobs_to_a_core == 1:
            return left
        return left._replace(
            cores=min(self.capacity.cores, left.cores + (self.jobs_to_a_core - 1) * self.capacity.cores)
        )


@dataclass(frozen=True, slots=True)
class ObservedReservation:
    """A Slurm reservation: its nodes are not ours from `start_s` to `end_s`. `unreadable`: why it cannot be read."""

    name: str
    nodes: frozenset[str]
    start_s: int
    end_s: int
    unreadable: str = ""


#: What stands for a list that a partition does not have: everybody may use it.
ALL: Names = frozenset({"ALL"})


class PartitionAccess(NamedTuple):
    """Who may use a partition: AllowGroups, AllowAccounts, DenyAccounts, AllowQos, DenyQos."""

    groups: Names = ALL
    accounts: Names = ALL
    accounts_denied: Names = ALL
    qos: Names = ALL
    qos_denied: Names = ALL

    def admits(self, account: str, qos: str) -> bool:
        """Whether jobs of this account and QOS may run there. Slurm heeds no Deny list beside an Allow list."""
        return _admits(self.accounts, self.accounts_denied, account) and _admits(self.qos, self.qos_denied, qos)


def _admits(allowed: Names, denied: Names, name: str) -> bool:
    return name not in denied if allowed == ALL else name in allowed


FOR_ALL = PartitionAccess()


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """A Slurm partition and the limits that it sets for a job (None: no limit). `tier` is its PriorityTier.

    `preempt_mode` is what happens to the partition's jobs when they are preempted, in Slurm's words (`OFF`, `REQUEUE`).
    It is the cluster's PreemptMode if the partition sets none. `forces_sharing`: its jobs share cores, whatever they
    ask for (OverSubscribe=FORCE).
    """

    name: str
    state: str = "UP"
    tier: int = 1
    nodes_min: int = 0
    nodes_max: int | None = None
    walltime_s: int | None = None
    preempt_mode: str = ""
    access: PartitionAccess = FOR_ALL
    forces_sharing: bool = False

    @property
    def starts_jobs(self) -> bool:
        """Whether waiting jobs may start here. A partition in DRAIN accepts no new jobs but starts its own."""
        return self.state in ("UP", "DRAIN")


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """Slurm's PreemptType (empty: nothing is preempted) and PreemptMode (`GANG,SUSPEND`).

    `of_qos` gives the QOS that each QOS may preempt. That includes the QOS itself if its jobs may preempt each other.
    None: slurmdbd has not answered yet.
    """

    type: str = ""
    mode: str = "OFF"
    of_qos: tuple[tuple[str, frozenset[str]], ...] | None = ()


NO_PREEMPTION = PreemptionRules()


class Backfill(NamedTuple):
    """Slurm's backfill: it runs every `interval_s` (bf_interval) and plans `window_s` (bf_window) ahead."""

    window_s: float = 86_400.0
    interval_s: float = 30.0


#: The values for a slurm.conf that sets neither.
BACKFILL = Backfill()


class DatabaseQueue(NamedTuple):
    """The messages that slurmctld keeps for slurmdbd (sdiag), and how many it keeps at most (MaxDBDMsgs)."""

    length: int = 0
    most: int = 10_000


EMPTY_QUEUE = DatabaseQueue()


@dataclass(frozen=True, slots=True)
class Observation:
    """One bulk read: jobs first, then nodes, so that a job that starts in between is counted twice and never missed.

    A process that only releases jobs reads the jobs alone and leaves all other fields empty.

    Attributes:
        jobs: all jobs that slurmctld knows.
        nodes: all nodes, in the order of Slurm's configuration, which is the machine list's order.
        reservations: all reservations.
        partitions: all partitions that can be read.
        qos_priorities: the priority of each QOS, which orders the queue.
        qos_freedoms: the flags of each QOS; some of them exempt its jobs from limits of a partition.
        shares: Slurm's association shares by account.
        tres_limits: which TRES are limited, and for whom.
        backfill: how often and how far ahead Slurm's backfill plans.
        preemption: which jobs may preempt others.
        has_priorities: Slurm computes priorities: PriorityType is priority/multifactor with a weight.
        has_boost: a SiteFactor of ours counts: PriorityType is priority/multifactor, and no plugin sets the factor.
        has_extra: a job's Extra may have our text: Slurm does not read it as constraints (extra_constraints).
        names_tasks: one RPC may place several tasks of an array. Otherwise each task takes a process of scontrol.
        fills_sockets: a job's cores lie on one socket after the other (CR_CORE_DEFAULT_DIST_BLOCK), not on all in turn.
        database_queue: the messages that slurmctld keeps for slurmdbd.
        topology: how the nodes are connected.
        requeue_s: how long a requeue takes at most until the job may start again: KillWait and requeue_delay.
        mail_program: the program by which Slurm sends mail (MailProg); empty if it has none.
        shown_in_s: how long slurmctld took to show all jobs, or their ids and states alone.
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
    has_priorities: bool = False
    has_boost: bool = True
    has_extra: bool = True
    names_tasks: bool = False
    fills_sockets: bool = False
    database_queue: DatabaseQueue = EMPTY_QUEUE
    topology: Topology = FLAT
    requeue_s: float = 0.0
    mail_program: str = ""
    shown_in_s: float = 0.0

    @property
    def unreadable(self) -> dict[str, str]:
        """The records that cannot be read, in whole or in part (`job 7`, `node c1`), with the reason."""
        named = [(f"job {each.id}", each.unreadable) for each in self.jobs if each.unreadable]
        named += [(f"node {each.name}", each.unreadable) for each in self.nodes if each.unreadable]
        named += [(f"reservation {each.name}", each.unreadable) for each in self.reservations if each.unreadable]
        return dict(named)
