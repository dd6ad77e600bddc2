"""Which suspended jobs may restart, and when it pays."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartRules:
    """The settings of sns.yaml, `rescheduling`, for restarts; conf/sns.yaml says what each is for.

    `sends`: restarts are carried out, not only proposed. `needs_hint`: only jobs with --sns-restartable may restart.
    `only_suspended`: only jobs that were suspended count in averages. `pools` are the groups of partitions.
    """

    sends: bool
    needs_hint: bool
    window_s: int
    only_suspended: bool
    least_suspended_s: int
    gain_s: int
    max_moves: int
    lost_core_hours_per_user_day: int
    pools: tuple[tuple[str, ...], ...] = ()

    def group_of(self, partition: str) -> tuple[str, ...]:
        """The partitions in which a job of this one may restart, its own first."""
        group = next((pool for pool in self.pools if partition in pool), ())
        return partition, *(name for name in group if name != partition)
