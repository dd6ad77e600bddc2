"""The Mailer port on Slurm's MailProg, which is called as slurmctld calls it: `MailProg -s SUBJECT ADDRESS`.

No shell is involved, and the standard input is empty, as with slurmctld: so no text of a user's can be a command of the
mail program. Mails are sent one after the other by a thread of their own, which ends with the process. A program that
hangs is killed with all that it started.
"""

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from slurm_sns.log import LimitedLog, Log
from slurm_sns.scheduler.ports import Mail

#: The most mails that wait; further ones are dropped.
MOST_WAITING = 100
#: After this time the program is killed. slurmctld gives it two minutes, but has several threads for it.
TIMEOUT_S = 30.0
#: What the program gets of our own environment; more of it is nobody's concern.
_OURS = ("PATH", "LANG", "HOME", "TZ", "SLURM_CONF")
#: Lines of the log in a minute.
MOST_LINES = 3


class MailProgram:
    """Sends mails by the program that each of them names."""

    def __init__(self, log: Log, timeout_s: float = TIMEOUT_S, steady: Callable[[], float] = time.monotonic) -> None:
        self._log = LimitedLog(log, MOST_LINES, steady)
        self._timeout_s = timeout_s
        self._waiting: queue.Queue[Mail] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None

    def send(self, mail: Mail) -> None:
        """Have this mail sent, and return at once; it is dropped where too many wait."""
        try:
            self._waiting.put_nowait(mail)
        except queue.Full:
            self._log(f"a mail is not sent: {MOST_WAITING} others wait for {mail.program}")
            return
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="mail", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as problem:  # no more threads; the next mail tries again
                self._log(f"a mail is not sent: {problem}")

    def _serve(self) -> None:
        while True:
            mail = self._waiting.get()
            problem = sent(mail, self._timeout_s)
            if problem:
                self._log(f"a mail is not sent: {problem}")


def sent(mail: Mail, timeout_s: float) -> str:
    """Run the program for this mail, and return what went wrong; empty if nothing did."""
    own = {name: os.environ[name] for name in _OURS if name in os.environ}
    try:
        process = subprocess.Popen(  # noqa: S603 -- a list, no shell
            [mail.program, "-s", mail.subject, mail.to],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**own, **mail.variables},
            start_new_session=True,
        )
    except (OSError, ValueError) as problem:  # ValueError: a NUL in a text
        return f"MailProg {mail.program} cannot be run: {getattr(problem, 'strerror', None) or problem}"
    try:
        status = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        with suppress(OSError):  # of another user: it has become one
            os.killpg(process.pid, signal.SIGKILL)  # its session; it has not been waited for: the number is its own
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout_s)
        return f"MailProg {mail.program} has not ended after {timeout_s:g} s"
    return f"MailProg {mail.program} ended with exit status {status}" if status else ""
