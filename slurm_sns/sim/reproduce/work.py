"""Do many independent pieces of work on several cores, and tell how far it is."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Protocol, TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")

#: Called with how many pieces are done and how many there are.
Report = Callable[[int, int], None]


def no_report(_done: int, _total: int) -> None:
    """Tell nobody."""


class Workers(Protocol):
    """Who does the work: processes of this machine (`Processes`), or the tasks of a job array (`SlurmArray`)."""

    def __call__(
        self, function: Callable[[Piece], Result], pieces: Sequence[Piece], report: Report = no_report
    ) -> list[Result]:
        """The results in the order of the pieces; `function` is one that a new process can import."""
        ...


@dataclass(frozen=True)
class Processes:
    """So many processes of this machine; a single one is this process itself."""

    count: int = 2

    def __call__(
        self, function: Callable[[Piece], Result], pieces: Sequence[Piece], report: Report = no_report
    ) -> list[Result]:
        """The results in the order of the pieces."""
        report(0, len(pieces))
        if self.count == 1:
            results = []
            for done, piece in enumerate(pieces, start=1):
                results.append(function(piece))
                report(done, len(pieces))
            return results
        # Fresh processes: a forked copy of one that has run compiled code may hang.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.count, mp_context=context) as executor:
            futures = [executor.submit(function, piece) for piece in pieces]
            try:
                for done, future in enumerate(as_completed(futures), start=1):
                    future.result()
                    report(done, len(pieces))
            except BaseException:  # an interrupt too: what has not begun need not begin
                executor.shutdown(wait=False, cancel_futures=True)
                raise
            return [future.result() for future in futures]
