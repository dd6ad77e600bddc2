"""The metrics and result files of a replay of fluid jobs.

As in module metrics, with these differences: a job's run time is that with all of its CPU need, so that slowdown and
bounded stretch count the time in which it ran slowly or was paused; utilisation counts the CPU that jobs were given.

Source: Dynamic fractional resource scheduling (IPDPS 2010), sections II-B (bounded stretch) and V (costs).
"""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import Floats
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.replay.fluid_replay import FluidRun
from slurm_sns.sim.results.metrics import STRETCH_BOUND_S, Metrics, inside
from slurm_sns.sim.results.result_files import JOBS_HEADER, gigabytes, write_files
from slurm_sns.sim.traces.fluid_csv import FluidWorkload
from slurm_sns.sim.traces.fluid_trace import FluidTrace

FLUID_JOBS_HEADER = f"{JOBS_HEADER.rstrip()},preemptions,migrations,stretch\n"
MIB_PER_GB = 1024


def bounded_stretch(trace: FluidTrace, end_s: Floats) -> Floats:
    """The bounded stretch of each job that ends at these moments."""
    turnaround_s = end_s - trace.submit_s
    stretch: Floats = np.maximum(turnaround_s, STRETCH_BOUND_S) / np.maximum(trace.run_s, STRETCH_BOUND_S)
    return stretch


def measure_fluid(run: FluidRun, trace: FluidTrace, node_arrays: NodeArrays) -> Metrics:
    """The metrics of a replay. There is no portfolio, so nothing wins."""
    first, last = float(trace.submit_s[0]), float(trace.submit_s[-1])
    span_s = last - first

    def share(amount: float, resource: int) -> float | None:
        return amount / (float(node_arrays.capacity[resource].sum()) * span_s) if span_s else None

    def percent(need: Any, resource: int) -> float | None:
        demanded = share(float((need * trace.tasks * trace.run_s).sum()), resource)
        return None if demanded is None else 100 * demanded

    waited = float(inside(trace.submit_s, run.start_s, first, last).sum())
    return Metrics(
        mean_wait_s=float((run.start_s - trace.submit_s).mean()),
        mean_slowdown=float(((run.end_s - trace.submit_s) / trace.run_s).mean()),
        max_bounded_stretch=float(bounded_stretch(trace, run.end_s).max()),
        mean_queue_length=waited / span_s if span_s else None,
        utilisation_cores=share(run.used_cpu, CORES),
        utilisation_memory=share(run.used_memory, MEMORY),
        load_cores=percent(trace.cpu, CORES),
        load_memory=percent(trace.memory, MEMORY),
        cycles=run.instants,
        cycles_with_waiting=run.instants_with_waiting,
        wins={},
        wins_all_cycles={},
    )


def fluid_summary(run: FluidRun, workload: FluidWorkload, true_nodes: NodeArrays) -> dict[str, Any]:
    """The entries that a summary has for fluid jobs only.

    A preemption moves the memory of all tasks of the job once, a migration that of the tasks that left a node, once.
    Bandwidths are over the makespan, from the first submit to the last end; written out and read in, it is twice that.
    """
    trace = workload.trace
    makespan_s = float(run.end_s.max() - trace.submit_s[0])
    gb = trace.memory * _per_unit(workload, true_nodes, MEMORY) / MIB_PER_GB
    return {
        "mean_bounded_stretch": float(bounded_stretch(trace, run.end_s).mean()),
        "preemptions": int(run.preemptions.sum()),
        "migrations": int(run.migrations.sum()),
        "tasks_moved": int(run.tasks_moved.sum()),
        "preemption_gb_per_s": float((run.preemptions * trace.tasks * gb).sum()) / makespan_s,
        "migration_gb_per_s": float((run.tasks_moved * gb).sum()) / makespan_s,
    }


def write_fluid(
    directory: Path, run: FluidRun, workload: FluidWorkload, true_nodes: NodeArrays, summary: Mapping[str, Any]
) -> None:
    """Write jobs.csv and summary.json; `true_nodes` have the cores and memory of which needs may be fractions.

    Raises:
        SnsError: a file cannot be written.
    """
    write_files(
        directory,
        {
            "jobs.csv": chain([FLUID_JOBS_HEADER], _job_lines(run, workload, true_nodes)),
            "summary.json": [json.dumps(summary, indent=2) + "\n"],
        },
    )


def _job_lines(run: FluidRun, workload: FluidWorkload, true_nodes: NodeArrays) -> Iterator[str]:
    """A line for each job: the nodes of its tasks at its end, and what each task needs."""
    trace, names = workload.trace, true_nodes.names
    of_node = [_per_unit(workload, true_nodes, row) for row in (CORES, MEMORY)]
    end = np.cumsum(trace.tasks)
    columns = (trace.identity, trace.submit_s, run.start_s, run.end_s, end - trace.tasks, end, trace.cpu, trace.memory)
    counts = (run.preemptions, run.migrations, bounded_stretch(trace, run.end_s))
    rows = zip(*(column.tolist() for column in (*columns, *counts)), strict=True)
    for identity, submit, start, ended, begin, until, cpu, memory, preemptions, migrations, stretch in rows:
        nodes = "+".join(names[node] for node in run.places[begin:until].tolist())
        cores = _short(cpu * of_node[0])
        memory_gb = gigabytes(int(memory)) if of_node[1] == 1 else _short(memory * of_node[1] / MIB_PER_GB)
        yield (
            f"{identity},{submit:.6f},{start:.6f},{ended:.6f},{nodes},{cores},{memory_gb},,,,"
            f"{preemptions},{migrations},{stretch:.6f}\n"
        )


def _per_unit(workload: FluidWorkload, true_nodes: NodeArrays, row: int) -> float:
    """The cores, or the MiB, in one unit of the workload's needs."""
    if workload.node_arrays is true_nodes:
        return 1.0
    return int(true_nodes.capacity[row, 0]) / int(workload.node_arrays.capacity[row, 0])


def _short(number: float) -> str:
    """A number to six decimals, without zeros at the end."""
    return f"{number:.6f}".rstrip("0").rstrip(".")
