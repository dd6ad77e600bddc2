"""What is wrong with a configuration, in one line: the file and line, the dotted key, the value, what is valid.

What is valid comes from the models themselves, through their JSON schema: a new setting needs no message of its own.
"""

import difflib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from slurm_sns.config.yaml_text import LineNumbers

Where = tuple[str | int, ...]
Schema = Mapping[str, Any]

_LONGEST_VALUE = 60  # characters of a value that a message quotes
_KINDS = {"string": "text", "boolean": "true or false", "null": "null", "object": "a section of settings"}


def describe(problem: ValidationError, model: type[BaseModel], path: Path, lines: LineNumbers) -> str:
    """The first problem of several, in one line; a misspelt key comes first, because it explains a missing one."""
    errors = problem.errors(include_url=False)
    error = min(errors, key=lambda each: each["type"] != "extra_forbidden")
    context = error.get("ctx", {})
    where: Where = tuple(context.get("where", error["loc"]))
    text = _text(error["type"], where, error["input"], context, _schema(model))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{path}, line {_line(where, lines)}: {text}{more}"


def valid_at(where: Where, model: type[BaseModel]) -> str:
    """What is valid at this key, in words: `a whole number from 1 to 3600, or null`."""
    schema = _schema(model)
    parent = _resolved(_schema_at(schema, where[:-1], schema), schema)
    found = parent["properties"][where[-1]]
    is_optional = any(each.get("type") == "null" for each in found.get("anyOf", ()))
    return f"{_valid(_resolved(found, schema), schema)}{', or null' if is_optional else ''}"


@cache
def _schema(model: type[BaseModel]) -> Schema:
    """The model's JSON schema, cached: making it takes longer than all the rest of a message."""
    return model.model_json_schema()


def dotted(where: Where) -> str:
    """The key as people write it: nodes[0].cores."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return text.removeprefix(".")


def _text(kind: str, where: Where, value: Any, context: Mapping[str, Any], schema: Schema) -> str:
    key = dotted(where) or "the configuration"
    if kind == "extra_forbidden":
        return _unknown(key, str(where[-1]), _valid_keys(_schema_at(schema, where[:-1], schema)))
    place = _schema_at(schema, where, schema)
    if kind == "missing":
        return f"{key} is missing; valid: {_valid(place, schema)}"
    if kind == "contradiction":
        return f"{key}: {context['words']}"
    quoted = "" if place.get("writeOnly") else f" {_quoted(value)}"
    return f"{key}:{quoted} is not valid; valid: {context.get('words') or _valid(place, schema)}"


def _unknown(key: str, name: str, valid: list[str]) -> str:
    nearest = difflib.get_close_matches(name, valid, n=1)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    return f"{_clip(key)} is unknown; {hint}valid: {', '.join(valid)}"


def _line(where: Where, lines: LineNumbers) -> int:
    """The line of the key, or of the section that lacks it."""
    while where and where not in lines:
        where = where[:-1]
    return lines.get(where, 1)


def _quoted(value: Any) -> str:
    return _clip(json.dumps(value, ensure_ascii=False, default=str))


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def _schema_at(place: Schema, where: Where, root: Schema) -> Schema:
    for part in where:
        place = _resolved(place, root)
        place = place.get("items", {}) if isinstance(part, int) else place.get("properties", {}).get(part, {})
    return _resolved(place, root)


def _resolved(place: Schema, root: Schema) -> Schema:
    """The schema with references followed; of `something or null`, the something."""
    while True:
        if "$ref" in place:
            place = root["$defs"][place["$ref"].rsplit("/", 1)[1]]
        elif "anyOf" in place:
            place = place["anyOf"][0]
        else:
            return place


def _valid_keys(place: Schema) -> list[str]:
    return list(place.get("properties", {}))


def _valid(place: Schema, root: Schema) -> str:
    place = _resolved(place, root)
    if "enum" in place:
        return "one of " + ", ".join(place["enum"])
    kind = place.get("type", "")
    if kind == "array":
        return f"a list, each {_valid(place['items'], root)}"
    if kind == "object":
        return "settings named " + ", ".join(_valid_keys(place))
    if kind in {"integer", "number"}:
        number = "a whole number" if kind == "integer" else "a number"
        least = f"from {place['minimum']} to" if "minimum" in place else f"above {place['exclusiveMinimum']} up to"
        return f"{number} {least} {place['maximum']}"
    return str(place.get("description") or _KINDS[kind])
