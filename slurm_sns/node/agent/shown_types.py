"""The types of what `sns agent --show --json` and `sns agent --once --json` print."""

from typing_extensions import TypedDict


class MeasuredWays(TypedDict):
    """What was measured of a job with so many cache ways."""

    ways: int
    """Cache ways; 0 where the cache is not partitioned."""
    seconds: float
    """For how long it was measured."""
    ipc: float | None
    """Instructions per cycle; null where they cannot be counted."""
    gbps: float | None
    """Memory bandwidth, GB/s; null where it cannot be counted."""


class JobOnNode(TypedDict):
    """A job on the node."""

    job: int
    """The job's id."""
    restarts: int
    """How many times it was requeued."""
    here_s: float
    """For how long it has been here, seconds."""
    ways: int
    """The cache ways that are its own now."""
    bandwidth_gbps: int
    """The bandwidth that it was given, GB/s."""
    granted_ways: int
    """The ways that the scheduler has planned for it."""
    is_sampled: bool
    """Whether its ways are changed in turn to measure it."""
    cpus: int
    """The CPUs by which its CPU time is weighed; 0 where it is not shared."""
    cpu_share: float
    """The part of these CPUs' time that it has at most."""
    threads: int
    """How many threads it has."""
    why_shared: str
    """Why it has no partition of its own; empty if it has one or needs none."""
    points: list[MeasuredWays]
    """What was measured, by cache ways."""


class AgentJson(TypedDict):
    """`sns agent --show --json`."""

    node: str
    """The node's name."""
    mode: str
    """`partition`, or `observe`: it only measures."""
    ways: int
    """The ways of each cache domain; 0 if they cannot be partitioned."""
    why_unpartitioned: str
    """Why they cannot; empty if they can."""
    trouble: str
    """What keeps the agent from working; empty if nothing does."""
    is_connected: bool
    """Whether the scheduler is connected."""
    reports: int
    """Measurements that have not been sent yet."""
    jobs: list[JobOnNode]
    """The jobs on the node."""
