"""The metrics and result files of a replay of fluid jobs.

As in module metrics, with these differences: a job's run time is that with all of its CPU need, so that slowdown and
bounded stretch count the time in which it ran slowly or was paused; utilisation counts the CPU that jobs were given.

Source: Dynamic fractional resource scheduling (IPDPS 2010), sections II-B (bounded stretch) and V (costs).
"""

from collections.abc import Iterator
from typing import Any

from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.results.amounts import decimal, gigabytes
from slurm_sns.sim.results.columns import FLUID_JOBS, JOBS, header
from slurm_sns.sim.results.metrics import Column, Metrics, bounded_stretch, metrics_of
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB


def measure_fluid(run: TraceRun, node_arrays: NodeArrays) -> Metrics:
    """The metrics of a replay on these nodes, which are in the units of the trace."""
    return metrics_of(run, node_arrays, cycles=run.instants, used_s=run.used)


def fluid_summary(run: TraceRun, mib: float) -> dict[str, Any]:
    """The entries that a summary has for fluid jobs only; a unit of their memory needs is so many MiB.

    A preemption moves the memory of all tasks of the job once, a migration that of the tasks that left a node, once.
    Bandwidths are over the makespan, from the first submit to the last end; written out and read in, it is twice that.
    """
    trace = run.trace
    makespan_s = float(run.end_s.max() - trace.submit_s[0])
    gb = trace.memory * mib / MIB_PER_GB
    return {
        "mean_bounded_stretch": float(_stretch(run).mean()),
        "preemptions": int(run.preemptions.sum()),
        "migrations": int(run.migrations.sum()),
        "tasks_moved": int(run.tasks_moved.sum()),
        "preemption_gb_per_s": float((run.preemptions * trace.tasks * gb).sum()) / makespan_s,
        "migration_gb_per_s": float((run.tasks_moved * gb).sum()) / makespan_s,
    }


def units(node_arrays: NodeArrays, true_nodes: NodeArrays) -> tuple[float, float]:
    """The cores and the MiB in one unit of the needs, in which `node_arrays` are the true nodes."""
    if node_arrays is true_nodes:
        return 1.0, 1.0
    cores, mib = (int(true_nodes.capacity[row, 0]) / int(node_arrays.capacity[row, 0]) for row in (CORES, MEMORY))
    return cores, mib


def fluid_job_lines(run: TraceRun, names: tuple[str, ...], unit: tuple[float, float]) -> Iterator[str]:
    """The lines of jobs.csv: the nodes of a job's tasks at its end, and what each task needs."""
    yield header(JOBS, FLUID_JOBS)
    trace = run.trace
    columns = (trace.identity, trace.submit_s, run.start_s, run.end_s, trace.cores, trace.memory)
    counts = (run.preemptions, run.migrations, _stretch(run))
    rows = zip(*(column.tolist() for column in (*columns, *counts)), strict=True)
    for job, (identity, submit, start, end, cpu, memory, preemptions, migrations, stretch) in enumerate(rows):
        nodes = "+".join(names[node] for node in run.nodes(job))
        memory_gb = gigabytes(memory) if unit[1] == 1 else decimal(memory * unit[1] / MIB_PER_GB)
        yield (
            f"{identity},{submit:.6f},{start:.6f},{end:.6f},{nodes},{decimal(cpu * unit[0])},{memory_gb},,,,"
            f"{preemptions},{migrations},{stretch:.6f}\n"
        )


def _stretch(run: TraceRun) -> Column:
    return bounded_stretch(run.end_s - run.trace.submit_s, run.trace.run_s)
