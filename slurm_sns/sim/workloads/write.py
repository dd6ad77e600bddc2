"""Write a workload: jobs as SWF or CSV, part by part, and machines as CSV; the same bytes for the same jobs."""

import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from slurm_sns.errors import SnsError
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.traces.fluid_trace import PARTS, FluidTrace
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch import Part

KB_PER_GB = 1 << 20
FLUID_HEADER = "job_id,submit_s,run_s,tasks,cpu_need,memory_need"


def swf_lines(parts: Iterable[Part], notes: Iterable[str]) -> Iterator[str]:
    """The file in pieces: the header, then the lines of each part. Memory is KB per processor, rounded up."""
    yield "".join(["; Version: 2.2\n", *(f"; Note: {note}\n" for note in notes)])
    number = 0
    for part in parts:
        kb = -(-part.memory_gb * KB_PER_GB // part.cores)
        columns = (part.submit_s, part.run_s, part.cores, kb, part.user)
        rows = zip(*(column.astype(int).tolist() for column in columns), strict=True)
        yield "".join(
            f"{at} {submit} -1 {run} {cores} -1 -1 {cores} -1 {memory} 1 {user} 1 -1 1 -1 -1 -1\n"
            for at, (submit, run, cores, memory, user) in enumerate(rows, start=number + 1)
        )
        number += len(part.submit_s)


def fluid_lines(trace: FluidTrace) -> Iterator[str]:
    """The lines of a CSV file of jobs with fluid needs, in the order of the trace.

    `cpu_need` and `memory_need` are those of one task as fractions of a node, which the trace counts in `PARTS`.
    """
    yield f"{FLUID_HEADER}\n"
    columns = (trace.identity, trace.submit_s, trace.run_s, trace.tasks, trace.cpu / PARTS, trace.memory / PARTS)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield ",".join(map(_decimal, row)) + "\n"


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Write the pieces, compressed if the name ends in .gz; the file appears only when it is complete.

    Raises:
        SnsError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with _opened(temporary, compressed=path.suffix == ".gz") as file:
            for piece in pieces:
                file.write(piece.encode())
        temporary.replace(path)
    except OSError as problem:
        raise SnsError(f"{path} cannot be written: {problem.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_nodes(path: Path, node_arrays: NodeArrays) -> None:
    """Write the machines as `sns simulate` reads them.

    Raises:
        SnsError: the file cannot be written.
    """
    rows = zip(
        node_arrays.names,
        node_arrays.capacity[CORES].tolist(),
        (node_arrays.capacity[MEMORY] // MIB_PER_GB).tolist(),
        strict=True,
    )
    write_pieces(path, ["name,cores,mem_gb\n", *(f"{name},{cores},{gb}\n" for name, cores, gb in rows)])


def _decimal(number: float) -> str:
    """The number with up to six decimals and without zeros at its end."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


@contextmanager
def _opened(path: Path, *, compressed: bool) -> Iterator[IO[bytes] | gzip.GzipFile]:
    with path.open("wb") as plain:
        if not compressed:
            yield plain
            return
        # No name and no time in the header, for the same bytes each time.
        with gzip.GzipFile(filename="", mode="wb", fileobj=plain, compresslevel=1, mtime=0) as file:
            yield file
