"""Read a CSV trace for matching: `job_id,submit_s,run_s,cores,mem_gb`, optionally `nodes,project,heuristic`.

With `nodes`, cores and memory are those on each of that many nodes. 1 GB is 1024 MiB, fractions of a MiB rounded up.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.traces.csv_table import read_table
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.plain_numbers import ColumnLayout, NotPlain, columns
from slurm_sns.sim.traces.trace_arrays import Column, RecordBuilder, TraceArrays
from slurm_sns.sim.traces.trace_format import TraceFormat

REQUIRED = ("job_id", "submit_s", "run_s", "cores", "mem_gb")
OPTIONAL = ("nodes", "project", "heuristic")

#: The smallest valid number in each column, and the columns of whole numbers.
LEAST = {"job_id": 0, "submit_s": 0, "run_s": 0, "nodes": 1, "cores": 1, "mem_gb": 0}
WHOLE = ("job_id", "nodes", "cores")


class Lines(NamedTuple):
    """Lines of the file: the columns of numbers, and the columns of text that the file has (None where it has none)."""

    numbers: dict[str, Column]
    project: list[str] | None = None
    heuristic: list[str] | None = None


def read_jobs(
    source: TraceFile, node_arrays: NodeArrays, *, load_factor: float = 1.0, limit: int | None = None
) -> TraceArrays:
    """The jobs of a CSV file that these nodes can hold; with a `limit` only that many from its beginning are read.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    csv = TraceFormat(_read_plain, _read_table, lambda lines: lines.numbers["job_id"], _add)
    return csv.read(source, node_arrays, load_factor=load_factor, limit=limit)


def _read_plain(source: TraceFile, limit: int | None) -> Iterator[Lines]:
    """Read a file that holds only plain numbers."""
    header = [column.strip() for column in source.first_line().split(",")]
    if len(set(header)) < len(header) or not set(REQUIRED) <= set(header) <= {*REQUIRED, "nodes"}:
        raise NotPlain
    for part in columns(source, ColumnLayout(len(header), True, dict(enumerate(header))), skip_lines=1, limit=limit):
        if not all((part[name] >= LEAST[name]).all() for name in header):
            raise NotPlain
        if not all((part[name] == np.floor(part[name])).all() for name in WHOLE if name in part):
            raise NotPlain
        yield Lines(part)


def _read_table(source: TraceFile, limit: int | None) -> Lines:
    """Read any valid file; an error names the line that is wrong."""
    text = source.text()
    if limit is not None:
        text = "\n".join(text.splitlines()[: limit + 1])
    table = read_table(source.name, text, REQUIRED, OPTIONAL)
    part = {name: table.integers(name, LEAST[name]).astype(np.float64) for name in WHOLE if table.has(name)}
    table.require_distinct("job_id")
    heuristics = f"empty, {', '.join(HEURISTICS)}"
    if table.has("heuristic"):
        own = table.texts("heuristic", HEURISTICS.__contains__, heuristics, empty=True)
    part |= {name: table.numbers(name, LEAST[name]) for name in ("submit_s", "run_s", "mem_gb")}
    return Lines(
        part,
        project=table.texts("project", lambda _: True, "any text", empty=True) if table.has("project") else None,
        heuristic=own if table.has("heuristic") else None,
    )


def _add(builder: RecordBuilder, lines: Lines) -> None:
    numbers, project, heuristic = lines
    builder.add(
        identity=numbers["job_id"],
        submit_s=numbers["submit_s"],
        run_s=numbers["run_s"],
        nodes=numbers.get("nodes", np.ones(len(numbers["job_id"]))),
        cores=numbers["cores"],
        memory_mb=np.ceil(numbers["mem_gb"] * MIB_PER_GB),
        project=project,
        heuristic=heuristic,
    )
