"""Tells the scheduler at once that a job was submitted: the submit filter writes a byte to a file that it watches.

A socket could hold slurmctld up, which runs the filter under its locks. A byte in a file of the run directory does not,
whether somebody watches it or not. The kernel tells of writes by inotify, for which Python has no module.
"""

import ctypes
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slurm_sns.cli.live.process import StopSignal
from slurm_sns.log import Log

#: Of linux/inotify.h. The flags of inotify_init1 have the values of those of open.
_IN_MODIFY = 2
#: More than the events of one file: the kernel makes one of those that tell the same, until they are read.
_MOST_BYTES = 4096


class SubmissionFile:
    """The Submissions port: `events` is ready to be read once somebody has written to the file."""

    def __init__(self, events: int, stop: StopSignal) -> None:
        self._events, self._stop = events, stop

    def forget(self) -> None:
        """Forget the jobs until now, which are about to be looked at."""
        with suppress(BlockingIOError):
            os.read(self._events, _MOST_BYTES)

    def wait(self, seconds: float) -> bool:
        """Wait that long, or less if a job is submitted or a stop asked for; True: one was submitted."""
        ready, _, _ = select.select([self._stop.fileno(), self._events], [], [], max(0.0, seconds))
        return self._events in ready


@contextmanager
def watched(path: Path, stop: StopSignal, log: Log) -> Iterator[SubmissionFile | None]:
    """Make the file, and watch it inside the block; None, and a line of the log, where that cannot be."""
    try:
        path.touch(0o600)
        events = _watch(path)
    except OSError as problem:
        log(f"{path} cannot be watched: {problem.strerror}; jobs are seen at the next cycle")
        yield None
        return
    try:
        yield SubmissionFile(events, stop)
    finally:
        os.close(events)


def _watch(path: Path) -> int:
    """A descriptor that is ready to be read when somebody has written to the file."""
    libc = ctypes.CDLL(None, use_errno=True)
    events: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if events < 0 or libc.inotify_add_watch(events, os.fsencode(path), _IN_MODIFY) < 0:
        problem = ctypes.get_errno()
        if events >= 0:
            os.close(events)
        raise OSError(problem, os.strerror(problem))
    return events
