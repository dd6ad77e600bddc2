"""Read a trace for fractional sharing: CSV of tasks with fluid needs, SWF, or CSV for matching.

The first has the header `job_id,submit_s,run_s,tasks,cpu_need,memory_need`. The needs are those of one task as
fractions of a node, exact to six decimals; the nodes must be alike. In the other forms each of a job's nodes has one
task, whose needs are the job's cores and memory there; as for matching, that is at least SMALLEST_MEMORY_MB of memory.
"""

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.placement.node_arrays import MEMORY, NodeArrays, amounts
from slurm_sns.sim.traces.columns import CsvReader, Distinct, Number
from slurm_sns.sim.traces.files import TraceFile, header_of
from slurm_sns.sim.traces.fluid_trace import PARTS, FluidTrace, can_run
from slurm_sns.sim.traces.nodes_csv import MOST_NODES
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.traces.trace import SHORTEST_RUN_S, SMALLEST_MEMORY_MB, TOO_LARGE, no_job_left
from slurm_sns.sim.traces.trace_arrays import TraceArrays

#: A hundred years: moments are exact to nanoseconds in a replay.
LATEST_SUBMIT_S = 3e9


def _parts(needs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fractions of a node, in parts."""
    return np.rint(needs * PARTS)


HEADER = "job_id,submit_s,run_s,tasks,cpu_need,memory_need"
CHECKS = (
    Number("job_id", 0, whole=True),
    Distinct("job_id"),
    Number("run_s", 0, LATEST_SUBMIT_S),
    Number("tasks", 1, MOST_NODES, whole=True),
    Number("cpu_need", 0, 1, rule=(lambda needs: _parts(needs) >= 1, f"a number from {1 / PARTS:g} to 1")),
    Number("memory_need", 0, 1),
    Number("submit_s", 0, LATEST_SUBMIT_S),
)


@dataclass(frozen=True)
class FluidWorkload:
    """A trace, and the nodes in the units of its needs. `unsorted` counts jobs out of submit order in the file."""

    trace: FluidTrace
    node_arrays: NodeArrays
    unsorted: int


def read_fluid(
    name: str, node_arrays: NodeArrays, *, load_factor: float = 1.0, limit: int | None = None
) -> FluidWorkload:
    """The trace in the file `name` (`-`: SWF on standard input) for these nodes.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    if not has_tasks(name):
        records = read_records(name, node_arrays, load_factor=load_factor, limit=limit)
        return FluidWorkload(of_records(records), node_arrays, records.unsorted)
    if len(node_arrays.types) > 1:
        raise BadInput(f"{name}: needs are fractions of a node, but nodes differ; valid: nodes that are all alike")
    in_parts = NodeArrays(node_arrays.names, amounts([Resources(PARTS, PARTS)] * len(node_arrays.names)))
    trace, unsorted = _of_table(name, in_parts, load_factor, limit)
    return FluidWorkload(trace, in_parts, unsorted)


def has_tasks(name: str) -> bool:
    """Whether the file is a CSV of tasks with fluid needs."""
    return "tasks" in header_of(name)


def on_whole_nodes(workload: FluidWorkload, node_arrays: NodeArrays) -> TraceArrays:
    """The jobs as a batch scheduler runs them: each task has a node of its own.

    `node_arrays` are the true nodes. Times are integers if they all are whole seconds.

    Raises:
        BadInput: nodes have so little memory that they count as full.
    """
    least_mb = int(node_arrays.capacity[MEMORY].min())
    if least_mb < SMALLEST_MEMORY_MB:
        raise BadInput(f"nodes have {least_mb} MiB; valid with fcfs and easy: {SMALLEST_MEMORY_MB} or more")
    trace, demand = workload.trace, Resources(*node_arrays.capacity[:, 0].tolist())
    sizes, kind = np.unique(trace.tasks, return_inverse=True)
    choices = [(Alternative(tasks, demand, exclusive=True),) for tasks in sizes.tolist()]
    are_whole = all((times == np.floor(times)).all() for times in (trace.submit_s, trace.run_s))
    submit_s, run_s = (times.astype(np.int64) if are_whole else times for times in (trace.submit_s, trace.run_s))
    return TraceArrays(
        trace.identity,
        submit_s,
        run_s,
        kind.astype(np.int32).ravel(),
        np.zeros(len(trace), np.int32),
        [(tasks, demand.cores, demand.memory_mb, "") for tasks in sizes.tolist()],
        [""],
        dict(trace.dropped),
        workload.unsorted,
        given_choices=choices,
    )


def of_records(records: TraceArrays) -> FluidTrace:
    """The jobs of a trace for matching, one task on each of their nodes."""
    tasks, cpu, memory = np.array([kind[:3] for kind in records.kinds], dtype=np.int64)[records.kind].T.copy()
    trace = FluidTrace(
        records.identity,
        records.submit_s.astype(np.float64),
        records.run_s.astype(np.float64),
        tasks,
        cpu,
        memory,
        np.full(len(records), np.nan),
        records.dropped,
    )
    return in_submit_order(trace)


def in_submit_order(trace: FluidTrace) -> FluidTrace:
    """The same jobs by submit time and number."""
    return _only(trace, np.arange(len(trace)))


def _only(trace: FluidTrace, rows: NDArray[np.intp]) -> FluidTrace:
    """The jobs of these rows, by submit time and number."""
    order = rows[np.lexsort((trace.identity[rows], trace.submit_s[rows]))]
    names = ("identity", "submit_s", "run_s", "tasks", "cpu", "memory", "limit_s")
    return replace(trace, **{name: getattr(trace, name)[order] for name in names})


def _of_table(name: str, node_arrays: NodeArrays, load_factor: float, limit: int | None) -> tuple[FluidTrace, int]:
    table = CsvReader(TraceFile.of(name), HEADER, CHECKS, limit).table()
    submit_s = _scaled(table["submit_s"], load_factor)
    if submit_s.max() > LATEST_SUBMIT_S:
        raise BadInput(
            f"{name}: with --load-factor {load_factor:g} jobs are submitted after {LATEST_SUBMIT_S:g} s; valid: less"
        )
    trace = FluidTrace(
        table["job_id"].astype(np.int64),
        submit_s,
        np.maximum(table["run_s"], SHORTEST_RUN_S),
        table["tasks"].astype(np.int64),
        _parts(table["cpu_need"]).astype(np.int64),
        _parts(table["memory_need"]).astype(np.int64),
        np.full(len(submit_s), np.nan),
    )
    fits = can_run(node_arrays, trace)
    if not fits.any():
        raise no_job_left(name, {TOO_LARGE: len(fits)})
    dropped = Counter({TOO_LARGE: int((~fits).sum())})
    earlier = np.maximum.accumulate(submit_s) > submit_s
    return replace(_only(trace, np.flatnonzero(fits)), dropped=dict(+dropped)), int(earlier.sum())


def _scaled(submit_s: np.ndarray, load_factor: float) -> np.ndarray:
    """The arrival times multiplied by the factor, to the microsecond."""
    if load_factor == 1:
        return submit_s
    factor = Fraction(repr(load_factor))
    return np.array([round(float(Fraction(each) * factor), 6) for each in submit_s.tolist()])
