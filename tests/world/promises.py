"""The checker: which promises of the specification a history breaks.

It is written from the promises, not from the code. It follows Slurm's true history event by event: each event of a job
has the job as it is after it. It adds whose word each field is (promises_jobs) and what goes on around (services), and
asks each rule about each event of its kinds. In schedules with unrelated faults at once, and where two schedulers ran,
only the rules of `SAFETY` are asked.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from world.history import Event
from world.promises_agents import agents_at_the_end
from world.promises_cycles import gated_while_dead, left_as_it_was, not_honest, not_stopped
from world.promises_end import at_the_end
from world.promises_restarts import asked_in_vain, restarted
from world.promises_starts import over_capacity, started_twice, started_wrongly
from world.promises_tale import Tale
from world.promises_writes import (
    forbidden,
    gated_too_long,
    gated_while_off,
    lapsed_left,
    placed_while_off,
    written,
)

Rule = Callable[[Event, Tale], Iterable[str]]

_WRITES: tuple[Rule, ...] = (gated_too_long, written, placed_while_off, lapsed_left)
#: The rules for each kind of event. They see the event before the tale goes on by it.
RULES: Mapping[str, tuple[Rule, ...]] = {
    "submit": (gated_too_long, gated_while_off),
    **dict.fromkeys(("place", "regate", "free", "renew", "widen", "unboost", "update"), _WRITES),
    **dict.fromkeys(("hold", "release", "suspend", "resume", "cancel"), (forbidden,)),
    "requeue": (restarted,),
    "refused": (asked_in_vain,),
    "start": (started_twice, started_wrongly, over_capacity),
    "beat": (not_honest,),
    "daemon": (not_stopped,),
    "cycle": (left_as_it_was,),
}
#: What holds whatever happens.
SAFETY = frozenset({started_twice, over_capacity, gated_too_long})


def check(result: Any) -> list[str]:
    """The promises that this result breaks, each as a sentence that begins with the promise's name."""
    tale = Tale(result)
    found: list[str] = []
    for event in result.history.events:
        if event.kind == "closing":  # from here on there are only nodes
            break
        is_told = event.kind != "submit" or event.data["verdict"] != "refused"
        for rule in (gated_while_dead, *RULES.get(event.kind, ())):
            if is_told and (rule in SAFETY or not tale.is_safety_only or rule is gated_while_dead):
                sentences = list(rule(event, tale))
                found += sentences if rule in SAFETY or not tale.is_safety_only else []
        tale.take(event)
    if not tale.is_safety_only:
        found += at_the_end(result, tale)
    if getattr(result, "agents", None) is not None:
        found += agents_at_the_end(result)
    return found
