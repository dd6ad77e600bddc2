"""The columns of the DFRS paper's table II, of one algorithm on one trace: what its preemptions and migrations cost."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.sim.reproduce.dfrs.printed import TABLE_2
from slurm_sns.sim.reproduce.dfrs.runs import PER, Found, Instance, Unit
from slurm_sns.sim.reproduce.dfrs.statistics import Table
from slurm_sns.sim.workloads.dfrs_synthetic import NODE_GB

HOUR_S = 3600
COLUMNS = tuple(TABLE_2[PER])
GBPS = COLUMNS[:2]
#: The memory of preemptions and migrations together.
BOTH_GBPS = "both, GB/s"


def costs(outcome: Mapping[str, Any], jobs: int) -> dict[str, float]:
    """The columns of the table for one algorithm on one trace of so many jobs."""
    makespan_s = outcome["makespan_s"]
    hours = makespan_s / HOUR_S
    values = (
        outcome["memory_paused"] * NODE_GB / makespan_s,
        outcome["memory_moved"] * NODE_GB / makespan_s,
        outcome["preemptions"] / hours,
        outcome["migrations"] / hours,
        outcome["preemptions"] / jobs,
        outcome["migrations"] / jobs,
    )
    return dict(zip(COLUMNS, values, strict=True))


def cost_tables(units: Sequence[Unit], found: Mapping[Instance, Found]) -> Mapping[str, Table]:
    """For each column the values by algorithm: one row for each seed, one column for each load."""
    columns: dict[str, dict[str, Any]] = {column: {} for column in COLUMNS}
    for name in TABLE_2:
        rows = [[costs(found[each]["algorithms"][name], found[each]["jobs"]) for each in unit] for unit in units]
        for column in COLUMNS:
            columns[column][name] = np.array([[of_trace[column] for of_trace in row] for row in rows], dtype=np.float64)
    columns[BOTH_GBPS] = {name: sum(columns[column][name] for column in GBPS) for name in TABLE_2}
    return columns
