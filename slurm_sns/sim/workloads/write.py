"""Write a workload: jobs as SWF or CSV, part by part, and machines as CSV; the same bytes for the same jobs."""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from slurm_sns.errors import SnsError
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.traces.fluid_trace import PARTS, FluidTrace
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.pool_trace import ANY_POOL, Integers, PoolTrace, TraceSite
from slurm_sns.sim.workloads.netbatch import SubmittedJobs

KB_PER_GB = 1 << 20
KB_PER_MIB = 1 << 10
FLUID_HEADER = "job_id,submit_s,run_s,tasks,cpu_need,memory_need"
POOL_HEADER = "job_id,submit_s,run_s,cores,mem_gb,pool,priority,allowed_pools,limit_s,program"
#: Jobs that are turned into text at a time, so that a trace of millions of jobs needs no memory for its text.
JOBS_AT_A_TIME = 100_000
#: A MiB in GB has ten decimals, a tick in seconds at most six.
GB_DECIMALS = 10


def swf_lines(parts: Iterable[SubmittedJobs], notes: Iterable[str]) -> Iterator[str]:
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


def pool_lines(site: TraceSite, trace: PoolTrace) -> Iterator[str]:
    """The pieces of a CSV file of jobs for a site with pools, in the order of the trace.

    A cell is empty for a job that leaves the pool to the virtual pool, may run in every pool, or has no known time
    limit or program. Times and sizes are written exactly.
    """
    yield f"{POOL_HEADER}\n"
    pools, programs = (*site.pools, ""), (*trace.programs, "")
    sets = [
        "" if all(row) else "+".join(pool for pool, allowed in zip(site.pools, row, strict=True) if allowed)
        for row in trace.allowed_sets.tolist()
    ]
    for part in _slices(len(trace)):
        rows = zip(
            trace.identity[part].tolist(),
            _seconds(trace.submit[part], trace.ticks_per_s),
            _seconds(trace.run[part], trace.ticks_per_s),
            trace.cores[part].tolist(),
            _gb(trace.memory_mb[part]),
            (pools[at] for at in trace.pool[part].tolist()),
            trace.priority[part].tolist(),
            (sets[at] for at in trace.allowed[part].tolist()),
            _seconds(trace.limit[part], trace.ticks_per_s),
            (programs[at] for at in trace.program[part].tolist()),
            strict=True,
        )
        yield "".join([",".join(map(str, row)) + "\n" for row in rows])


def pool_swf_lines(site: TraceSite, trace: PoolTrace, notes: Iterable[str]) -> Iterator[str]:
    """The pieces of an SWF file of such jobs: partition is the pool from 1, queue the priority, executable the program.

    SWF has no field for allowed pools: a reader takes it that every job may run in every pool. Memory is KB per
    processor, rounded up.
    """
    header = ["; Version: 2.2", *(f"; Note: {note}" for note in notes)]
    header += [f"; Partition: {number} {pool}" for number, pool in enumerate(site.pools, start=1)]
    yield "".join([f"{line}\n" for line in header])
    for part in _slices(len(trace)):
        cores = trace.cores[part]
        rows = zip(
            trace.identity[part].tolist(),
            _seconds(trace.submit[part], trace.ticks_per_s),
            _seconds(trace.run[part], trace.ticks_per_s),
            cores.tolist(),
            _seconds(trace.limit[part], trace.ticks_per_s),
            (-(-trace.memory_mb[part] * KB_PER_MIB // cores)).tolist(),
            np.where(trace.program[part] < 0, -1, trace.program[part] + 1).tolist(),
            trace.priority[part].tolist(),
            np.where(trace.pool[part] == ANY_POOL, -1, trace.pool[part] + 1).tolist(),
            strict=True,
        )
        yield "".join(
            [
                f"{job} {submit} -1 {run} {cores} -1 -1 {cores} {limit or -1} {kb} 1 -1 -1 "
                f"{program} {priority} {pool} -1 -1\n"
                for job, submit, run, cores, limit, kb, program, priority, pool in rows
            ]
        )


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
    write_pieces(path, ["name,cores,mem_gb\n", *(f"{line}\n" for line in _node_lines(node_arrays))])


def write_site(path: Path, site: TraceSite) -> None:
    """Write the machines of a site with the pool of each.

    Raises:
        SnsError: the file cannot be written.
    """
    pools = (site.pools[at] for at in site.pool_of.tolist())
    lines = (f"{line},{pool}\n" for line, pool in zip(_node_lines(site.nodes), pools, strict=True))
    write_pieces(path, ["name,cores,mem_gb,pool\n", *lines])


def _node_lines(node_arrays: NodeArrays) -> Iterator[str]:
    rows = zip(
        node_arrays.names,
        node_arrays.capacity[CORES].tolist(),
        (node_arrays.capacity[MEMORY] // MIB_PER_GB).tolist(),
        strict=True,
    )
    yield from (f"{name},{cores},{gb}" for name, cores, gb in rows)


def _slices(jobs: int) -> Iterator[slice]:
    yield from (slice(begin, begin + JOBS_AT_A_TIME) for begin in range(0, jobs, JOBS_AT_A_TIME))


def _seconds(ticks: Integers, ticks_per_s: int) -> Sequence[str]:
    """Each time as an exact decimal; empty where it is negative, which means unknown."""
    if ticks_per_s == 1:
        return [str(tick) if tick >= 0 else "" for tick in ticks.tolist()]
    digits = len(str(ticks_per_s)) - 1
    split = (divmod(tick, ticks_per_s) for tick in ticks.tolist())
    return [f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".") if whole >= 0 else "" for whole, rest in split]


def _gb(memory_mb: Integers) -> Sequence[str]:
    """Each size in GB as an exact decimal."""
    sizes, which = np.unique(memory_mb, return_inverse=True)
    texts = [f"{mb / MIB_PER_GB:.{GB_DECIMALS}f}".rstrip("0").rstrip(".") for mb in sizes.tolist()]
    return [texts[at] for at in which.tolist()]


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
