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


def whole_nodes(count: int) -> NodeArrays:
    """Nodes that are all alike, for needs that are fractions of a node."""
    width = len(str(count - 1))
    names = tuple(f"n{at:0{width}d}" for at in range(count))
    return NodeArrays(names, amounts([Resources(PARTS, PARTS)] * count))
