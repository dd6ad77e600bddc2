"""claims.yaml, a page's file: which claims it judges, by which quantities of its run, within which bounds.

    shared: idcp.yaml                  # a file of the same form beside the page's folder, whose keys are there, too
    seeds: 30                          # the default of --seeds
    data: {factor: 1.5}                # printed numbers, words, lists: names in all that follows, run and text
    readings:                          # what a word of the paper means; x is what the claim gives
      near: {low: x / factor, high: x * factor}
    claims:
    - where: table 1                   # one claim
      text: 99 % of the jobs complete
      measure: "% completed"
      of: completed_pct                # the name of a quantity of the run
      reads: {near: 99}                # or low, high, printed (only of draws), also beside a reading
    - for: {pool: [A, B]}              # a claim for each; later loops may use the names of earlier ones
      if: pool in pools
      where: sec. 5                    # what a block says, its claims say unless they say something else
      claims:
      - {text: "{{ pool }}: few wait", measure: "%", of: "waiting {{ pool }}", high: 5}
    tables:
      waits:                           # waits.csv, a row for each; `shown_only: true`: only for the text
        for: {pool: pools, each: "[interval(waits[pool])]"}
        columns: {pool: pool, mean wait (s): "each.mean | fmt(',.0f')"}

`where`, `text`, `measure`, `of` and `group` are templates; bounds, `printed`, `if`, `input`, `difference` and the lists
of `for` are expressions (both Jinja), as are columns. Names are those of `data`, of the loops, and of the fields that
the run gives; tables see all that the text sees. `of` may also name the claim's `measure`. An entry with `parts` is one
claim of several parts, one with `use: NAME` has the claims of that name in `families`.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Annotated, Any

import jinja2
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from slurm_sns.config import yaml_text
from slurm_sns.errors import BadInput
from slurm_sns.sim.pages.judge import Claim, Draws, Quantity, found_of, joint, percent_more

FILE = "claims.yaml"
_SUBJECT = yaml_text.Subject("page", "needed is at least seeds", "each page has one")
#: What a block says for the claims in it.
_TEXTS = ("group", "where", "text", "measure", "of")
_VALUES = ("low", "high", "printed", "input", "difference")
_INHERITED = {*_TEXTS, *_VALUES, "reads"}

_LANGUAGE = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # noqa: S701  Markdown, not HTML
_LANGUAGE.globals |= {"percent_more": percent_more, "interval": found_of}
_LANGUAGE.filters["fmt"] = format


@cache
def _expression(text: str) -> Callable[..., Any]:
    return _LANGUAGE.compile_expression(text, undefined_to_none=False)


@cache
def _template(text: str) -> jinja2.Template:
    return _LANGUAGE.from_string(text)


def _readable(read: Callable[[str], object]) -> AfterValidator:
    """Refuses a text, or a value of a mapping, whose syntax is wrong; what is no text is its own value."""

    def require(value: Any) -> Any:
        try:
            for text in value.values() if isinstance(value, dict) else (value,):
                if isinstance(text, str):
                    read(text)
        except jinja2.TemplateSyntaxError as problem:
            raise PydanticCustomError("syntax", "{problem}", {"problem": str(problem)}) from None
        return value

    return AfterValidator(require)


Text = Annotated[str, _readable(_template)]
#: An expression, or the value itself.
Value = str | int | float | bool | None
Expression = Annotated[Value, _readable(_expression)]
#: The lists of loops, by the names of their members.
Loops = dict[str, Annotated[Any, _readable(_expression)]]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)


class WordReading(_Strict):
    """A word of the paper as bounds; `told` is added to the claim's text in parentheses."""

    low: Expression = None
    high: Expression = None
    told: Text = ""
    difference: Expression = False


class ClaimEntry(_Strict):
    """A claim, a claim of several parts, or a block of claims."""

    loops: Loops = Field(default={}, alias="for")
    condition: Expression = Field(default=True, alias="if")
    claims: tuple["ClaimEntry", ...] = ()
    parts: tuple["ClaimEntry", ...] = ()
    use: str = ""
    group: Text = ""
    where: Text = ""
    text: Text = ""
    measure: Text = ""
    of: Text = ""
    low: Expression = None
    high: Expression = None
    printed: Expression = None
    reads: Annotated[str | dict[str, Value] | None, _readable(_expression)] = None
    input: Expression = False
    difference: Expression = False

    def said(self) -> dict[str, Any]:
        """What it says itself of the claims in it."""
        return {name: getattr(self, name) for name in self.model_fields_set & _INHERITED}


class TableEntry(_Strict):
    """A table of data: a row for each round of its loops. `shown_only`: it is shown in the text, and no file."""

    loops: Loops = Field(default={}, alias="for")
    condition: Expression = Field(default=True, alias="if")
    columns: dict[str, Expression]
    shown_only: bool = False


class ClaimsFile(_Strict):
    """The content of claims.yaml, and of a file that pages share."""

    shared: str = ""
    seeds: int = 30
    keeps_rows: bool = False
    data: dict[str, Any] = {}
    readings: dict[str, WordReading] = {}
    families: dict[str, tuple[ClaimEntry, ...]] = {}
    claims: tuple[ClaimEntry, ...] = ()
    tables: dict[str, TableEntry] = {}


