"""Limits how many changes a cycle sends: one change of each user, then a second of each, and so on."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

Change = TypeVar("Change")


def round_robin(
    changes: Iterable[Change], owner: Callable[[Change], Hashable], most: int | None = None
) -> list[Change]:
    """At most `most` of the changes (None: all), one of each owner in turn, owners in the order of their first change.

    The changes of one owner keep their order, so two changes of the same job are never swapped.
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
