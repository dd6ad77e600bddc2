"""The reference of sns.yaml: every setting with its type, limits and default, and what conf/sns.yaml says of it."""

import json
from collections.abc import Iterator
from itertools import groupby, takewhile
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from slurm_sns.config import yaml_text
from slurm_sns.config.configuration import Config, NodeEntry
from slurm_sns.config.problems import Where, dotted, valid_at
from sns_docs.markdown import code, escaped
from sns_docs.places import CONFIGURATION

#: The way from the page to the measured results.
TO_RESULTS = "../science/results"


def text() -> str:
    """The settings at the top of the file, then its sections."""
    return "\n".join(_Page().lines())


def settings() -> Iterator[tuple[Where, Any]]:
    """Every setting with its default: those at the top of the file, those of an entry of `nodes`, those of sections."""
    fields = Config.model_fields
    sections = {name: field.default for name, field in fields.items() if isinstance(field.default, BaseModel)}
    yield from (((name,), field.default) for name, field in fields.items() if name not in (*sections, "nodes"))
    yield from ((("nodes", 0, name), field.default) for name, field in NodeEntry.model_fields.items())
    for section, of in sections.items():
        yield from (((section, name), getattr(of, name)) for name in type(of).model_fields)


def key(where: Where) -> str:
    """The setting's name on the page: `scheduler.interval_s`, `nodes[].cores`."""
    return dotted(where).replace("[0]", "[]")


class _Page:
    """The settings of `Config`, with the comments of conf/sns.yaml."""

    def __init__(self) -> None:
        self._comments = _Comments(CONFIGURATION.read_text(encoding="utf-8"), yaml_text.read(CONFIGURATION)[1])

    def lines(self) -> Iterator[str]:
        for section, found in groupby(settings(), key=lambda each: each[0][0] if len(each[0]) > 1 else ""):
            yield f"## {section or 'Settings outside of sections'}\n"
            if section:
                yield from self._about((section,))
            for where, default in found:
                yield from self._setting(where, default)

    def _setting(self, where: Where, default: Any) -> Iterator[str]:
        yield f"### `{key(where)}`\n"
        begins = f"Default: {code(_value(default))}" if default is not PydanticUndefined else "Required"
        yield f"{begins}. Valid: {escaped(valid_at(where, Config))}.\n"
        yield from self._about(where)

    def _about(self, where: Where) -> Iterator[str]:
        found = self._comments.of(where)
        if found:
            yield f"{escaped(found, TO_RESULTS)}\n"


class _Comments:
    """The comments of a YAML file: those right above a key, and that behind it."""

    def __init__(self, content: str, lines: yaml_text.LineNumbers) -> None:
        self._content, self._lines = content.splitlines(), lines

    def of(self, where: Where) -> str:
        """What is said of the key; empty for one that the file does not have."""
        if where not in self._lines:
            return ""
        at = self._lines[where] - 1
        above = list(takewhile(lambda line: line.lstrip().startswith("#"), reversed(self._content[:at])))
        words = [line.lstrip().removeprefix("#").strip() for line in reversed(above)]
        behind = self._content[at].partition(" # ")[2].strip()
        return " ".join(filter(None, (*words, behind)))


def _value(default: Any) -> str:
    """The default as the file would have it."""
    return json.dumps(default, ensure_ascii=False, default=str)
