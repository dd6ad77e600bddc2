"""Read the Standard Workload Format: 18 fields per job, `;` begins a comment, -1 means unknown.

Real logs hold other negative numbers too, where a clock or a counter went wrong: they count as unknown.

Processors are field 8 (requested), else 5 (used); memory is field 10 (requested), else 7 (used), in KB per processor.
A job of more processors than the largest node has cores becomes a job on n nodes of equal parts.

Source: Feitelson, "Standard Workload Format", version 2.2, Parallel Workloads Archive.
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.node_arrays import CORES, NodeArrays
from slurm_sns.sim.traces.csv_table import LARGEST
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.plain_numbers import ColumnLayout, NotPlain, are_distinct, columns
from slurm_sns.sim.traces.trace import SMALLEST_MEMORY_MB
from slurm_sns.sim.traces.trace_arrays import Column, RecordBuilder, TraceArrays
from slurm_sns.sim.traces.trace_format import TraceFormat

FIELDS = 18
KB_PER_MIB = 1024

#: Our names of the fields that are read, by their number in the standard minus 1.
COLUMNS = {0: "job", 1: "submit", 3: "run time", 4: "processors", 6: "memory", 7: "requested processors"}
COLUMNS |= {9: "requested memory", 10: "status"}
#: The time limit that a job's owner asked for. It is read for `user_estimates` only.
REQUESTED_TIME = {8: "requested time"}

#: Lines with these statuses are partial executions of a job; another line describes the whole job.
PARTIAL_EXECUTIONS = (2, 3, 4)

Fields = dict[str, Column]


class UsableLines(NamedTuple):
    """Of all lines: which are whole jobs with known times and size, their processors, and how many are dropped and why.

    `rows` and `processors` have one entry per line.
    """

    rows: NDArray[np.bool_]
    processors: Column
    dropped: Mapping[str, int]


def read_swf(
    source: TraceFile,
    node_arrays: NodeArrays,
    *,
    load_factor: float = 1.0,
    limit: int | None = None,
    user_estimates: bool = False,
) -> TraceArrays:
    """The jobs of an SWF file that these nodes can hold; with a `limit` only that many from its beginning are read.

    With `user_estimates` their time limits are read, too (field 9).

    Raises:
        BadInput: naming the line and what would be valid.
    """
    names = COLUMNS | REQUESTED_TIME if user_estimates else COLUMNS
    swf = TraceFormat(
        lambda source, lines: _read_plain(source, lines, names),
        lambda source, lines: _read_lines(source, lines, names),
        _whole_jobs,
        _add,
    )
    return swf.read(source, node_arrays, load_factor=load_factor, limit=limit)


def read_fields(source: TraceFile, more: Mapping[int, str]) -> Fields:
    """The columns of an SWF file, one entry per line that is not a comment: those of `COLUMNS`, and `more`.

    `more` names further fields by their number in the standard minus 1.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    names = COLUMNS | dict(more)
    try:
        return _all_plain(source, names)
    except NotPlain:
        return _read_lines(source, None, names)


def usable_lines(fields: Fields) -> UsableLines:
    """Tell the lines that can be simulated from the others, which are counted by reason."""
    requested, used = fields["requested processors"], fields["processors"]
    processors = np.trunc(np.where(requested > 0, requested, used))
    left = np.ones(len(processors), dtype=np.bool_)
    dropped = {}
    for reason, wrong in (
        ("partial execution", np.isin(fields["status"], PARTIAL_EXECUTIONS)),
        ("unknown submit time", fields["submit"] < 0),
        ("unknown run time", fields["run time"] < 0),
        ("unknown size", processors < 1),
    ):
        dropped[reason] = int(np.count_nonzero(left & wrong))
        left &= ~wrong
    return UsableLines(left, processors, dropped)


def _read_plain(source: TraceFile, limit: int | None, names: Mapping[int, str] = COLUMNS) -> Iterator[Fields]:
    """Read a file that holds only plain numbers and comments."""
    return columns(source, ColumnLayout(FIELDS, False, names), limit=limit)


