"""Make a trace of jobs of whole cores from parts of a file, or from jobs whose alternatives are known.

Jobs that the nodes could never hold are left out. Times are rounded half up to whole seconds.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Gpus, Resources
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays, fits_ever, holding
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
    no_job_left,
)

#: Odd numbers without a pattern, one for each column of a row.
FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5, 0xD6E8FEB86659FD93)
#: Why a job is left out.
NO_SUCH_GPUS = "GPUs of a type that no node has"


@dataclass
class RecordBuilder:
    """Collects the jobs of one trace, part by part."""

    node_arrays: NodeArrays
    load_factor: float
    #: The sets of nodes that jobs may use, None for all; a reader may append further ones.
    allowed_sets: list[frozenset[str] | None] = field(default_factory=lambda: [None])

    def __post_init__(self) -> None:
        """Start without jobs."""
        self.dropped: Counter[str] = Counter()
        #: A kind, the position of its nodes in `allowed_sets`, and that of its GPUs in `_gpus`.
        self._kinds: dict[tuple[Kind, int, int], int] = {}
        self._gpus: dict[Gpus, int] = {(): 0}
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._projects: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
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
        priority: Column | None = None,
        allowed: Integers | None = None,
        start_s: Column | None = None,
        partition: tuple[Integers, Sequence[str]] | None = None,
        gpus: tuple[Integers, Sequence[Gpus]] | None = None,
    ) -> None:
        """Add jobs with known times and sizes; those that the nodes could never hold are dropped.

        `limit_s`, and `priority`, are given for all parts of a trace or for none; a limit that is not above 0 is
        unknown. `allowed` are positions in `allowed_sets`; without it jobs may use all nodes. `start_s` are recorded
        starts, and `partition` the place of each job's among different names: given for all parts or for none. `gpus`
        are the places of each job's GPUs on a node among different ones; without it jobs have none.
        """
        sets = np.zeros(len(nodes)) if allowed is None else allowed
        of_gpus = np.zeros(len(nodes), np.int64) if gpus is None else self._gpu_numbers(*gpus)
        memory_mb = np.maximum(memory_mb, SMALLEST_MEMORY_MB)
        rows = np.stack([nodes, cores, memory_mb, sets, of_gpus], axis=1).astype(np.int64)
        shapes, of_row = _distinct(rows)
        are_known = self._known_gpus()[shapes[:, 4]]
        self.dropped[NO_SUCH_GPUS] += int(np.count_nonzero(~are_known[of_row]))
        kept = (are_known & self._possible(shapes))[of_row]
        self.jobs += len(kept)
        self.dropped[TOO_LARGE] += int(np.count_nonzero(~kept & are_known[of_row]))
        if heuristic is not None:
            heuristic = list(compress(heuristic, kept))
        if project is not None:
            project = list(compress(project, kept))
        part = {
            "identity": identity[kept].astype(np.int64),
            "submit": arrivals(submit_s[kept], self.load_factor),
            "run": _whole_seconds(run_s[kept]),
            "kind": self._number(shapes, of_row[kept], heuristic),
            "project": self._project_numbers(project, int(np.count_nonzero(kept))),
        }
        if limit_s is not None:
            part["limit"] = np.where(limit_s[kept] > 0, _whole_seconds(limit_s[kept]), 0)
        if priority is not None:
            part["priority"] = priority[kept].astype(np.int64)
        if start_s is not None:
            part["recorded_start"] = np.maximum(arrivals(start_s[kept], self.load_factor), part["submit"])
        if partition is not None:
            places = [self._partitions.setdefault(name, len(self._partitions)) for name in partition[1]]
            part["partition"] = np.array(places, np.int32)[partition[0][kept]]
        self._parts.append(part)

    def records(self, name: str, *, only_last: str = "") -> TraceArrays:
        """All jobs, by submit second. Of those of one number only the last if `only_last` gives the others' reason.

        Raises:
            BadInput: no job is left.
        """
        columns: dict[str, Any] = {
            each: np.concatenate([part[each] for part in self._parts]) for each in next(iter(self._parts), ())
        }
        self._parts.clear()
        if only_last and columns:
            last = len(columns["identity"]) - 1 - np.unique(columns["identity"][::-1], return_index=True)[1]
            self.dropped[only_last] += len(columns["identity"]) - len(last)
            columns = {each: column[np.sort(last)] for each, column in columns.items()}
        dropped = counted(self.dropped)
        if not columns or not len(columns["identity"]):
            raise no_job_left(name, dropped)
        for column, places in (("project", self._projects), ("partition", self._partitions)):
            if len(places) > 1:
                columns[column] = _places_by_name(places)[columns[column]]
        of_kind = [self.allowed_sets[allowed] for _, allowed, _ in self._kinds]
        gpus = [*self._gpus]
        has_gpus = any(own for _, _, own in self._kinds)
        return TraceArrays(
            **columns,
            dropped=dropped,
            kinds=[kind for kind, _, _ in self._kinds],
            given_choices=[
                (Alternative(nodes, Resources(cores, memory_mb, gpus=gpus[own])),)
                for (nodes, cores, memory_mb, _), _, own in self._kinds
            ]
            if has_gpus
            else None,
            projects=sorted(self._projects) or [""],
            partitions=sorted(self._partitions),
            allowed_nodes=None if all(allowed is None for allowed in of_kind) else of_kind,
        ).in_order()

    def _number(self, shapes: Integers, of_row: Integers, heuristic: Iterable[str] | None) -> NDArray[np.int32]:
        """The kind of each job, as its position; new kinds are appended."""
        listed = shapes.tolist()

        def number(shape: int, own: str) -> int:
            nodes, cores, memory_mb, allowed, gpus = listed[shape]
            return self._kinds.setdefault(((nodes, cores, memory_mb, own), allowed, gpus), len(self._kinds))

        if heuristic is not None:
            numbers = [number(shape, own) for shape, own in zip(of_row.tolist(), heuristic, strict=True)]
            return np.array(numbers, dtype=np.int32)
        used = np.flatnonzero(np.bincount(of_row, minlength=len(listed)))
        kind = np.empty(len(listed), dtype=np.int32)
        kind[used] = [number(shape, "") for shape in used.tolist()]
        return kind[of_row]

    def _possible(self, shapes: Integers) -> NDArray[np.bool_]:
        """Whether enough allowed nodes are large enough for each shape when they are empty."""
        possible, gpus = np.zeros(len(shapes), np.bool_), [*self._gpus]
        nodes = self.node_arrays.capacity[[CORES, MEMORY]]
        for allowed, own in np.unique(shapes[:, 3:], axis=0).tolist():
            rows = (shapes[:, 3:] == (allowed, own)).all(axis=1)
            demand = self.node_arrays.demand(Resources(0, 0, gpus=gpus[own]))
            mask = holding(self.node_arrays.capacity, demand)
            permitted = self.node_arrays.allows(self.allowed_sets[allowed])
            mask = mask if permitted is None else mask & permitted
            possible[rows] = _are_enough(nodes[:, mask], shapes[rows])
        return possible

    def _gpu_numbers(self, places: Integers, different: Sequence[Gpus]) -> Integers:
        """The places of these GPUs in `_gpus`; new ones are appended."""
        numbers = [self._gpus.setdefault(each, len(self._gpus)) for each in different]
        return np.array(numbers, np.int64)[places]

    def _known_gpus(self) -> NDArray[np.bool_]:
        """Of each entry of `_gpus`, whether some node has such GPUs."""
        known = {*self.node_arrays.gpu_names}
        return np.array([all(name in known for name, _ in each) for each in self._gpus], np.bool_)

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


def _places_by_name(places: Iterable[str]) -> NDArray[np.int32]:
    """Of each of these different names its place when they are sorted."""
    by_name = {name: number for number, name in enumerate(sorted(places))}
    return np.array([by_name[name] for name in places], dtype=np.int32)


def _are_enough(nodes: Integers, shapes: Integers) -> NDArray[np.bool_]:
    """Whether enough of these nodes, shape (cores and memory, nodes), are large enough for each shape."""
    sizes, counts = np.unique(nodes, axis=1, return_counts=True)
    large = np.zeros(len(shapes), dtype=np.int64)
    for (cores, memory_mb), count in zip(sizes.T.tolist(), counts.tolist(), strict=True):
        large += count * ((shapes[:, 1] <= cores) & (shapes[:, 2] <= memory_mb))
    enough: NDArray[np.bool_] = large >= shapes[:, 0]
    return enough


def _distinct(rows: Integers) -> tuple[Integers, Integers]:
    """The distinct rows, and for each row its index among them."""
    # One number for each row, by a hash: sorting 64-bit numbers takes a fifth of the time of sorting rows.
    factors = np.array(FACTORS, dtype=np.uint64)
    with np.errstate(over="ignore"):
        hashed = (rows.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    _, first, of_row = np.unique(hashed, return_index=True, return_inverse=True)
    if (rows[first][of_row] == rows).all():
        return rows[first], of_row
    shapes, of_row = np.unique(rows, axis=0, return_inverse=True)
    return shapes, of_row.ravel()
