"""What other threads ask of the agent and tell it: a queue, which the agent's own thread empties.

The threads of the agent's socket bring prologs, epilogs and admins, and wait for the answer. The channel's thread
brings what the controller says, and never waits.
"""

import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from dataclasses import dataclass, field
from typing import Any

from slurm_sns.errors import Unreachable
from slurm_sns.node.agent.events import job_event
from slurm_sns.node.agent.ports import NodeClock
from slurm_sns.wire.values import Acknowledged, ActiveRuns, Change

#: Prolog and epilog wait 5 s at most.
ANSWER_TIMEOUT_S = 4.0
#: More events than a node's prologs could send meanwhile: a caller finds no place then.
MOST_WAITING = 4096


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

    def __init__(self, clock: NodeClock, log: Callable[[str], None]) -> None:
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
