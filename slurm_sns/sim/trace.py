"""A trace: the jobs that a simulation submits, and how many of the file's jobs were left out, by reason.

A reader makes it as arrays, one class for all policies: the columns that every trace has, and those that the policy's
replay needs. The event engine has it as values.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Resources, Seconds

Integers = NDArray[np.int64]
Column = NDArray[np.float64]
Flags = NDArray[np.bool_]
#: Moments and durations: integers, or floats where some are no whole ones.
Moments = NDArray[Any]

#: (nodes, cores, memory in MiB on each, own heuristic or "")
Kind = tuple[int, int, int, str]
Alternatives = tuple[Alternative, ...]

#: Shorter run times and smaller requests count as this much, as in the authors' simulator.
SHORTEST_RUN_S = 1
SMALLEST_MEMORY_MB = 1024
#: Decimals of arrival times that are no whole numbers.
MICROSECOND = 6

TOO_LARGE = "larger than any nodes"
#: The pool of a job that leaves it to the virtual pool.
ANY_POOL = -1
#: A program that is not known.
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace and how long it runs once it is started."""

    job: Job
    run_s: Seconds


@dataclass(frozen=True)
class Trace:
    """The jobs by submit second, those of one second in the order of the file."""

    jobs: tuple[TraceJob, ...]
    dropped: dict[str, int]