def _all_plain(source: TraceFile, names: Mapping[int, str]) -> Fields:
    """Read all of a file that holds only plain numbers and comments, one job at least and each once.

    Raises:
        NotPlain: it holds something else.
    """
    parts = list(_read_plain(source, None, names))
    fields = {name: np.concatenate([part[name] for part in parts]) for name in names.values()}
    if not fields["job"].size or not are_distinct(_whole_jobs(fields)):
        raise NotPlain
    return fields


def _read_lines(source: TraceFile, limit: int | None, names: Mapping[int, str] = COLUMNS) -> Fields:
    """Read any valid file; an error names the line that is wrong."""
    numbered = _data_lines(source.text())[:limit]
    if not numbered:
        raise BadInput(f"{source.name}: there is no job in it; valid: SWF with {FIELDS} fields per line")
    return _parse(source.name, numbered, names)


def _data_lines(text: str) -> list[tuple[int, str]]:
    """The lines that hold jobs, with their numbers."""
    numbered = ((number, line.partition(";")[0]) for number, line in enumerate(text.splitlines(), start=1))
    return [(number, line) for number, line in numbered if line and not line.isspace()]


def _parse(name: str, numbered: list[tuple[int, str]], names: Mapping[int, str]) -> Fields:
    for number, line in numbered:
        count = len(line.split())
        if count != FIELDS:
            raise BadInput(f"{name}: line {number} has {count} fields; SWF has {FIELDS}")
    fields = {
        title: np.array([_number(name, number, title, line.split()[at]) for number, line in numbered])
        for at, title in names.items()
    }
    for title, column in fields.items():
        with np.errstate(invalid="ignore"):
            wrong = ~(np.abs(column) <= LARGEST)
        if wrong.any():
            row = int(np.argmax(wrong))
            valid = f"a number from 0 to {LARGEST:g}, negative where it is unknown"
            raise BadInput(f"{name}: line {numbered[row][0]}: {title} is {column[row]:g}; valid: {valid}")
    _require_identities(name, numbered, fields)
    return fields


def _require_identities(name: str, numbered: list[tuple[int, str]], fields: Fields) -> None:
    whole = ~np.isin(fields["status"], PARTIAL_EXECUTIONS)
    rows = np.flatnonzero(whole)
    seen: set[float] = set()
    for row in rows.tolist():
        job = fields["job"][row]
        if job in seen:
            raise BadInput(f"{name}: line {numbered[row][0]}: job {job:g} is there twice; valid: each once")
        seen.add(job)


def _whole_jobs(fields: Fields) -> Column:
    """The job numbers, without those of partial executions, which repeat the number of the whole job."""
    return fields["job"][~np.isin(fields["status"], PARTIAL_EXECUTIONS)]


def _number(name: str, number: int, title: str, text: str) -> float:
    """The number in a field; Python alone would also take nan and 1_000."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value) or "_" in text:
        raise BadInput(f"{name}: line {number}: {title} is '{text[:40]}'; valid: a number")
    return value


def _add(builder: RecordBuilder, fields: Fields) -> None:
    """Add the jobs with known times and size; the others are counted as dropped."""
    lines = usable_lines(fields)
    for reason, count in lines.dropped.items():
        builder.dropped[reason] += count
    memory_kb = np.trunc(np.where(fields["requested memory"] > 0, fields["requested memory"], fields["memory"]))
    left = lines.rows
    processors, memory_kb = lines.processors[left], memory_kb[left]
    nodes = np.ceil(processors / float(builder.node_arrays.capacity[CORES].max()))
    cores = np.ceil(processors / nodes)
    builder.add(
        identity=fields["job"][left],
        submit_s=fields["submit"][left],
        run_s=fields["run time"][left],
        nodes=nodes,
        cores=cores,
        memory_mb=np.where(memory_kb > 0, cores * np.ceil(memory_kb / KB_PER_MIB), SMALLEST_MEMORY_MB),
        limit_s=fields["requested time"][left] if "requested time" in fields else None,
    )
