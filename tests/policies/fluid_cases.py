"""Small instances for DFRS, and how the kernels and the oracle, and both engines, run them."""

from collections.abc import Mapping, Sequence

import numpy as np
from oracles.dfrs import instant as plain
from oracles.disruptions import CountedSimulation, Disruptions

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.dfrs import instant
from slurm_sns.policies.dfrs.instant import FluidJob, Nodes
from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.trace import Trace, TraceArrays, TraceJob
from slurm_sns.sim.traces.fluid_trace import PARTS

BOTH = {"plain": plain.decide, "compiled": instant.decide}
PERCENT = PARTS // 100


def nodes(count: int) -> Nodes:
    """Nodes of 100 % each."""
    return Nodes((100,) * count, (100,) * count)


def job(identity: int, tasks: int = 1, cpu: int = 100, memory: int = 10, **more) -> FluidJob:
    """A job with these needs in percent of a node, submitted at the second of its number."""
    return FluidJob(identity, more.pop("submit_s", identity), tasks, cpu, memory, **more)


def trace_of(rows: Sequence[Mapping[str, float]]) -> TraceArrays:
    """A trace from rows of submit_s, tasks, cpu and memory in percent, and run_s."""

    def column(name: str, dtype: type) -> np.ndarray:
        return np.array([row[name] for row in rows], dtype)

    return TraceArrays(
        np.arange(len(rows)),
        column("submit_s", np.float64),
        column("run_s", np.float64),
        tasks=column("tasks", np.int64),
        cores=column("cpu", np.int64) * PERCENT,
        memory=column("memory", np.int64) * PERCENT,
    )


class EngineRun:
    """A run of the event engine, with the columns of a compiled run."""

    def __init__(self, count: int, rows: Sequence[Mapping[str, float]], policy: Dfrs, penalty_s: int) -> None:
        cluster = NodeArrays(tuple(f"n{at}" for at in range(count)), amounts([Resources(100, 100)] * count))
        jobs = [
            Job(at, row["submit_s"], (Alternative(row["tasks"], Resources(row["cpu"], row["memory"])),))
            for at, row in enumerate(rows)
        ]
        timed = tuple(TraceJob(each, row["run_s"]) for each, row in zip(jobs, rows, strict=True))
        self.simulation = CountedSimulation(cluster, Trace(timed, {}), policy, penalty_s=penalty_s)
        outcome = self.simulation.run()
        found = [self.simulation.disruptions.get(each.id, Disruptions()) for each in jobs]
        self.start_s = np.array([float(placed.start_s) for placed in outcome.placements])
        self.end_s = np.array([float(placed.end_s) for placed in outcome.placements])
        self.preemptions = np.array([each.preemptions for each in found])
        self.migrations = np.array([each.migrations for each in found])
        self.tasks_moved = np.array([each.tasks_moved for each in found])
