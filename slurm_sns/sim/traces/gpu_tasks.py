"""Read the nodes and tasks of a production GPU cluster: the CSV files of cluster-trace-gpu-v2023, in all variants.

Columns are found by their names, in any order; others are ignored. A task costs itself only: one that lacks a value is
counted by reason. A value that is wrong is an error that names the line.

- 1000 cpu_milli are a core, rounded up; below a GiB of memory counts as one, as in every trace.
- A task asks for `num_gpu` GPUs on one node. Below 1000 gpu_milli it asks for shares of them (`is_share`).
- `gpu_spec` names the models of GPUs that a task may use, joined by `|`; it says nothing of a task without GPUs.
- Some variants have no gpu_milli (all GPUs are whole), no gpu_spec, or no times.

Source: Q. Weng and others, Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent, USENIX ATC 2023; the files are those of alibaba/clusterdata.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

from slurm_sns.errors import BadInput
from slurm_sns.gpus import MOST_OF_A_NODE
from slurm_sns.model import Alternative, Job, Node, Resources, gpus_of
from slurm_sns.sim.trace import (
    SHORTEST_RUN_S,
    SMALLEST_MEMORY_MB,
    TOO_LARGE,
    Trace,
    TraceArrays,
    TraceJob,
    counted,
    no_column,
    no_job_left,
    of_values,
)
from slurm_sns.sim.traces.columns import FIRST_DATA_LINE, LARGEST, number_in
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.gpus import require_few_types
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB, MOST_CORES, MOST_GB, MOST_NODES, NAME

MILLI = 1000
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
TASK_COLUMNS = ("cpu_milli", "memory_mib", "num_gpu")
TIMES = ("creation_time", "deletion_time")
SHARE, SPEC, STARTED = "gpu_milli", "gpu_spec", "scheduled_time"
#: What pandas and databases write for nothing.
_NOTHING = frozenset(("", "nan", "na", "n/a", "none", "null"))

WRONG_FIELDS = "line with another number of fields than the header"
NO_MODEL = "gpu_spec of no node here"
NO_SHARE = "gpu_milli 0"
NEVER_STARTED = "never started"
NO_RUN = "recorded times out of order"


class GpuTask(NamedTuple):
    """A task on one node; `allowed` are the nodes that it may use, None for all. Times are in seconds, None: unknown.

    `line` is its place among the tasks of the file, from 1 on.
    """

    line: int
    demand: Resources
    is_share: bool
    allowed: frozenset[str] | None
    submit_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None

    @property
    def gpus(self) -> int:
        """How many GPUs it asks for, each share as a whole one."""
        return gpus_on(self.demand)

    def job(self, submit_s: int, run_s: int) -> TraceJob:
        """The task as a job of a trace."""
        alternatives = (Alternative(1, self.demand),)
        return TraceJob(Job(self.line, submit_s, alternatives, order=(submit_s,), allowed=self.allowed), run_s)


@dataclass(frozen=True)
class GpuTasks:
    """The tasks of a file, and how many are left out, by reason; `has_times`: it says when they came and ended."""

    name: str
    tasks: tuple[GpuTask, ...]
    dropped: Mapping[str, int]
    has_times: bool

    def only(self, holds: Callable[[GpuTask], bool], reason: str) -> "GpuTasks":
        """Those of which this is true; the others are counted.

        Raises:
            BadInput: none is left.
        """
        left = tuple(filter(holds, self.tasks))
        dropped = counted({**self.dropped, reason: self.dropped.get(reason, 0) + len(self.tasks) - len(left)})
        if not left:
            raise no_job_left(self.name, dropped)
        return replace(self, tasks=left, dropped=dropped)

    @property
    def begin_s(self) -> float:
        """When the log begins: at the first recorded end, since it has no task that ended before."""
        return min((task.end_s for task in self.tasks if task.end_s is not None), default=0.0)

    def trace(self) -> TraceArrays:
        """The tasks that ran, as jobs that run from their recorded start to their end: old waits are no part of it.

        Times count from the begin of the log. A task that ran then comes at 0, and runs for what was left of its run;
        of one that ran when the log ended, the run up to there counts.

        Raises:
            BadInput: the file has no times, or no task is left.
        """
        if not self.has_times:
            raise BadInput(f"{self.name}: it does not say when tasks came and ended; valid: columns {', '.join(TIMES)}")
        begin_s, left, jobs = self.begin_s, self, []
        for reason, holds in _REPLAYABLE:
            left = left.only(holds, reason)
        for task in left.tasks:
            submit_s, start_s, end_s = (each or 0.0 for each in (task.submit_s, task.start_s, task.end_s))
            run_s = max(SHORTEST_RUN_S, round(end_s - max(start_s, begin_s)))
            jobs.append(task.job(round(max(0.0, submit_s - begin_s)), run_s))
        in_order = sorted(jobs, key=lambda each: each.job.submit_s)
        # Without limits their run times are what is expected of jobs.
        return replace(of_values(Trace(tuple(in_order), dict(left.dropped))), limit=no_column())


#: What a replay in time needs of a task, by the reason for which others are left out.
_REPLAYABLE: tuple[tuple[str, Callable[[GpuTask], bool]], ...] = (
    ("unknown creation_time", lambda task: task.submit_s is not None),
    ("unknown deletion_time", lambda task: task.end_s is not None),
    (NEVER_STARTED, lambda task: task.start_s is not None),
    (NO_RUN, lambda task: (task.end_s or 0) >= (task.start_s or 0) >= (task.submit_s or 0)),
)


def is_of_gpu_cluster(source: TraceFile) -> bool:
    """Whether the header is that of such a list of nodes or of tasks, if perhaps not a whole one."""
    return "cpu_milli" in [name.strip() for name in source.first_line().split(",")]


def gpus_on(amount: Resources) -> int:
    """All GPUs of this amount, of whatever type."""
    return dict(amount.gpus).get("gpu", 0)


def read_gpu_nodes(source: TraceFile) -> tuple[Node, ...]:
    """The nodes of a file, in its order, with their GPUs by model.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    rows = _Rows(source, NODE_COLUMNS)
    nodes: dict[str, Node] = {}
    for line, row in rows:
        if row is None:
            raise BadInput(f"{source.name}: line {line}: {WRONG_FIELDS}; valid: {', '.join(NODE_COLUMNS)}")
        cores = _number(source, line, "cpu_milli", row, MILLI * MOST_CORES, least=MILLI) // MILLI
        memory_mb = _number(source, line, "memory_mib", row, MOST_GB * MIB_PER_GB)
        gpus = _whole(source, line, "gpu", row)
        name, model = row["sn"], row["model"]
        for column, text in (("sn", name), ("model", model)) if model else (("sn", name),):
            if not NAME[0](text):
                raise source.error(line, column, f"'{text[:40]}'", NAME[1])
        if name in nodes:
            raise source.error(line, "sn", f"'{name[:40]}'", "each name once")
        size = Resources(int(cores), int(memory_mb), gpus=gpus_of({model: gpus}))
        nodes[name] = Node(name, size, size)
    if not 0 < len(nodes) <= MOST_NODES:
        raise BadInput(f"{source.name}: {len(nodes)} nodes; valid: 1 to {MOST_NODES}")
    require_few_types(source.name, (node.capacity.gpus for node in nodes.values()))
    return tuple(nodes.values())


