"""The alternatives of jobs that were found in earlier looks, and how many new ones a user may have found in this one.

A job's size (all that its alternatives are made from) is its owner's to choose, and a new one costs work. So each user
has a number of new sizes in a look; the jobs of the others wait for the next looks. What is known costs nothing of it
and stays known while jobs of that size wait: all of a user's sizes are found in a few looks, and no other user waits
for them. Work is counted, not time: what is put off does not depend on the machine.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from sys import maxsize

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.policies.base import Choice
from slurm_sns.policies.profile import Program

#: A new size takes 0.1 ms, one whose program has a profile 0.6 ms of the processor (measured, 1,000 nodes of one kind):
#: those of one user take at most a sixteenth of the usual interval, 1 s.
MOST_NEW = 100


@dataclass(frozen=True, slots=True)
class _Found:
    """The alternatives, or why there are none, by the profile that the program had."""

    profile: Program | None
    choice: Choice | Infeasible

    def is_by(self, profile: Program | None) -> bool:
        """Whether it was found by this profile."""
        return self.profile is profile or self.profile == profile


class KnownAlternatives:
    """What the looks of one scheduler found.

    A size that no job had for a whole look is forgotten, so no more sizes are kept than two looks had jobs.
    """

    def __init__(self, most_new: int = MOST_NEW) -> None:
        """`most_new`: so many sizes of a user may be new in a look."""
        self._most_new = most_new
        self._now: dict[Hashable, _Found] = {}
        self._before: dict[Hashable, _Found] = {}
        self._new: Counter[int] = Counter()

    def begin_look(self) -> None:
        """What was asked for in the look that ends stays known in this one."""
        self._before, self._now = self._now, {}
        self._new.clear()

    def choice(
        self, size: Hashable, profile: Program | None, user_id: int, find: Callable[[], Choice | Infeasible]
    ) -> Choice | Infeasible:
        """The alternatives of a job of this size, by `find` where they are not known with this profile.

        Raises:
            Closed: they are not, and this user has had as many new sizes in this look as he may.
        """
        known = self._now.get(size)
        if known is None:
            known = self._before.get(size)
        elif known.is_by(profile):
            return known.choice  # nearly every job of a long queue: it is hashed once
        if known is None or not known.is_by(profile):
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
    """For a look that no other follows: nothing is put off."""
    return KnownAlternatives(maxsize)
