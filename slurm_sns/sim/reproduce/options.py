"""How a reproduction is to run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slurm_sns.sim.reproduce.kept import KeptFunction, Piece
from slurm_sns.sim.reproduce.runs import HIGHEST_LOAD, ORIGINAL_LOAD, Sweep
from slurm_sns.sim.reproduce.work import ReportProgress, WorkerProcesses, Workers, no_report

#: The load between the original and the highest one in a quick run.
QUICK_BETA = 0.8


@dataclass(frozen=True)
class Options:
    """The options of `sns reproduce`.

    `out` is the folder of the page, `runs` the folder of the results of single runs (by default inside `out`). After
    `until_s` (Unix seconds) the pages with rows (module rows) begin no replay, and rest on what is finished.
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

    def sweep(self) -> Sweep:
        """The simulations over time: pools at 1/20 of their size, a month; quick: 1/50, two days, three loads."""
        if self.quick:
            return Sweep(self.folder, self.seeds, scale=0.02, days=2, betas=(ORIGINAL_LOAD, QUICK_BETA, HIGHEST_LOAD))
        return Sweep(self.folder, self.seeds)

    def results(self, name: str, function: Callable[[Any], Any], pieces: Sequence[Piece]) -> list[Any]:
        """The function's result for each piece, kept in the folder `name`."""
        keeping = KeptFunction(function, self.folder / name)
        return keeping.results(pieces, self.workers, resume=self.resume, report=self.report)
