"""Read a trace for a site with pools: CSV, or SWF as far as it can carry one (pools_swf).

The header is `job_id,submit_s,run_s,cores,mem_gb,pool,priority`, optionally `allowed_pools,limit_s,program`. An empty
pool leaves it to the virtual pool; allowed pools are names joined by `+`, empty for all; an empty limit or program is
unknown. A larger priority is more urgent. Times are read to the microsecond. 1 GB is 1024 MiB, fractions of a MiB are
rounded up; there is no smallest memory.
"""

from collections.abc import Callable, Mapping

import numpy as np

from slurm_sns.sim.traces.columns import Columns, CsvReader, Distinct, Number, Text
from slurm_sns.sim.traces.files import TraceFile, header_of
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.pool_lines import (
    LATEST_S,
    MOST_PRIORITY,
    SHORTEST_S,
    UNKNOWN,
    Names,
    PoolLines,
    Whole,
    microseconds,
    trace_of,
)
from slurm_sns.sim.traces.pool_trace import ANY_POOL, PoolTrace, TraceSite
from slurm_sns.sim.traces.pools_swf import read_swf_lines

HEADER = "job_id,submit_s,run_s,cores,mem_gb,pool,priority and optionally allowed_pools,limit_s,program"
NUMBERS = (
    Number("job_id", 0, whole=True),
    Number("cores", 1, whole=True),
    Number("priority", 0, MOST_PRIORITY, whole=True),
    Distinct("job_id"),
    Number("submit_s", 0, LATEST_S),
    Number("run_s", SHORTEST_S, LATEST_S),
    Number("mem_gb", 0),
    Number("limit_s", SHORTEST_S, LATEST_S, empty=True),
)

#: How many pools, and how many letters of a cell, an error shows.
MOST_LISTED, MOST_LETTERS = 20, 40


def read_pool_trace(
    name: str, site: TraceSite, *, load_factor: float = 1.0, limit: int | None = None
) -> tuple[PoolTrace, int]:
    """The jobs of the file `name` (`-`: SWF on standard input) that the site can hold.

    And how many of them come after later ones in the file. `load_factor` multiplies arrival times. With a `limit` only
    so many jobs from the beginning of the file are taken.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    source = TraceFile.of(name)
    names = Names(name, site.pools)
    dropped: Mapping[str, int] = {}
    if source.is_csv:
        lines = _read_lines(source, names, limit)
    else:
        lines, dropped = read_swf_lines(source, names, limit=limit)
    return trace_of(lines, names, site, load_factor=load_factor, dropped=dropped)


def has_pools(name: str) -> bool:
    """Whether the file is a CSV of jobs for pools."""
    return "pool" in header_of(name)


def _read_lines(source: TraceFile, names: Names, limit: int | None) -> PoolLines:
    """The lines of a CSV file; with a `limit` only that many from its beginning.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    listed = ", ".join(names.pools[:MOST_LISTED]) + (", ..." if len(names.pools) > MOST_LISTED else "")
    texts = (
        Text("pool", names.is_pool, f"empty, or a pool of the nodes: {listed}", empty=True),
        Text("allowed_pools", names.are_pools, f"empty, or pools of the nodes joined by '+': {listed}", empty=True),
        Text("program", empty=True),
    )
    reader = CsvReader(source, HEADER, (*NUMBERS, *texts), limit)
    table = reader.table()
    lines = _lines_of(reader, table, names)
    wrong = (lines.pool != ANY_POOL) & ~names.flags()[lines.allowed, lines.pool]
    if wrong.any():
        row = int(np.argmax(wrong))
        pool, allowed = (reader.listed(column, table)[row] for column in ("pool", "allowed_pools"))
        raise reader.error(row, "pool", pool, f"one of its allowed_pools, {allowed[:MOST_LETTERS]}")
    return lines


def _lines_of(reader: CsvReader, table: Columns, names: Names) -> PoolLines:
    count = len(table["job_id"])

    def numbered(column: str, number: Callable[[str], int]) -> Whole:
        """The numbers of the names in a column; a column that is not there is empty."""
        if column not in table:
            return np.full(count, number(""), np.int64)
        return np.array([number(text) for text in reader.texts(column)], np.int64)[table[column]]

    limit_s = table.get("limit_s", np.full(count, np.nan))
    return PoolLines(
        table["job_id"].astype(np.int64),
        microseconds(table["submit_s"]),
        microseconds(table["run_s"]),
        table["cores"].astype(np.int64),
        np.ceil(table["mem_gb"] * MIB_PER_GB).astype(np.int64),
        table["priority"].astype(np.int64),
        np.where(np.isnan(limit_s), UNKNOWN, microseconds(np.nan_to_num(limit_s))),
        numbered("pool", names.pool),
        numbered("allowed_pools", names.allowed),
        numbered("program", names.program),
    )
