"""Jobs' alternatives that earlier cycles found, and a limit on how many new ones a user may cause in one cycle.

A job's size is all that its alternatives are made from. Owners choose it, and a new size costs work. So each user may
have a number of new sizes in a cycle; jobs of further new sizes wait for the next cycles. A known size does not count,
and it stays known while jobs of that size wait: all of a user's sizes are found in a few cycles, and no other user
waits for them. The limit counts sizes, not time: what is put off does not depend on the machine.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from sys import maxsize

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.policies.base import Choice
from slurm_sns.policies.profile import Program

#: A new size takes 0.1 ms of processor time, one whose program has a profile 0.6 ms (measured, 1,000 nodes of one
#: kind): the new sizes of one user take at most a sixteenth of the usual interval, 1 s.
MOST_NEW = 100


@dataclass(frozen=True, slots=True)
class _Found:
    """The alternatives of a size, or why there are none, and the profile that they were made with."""

    profile: Program | None
    choice: Choice | Infeasible

    def is_made_with(self, profile: Program | None) -> bool:
        """Whether the alternatives were made with this profile."""
        return self.profile is profile or self.profile == profile


class KnownAlternatives:
    """The alternatives that the cycles of one scheduler found.

    A size that no job had during a whole cycle is forgotten, so no more sizes are kept than two cycles had jobs.
    """

    def __init__(self, most_new: int = MOST_NEW) -> None:
        """`most_new` is how many sizes of a user may be new in a cycle."""
        self._most_new = most_new
        self._now: dict[Hashable, _Found] = {}
        self._before: dict[Hashable, _Found] = {}
        self._new: Counter[int] = Counter()

    def begin_cycle(self) -> None:
        """Start a cycle: what the last cycle asked for stays known in this one."""
        self._before, self._now = self._now, {}
        self._new.clear()

    def choice(
        self, size: Hashable, profile: Program | None, user_id: int, find: Callable[[], Choice | Infeasible]
    ) -> Choice | Infeasible:
        """The alternatives of a job of this size; `find` makes them where they are not known for this profile.

        Raises:
            Closed: they are not known, and this user has no further new sizes in this cycle.
        """
        known = self._now.get(size)
        if known is None:
            known = self._before.get(size)
        elif known.is_made_with(profile):
            return known.choice  # nearly every job of a long queue: it is hashed once
        if known is None or not known.is_made_with(profile):
            self._count(user_id)
            known = _Found(profile, find())
        self._now[size] = known
        return known.choice

    def _count(self, user_id: int) -> None:
        if self._new[user_id] >= self._most_new:
            raise Closed(
                f"its owner has jobs of more than {self._most_new} new sizes: this one is looked at in a later cycle"
            )
        self._new[user_id] += 1


def unlimited() -> KnownAlternatives:
    """For a single cycle that no other follows: nothing is put off."""
    return KnownAlternatives(maxsize)
