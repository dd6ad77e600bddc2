"""The messages of the channel between scheduler and agents: values as JSON, with a version and a kind in each.

Neighbouring versions understand each other: a field that this version does not know is ignored, a field that is missing
gets its default, a kind that this version does not know is `UnknownKind` (its receiver counts it and goes on). So a
later version may add fields with defaults, and kinds; whatever else it changes needs a version that is two higher.

What is read is checked: types, sizes, numbers. Whatever the bytes, `decode` gives a value or raises `BadMessage`.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from slurm_sns.errors import SnsError
from slurm_sns.wire.values import (
    Acknowledged,
    ActiveRuns,
    ArrayTask,
    Change,
    JobThere,
    NodeFacts,
    NodeState,
    Point,
    Report,
    RunId,
)

#: The version that this package speaks.
VERSION = 1
#: A node with a thousand jobs, or all points of a long run, is far below it.
LONGEST_BYTES = 1 << 20
#: A longer text is cut.
LONGEST_TEXT = 512
LONGEST_NAME = 64  # of a node, and of a host (HOST_NAME_MAX of Linux)
MOST_JOBS = 4096  # on one node
MOST_POINTS = 256  # the ways of one run
MOST_KEYS = 1024  # acknowledged in one message


class BadMessage(SnsError):
    """Bytes that are no message, or a message with a value out of its limits. The text is one line."""


class UnknownKind(BadMessage):
    """A message of a kind that this version does not know: it is to be ignored, and counted."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The first message of the scheduler to an agent: the connection stands. `software`: the version of its package."""

    software: str = ""


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life, in both directions, where there was nothing else to say."""


Message = Welcome | Beat | NodeState | Report | ActiveRuns | Change | Acknowledged


def is_neighbour(version: object) -> bool:
    """Whether a peer of that version and this one understand each other."""
    return isinstance(version, int) and not isinstance(version, bool) and abs(version - VERSION) <= 1


def versions() -> str:
    """The versions that are understood, in words."""
    return f"{VERSION - 1} to {VERSION + 1}"


def encode(message: Message, version: int = VERSION) -> bytes:
    """The message as JSON.

    Raises:
        BadMessage: it is longer than `LONGEST_BYTES`, or a number in it is not finite.
    """
    value = {"v": version, "kind": _KINDS[type(message)], **_plain(message)}
    try:
        data = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        raise BadMessage(f"a message {value['kind']!r} with a number that is not finite") from None
    if len(data) > LONGEST_BYTES:
        raise BadMessage(f"a message {value['kind']!r} of {len(data)} bytes; valid: at most {LONGEST_BYTES}")
    return data


def decode(data: bytes) -> Message:
    """The message in these bytes.

    Raises:
        UnknownKind: it is of a kind that this version does not know.
        BadMessage: it is no message of a neighbouring version, or a value in it is not valid.
    """
    if len(data) > LONGEST_BYTES:
        raise BadMessage(f"a message of {len(data)} bytes; valid: at most {LONGEST_BYTES}")
    value = json_object(data)
    if not is_neighbour(value.get("v")):
        raise BadMessage(f"a message of version {quoted(value.get('v'))}; valid: {versions()}")
    kind = value.get("kind")
    made = _BY_KIND.get(kind) if isinstance(kind, str) else None
    if made is None:
        raise UnknownKind(f"a message of the unknown kind {quoted(kind)}")
    return _made(made, value, str(kind))  # type: ignore[no-any-return] # the tables below say what is made


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Of a key that comes twice, the last one counts.

    Raises:
        BadMessage: it is something else.
    """
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise BadMessage("a message that is no JSON") from None
    if not isinstance(value, dict):
        raise BadMessage("a message that is no JSON object")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are no JSON


def quoted(value: object, most: int = LONGEST_NAME) -> str:
    """What a peer sent, printable and of at most so many characters, for a line of the log."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value[:most] if isinstance(value, str) else value)
    return text if len(text) <= most else text[: most - 3] + "..."


# Each field of a value has a reader: what JSON gives in, the value out.
_Reader = Callable[[Any], Any]


class _Invalid(Exception):
    """A field's value that a reader refuses; the text says what is valid."""


def _whole(least: int, most: int) -> _Reader:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise _Invalid(f"a whole number from {least} to {most}")
        return value

    return read


