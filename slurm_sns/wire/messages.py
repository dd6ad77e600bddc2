"""The messages of the channel between scheduler and agents: values as JSON, with a version and a kind in each.

Neighbouring versions understand each other: a field that this version does not know is ignored, a field that is missing
gets its default, a kind that this version does not know is `UnknownKind` (its receiver goes on). So a
later version may add fields with defaults, and kinds; whatever else it changes needs a version that is two higher.

What is read is checked: types, sizes, numbers. Whatever the bytes, `decode` gives a value or raises `BadMessage`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from slurm_sns.errors import SnsError
from slurm_sns.wire.values import (
    LONGEST_NAME,
    Acknowledged,
    ActiveRuns,
    Change,
    NodeState,
    RunReport,
    Text,
    printable,
)

T = TypeVar("T")

#: The version that this package speaks.
VERSION = 1
#: Those that it understands, in words.
VERSIONS = f"{VERSION - 1} to {VERSION + 1}"
#: A node with a thousand jobs, or all points of a long run, is far below it.
LONGEST_BYTES = 1 << 20


class BadMessage(SnsError):
    """Bytes that are no message, or a message with a value out of its limits. The text is one line."""


class UnknownKind(BadMessage):
    """A message of a kind that this version does not know: it is to be ignored."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The first message of the scheduler to an agent: the connection stands. `software`: the version of its package."""

    software: Text = ""


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life, in both directions, where there was nothing else to say."""


Message = Welcome | Beat | NodeState | RunReport | ActiveRuns | Change | Acknowledged


def is_neighbour(version: object) -> bool:
    """Whether a peer of that version and this one understand each other."""
    return isinstance(version, int) and not isinstance(version, bool) and abs(version - VERSION) <= 1


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
        raise BadMessage(f"a message of version {quoted(value.get('v'))}; valid: {VERSIONS}")
    kind = value.get("kind")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise UnknownKind(f"a message of the unknown kind {quoted(kind)}")
    return read_strictly(reader, data, str(kind))


def read_strictly(reader: TypeAdapter[T], data: bytes, kind: str) -> T:
    """The value in a message of this kind, by the types and bounds of its fields; unknown fields are ignored.

    Raises:
        BadMessage: it is no JSON, or a value in it is not valid.
    """
    try:
        return reader.validate_json(data, strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        if first["type"] == "json_invalid":  # pydantic also refuses half of a surrogate pair
            raise BadMessage("a message that is no JSON") from None
        where, what = ".".join(map(str, first["loc"])), first["msg"][:1].lower() + first["msg"][1:]
        raise BadMessage(f"a message {kind!r}: {where} {quoted(first['input'])}: {what}") from None


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


_BY_KIND: Mapping[str, type] = {
    "welcome": Welcome,
    "beat": Beat,
    "state": NodeState,
    "report": RunReport,
    "active": ActiveRuns,
    "change": Change,
    "acknowledged": Acknowledged,
}
_KINDS = {made: kind for kind, made in _BY_KIND.items()}
_READERS: Mapping[str, TypeAdapter[Message]] = {kind: TypeAdapter(made) for kind, made in _BY_KIND.items()}
#: What JSON knows.
_AS_IT_IS = frozenset({bool, int, float, type(None)})


def _plain(value: Any) -> dict[str, Any]:
    """The fields of a value as JSON knows them."""
    return {name: _json(getattr(value, name)) for name in value.__dataclass_fields__}


def _json(value: Any) -> Any:
    if type(value) in _AS_IT_IS:
        return value
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    if isinstance(value, frozenset):
        return sorted(value)
    return _plain(value)
