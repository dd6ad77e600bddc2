"""The values that all other modules exchange: resources, nodes, jobs, the snapshot, actions and the plan.

Units: memory in MiB, cores are Slurm cores (not CPUs), ways are last-level-cache ways per node, bandwidth in whole
GB/s, times in seconds (live: Unix seconds). CLOSIDs are explained in closids.py. All values are immutable:
a policy cannot change what it is given.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

#: A moment or a duration in seconds. Matching counts whole seconds; where events fall between whole seconds, fractions
#: keep them exact.
Seconds = int | float | Fraction
#: A fraction of a job's CPU demand, above 0 and at most 1.
Share = int | float | Fraction


#: Numbers of GPUs by Slurm's names, sorted, without zeros: `gpu` counts all GPUs, `gpu:a100` those of the type a100.
Gpus = tuple[tuple[str, int], ...]
GPU = "gpu"


def gpus_of(by_type: Mapping[str, int]) -> Gpus:
    """These numbers of GPUs by type, and all of them; the type of those that have none, or of any type, is empty."""
    counts = {f"{GPU}:{kind}": count for kind, count in by_type.items() if kind}
    return _sorted_gpus({GPU: sum(by_type.values()), **counts})


def _sorted_gpus(counts: Mapping[str, int]) -> Gpus:
    return tuple(sorted((name, count) for name, count in counts.items() if count))


def _sum_of_gpus(gpus: Gpus, others: Gpus, sign: int) -> Gpus:
    if not others:
        return gpus
    counts = dict(gpus)
    for name, count in others:
        counts[name] = counts.get(name, 0) + sign * count
    return _sorted_gpus(counts)


class Resources(NamedTuple):
    """Amounts of the resources of one node: a capacity, what is free, or a job's demand on each of its nodes.

    What is free may be negative: a cycle may withhold more capacity for a job than is left. `closids` are 0 everywhere
    in a cluster where nobody counts them; otherwise a job that demands ways demands one. A demand of GPUs of one type
    (`gpus_of`) is a demand of so many GPUs, too.
    """

    cores: int
    memory_mb: int
    ways: int = 0
    bandwidth_gbps: int = 0
    closids: int = 0
    gpus: Gpus = ()

    @property
    def all_but_gpus(self) -> tuple[int, int, int, int, int]:
        """The other amounts, in the order of the fields."""
        return self.cores, self.memory_mb, self.ways, self.bandwidth_gbps, self.closids

    def within(self, limit: "Resources") -> bool:
        """Whether every amount is at most that of `limit`."""
        return (
            self.cores <= limit.cores
            and self.memory_mb <= limit.memory_mb
            and self.ways <= limit.ways
            and self.bandwidth_gbps <= limit.bandwidth_gbps
            and self.closids <= limit.closids
            and (self.gpus == limit.gpus or all(count <= 0 for _, count in _sum_of_gpus(self.gpus, limit.gpus, -1)))
        )

    def plus(self, other: "Resources") -> "Resources":
        """The sum, resource by resource."""
        return Resources(
            self.cores + other.cores,
            self.memory_mb + other.memory_mb,
            self.ways + other.ways,
            self.bandwidth_gbps + other.bandwidth_gbps,
            self.closids + other.closids,
            _sum_of_gpus(self.gpus, other.gpus, 1),
        )

    def minus(self, other: "Resources") -> "Resources":
        """The difference, resource by resource; it may be negative."""
        return Resources(
            self.cores - other.cores,
            self.memory_mb - other.memory_mb,
            self.ways - other.ways,
            self.bandwidth_gbps - other.bandwidth_gbps,
            self.closids - other.closids,
            _sum_of_gpus(self.gpus, other.gpus, -1),
        )

    def times(self, count: int) -> "Resources":
        """So many times these amounts."""
        gpus = _sorted_gpus({name: each * count for name, each in self.gpus})
        return Resources(
            self.cores * count,
            self.memory_mb * count,
            self.ways * count,
            self.bandwidth_gbps * count,
            self.closids * count,
            gpus,
        )

    def up_to(self, limit: "Resources") -> "Resources":
        """Of each resource the smaller amount, here or in `limit`."""
        mine, theirs = dict(self.gpus), dict(limit.gpus)
        gpus = {name: min(mine.get(name, 0), theirs.get(name, 0)) for name in mine.keys() | theirs.keys()}
        return Resources(
            min(self.cores, limit.cores),
            min(self.memory_mb, limit.memory_mb),
            min(self.ways, limit.ways),
            min(self.bandwidth_gbps, limit.bandwidth_gbps),
            min(self.closids, limit.closids),
            _sorted_gpus(gpus),
        )


NOTHING = Resources(0, 0)


class WaitKind(StrEnum):
    """The kinds of reasons why a job waits; `about` is what `Reason.about` names."""

    RESOURCES = "resources"
    """No node has enough free; about: the resources that the nearest node lacks."""
    NODES = "nodes"
    """Too few nodes have room at once; about: `one switch` where only no switch joins enough of them."""
    TOO_LARGE = "too large"
    """The nodes that can be planned on now could not hold it even when they are empty."""
    WITHHELD = "withheld"
    """It would fit, but for withheld capacity; about: the jobs for which it is withheld, and on which nodes."""
    NEXT = "next"
    """Capacity is withheld for the job itself; about: the nodes."""
    QUEUE_DEPTH = "queue depth"
    KEPT = "kept"
    """Its nodes are kept for jobs of Slurm's own."""
    HELD = "held"
    """About: Slurm's reason, which says by whom."""
    DEPENDENCY = "dependency"
    BEGIN_TIME = "begin time"
    LIMIT = "limit"
    """A limit of its user, account or QOS; about: Slurm's name of the limit."""
    ARRAY_LIMIT = "array limit"
    PARTITION = "partition"
    """Its partitions would not start it now; about: the partitions."""
    NEW_SIZES = "new sizes"
    """Its owner has too many jobs of new sizes for one cycle."""
    RETRY = "retry"
    """Slurm refused or did not start its last placement; it is tried again."""
    NEVER = "never"
    """It can never start as it is; about: the dependency, where that is why."""
    OTHER = "other"


