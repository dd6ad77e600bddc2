"""The lease of the scheduler that plans, as files in a directory that several controllers share.

Each owner has an epoch, one higher than the last, and a file of its own, `sns-planner.7`. A hard link makes it, which
succeeds for one of two who try at the same moment, also on NFS. The owner writes the file anew to renew its lease; the
next owner deletes it. A lease counts from before its writing. Somebody else may take the next epoch when the owner has
given it up, or when the file has not changed for as long as a lease lasts, and a little longer, by the clock of whoever
looks. No two clocks are ever compared, so setting one changes nothing; only steady seconds count.

What must hold of the directory: a hard link is made once, and whoever opens a file sees what was written and closed
before. NFS gives both, unless it is mounted with `nocto`.
"""

import json
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from slurm_sns.errors import SnsError
from slurm_sns.log import printable

_NAME = "sns-planner."
_EPOCH = re.compile(re.escape(_NAME) + "([1-9][0-9]{0,14})")
#: Longer files are none of ours.
_LONGEST_BYTES = 1000
#: Longer than a lease somebody else waits, for clocks that do not run equally fast.
_LONGER_S = 1.0
#: A lease that was renewed within this time is not renewed again.
_RENEWED_S = 1.0


class _Found(NamedTuple):
    """The newest file: its epoch, and what it holds. Nobody owns epoch 0."""

    epoch: int
    content: bytes


class PlannerLease:
    """The lease as `host` sees and holds it; `steady` gives monotonic seconds.

    The caller must make sure that `host` has one scheduler only: it takes the lease of an earlier one of its own host
    at once. After an error of the directory the lease ends by itself.
    """

    def __init__(self, directory: Path, host: str, lease_s: float, steady: Callable[[], float]) -> None:
        self._directory, self._host, self._lease_s, self._steady = directory, host, lease_s, steady
        self._own = uuid4().hex
        self._epoch = 0  # the one that is ours; 0 for none
        self._renewals = 0
        self._began_s = 0.0  # when our lease was last written
        self._seen: _Found | None = None
        self._seen_s = 0.0

    @property
    def left_s(self) -> float:
        """How long our lease still lasts; 0 or less: we have none."""
        return self._began_s + self._lease_s - self._steady() if self._epoch else 0.0

    def take(self) -> str:
        """Take the lease if it is free; return who holds it, which is empty if we do.

        Raises:
            SnsError: the directory cannot be read or written.
        """
        looked_s = self._steady()
        found = self._look()
        holder = _holder(found)
        has_waited = looked_s - self._seen_s >= self._lease_s + _LONGER_S
        if not (holder in ("", self._host) or has_waited):
            return holder
        if self._claim(found.epoch + 1):
            return ""
        return _holder(self._newest()) or "another host"

    def holder(self) -> str:
        """The host that holds the lease, or held it last; empty for none.

        Raises:
            SnsError: the directory cannot be read.
        """
        return _holder(self._look())

    def hold(self) -> bool:
        """Renew our lease if it is time; False: it is lost.

        A lease that has ended meanwhile is still ours if we can take the next epoch: then nobody has had it.

        Raises:
            SnsError: the directory cannot be read or written; the lease goes on until its end.
        """
        now_s = self._steady()
        if self._epoch and now_s - self._began_s < _RENEWED_S:
            return True
        if self.left_s > 0:
            self._renew(now_s)
            if self.left_s > 0:
                return True
        if self._epoch and not (self._newest().epoch == self._epoch and self._claim(self._epoch + 1)):
            self._epoch = 0
        return self._epoch > 0

    def give_up(self) -> None:
        """Let somebody else take the lease at once; does nothing if it is not ours.

        Raises:
            SnsError: the file cannot be written; it ends by itself then.
        """
        if self.left_s > 0:
            self._write(self._path(self._epoch), holder="")
        self._epoch = 0

    def _look(self) -> _Found:
        """The newest file; from the first look at it on, it is watched whether it changes."""
        found = self._newest()
        if found != self._seen:
            self._seen, self._seen_s = found, self._steady()
        return found

    def _renew(self, now_s: float) -> None:
        """Write our file. It counts if it was there before our lease had ended, and nobody has the next epoch."""
        end_s = self._began_s + self._lease_s
        self._renewals += 1
        self._write(self._path(self._epoch), holder=self._host)
        if self._exists(self._epoch + 1):
            self._epoch = 0
        elif self._steady() < end_s:
            self._began_s = now_s

    def _claim(self, epoch: int) -> bool:
        """Make the file of this epoch ours; False: somebody else has it already, or a later one.

        Epochs that are over have no files: who stood still before the link sees afterwards that it came too late.
        """
        began_s = self._steady()
        draft = self._directory / f".{_NAME}{self._own}"
        self._write(draft, holder=self._host)
        try:
            os.link(draft, self._path(epoch))
        except FileExistsError:
            return False
        except OSError as problem:
            raise SnsError(f"no lease can be made in {self._directory}: {problem.strerror}") from None
        finally:
            with suppress(OSError):
                draft.unlink()
        epochs = self._epochs()
        if max(epochs, default=0) != epoch:
            self._remove(epoch)
            return False
        self._epoch, self._began_s = epoch, began_s
        for older in epochs:
            if older < epoch:
                self._remove(older)
        return True

    def _write(self, path: Path, *, holder: str) -> None:
        """Write a file whole: as a new one that then takes the place of the old one."""
        new = self._directory / f".{_NAME}new.{self._own}"
        text = json.dumps({"host": holder, "process": os.getpid(), "by": self._own, "renewals": self._renewals})
        try:
            new.write_text(text + "\n", encoding="ascii")
            new.replace(path)
        except OSError as problem:
            raise SnsError(f"the lease {path} cannot be written: {problem.strerror}") from None

    def _newest(self) -> _Found:
        """The file of the highest epoch. A listing may be a moment old on NFS, so those after it are tried by name."""
        epoch = max(self._epochs(), default=0)
        while self._exists(epoch + 1):
            epoch += 1
        return _Found(epoch, _content(self._path(epoch)) if epoch else b"")

    def _epochs(self) -> list[int]:
        try:
            names = [path.name for path in self._directory.iterdir()]
        except OSError as problem:
            raise SnsError(f"{self._directory} cannot be read: {problem.strerror}") from None
        return [int(found[1]) for name in names if (found := _EPOCH.fullmatch(name))]

    def _remove(self, epoch: int) -> None:
        """Remove the file of an epoch that is over; one that stays does no harm."""
        with suppress(OSError):
            self._path(epoch).unlink()

    def _exists(self, epoch: int) -> bool:
        return os.path.lexists(self._path(epoch))

    def _path(self, epoch: int) -> Path:
        return self._directory / f"{_NAME}{epoch}"


def _content(path: Path) -> bytes:
    """What is in the file; something else for what is no file or cannot be read. It never waits for a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return b"no file"
            return file.read(_LONGEST_BYTES)
    except OSError as problem:
        return f"not readable: {problem.strerror}".encode()


def _holder(found: _Found) -> str:
    """The host that holds a lease; empty if nobody does. What is none of ours is held by nobody knows whom."""
    if not found.epoch:
        return ""
    try:
        host = json.loads(found.content)["host"]
    except (ValueError, KeyError, TypeError, RecursionError):
        host = None
    return printable(host)[:64] if isinstance(host, str) else "an unknown host"
