"""SIGTERM ends a command as Ctrl-C does: `kill`, and Slurm at a job's time limit, let it tidy up, too."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """While this is entered, SIGTERM raises KeyboardInterrupt in the main thread, which must be the caller's."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
