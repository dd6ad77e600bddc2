"""Which trackable resources (TRES) Slurm limits, for whom. Values only; `account_limits` decides by them.

TRES have Slurm's names: mem, node, billing, gres/llc. How high a limit is does not matter here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Names = frozenset[str]
NOTHING_LIMITED: Names = frozenset()


@dataclass(frozen=True, slots=True)
class TresLimits:
    """What is limited by each user's associations (with their accounts up to the root), by each QOS and partition.

    A user who is not named is not known. `are_enforced`: AccountingStorageEnforce contains limits.
    """

    of_users: Mapping[str, Names] = field(default_factory=dict)
    of_qos: Mapping[str, Names] = field(default_factory=dict)
    of_partitions: Mapping[str, Names] = field(default_factory=dict)
    are_enforced: bool = True

    def anywhere(self, user: str) -> Names | None:
        """What is limited in any account of the user's or in any QOS; None: not known."""
        if not self.are_enforced:
            return NOTHING_LIMITED
        own = self.of_users.get(user)
        return None if own is None else own.union(*self.of_qos.values())

    def of_job(self, user: str, qos: str, partitions: tuple[str, ...]) -> Names:
        """What is known to be limited for a job where it is now."""
        if not self.are_enforced:
            return NOTHING_LIMITED
        there = (self.of_partitions.get(name, NOTHING_LIMITED) for name in partitions)
        return self.of_users.get(user, NOTHING_LIMITED).union(self.of_qos.get(qos, NOTHING_LIMITED), *there)


NO_LIMITS = TresLimits(are_enforced=False)
UNKNOWN = TresLimits()
