"""Reads what a command printed with --json, as its documented type: strictly, and without unknown fields."""

import json
from typing import Any

from pydantic import ValidationError

from sns_docs.json_page import OPEN, PRINTED, adapter
from sns_docs.metrics_page import parameters


def read(command: str, text: str | bytes) -> Any:
    """The JSON; it fails if the reference of the documentation says otherwise, naming the field."""
    value = json.loads(text)
    try:
        adapter(command).validate_json(json.dumps([value]))
    except ValidationError as problem:
        raise AssertionError(f"{command} --json is not as its type says: {problem}") from None
    if command == OPEN:
        more = value.keys() - PRINTED[command].__annotations__.keys() - parameters().keys()
        assert not more, f"{command} --json has {sorted(more)}, which no type and no policy's parameter names"
    return value


def read_of(words: tuple[object, ...], text: str) -> Any:
    """The JSON of the command that these words begin with; any JSON if the type is not documented."""
    names = [" ".join(map(str, ("sns", *words[:count]))) for count in (2, 1)]
    names[:0] = [f"{name} --why" for name in names if "--why" in words]
    return next((read(name, text) for name in names if name in PRINTED), None)
