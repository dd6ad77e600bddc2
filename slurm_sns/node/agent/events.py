"""What prolog and epilog tell the agent: a JSON object with the texts of Slurm's environment, checked. Pure.

    {"v": 1, "event": "prolog", "job": "41", "restarts": "1", "nodes": "c[1-4]", "extra": "sns:grant=..."}

Slurm sets SLURM_JOB_RESTART_COUNT for a job that was requeued only. Fields that are not known are ignored.
"""

from dataclasses import dataclass
from typing import Any

from slurm_sns.errors import BadInput
from slurm_sns.wire.values import RunId

#: Slurm's ids of jobs have 26 bits and a few of a federation; a restart count has 32.
MOST_ID = 2**32 - 1

EVENTS = ("prolog", "epilog")


@dataclass(frozen=True, slots=True)
class JobEvent:
    """A run begins (prolog) or has ended (epilog) on this node. `nodes` is Slurm's list, `extra` the job's `Extra`."""

    kind: str
    run: RunId
    nodes: str = ""
    extra: str = ""


def job_event(request: dict[str, Any]) -> JobEvent:
    """The event in a request.

    Raises:
        BadInput: it is none.
    """
    kind = request.get("event")
    if kind not in EVENTS:
        raise BadInput(f"event {_shown(kind)}; valid: {', '.join(EVENTS)}")
    job_id, restarts = _number(request, "job", 1), _number(request, "restarts", 0, missing=0)
    return JobEvent(str(kind), RunId(job_id, restarts), _text(request, "nodes"), _text(request, "extra"))


def _number(request: dict[str, Any], name: str, least: int, missing: int | None = None) -> int:
    value = request.get(name)
    if value in (None, "") and missing is not None:
        return missing
    text = str(value) if isinstance(value, str | int) else ""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_ID)) and least <= int(text) <= MOST_ID):
        raise BadInput(f"{name} {_shown(value)}; valid: a whole number from {least} to {MOST_ID}")
    return int(text)


def _text(request: dict[str, Any], name: str) -> str:
    value = request.get(name)
    return value if isinstance(value, str) else ""


def _shown(value: object) -> str:
    """A value for a line of the log."""
    return repr(value)[:40]
