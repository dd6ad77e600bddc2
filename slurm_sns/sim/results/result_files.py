"""Write the results of a simulation: all files or none, byte-identical for the same input (but for the wall times)."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.engine.event_loop import SimulationOutcome
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB

JOBS_HEADER = "job_id,submit_s,start_s,end_s,nodes,cores,mem_gb,ways,bandwidth_gbps,scale\n"
CYCLES_HEADER = "time_s,waiting,started,chosen,winners\n"


def require_directory(directory: Path) -> None:
    """Accept a directory that exists or can be made; to be checked before hours of simulation, not after.

    Raises:
        BadInput: something else is there, or it cannot be written.
    """
    existing = directory
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise BadInput(f"{directory}: {existing} is not a directory; valid: a directory that exists or can be made")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise BadInput(f"{directory}: cannot write in {existing}; valid: a directory that you may write in")


def write_results(
    directory: Path,
    outcome: SimulationOutcome,
    node_arrays: NodeArrays,
    summary: Mapping[str, Any],
    *,
    spreads: bool = False,
) -> None:
    """Write jobs.csv, cycles.csv and summary.json; each appears whole, and none before all are on the disk.

    `spreads`: the policy uses scale factors, so that they are written.

    Raises:
        SnsError: a file cannot be written.
    """
    texts: dict[str, Iterable[str]] = {
        "jobs.csv": chain([JOBS_HEADER], _job_lines(outcome, node_arrays, spreads=spreads)),
        "cycles.csv": chain([CYCLES_HEADER], _cycle_lines(outcome)),
        "summary.json": iter([json.dumps(summary, indent=2) + "\n"]),
    }
    write_files(directory, texts)


def write_files(directory: Path, texts: Mapping[str, Iterable[str]]) -> None:
    """Write these files, each from its lines; each appears whole, and none before all are on the disk.

    Raises:
        SnsError: a file cannot be written.
    """
    written: list[tuple[Path, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, lines in texts.items():
            temporary = directory / f".{name}.{os.getpid()}.tmp"
            written.append((temporary, directory / name))
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)
        for temporary, final in written:
            temporary.replace(final)
    except OSError as problem:
        raise SnsError(f"{directory}: cannot write the results ({problem.strerror})") from None
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)


def _job_lines(outcome: SimulationOutcome, node_arrays: NodeArrays, *, spreads: bool) -> Iterator[str]:
    """Ways and bandwidth are empty where a job demands none, the scale where the policy uses none."""
    for placed in outcome.placements:
        job, demand = placed.job, placed.alternative.demand
        nodes = "+".join(node_arrays.names[node] for node in placed.nodes)
        memory = gigabytes(demand.memory_mb)
        shared = f"{demand.ways or ''},{demand.bandwidth_gbps or ''},{placed.alternative.scale if spreads else ''}"
        yield f"{job.id},{job.submit_s},{placed.start_s},{placed.end_s},{nodes},{demand.cores},{memory},{shared}\n"


def _cycle_lines(outcome: SimulationOutcome) -> Iterator[str]:
    for cycle in outcome.cycles:
        yield f"{cycle.time_s},{cycle.waiting},{cycle.started},{cycle.chosen},{'+'.join(cycle.winners)}\n"


def gigabytes(memory_mb: int) -> str:
    """The memory in GB, exact: a MiB is a binary fraction of a GB."""
    whole, rest = divmod(memory_mb, MIB_PER_GB)
    return str(whole) if not rest else repr(memory_mb / MIB_PER_GB)
