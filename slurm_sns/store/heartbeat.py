"""Two files: the heartbeat (Unix seconds, rewritten every cycle) and the kill switch (only its existence matters).

The submit filter inside slurmctld opens both with plain io.open, so a file must never be visible half written.
"""

import os
from pathlib import Path

from slurm_sns.errors import SnsError


class HeartbeatFile:
    """The heartbeat at `path`, in a directory that only SlurmUser writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def beat(self, now_s: float) -> None:
        """Write the time in whole seconds, to a new file that then replaces the old one."""
        self._write(f"{int(now_s)}\n")

    def stop(self) -> None:
        """Make the heartbeat stale at once, by a time in the year 1970."""
        self._write("0\n")

    def last(self) -> float | None:
        """The time of the last beat; None if there is no file or it holds something else."""
        try:
            return float(self._path.read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            return None

    def _write(self, text: str) -> None:
        new = self._path.with_name(self._path.name + ".new")
        try:
            new.write_text(text, encoding="ascii")
            new.replace(self._path)
        except OSError as problem:
            raise SnsError(f"the heartbeat {self._path} cannot be written: {problem.strerror}") from None


class KillSwitchFile:
    """The kill switch at `path`: while the file exists, every new job passes through."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_on(self) -> bool:
        """Whether the file exists."""
        return self._path.exists()

    def set(self, *, on: bool) -> bool:
        """Create or remove the file; True if that changed anything."""
        if self.is_on() == on:
            return False
        try:
            if on:
                # Root may run `sns disable`, too: it must not follow a symbolic link at this path.
                os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
            else:
                self._path.unlink(missing_ok=True)
        except OSError as problem:
            raise SnsError(f"the kill switch {self._path} cannot be changed: {problem.strerror}") from None
        return True
