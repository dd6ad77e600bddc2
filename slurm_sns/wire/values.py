"""What the scheduler and the agents tell each other, as values with their bounds (docs/develop/wire.md).

messages.py writes and reads them: our own code makes values without a check, pydantic checks what a peer sends.
Ways and bandwidth are those of a job on each of its nodes, in the units of `slurm_sns.model`. Times are Unix seconds.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import AfterValidator, Field

from slurm_sns import log

#: A longer text is cut.
LONGEST_TEXT = 512
LONGEST_NAME = 64  # of a node, and of a host (HOST_NAME_MAX of Linux)
MOST_JOBS = 4096  # on one node
MOST_POINTS = 256  # the ways of one run
MOST_DOMAINS = 1024  # of the last-level cache, on one node
MOST_KEYS = 1024  # acknowledged in one message


def printable(text: str) -> str:
    """The beginning of a text, with ? for what cannot be printed: fit for one line of a log, and for JSON."""
    return log.printable(text[:LONGEST_TEXT])


Text = Annotated[str, AfterValidator(printable)]
NodeName = Annotated[str, Field(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}$")]
KeyName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,16}$")]
#: 32 bytes: a nonce, or a proof.
Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# Slurm's ids and counts are 32 bits wide.
JobId = Annotated[int, Field(ge=1, le=2**32 - 1)]
Restarts = Annotated[int, Field(ge=0, le=2**32 - 1)]
TaskNumber = Annotated[int, Field(ge=0, le=2**32 - 2)]
Revision = Annotated[int, Field(ge=0, le=2**63 - 1)]
# As in sns.yaml; a node has few ways, and no memory is that fast.
Ways = Annotated[int, Field(ge=0, le=1024)]
Gbps = Annotated[int, Field(ge=0, le=1_000_000)]
JobCount = Annotated[int, Field(ge=0, le=1_000_000)]
CoreCounts = Annotated[
    tuple[Annotated[int, Field(ge=0, le=65_536)], ...], Field(max_length=MOST_DOMAINS)
]  # by cache domain
CpuCount = Annotated[int, Field(ge=0, le=65_536)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
Ipc = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
MeasuredGbps = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]

#: What no other report has: job id, restart count, node.
ReportKey = tuple[int, int, str]


class RunId(NamedTuple):
    """One run of a job: Slurm's id of the job and its restart count.

    In the grant of an array's task that has no id of Slurm's yet it is our id of the task (task_ids).
    """

    job_id: int
    restarts: int = 0


if TYPE_CHECKING:
    Run = RunId
else:
    #: A run as messages have it: exactly these two numbers.
    Run = Annotated[tuple[JobId, Restarts], AfterValidator(lambda pair: RunId(*pair))]


@dataclass(frozen=True, slots=True)
class Grant:
    """What a run may have on each of its nodes: LLC ways of its own, memory bandwidth, and its part of the CPU.

    `ways` and `bandwidth_gbps` are 0 where it has none of its own. `cpu_share`: agents take it from a `Change` alone.
    `has_nodes_alone`: no other job is placed on its nodes. `samples`: its ways are to be changed while it runs, so that
    its curves are measured.
    """

    run: RunId
    nodes: tuple[str, ...]
    ways: int = 0
    bandwidth_gbps: int = 0
    cpu_share: float = 1.0
    has_nodes_alone: bool = False
    samples: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A change of what a run has on one node while it is there. Of several the one with the highest revision counts.

    `cpus` is how many CPUs it asked for on that node; 0 where jobs do not share CPU time, and `cpu_share` says nothing.
    Otherwise CPU time is divided among the runs of the node in proportion to `cpus`, and this one has at most that of
    `cpu_share * cpus` CPUs.
    """

    run: Run
    revision: Revision
    ways: Ways = 0
    bandwidth_gbps: Gbps = 0
    cpu_share: Share = 1.0
    samples: bool = False
    cpus: CpuCount = 0


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What an agent's node can do, as it says when it connects.

    `software` is the version of the package. `mode` is `partition` or `observe`. `ways` are those of each cache domain,
    0 if they cannot be partitioned; then `why_unpartitioned` says why. `jobs_with_ways` is how many jobs can have a
    CLOSID. `cores` are those of each cache domain, in the order of the domains; empty if they are not known.
    """

    node: NodeName
    software: Text = ""
    mode: Text = "partition"
    ways: Ways = 0
    jobs_with_ways: JobCount = 0
    limits_bandwidth: bool = False
    measures_ipc: bool = False
    measures_bandwidth: bool = False
    why_unpartitioned: Text = ""
    cores: CoreCounts = ()


@dataclass(frozen=True, slots=True)
class JobThere:
    """A run on an agent's node: what it has now, and why it has no partition of its own.

    `why_shared` is empty if it has one, or needs none. `is_found`: its prolog did not reach the agent, or the agent has
    lost its state: what was granted to it is not known there. `awaits_task`: its grant is of an array's task, and the
    agent waits to be told which task the run is. `cores` are its own in each cache domain, as in the node's facts.
    `cpus` and `cpu_share` are in force as a `Change` has them; 0 and 1.0 where its CPU time is not shared, or not yet.
    `is_confined`: Slurm lets it use some of the node's CPUs only.
    """

    run: Run
    ways: Ways = 0
    bandwidth_gbps: Gbps = 0
    why_shared: Text = ""
    is_sampled: bool = False
    is_found: bool = False
    awaits_task: bool = False
    cores: CoreCounts = ()
    cpus: CpuCount = 0
    cpu_share: Share = 1.0
    is_confined: bool = False


@dataclass(frozen=True, slots=True)
class NodeState:
    """What an agent says of its node: at its start, whenever something changes, and at least every half minute.

    `trouble` is what keeps the agent from working, such as a full disk; empty if nothing does.
    """

    at_s: Moment
    facts: NodeFacts
    jobs: Annotated[tuple[JobThere, ...], Field(max_length=MOST_JOBS)] = ()
    trouble: Text = ""


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured of a run while it had so many ways of each cache domain that it uses.

    Averages over `seconds`; None where the node cannot measure it. `ways` is 0 where the cache is not partitioned.
    `alone_ipc` is the average over the `alone_s` of these seconds in which no other run was on the node.
    """

    ways: Ways
    seconds: Seconds
    ipc: Ipc | None = None
    bandwidth_gbps: MeasuredGbps | None = None
    alone_s: Seconds = 0.0
    alone_ipc: Ipc | None = None


