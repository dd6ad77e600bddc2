"""The lines of a trace for a site with pools, as columns, and the trace that is made of them.

Times are read in whole microseconds. The trace has them in the longest of seconds, milliseconds and microseconds that
holds all times of the file exactly. Arrival times are multiplied by the load factor afterwards, to that unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
from slurm_sns.sim.traces.pool_trace import ANY_POOL, Flags, PoolTrace, TraceSite
from slurm_sns.sim.traces.trace import counted, half_up, no_job_left

Whole = NDArray[np.int64]
Column = NDArray[np.float64]

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

UNKNOWN = -1

TOO_LARGE_FOR_POOLS = "larger than any node of their pools"


class PoolLines(NamedTuple):
    """Columns with one entry per job. Times are microseconds; the last four are as in `PoolTrace`."""

    identity: Whole
    submit_us: Whole
    run_us: Whole
    cores: Whole
    memory_mb: Whole
    priority: Whole
    limit_us: Whole  #: or UNKNOWN
    pool: Whole
    allowed: Whole
    program: Whole


@dataclass
class Names:
    """The names that the lines of a file use, as numbers: pools, sets of allowed pools, programs.

    Sets and programs are numbered as they appear.
    """

    file: str
    pools: tuple[str, ...]
    sets: dict[tuple[bool, ...], int] = field(default_factory=dict)
    programs: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Number the pools."""
        self._places = {pool: place for place, pool in enumerate(self.pools)}

    def is_pool(self, name: str) -> bool:
        """Whether the site has a pool of this name."""
        return name in self._places

    def are_pools(self, names: str) -> bool:
        """Whether the site has pools of all these names, which are joined by `+`."""
        return all(name.strip() in self._places for name in names.split("+"))

    def pool(self, name: str) -> int:
        """The place of a pool; without a name ANY_POOL."""
        return self._places[name] if name else ANY_POOL

    def allowed(self, names: str) -> int:
        """The number of a set of pools whose names are joined by `+`; without names all pools.

        Raises:
            BadInput: there are too many sets.
        """
        flags = [not names] * len(self.pools)
        for name in names.split("+") if names else ():
            flags[self._places[name.strip()]] = True
        number = self.sets.setdefault(tuple(flags), len(self.sets))
        if number == MOST_SETS:
            raise BadInput(f"{self.file}: more than {MOST_SETS} different sets of allowed pools; valid: fewer")
        return number

    def program(self, name: str) -> int:
        """The number of a program, UNKNOWN without a name."""
        return self.programs.setdefault(name, len(self.programs)) if name else UNKNOWN

    def flags(self) -> Flags:
        """Of each set, which pools are in it."""
        return np.array([*self.sets], dtype=np.bool_).reshape(len(self.sets), len(self.pools))


def microseconds(seconds: Column) -> Whole:
    """The nearest whole microseconds, halves up; times are at most LATEST_S."""
    # Whole seconds apart: a product of all digits with a million would round once more.
    whole = np.floor(seconds)
    return whole.astype(np.int64) * MICROSECONDS + np.floor((seconds - whole) * MICROSECONDS + 0.5).astype(np.int64)


def trace_of(
    lines: PoolLines, names: Names, site: TraceSite, *, load_factor: float, dropped: Mapping[str, int]
) -> tuple[PoolTrace, int]:
    """The trace of the jobs that the site can hold, and how many of them were out of submit order in the file.

    `dropped` counts the lines that are not among these.

    Raises:
        BadInput: no job is left, or the load factor makes times too long.
    """
    fits = _fits(lines, names, site)
    counts = {**dropped, TOO_LARGE_FOR_POOLS: len(fits) - int(np.count_nonzero(fits))}
    if not fits.any():
        raise no_job_left(names.file, counts)
    ticks_per_s = _unit(lines)
    us_per_tick = MICROSECONDS // ticks_per_s
    submit = _scaled(names.file, lines.submit_us // us_per_tick, load_factor, ticks_per_s)
    rows = np.flatnonzero(fits)
    unsorted = int(np.count_nonzero(submit[rows] < np.maximum.accumulate(submit[rows])))
    rows = rows[np.argsort(submit[rows], kind="stable")]
    kept = PoolLines(*(column[rows] for column in lines))
    trace = PoolTrace(
        kept.identity,
        submit[rows],
        kept.run_us // us_per_tick,
        kept.cores.astype(np.int32),
        kept.memory_mb,
        kept.priority.astype(np.int32),
        kept.pool.astype(np.int32),
        kept.allowed.astype(np.int32),
        names.flags(),
        np.where(kept.limit_us == UNKNOWN, UNKNOWN, kept.limit_us // us_per_tick),
        kept.program.astype(np.int32),
        tuple(names.programs),
        ticks_per_s,
        counted(counts),
    )
    return trace, unsorted


def _fits(lines: PoolLines, names: Names, site: TraceSite) -> Flags:
    """Of each job: whether an empty node of its pool, or of one of its allowed pools, holds it."""
    # Jobs of equal size, pool and allowed pools are one case; more than every node has is a size of its own.
    most = site.nodes.capacity.max(axis=1) + 1
    cores, memory_mb = np.minimum(lines.cores, most[CORES]), np.minimum(lines.memory_mb, most[MEMORY])
    _, first, size = np.unique(cores * (most[MEMORY] + 1) + memory_mb, return_index=True, return_inverse=True)
    held = np.stack([_held(site, pool, cores[first], memory_mb[first]) for pool in range(len(site.pools))], axis=1)
    ways = len(site.pools) + 1
    keys = (size * len(names.sets) + lines.allowed) * ways + lines.pool + 1
    _, first, case = np.unique(keys, return_index=True, return_inverse=True)
    pool = lines.pool[first]
    held = held[size[first]]
    in_allowed = (held & names.flags()[lines.allowed[first]]).any(axis=1)
    fits: Flags = np.where(pool == ANY_POOL, in_allowed, held[np.arange(len(pool)), pool])[case]
    return fits


def _held(site: TraceSite, pool: int, cores: Whole, memory_mb: Whole) -> Flags:
    """Of each size: whether an empty node of the pool holds it."""
    capacity = site.nodes.capacity[:, site.pool_of == pool]
    order = np.argsort(capacity[CORES])
    # The largest memory among the nodes with at least so many cores.
    most_mb = np.append(np.maximum.accumulate(capacity[MEMORY][order][::-1])[::-1], -1)
    held: Flags = most_mb[np.searchsorted(capacity[CORES][order], cores)] >= memory_mb
    return held


def _unit(lines: PoolLines) -> int:
    """The ticks of a second: the fewest with which all times are whole."""
    times = (lines.submit_us, lines.run_us, lines.limit_us[lines.limit_us != UNKNOWN])
    return next(unit for unit in UNITS if not any((column % (MICROSECONDS // unit)).any() for column in times))


def _scaled(file: str, submit: Whole, load_factor: float, ticks_per_s: int) -> Whole:
    """Arrival times times the load factor as an exact decimal, rounded half up to whole ticks."""
    if load_factor == 1:
        return submit
    factor = Fraction(repr(load_factor))
    latest = int(submit.max())
    if latest * factor > LATEST_S * ticks_per_s:
        raise BadInput(
            f"{file}: with --load-factor {load_factor:g} jobs are submitted after {LATEST_S:g} s; valid: less"
        )
    if 2 * latest * factor.numerator + factor.denominator < 1 << 62:
        return (2 * submit * factor.numerator + factor.denominator) // (2 * factor.denominator)
    return np.array([half_up(each * factor) for each in submit.tolist()], dtype=np.int64)
