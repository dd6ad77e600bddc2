"""Read the Standard Workload Format: 18 fields per job, `;` begins a comment, -1 means unknown.

Real logs hold other negative numbers too, where a clock or a counter went wrong: they count as unknown.

Processors are field 8 (requested), else 5 (used); memory is field 10 (requested), else 7 (used), in KB per processor.
A job of more processors than the largest node has cores becomes a job on n nodes of equal parts.

Source: Feitelson, "Standard Workload Format", version 2.2, Parallel Workloads Archive.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.node_arrays import CORES, NodeArrays
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.plain_numbers import (
    LARGEST,
    Columns,
    NotPlain,
    is_repeated,
    joined,
    number_in,
    plain_columns,
    plain_first,
    plain_table,
)
from slurm_sns.sim.traces.trace import SMALLEST_MEMORY_MB
from slurm_sns.sim.traces.trace_arrays import Column, RecordBuilder, TraceArrays

FIELDS = 18
KB_PER_MIB = 1024

#: Our names of the fields that are read, by their number in the standard minus 1.
COLUMNS = {0: "job", 1: "submit", 3: "run time", 4: "processors", 6: "memory", 7: "requested processors"}
COLUMNS |= {9: "requested memory", 10: "status"}
#: The time limit that a job's owner asked for. It is read for `user_estimates` only.
REQUESTED_TIME = {8: "requested time"}

#: Lines with these statuses are partial executions of a job; another line describes the whole job.
PARTIAL_EXECUTIONS = (2, 3, 4)


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
    builder = RecordBuilder(node_arrays, load_factor)
    for fields in _parts(source, COLUMNS | REQUESTED_TIME if user_estimates else COLUMNS, limit):
        _add(builder, fields)
    return builder.records(source.name)


def read_fields(source: TraceFile, more: Mapping[int, str]) -> Columns:
    """The columns of an SWF file, one entry per line that is not a comment: those of `COLUMNS`, and `more`.

    `more` names further fields by their number in the standard minus 1.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    return joined(_parts(source, COLUMNS | dict(more), None))


def usable_lines(fields: Columns) -> UsableLines:
    """Tell the lines that can be simulated from the others, which are counted by reason."""
    requested, used = fields["requested processors"], fields["processors"]
    processors = np.trunc(np.where(requested > 0, requested, used))
    left = np.ones(len(processors), dtype=np.bool_)
    dropped = {}
    for reason, wrong in (
        ("partial execution", ~_is_whole(fields)),
        ("unknown submit time", fields["submit"] < 0),
        ("unknown run time", fields["run time"] < 0),
        ("unknown size", processors < 1),
    ):
        dropped[reason] = int(np.count_nonzero(left & wrong))
        left &= ~wrong
    return UsableLines(left, processors, dropped)


def data_lines(source: TraceFile) -> list[tuple[int, str]]:
    """The lines that hold jobs, with their numbers, without comments."""
    numbered = ((number, line.partition(";")[0]) for number, line in enumerate(source.text().splitlines(), start=1))
    return [(number, line) for number, line in numbered if line and not line.isspace()]


def _parts(source: TraceFile, names: Mapping[int, str], limit: int | None) -> Iterator[Columns]:
    """The fields by name, part by part."""
    return plain_first(
        lambda: _read_plain(source, names, limit),
        lambda: _read_lines(source, names, limit),
        lambda fields: fields["job"][_is_whole(fields)],
    )


def _read_plain(source: TraceFile, names: Mapping[int, str], limit: int | None) -> Iterator[Columns]:
    """Read a file that holds only plain numbers and comments."""
    for part in source.parts():
        table = plain_table(part, sep=r"\s+", comment=";", names=range(FIELDS), nrows=limit, na_filter=False)
        fields = {names[at]: column for at, column in plain_columns(table).items() if at in names}
        if not all((np.abs(column) <= LARGEST).all() for column in fields.values()):
            raise NotPlain
        yield fields
        if limit is not None:
            limit -= len(table)
        if limit == 0:
            return


def _read_lines(source: TraceFile, names: Mapping[int, str], limit: int | None) -> Columns:
    """Read any valid file; an error names the line that is wrong."""
    numbered = data_lines(source)[:limit]
    if not numbered:
        raise BadInput(f"{source.name}: there is no job in it; valid: SWF with {FIELDS} fields per line")
    rows = []
    for number, line in numbered:
        rows.append(line.split())
        if len(rows[-1]) != FIELDS:
            raise BadInput(f"{source.name}: line {number} has {len(rows[-1])} fields; SWF has {FIELDS}")
    fields: Columns = {}
    for at, title in names.items():
        cells = [row[at] for row in rows]
        fields[title] = np.array([number_in(cell) for cell in cells])
        for row in np.flatnonzero(np.isnan(fields[title]))[:1].tolist():
            raise source.error(numbered[row][0], title, f"'{cells[row][:40]}'", "a number")
    valid = f"a number from 0 to {LARGEST:g}, negative where it is unknown"
    for title, column in fields.items():
        for row in np.flatnonzero(np.abs(column) > LARGEST)[:1].tolist():
            raise source.error(numbered[row][0], title, f"{column[row]:g}", valid)
    whole = np.flatnonzero(_is_whole(fields))
    for row in whole[is_repeated(fields["job"][whole])][:1].tolist():
        raise BadInput(
            f"{source.name}: line {numbered[row][0]}: job {fields['job'][row]:g} is there twice; valid: each once"
        )
    return fields


def _is_whole(fields: Columns) -> NDArray[np.bool_]:
    """Of each line: whether it is no partial execution, which repeats the number of the whole job."""
    return ~np.isin(fields["status"], PARTIAL_EXECUTIONS)


def _add(builder: RecordBuilder, fields: Columns) -> None:
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