@dataclass(frozen=True)
class PageClaims:
    """What a page claims: its file, joined with the one that it shares with others."""

    file: Path
    content: ClaimsFile

    @classmethod
    def of(cls, folder: Path) -> "PageClaims":
        """Read the file of a page's folder, and the shared one that it names.

        Raises:
            BadInput: a file is missing or wrong; the message names the file and the entry.
        """
        file = folder / FILE
        own = _read(file)
        if own.shared:
            shared = _read(folder.parent / own.shared)
            joined = {key: {**getattr(shared, key), **getattr(own, key)} for key in ("data", "readings", "families")}
            own = own.model_copy(update=joined)
        return cls(file, own)

    def judge(self, quantities: Mapping[str, Quantity], fields: Mapping[str, Any]) -> list[Claim]:
        """All claims, from the quantities and the fields of a run.

        Raises:
            BadInput: an entry names what is not there.
        """
        scope = {**self.content.data, "readings": self.content.readings, **fields}
        return list(self._expanded("claims", self.content.claims, {}, scope, quantities))

    def rows(self, scope: Mapping[str, Any]) -> dict[str, list[list[Any]]]:
        """The rows of each of the tables; `scope` has the names that the text sees.

        Raises:
            BadInput: a table names what is not there.
        """
        found = {}
        for stem, table in self.content.tables.items():
            try:
                scopes = (each for each in _looped(table.loops, scope) if _value(table.condition, each))
                found[stem] = [[_value(column, each) for column in table.columns.values()] for each in scopes]
            except _PROBLEMS as problem:
                raise self._wrong(f"tables.{stem}", problem) from None
        return found

    def _expanded(
        self,
        at: str,
        entries: Sequence[ClaimEntry],
        inherited: Mapping[str, Any],
        outer: Mapping[str, Any],
        quantities: Mapping[str, Quantity],
    ) -> Iterator[Claim]:
        for number, entry in enumerate(entries):
            here = f"{at}[{number}]"
            said = {**inherited, **entry.said()}
            try:
                scopes = [scope for scope in _looped(entry.loops, outer) if _value(entry.condition, scope)]
                inner = self._family(entry.use) if entry.use else entry.claims
            except _PROBLEMS as problem:
                raise self._wrong(here, problem) from None
            for scope in scopes:
                if inner:
                    yield from self._expanded(f"{here}.{entry.use or 'claims'}", inner, said, scope, quantities)
                    continue
                parts = list(self._expanded(f"{here}.parts", entry.parts, said, scope, quantities))
                try:
                    if parts:
                        yield joint(_text(said.get("text", ""), scope), *parts)
                    elif not entry.parts:
                        yield self._claim(said, scope, quantities)
                except _PROBLEMS as problem:
                    raise self._wrong(here, problem) from None

    def _family(self, name: str) -> Sequence[ClaimEntry]:
        if name not in self.content.families:
            raise ValueError(f"family '{name}' is unknown; valid: {', '.join(self.content.families)}")
        return self.content.families[name]

    def _claim(self, said: Mapping[str, Any], scope: Mapping[str, Any], quantities: Mapping[str, Quantity]) -> Claim:
        texts = {name: _text(said.get(name, ""), scope) for name in _TEXTS if name != "of"}
        values = {name: _value(said.get(name), scope) for name in _VALUES}
        if (reads := said.get("reads")) is not None:
            if isinstance(reads, dict) and len(reads) != 1:
                raise ValueError(f"reads has {len(reads)} words; valid: one")
            name, given = next(iter(reads.items())) if isinstance(reads, dict) else (reads, None)
            if name not in self.content.readings:
                raise ValueError(f"reading '{name}' is unknown; valid: {', '.join(self.content.readings)}")
            reading = self.content.readings[name]
            scope = {**scope, "x": _value(given, scope)}
            for key in ("low", "high", "difference"):
                if values[key] is None:
                    values[key] = _value(getattr(reading, key), scope)
            if reading.told:
                texts["text"] += f" ({_text(reading.told, {**scope, **values})})"
        of = _text(said.get("of", ""), {"measure": texts["measure"], **scope})
        if of not in quantities:
            nearest = difflib.get_close_matches(of, quantities, cutoff=0)
            raise ValueError(f"quantity '{of}' is unknown; nearest: {', '.join(nearest)}")
        found = found_of(quantities[of])
        if values["printed"] is not None and not isinstance(found, Draws):
            raise ValueError(f"'printed' is for draws; quantity '{of}' needs low, high or reads")
        return Claim(
            **texts,  # type: ignore[arg-type] # the names of texts are those of the claim's fields
            found=found,
            low=-inf if values["low"] is None else values["low"],
            high=inf if values["high"] is None else values["high"],
            printed=values["printed"],
            is_input=bool(values["input"]),
            is_difference=bool(values["difference"]),
        )

    def _wrong(self, at: str, problem: Exception) -> BadInput:
        return BadInput(f"{self.file}, {at}: {problem}")


#: What a wrong template, expression or name gives.
_PROBLEMS = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError)


def _looped(loops: Mapping[str, Any], outer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The names of each round: the last loop goes fastest."""
    if not loops:
        yield outer
        return
    (name, values), *rest = loops.items()
    for value in _value(values, outer):
        yield from _looped(dict(rest), {**outer, name: value})


def _value(expression: Any, scope: Mapping[str, Any]) -> Any:
    """The value of an expression; what is no text is its own value."""
    if not isinstance(expression, str):
        return expression
    found = _expression(expression)(**scope)
    if isinstance(found, jinja2.Undefined):
        raise jinja2.UndefinedError(f"'{expression}' is undefined")
    return found


def _text(template: str, scope: Mapping[str, Any]) -> str:
    return _template(template).render(scope)


def _read(file: Path) -> ClaimsFile:
    try:
        content, _ = yaml_text.read(file, _SUBJECT)
        return ClaimsFile.model_validate(content)
    except ValidationError as problem:
        first = problem.errors()[0]
        raise BadInput(f"{file}, {_place(first['loc'])}: {first['msg']}") from None


def _place(where: Sequence[str | int]) -> str:
    """A place in a file, such as claims[3].low."""
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in where).lstrip(".")
