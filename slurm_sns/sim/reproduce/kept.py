"""Keep each result in a file of its own, so that an interrupted run need not repeat finished work.

A file appears only when it is complete: processes and machines that share the folder never read half a result.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_sns.errors import SnsError
from slurm_sns.sim.reproduce.work import ReportProgress, Workers, no_report

#: The identity of a piece of work; its result's file is named after it.
Piece = tuple[str | int | float, ...]


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

    def results(
        self, pieces: Sequence[Piece], workers: Workers, *, resume: bool, report: ReportProgress = no_report
    ) -> list[Any]:
        """The results in the order of the pieces; with `resume` the kept results of an earlier run are reused.

        Raises:
            SnsError: the folder cannot be read or written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not resume:
                forget(self.folder)
            workers(self, [piece for piece in pieces if not self.path(piece).is_file()], report)
            return [json.loads(self.path(piece).read_text(encoding="utf-8")) for piece in pieces]
        except OSError as problem:
            raise SnsError(f"{self.folder} cannot be written: {problem.strerror}") from None


def forget(folder: Path) -> None:
    """Remove the results of an earlier run."""
    for old in folder.glob("*.json"):
        old.unlink()
