"""Read the jobs of a site with pools from SWF, as far as that format can carry them.

Field 16 (partition) is the pool, as its place among the site's pools, counted from 1; a negative number leaves it to
the virtual pool. Field 15 (queue) is the priority, negative: 0. Field 14 (executable) is the program and field 9
(requested time) the time limit, where they are above 0. Every job runs on one node and may run in every pool.
Processors, memory and run times are as in module swf.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from slurm_sns.sim.traces.columns import Columns, Flags
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.pool_lines import LATEST_S, MOST_PRIORITY, UNKNOWN, Names, PoolLines, microseconds
from slurm_sns.sim.traces.pool_trace import ANY_POOL
from slurm_sns.sim.traces.swf import KB_PER_MIB, REQUESTED_TIME, data_lines, read_fields, usable_lines
from slurm_sns.sim.traces.trace import SHORTEST_RUN_S, SMALLEST_MEMORY_MB

#: Our names of the further fields that are read, by their number in the standard minus 1.
MORE = REQUESTED_TIME | {13: "executable", 14: "queue", 15: "partition"}


def read_swf_lines(source: TraceFile, names: Names, *, limit: int | None) -> tuple[PoolLines, Mapping[str, int]]:
    """The jobs with known times and size, and how many lines hold none, by reason; at most `limit` lines count.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    fields = {name: column[:limit] for name, column in read_fields(source, MORE).items()}
    usable, processors, dropped = usable_lines(fields)
    fields = {name: column[usable] for name, column in fields.items()}
    for title, valid, wording in _checks(fields, len(names.pools)):
        for row in np.flatnonzero(~valid)[:1].tolist():
            line, _ = data_lines(source)[np.flatnonzero(usable)[row]]
            raise source.error(line, title, f"{fields[title][row]:.15g}", wording)
    processors = processors[usable]
    requested_kb, used_kb = fields["requested memory"], fields["memory"]
    memory_kb = np.trunc(np.where(requested_kb > 0, requested_kb, used_kb))
    memory_mb = np.maximum(processors * np.ceil(np.maximum(memory_kb, 0) / KB_PER_MIB), SMALLEST_MEMORY_MB)
    limit_s, partition = fields["requested time"], fields["partition"].astype(np.int64)
    executables, program = np.unique(fields["executable"], return_inverse=True)
    programs = [names.program(f"{each:.0f}" if each > 0 else "") for each in executables.tolist()]
    return PoolLines(
        fields["job"].astype(np.int64),
        microseconds(fields["submit"]),
        microseconds(np.maximum(fields["run time"], SHORTEST_RUN_S)),
        processors.astype(np.int64),
        np.minimum(memory_mb, np.iinfo(np.int64).max // 2).astype(np.int64),
        np.maximum(fields["queue"], 0).astype(np.int64),
        np.where(limit_s > 0, microseconds(np.maximum(limit_s, 0)), UNKNOWN),
        np.where(partition < 0, ANY_POOL, partition - 1),
        np.full(len(partition), names.allowed(""), dtype=np.int64),
        np.array(programs, dtype=np.int64)[program],
    ), dropped


def _checks(fields: Columns, pools: int) -> Iterator[tuple[str, Flags, str]]:
    """The fields that are checked: where they are valid, and what is valid."""
    for time in ("submit", "run time", "requested time"):
        yield time, fields[time] <= LATEST_S, f"at most {LATEST_S:g}"
    queue, partition = fields["queue"], fields["partition"]
    yield "queue", (queue <= MOST_PRIORITY) & (queue == np.trunc(queue)), f"a priority up to {MOST_PRIORITY}"
    is_place = (partition != 0) & (partition <= pools) & (partition == np.trunc(partition))
    yield "partition", is_place, f"1 to {pools}, a place in the list of pools, or -1"
