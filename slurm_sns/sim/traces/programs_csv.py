"""Read a CSV trace of programs: `job_id,submit_s,run_s,program,processes`, optionally `alpha`.

`run_s` is the run time under CE. A job whose program is not among the profiles is a job without profile.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slurm_sns.policies.base import Request
from slurm_sns.sim.traces.csv_table import Table, read_table
from slurm_sns.sim.traces.files import GZIP_MAGIC, STANDARD_INPUT
from slurm_sns.sim.traces.trace import SMALLEST_MEMORY_MB

REQUIRED = ("job_id", "submit_s", "run_s", "program", "processes")
OPTIONAL = ("alpha",)

#: Much longer than any header of ours, in bytes.
LONGEST_HEADER = 4096

#: As in --sns-program and in files of profiles.
PROGRAM = re.compile(r"[A-Za-z0-9._+-]{1,64}\Z")


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


def read_program_jobs(name: str, text: str, limit: int | None = None) -> tuple[ProgramJob, ...]:
    """The jobs of a CSV text in the order of its lines; with a `limit` only the first ones, at most that many.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    if limit is not None:
        text = "\n".join(text.splitlines()[: limit + 1])
    table = read_table(name, text, REQUIRED, OPTIONAL)
    identities = table.integers("job_id", 0)
    table.require_distinct("job_id")
    rows = zip(
        identities.tolist(),
        table.numbers("submit_s", 0).tolist(),
        table.numbers("run_s", 0).tolist(),
        table.texts("program", lambda text: bool(PROGRAM.match(text)), "1 to 64 letters, digits and . _ + -"),
        table.integers("processes", 1).tolist(),
        _alphas(table),
        strict=True,
    )
    return tuple(ProgramJob(*row) for row in rows)


def header_of(name: str) -> list[str]:
    """The columns that the first line of the file names; none for standard input or a file that cannot be read."""
    if name == STANDARD_INPUT:
        return []
    try:
        with Path(name).open("rb") as file:
            compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        with gzip.open(name) if compressed else Path(name).open("rb") as file:
            line = file.readline(LONGEST_HEADER)
    except (OSError, EOFError, zlib.error):
        return []  # the reader of the whole file reports the error
    return [column.strip() for column in line.decode("utf-8-sig", "replace").split(",")]


def _alphas(table: Table) -> Iterator[float | None]:
    if not table.has("alpha"):
        return iter([None] * len(table))
    texts = table.texts("alpha", _is_alpha, "empty, or a number above 0, at most 1", empty=True)
    return (float(text) if text else None for text in texts)


def _is_alpha(text: str) -> bool:
    try:
        return 0 < float(text) <= 1 and "_" not in text
    except ValueError:
        return False