@dataclass(frozen=True, slots=True)
class RunReport:
    """What an agent has measured of a run on its node; it is made once, when the run has ended there.

    `ran_s` is the time between prolog and epilog by a clock that is never set. `was_alone`: no other job was on the
    node in all that time. `was_sampled`: its ways were changed while it ran, so that its time is no run time.
    `is_whole`: the agent was there from its beginning to its end.
    """

    run: Run
    node: NodeName
    ended_s: Moment
    ran_s: Seconds
    was_alone: bool = False
    was_sampled: bool = False
    is_whole: bool = True
    points: Annotated[tuple[Point, ...], Field(max_length=MOST_POINTS)] = field(default_factory=tuple)

    @property
    def key(self) -> ReportKey:
        """What no other report has."""
        return (self.run.job_id, self.run.restarts, self.node)


class ArrayTask(NamedTuple):
    """The job with this id is this task of that array."""

    job_id: int
    array_id: int
    task: int


if TYPE_CHECKING:
    TaskOfArray = ArrayTask
else:
    TaskOfArray = Annotated[tuple[JobId, JobId, TaskNumber], AfterValidator(lambda three: ArrayTask(*three))]


@dataclass(frozen=True, slots=True)
class ActiveRuns:
    """The runs that the scheduler sees as active on an agent's node, and which of them are array tasks: all, each time.

    An agent cannot learn that on its node: Slurm tells slurmd's prolog nothing of arrays (prep_script_slurmd.c).
    """

    runs: Annotated[frozenset[Run], Field(max_length=MOST_JOBS)] = frozenset()
    tasks: Annotated[frozenset[TaskOfArray], Field(max_length=MOST_JOBS)] = frozenset()


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The keys of reports that the scheduler has stored: the agent may forget them."""

    keys: Annotated[tuple[tuple[JobId, Restarts, NodeName], ...], Field(max_length=MOST_KEYS)] = ()
