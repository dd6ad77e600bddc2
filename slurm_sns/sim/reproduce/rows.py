"""The finished replays of a page as one compressed file beside it, from which a later run goes on.

The file has one JSON object a line: the sweep's name, the run's name, the run, and a digest of the generator's jobs and
machines. The folder of single runs is not part of the project; this file is. So a page that rests on a few seeds can be
continued anywhere, and nothing is run twice. Rows of another generator do not count.
"""

import json
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.sim.pages.running import Options, keep
from slurm_sns.sim.reproduce.runs import Sweep, run_sweeps
from slurm_sns.sim.traces.files import read_text
from slurm_sns.sim.workloads.netbatch import generate
from slurm_sns.sim.workloads.netbatch_pools import POOLS, SMALLEST_SCALE
from slurm_sns.sim.workloads.netbatch_variants import VARIANTS
from slurm_sns.sim.workloads.write import write_pieces

ROWS = "rows.jsonl.gz"
DIGITS = 12


@cache
def workload_digest() -> str:
    """What tells the generated pools from those of a changed generator: a digest of the smallest ones, for a day.

    What the variants change is part of it. Betas are in the names of the runs.
    """
    variants = {name: [change(pool) for pool in POOLS.values()] for name, change in VARIANTS.items()}
    digest = sha256(repr(variants).encode())
    for pool in POOLS.values():
        digest.update(pool.nodes(SMALLEST_SCALE).capacity.tobytes())
        for part in generate(pool, scale=SMALLEST_SCALE, seed=1, days=1):
            for column in part:
                digest.update(column.tobytes())
    return digest.hexdigest()[:DIGITS]


def run_with_rows(options: Options, sweeps: Sequence[Sweep]) -> None:
    """Run what is missing of the sweeps; with `resume` the rows of an earlier page count as done.

    Raises:
        BadInput: the file of rows is not one of ours.
        SnsError: a folder or a file cannot be read or written.
    """
    if options.resume:
        restore(options.out / ROWS, sweeps)
    try:
        run_sweeps(sweeps, options.workers, resume=options.resume, until_s=options.until_s, report=options.report)
    finally:  # also of a run that is stopped
        _write(options.out / ROWS, lines_of(sweeps))


def _write(file: Path, lines: Sequence[str]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SnsError(f"{file} cannot be written: {problem.strerror}") from None
    if lines:
        write_pieces(file, lines)


def restore(file: Path, sweeps: Sequence[Sweep]) -> None:
    """Write the sweeps' runs of the file into their folders; runs that are there already stay as they are.

    Raises:
        BadInput: the file is not one of ours.
        SnsError: it cannot be read, or a folder cannot be written.
    """
    wanted = {(sweep.name, path.stem): path for sweep in sweeps for path in sweep.paths()}
    try:
        for number, line in enumerate(read_text(str(file)).splitlines() if file.is_file() else (), start=1):
            try:
                row = json.loads(line)
                path, result = wanted.get((row["sweep"], row["run"])), dict(row["result"])
                ours = row["workload"] == workload_digest()
            except (ValueError, KeyError, TypeError):
                raise BadInput(f"{file}, line {number} is no finished run; valid: what `sns reproduce` wrote") from None
            if ours and path is not None and not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                keep(path, result)
    except OSError as problem:
        raise SnsError(f"{file} cannot be restored: {problem.strerror}") from None


def lines_of(sweeps: Sequence[Sweep]) -> list[str]:
    """One line for each finished run of the sweeps, in the order of their names.

    A folder may also hold runs at other betas, or of other pages; these are left out.
    """
    rows = (
        {
            "sweep": sweep.name,
            "run": path.stem,
            "workload": workload_digest(),
            "result": json.loads(path.read_text(encoding="utf-8")),
        }
        for sweep in sorted(sweeps, key=lambda each: each.name)
        for path in sorted(sweep.paths())
        if path.is_file()
    )
    return [json.dumps(row) + "\n" for row in rows]
