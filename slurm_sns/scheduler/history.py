"""Turns a policy's history into text and back, so that it survives a restart.

The text is JSON with the fields of the policy's own type. It is read strictly: a value of another type, an unknown
field or a number that is not finite makes it unreadable. Then only the history is lost, and the policy starts anew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import GenericAlias
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from slurm_sns.log import Log
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.scheduler.ports import History
from slurm_sns.scheduler.remembered import Memory


@dataclass(frozen=True, slots=True)
class Remembering:
    """How a policy's history is kept over a restart; by default it is not kept.

    `remember` turns a history into what the store keeps (None: nothing). `recall` gives the history that was kept last;
    it is called once.
    """

    remember: Callable[[object], Memory | None] = lambda _: None
    recall: Callable[[], object | None] = lambda: None


NO_MEMORY = Remembering()


def remembering(policy: str, form: HistoryFormat | None, history: History, log: Log) -> Remembering:
    """How the policy of that name keeps its history through the History port."""
    if form is None:
        return NO_MEMORY
    return Remembering(
        lambda left: remember(policy, form, left, log), lambda: recall(history.load_memory(policy), form, log)
    )


def remember(policy: str, form: HistoryFormat, history: object, log: Log) -> Memory:
    """What the store keeps of the history that the policy's plan contains.

    The text is empty if there is no history (None), or if it cannot be stored. The latter is a defect of the policy: it
    is logged in one line, and only the history is lost.
    """
    try:
        text = "" if history is None else text_of(form, history)
    except ValueError as problem:
        log(f"error: the history of policy {policy} cannot be stored: {problem}")
        text = ""
    return Memory(policy, form.version, text)


def recall(memory: Memory | None, form: HistoryFormat | None, log: Log) -> object | None:
    """The history that was kept; None if there is none, the policy keeps none, or it cannot be read.

    A history that cannot be read is logged in one line.
    """
    if memory is None or form is None:
        return None
    if memory.version != form.version:
        log(
            f"the history of policy {memory.policy} is of version {memory.version}, but the policy reads version "
            f"{form.version}: it starts without history"
        )
        return None
    if not memory.text:  # the policy's last plan had no history
        return None
    try:
        return history_of(form, memory.text)
    except ValueError as problem:
        log(f"the history of policy {memory.policy} cannot be read ({problem}): it starts without history")
        return None


def text_of(form: HistoryFormat, history: object) -> str:
    """The history as JSON.

    Raises:
        ValueError: the history is not of the form's type, or reading the text would give a different one.
    """
    if not isinstance(history, form.type):  # pydantic lets None pass
        raise ValueError(f"a history of {form.type.__name__} is expected, not {history!r:.80}")  # noqa: TRY004 - as below
    text = _adapter(form).dump_json((history,), warnings="error").decode()
    if history_of(form, text) != history:
        raise ValueError(f"a history of {form.type.__name__} would be read back as a different one")
    return text


def history_of(form: HistoryFormat, text: str) -> object:
    """The history that `text_of` wrote as this text.

    Raises:
        ValueError: the text is not such a history; the message is one line.
    """
    try:
        (history,) = _adapter(form).validate_json(text, strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from None
    except (ArithmeticError, TypeError) as problem:  # a fraction with denominator 0; not a text at all
        raise ValueError(str(problem)) from None
    return history


@cache
def _adapter(form: HistoryFormat) -> TypeAdapter[tuple[Any]]:
    # pydantic takes no configuration for a dataclass alone; inside a tuple the dataclass gets that of the tuple.
    strictly = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    wrapped: Any = GenericAlias(tuple, (form.type,))
    return TypeAdapter(wrapped, config=strictly)