def read_gpu_tasks(source: TraceFile, nodes: Sequence[Node]) -> GpuTasks:
    """The tasks of a file that these nodes can hold, in its order.

    Raises:
        BadInput: naming the line and what would be valid, or no task is left.
    """
    rows = _Rows(source, TASK_COLUMNS)
    has_times = {*TIMES} <= {*rows.header}
    places, dropped, tasks = _Places(nodes), Counter[str](), []
    for line, row in rows:
        task = WRONG_FIELDS if row is None else _task(source, line, row, places, has_times=has_times)
        if isinstance(task, str):
            dropped[task] += 1
        else:
            tasks.append(task)
    if not tasks:
        raise no_job_left(source.name, counted(dropped))
    return GpuTasks(source.name, tuple(tasks), counted(dropped), has_times)


class _Rows:
    """The lines of a CSV with their numbers: cells by column, None for a line with another number of fields."""

    def __init__(self, source: TraceFile, needed: Sequence[str]) -> None:
        self._source = source
        self._lines = source.text().splitlines()
        self.header = [name.strip() for name in next(self._cells(self._lines[:1]), [])]
        for column in needed:
            if column not in self.header:
                raise BadInput(f"{source.name}: line 1: column {column} is missing; valid: {', '.join(needed)}")
        if len({*self.header}) < len(self.header):
            raise BadInput(f"{source.name}: line 1: a column is named twice; valid: each once")

    def __iter__(self) -> Iterator[tuple[int, dict[str, str] | None]]:
        for at, line in enumerate(self._lines[1:], FIRST_DATA_LINE):
            if not line.strip():
                continue
            cells = [_said(cell) for cell in next(self._cells([line]), [])]
            whole = len(cells) == len(self.header)
            yield at, dict(zip(self.header, cells, strict=True)) if whole else None

    def _cells(self, lines: Sequence[str]) -> Iterator[list[str]]:
        try:
            yield from csv.reader(lines)
        except csv.Error as problem:
            raise BadInput(f"{self._source.name}: {problem}; valid: cells of ordinary length") from None


