"""Values of our own types as JSON and back, by the names of their fields.

A text is read strictly: a value of another type, a field that is missing or unknown makes it unreadable.
"""

from collections.abc import Hashable
from functools import cache
from types import GenericAlias
from typing import Any, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

_Value = TypeVar("_Value")


def written(kind: type[_Value], value: _Value, *, is_finite: bool = False, exclude: Any = None) -> str:
    """The value as JSON, without what is to `exclude`, as pydantic names it.

    Raises:
        ValueError: it is not of this type.
    """
    return _adapter(cast(Hashable, kind), is_finite).dump_json((value,), warnings="error", exclude=exclude).decode()


def read(kind: type[_Value], text: str | bytes, *, is_finite: bool = False) -> _Value:
    """The value that `written` wrote; if `is_finite`, all its numbers are finite.

    Raises:
        ValueError: the text is no such value; the message is one line.
    """
    try:
        found: tuple[_Value] = _adapter(cast(Hashable, kind), is_finite).validate_json(text)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        raise ValueError(f"{where[:60]}: {first['msg']}" if where else first["msg"]) from None
    except (ArithmeticError, TypeError) as problem:  # a fraction with denominator 0; not a text at all
        raise ValueError(str(problem)) from None
    return found[0]


@cache
def _adapter(kind: Hashable, is_finite: bool) -> TypeAdapter[tuple[Any]]:
    # pydantic takes no configuration for a dataclass alone; inside a tuple the dataclass gets that of the tuple.
    strictly = ConfigDict(strict=True, extra="forbid", allow_inf_nan=not is_finite, ser_json_inf_nan="constants")
    wrapped: Any = GenericAlias(tuple, (kind,))
    return TypeAdapter(wrapped, config=strictly)
