"""Read a trace for fractional sharing: each task of a job has a memory need and a CPU need that is fluid.

A file is CSV of tasks with fluid needs, SWF, or CSV for matching.

The first has the header `job_id,submit_s,run_s,tasks,cpu_need,memory_need`. The needs are those of one task as
fractions of a node, exact to six decimals; the nodes must be alike. In the other forms each of a job's nodes has one
task, whose needs are the job's cores and memory there; as for matching, that is at least SMALLEST_MEMORY_MB of memory.

Needs are in the units of the nodes' capacity: cores and MiB, or `PARTS` parts of a node where the trace gives fractions
of one. All amounts are integers, so that a packing is exact.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section II-B.
"""

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.trace import SHORTEST_RUN_S, Column, Integers, TraceArrays
from slurm_sns.sim.traces.columns import CsvReader, Distinct, Number
from slurm_sns.sim.traces.files import TraceFile, header_of
from slurm_sns.sim.traces.nodes_csv import MOST_NODES
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.traces.site_partitions import EVERYWHERE, SitePartitions

#: A node's CPU and memory, where needs are fractions of a node: they are exact to six decimals.
PARTS = 1_000_000
#: The least yield that a search tries is 0.01: a node's CPU is shared by so many whole needs at most.
MOST_TO_ONE = 100
#: A hundred years: moments are exact to nanoseconds in a replay.
LATEST_SUBMIT_S = 3e9
#: Why a job is left out: CPU and memory alone are fluid.
WITH_GPUS = "GPUs, which dfrs does not place"


def _parts(needs: Column) -> Integers:
    """Fractions of a node, in parts."""
    return np.rint(needs * PARTS).astype(np.int64)


HEADER = "job_id,submit_s,run_s,tasks,cpu_need,memory_need"
CHECKS = (
    Number("job_id", 0, whole=True),
    Distinct("job_id"),
    Number("run_s", 0, LATEST_SUBMIT_S),
    Number("tasks", 1, MOST_NODES, whole=True),
    Number("cpu_need", 0, 1, rule=(lambda needs: np.rint(needs * PARTS) >= 1, f"a number from {1 / PARTS:g} to 1")),
    Number("memory_need", 0, 1),
    Number("submit_s", 0, LATEST_SUBMIT_S),
)


def read_fluid(
    name: str,
    node_arrays: NodeArrays,
    *,
    load_factor: float = 1.0,
    limit: int | None = None,
    partitions: SitePartitions = EVERYWHERE,
) -> tuple[TraceArrays, NodeArrays]:
    """The trace in the file `name` (`-`: SWF on standard input) for these nodes, and these in the units of its needs.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    if not has_tasks(name):
        records = read_records(name, node_arrays, load_factor=load_factor, limit=limit, partitions=partitions)
        if records.allowed_nodes is not None:
            raise BadInput(f"{name}: partitions or features allow jobs some nodes only; valid with dfrs-...: all nodes")
        has_none = np.array([not first.demand.gpus for first, *_ in records.choices])
        return _on_their_nodes(records.that_fit(has_none[records.kind], name, WITH_GPUS)), node_arrays
    if len(node_arrays.types) > 1:
        raise BadInput(f"{name}: needs are fractions of a node, but nodes differ; valid: nodes that are all alike")
    in_parts = NodeArrays(node_arrays.names, amounts([Resources(PARTS, PARTS)] * len(node_arrays.names)))
    trace = _of_table(name, limit).at_load(load_factor, LATEST_SUBMIT_S, name).in_order(by_number=True)
    return trace.that_fit(can_run(in_parts, trace), name), in_parts


def has_tasks(name: str) -> bool:
    """Whether the file is a CSV of tasks with fluid needs."""
    return "tasks" in header_of(name)


def can_run(node_arrays: NodeArrays, trace: TraceArrays, most_to_one: float = MOST_TO_ONE) -> NDArray[np.bool_]:
    """Of each job: whether empty nodes could hold all of its tasks, with a yield that a search tries.

    The CPU needs on a node may be `most_to_one` times its CPU, or less for the sake of the yield.
    """
    held = np.zeros(len(trace), np.int64)
    for (cpu, memory, *_), count in zip(*np.unique(node_arrays.capacity.T, axis=0, return_counts=True), strict=True):
        by_cpu = int(cpu * min(most_to_one, MOST_TO_ONE)) // np.maximum(trace.cores, 1)
        by_memory = np.where(trace.memory > 0, memory // np.maximum(trace.memory, 1), by_cpu)
        held += count * np.minimum(by_cpu, by_memory)
    return held >= trace.tasks


def whole_nodes(count: int) -> NodeArrays:
    """Nodes that are all alike, for needs that are fractions of a node."""
    width = len(str(count - 1))
    names = tuple(f"n{at:0{width}d}" for at in range(count))
    return NodeArrays(names, amounts([Resources(PARTS, PARTS)] * count))


def on_whole_nodes(trace: TraceArrays, node_arrays: NodeArrays) -> TraceArrays:
    """The jobs as a batch scheduler runs them: each task has one of these nodes, the first of which is like all.

    Times are integers if they all are whole seconds.
    """
    demand = node_arrays.resources(node_arrays.capacity[:, 0].tolist())
    sizes, kind = np.unique(trace.tasks, return_inverse=True)
    are_whole = all((times == np.floor(times)).all() for times in (trace.submit, trace.run))
    submit, run = (times.astype(np.int64) if are_whole else times for times in (trace.submit, trace.run))
    return TraceArrays(
        trace.identity,
        submit,
        run,
        dropped=trace.dropped,
        unsorted=trace.unsorted,
        kind=kind.astype(np.int32).ravel(),
        kinds=[(tasks, demand.cores, demand.memory_mb, "") for tasks in sizes.tolist()],
        project=np.zeros(len(trace), np.int32),
        projects=[""],
        given_choices=[(Alternative(tasks, demand, exclusive=True),) for tasks in sizes.tolist()],
    )


def _on_their_nodes(trace: TraceArrays) -> TraceArrays:
    """The jobs of a trace for matching, one task on each of their nodes."""
    tasks, cores, memory = np.array([kind[:3] for kind in trace.kinds], dtype=np.int64)[trace.kind].T.copy()
    return TraceArrays(
        trace.identity,
        trace.submit.astype(np.float64),
        trace.run.astype(np.float64),
        dropped=trace.dropped,
        unsorted=trace.unsorted,
        tasks=tasks,
        cores=cores,
        memory=memory,
    ).in_order(by_number=True)


def _of_table(name: str, limit: int | None) -> TraceArrays:
    """All jobs of a CSV of tasks, in its order."""
    table = CsvReader(TraceFile.of(name), HEADER, CHECKS, limit).table()
    return TraceArrays(
        table["job_id"].astype(np.int64),
        table["submit_s"],
        np.maximum(table["run_s"], SHORTEST_RUN_S),
        tasks=table["tasks"].astype(np.int64),
        cores=_parts(table["cpu_need"]),
        memory=_parts(table["memory_need"]),
    )
