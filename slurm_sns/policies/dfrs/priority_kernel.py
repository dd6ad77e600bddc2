"""The priorities of jobs, and the jobs of the highest priority.

A job's priority is max(30 s, flow time) / (virtual time)^2, and infinite before it has made progress. The flow time is
the time since its submission: it grows while a job is paused, so that no job is paused for ever. The square favours
jobs that have had little time so far, which are mostly short.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III.
"""

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import RUNNING, WAITING, FluidCluster, Integers
from slurm_sns.policies.dfrs.order_kernel import order_heap, pop, sort_by_submit, sort_decreasing
from slurm_sns.policies.placement.compiled import entry_point, subroutine

#: Priorities that differ by a smaller fraction are equal.
_ROUNDING = 1e-12
#: Shorter flow times count as this much, as in the bounded stretch.
_SHORTEST_FLOW_S = 30.0
#: Priorities that differ by this factor are not equal, not even through ten million others between them.
_ABOVE = 1.0 + 1e-5
#: When more jobs than _MOST_SPARE * (chosen ones + _FEW) have the least priority, it is raised to leave _SPARE * that.
_MOST_SPARE, _SPARE, _FEW = 10, 3, 16


@entry_point
def sort_by_priority(cluster: FluidCluster, jobs: Integers, now_s: float) -> None:
    """Sort the jobs, the highest priority first; of equal ones the earlier submit is higher.

    Priorities next to each other that differ by rounding errors only are made equal before the jobs are sorted again.
    """
    space = cluster.space
    for job in jobs:
        space.key[job] = priority(cluster, job, now_s)
        space.other[job] = -float(job)
    sort_decreasing(jobs, space.key, space.other, space.spare)
    last = np.inf
    for at in range(len(jobs)):
        mine = space.key[jobs[at]]
        if at and mine >= last * (1.0 - _ROUNDING):
            space.key[jobs[at]] = space.key[jobs[at - 1]]
        last = mine
    sort_decreasing(jobs, space.key, space.other, space.spare)


@entry_point
def choose_highest(cluster: FluidCluster, now_s: float) -> int:
    """Write the jobs of the highest priority for which the nodes have memory to `space.by_priority`; how many.

    No packing of more jobs succeeds, so that the searches for them, which all fail, are not made. Jobs of a priority
    below `space.least`, which mostly are nearly all, are not ordered. They are compared with it, each time: all
    priorities change with the time, and lie close together where jobs take turns.
    """
    lists, space = cluster.lists, cluster.space
    everyone = lists.counts[RUNNING] + lists.counts[WAITING]
    while True:
        count = _list_from_least(cluster, lists.running[: lists.counts[RUNNING]], 0, now_s)
        count = _list_from_least(cluster, lists.waiting[: lists.counts[WAITING]], count, now_s)
        heap = space.lists[:count]
        order_heap(heap, space.key)
        chosen, ordered = _pop_highest(cluster, heap)
        # Nearly equal priorities count as equal; the last ones taken must have none of these below the least.
        is_sure = chosen < ordered and -space.key[space.by_priority[ordered - 1]] > space.least[0] * _ABOVE
        if is_sure or count == everyone:
            break
        space.least[0] = 0.0
    if count > _MOST_SPARE * (chosen + _FEW):
        for at in range(count - ordered, count - min(count, ordered + _SPARE * (chosen + _FEW)), -1):
            space.least[0] = -space.key[pop(heap, at, space.key)]
    return chosen


@subroutine
def _list_from_least(cluster: FluidCluster, jobs: Integers, count: int, now_s: float) -> int:
    """Add the jobs with at least the least priority to the `count` first of `space.lists`; a negative key is first."""
    space, virtual_s, submit_s = cluster.space, cluster.states.virtual_s, cluster.needs.submit_s
    least = space.least[0] / _ABOVE
    for job in jobs:
        if max(_SHORTEST_FLOW_S, now_s - submit_s[job]) >= least * (virtual_s[job] * virtual_s[job]):
            space.key[job] = -priority(cluster, job, now_s)
            space.lists[count] = job
            count += 1
    return count


@subroutine
def _pop_highest(cluster: FluidCluster, heap: Integers) -> tuple[int, int]:
    """Write jobs from the heap to `space.by_priority`; for how many of these the nodes have memory, and how many."""
    space, count, memory = cluster.space, 0, 0.0
    while count < len(heap):
        begin, last = count, space.key[heap[0]]
        while count < len(heap) and -space.key[heap[0]] >= -last * (1.0 - _ROUNDING):
            space.by_priority[count] = pop(heap, len(heap) - count, space.key)
            last = space.key[space.by_priority[count]]
            count += 1
        equal = space.by_priority[begin:count]
        sort_by_submit(equal, space.other, space.spare)
        for at, job in enumerate(equal):
            memory += cluster.needs.memory[job] * cluster.needs.tasks[job]
            if memory > cluster.capacity.all_memory:
                return begin + at, count
    return count, count


@subroutine
def first_by_priority(cluster: FluidCluster, jobs: Integers) -> int:
    """That of these waiting jobs which is first when all that wait are sorted by priority; -1 if that is not sure.

    Their priorities must be in `space.key`. It is not sure if another's is so little lower that both may be equal,
    each to the next of some that stand between them.
    """
    key, most = cluster.space.key, 2.0 * _ROUNDING * cluster.lists.counts[WAITING]
    best = jobs[0]
    for job in jobs:
        if key[job] > key[best] or (key[job] == key[best] and job < best):
            best = job
    for job in jobs:
        if key[best] > key[job] >= key[best] * (1.0 - most):
            return -1
    return best


@subroutine
def priority(cluster: FluidCluster, job: int, now_s: float) -> float:
    """The job's priority."""
    virtual_s = cluster.states.virtual_s[job]
    if virtual_s <= 0.0:
        return np.inf
    return max(_SHORTEST_FLOW_S, now_s - cluster.needs.submit_s[job]) / (virtual_s * virtual_s)
