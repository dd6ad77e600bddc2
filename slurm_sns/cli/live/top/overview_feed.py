"""Asks the scheduler for the overview in a thread of its own, and never before there can be a newer one."""

import threading
import time
from collections.abc import Callable
from typing import Any

from slurm_sns.errors import SnsError

#: While nobody answers, ask again after this time; about the time that a restart takes.
RETRY_S = 2.0
#: Between two questions at least this, whatever the answer says; and at most that, should a clock be wrong.
LEAST_S, MOST_S = 0.5, 120.0


class OverviewFeed:
    """Calls `told(answer, "")` with each new overview, or `told(None, why)` when there is none, from its own thread.

    The thread is a daemon: a scheduler that takes long to answer holds up neither a key nor the end of the process.
    """

    def __init__(
        self, ask: Callable[[], Any], told: Callable[[Any, str], None], clock: Callable[[], float] = time.time
    ) -> None:
        self._ask, self._told, self._clock = ask, told, clock
        self._has_ended, self._woken = False, threading.Event()

    def start(self) -> None:
        """Begin to ask."""
        threading.Thread(target=self._run, name="overview", daemon=True).start()

    def stop(self) -> None:
        """Ask no more; a question that is on its way is not waited for."""
        self._has_ended = True
        self._woken.set()

    def wake(self) -> None:
        """Ask now: something was done that the next overview shows."""
        self._woken.set()

    def _run(self) -> None:
        while not self._has_ended:
            self._woken.clear()
            if not self._has_ended:  # stopped just before
                self._woken.wait(self.once())

    def once(self) -> float:
        """Ask once and tell what came of it; the seconds until the next time."""
        try:
            answer = self._ask()
            next_s = float(answer.get("next_s", 0))
            self._told(answer, "")
        except SnsError as problem:
            self._told(None, one_line(problem))
            return RETRY_S
        except Exception as problem:  # noqa: BLE001 - cut off, or of another version; whatever it is, it asks again
            what = f"{type(problem).__name__} {one_line(problem)}"
            versions = "sns and the scheduler may be of different versions"
            self._told(None, f"the scheduler's answer cannot be read: {what}; {versions}")
            return RETRY_S
        return min(MOST_S, max(LEAST_S, next_s - self._clock()))


def one_line(problem: Exception) -> str:
    """The problem's message as one line."""
    return " ".join(str(problem).split())
