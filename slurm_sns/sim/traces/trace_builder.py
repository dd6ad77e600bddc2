"""Make a trace of jobs of whole cores from parts of a file, or from jobs whose alternatives are known.

Jobs that the nodes could never hold are left out. Times are rounded half up to whole seconds.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays, fits_ever
from slurm_sns.sim.trace import (
    SHORTEST_RUN_S,
    SMALLEST_MEMORY_MB,
    TOO_LARGE,
    Alternatives,
    Column,
    Integers,
    Kind,
    TraceArrays,
    arrivals,
    counted,
    no_column,
    no_job_left,
)


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
        names = sorted(self._projects) or [""]
        if len(names) > 1:
            by_name = {project: number for number, project in enumerate(names)}
            columns[4] = np.array([by_name[project] for project in self._projects], dtype=np.int32)[columns[4]]
        identity, submit, run, kind, project, *limit = columns
        return TraceArrays(
            identity,
            submit,
            run,
            limit=limit[0] if limit else no_column(),
            dropped=dropped,
            kind=kind,
            kinds=list(self._kinds),
            project=project,
            projects=names,
        ).in_order()

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
    if not len(kind):
        raise no_job_left(name, dropped)
    possible = np.array([fits_ever(node_arrays, first) for first, *_ in choices], np.bool_)
    most = max(map(len, choices))
    factors = np.array([[*of_kind, *[of_kind[-1]] * (most - len(of_kind))] for of_kind in run_factors]).T
    trace = TraceArrays(
        identity,
        arrivals(submit_s, load_factor),
        _whole_seconds(run_s),
        kind=kind,
        kinds=[(first.nodes, first.demand.cores, first.demand.memory_mb, "") for first, *_ in choices],
        project=np.zeros(len(kind), np.int32),
        projects=[""],
        dropped=dropped,
        given_choices=choices,
        run_in=_whole_seconds(run_s * factors[:, kind]),
    )
    return trace.that_fit(possible[kind], name).in_order()


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
