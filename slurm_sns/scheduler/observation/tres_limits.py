"""Which trackable resources (TRES) Slurm limits, and for whom. Values only; `snapshot.account_limits` applies them.

TRES have Slurm's names: mem, node, billing, gres/llc. The amount of a limit does not matter here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Names = frozenset[str]
NOTHING_LIMITED: Names = frozenset()


@dataclass(frozen=True, slots=True)
class TresLimits:
    """The limited TRES of each user's associations (with their accounts up to the root), each QOS and each partition.

    The limits of a user who is not in `of_users` are unknown. `are_enforced` is True if AccountingStorageEnforce
    contains limits.
    """

    of_users: Mapping[str, Names] = field(default_factory=dict)
    of_qos: Mapping[str, Names] = field(default_factory=dict)
    of_partitions: Mapping[str, Names] = field(default_factory=dict)
    are_enforced: bool = True

    def anywhere(self, user: str) -> Names | None:
        """The TRES limited in any of the user's accounts or in any QOS; None: not known."""
        if not self.are_enforced:
            return NOTHING_LIMITED
        own = self.of_users.get(user)
        return None if own is None else own.union(*self.of_qos.values())

    def of_job(self, user: str, qos: str, partitions: tuple[str, ...]) -> Names:
        """The TRES known to be limited for a job of this user in this QOS and these partitions."""
        if not self.are_enforced:
            return NOTHING_LIMITED
        there = (self.of_partitions.get(name, NOTHING_LIMITED) for name in partitions)
        return self.of_users.get(user, NOTHING_LIMITED).union(self.of_qos.get(qos, NOTHING_LIMITED), *there)


NO_LIMITS = TresLimits(are_enforced=False)
UNKNOWN = TresLimits()
