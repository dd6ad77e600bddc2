"""Read a trace for a site with pools: from CSV, or from SWF as far as it can carry one.

The CSV's header is `job_id,submit_s,run_s,cores,mem_gb,pool,priority`, optionally `allowed_pools,limit_s,program`. An
empty pool leaves it to the virtual pool; allowed pools are names joined by `+`, empty for all; an empty limit or
program is unknown. A larger priority is more urgent. 1 GB is 1024 MiB, fractions of a MiB are rounded up; there is no
smallest memory.

In SWF field 16 (partition) is the pool, as its place among the site's pools, counted from 1; a negative number leaves
it to the virtual pool. Field 15 (queue) is the priority, negative: 0. Field 14 (executable) is the program and field 9
(requested time) the time limit, where they are above 0. Every job runs on one node and may run in every pool.
Processors, memory and run times are as in module swf.

Times are read in whole microseconds. The trace has them in the longest of seconds, milliseconds and microseconds that
holds all times of the file exactly. Arrival times are multiplied by the load factor afterwards, to that unit.

Source: Cost-based dynamic job rescheduling (2010), section 2.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
from slurm_sns.sim.trace import (
    ANY_POOL,
    SHORTEST_RUN_S,
    SMALLEST_MEMORY_MB,
    UNKNOWN,
    Column,
    Flags,
    TraceArrays,
)
from slurm_sns.sim.traces.columns import Columns, CsvReader, Distinct, Number, Text
from slurm_sns.sim.traces.files import TraceFile, header_of
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB, TraceSite
from slurm_sns.sim.traces.sacct_trace import header_of_sacct
from slurm_sns.sim.traces.swf import KB_PER_MIB, REQUESTED_TIME, data_lines, read_fields, usable_lines

Integers = NDArray[np.integer]
Whole = NDArray[np.int64]

MICROSECONDS = 1_000_000
#: The units of time in a trace, by how many a second has.
UNITS = (1, 1_000, MICROSECONDS)
#: 126 years, the limit of the compiled replays: a float still holds such times to the microsecond.
LATEST_S = 4e9
#: Shorter times would round to nothing.
SHORTEST_S = 1 / MICROSECONDS
#: What a site's users could tell apart is far below.
MOST_PRIORITY = 1_000
#: Each has a flag for every pool of the site.
MOST_SETS = 10_000

TOO_LARGE_FOR_POOLS = "larger than any node of their pools"

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
#: Our names of the further fields of SWF that are read, by their number in the standard minus 1.
MORE = REQUESTED_TIME | {13: "executable", 14: "queue", 15: "partition"}

#: Columns of small numbers, where a site can hold the job.
SMALL = ("cores", "priority", "pool", "allowed", "program")

#: How many pools, and how many letters of a cell, an error shows.
MOST_LISTED, MOST_LETTERS = 20, 40


def read_pool_trace(name: str, site: TraceSite, *, load_factor: float = 1.0, limit: int | None = None) -> TraceArrays:
    """The jobs of the file `name` (`-`: SWF on standard input) that the site can hold.

    `load_factor` multiplies arrival times. With a `limit` only so many jobs from the beginning of the file are taken.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    source = TraceFile.of(name)
    if header_of_sacct(source):
        raise BadInput(f"{name}: a dump of sacct has no pools; valid with rescheduling: CSV, SWF")
    jobs = (_of_csv if source.is_csv else _of_swf)(source, site, limit)
    fits, ticks_per_s = _fits(jobs, site), _unit(jobs)
    us_per_tick = MICROSECONDS // ticks_per_s
    times = {column: getattr(jobs, column) // us_per_tick for column in ("submit", "run", "limit")}
    jobs = replace(jobs, ticks_per_s=ticks_per_s, **times).at_load(load_factor, LATEST_S, name)
    jobs = jobs.that_fit(fits, name, TOO_LARGE_FOR_POOLS).in_order()
    return replace(jobs, **{column: getattr(jobs, column).astype(np.int32) for column in SMALL})


def has_pools(name: str) -> bool:
    """Whether the file is a CSV of jobs for pools."""
    return "pool" in header_of(name)


def microseconds(seconds: Column) -> Whole:
    """The nearest whole microseconds, halves up; times are at most LATEST_S."""
    # Whole seconds apart: a product of all digits with a million would round once more.
    whole = np.floor(seconds)
    return whole.astype(np.int64) * MICROSECONDS + np.floor((seconds - whole) * MICROSECONDS + 0.5).astype(np.int64)


# --- all jobs of a file in its order, with times in microseconds


def _of_csv(source: TraceFile, site: TraceSite, limit: int | None) -> TraceArrays:
    """The jobs of a CSV file; with a `limit` only that many from its beginning.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    places = {pool: place for place, pool in enumerate(site.pools)}
    listed = ", ".join(site.pools[:MOST_LISTED]) + (", ..." if len(site.pools) > MOST_LISTED else "")

    def are_pools(names: str) -> bool:
        return all(name.strip() in places for name in names.split("+"))

    texts = (
        Text("pool", places.__contains__, f"empty, or a pool of the nodes: {listed}", empty=True),
        Text("allowed_pools", are_pools, f"empty, or pools of the nodes joined by '+': {listed}", empty=True),
        Text("program", empty=True),
    )
    reader = CsvReader(source, HEADER, (*NUMBERS, *texts), limit)
    table = reader.table()
    count = len(table["job_id"])
    # Sets of pools are numbered as they appear.
    sets: dict[tuple[bool, ...], int] = {}
    programs: dict[str, int] = {}

    def allowed(names: str) -> int:
        among = {places[name.strip()] for name in names.split("+")} if names else set(places.values())
        number = sets.setdefault(tuple(place in among for place in places.values()), len(sets))
        if number == MOST_SETS:
            raise BadInput(f"{source.name}: more than {MOST_SETS} different sets of allowed pools; valid: fewer")
        return number

    def numbered(column: str, number: Callable[[str], int]) -> Whole:
        """The numbers of the names in a column; a column that is not there is empty."""
        if column not in table:
            return np.full(count, number(""), np.int64)
        return np.array([number(text) for text in reader.texts(column)], np.int64)[table[column]]

    limit_s = table.get("limit_s", np.full(count, np.nan))
    jobs = TraceArrays(
        identity=table["job_id"].astype(np.int64),
        submit=microseconds(table["submit_s"]),
        run=microseconds(table["run_s"]),
        cores=table["cores"].astype(np.int64),
        memory=np.ceil(table["mem_gb"] * MIB_PER_GB).astype(np.int64),
        priority=table["priority"].astype(np.int64),
        pool=numbered("pool", lambda name: places[name] if name else ANY_POOL),
        allowed=numbered("allowed_pools", allowed),
        allowed_sets=np.array([*sets], dtype=np.bool_),
        limit=microseconds(np.nan_to_num(limit_s)),
        program=numbered("program", partial(_program, programs)),
        programs=tuple(programs),
        ticks_per_s=MICROSECONDS,
    )
    wrong = (jobs.pool != ANY_POOL) & ~jobs.allowed_sets[jobs.allowed, jobs.pool]
    if wrong.any():
        row = int(np.argmax(wrong))
        pool, own = (reader.listed(column, table)[row] for column in ("pool", "allowed_pools"))
        raise reader.error(row, "pool", pool, f"one of its allowed_pools, {own[:MOST_LETTERS]}")
    return jobs


def _program(known: dict[str, int], name: str) -> int:
    """The number of a program, UNKNOWN without a name; programs are numbered as they appear."""
    return known.setdefault(name, len(known)) if name else UNKNOWN


def _of_swf(source: TraceFile, site: TraceSite, limit: int | None) -> TraceArrays:
    """The jobs of an SWF file with known times and size; at most `limit` lines count.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    fields = {name: column[:limit] for name, column in read_fields(source, MORE).items()}
    usable, processors, dropped = usable_lines(fields)
    fields = {name: column[usable] for name, column in fields.items()}
    for title, valid, wording in _checks(fields, len(site.pools)):
        for row in np.flatnonzero(~valid)[:1].tolist():
            line, _ = data_lines(source)[np.flatnonzero(usable)[row]]
            raise source.error(line, title, f"{fields[title][row]:.15g}", wording)
    processors = processors[usable]
    requested_kb, used_kb = fields["requested memory"], fields["memory"]
    memory_kb = np.trunc(np.where(requested_kb > 0, requested_kb, used_kb))
    memory_mb = np.maximum(processors * np.ceil(np.maximum(memory_kb, 0) / KB_PER_MIB), SMALLEST_MEMORY_MB)
    limit_s, partition = fields["requested time"], fields["partition"].astype(np.int64)
    executables, program = np.unique(fields["executable"], return_inverse=True)
    programs: dict[str, int] = {}
    numbers = [_program(programs, f"{each:.0f}" if each > 0 else "") for each in executables.tolist()]
    return TraceArrays(
        identity=fields["job"].astype(np.int64),
        submit=microseconds(fields["submit"]),
        run=microseconds(np.maximum(fields["run time"], SHORTEST_RUN_S)),
        cores=processors.astype(np.int64),
        memory=np.minimum(memory_mb, np.iinfo(np.int64).max // 2).astype(np.int64),
        priority=np.maximum(fields["queue"], 0).astype(np.int64),
        pool=np.where(partition < 0, ANY_POOL, partition - 1),
        allowed=np.zeros(len(partition), np.int64),
        allowed_sets=np.ones((1, len(site.pools)), np.bool_),
        limit=microseconds(np.maximum(limit_s, 0)),
        program=np.array(numbers, np.int64)[program],
        programs=tuple(programs),
        ticks_per_s=MICROSECONDS,
        dropped=dict(dropped),
    )


def _checks(fields: Columns, pools: int) -> Iterator[tuple[str, Flags, str]]:
    """The fields that are checked: where they are valid, and what is valid."""
    for time in ("submit", "run time", "requested time"):
        yield time, fields[time] <= LATEST_S, f"at most {LATEST_S:g}"
    queue, partition = fields["queue"], fields["partition"]
    yield "queue", (queue <= MOST_PRIORITY) & (queue == np.trunc(queue)), f"a priority up to {MOST_PRIORITY}"
    is_place = (partition != 0) & (partition <= pools) & (partition == np.trunc(partition))
    yield "partition", is_place, f"1 to {pools}, a place in the list of pools, or -1"


# --- what a site can hold, and in which unit of time


def _fits(jobs: TraceArrays, site: TraceSite) -> Flags:
    """Of each job: whether an empty node of its pool, or of one of its allowed pools, holds it."""
    # Jobs of equal size, pool and allowed pools are one case; more than every node has is a size of its own.
    most = site.nodes.capacity.max(axis=1) + 1
    cores, memory_mb = np.minimum(jobs.cores, most[CORES]), np.minimum(jobs.memory, most[MEMORY])
    _, first, size = np.unique(cores * (most[MEMORY] + 1) + memory_mb, return_index=True, return_inverse=True)
    held = np.stack([_held(site, pool, cores[first], memory_mb[first]) for pool in range(len(site.pools))], axis=1)
    ways = len(site.pools) + 1
    keys = (size * len(jobs.allowed_sets) + jobs.allowed) * ways + jobs.pool + 1
    _, first, case = np.unique(keys, return_index=True, return_inverse=True)
    pool = jobs.pool[first]
    held = held[size[first]]
    in_allowed = (held & jobs.allowed_sets[jobs.allowed[first]]).any(axis=1)
    fits: Flags = np.where(pool == ANY_POOL, in_allowed, held[np.arange(len(pool)), pool])[case]
    return fits


def _held(site: TraceSite, pool: int, cores: Integers, memory_mb: Integers) -> Flags:
    """Of each size: whether an empty node of the pool holds it."""
    capacity = site.nodes.capacity[:, site.pool_of == pool]
    order = np.argsort(capacity[CORES])
    # The largest memory among the nodes with at least so many cores.
    most_mb = np.append(np.maximum.accumulate(capacity[MEMORY][order][::-1])[::-1], -1)
    held: Flags = most_mb[np.searchsorted(capacity[CORES][order], cores)] >= memory_mb
    return held


def _unit(jobs: TraceArrays) -> int:
    """The ticks of a second: the fewest with which all times are whole."""
    times = (jobs.submit, jobs.run, jobs.limit)
    return next(unit for unit in UNITS if not any((column % (MICROSECONDS // unit)).any() for column in times))
