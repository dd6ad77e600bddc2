"""What one cycle sends of more than it may send: one change of each user, then a second, and so on."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

Change = TypeVar("Change")


def round_robin(
    changes: Iterable[Change], owner: Callable[[Change], Hashable], most: int | None = None
) -> list[Change]:
    """At most so many of these (None: all), an owner after the other, in the order in which the owners come first.

    What is one owner's stays in its order, so of several changes of a job none overtakes another.
    """
    return list(islice(_each_in_turn(changes, owner), most))


def _each_in_turn(changes: Iterable[Change], owner: Callable[[Change], Hashable]) -> Iterator[Change]:
    waiting: dict[Hashable, list[Change]] = {}
    for change in changes:
        waiting.setdefault(owner(change), []).append(change)
    turns = [iter(each) for each in waiting.values()]
    while turns:
        left = []
        for turn in turns:
            for change in islice(turn, 1):
                yield change
                left.append(turn)
        turns = left
