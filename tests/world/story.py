"""A history as a readable log: a line for each event, with its time, who did it, and what."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from world.history import Event
from world.run import Result

#: Events that a short log leaves out.
READS = frozenset({"look", "load", "beat", "cycle", "log", "purge"})
COLOURS = {
    "submit": "cyan",
    "place": "green",
    "regate": "yellow",
    "free": "yellow",
    "renew": "dim green",
    "start": "bold green",
    "end": "blue",
    "refused": "magenta",
    "daemon": "bold yellow",
    "log": "dim",
    "look": "dim",
    "beat": "dim",
    "cycle": "dim",
}
#: Details that say nothing because they have their usual values.
_USUAL: Mapping[str, Any] = {
    "nodes_min": 1,
    "nodes_max": None,
    "reason": "",
    "ways": 0,
    "bandwidth": 0,
    "had": "",
    "is_half": False,
}


def story(result: Result, *, is_quiet: bool) -> Iterator[Text]:
    """The lines; a quiet story leaves out what is only read, and the log of our daemons."""
    is_told = False
    for event in result.history.events:
        if not is_told and event.at_s >= result.quiet_from_s:
            is_told = True
            yield Text(f"{event.at_s:9.3f}  --- from here on all is repaired; ending: {result.schedule.ending}", "bold")
        if not is_quiet or event.kind not in READS:
            yield _line(event)


def _line(event: Event) -> Text:
    what = f"{event.kind} {event.job}" if event.job else event.kind
    return Text(f"{event.at_s:9.3f}  {event.by:11} {what:12} {_details(event.data)}", COLOURS.get(event.kind, ""))


def _details(data: Mapping[str, Any]) -> str:
    if set(data) == {"line"}:
        return str(data["line"])
    told = {name: value for name, value in data.items() if name not in ("was", "now", "asked")} | data.get("asked", {})
    return " ".join(
        f"{name}={_plain(value)}" for name, value in told.items() if name not in _USUAL or value != _USUAL[name]
    )


def _plain(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ",".join(map(str, value)) or "-"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={_plain(each)}" for key, each in value.items()) + "}"
    return str(value)
