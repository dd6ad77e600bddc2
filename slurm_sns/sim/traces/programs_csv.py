"""Read a CSV trace of programs: `job_id,submit_s,run_s,program,processes`, optionally `alpha`.

`run_s` is the run time under CE. A job whose program is not among the profiles is a job without profile.
"""

import math
import re
from dataclasses import dataclass

import numpy as np

from slurm_sns.policies.base import Request
from slurm_sns.sim.traces.columns import CsvReader, Distinct, Number, Text
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.trace import SMALLEST_MEMORY_MB

#: As in --sns-program and in files of profiles.
PROGRAM = re.compile(r"[A-Za-z0-9._+-]{1,64}\Z")

HEADER = "job_id,submit_s,run_s,program,processes and optionally alpha"
CHECKS = (
    Number("job_id", 0, whole=True),
    Distinct("job_id"),
    Number("submit_s", 0),
    Number("run_s", 0),
    Text("program", lambda text: bool(PROGRAM.match(text)), "1 to 64 letters, digits and . _ + -"),
    Number("processes", 1, whole=True),
    Number("alpha", np.nextafter(0, 1), 1, empty=True, valid="empty, or a number above 0, at most 1"),
)


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """A line of the trace; `alpha` is None where it gives none."""

    identity: int
    submit_s: float
    run_s: float
    program: str
    processes: int
    alpha: float | None

    @property
    def request(self) -> Request:
        """What the job asks for."""
        return Request(self.processes, memory_per_node_mb=SMALLEST_MEMORY_MB, alpha=self.alpha)


def read_program_jobs(source: TraceFile, limit: int | None = None) -> list[ProgramJob]:
    """The jobs of a CSV file in the order of its lines; with a `limit` only the first ones, at most that many.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    reader = CsvReader(source, HEADER, CHECKS, limit)
    table = reader.table()
    alpha = table.get("alpha", np.full(len(table["job_id"]), np.nan)).tolist()
    columns = (
        table["job_id"].astype(np.int64).tolist(),
        table["submit_s"].tolist(),
        table["run_s"].tolist(),
        reader.listed("program", table),
        table["processes"].astype(np.int64).tolist(),
        [None if math.isnan(each) else each for each in alpha],
    )
    return list(map(ProgramJob, *columns))
