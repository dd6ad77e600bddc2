"""How a page is run: its options, the workers that do its pieces of work, the results that are kept, what it gives.

Each result is kept in a file of its own, so that an interrupted run need not repeat finished work. A file appears only
when it is complete: processes and machines that share the folder never read half a result.
"""

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, Protocol, TypeVar

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.sim.pages.judge import Quantity

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Called with the number of finished pieces and the number of all pieces.
ReportProgress = Callable[[int, int], None]


def no_report(_done: int, _total: int) -> None:
    """Report nothing."""


class Workers(Protocol):
    """What does the work: processes of this machine (`WorkerProcesses`), or the tasks of a job array (`SlurmArray`)."""

    def __call__(
        self, function: Callable[[Item], Result], pieces: Sequence[Item], report: ReportProgress = no_report
    ) -> list[Result]:
        """The results in the order of the pieces; a new process must be able to import `function`."""
        ...


@dataclass(frozen=True)
class WorkerProcesses:
    """`count` processes of this machine; with a count of 1 the calling process does the work itself."""

    count: int = 2

    def __call__(
        self, function: Callable[[Item], Result], pieces: Sequence[Item], report: ReportProgress = no_report
    ) -> list[Result]:
        """The results in the order of the pieces.

        Raises:
            SnsError: a process was killed.
        """
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
            except BrokenProcessPool:
                raise SnsError(
                    f"one of {self.count} processes was killed; is memory short? valid: fewer of them"
                ) from None
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


# --- kept results

#: The identity of a piece of work; its result's file is named after it.
Piece = tuple[str | int | float, ...]
#: A piece of one kind.
KeptPiece = TypeVar("KeptPiece", bound=Piece)


def keep(path: Path, result: Any) -> None:
    """Write one result as JSON, atomically."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.replace(path)


@dataclass(frozen=True)
class KeptFunction:
    """Wraps a function of a piece of work: each result is kept in `folder` as JSON, where tuples become lists."""

    function: Callable[[Any], Any]
    folder: Path

    def path(self, piece: Piece) -> Path:
        """The file of one piece."""
        return self.folder / f"{'-'.join(map(str, piece))}.json"

    def __call__(self, piece: Piece) -> None:
        """Do one piece of work and keep its result."""
        keep(self.path(piece), self.function(piece))


@dataclass(frozen=True)
class Options:
    """The options of `sns reproduce`.

    `out` is the folder of the page, `runs` the folder of the results of single runs (by default inside `out`). After
    `until_s` (Unix seconds) the pages that keep their rows begin no replay, and rest on what is finished.
    """

    out: Path
    seeds: int = 30
    quick: bool = False
    workers: Workers = field(default_factory=WorkerProcesses)
    resume: bool = False
    runs: Path | None = None
    report: ReportProgress = no_report
    until_s: float | None = None

    @property
    def folder(self) -> Path:
        """Where the results of single runs are kept; absolute, since other machines may write there."""
        return (self.runs or self.out / "runs").absolute()

    def results(
        self, name: str, function: Callable[[Any], Any], pieces: Iterable[KeptPiece], *, shared: bool = False
    ) -> dict[KeptPiece, Any]:
        """The function's result by piece, kept in the folder `name`; with --resume kept ones are reused.

        Without --resume what the folder has is removed. Of a folder that pages have in common (`shared`) only the
        results of these pieces are.

        Raises:
            SnsError: the folder cannot be read or written.
        """
        asked, keeping = list(dict.fromkeys(pieces)), KeptFunction(function, self.folder / name)
        try:
            keeping.folder.mkdir(parents=True, exist_ok=True)
            if not self.resume:
                for old in map(keeping.path, asked) if shared else keeping.folder.glob("*.json"):
                    old.unlink(missing_ok=True)
            self.workers(keeping, [piece for piece in asked if not keeping.path(piece).is_file()], self.report)
            return {piece: json.loads(keeping.path(piece).read_text(encoding="utf-8")) for piece in asked}
        except OSError as problem:
            raise SnsError(f"{keeping.folder} cannot be written: {problem.strerror}") from None


@dataclass(frozen=True)
class DataTable:
    """A table that is written to stem.csv; with `shown_only` it is for the text alone."""

    stem: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    shown_only: bool = False


@dataclass(frozen=True)
class PageResults:
    """What a run gives: quantities by name, tables, and fields for claims and text; `seeds` None: it is not random.

    The tables come before those of claims.yaml.
    """

    quantities: Mapping[str, Quantity]
    tables: Sequence[DataTable] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None


def shared_file(*parts: str) -> Path:
    """A file of measured data that is not part of the project: in the folder that SNS_SHARED names, or ../shared.

    Raises:
        BadInput: the file is missing.
    """
    folder = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))
    path = folder.joinpath(*parts)
    if not path.is_file():
        raise BadInput(f"{path} is missing; valid: SNS_SHARED names a folder that has {'/'.join(parts)}")
    return path
