"""The protocol of a policy: how each job may run, and which jobs start, stop or move now.

A policy is a function of values: the same snapshot gives the same plan. What it remembers from one plan to the next is
the plan's `history`, which comes back in the next snapshot.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from slurm_sns.model import Alternative, Plan, Resources, Snapshot
from slurm_sns.policies.profile import Program


def on_whole_cores(
    cpus: int, threads_per_core: int, memory_per_cpu_mb: int | None, memory_per_node_mb: int | None
) -> Resources:
    """What this many CPUs take of one node: whole cores, and memory per CPU of these cores or per node."""
    cores = -(-cpus // threads_per_core)
    if memory_per_cpu_mb is not None:
        return Resources(cores, memory_per_cpu_mb * cores * threads_per_core)
    return Resources(cores, memory_per_node_mb or 0)


class NodeType(NamedTuple):
    """A node type and its number of nodes, whether busy or idle."""

    capacity: Resources
    number: int


@dataclass(frozen=True, slots=True)
class Request:
    """A job whose geometry we may choose.

    P = `tasks` * `cpus_per_task`. Memory is given per CPU, so that it follows the cores on a node, or per node, so that
    it is the same at every scale; without either the job demands none. `alpha` and `max_scale` are the owner's hints,
    None if not given. `exclusive` asks for nodes that no other job uses.
    """

    tasks: int
    cpus_per_task: int = 1
    threads_per_core: int = 1
    memory_per_cpu_mb: int | None = None
    memory_per_node_mb: int | None = None
    alpha: float | None = None
    max_scale: int | None = None
    exclusive: bool = False

    @property
    def processes(self) -> int:
        """P, the process count by which profiles list their runs."""
        return self.tasks * self.cpus_per_task

    def on_a_node(self, tasks: int) -> Resources:
        """What this many tasks take of one node."""
        cpus = tasks * self.cpus_per_task
        return on_whole_cores(cpus, self.threads_per_core, self.memory_per_cpu_mb, self.memory_per_node_mb)

    def most_tasks(self, capacity: Resources) -> int:
        """How many tasks an empty node of this size holds."""
        return self.most_cpus(capacity) // self.cpus_per_task

    def most_cpus(self, capacity: Resources) -> int:
        """How many CPUs, with their memory, an empty node of this size has for the job."""
        cores = capacity.cores
        if self.memory_per_cpu_mb:
            cores = min(cores, capacity.memory_mb // (self.memory_per_cpu_mb * self.threads_per_core))
        elif self.memory_per_node_mb and self.memory_per_node_mb > capacity.memory_mb:
            return 0
        return cores * self.threads_per_core


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a policy knows of a job when it makes the job's alternatives.

    `own` is the job's own geometry. `request` is what the job asks for if its geometry may be chosen, None if it keeps
    its own, as a job that demands GPUs always does: they are per node. `program` is the profile of its program, None if
    there is none; `program_name` does not depend on that.
    """

    own: Alternative
    request: Request | None = None
    program: Program | None = None
    program_name: str = ""

    def __post_init__(self) -> None:
        """Leave a job that demands GPUs its own geometry."""
        if self.own.demand.gpus:
            object.__setattr__(self, "request", None)


def _as_json(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float) else str(value)


@dataclass(frozen=True, slots=True)
class Considered:
    """A row of an explanation: something that was considered for the job, such as a scale, a node or a heuristic.

    `outcome` says in a few words what came of it, `reason` why. `figures` lead to it: their names are the headings of
    their columns, with units; a figure that does not apply is None or left out.
    """

    name: str
    outcome: str
    reason: str = ""
    figures: Mapping[str, float | str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a policy says of one job: sentences, a table of what was considered, and more sentences below the table.

    `heading` says what the rows are. Jobs are named as in `job 7` or `job 7, 8 and 3 more`: the names of other users'
    jobs are not shown to ordinary users.
    """

    summary: tuple[str, ...] = ()
    heading: str = ""
    considered: tuple[Considered, ...] = ()
    details: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The explanation as JSON values; a figure of another type, such as a number of numpy's, becomes a text."""
        rows = [
            {
                "name": each.name,
                "outcome": each.outcome,
                "reason": each.reason,
                "figures": {str(name): _as_json(value) for name, value in each.figures.items()},
            }
            for each in self.considered
        ]
        summary, details = list(self.summary), list(self.details)
        return {"summary": summary, "heading": self.heading, "considered": rows, "details": details}


class Choice(NamedTuple):
    """A job's alternatives, best first, at least one; and why these."""

    alternatives: tuple[Alternative, ...]
    explanation: Explanation | None = None


#: How a policy makes the alternatives of a job on nodes of these types.
MakeAlternatives = Callable[[JobRequest, Sequence[NodeType]], Choice]


class Policy(Protocol):
    """Decides how jobs may run, and what happens now."""

    def alternatives(self, asked: JobRequest, nodes: Sequence[NodeType], /) -> Choice:
        """The job's alternatives on nodes of these types, which are all nodes that it may ever use.

        Raises:
            Infeasible: the nodes could not hold it even when they are all empty.
        """
        ...

    def plan(self, snapshot: Snapshot) -> Plan:
        """The plan for the snapshot's moment; every waiting job is either started or has a reason."""
        ...

    def explain(self, snapshot: Snapshot, plan: Plan, job_id: int) -> Explanation | None:
        """What `plan`, made of this snapshot, does with this waiting job, and why; None if its reason says all.

        Of a snapshot that was read from the store `plan` is empty: a policy that needs it makes it again.

        Raises:
            BadInput: the job is not among the snapshot's waiting jobs.
        """
        ...


class HistoryFormat(NamedTuple):
    """How a policy's history is stored: its format version and its type, a frozen dataclass of plain values."""

    version: int
    type: type[object]


def own_geometry(asked: JobRequest, nodes: Sequence[NodeType]) -> Choice:  # noqa: ARG001  a policy's shape
    """The alternatives under a policy that leaves every job its own geometry."""
    return Choice((asked.own,))


def no_explanation(snapshot: Snapshot, plan: Plan, job_id: int) -> None:
    """The explanation of a policy that has nothing to add to the reasons in its plan."""
