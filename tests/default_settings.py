"""The scheduler's settings in tests that do not say otherwise; they change single fields with `replace`."""

from slurm_sns.policies.specification import DEFAULT_QUEUE_DEPTH
from slurm_sns.scheduler.settings import Settings

SETTINGS = Settings(
    mode="enforce",
    partitions=frozenset(),
    queue_depth=DEFAULT_QUEUE_DEPTH,
    age_limit_s=21_600,
    withhold_limit_s=1800.0,
    place_timeout_s=10.0,
    heartbeat_timeout_s=15.0,
    gate_lease_s=7200.0,
    backoff_s=5.0,
    backoff_max_s=300.0,
    shares=None,
    unmanaged_gbps_per_core=0.0,
    closids={},
    frequency_factors=(1.0,),
    queue_order=None,
    heeds_weight=True,
    never_across=frozenset(),
    pools=(),
    queued_check_s=0.0,
    restarts=False,
)
