"""The reference of what commands print with --json: tables of fields, and the JSON schema, of the types in the code."""

import ast
import inspect
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import GenericAlias
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from slurm_sns.cli import json_types
from slurm_sns.cli.json_types import (
    CoverageJson,
    FindingValues,
    ImportedJson,
    JobUseValues,
    KeyFileJson,
    ObserveJson,
    PoliciesJson,
    ProfileJson,
    RenderJson,
    ReportJson,
    ReproductionJson,
    WaitGroup,
    WatchLine,
)
from slurm_sns.cli.live import node_types
from slurm_sns.cli.live.node_types import LayoutJson, NodeReportJson
from slurm_sns.node.agent import shown_types
from slurm_sns.node.agent.shown_types import AgentJson
from slurm_sns.scheduler.answers import answer_types, overview_types
from slurm_sns.scheduler.answers.answer_types import ExplainAnswer, ProgramSummary, QueueRow, StatusAnswer, TryAnswer
from slurm_sns.sim.results import summary_types
from slurm_sns.sim.results.summary_types import SimulationSummary
from slurm_sns.sim.site_report import report_types
from slurm_sns.web import page_types
from slurm_sns.web.page_types import NoAnswer, PageOverview, QueuePart
from sns_docs.markdown import code, escaped, table

#: What each command prints with --json.
PRINTED: Mapping[str, Any] = {
    "sns status": StatusAnswer,
    "sns queue": list[QueueRow],
    "sns queue --why": list[WaitGroup],
    "sns explain": ExplainAnswer,
    "sns try": TryAnswer,
    "sns seff": list[JobUseValues],
    "sns check": list[FindingValues],
    "sns render": RenderJson,
    "sns policies": PoliciesJson,
    "sns report": ReportJson,
    "sns coverage": CoverageJson,
    "sns observe": ObserveJson,
    "sns simulate": SimulationSummary,
    "sns reproduce": ReproductionJson,
    "sns agent": AgentJson,
    "sns key check": KeyFileJson,
    "sns profile list": list[ProgramSummary],
    "sns profile show": ProfileJson,
    "sns profile import": ImportedJson,
    "sns node show": NodeReportJson,
    "sns node layout": LayoutJson,
}
#: What `sns web` serves to the page's script, and to other programs.
SERVED: Mapping[str, Any] = {
    "sns web, api/overview": PageOverview,
    "sns web, api/jobs": QueuePart,
    "sns web, without an answer": NoAnswer,
}
#: A line of `sns status --watch --json` and `sns queue --watch --json`.
WATCHED = WatchLine
#: Beside its fields this one has those that the policy's parameters are called.
OPEN = "sns simulate"

#: The types of JSON, in words.
KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}

#: The modules of the types, each after those whose types it extends.
MODULES = (answer_types, overview_types, page_types, shown_types, node_types, summary_types, report_types, json_types)

_Schema = Mapping[str, Any]


@cache
def adapter(command: str) -> TypeAdapter[tuple[Any]]:
    """Reads what the command prints, as the only member of a list: strictly, and without unknown fields."""
    return _adapter(PRINTED[command], "allow" if command == OPEN else "forbid")


def _adapter(kind: Any, extra: Literal["allow", "forbid", "ignore"]) -> TypeAdapter[tuple[Any]]:
    # pydantic takes no configuration for a TypedDict alone; inside a tuple the TypedDict gets that of the tuple.
    config = ConfigDict(strict=True, extra=extra)
    wrapped: Any = GenericAlias(tuple, (kind,))
    return TypeAdapter(wrapped, config=config)


def schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of such a value; more fields are allowed, because programs must expect new ones."""
    whole = _adapter(kind, "ignore").json_schema()
    for name, of in whole.get("$defs", {}).items():
        for field, each in of["properties"].items():
            each.pop("title", None)
            each.update({"description": told} if (told := docstrings()[name].get(field)) else {})
    [found] = whole["prefixItems"]
    more = {"$defs": whole["$defs"]} if "$defs" in whole else {}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, **more}


@cache
def docstrings() -> Mapping[str, Mapping[str, str]]:
    """What the strings below the fields of each type say, by type and field; those of the types it extends, too.

    pydantic reads them as well, but not those of extended types, nor those of fields whose type is another object.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for module in MODULES:
        for each in ast.parse(inspect.getsource(module)).body:
            if isinstance(each, ast.ClassDef):
                for base in each.bases:
                    found[each.name] |= found[base.id] if isinstance(base, ast.Name) else {}
                found[each.name] |= dict(_own_docstrings(each))
    return found


def _own_docstrings(of: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(of.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(told))):
                yield name, told


def text() -> str:
    """Each command with the fields of its JSON, and the schema."""
    lines = [line for command, kind in (*PRINTED.items(), *SERVED.items()) for line in _lines(command, schema(kind))]
    return "\n".join([*lines, *_lines("--watch", schema(WATCHED))])


def _lines(command: str, of: dict[str, Any]) -> Iterator[str]:
    yield f"## {command}\n"
    definitions = of.get("$defs", {})
    is_list = of.get("type") == "array"
    top = _resolved(of["items"] if is_list else of, definitions)
    yield f"{'A list of objects. ' if is_list else ''}{escaped(_about(top))}\n"
    yield _table(top)
    for name in _named(top, definitions):
        yield f"**{name}**: {escaped(_about(definitions[name]))}\n"
        yield _table(definitions[name])
    yield "<details><summary>JSON schema</summary>\n"
    yield f"```json\n{json.dumps(of, indent=1, ensure_ascii=False)}\n```\n\n</details>\n"


def fields(kind: Any) -> str:
    """What the type says of itself, and the table of its fields."""
    of = schema(kind)
    definitions = of.get("$defs", {})
    found = _resolved(of, definitions)
    return f"{escaped(_about(found))}\n\n{_table(found)}"


def _table(of: _Schema) -> str:
    required = of.get("required", ())
    rows = (
        (
            code(name),
            kind_of(each) + ("" if name in required else ", may be missing"),
            escaped(_about(each)),
        )
        for name, each in of["properties"].items()
    )
    return table(("field", "type", "meaning"), rows)


def kind_of(of: _Schema) -> str:
    """The type in words: `text or null`, `list of QueueRow`."""
    if "$ref" in of:
        return str(of["$ref"].rsplit("/", 1)[1])
    if "anyOf" in of:
        return " or ".join(map(kind_of, of["anyOf"]))
    if "enum" in of:
        return " or ".join(code(str(each)) for each in of["enum"])
    if of.get("type") == "array":
        return f"list of {kind_of(of['items'])}"
    if of.get("type") == "object":
        return f"object, each value {kind_of(of['additionalProperties'])}"
    return KINDS[of["type"]] if "type" in of else "any"


def _about(of: _Schema) -> str:
    return " ".join(of.get("description", "").split())


def _resolved(of: _Schema, definitions: _Schema) -> _Schema:
    found: _Schema = definitions[of["$ref"].rsplit("/", 1)[1]] if "$ref" in of else of
    return found


def _named(of: Any, definitions: _Schema) -> list[str]:
    """The objects that stand in it, at any depth, in the order in which they are met."""
    found: dict[str, None] = {}

    def walk(place: Any) -> None:
        if isinstance(place, list):
            for each in place:
                walk(each)
        elif isinstance(place, dict):
            name = str(place.get("$ref", "")).rsplit("/", 1)[-1]
            if name and name not in found:
                found[name] = None
                walk(definitions[name])
            for key, each in place.items():
                if key != "$defs":
                    walk(each)

    walk(of)
    return list(found)
