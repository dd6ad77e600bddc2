"""What must survive a restart: our records of jobs that we hold or have placed, and our decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple


class Stage(StrEnum):
    """Where a managed job is in its life (CONTRIBUTING.md, "Life of a managed job")."""

    HELD = "held"
    """We hold it and plan it."""
    HOLDING = "holding"
    """Its placement is being taken back; the next observation verifies that the job is held."""
    PLACED = "placed"
    """The RPC that pins and releases it is about to be sent, or has been sent."""
    OWNER_HELD = "owner-held"
    """Its owner held it after we placed it."""
    RUNNING = "running"
    """It has started from our placement, and was compared with the plan."""
    RELEASED = "released"
    """Its owner released it, or we gave it to Slurm. It stays Slurm's from then on, even if somebody holds it."""


class OwnMemory(NamedTuple):
    """The memory request of a job that we gave whole nodes, to be restored later; both None: nothing to restore."""

    per_cpu_mb: int | None = None
    per_node_mb: int | None = None


NO_MEMORY = OwnMemory()


class TakenBack(NamedTuple):
    """A placement that is no longer on its job; the fields are those of the job's record at that time."""

    nodes: tuple[str, ...]
    memory_per_cpu_mb: int | None = None
    memory_per_node_mb: int | None = None
    given_memory_mb: int = 0
    given_ways: int | None = None
    given_bandwidth_gbps: int | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Our stored note on one job. Slurm may reuse job ids after its state was wiped; `submit_s` tells the jobs apart.

    Attributes:
        job_id: Slurm's id of the job.
        submit_s: when it was submitted.
        stage: where it is in its life.
        nodes: those of its last placement, until Slurm shows that it was taken back.
        placed_s: when it was last placed.
        restarts: Slurm's restart count when we placed it; a higher count now means that it was requeued since.
        nice: the job's own nice value, without our boost.
        failures: how many of its placements Slurm refused or did not start, since its last requeue.
        retry_s: when it may be planned again after such a failure.
        note: why it waits, or why its placement was taken back.
        tasks: the number of tasks that was planned (0: not known).
        difference: how the job runs differently from its plan, found once it has started; empty if it does not.
        limited_by: Slurm's reason if a limit of the job's owner kept the last placement from starting, otherwise empty.
        memory_per_cpu_mb: its own memory request by CPU, to be restored, if we gave it whole nodes.
        memory_per_node_mb: the same for a request by node; 0 if it has none.
        given_memory_mb: the memory by node that the last placement gave it; 0 if it left the job's own.
        given_ways, given_bandwidth_gbps: the gres by node that the last placement gave it; None: not known, as in a
            record of an earlier version.
        is_noted: since the job was given to Slurm, or held by its owner, its mark was seen to say so, and no free job
            without that word since. If it says so no longer, while the job is held, slurmctld has lost what was written
            last.
        taken_back: its last placement that was taken back: a slurmctld that is killed may go back to it.
    """

    job_id: int
    submit_s: int
    stage: Stage
    nodes: tuple[str, ...] = ()
    placed_s: float = 0.0
    restarts: int = 0
    nice: int = 0
    failures: int = 0
    retry_s: float = 0.0
    note: str = ""
    tasks: int = 0
    difference: str = ""
    limited_by: str = ""
    memory_per_cpu_mb: int | None = None
    memory_per_node_mb: int | None = None
    given_memory_mb: int = 0
    given_ways: int | None = None
    given_bandwidth_gbps: int | None = None
    is_noted: bool = False
    taken_back: TakenBack | None = None

    @property
    def own_memory(self) -> OwnMemory:
        """The memory to restore when the placement is taken back."""
        return OwnMemory(self.memory_per_cpu_mb, self.memory_per_node_mb)

    @property
    def last_taken_back(self) -> TakenBack | None:
        """What `taken_back` is once the record's placement is no longer on the job."""
        if not self.nodes:
            return self.taken_back
        memory = (self.memory_per_cpu_mb, self.memory_per_node_mb, self.given_memory_mb)
        return TakenBack(self.nodes, *memory, self.given_ways, self.given_bandwidth_gbps)

    def without_nodes(self) -> "JobRecord":
        """The record once Slurm shows the job without its placement: a node list from now on is its owner's."""
        return replace(self, nodes=(), taken_back=self.last_taken_back) if self.nodes else self

    def with_placement_again(self) -> "JobRecord":
        """The record once slurmctld has gone back to the placement that was taken back."""
        return self if self.taken_back is None else replace(self, **self.taken_back._asdict())


class Memory(NamedTuple):
    """The history of a policy's last plan, as JSON in the form of this version; an empty text is no history."""

    policy: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of the decision record: `action` is "start" (on `nodes`) or "note".

    `chosen` and `matched` are those of the cycle: the heuristic whose schedule was dispatched, and how many jobs each
    heuristic matched. For a start, `scale` and `demand` are those of the alternative that was taken (`demand` by
    resource, on each node), and `considered` says how a spreadable job's alternatives came about
    (policies.sns.alternatives_report, as JSON values). A note that came several times in a row is one line, the last
    one; `times` counts them.
    """

    job_id: int
    user_id: int
    at_s: float
    action: str
    nodes: tuple[str, ...]
    reason: str
    cycle_id: int
    chosen: str
    matched: Mapping[str, int]
    scale: int = 1
    exclusive: bool = False
    demand: Mapping[str, int] = field(default_factory=dict)
    considered: Mapping[str, Any] | None = None
    times: int = 1
