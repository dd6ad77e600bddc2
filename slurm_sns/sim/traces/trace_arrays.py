"""A trace: the jobs that a simulation submits, and how many of the file's jobs were left out, by reason.

A replay has it as arrays: what it needs of each job, in 36 bytes (44 with time limits), and the few kinds of jobs. The
event engine has it as values.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Resources, Seconds
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays, fits_ever

Integers = NDArray[np.int64]
Column = NDArray[np.float64]
#: Seconds: integers, or floats where some are no whole ones.
Moments = NDArray[Any]

#: (nodes, cores, memory in MiB on each, own heuristic or "")
Kind = tuple[int, int, int, str]
Alternatives = tuple[Alternative, ...]

#: Shorter run times and smaller requests count as this much, as in the authors' simulator.
SHORTEST_RUN_S = 1
SMALLEST_MEMORY_MB = 1024

TOO_LARGE = "larger than any nodes"


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


@dataclass(frozen=True)
class TraceArrays:
    """The jobs by submit second, those of one second in the order of the file.

    `kind` and `project` are positions in `kinds` and `projects` (which are in the order of their names). `unsorted`:
    how many jobs of the file were submitted earlier than a job on a line above. `limit_s` are the time limits that the
    owners asked for, 0 where there is none; None if they were not read.

    `given_choices` are the alternatives that a policy gave to the jobs of each kind, best first, and `run_s_in` the run
    times in each of them, shape (alternatives, jobs). None: one alternative, the job's own size, and the same run time
    in all. `allowed` are the names of the nodes that the jobs of each kind may use, None for all.
    """

    identity: Integers
    submit_s: Moments
    run_s: Moments
    kind: NDArray[np.int32]
    project: NDArray[np.int32]
    kinds: Sequence[Kind]
    projects: Sequence[str]
    dropped: dict[str, int]
    unsorted: int = 0
    limit_s: Moments | None = None
    given_choices: Sequence[Alternatives] | None = None
    run_s_in: Moments | None = None
    allowed: Sequence[frozenset[str] | None] | None = None

    def __len__(self) -> int:
        return len(self.identity)

    @cached_property
    def choices(self) -> Sequence[Alternatives]:
        """The alternatives of the jobs of each kind, best first."""
        if self.given_choices is not None:
            return self.given_choices
        return [(Alternative(nodes, Resources(cores, memory_mb)),) for nodes, cores, memory_mb, _ in self.kinds]

    @cached_property
    def run_s_by_choice(self) -> Moments:
        """The run times in each alternative, shape (alternatives, jobs)."""
        if self.run_s_in is not None:
            return self.run_s_in
        most = max(map(len, self.choices))
        return self.run_s[np.newaxis] if most == 1 else np.tile(self.run_s, (most, 1))

    @property
    def expected_s(self) -> Moments:
        """How long each job is expected to run in an alternative of slowdown 1, 0 where nothing is known.

        Until its time limit; if the limits were not read, its run time is known beforehand.
        """
        return self.run_s if self.limit_s is None else self.limit_s

    def trace(self) -> Trace:
        """The trace as values, for the event engine."""
        alternatives, expected = self.choices, self.expected_s
        allowed = self.allowed or [None] * len(self.kinds)
        columns = (self.identity, self.submit_s, self.run_s, self.kind, self.project, expected)
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
        return Trace(jobs, self.dropped)


@dataclass
class RecordBuilder:
    """Collects the jobs of one trace, part by part."""

    node_arrays: NodeArrays
    load_factor: float

    def __post_init__(self) -> None:
        """Start without jobs."""
        self.dropped: Counter[str] = Counter()
        self._kinds: dict[Kind, int] = {}
        self._parts: list[tuple[NDArray[Any], ...]] = []
        self._projects: dict[str, int] = {}
        self.jobs = 0

    def add(
        self,
        *,
        identity: Column,
        submit_s: Column,
        run_s: Column,
        nodes: Column,
        cores: Column,
        memory_mb: Column,
        project: Sequence[str] | None = None,
        heuristic: Sequence[str] | None = None,
        limit_s: Column | None = None,
    ) -> None:
        """Add jobs with known times and sizes; those that the nodes could never hold are dropped.

        `limit_s` is given for all parts of a trace or for none; a limit that is not above 0 is unknown.
        """
        rows = np.stack([nodes, cores, np.maximum(memory_mb, SMALLEST_MEMORY_MB)], axis=1).astype(np.int64)
        shapes, of_row = _distinct(rows)
        kept = self._possible(shapes)[of_row]
        self.jobs += len(kept)
        self.dropped[TOO_LARGE] += int(len(kept) - np.count_nonzero(kept))
        if heuristic is not None:
            heuristic = list(compress(heuristic, kept))
        if project is not None:
            project = list(compress(project, kept))
        self._parts.append(
            (
                identity[kept].astype(np.int64),
                arrivals(submit_s[kept], self.load_factor),
                _whole_seconds(run_s[kept]),
                self._number(shapes, of_row[kept], heuristic),
                self._project_numbers(project, int(np.count_nonzero(kept))),
                *([] if limit_s is None else [np.where(limit_s[kept] > 0, _whole_seconds(limit_s[kept]), 0)]),
            )
        )

    def records(self, name: str) -> TraceArrays:
        """All jobs, by submit second.

        Raises:
            BadInput: no job is left.
        """
        columns = [np.concatenate(parts) for parts in zip(*self._parts, strict=True)] if self._parts else []
        dropped = counted(self.dropped)
        if not columns or not len(columns[0]):
            raise no_job_left(name, dropped)
        self._parts.clear()
        submit_s = columns[1]
        unsorted = int(np.count_nonzero(submit_s < np.maximum.accumulate(submit_s)))
        if unsorted:
            order = np.argsort(submit_s, kind="stable")
            columns = [column[order] for column in columns]
        names = sorted(self._projects) or [""]
        if len(names) > 1:
            by_name = {project: number for number, project in enumerate(names)}
            columns[4] = np.array([by_name[project] for project in self._projects], dtype=np.int32)[columns[4]]
        identity, submit_s, run_s, kind, project = columns[:5]
        limit_s = columns[5] if len(columns) > 5 else None
        kinds = list(self._kinds)
        return TraceArrays(identity, submit_s, run_s, kind, project, kinds, names, dropped, unsorted, limit_s)

    def _number(self, shapes: Integers, of_row: Integers, heuristic: Iterable[str] | None) -> NDArray[np.int32]:
        """The kind of each job, as its position; new kinds are appended."""
        listed: list[tuple[int, int, int]] = [(int(n), int(c), int(m)) for n, c, m in shapes]
        if heuristic is not None:
            pairs = zip(of_row.tolist(), heuristic, strict=True)
            numbers = [self._kinds.setdefault((*listed[shape], own), len(self._kinds)) for shape, own in pairs]
            return np.array(numbers, dtype=np.int32)
        used = np.flatnonzero(np.bincount(of_row, minlength=len(listed)))
        kind = np.empty(len(listed), dtype=np.int32)
        kind[used] = [self._kinds.setdefault((*listed[shape], ""), len(self._kinds)) for shape in used.tolist()]
        return kind[of_row]

    def _possible(self, shapes: Integers) -> NDArray[np.bool_]:
        """Whether enough nodes are large enough for each shape when they are empty."""
        sizes, counts = np.unique(self.node_arrays.capacity[[CORES, MEMORY]], axis=1, return_counts=True)
        large = np.zeros(len(shapes), dtype=np.int64)
        for (cores, memory_mb), count in zip(sizes.T.tolist(), counts.tolist(), strict=True):
            large += count * ((shapes[:, 1] <= cores) & (shapes[:, 2] <= memory_mb))
        possible: NDArray[np.bool_] = large >= shapes[:, 0]
        return possible

    def _project_numbers(self, project: Sequence[str] | None, count: int) -> NDArray[np.int32]:
        if project is None:
            self._projects.setdefault("", 0)
            return np.zeros(count, dtype=np.int32)
        return np.array([self._projects.setdefault(each, len(self._projects)) for each in project], dtype=np.int32)


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
        np.array(kind, np.int32),
        np.array([numbers[each.job.project] for each in trace.jobs], np.int32),
        [(first.nodes, first.demand.cores, first.demand.memory_mb, own) for (first, *_), _, own in kinds],
        projects,
        trace.dropped,
        limit_s=np.array([each.job.expected_run_s or 0 for each in trace.jobs]),
        given_choices=[alternatives for alternatives, _, _ in kinds],
        allowed=[allowed for _, allowed, _ in kinds],
    )


def of_kinds(
    name: str,
    node_arrays: NodeArrays,
    choices: Sequence[Alternatives],
    kind: NDArray[np.int32],
    *,
    identity: Integers,
    submit_s: Column,
    run_s: Column,
    run_factors: Sequence[Sequence[float]],
    load_factor: float,
    dropped: Counter[str],
) -> TraceArrays:
    """A trace of jobs whose alternatives are known by kind; `kind` is each job's position in `choices`.

    `run_factors` says of each alternative by how much the run time differs from `run_s`. Jobs whose first alternative
    the nodes could never hold are dropped.

    Raises:
        BadInput: no job is left.
    """
    possible = np.array([fits_ever(node_arrays, first) for first, *_ in choices], np.bool_)
    kept = possible[kind] if len(kind) else np.zeros(0, np.bool_)
    dropped[TOO_LARGE] += int(len(kept) - np.count_nonzero(kept))
    if not kept.any():
        raise no_job_left(name, dropped)
    arrived_s = arrivals(submit_s, load_factor)
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(arrived_s[rows], kind="stable")]
    kind, run_s = kind[rows], run_s[rows]
    most = max(map(len, choices))
    factors = np.array([[*of_kind, *[of_kind[-1]] * (most - len(of_kind))] for of_kind in run_factors]).T
    return TraceArrays(
        identity[rows],
        arrived_s[rows],
        _whole_seconds(run_s),
        kind,
        np.zeros(len(rows), np.int32),
        [(first.nodes, first.demand.cores, first.demand.memory_mb, "") for first, *_ in choices],
        [""],
        counted(dropped),
        given_choices=choices,
        run_s_in=np.ascontiguousarray(_whole_seconds(run_s * factors[:, kind])),
    )


def _whole_seconds(seconds: Column) -> Integers:
    """Durations rounded half up to whole seconds, at least the shortest run."""
    return np.maximum(np.floor(seconds + 0.5), SHORTEST_RUN_S).astype(np.int64)


def _distinct(rows: Integers) -> tuple[Integers, Integers]:
    """The distinct rows, and for each row its index among them."""
    # One number for each row, by a hash: sorting 64-bit numbers takes a fifth of the time of sorting rows.
    factors = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
    with np.errstate(over="ignore"):
        hashed = (rows.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    _, first, of_row = np.unique(hashed, return_index=True, return_inverse=True)
    if (rows[first][of_row] == rows).all():
        return rows[first], of_row
    shapes, of_row = np.unique(rows, axis=0, return_inverse=True)
    return shapes, of_row.ravel()


def arrivals(submit_s: Column | NDArray[np.integer], load_factor: float) -> Integers:
    """Arrival times times the load factor (the paper's beta) as an exact decimal, rounded half up to whole numbers."""
    if load_factor == 1:
        return np.floor(submit_s + 0.5).astype(np.int64)
    factor = Fraction(repr(load_factor))
    largest = 2 * int(np.max(submit_s, initial=0)) * factor.numerator + factor.denominator
    if largest < 1 << 62 and (submit_s == np.floor(submit_s)).all():
        doubled = 2 * submit_s.astype(np.int64) * factor.numerator + factor.denominator
        return doubled // (2 * factor.denominator)
    return np.array([half_up(Fraction(each) * factor) for each in submit_s.tolist()], dtype=np.int64)


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
