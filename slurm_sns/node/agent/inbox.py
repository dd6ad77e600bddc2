"""What other threads ask of the agent and tell it: a queue, which the agent's own thread empties.

The threads of the agent's socket bring prologs, epilogs and admins, and wait for the answer. The channel's thread
brings what the controller says, and never waits.

Prolog and epilog send a JSON object with the texts of Slurm's environment. Fields that are not known are ignored; Slurm
sets SLURM_JOB_RESTART_COUNT for a job that was requeued only.

    {"v": 1, "event": "prolog", "job": "41", "restarts": "1", "nodes": "c[1-4]", "extra": "sns:grant=..."}
"""

import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from dataclasses import dataclass, field
from typing import Any

from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.node.agent.ports import BootClock
from slurm_sns.wire.values import Acknowledged, ActiveRuns, Change, RunId

#: Prolog and epilog wait 5 s at most.
ANSWER_TIMEOUT_S = 4.0
#: More events than a node's prologs could send meanwhile: a caller finds no place then.
MOST_WAITING = 4096
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


@dataclass
class Asked:
    """A request of prolog, epilog or an admin, when it came (steady seconds), and its answer."""

    request: dict[str, Any]
    at_s: float
    answer: "Future[Any]" = field(default_factory=Future)


#: What the controller says.
Message = ActiveRuns | Change | Acknowledged


class Inbox:
    """The queue. Any thread may put something in; `waiting` is for the agent's thread."""

    def __init__(self, clock: BootClock, log: Callable[[str], None]) -> None:
        self._clock, self._log = clock, log
        self._queue: queue.Queue[Asked | Message] = queue.Queue(MOST_WAITING)

    def answer(self, request: dict[str, Any], _user_id: int) -> Any:
        """The answer to a request on the socket.

        Raises:
            BadInput: it is none that the agent knows.
            Unreachable: the agent is too busy; an event is dealt with later, unless too many wait already.
        """
        try:
            return self.take(request).result(ANSWER_TIMEOUT_S)
        except NoAnswer:
            raise Unreachable("the agent is busy; it goes on with the request later") from None

    def take(self, request: dict[str, Any]) -> "Future[Any]":
        """Take a request; its answer comes when the agent has dealt with it.

        Raises:
            BadInput: it is none that the agent knows.
            Unreachable: too many wait already.
        """
        if request.get("event") != "show":
            job_event(request)
        asked = Asked(request, self._clock.steady())
        try:
            self._queue.put_nowait(asked)
        except queue.Full:
            raise Unreachable(f"the agent is busy: {MOST_WAITING} requests wait") from None
        return asked.answer

    def receive(self, message: Message) -> None:
        """Take what the controller says; never waits."""
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            self._log("a message of the controller is lost: too many wait")

    def waiting(self, longest_s: float) -> Iterator[Asked | Message]:
        """All that waits, oldest first. While nothing does, wait for it for at most `longest_s`."""
        try:
            event = self._queue.get(timeout=longest_s) if longest_s > 0 else self._queue.get_nowait()
            while True:
                yield event
                event = self._queue.get_nowait()
        except queue.Empty:
            return
