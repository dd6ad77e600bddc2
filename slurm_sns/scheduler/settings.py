"""The live scheduler's settings from sns.yaml, which has their defaults (config.settings)."""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_sns.sharing.rules import SharingRules

#: The values of `queue_order`: by Slurm's priority, or by the use that each project makes of its share now.
BY_SLURM, FAIR_NOW = "slurm", "fair-now"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings; None means no limit for `age_limit_s` and `withhold_limit_s`, and Slurm's shares for `shares`.

    `queue_depth` is how many jobs of the queue a cycle looks at. `unmanaged_gbps_per_core` is the bandwidth that a
    running job without a profile is assumed to draw. `shares` are by account. `closids` are those of nodes, by node; a
    node that is not named has no limit, and without any name no CLOSIDs are counted. `frequency_factors` are those by
    which programs are shown as scaling, compact or neutral. `queue_order` is "slurm", "fair-now", or None: the first
    where Slurm computes priorities. `heeds_weight`: nodes of lower Weight are taken first.
    `pools` are the groups of managed partitions that are alike for users: a job that has waited for `queued_check_s` in
    some of a group may start in all of it (0: never). `restarts`: suspended jobs are restarted elsewhere.
    `never_across` are the switches that no job on several nodes is laid across. `sharing` are the rules of the
    partitions whose jobs share cores; None: there is none. `places_gpus`: jobs that ask for GPUs are placed.
    """

    mode: str
    partitions: frozenset[str]
    queue_depth: int
    age_limit_s: int | None
    withhold_limit_s: float | None
    place_timeout_s: float
    heartbeat_timeout_s: float
    gate_lease_s: float
    backoff_s: float
    backoff_max_s: float
    shares: Mapping[str, float] | None
    unmanaged_gbps_per_core: float
    closids: Mapping[str, int]
    frequency_factors: tuple[float, ...]
    queue_order: str | None
    heeds_weight: bool
    never_across: frozenset[str]
    pools: tuple[tuple[str, ...], ...]
    queued_check_s: float
    restarts: bool
    sharing: SharingRules | None = None
    places_gpus: bool = False

    @property
    def sharing_partitions(self) -> frozenset[str]:
        """The partitions whose jobs share cores."""
        return frozenset() if self.sharing is None else self.sharing.partitions

    def is_by_priority(self, *, has_priorities: bool) -> bool:
        """Whether the queue is in the order of Slurm's priorities, on a Slurm that computes some or none."""
        return has_priorities if self.queue_order is None else self.queue_order == BY_SLURM
