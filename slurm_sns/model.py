"""The values that everything else speaks in: resources, nodes, jobs, the snapshot and the plan.

Units: memory in MiB, cores are Slurm cores (not CPUs), ways are last-level-cache ways per node, bandwidth in whole
GB/s, times in seconds (live: Unix seconds). All values are immutable; what a policy is given it cannot change.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Resources(NamedTuple):
    """Amounts of the four resources of one node: a capacity, what is free, or a job's demand on each of its nodes.

    What is free may be negative where capacity is withheld for a job that is larger than what is left (capacity that a
    cycle withholds).
    """

    cores: int
    memory_mb: int
    ways: int = 0
    bandwidth_gbps: int = 0

    def within(self, limit: "Resources") -> bool:
        """Whether every amount is at most that of `limit`."""
        return (
            self.cores <= limit.cores
            and self.memory_mb <= limit.memory_mb
            and self.ways <= limit.ways
            and self.bandwidth_gbps <= limit.bandwidth_gbps
        )

    def plus(self, other: "Resources") -> "Resources":
        """The sum, resource by resource."""
        return Resources(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: "Resources") -> "Resources":
        """The difference, resource by resource; it may be negative."""
        return Resources(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


NOTHING = Resources(0, 0)


@dataclass(frozen=True, slots=True)
class Node:
    """A node that can be planned on now. Nodes that are down, draining or failing are not in a snapshot's `nodes`."""

    name: str
    capacity: Resources
    free: Resources


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to run a job: `nodes` nodes with `demand` on each.

    `tasks_per_node` is the geometry to write to Slurm, None where the job keeps its own. `slowdown` is the predicted
    run time divided by the best one (1.0 when nothing is known). `exclusive` asks for empty nodes (mode E of
    Spread-n-Share).
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
    the job's own choice, which replaces the portfolio member's. An over-aged job comes before all others and withholds
    capacity. A job that does not find a place has no capacity withheld for it where `withholds` is False.
    """

    id: int
    submit_s: int
    alternatives: tuple[Alternative, ...]
    order: tuple[int, ...] = ()
    project: str = ""
    heuristic: str | None = None
    allowed: frozenset[str] | None = None
    over_aged: bool = False
    withholds: bool = True


@dataclass(frozen=True, slots=True)
class Project:
    """A project's share of the cluster (any positive scale) and what its running and placed jobs hold now."""

    share: float = 1.0
    used: Resources = NOTHING


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The nodes and the waiting jobs at one moment.

    `nodes` are in the machine list's order, which breaks ties. `waiting` is in queue order before fair share (fair
    share reorders the projects' heads while a cycle runs). A project that `projects` does not name has share 1 and
    uses nothing. `unavailable` gives, for the nodes left out, why: explain shows it, no decision reads it.
    """

    nodes: tuple[Node, ...]
    waiting: tuple[Job, ...]
    projects: Mapping[str, Project] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Start:
    """An action: start the job on exactly these nodes, with `alternative.demand` on each."""

    job_id: int
    nodes: tuple[str, ...]
    alternative: Alternative
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy decides in one cycle: the starts, and for every job not started one reason.

    `chosen` is the heuristic whose schedule was dispatched, `matched` the number of jobs that each member of the
    portfolio matched (its maximum is reached by the cycle's winners). `withheld_for` are the jobs for which capacity
    was withheld. `wake_s` is when the policy wants to be asked again at the latest, None for "at the next event".
    """

    starts: tuple[Start, ...] = ()
    waiting: Mapping[int, str] = field(default_factory=dict)
    chosen: str = ""
    matched: Mapping[str, int] = field(default_factory=dict)
    withheld_for: tuple[int, ...] = ()
    wake_s: int | None = None

    @property
    def winners(self) -> tuple[str, ...]:
        """The members that matched the most jobs, in portfolio order."""
        most = max(self.matched.values(), default=0)
        return tuple(name for name, count in self.matched.items() if count == most)


def total(amounts: Iterable[Resources]) -> Resources:
    """The sum of any number of resources."""
    result = NOTHING
    for amount in amounts:
        result = result.plus(amount)
    return result
