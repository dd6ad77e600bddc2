"""The compiled twin of module priority."""

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import FluidCluster, Integers
from slurm_sns.policies.dfrs.priority import ROUNDING, SHORTEST_FLOW_S
from slurm_sns.policies.dfrs.sort_kernel import sort_decreasing
from slurm_sns.policies.placement.compiled import entry_point, subroutine


@entry_point
def sort_by_priority(cluster: FluidCluster, jobs: Integers, now_s: float) -> None:
    """Sort the jobs, the highest priority first; of equal ones the earlier submit is higher.

    Priorities next to each other that differ by rounding errors only are made equal before the jobs are sorted again.
    """
    space = cluster.space
    for job in jobs:
        space.key[job] = _priority(now_s - cluster.needs.submit_s[job], cluster.states.virtual_s[job])
        space.other[job] = -float(job)
    sort_decreasing(jobs, space.key, space.other, space.spare)
    last = np.inf
    for at in range(len(jobs)):
        mine = space.key[jobs[at]]
        if at and mine >= last * (1.0 - ROUNDING):
            space.key[jobs[at]] = space.key[jobs[at - 1]]
        last = mine
    sort_decreasing(jobs, space.key, space.other, space.spare)


@subroutine
def _priority(flow_s: float, virtual_s: float) -> float:
    if virtual_s <= 0.0:
        return np.inf
    return max(float(SHORTEST_FLOW_S), flow_s) / (virtual_s * virtual_s)
