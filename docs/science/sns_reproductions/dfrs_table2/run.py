"""Run the loaded traces, and compute what preemptions and migrations cost.

A preemption moves the memory of all tasks of the job once, a migration that of the tasks that left a node, once.
Counted out and in it is twice as much. Bandwidth and frequency are over the makespan, from first submit to last end.

The paper does not say how it computes the load of a trace. The same traces are also scaled by another reading of it,
`BY_MEANS` of module dfrs, under which they are more loaded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.sim.pages.judge import Interval
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.workloads.dfrs_synthetic import NODE_GB, PAPER_LOADS, PAPER_NODES
from sns_reproductions import dfrs
from sns_reproductions.dfrs import Found, Instance, Table, Unit

LEAST_LOAD = 0.7
HOUR_S = 3600
MB_PER_GB = 1000
#: Memory of preemptions and migrations in GB/s, both together, and as MB/s of each node.
GBPS = ("preemption GB/s", "migration GB/s")
BOTH_GBPS, PER_NODE = "both, GB/s", "MB/s per node"
#: The workloads, and how the names of their quantities begin.
PREFIXES = {dfrs.SCALED: "", dfrs.BY_MEANS: "load by means: "}
HEADER = ("algorithm", "cost", "figure", "published", "ours", "low", "high", "ours_over_published", "ours_out_and_in")
TRACE_HEADER = ("workload", "seed", "load", "algorithm", "makespan_s", "tasks_moved")


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    loads = [load for load in PAPER_LOADS if load >= LEAST_LOAD]
    units = {workload: dfrs.units_of(workload, range(1, options.seeds + 1), loads) for workload in PREFIXES}
    found = dfrs.results(options, units.values())
    printed = data["table_2"]
    measured: dict[str, Interval] = {}
    for workload, of_workload in units.items():
        for cost, table in cost_tables(of_workload, found, list(printed)).items():
            measured |= dfrs.quantities(table, data["gaps"], f"{PREFIXES[workload]}{cost} ")
    figures = {
        workload: [
            (name, cost, figure, *dfrs.beside(value, ours), 2 * ours.mean if cost in GBPS else "")
            for name, by_cost in printed.items()
            for cost, by_figure in by_cost.items()
            for figure, value in by_figure.items()
            for ours in (measured[f"{prefix}{cost} {figure} of {name}"],)
        ]
        for workload, prefix in PREFIXES.items()
    }
    traces = [
        (*instance[:3], name, of["makespan_s"], of["tasks_moved"], *costs(of, found[instance]["jobs"]).values())
        for of_workload in units.values()
        for unit in of_workload
        for instance in unit
        for name, of in found[instance]["algorithms"].items()
        if name in printed
    ]
    usual, heavier = (dfrs.values(of_workload, found, "load") for of_workload in units.values())
    return PageResults(
        measured,
        [
            DataTable("table-2", HEADER, figures[dfrs.SCALED]),
            DataTable("table-2-by-means", HEADER, figures[dfrs.BY_MEANS]),
            DataTable("traces", (*TRACE_HEADER, *next(iter(printed.values()))), traces),
        ],
        {
            "nodes": PAPER_NODES,
            "node_gb": NODE_GB,
            "trace_loads": loads,
            # How many times as loaded the traces are under the other reading, on average.
            "heavier": float(np.mean(heavier / usual)),
        },
        options.seeds,
    )


def costs(outcome: Mapping[str, Any], jobs: int) -> dict[str, float]:
    """The columns of the table for one algorithm on one trace of so many jobs."""
    makespan_s, preemptions, migrations = (outcome[each] for each in ("makespan_s", "preemptions", "migrations"))
    hours = makespan_s / HOUR_S
    return {
        "preemption GB/s": outcome["memory_paused"] * NODE_GB / makespan_s,
        "migration GB/s": outcome["memory_moved"] * NODE_GB / makespan_s,
        "preemptions per hour": preemptions / hours,
        "migrations per hour": migrations / hours,
        "preemptions per job": preemptions / jobs,
        "migrations per job": migrations / jobs,
    }


def cost_tables(units: Sequence[Unit], found: Mapping[Instance, Found], names: Sequence[str]) -> dict[str, Table]:
    """For each column the values by algorithm; also of both bandwidths together."""
    tables: dict[str, dict[str, Any]] = {}
    for name in names:
        rows = [[costs(found[each]["algorithms"][name], found[each]["jobs"]) for each in unit] for unit in units]
        for cost in rows[0][0]:
            tables.setdefault(cost, {})[name] = np.array([[of[cost] for of in row] for row in rows], np.float64)
    both = {name: sum(tables[cost][name] for cost in GBPS) for name in names}
    return {**tables, BOTH_GBPS: both, PER_NODE: {name: of * MB_PER_GB / PAPER_NODES for name, of in both.items()}}
