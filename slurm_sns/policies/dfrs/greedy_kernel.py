"""Greedy placement of a job's tasks, and room for a newcomer by pausing running jobs, as few of them as possible.

Each task goes to the node with the lowest CPU load among those that have memory for it, of equal ones to the first. The
CPU load of a node is the sum of the CPU needs of its tasks over its capacity; it may exceed 1.

For a newcomer that finds no place, running jobs are taken away, from the lowest priority on, until it finds one. Then
those whose nodes still have room return to them, from the highest priority on. If the newcomer finds no place even on
empty nodes, nothing changes.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A.
"""

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import PASSES, RUNNING, FluidCluster, Integers, copy
from slurm_sns.policies.dfrs.job_lists import add_waiting, give_nodes, remove_waiting, take_nodes
from slurm_sns.policies.dfrs.order_kernel import sort_decreasing
from slurm_sns.policies.dfrs.priority_kernel import sort_by_priority
from slurm_sns.policies.placement.compiled import subroutine


@subroutine
def place(cluster: FluidCluster, job: int) -> bool:
    """Place a waiting job greedily; False, and nothing changes, if a task finds no node."""
    needs, space, at = cluster.needs, cluster.space, cluster.needs.first[job]
    if not _fits(cluster, job, False):
        return False
    for node in range(len(space.tasks_on)):
        space.tasks_on[node] = 0
    for _ in range(needs.tasks[job]):
        best, lowest = -1, np.inf
        for node in range(len(space.tasks_on)):
            on_it = space.tasks_on[node]
            if needs.memory[job] <= space.memory_left[node] - on_it * needs.memory[job]:
                load = (space.cpu_needed[node] + on_it * needs.cpu[job]) / cluster.capacity.cpu[node]
                if load < lowest:
                    best, lowest = node, load
        space.tasks_on[best] += 1
    for node in range(len(space.tasks_on)):
        for _ in range(space.tasks_on[node]):
            cluster.states.places[at] = node
            at += 1
    remove_waiting(cluster, job)
    give_nodes(cluster, job)
    return True


@subroutine
def _fits(cluster: FluidCluster, job: int, are_sorted: bool) -> bool:
    """Whether the nodes have memory for all tasks. O(nodes); if they are sorted by room, those with room only."""
    need, tasks = cluster.needs.memory[job], cluster.needs.tasks[job]
    for node in cluster.space.by_room:
        left = cluster.space.memory_left[node]
        if need <= left:
            if tasks * need <= left:
                return True
            tasks -= np.int64(left / need)
        elif are_sorted:
            return False
    return False


@subroutine
def list_fitting(cluster: FluidCluster, jobs: Integers, listed: Integers, before_s: float) -> int:
    """Write those of the jobs that wait and fit as things are to `listed`, which may be `jobs`; how many these are.

    Jobs that were paused at `before_s` or later are left out. O(jobs + kinds of them * nodes with memory left).
    """
    space, states, counts = cluster.space, cluster.states, cluster.lists.counts
    counts[PASSES] += 1
    sort_decreasing(space.by_room, space.memory_left, space.memory_left, space.spare)
    count = 0
    for job in jobs:
        kind = cluster.needs.kind[job]
        if space.seen[kind] != counts[PASSES]:
            space.seen[kind] = counts[PASSES]
            space.fits[kind] = _fits(cluster, job, True)
        if space.fits[kind] and not states.has_nodes[job] and space.paused_s[job] < before_s:
            listed[count] = job
            count += 1
    return count


@subroutine
def make_room(cluster: FluidCluster, newcomer: int, now_s: float) -> None:
    """Place the newcomer, and note in `space.paused_s` which jobs were paused for it."""
    space = cluster.space
    if place(cluster, newcomer):
        return
    running = space.by_priority[: cluster.lists.counts[RUNNING]]
    copy(running, cluster.lists.running[: len(running)])
    sort_by_priority(cluster, running, now_s)
    marked, is_placed = len(running), False
    while not is_placed and marked:
        marked -= 1
        take_nodes(cluster, running[marked])
        is_placed = place(cluster, newcomer)
    for job in running[marked:]:
        if _has_room(cluster, job):
            give_nodes(cluster, job)
        else:
            add_waiting(cluster, job)
            space.paused_s[job] = now_s


@subroutine
def _has_room(cluster: FluidCluster, job: int) -> bool:
    """Whether the nodes where the job was have memory for its tasks; its tasks on one node follow each other."""
    needs, states = cluster.needs, cluster.states
    places = states.places[needs.first[job] : needs.end[job]]
    tasks = 0
    for at, node in enumerate(places):
        tasks += 1
        if at + 1 == len(places) or places[at + 1] != node:
            if tasks * needs.memory[job] > cluster.space.memory_left[node]:
                return False
            tasks = 0
    return True
