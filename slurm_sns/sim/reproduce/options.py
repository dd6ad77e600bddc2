"""How a reproduction is to run."""

from dataclasses import dataclass
from pathlib import Path

from slurm_sns.sim.reproduce.runs import BETAS, Sweep
from slurm_sns.sim.reproduce.work import Report, no_report


@dataclass(frozen=True)
class Options:
    """`out` is the folder of the page, `runs` that of single results (by default inside `out`)."""

    out: Path
    seeds: int = 30
    quick: bool = False
    jobs: int = 2
    resume: bool = False
    runs: Path | None = None
    report: Report = no_report

    def sweep(self) -> Sweep:
        """The dynamic simulations: pools at 1/20 and the whole month; quick: two days at 1/50, two loads."""
        folder = self.runs or self.out / "runs"
        if self.quick:
            return Sweep(folder, self.seeds, scale=0.02, days=2, betas=(min(BETAS), BETAS[1]))
        return Sweep(folder, self.seeds)
