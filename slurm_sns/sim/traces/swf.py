"""Read the Standard Workload Format: 18 fields per job, `;` begins a comment, -1 means unknown.

Real logs hold other negative numbers too, where a clock or a counter went wrong: they count as unknown.

Processors are field 8 (requested), else 5 (used); memory is field 10 (requested), else 7 (used), in KB per processor.
A job of more processors than the largest node has cores becomes a job on n nodes of equal parts.

Source: Feitelson, "Standard Workload Format", version 2.2, Parallel Workloads Archive.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.node_arrays import CORES, NodeArrays
from slurm_sns.sim.trace import SMALLEST_MEMORY_MB, Column, TraceArrays
from slurm_sns.sim.traces.columns import LARGEST, ColumnReader, Columns, NotPlain, is_repeated, number_in, plain_table
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.trace_builder import RecordBuilder

FIELDS = 18
KB_PER_MIB = 1024

#: Our names of the fields that are read, by their number in the standard minus 1.
COLUMNS = {0: "job", 1: "submit", 3: "run time", 4: "processors", 6: "memory", 7: "requested processors"}
COLUMNS |= {9: "requested memory", 10: "status"}
#: The time limit that a job's owner asked for. It is read for `user_estimates` only.
REQUESTED_TIME = {8: "requested time"}

#: Lines with these statuses are partial executions of a job; another line describes the whole job.
PARTIAL_EXECUTIONS = (2, 3, 4)


class SwfReader(ColumnReader):
    """Reads the fields of `names`, which gives our names by their number in the standard minus 1."""

    def __init__(self, source: TraceFile, names: Mapping[int, str], limit: int | None = None) -> None:
        """Nothing is read yet."""
        super().__init__(source, limit)
        self._names = names

    def _identities(self, part: Columns) -> Column:
        # Partial executions repeat the number of the whole job.
        return part["job"][~np.isin(part["status"], PARTIAL_EXECUTIONS)]

    def _plain(self, data: bytes, limit: int | None, _: bool, /) -> Columns:
        table = plain_table(data, {}, sep=r"\s+", comment=";", names=range(FIELDS), nrows=limit, na_filter=False)
        fields = {name: np.asarray(table[at], np.float64) for at, name in self._names.items()}
        if not all((np.abs(column) <= LARGEST).all() for column in fields.values()):
            raise NotPlain
        return fields

    def _lines(self) -> Columns:
        name, numbered = self.source.name, data_lines(self.source)[: self.limit]
        if not numbered:
            raise BadInput(f"{name}: there is no job in it; valid: SWF with {FIELDS} fields per line")
        rows = [line.split() for _, line in numbered]
        for (number, _), row in zip(numbered, rows, strict=True):
            if len(row) != FIELDS:
                raise BadInput(f"{name}: line {number} has {len(row)} fields; SWF has {FIELDS}")
        fields: Columns = {}
        for at, title in self._names.items():
            fields[title] = np.array([number_in(row[at]) for row in rows])
            for wrong in np.flatnonzero(np.isnan(fields[title])).tolist():
                raise self.source.error(numbered[wrong][0], title, f"'{rows[wrong][at][:40]}'", "a number")
        valid = f"a number from 0 to {LARGEST:g}, negative where it is unknown"
        for title, column in fields.items():
            for wrong in np.flatnonzero(np.abs(column) > LARGEST).tolist():
                raise self.source.error(numbered[wrong][0], title, f"{column[wrong]:g}", valid)
        whole = np.flatnonzero(~np.isin(fields["status"], PARTIAL_EXECUTIONS))
        for wrong in whole[is_repeated(fields["job"][whole])].tolist():
            job, line = fields["job"][wrong], numbered[wrong][0]
            raise BadInput(f"{name}: line {line}: job {job:g} is there twice; valid: each once")
        return fields


def data_lines(source: TraceFile) -> list[tuple[int, str]]:
    """The lines that hold jobs, with their numbers, without comments."""
    numbered = ((number, line.partition(";")[0]) for number, line in enumerate(source.text().splitlines(), start=1))
    return [(number, line) for number, line in numbered if line and not line.isspace()]


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
    names = COLUMNS | REQUESTED_TIME if user_estimates else COLUMNS
    for fields in SwfReader(source, names, limit).parts():
        left, processors, dropped = usable_lines(fields)
        builder.dropped.update(dropped)
        memory_kb = np.trunc(np.where(fields["requested memory"] > 0, fields["requested memory"], fields["memory"]))
        processors, memory_kb = processors[left], memory_kb[left]
        nodes = np.ceil(processors / float(node_arrays.capacity[CORES].max()))
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
    return builder.records(source.name)


def read_fields(source: TraceFile, more: Mapping[int, str]) -> Columns:
    """The columns of an SWF file, one entry per line that is not a comment: those of `COLUMNS`, and `more`.

    `more` names further fields by their number in the standard minus 1.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    return SwfReader(source, COLUMNS | dict(more)).table()


def usable_lines(fields: Columns) -> tuple[NDArray[np.bool_], Column, Mapping[str, int]]:
    """Which lines are whole jobs with known times and size, the processors of all, and how many are not, by reason."""
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
    return left, processors, dropped