class Reason(str):
    """A sentence that says why a job waits, with its kind and with what it is about.

    It is a text wherever only the sentence counts. A text without a kind is of the kind OTHER.
    """

    __slots__ = ("about", "kind")
    kind: WaitKind
    about: str

    def __new__(cls, sentence: str, kind: WaitKind = WaitKind.OTHER, about: str = "") -> "Reason":
        """The sentence as a reason of this kind."""
        made = super().__new__(cls, sentence)
        made.kind, made.about = kind, about
        return made

    @classmethod
    def of(cls, sentence: str) -> "Reason":
        """The sentence itself if it is a reason, otherwise as one of the kind OTHER."""
        return sentence if isinstance(sentence, cls) else cls(sentence)

    def with_more(self, more: str) -> "Reason":
        """The reason with more said behind its sentence."""
        return Reason(f"{self}{more}", self.kind, self.about)


@dataclass(frozen=True, slots=True)
class Node:
    """A node that can be planned on now. Nodes that are down, draining or failing are not in a snapshot's `nodes`.

    Nodes of lower `weight` are taken first. `switches` are those above the node, by name, the lowest first; empty where
    all nodes are connected alike.
    """

    name: str
    capacity: Resources
    free: Resources
    weight: int = 1
    switches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to run a job: in `nodes` parts, each with `demand`.

    Matching puts each part on a node of its own. `tasks_per_node` is the geometry to write to Slurm, None where the job
    keeps its own. `slowdown` is the predicted run time divided by the best one (1.0 when nothing is known). `exclusive`
    asks for empty nodes (mode E of Spread-n-Share).
    """

    nodes: int
    demand: Resources
    tasks_per_node: int | None = None
    scale: int = 1
    slowdown: float = 1.0
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A waiting job that we place, with its alternatives, best first.

    `order` sorts the jobs of one project (smaller is earlier): the submit second in a simulation, the site's order
    live. `allowed` names the nodes that may be used (partition, reservations); None means every node. `heuristic` is
    the job's own choice, which replaces the portfolio member's. An over-aged job comes before all others, and capacity
    is withheld for it. Where `withholds` is False, no capacity is withheld for a job that finds no place. `pool` is the
    pool in whose queue the job waits, `priority` its priority there (larger is more urgent). `expected_run_s` is how
    long the job is expected to run: its time limit, or in a simulation what its owner or a perfect forecast says; None
    if nothing is known. `program` is the name of its program, empty if it is not known. `virtual_s` is the virtual time
    of its runs that were paused (ActiveJob).
    """

    id: int
    submit_s: Seconds
    alternatives: tuple[Alternative, ...]
    order: tuple[int, ...] = ()
    project: str = ""
    heuristic: str | None = None
    allowed: frozenset[str] | None = None
    over_aged: bool = False
    withholds: bool = True
    pool: str = ""
    priority: int = 0
    expected_run_s: Seconds | None = None
    program: str = ""
    virtual_s: Seconds = 0


@dataclass(frozen=True, slots=True)
class Project:
    """A project's share of the cluster (any positive scale) and what its running and placed jobs hold now."""

    share: float = 1.0
    used: Resources = NOTHING


class ActiveState(StrEnum):
    """Where an active job is."""

    STARTING = "starting"
    """Placed, and about to run."""
    RUNNING = "running"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True)