def no_column() -> NDArray[Any]:
    """A column that a reader does not fill."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class TraceArrays:
    """The jobs by submit, those of one moment in the order of the file (with tasks: by number), as columns by job.

    `submit`, `run` and `limit` are in ticks, of which a second has `ticks_per_s`. `limit` is the time limit that the
    owner asked for, 0 where there is none. `dropped` counts the jobs of the file that were left out, by reason, and
    `unsorted` those that were submitted earlier than a job on a line above.

    A column that the reader does not fill is empty. By reader:

    - jobs of whole cores (`swf`, `read_trace`, `slurm_events`, `program_trace`): `kind` and `project`, positions in
      `kinds` and `projects` (which are in the order of their names); 36 bytes for a job, 44 with limits.
      `given_choices` are the alternatives that a policy gave to the jobs of each kind, best first, and `run_in` the run
      times in each of them, shape (alternatives, jobs). None: one alternative, the job's own size; `run` in all.
      `allowed_nodes` are the names of the nodes that the jobs of each kind may use, None for all. `priority` is
      Slurm's, the larger, the earlier; a CSV may have it (`read_trace`), and the policy slurm alone uses it.
      `recorded_start` is when the job truly started, and `partition` a position in `partitions`, which are in the order
      of their names: where a reader was asked for what was recorded (`sacct_trace`).
    - tasks with fluid needs (`fluid_trace`): the number of `tasks`, and the `cores` and the `memory` that each needs,
      in the units of the nodes' capacity: cores and MiB, or parts of a node. `run` is that with all of the CPU need.
    - jobs of pools (`pool_trace`), each on one node: `cores`, `memory` in MiB, and `priority`. `pool` is the pool that
      the job names, as a place in the site's pools, or ANY_POOL, and `allowed` a row of `allowed_sets`, shape (sets,
      pools): where it may run. `program` is a place in `programs`, or UNKNOWN.
    """

    identity: NDArray[np.integer]
    submit: Moments
    run: Moments
    _: KW_ONLY
    limit: Moments = field(default_factory=no_column)
    dropped: Mapping[str, int] = field(default_factory=dict)
    unsorted: int = 0
    ticks_per_s: int = 1

    kind: NDArray[np.int32] = field(default_factory=no_column)
    kinds: Sequence[Kind] = ()
    project: NDArray[np.int32] = field(default_factory=no_column)
    projects: Sequence[str] = ()
    given_choices: Sequence[Alternatives] | None = None
    run_in: Moments | None = None
    allowed_nodes: Sequence[frozenset[str] | None] | None = None
    recorded_start: Moments = field(default_factory=no_column)
    partition: NDArray[np.int32] = field(default_factory=no_column)
    partitions: Sequence[str] = ()

    tasks: NDArray[np.integer] = field(default_factory=no_column)
    cores: NDArray[np.integer] = field(default_factory=no_column)
    memory: NDArray[np.integer] = field(default_factory=no_column)

    priority: NDArray[np.integer] = field(default_factory=no_column)
    pool: NDArray[np.integer] = field(default_factory=no_column)
    allowed: NDArray[np.integer] = field(default_factory=no_column)
    allowed_sets: Flags = field(default_factory=no_column)
    program: NDArray[np.integer] = field(default_factory=no_column)
    programs: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.identity)

    # --- times

    def seconds(self, ticks: Moments) -> Column:
        """These times of the trace in seconds."""
        return np.asarray(ticks, np.float64) / self.ticks_per_s

    @property
    def submit_s(self) -> Moments:
        """Submits in seconds; integers where a tick is a second and all are whole."""
        return self.submit if self.ticks_per_s == 1 else self.seconds(self.submit)

    @property
    def run_s(self) -> Moments:
        """Run times in the same way."""
        return self.run if self.ticks_per_s == 1 else self.seconds(self.run)

    @property
    def expected(self) -> Moments:
        """How long each job is expected to run in an alternative of slowdown 1, 0 where nothing is known.

        Until its time limit; if the limits were not read, its run time is known beforehand.
        """
        return self.limit if len(self.limit) else self.run

    # --- what jobs of whole cores may have

    @cached_property
    def choices(self) -> Sequence[Alternatives]:
        """The alternatives of the jobs of each kind, best first."""
        if self.given_choices is not None:
            return self.given_choices
        return [(Alternative(nodes, Resources(cores, memory_mb)),) for nodes, cores, memory_mb, _ in self.kinds]

    @cached_property
    def run_by_choice(self) -> Moments:
        """The run times in each alternative, shape (alternatives, jobs)."""
        if self.run_in is not None:
            return np.ascontiguousarray(self.run_in)  # a selection of jobs is not
        most = max(map(len, self.choices))
        return self.run[np.newaxis] if most == 1 else np.tile(self.run, (most, 1))

    # --- some of the jobs, in another order, at another load

    def only(self, rows: NDArray[np.intp] | Flags | slice) -> "TraceArrays":
        """The jobs of these rows."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        changed = {name: column[rows] for name, column in columns.items() if len(column)}
        return replace(self, **changed, run_in=None if self.run_in is None else self.run_in[:, rows])

    def that_fit(self, fits: Flags, name: str, reason: str = TOO_LARGE) -> "TraceArrays":
        """The jobs that fit; the others are counted as dropped for this reason. `name` stands for the trace.

        Raises:
            BadInput: no job is left.
        """
        left_out = len(fits) - int(np.count_nonzero(fits))
        dropped = counted({**self.dropped, reason: self.dropped.get(reason, 0) + left_out})
        if left_out == len(fits):
            raise no_job_left(name, dropped)
        return replace(self.only(fits) if left_out else self, dropped=dropped)

    def in_order(self, *, by_number: bool = False) -> "TraceArrays":
        """The jobs by submit, those of one moment as they are, or by their numbers; the unsorted ones are counted."""
        unsorted = int(np.count_nonzero(self.submit < np.maximum.accumulate(self.submit)))
        if by_number:
            return replace(self.only(np.lexsort((self.identity, self.submit))), unsorted=self.unsorted + unsorted)
        if not unsorted:
            return self
        return replace(self.only(np.argsort(self.submit, kind="stable")), unsorted=self.unsorted + unsorted)

    def at_load(self, load_factor: float, latest_s: float, name: str) -> "TraceArrays":
        """The trace with arrival times multiplied by the load factor. `name` stands for it.

        Raises:
            BadInput: jobs would be submitted after `latest_s`.
        """
        if load_factor == 1:
            return self
        if Fraction(self.submit.max().item()) * Fraction(repr(load_factor)) > latest_s * self.ticks_per_s:
            raise BadInput(
                f"{name}: with --load-factor {load_factor:g} jobs are submitted after {latest_s:g} s; valid: less"
            )
        return replace(self, submit=arrivals(self.submit, load_factor, whole=self.submit.dtype.kind == "i"))

    # --- values

    def values(self) -> Trace:
        """Jobs of whole cores as values, for the event engine."""
        alternatives, expected = self.choices, self.expected
        allowed = self.allowed_nodes or [None] * len(self.kinds)
        columns = (self.identity, self.submit, self.run, self.kind, self.project, expected)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        jobs = tuple(
            TraceJob(
                Job(
                    id=identity,
                    submit_s=submit_s,
                    alternatives=alternatives[kind],
                    order=(submit_s,),
                    project=self.projects[project],
                    heuristic=self.kinds[kind][3] or None,
                    allowed=allowed[kind],
                    expected_run_s=expected_run_s or None,
                ),
                run_s,
            )
            for identity, submit_s, run_s, kind, project, expected_run_s in rows
        )
        return Trace(jobs, dict(self.dropped))


