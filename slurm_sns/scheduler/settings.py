"""The live scheduler's settings from sns.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_sns.policies.specification import DEFAULT_QUEUE_DEPTH


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings; None means no limit for `age_limit_s` and `withhold_limit_s`, and Slurm's shares for `shares`.

    `queue_depth` is how many jobs of the queue a cycle looks at. `unmanaged_gbps_per_core` is the bandwidth that a
    running job without a profile is assumed to draw. `shares` are by account. `closids` are those of nodes, by node; a
    node that is not named has no limit, and without any name no CLOSIDs are counted.
    """

    mode: str = "enforce"
    partitions: frozenset[str] = frozenset()
    queue_depth: int = DEFAULT_QUEUE_DEPTH
    age_limit_s: int | None = 21600
    withhold_limit_s: float | None = 1800.0
    place_timeout_s: float = 10.0
    heartbeat_timeout_s: float = 15.0
    gate_lease_s: float = 7200.0
    backoff_s: float = 5.0
    backoff_max_s: float = 300.0
    shares: Mapping[str, float] | None = None
    unmanaged_gbps_per_core: float = 0.0
    closids: Mapping[str, int] = field(default_factory=dict)
