"""The checker: which promises of README and CONTRIBUTING a history breaks.

It is written from the promises, not from the code: it follows the history event by event, keeps its own account of each
job (promises_life, promises_lives) and of everything around (promises_services), and asks each rule about each event of
its kinds. What the documents except is excepted here, and nothing else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from world.history import Event
from world.promises_agents import agents_at_the_end
from world.promises_changes import (
    extra_overwritten,
    field_changed,
    nice_left,
    not_planned_again,
    not_taken_back,
    not_verified,
    wrongly_restored,
)
from world.promises_end import at_the_end
from world.promises_heartbeat import not_honest, not_stopped
from world.promises_holds import (
    held_too_long,
    held_while_off,
    hold_undone,
    not_recorded,
    off_but_holding,
    placed_unheld,
    placed_while_off,
    taken_again,
)
from world.promises_lives import Lives
from world.promises_starts import (
    limit_exceeded,
    over_capacity,
    requeued_by_us,
    started_too_early,
    started_twice,
    started_while_held,
    wrong_nodes,
    wrong_size,
)
from world.promises_tale import Tale

Rule = Callable[[Event, Tale], Iterable[str]]

#: The rules for each kind of event. They see the event before the tale goes on by it.
RULES: Mapping[str, tuple[Rule, ...]] = {
    "submit": (held_while_off,),
    "place": (hold_undone, taken_again, placed_unheld, not_recorded, placed_while_off, extra_overwritten),
    "release": (hold_undone,),
    "hold": (hold_undone, taken_again),
    "update": (field_changed, wrongly_restored),
    "unpin": (field_changed, wrongly_restored),
    "start": (
        *(started_twice, started_while_held, started_too_early, wrong_nodes),
        *(limit_exceeded, wrong_size, over_capacity),
    ),
    **dict.fromkeys(("requeue", "suspend", "resume", "cancel"), (requeued_by_us,)),
    "beat": (not_honest,),
    "daemon": (not_stopped,),
    "cycle": (off_but_holding, not_taken_back, not_planned_again, not_verified, nice_left),
}


def _told(result: Any, events: Sequence[Event]) -> Lives:
    """The lives of all jobs after these events."""
    tale, saved = Tale(result), 0
    for at, event in enumerate(events):
        tale.take(event)
        if event.kind == "saved":
            saved = at
        elif event.kind == "reverted":
            tale.lives.go_back(_told(result, events[: saved + 1]), event.at_s)
    return tale.lives


def check(result: Any) -> list[str]:
    """The promises that this result breaks, each as a sentence that begins with the promise's name."""
    tale = Tale(result)
    found: list[str] = []
    events = result.history.events
    saved = 0
    for at, event in enumerate(events):
        if event.kind == "closing":  # from here on there are only nodes
            break
        found += held_too_long(event, tale)  # it notes when the heartbeat began to be stale
        for rule in RULES.get(event.kind, ()):
            found += rule(event, tale)
        tale.take(event)
        if event.kind == "saved":
            saved = at
        elif event.kind == "reverted":
            tale.lives.go_back(_told(result, events[: saved + 1]), event.at_s)
    found += at_the_end(result, tale)
    if getattr(result, "agents", None) is not None:
        found += agents_at_the_end(result)
    return found
