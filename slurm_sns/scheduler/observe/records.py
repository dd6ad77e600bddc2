"""What we remember of a job that we hold or have placed, and of what we decided: a restart must not lose it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Stage(StrEnum):
    """Where a managed job is in its life (CONTRIBUTING.md, "Life of a managed job")."""

    HELD = "held"
    """We hold it and plan it."""
    HOLDING = "holding"
    """Its placement is being taken back; the next look verifies that the job is held."""
    PLACED = "placed"
    """The RPC that pins and releases it is about to be sent, or was."""
    OWNER_HELD = "owner-held"
    """Its owner held it after we placed it."""
    RUNNING = "running"
    """It has started where we placed it, and what runs was compared with what was planned."""
    RELEASED = "released"
    """Its owner released it, or we gave it to Slurm: it is Slurm's from then on, whoever holds it later."""


class OwnMemory(NamedTuple):
    """A job's own memory request, to be restored where we gave it whole nodes; both None: nothing to restore."""

    per_cpu_mb: int | None = None
    per_node_mb: int | None = None


NO_MEMORY = OwnMemory()


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Our note on one job. Job ids can come again after Slurm's state was wiped: `submit_s` tells the jobs apart.

    `restarts` is Slurm's restart count when we placed it; more than that means it was requeued since. `nice` is the
    job's own nice before our boost. `retry_s` is when it may be planned again after a placement that did not start.
    `nodes` are those of the last placement, also after it was taken back, until another one. `tasks` is the number of
    tasks that was planned (0: not known), `difference` what was found to run otherwise than planned. `limited_by` is
    Slurm's reason where the last placement did not start for a limit of the job's owner. Where we gave a job whole
    nodes, one of the two memory fields is its own memory, to be restored.
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

    @property
    def own_memory(self) -> OwnMemory:
        """The memory to restore when the placement is taken back."""
        return OwnMemory(self.memory_per_cpu_mb, self.memory_per_node_mb)


class Memory(NamedTuple):
    """The history that a policy's plan gave us to keep, as JSON, in the form of this version."""

    policy: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of the decision record: `action` is "start" (on `nodes`) or "note".

    `chosen` and `matched` are the cycle's: the heuristic whose schedule was dispatched, and how many jobs each
    matched. Of a start, `scale` and `demand` are those of the alternative that was taken (`demand` by resource, on
    each node), and `considered` says how a spreadable job's alternatives came about (scheduler.spreading, as JSON
    values). A note that came again and again is one line, the last of so many `times`.
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
