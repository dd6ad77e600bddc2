"""An asyncio event loop in a thread of its own: what the scheduler's and the agent's ends of the channel work in."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

#: How long `close` waits for the thread.
STOP_TIMEOUT_S = 5.0


class LoopThread(ABC):
    """Does its work in an event loop of its own, in a thread of this name, while its context lasts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None  # once the context is entered

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(self._loop,), name=self._name, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the work, and disconnect everybody. What was not sent is lost with this object."""
        if self._loop is not None:
            self._soon(self._stop)
            self._thread.join(STOP_TIMEOUT_S)

    def _soon(self, action: Callable[..., object], *arguments: object) -> None:
        """Let the thread do this next; nothing happens before it has begun and after it has ended."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(action, *arguments)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            self._work(loop)
        finally:
            loop.close()

    @abstractmethod
    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work in this loop until stopped, and leave no task behind; called in the thread."""

    @abstractmethod
    def _stop(self) -> None:
        """Let `_work` end; called in the thread."""
