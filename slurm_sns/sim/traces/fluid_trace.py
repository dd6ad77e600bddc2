"""A trace of jobs for fractional sharing: each task of a job has a memory need and a CPU need that is fluid.

Needs are in the units of the nodes' capacity: cores and MiB, or `PARTS` parts of a node where the trace gives fractions
of one. All amounts are integers, so that a packing is exact.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section II-B.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts

Integers = NDArray[np.int64]
Column = NDArray[np.float64]

#: A node's CPU and memory, where needs are fractions of a node: they are exact to six decimals.
PARTS = 1_000_000
#: The least yield that a search tries is 0.01: a node's CPU is shared by so many whole needs at most.
MOST_TO_ONE = 100


@dataclass(frozen=True)
class FluidTrace:
    """The jobs by submit time, those of one moment by number; each column has one entry per job.

    `cpu` and `memory` are the needs of one task, `run_s` the run time with all of the CPU need, `limit_s` the owner's
    time limit (nan where there is none). `dropped` counts the jobs that were left out, by reason.
    """

    identity: Integers
    submit_s: Column
    run_s: Column
    tasks: Integers
    cpu: Integers
    memory: Integers
    limit_s: Column
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.identity)


def can_run(node_arrays: NodeArrays, trace: FluidTrace) -> NDArray[np.bool_]:
    """Of each job: whether empty nodes could hold all of its tasks, with a yield that a search tries."""
    held = np.zeros(len(trace), np.int64)
    for (cpu, memory, *_), count in zip(*np.unique(node_arrays.capacity.T, axis=0, return_counts=True), strict=True):
        by_cpu = cpu * MOST_TO_ONE // np.maximum(trace.cpu, 1)
        by_memory = np.where(trace.memory > 0, memory // np.maximum(trace.memory, 1), by_cpu)
        held += count * np.minimum(by_cpu, by_memory)
    return held >= trace.tasks


def whole_nodes(count: int) -> NodeArrays:
    """Nodes that are all alike, for needs that are fractions of a node."""
    width = len(str(count - 1))
    names = tuple(f"n{at:0{width}d}" for at in range(count))
    return NodeArrays(names, amounts([Resources(PARTS, PARTS)] * count))
