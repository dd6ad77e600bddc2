"""Snapshots as bytes and back: JSON in zlib. Only our own store uses the format; `schema.VERSION` counts its versions.

Two things are not written as the snapshot has them: a set of allowed nodes that several jobs share is written once, and
the history has the form that its policy gives it.
"""

import zlib
from dataclasses import dataclass, replace
from typing import NamedTuple

from slurm_sns import typed_json
from slurm_sns.errors import SnsError
from slurm_sns.model import Snapshot
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.scheduler.history import history_of, text_of


class _History(NamedTuple):
    """A policy's history: the name and the version of its form, and its text."""

    # The name, because the recorded cycle may be that of another policy with the same version.
    name: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A snapshot without its history. `allowed` are the sets of nodes, `allowed_of` the set's index of each job."""

    snapshot: Snapshot
    history: _History | None
    allowed: tuple[frozenset[str] | None, ...]
    allowed_of: tuple[int, ...]


_ELSEWHERE = {0: {"snapshot": {"history": True, "waiting": {"__all__": {"allowed"}}}}}


def pack(snapshot: Snapshot, form: HistoryFormat | None = None) -> bytes:
    """The snapshot as bytes. Its history is written in the given form; without a form it is left out.

    Raises:
        ValueError: the history is not of the form's type, or the snapshot holds a value of another type.
    """
    history = None
    if form is not None and snapshot.history is not None:
        history = _History(form.type.__name__, form.version, text_of(form, snapshot.history))
    indices: dict[frozenset[str] | None, int] = {}
    allowed_of = tuple(indices.setdefault(job.allowed, len(indices)) for job in snapshot.waiting)
    recorded = _Recorded(snapshot, history, tuple(indices), allowed_of)
    return zlib.compress(typed_json.written(_Recorded, recorded, exclude=_ELSEWHERE).encode(), level=1)


def unpack(data: bytes, form: HistoryFormat | None = None) -> Snapshot:
    """The snapshot that `pack` wrote.

    Its history is left out if it is damaged, or of another type or version than the form.

    Raises:
        SnsError: the bytes are damaged.
    """
    try:
        recorded = typed_json.read(_Recorded, zlib.decompress(data))
        waiting = tuple(
            replace(job, allowed=recorded.allowed[index])
            for job, index in zip(recorded.snapshot.waiting, recorded.allowed_of, strict=True)
        )
    except (zlib.error, ValueError, IndexError) as problem:
        raise SnsError(f"a recorded snapshot cannot be read: {problem}") from None
    return replace(recorded.snapshot, waiting=waiting, history=_history(recorded.history, form))


def _history(written: _History | None, form: HistoryFormat | None) -> object | None:
    if written is None or form is None or (written.name, written.version) != (form.type.__name__, form.version):
        return None
    try:
        return history_of(form, written.text)
    except ValueError:
        return None
