"""A trace of jobs for a site with pools, as columns, and the site: its nodes, each in one pool.

Source: Cost-based dynamic job rescheduling (2010), section 2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import NodeArrays

Integers = NDArray[np.integer]
Flags = NDArray[np.bool_]

#: The pool of a job that leaves it to the virtual pool.
ANY_POOL = -1


@dataclass(frozen=True)
class TraceSite:
    """The nodes of a site in the machine list's order, and its pools in the order of their first node.

    `pool_of` gives each node's pool as a place in `pools`.
    """

    nodes: NodeArrays
    pools: tuple[str, ...]
    pool_of: Integers


@dataclass(frozen=True)
class PoolTrace:
    """Jobs in submit order, those of one moment in the order of the file; all columns have one entry per job.

    A job runs on one node. Moments and durations are whole ticks, of which a second has `ticks_per_s`. `limit` is the
    time limit in ticks, `program` the place of the job's program in `programs`; both are -1 if they are not known.
    `pool` is the pool that the job names, as a place in the site's pools, or ANY_POOL. `allowed` is a row of
    `allowed_sets`, shape (sets, pools): the pools in which the job may run. `dropped` counts the jobs of the file that
    were left out, by reason.
    """

    identity: Integers
    submit: Integers
    run: Integers
    cores: Integers
    memory_mb: Integers
    priority: Integers
    pool: Integers
    allowed: Integers
    allowed_sets: Flags
    limit: Integers
    program: Integers
    programs: tuple[str, ...]
    ticks_per_s: int
    dropped: dict[str, int]

    def __len__(self) -> int:
        return len(self.identity)
