"""A policy's history as text and back, so that a restart loses none of it.

The text is JSON by the fields of the policy's type, read strictly: a value of another type, an unknown field, a number
that is not finite makes it unreadable. What cannot be read costs the history only; the policy starts anew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import GenericAlias
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from slurm_sns.policies.base import HistoryFormat
from slurm_sns.scheduler.observe.records import Memory
from slurm_sns.scheduler.ports import History, Log


@dataclass(frozen=True, slots=True)
class Remembering:
    """How what a policy wants to remember is kept over a restart; by default it is not.

    `remember` gives its form for the store, None for nothing to keep; `recall` what was kept last, asked for once.
    """

    remember: Callable[[object], Memory | None] = lambda _: None
    recall: Callable[[], object | None] = lambda: None


NO_MEMORY = Remembering()


def remembering(policy: str, form: HistoryFormat | None, history: History, log: Log) -> Remembering:
    """How the policy of that name remembers by the History port."""
    if form is None:
        return NO_MEMORY
    return Remembering(
        lambda left: remember(policy, form, left, log), lambda: recall(history.load_memory(policy), form, log)
    )


def remember(policy: str, form: HistoryFormat, history: object, log: Log) -> Memory:
    """What to keep of the history that the policy's plan left.

    Nothing to keep (None) is an empty text. So is a history that cannot be stored, a defect of the policy: it costs the
    history only, and is said in one line.
    """
    try:
        text = "" if history is None else text_of(form, history)
    except ValueError as problem:
        log(f"error: the history of policy {policy} cannot be stored: {problem}")
        text = ""
    return Memory(policy, form.version, text)


def recall(memory: Memory | None, form: HistoryFormat | None, log: Log) -> object | None:
    """The history that was kept; None where there is none, the policy keeps none, or it cannot be read.

    The last is said in one line.
    """
    if memory is None or form is None:
        return None
    if memory.version != form.version:
        log(
            f"the history of policy {memory.policy} is of version {memory.version}; known is {form.version}: "
            "it starts anew"
        )
        return None
    if not memory.text:  # the policy's last plan left nothing to remember
        return None
    try:
        return history_of(form, memory.text)
    except ValueError as problem:
        log(f"the history of policy {memory.policy} cannot be read ({problem}): it starts anew")
        return None


def text_of(form: HistoryFormat, history: object) -> str:
    """The history as JSON.

    Raises:
        ValueError: it is not of the form's type, or would not be read as it is.
    """
    if not isinstance(history, form.type):  # pydantic lets None pass
        raise ValueError(f"a history of {form.type.__name__} is expected, not {history!r:.80}")  # noqa: TRY004 - as below
    text = _adapter(form).dump_json((history,), warnings="error").decode()
    if history_of(form, text) != history:
        raise ValueError(f"a history of {form.type.__name__} would be read as another one")
    return text


def history_of(form: HistoryFormat, text: str) -> object:
    """The history that `text_of` wrote.

    Raises:
        ValueError: the text is anything else; one line.
    """
    try:
        (history,) = _adapter(form).validate_json(text, strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from None
    except (ArithmeticError, TypeError) as problem:  # a fraction of nothing; no text at all
        raise ValueError(str(problem)) from None
    return history


@cache
def _adapter(form: HistoryFormat) -> TypeAdapter[tuple[Any]]:
    # A dataclass by itself takes no configuration; inside of a tuple it has the tuple's.
    strictly = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    wrapped: Any = GenericAlias(tuple, (form.type,))
    return TypeAdapter(wrapped, config=strictly)