#: The columns with an entry for each job, if they are filled.
COLUMNS = (
    *("identity", "submit", "run", "limit", "kind", "project", "tasks", "cores", "memory"),
    *("priority", "pool", "allowed", "program", "recorded_start", "partition"),
)


def of_values(trace: Trace) -> TraceArrays:
    """The arrays of a trace of values, whose jobs are in the order of their submits."""
    kinds: dict[tuple[Alternatives, frozenset[str] | None, str], int] = {}
    kind = [
        kinds.setdefault((each.job.alternatives, each.job.allowed, each.job.heuristic or ""), len(kinds))
        for each in trace.jobs
    ]
    projects = sorted({each.job.project for each in trace.jobs})
    numbers = {project: number for number, project in enumerate(projects)}
    return TraceArrays(
        np.array([each.job.id for each in trace.jobs], np.int64),
        np.array([each.job.submit_s for each in trace.jobs]),
        np.array([each.run_s for each in trace.jobs]),
        kind=np.array(kind, np.int32),
        project=np.array([numbers[each.job.project] for each in trace.jobs], np.int32),
        kinds=[(first.nodes, first.demand.cores, first.demand.memory_mb, own) for (first, *_), _, own in kinds],
        projects=projects,
        dropped=trace.dropped,
        limit=np.array([each.job.expected_run_s or 0 for each in trace.jobs]),
        given_choices=[alternatives for alternatives, _, _ in kinds],
        allowed_nodes=[allowed for _, allowed, _ in kinds],
    )


def arrivals(submit: Moments, load_factor: float, *, whole: bool = True) -> Moments:
    """Arrival times times the load factor (the paper's beta) as an exact decimal.

    Rounded half up to `whole` numbers, otherwise to microseconds.
    """
    factor = Fraction(repr(load_factor))
    if not whole:
        return np.array([round(float(Fraction(each) * factor), MICROSECOND) for each in submit.tolist()])
    if load_factor == 1:
        return np.floor(submit + 0.5).astype(np.int64)
    largest = 2 * int(np.max(submit, initial=0)) * factor.numerator + factor.denominator
    if largest < 1 << 62 and (submit == np.floor(submit)).all():
        doubled: Moments = 2 * submit.astype(np.int64) * factor.numerator + factor.denominator
        return doubled // (2 * factor.denominator)
    return np.array([half_up(Fraction(each) * factor) for each in submit.tolist()], dtype=np.int64)


def counted(dropped: Mapping[str, int]) -> dict[str, int]:
    """The reasons for which jobs were left out, in the order of their words, without those that never came up."""
    return {reason: count for reason, count in sorted(dropped.items()) if count}


def no_job_left(name: str, dropped: Mapping[str, int]) -> BadInput:
    """The error of a trace without a job that these nodes can hold."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in counted(dropped).items()) or "it has none"
    return BadInput(f"{name}: no job can run on these nodes: {reasons}")


def half_up(seconds: float | Fraction) -> int:
    """Rounded to whole seconds, halves up."""
    return math.floor(seconds + Fraction(1, 2)) if isinstance(seconds, Fraction) else math.floor(seconds + 0.5)
