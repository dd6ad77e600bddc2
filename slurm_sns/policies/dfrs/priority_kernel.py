"""The compiled twin of module priority."""

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import FluidCluster, Integers
from slurm_sns.policies.dfrs.priority import SHORTEST_FLOW_S, SPLIT
from slurm_sns.policies.dfrs.sort_kernel import sort_decreasing
from slurm_sns.policies.placement.compiled import entry_point


@entry_point
def sort_by_priority(cluster: FluidCluster, jobs: Integers, now_s: float) -> None:
    """Sort the jobs, given in submit order, the highest priority first; of equal ones the earlier submit is higher."""
    space = cluster.space
    for job in jobs:
        space.key[job] = _priority(now_s - cluster.needs.submit_s[job], cluster.states.virtual_s[job])
    sort_decreasing(jobs, space.key, space.key, space.spare)


@entry_point
def _priority(flow_s: float, virtual_s: float) -> float:
    if virtual_s <= 0.0:
        return np.inf
    exact = max(float(SHORTEST_FLOW_S), flow_s) / (virtual_s * virtual_s)
    split = exact * SPLIT
    return split - (split - exact) if split < np.inf else exact
