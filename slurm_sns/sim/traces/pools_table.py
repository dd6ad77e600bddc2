"""The lines of a CSV trace for a site with pools: its columns, and a strict reader that names the line that is wrong.

The header is `job_id,submit_s,run_s,cores,mem_gb,pool,priority`, optionally `allowed_pools,limit_s,program`. An empty
pool leaves it to the virtual pool; allowed pools are names joined by `+`, empty for all; an empty limit or program is
unknown. A larger priority is more urgent. Times are read to the microsecond. 1 GB is 1024 MiB, fractions of a MiB are
rounded up; there is no smallest memory.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from slurm_sns.sim.traces.csv_table import LARGEST, Table, read_table
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.pool_lines import (
    LATEST_S,
    MOST_PRIORITY,
    SHORTEST_S,
    UNKNOWN,
    Column,
    Names,
    PoolLines,
    Whole,
    microseconds,
)
from slurm_sns.sim.traces.pool_trace import ANY_POOL, Flags

POOL, ALLOWED_POOLS, PROGRAM = "pool", "allowed_pools", "program"
#: The only column of numbers that may be empty.
LIMIT = "limit_s"

REQUIRED = ("job_id", "submit_s", "run_s", "cores", "mem_gb", POOL, "priority")
OPTIONAL = (ALLOWED_POOLS, LIMIT, PROGRAM)

#: The smallest and the largest valid number in each column, and the columns of whole numbers.
RANGES: Mapping[str, tuple[float, float]] = {
    "job_id": (0, LARGEST),
    "submit_s": (0, LATEST_S),
    "run_s": (SHORTEST_S, LATEST_S),
    "cores": (1, LARGEST),
    "mem_gb": (0, LARGEST),
    "priority": (0, MOST_PRIORITY),
    LIMIT: (SHORTEST_S, LATEST_S),
}
WHOLE = ("job_id", "cores", "priority")

#: How many pools, and how many letters of a cell, an error shows.
MOST_LISTED, MOST_LETTERS = 20, 40


def read_table_lines(source: TraceFile, names: Names, limit: int | None) -> PoolLines:
    """The lines of any valid file; with a `limit` only that many from its beginning.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    text = source.text()
    if limit is not None:
        text = "\n".join(text.splitlines()[: limit + 1])
    table = read_table(source.name, text, REQUIRED, OPTIONAL)
    columns: dict[str, Column] = {}
    for name in WHOLE:
        least, most = map(int, RANGES[name])
        columns[name] = table.integers(name, least, most).astype(np.float64)
    table.require_distinct("job_id")
    columns |= {name: table.numbers(name, *RANGES[name]) for name in ("submit_s", "run_s", "mem_gb")}
    if table.has(LIMIT):
        columns[LIMIT] = _limits(table)
    lines = lines_of(columns, _names(table, names), names)
    _require_allowed(table, lines, names)
    return lines


def lines_of(numbers: Mapping[str, Column], named: Mapping[str, Whole], names: Names) -> PoolLines:
    """The lines from their columns: `numbers` as in the file (a limit that is unknown is nan), `named` by `Names`."""
    count = len(numbers["job_id"])
    limit_s = numbers.get(LIMIT, np.full(count, np.nan))
    return PoolLines(
        numbers["job_id"].astype(np.int64),
        microseconds(numbers["submit_s"]),
        microseconds(numbers["run_s"]),
        numbers["cores"].astype(np.int64),
        np.ceil(numbers["mem_gb"] * MIB_PER_GB).astype(np.int64),
        numbers["priority"].astype(np.int64),
        np.where(np.isnan(limit_s), UNKNOWN, microseconds(np.nan_to_num(limit_s))),
        named[POOL],
        named[ALLOWED_POOLS] if ALLOWED_POOLS in named else np.full(count, names.allowed("")),
        named[PROGRAM] if PROGRAM in named else np.full(count, UNKNOWN),
    )


def outside(lines: PoolLines, names: Names) -> Flags:
    """Of each job: whether it names a pool that is not among its allowed ones."""
    wrong: Flags = (lines.pool != ANY_POOL) & ~names.flags()[lines.allowed, lines.pool]
    return wrong


def are_pools(names: Names, texts: list[str]) -> bool:
    """Whether the site has pools of these names."""
    return all(names.is_pool(text.strip()) for text in texts)


def _names(table: Table, names: Names) -> dict[str, Whole]:
    """The columns of names, as numbers."""
    listed = ", ".join(names.pools[:MOST_LISTED]) + (", ..." if len(names.pools) > MOST_LISTED else "")
    pools = table.texts(POOL, names.is_pool, f"empty, or a pool of the nodes: {listed}", empty=True)
    named = {POOL: [names.pool(text) for text in pools]}
    if table.has(ALLOWED_POOLS):
        wording = f"empty, or pools of the nodes joined by '+': {listed}"
        sets = table.texts(ALLOWED_POOLS, lambda text: are_pools(names, text.split("+")), wording, empty=True)
        named[ALLOWED_POOLS] = [names.allowed(text) for text in sets]
    if table.has(PROGRAM):
        programs = table.texts(PROGRAM, lambda _: True, "any text", empty=True)
        named[PROGRAM] = [names.program(text) for text in programs]
    return {name: np.array(column, dtype=np.int64) for name, column in named.items()}


def _limits(table: Table) -> Column:
    """The time limits in seconds, nan where there is none."""
    cells = table.cells[LIMIT]
    filled = [text if text.strip() else str(LATEST_S) for text in cells]
    limit_s = replace(table, cells={LIMIT: filled}).numbers(LIMIT, *RANGES[LIMIT])
    return np.where([bool(text.strip()) for text in cells], limit_s, np.nan)


def _require_allowed(table: Table, lines: PoolLines, names: Names) -> None:
    wrong = outside(lines, names)
    if wrong.any():
        row = int(np.argmax(wrong))
        allowed = table.cells[ALLOWED_POOLS][row].strip()[:MOST_LETTERS]
        raise table.error(row, POOL, table.cells[POOL][row], f"one of its {ALLOWED_POOLS}, {allowed}")
