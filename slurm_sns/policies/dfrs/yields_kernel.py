"""The yields of placed jobs: one yield for all, then raised job by job with the CPU that is left.

The largest yield that all jobs can have is 1 / max(1, L), where L is the highest CPU load of any node. Then the jobs
whose nodes all have CPU left are raised one after the other, each as far as possible: those first that need the least
CPU over all their tasks (ties: the earlier submit), which improves the average yield most. A job that has been raised
has yield 1, or a node without CPU left; so one pass over the jobs raises all that can be raised.

Under gang scheduling a node with a CPU load of 2.5 has three time slices, in each of which some of its jobs run at full
speed. A job runs on all of its nodes at once, so its node with the most slices decides. The slices are not filled up
with others.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A; gang scheduling is no part of it.
"""

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import FluidCluster, Integers, copy
from slurm_sns.policies.dfrs.sort_kernel import sort_decreasing
from slurm_sns.policies.placement.compiled import subroutine


@subroutine
def equal_yield(cluster: FluidCluster) -> float:
    """The largest yield that all of the jobs that have nodes can have."""
    highest = 1.0
    for node in range(len(cluster.capacity.cpu)):
        highest = max(highest, cluster.space.cpu_needed[node] / cluster.capacity.cpu[node])
    return 1.0 / highest


@subroutine
def slice_time(cluster: FluidCluster, jobs: Integers) -> None:
    """Set the yields of gang scheduling of these jobs, which have nodes."""
    needs, states = cluster.needs, cluster.states
    for job in jobs:
        slices = 1.0
        for node in states.places[needs.first[job] : needs.end[job]]:
            slices = max(slices, np.ceil(cluster.space.cpu_needed[node] / cluster.capacity.cpu[node]))
        states.cpu_yield[job] = 1.0 / slices


@subroutine
def raise_yields(cluster: FluidCluster, jobs: Integers, is_weighted: bool, next_run_s: float) -> None:
    """Raise the yields of these jobs, which have nodes: those first that need the least CPU over all their tasks.

    If `is_weighted` their needs are multiplied by their flow time at the next run. The jobs are in submit order.
    """
    needs, states, space = cluster.needs, cluster.states, cluster.space
    copy(space.cpu, cluster.capacity.cpu)
    raised = space.raised[: len(jobs)]
    for job in jobs:
        for node in states.places[needs.first[job] : needs.end[job]]:
            space.cpu[node] -= needs.cpu[job] * states.cpu_yield[job]
        weight = next_run_s - needs.submit_s[job] if is_weighted else 1.0
        space.key[job] = -needs.cpu[job] * needs.tasks[job] * weight
    copy(raised, jobs)
    sort_decreasing(raised, space.key, space.key, space.spare)
    for job in raised:
        _raise(cluster, job)


@subroutine
def _raise(cluster: FluidCluster, job: int) -> None:
    """Raise one job's yield as far as the nodes allow; a node's tasks follow each other among the places."""
    needs, states, left = cluster.needs, cluster.states, cluster.space.cpu
    places = states.places[needs.first[job] : needs.end[job]]
    raise_by = 1.0 - states.cpu_yield[job]
    tasks = 0
    for at, node in enumerate(places):
        tasks += 1
        if at + 1 == len(places) or places[at + 1] != node:
            raise_by = min(raise_by, left[node] / (tasks * needs.cpu[job]))
            tasks = 0
    if raise_by > 0.0:
        states.cpu_yield[job] += raise_by
        for node in places:
            left[node] -= raise_by * needs.cpu[job]