def _said(cell: str) -> str:
    text = cell.strip()
    return "" if text.lower() in _NOTHING else text


class _Places:
    """The nodes that tasks may use, by the models of gpu_spec, and whether one of them could hold a demand."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._sizes: dict[frozenset[str] | None, set[Resources]] = {None: {node.capacity for node in nodes}}
        self._allowed: dict[str, frozenset[str]] = {}

    def of(self, spec: str) -> frozenset[str] | None:
        """The names of the nodes with one of these models; None if all models are allowed."""
        if not spec:
            return None
        if spec not in self._allowed:
            wanted = {f"gpu:{model.strip()}" for model in spec.split("|") if model.strip()}
            found = [node for node in self._nodes if wanted & {*dict(node.capacity.gpus)}]
            self._allowed[spec] = frozenset(node.name for node in found)
            self._sizes[self._allowed[spec]] = {node.capacity for node in found}
        return self._allowed[spec]

    def hold(self, demand: Resources, allowed: frozenset[str] | None) -> bool:
        """Whether one of these nodes holds the demand when it is empty."""
        return any(demand.within(size) for size in self._sizes[allowed])


def _task(source: TraceFile, line: int, row: Mapping[str, str], places: _Places, *, has_times: bool) -> GpuTask | str:
    """The task of a line, or the reason for which it is left out."""
    gpus_known = row["num_gpu"] and float(number_in(row["num_gpu"])) > 0
    known = (*TASK_COLUMNS, SHARE) if gpus_known and SHARE in row else TASK_COLUMNS
    for column in known:
        if not row[column]:
            return f"unknown {column}"
    gpus = _whole(source, line, "num_gpu", row)
    milli = min(MILLI, _number(source, line, SHARE, row)) if gpus and SHARE in row else MILLI
    if not milli:
        return NO_SHARE
    demand = Resources(
        max(1, ceil(_number(source, line, "cpu_milli", row, MILLI * MOST_CORES) / MILLI)),
        max(SMALLEST_MEMORY_MB, ceil(_number(source, line, "memory_mib", row, MOST_GB * MIB_PER_GB))),
        gpus=gpus_of({"": gpus}),
    )
    allowed = places.of(row.get(SPEC, "")) if gpus else None
    if allowed is not None and not allowed:
        return NO_MODEL
    if not places.hold(demand, allowed):
        return TOO_LARGE
    times = [_moment(source, line, column, row) if has_times else None for column in (*TIMES, STARTED)]
    submit_s, end_s, start_s = times
    return GpuTask(
        line - FIRST_DATA_LINE + 1,
        demand,
        milli < MILLI,
        allowed,
        submit_s,
        start_s if STARTED in row else submit_s,
        end_s,
    )


def _moment(source: TraceFile, line: int, column: str, row: Mapping[str, str]) -> float | None:
    return _number(source, line, column, row) if row.get(column) else None


def _number(
    source: TraceFile, line: int, column: str, row: Mapping[str, str], most: float = LARGEST, *, least: float = 0
) -> float:
    value = number_in(row[column])
    if not least <= value <= most:
        raise source.error(line, column, f"'{row[column][:40]}'", f"a number from {least:g} to {most:g}")
    return value


def _whole(source: TraceFile, line: int, column: str, row: Mapping[str, str]) -> int:
    value = _number(source, line, column, row, MOST_OF_A_NODE)
    if value != int(value):
        raise source.error(line, column, f"'{row[column][:40]}'", f"a whole number from 0 to {MOST_OF_A_NODE}")
    return int(value)
