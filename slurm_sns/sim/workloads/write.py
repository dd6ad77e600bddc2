"""Write a workload: jobs as SWF or CSV, part by part, and machines as CSV; the same bytes for the same jobs."""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import SnsError
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.results.amounts import decimal, gigabytes
from slurm_sns.sim.trace import ANY_POOL, TraceArrays
from slurm_sns.sim.traces.fluid_trace import HEADER, PARTS
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB, TraceSite
from slurm_sns.sim.workloads.netbatch import SubmittedJobs

KB_PER_GB = 1 << 20
KB_PER_MIB = 1 << 10
POOL_HEADER = "job_id,submit_s,run_s,cores,mem_gb,pool,priority,allowed_pools,limit_s,program"
#: Jobs that are turned into text at a time, so that a trace of millions of jobs needs no memory for its text.
JOBS_AT_A_TIME = 100_000


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


def fluid_lines(trace: TraceArrays) -> Iterator[str]:
    """The lines of a CSV file of jobs with fluid needs, in the order of the trace.

    `cpu_need` and `memory_need` are those of one task as fractions of a node, which the trace counts in `PARTS`.
    """
    yield f"{HEADER}\n"
    columns = (trace.identity, trace.submit_s, trace.run_s, trace.tasks, trace.cores / PARTS, trace.memory / PARTS)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield ",".join(map(decimal, row)) + "\n"


def pool_lines(site: TraceSite, trace: TraceArrays) -> Iterator[str]:
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
            map(gigabytes, trace.memory[part].tolist()),
            (pools[at] for at in trace.pool[part].tolist()),
            trace.priority[part].tolist(),
            (sets[at] for at in trace.allowed[part].tolist()),
            _limits(trace, part),
            (programs[at] for at in trace.program[part].tolist()),
            strict=True,
        )
        yield "".join([",".join(map(str, row)) + "\n" for row in rows])


def pool_swf_lines(site: TraceSite, trace: TraceArrays, notes: Iterable[str]) -> Iterator[str]:
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
            _limits(trace, part),
            (-(-trace.memory[part] * KB_PER_MIB // cores)).tolist(),
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
        with temporary.open("wb") as plain:
            # No name and no time in the header, for the same bytes each time.
            compressed = path.suffix == ".gz"
            with gzip.GzipFile("", "wb", 1, plain, mtime=0) if compressed else nullcontext(plain) as file:
                file.writelines(piece.encode() for piece in pieces)
        temporary.replace(path)
    except OSError as problem:
        raise SnsError(f"{path} cannot be written: {problem.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_nodes(path: Path, nodes: NodeArrays | TraceSite) -> None:
    """Write the machines as `sns simulate` reads them, those of a site with the pool of each.

    Raises:
        SnsError: the file cannot be written.
    """
    machines = nodes.nodes if isinstance(nodes, TraceSite) else nodes
    columns: dict[str, Sequence[Any]] = {
        "name": machines.names,
        "cores": machines.capacity[CORES].tolist(),
        "mem_gb": (machines.capacity[MEMORY] // MIB_PER_GB).tolist(),
    }
    if isinstance(nodes, TraceSite):
        columns["pool"] = [nodes.pools[at] for at in nodes.pool_of.tolist()]
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    write_pieces(path, (",".join(map(str, row)) + "\n" for row in rows))


def _slices(jobs: int) -> Iterator[slice]:
    yield from (slice(begin, begin + JOBS_AT_A_TIME) for begin in range(0, jobs, JOBS_AT_A_TIME))


def _seconds(ticks: NDArray[np.integer], ticks_per_s: int) -> Sequence[str]:
    """Each time as an exact decimal."""
    if ticks_per_s == 1:
        return [str(tick) for tick in ticks.tolist()]
    digits = len(str(ticks_per_s)) - 1
    split = (divmod(tick, ticks_per_s) for tick in ticks.tolist())
    return [f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".") for whole, rest in split]


def _limits(trace: TraceArrays, part: slice) -> Sequence[str]:
    """The time limits in the same way; empty where there is none."""
    return ["" if limit == "0" else limit for limit in _seconds(trace.limit[part], trace.ticks_per_s)]
