"""The result files of a replay: the same bytes as those of the plain engine."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.replay.trace_replay import Replayed
from slurm_sns.sim.results.result_files import CYCLES_HEADER, JOBS_HEADER, gigabytes, write_files

#: How many jobs are converted to text at a time.
PART = 1 << 16


def write_replay(
    directory: Path, replayed: Replayed, node_arrays: NodeArrays, members: Sequence[str], summary: Mapping[str, Any]
) -> None:
    """Write jobs.csv, cycles.csv and summary.json.

    Raises:
        SnsError: a file cannot be written.
    """
    write_files(
        directory,
        {
            "jobs.csv": chain([JOBS_HEADER], _job_lines(replayed, node_arrays)),
            "cycles.csv": chain([CYCLES_HEADER], _cycle_lines(replayed, members)),
            "summary.json": [json.dumps(summary, indent=2) + "\n"],
        },
    )


def _job_lines(replayed: Replayed, node_arrays: NodeArrays) -> Iterator[str]:
    records = replayed.records
    end_s = replayed.start_s + records.run_s
    sizes = [f"{cores},{gigabytes(memory_mb)},,,\n" for _, cores, memory_mb, _ in records.kinds]
    single = [nodes == 1 for nodes, *_ in records.kinds]
    names = node_arrays.names
    columns = (records.identity, records.submit_s, replayed.start_s, end_s, replayed.place, records.kind)
    for begin in range(0, len(records), PART):
        rows = zip(*(column[begin : begin + PART].tolist() for column in columns), strict=True)
        for job, (identity, submit, start, end, place, kind) in enumerate(rows, start=begin):
            nodes = names[place] if single[kind] else "+".join(names[node] for node in replayed.nodes(job))
            yield f"{identity},{submit},{start},{end},{nodes},{sizes[kind]}"


def _cycle_lines(replayed: Replayed, members: Sequence[str]) -> Iterator[str]:
    winners: dict[int, str] = {}
    for time_s, waiting, started, chosen, bits in zip(*(each.tolist() for each in replayed.cycles), strict=True):
        if bits not in winners:
            winners[bits] = "+".join(member for at, member in enumerate(members) if bits >> at & 1)
        yield f"{time_s},{waiting},{started},{members[chosen] if waiting else ''},{winners[bits]}\n"
