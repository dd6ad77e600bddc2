"""What a daemon tells systemd of itself, by the protocol of sd_notify(3); without a library, it is one datagram."""

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from slurm_sns.log import printable

#: A sign of life that says nothing new is not repeated within this time.
LEAST_INTERVAL_S = 1.0
#: systemd reads a page (4,096 bytes) at most, and drops a longer message. A status is one line of a terminal.
LONGEST_STATUS = 500


def notify(**values: str) -> None:
    """Send these variables, such as READY="1", to the systemd that started this process; to nobody without one.

    It never waits and never fails: a daemon works whether systemd listens or not.
    """
    if address := os.environ.get("NOTIFY_SOCKET"):
        message = "\n".join(f"{name}={printable(value)[:LONGEST_STATUS]}" for name, value in values.items())
        abstract = address.replace("@", "\0", 1) if address.startswith("@") else address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.setblocking(False)  # with its queue full, systemd would stop the daemon
            end.sendto(message.encode(), abstract)


class SignOfLife:
    """Shows systemd's watchdog that the daemon's main loop goes on, with one line of status for `systemctl status`.

    Only the thread that does the work may call it: another one would hide that it hangs.
    """

    def __init__(self, status: Callable[[], str], steady: Callable[[], float] = time.monotonic) -> None:
        self._status, self._steady = status, steady
        self._said, self._due_s = "", float("-inf")

    def __call__(self) -> None:
        """Say it, unless the same was said a moment ago."""
        status, now_s = self._status(), self._steady()
        if status != self._said or now_s >= self._due_s:
            self._said, self._due_s = status, now_s + LEAST_INTERVAL_S
            notify(WATCHDOG="1", STATUS=status)