def _number(most: float, *, above_0: bool = False) -> _Reader:
    def read(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
            raise _Invalid(f"a number from 0 to {most:g}")
        if (above_0 and value == 0) or not math.isfinite(value):
            raise _Invalid(f"a number above 0, at most {most:g}")
        return float(value)

    return read


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Invalid("true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Invalid("a text")
    return "".join(each if each.isprintable() else "?" for each in value[:LONGEST_TEXT])


_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}\Z")


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.match(value):
        raise _Invalid(f"a node's name of at most {LONGEST_NAME} letters, digits and . _ -")
    return value


def is_node_name(value: object) -> bool:
    """Whether a peer may call its node so."""
    return isinstance(value, str) and _NAME.match(value) is not None


def _optional(read: _Reader) -> _Reader:
    return lambda value: None if value is None else read(value)


def _list_of(read: _Reader, most: int, made: Callable[..., Any] = tuple) -> _Reader:
    def read_all(value: Any) -> Any:
        if not isinstance(value, list) or len(value) > most:
            raise _Invalid(f"a list of at most {most}")
        return made(read(each) for each in value)

    return read_all


def _run(value: Any) -> RunId:
    if not isinstance(value, list) or len(value) != 2:  # job id and restart count
        raise _Invalid("a job id and a restart count")
    return RunId(_job_id(value[0]), _restarts(value[1]))


def _array_task(value: Any) -> ArrayTask:
    if not isinstance(value, list) or len(value) != 3:  # job id, array id, task
        raise _Invalid("a job id, an array's id and a task")
    return ArrayTask(_job_id(value[0]), _job_id(value[1]), _task(value[2]))


def _key(value: Any) -> tuple[int, int, str]:
    if not isinstance(value, list) or len(value) != 3:  # job id, restart count, node
        raise _Invalid("a job id, a restart count and a node's name")
    return (_job_id(value[0]), _restarts(value[1]), _name(value[2]))


def _value_of(made: type) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _Invalid("an object")
        return _made(made, value, "")

    return read


# Slurm's ids and counts are 32 bits wide.
_job_id = _whole(1, 2**32 - 1)
_restarts = _whole(0, 2**32 - 1)
_task = _whole(0, 2**32 - 2)
# As in sns.yaml; a node has few ways, and no memory is that fast.
_ways = _whole(0, 1024)
_gbps = _whole(0, 1_000_000)
_share = _number(1, above_0=True)
_seconds = _number(1e9)
_moment = _number(1e11)

_READERS: Mapping[type, Mapping[str, _Reader]] = {
    Welcome: {"software": _text},
    Beat: {},
    NodeFacts: {
        "node": _name,
        "software": _text,
        "mode": _text,
        "ways": _ways,
        "jobs_with_ways": _whole(0, 1_000_000),
        "limits_bandwidth": _flag,
        "measures_ipc": _flag,
        "measures_bandwidth": _flag,
        "why_unpartitioned": _text,
    },
    JobThere: {
        "run": _run,
        "ways": _ways,
        "bandwidth_gbps": _gbps,
        "why_shared": _text,
        "is_sampled": _flag,
        "is_found": _flag,
        "awaits_task": _flag,
    },
    NodeState: {
        "at_s": _moment,
        "facts": _value_of(NodeFacts),
        "jobs": _list_of(_value_of(JobThere), MOST_JOBS),
        "trouble": _text,
    },
    Point: {
        "ways": _ways,
        "seconds": _seconds,
        "ipc": _optional(_number(1000)),
        "bandwidth_gbps": _optional(_number(1_000_000)),
    },
    Report: {
        "run": _run,
        "node": _name,
        "ended_s": _moment,
        "ran_s": _seconds,
        "was_alone": _flag,
        "was_sampled": _flag,
        "is_whole": _flag,
        "points": _list_of(_value_of(Point), MOST_POINTS),
    },
    ActiveRuns: {
        "runs": _list_of(_run, MOST_JOBS, frozenset),
        "tasks": _list_of(_array_task, MOST_JOBS, frozenset),
    },
    Change: {
        "run": _run,
        "revision": _whole(0, 2**63 - 1),
        "ways": _ways,
        "bandwidth_gbps": _gbps,
        "cpu_share": _share,
        "samples": _flag,
    },
    Acknowledged: {"keys": _list_of(_key, MOST_KEYS)},
}

_BY_KIND: Mapping[str, type] = {
    "welcome": Welcome,
    "beat": Beat,
    "state": NodeState,
    "report": Report,
    "active": ActiveRuns,
    "change": Change,
    "acknowledged": Acknowledged,
}
_KINDS = {made: kind for kind, made in _BY_KIND.items()}
#: The fields without a default: who leaves one out sends no such value.
_REQUIRED = {
    made: {each.name for each in fields(made) if each.default is MISSING and each.default_factory is MISSING}
    for made in _READERS
}


def _made(made: type, value: dict[str, Any], what: str) -> Any:
    readers = _READERS[made]
    if missing := sorted(_REQUIRED[made] - value.keys()):
        raise BadMessage(f"a message {what or made.__name__!r} without {missing[0]}")
    given = {}
    for name in readers.keys() & value.keys():
        try:
            given[name] = readers[name](value[name])
        except _Invalid as problem:
            raise BadMessage(f"{what or made.__name__}: {name} {quoted(value[name])}; valid: {problem}") from None
    return made(**given)


def _plain(value: Any) -> dict[str, Any]:
    """The fields of a value as JSON knows them."""
    return {name: _json(getattr(value, name)) for name in _READERS[type(value)]}


def _json(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    return _plain(value) if type(value) in _READERS else value
