"""The history of a simulated world: what took effect, when, and who caused it.

An event is written when it takes effect, whether or not the caller ever learns of it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Times(Protocol):
    """What a history needs of its world."""

    true_s: float

    def wall_s(self) -> float: ...


class Event(NamedTuple):
    """One event: `at_s` is steady time, `wall_s` the wall clock, `job` a job id (0: it concerns no job)."""

    at_s: float
    wall_s: float
    kind: str
    job: int
    by: str
    data: Mapping[str, Any]


#: Makes an event from its fields at once, as `Event._make` does: a world makes very many of them.
new_event = tuple.__new__


class History:
    """The events in the order in which they took effect."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.events: list[Event] = []

    def add(self, kind: str, job: int = 0, by: str = "world", **data: Any) -> None:
        times = self._times
        self.events.append(new_event(Event, (times.true_s, times.wall_s(), kind, job, by, data)))
