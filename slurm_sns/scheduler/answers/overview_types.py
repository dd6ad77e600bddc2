"""The type of the overview, the scheduler's answer that `sns top` and the page of `sns web` show."""

from typing import NotRequired

from typing_extensions import TypedDict

from slurm_sns.scheduler.answers.answer_types import JobCounts, QueueRow, ResourceAmounts


class NodeShare(TypedDict):
    """What one job holds of a node."""

    label: str
    """The job as users write it; empty for a job that the caller may not see."""
    managed: bool
    """Whether slurm_sns placed it or counts it as its own; false for a job of Slurm's own."""
    holds: ResourceAmounts
    """What it has of this node."""


class NodeView(TypedDict):
    """A node with the jobs on it."""

    name: str
    """The node's name."""
    partitions: list[str]
    """The partitions that it is in, sorted."""
    capacity: ResourceAmounts
    """What it has."""
    free: ResourceAmounts
    """What is free on it after the last cycle; never negative."""
    stranded: ResourceAmounts
    """What is free but serves no waiting job, because something else that each of them needs is lacking there."""
    unavailable: str
    """Why it may not be used now; empty if it may."""
    kept_for: list[str]
    """The waiting jobs for which capacity is withheld on it; an empty label for a job that the caller may not see."""
    jobs: list[NodeShare]
    """The jobs on it, the largest first."""


class DayPoint(TypedDict):
    """One moment of the last day."""

    at_s: float
    """When, Unix seconds."""
    waiting_cores: int
    """The cores that waiting jobs asked for."""
    stranded_cores: int
    """The cores that were stranded."""
    wait_p50_s: float | None
    """The median wait of the jobs that started since the moment before, seconds; null if none did."""
    wait_p90_s: float | None
    """Their 90th percentile, seconds."""


class OverviewCounts(JobCounts):
    """How many managed jobs are in which state, and how many can never start."""

    never: int
    """Waiting jobs that can never start as they are."""


class ClusterOverview(TypedDict):
    """The cluster on one screen, but for the queue: each node with its jobs, and the last day."""

    at_s: float
    """When the cycle ended that it shows, Unix seconds."""
    next_s: NotRequired[float]
    """Before this moment there is no newer overview, Unix seconds: it costs the scheduler at most 2 % of its time."""
    cycle_s: float
    """How long that cycle took, seconds."""
    mode: str
    """`observe`, `advise` or `enforce`."""
    disabled: bool
    """Whether `sns disable` has turned slurm_sns off."""
    trouble: str
    """What keeps the scheduler from working; empty if nothing does."""
    chosen: str
    """The heuristic whose schedule that cycle used; empty if it had nothing to plan."""
    counts: OverviewCounts
    """The managed jobs by state."""
    nodes: list[NodeView]
    """The nodes of managed partitions, in Slurm's order."""
    day: list[DayPoint]
    """The last 24 hours, oldest first, a moment each five minutes."""


class OverviewAnswer(ClusterOverview):
    """The cluster on one screen, with the queue with why and when."""

    jobs: list[QueueRow]
    """The jobs that the caller may see, as `sns queue` has them: waiting ones first, in queue order."""