class ActiveJob:
    """A job that has its nodes: it starts, runs or is suspended there.

    `nodes` names a node once for each of the job's parts there (Alternative: one part is one task of the papers, or all
    tasks of a Slurm job on that node); `demand` is what each part was given. `since_s` is when the present state began.
    `may_restart`: a requeue loses its work and nothing else. `cpu_share` is the fraction of its CPU demand that it
    gets, `virtual_s` the integral of that fraction over the time in which the job has made progress. A suspended job
    that is `in_storage` holds nothing: `nodes` are those that it had. `expected_end_s` is when the job is expected to
    end if it runs on as it does, None if nothing is known. `checkpoint_s` is how often it writes checkpoints, None for
    never or not known.
    """

    id: int
    state: ActiveState
    nodes: tuple[str, ...]
    demand: Resources
    since_s: Seconds
    submit_s: Seconds = 0
    project: str = ""
    pool: str = ""
    priority: int = 0
    may_restart: bool = False
    cpu_share: Share = 1
    virtual_s: Seconds = 0
    in_storage: bool = False
    expected_end_s: Seconds | None = None
    checkpoint_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """How long the jobs that ended in a pool lately had waited and been suspended.

    `samples` is the number of these jobs; the means are over all of them, in seconds, 0.0 where there are none.
    """

    samples: int = 0
    mean_wait_s: float = 0.0
    mean_suspended_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JobPool:
    """A partition of Slurm, or a pool of a simulated site: its nodes, in the machine list's order, and its queue."""

    name: str
    nodes: tuple[str, ...]
    statistics: QueueStatistics = QueueStatistics()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The nodes and the jobs at one moment, `now_s`.

    `nodes` are in the machine list's order, which breaks ties. `waiting` is in queue order before fair share (fair
    share reorders the projects' heads while a cycle runs). `active` are the jobs that have nodes. A project that
    `projects` does not name has share 1 and uses nothing. `history` is that of the policy's last plan,
    None before the first plan. `unavailable` gives the reason for each node that is left out: explain shows it, no
    decision reads it. On the nodes `completing` nothing is free until a job that has ended has left them.
    """

    nodes: tuple[Node, ...]
    waiting: tuple[Job, ...]
    projects: Mapping[str, Project] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    now_s: Seconds = 0
    active: tuple[ActiveJob, ...] = ()
    pools: tuple[JobPool, ...] = ()
    history: object | None = None
    completing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """Start a waiting job on these nodes, with `alternative.demand` for each of its parts.

    A node that is named several times gets as many parts. `cpu_share` is the fraction of its CPU demand that it gets.
    """

    job_id: int
    nodes: tuple[str, ...]
    alternative: Alternative
    reason: str = ""
    cpu_share: Share = 1


@dataclass(frozen=True, slots=True)
class Suspend:
    """Suspend a running job. It gives its CPU back and keeps its memory.

    With `to_storage` its memory is written to storage, too: the job holds nothing, and may be resumed anywhere.
    """

    job_id: int
    reason: str = ""
    to_storage: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """Let a suspended job run on: where it is, or on other `nodes` (named as in Start), which is a move."""

    job_id: int
    nodes: tuple[str, ...] = ()
    reason: str = ""
    cpu_share: Share = 1


@dataclass(frozen=True, slots=True)
class Requeue:
    """End a job that may restart, and let it wait at the end of the queue of `pool`; empty: of its own pool.

    A job that waits only changes its queue.
    """

    job_id: int
    pool: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SetShare:
    """Give a running job this fraction of its CPU demand, above 0 and at most 1."""

    job_id: int
    cpu_share: Share
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """Leave a waiting job to Slurm as it is."""

    job_id: int
    reason: str


#: What a plan may do; on a cluster only Start and Release, and Requeue where jobs share cores.
Action = Start | Suspend | Resume | Requeue | SetShare | Release


@dataclass(frozen=True, slots=True)
class Report:
    """How a plan came about.

    `chosen` is the heuristic whose schedule was dispatched, `matched` the number of jobs that each competing member of
    the portfolio matched (its maximum is reached by the cycle's winners). `withheld_for` are the jobs for which
    capacity was withheld from now on; a job with a place from its start on is none of them. A policy without a
    portfolio leaves all empty.
    """

    chosen: str = ""
    matched: Mapping[str, int] = field(default_factory=dict)
    withheld_for: tuple[int, ...] = ()

    @property
    def winners(self) -> tuple[str, ...]:
        """The members that matched the most jobs, in portfolio order."""
        most = max(self.matched.values(), default=0)
        return tuple(name for name, count in self.matched.items() if count == most)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy decides at one moment: the actions in their order, and for every job not started one reason.

    A reason to wait may be a `Reason`, which has a kind. `wake_s` is when the policy wants to be asked again at the
    latest, None for "at the next event". `history` is what the policy wants to find in the next snapshot. `record` is
    what it wrote down while it planned, from which it explains the plan; nobody else reads it, and it is not stored.
    """

    actions: tuple[Action, ...] = ()
    waiting: Mapping[int, str] = field(default_factory=dict)
    wake_s: Seconds | None = None
    history: object | None = None
    report: Report = field(default_factory=Report)
    record: object | None = field(default=None, compare=False, repr=False)

    @property
    def starts(self) -> tuple[Start, ...]:
        """The actions that start a job."""
        return tuple(action for action in self.actions if isinstance(action, Start))


def total(amounts: Iterable[Resources]) -> Resources:
    """The sum of any number of resources."""
    return reduce(Resources.plus, amounts, NOTHING)
