"""Do many independent pieces of work on several cores, and report progress."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Thread
from typing import Protocol, TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")

#: Called with the number of finished pieces and the number of all pieces.
ReportProgress = Callable[[int, int], None]


def no_report(_done: int, _total: int) -> None:
    """Report nothing."""


class Workers(Protocol):
    """What does the work: processes of this machine (`WorkerProcesses`), or the tasks of a job array (`SlurmArray`)."""

    def __call__(
        self, function: Callable[[Piece], Result], pieces: Sequence[Piece], report: ReportProgress = no_report
    ) -> list[Result]:
        """The results in the order of the pieces; a new process must be able to import `function`."""
        ...


@dataclass(frozen=True)
class WorkerProcesses:
    """`count` processes of this machine; with a count of 1 the calling process does the work itself."""

    count: int = 2

    def __call__(
        self, function: Callable[[Piece], Result], pieces: Sequence[Piece], report: ReportProgress = no_report
    ) -> list[Result]:
        """The results in the order of the pieces."""
        report(0, len(pieces))
        if self.count == 1:
            results = []
            for done, piece in enumerate(pieces, start=1):
                results.append(function(piece))
                report(done, len(pieces))
            return results
        # Spawned, not forked: a fork of a process that has run compiled code may hang.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.count, mp_context=context, initializer=_end_with_parent) as executor:
            futures = [executor.submit(function, piece) for piece in pieces]
            try:
                for done, future in enumerate(as_completed(futures), start=1):
                    future.result()
                    report(done, len(pieces))
            except BaseException:  # also an interrupt: pieces that have not begun are cancelled
                executor.shutdown(wait=False, cancel_futures=True)
                raise
            return [future.result() for future in futures]


def _end_with_parent() -> None:
    """Let this process end when its parent is gone: killed, or interrupted once more while it waited for us."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=watch, daemon=True).start()
