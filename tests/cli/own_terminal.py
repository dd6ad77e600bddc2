"""`sns` on a terminal of its own, in a process of its own, as a user has it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time

LONG_S = 120.0


class Terminal:
    """`sns` on a terminal of its own, as a user has it; what it has written so far."""

    def __init__(self, *words: object, columns: int = 120, **variables: str) -> None:
        self.written = ""
        ours, theirs = pty.openpty()
        self._ours = ours
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from slurm_sns.cli import main; main()", *map(str, words)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment, "TERM": "xterm", "PYTHONUTF8": "1", **variables},
            start_new_session=True,
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self._reader.start()

    def _read(self, ours: int) -> None:
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            self.written += data.decode(errors="replace")
        os.close(ours)

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str, after: int = 0) -> int:
        """Wait until the text stands in what was written; the place behind it."""
        deadline_s = time.monotonic() + LONG_S
        while (at := self.written.find(text, after)) < 0:
            assert time.monotonic() < deadline_s, f"no {text!r} in {self.written[after:]!r}"
            assert self.process.poll() is None, self.written
            time.sleep(0.02)
        return at + len(text)

    def end(self, number: int | None = None) -> int:
        """The exit status, after a signal where one is given."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(LONG_S)
        self._reader.join(LONG_S)
        return code
