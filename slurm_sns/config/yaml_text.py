"""The YAML that a configuration or a file of profiles may be: a strict subset, read with its line numbers.

The reader is PyYAML's SafeLoader with restrictions. Scalars are those of YAML 1.2's core schema (`off` and `010` are
text, not False and 8).
Refused, each with its line: duplicate keys, keys that are not text, tags, anchors and aliases (a few lines of which can
stand for gigabytes), control characters in any text, nesting deeper than `MAX_DEPTH`, files larger than `MAX_BYTES`.
"""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.constructor import ConstructorError
from yaml.events import AliasEvent

from slurm_sns.errors import BadInput

MAX_BYTES = 1024 * 1024  # a thousand node entries take a tenth of it
MAX_DEPTH = 8  # the configuration itself is four deep


class Subject(NamedTuple):
    """The words for a kind of file in error messages."""

    noun: str
    when_empty: str
    when_unreadable: str


CONFIGURATION = Subject(
    "configuration", "needed are at least partitions and nodes", "name a configuration with --config"
)


class _Loader(yaml.SafeLoader):
    """SafeLoader without the features that a configuration does not need."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML looks for it on the class

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call] # as PyYAML's stubs leave it
        if isinstance(event, AliasEvent) or event.anchor is not None:
            raise ConstructorError(None, None, "anchors and aliases are not allowed", event.start_mark)
        if event.tag is not None:
            raise ConstructorError(None, None, "tags are not allowed", event.start_mark)
        if self._depth >= MAX_DEPTH:
            raise ConstructorError(None, None, f"nested deeper than {MAX_DEPTH}", event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_scalar(self, node: Any) -> Any:
        text = super().construct_scalar(node)
        if isinstance(text, str) and not text.isprintable():
            raise ConstructorError(None, None, "a text holds a line break or a control character", node.start_mark)
        return text

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        mapping: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag != "tag:yaml.org,2002:str":
                raise ConstructorError(None, None, "a key is not text; quote it if it is meant", key_node.start_mark)
            key = self.construct_object(key_node)
            if key in mapping:
                raise ConstructorError(None, None, f"key '{key}' is given twice; remove one", key_node.start_mark)
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping


# At most 18 digits: Python refuses to read numbers of thousands of digits, and 64 bits hold no more than these.
for _kind, _pattern, _first in (
    ("null", r"(?:~|null|)", ["~", "n", ""]),
    ("bool", r"(?:true|false)", list("tf")),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", list("-+0123456789")),
    ("float", r"[-+]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{0,18})?(?:[eE][-+]?[0-9]{1,2})?", list("-+0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"{_pattern}\Z"), _first)

LineNumbers = dict[tuple[str | int, ...], int]


def read(path: Path, subject: Subject = CONFIGURATION) -> tuple[Any, LineNumbers]:
    """The file's content, and the line (from 1) on which each key or item begins.

    Raises:
        BadInput: the file cannot be read or is not such YAML; one line with the file and, where there is one, the line.
    """
    text = _text(path, subject)
    loader = _loader(path, text, subject)
    try:
        node = loader.get_single_node()
        if node is None:
            raise BadInput(f"{path} is empty; {subject.when_empty}")
        return loader.construct_document(node), _lines(node)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = mark.line + 1 if mark else 1
        raise BadInput(f"{path}, line {line}: not valid YAML for a {subject.noun}: {problem.problem}") from None
    finally:
        loader.dispose()


def _text(path: Path, subject: Subject) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}; {subject.when_unreadable}") from None
    if len(data) > MAX_BYTES:
        raise BadInput(f"{path} is larger than {MAX_BYTES} bytes; a {subject.noun} is smaller")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} is not UTF-8 text (byte {problem.start}); a {subject.noun} is") from None


def _loader(path: Path, text: str, subject: Subject) -> _Loader:
    try:
        return _Loader(text)
    except yaml.reader.ReaderError as problem:
        line = text.count("\n", 0, problem.position) + 1
        raise BadInput(f"{path}, line {line}: a control character; a {subject.noun} is plain text") from None


def _lines(node: yaml.Node, where: tuple[str | int, ...] = ()) -> LineNumbers:
    found: LineNumbers = {where: node.start_mark.line + 1}
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            key = (*where, key_node.value)
            found |= _lines(value_node, key)
            found[key] = key_node.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            found |= _lines(item, (*where, index))
    return found
