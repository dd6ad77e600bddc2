"""Greedy placement of a job's tasks, and room for a newcomer by pausing running jobs, as few of them as possible.

Each task goes to the node with the lowest CPU load among those that have memory for it, of equal ones to the first. The
CPU load of a node is the sum of the CPU needs of its tasks over its capacity; it may exceed 1, up to the node's limit.
A node gets no more tasks of a job than the job may have together.

For a newcomer that finds no place, running jobs are taken away, from the lowest priority on, until it finds one. Then
those whose nodes still have room return to them, from the highest priority on. Only jobs that may be paused are taken
away; if the newcomer finds no place even without all of these, nothing changes. Instead of the priority the order may
be that of the work which a pause loses (the least first; of equal losses the later submit).

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A; there every job may be paused, and nodes and
jobs have no limits but memory.
"""

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import PASSES, RUNNING, WAITING, Floats, FluidCluster, Integers, copy
from slurm_sns.policies.dfrs.job_lists import add_waiting, give_nodes, remove_waiting, take_nodes
from slurm_sns.policies.dfrs.order_kernel import sort_decreasing
from slurm_sns.policies.dfrs.priority_kernel import sort_by_priority
from slurm_sns.policies.placement.compiled import subroutine


@subroutine
def place(cluster: FluidCluster, job: int) -> bool:
    """Place a waiting job greedily; False, and nothing changes, if a task finds no node."""
    needs, space, at = cluster.needs, cluster.space, cluster.needs.first[job]
    if not _fits(cluster, job, False, space.memory_left, space.cpu_needed):
        return False
    for node in range(len(space.tasks_on)):
        space.tasks_on[node] = 0
    for _ in range(needs.tasks[job]):
        best, lowest = -1, np.inf
        for node in range(len(space.tasks_on)):
            on_it = space.tasks_on[node]
            if needs.memory[job] <= space.memory_left[node] - on_it * needs.memory[job] and on_it < needs.together[job]:
                needed = space.cpu_needed[node] + on_it * needs.cpu[job]
                load = needed / cluster.capacity.cpu[node]
                if load < lowest and needed + needs.cpu[job] <= cluster.capacity.most_needed[node]:
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
def _fits(cluster: FluidCluster, job: int, are_sorted: bool, memory_left: Floats, cpu_needed: Floats) -> bool:
    """Whether nodes with this memory and these needs have room for all tasks.

    O(nodes); if they are sorted by memory, those with memory for a task only.
    """
    needs, tasks = cluster.needs, cluster.needs.tasks[job]
    for node in cluster.space.by_room:
        if needs.memory[job] <= memory_left[node]:
            room = min(tasks, needs.together[job])
            if room * needs.memory[job] > memory_left[node]:
                room = np.int64(memory_left[node] / needs.memory[job])
            cpu_left = cluster.capacity.most_needed[node] - cpu_needed[node]
            if room * needs.cpu[job] > cpu_left:
                room = max(np.int64(cpu_left / needs.cpu[job]), 0)
            tasks -= room
            if tasks == 0:
                return True
        elif are_sorted:
            return False
    return False


@subroutine
def list_fitting(cluster: FluidCluster, jobs: Integers, listed: Integers, before_s: float) -> int:
    """Write those of the jobs that wait and fit as things are to `listed`, which may be `jobs`; how many these are.

    Jobs that were paused at `before_s` or later are left out. O(jobs + kinds of them * nodes with memory left).
    """
    space, count = cluster.space, 0
    _begin_pass(cluster, space.memory_left)
    for job in jobs:
        if (
            _kind_fits(cluster, job, space.memory_left, space.cpu_needed)
            and not cluster.states.has_nodes[job]
            and space.paused_s[job] < before_s
        ):
            listed[count] = job
            count += 1
    return count


@subroutine
def list_within_reach(cluster: FluidCluster, jobs: Integers, listed: Integers) -> int:
    """Write those of the waiting jobs to `listed` that may pause others and fit if all jobs were paused that may be.

    A job that was paused itself does not pause others. O(jobs + kinds of them * nodes + tasks of running jobs).
    """
    space, count = cluster.space, 0
    _reach(cluster)
    _begin_pass(cluster, space.memory_reached)
    for job in jobs:
        if not cluster.states.was_paused[job] and _kind_fits(cluster, job, space.memory_reached, space.cpu_kept):
            listed[count] = job
            count += 1
    return count


@subroutine
def _begin_pass(cluster: FluidCluster, memory_left: Floats) -> None:
    """Sort the nodes by the memory that is left, and forget which kinds of jobs fit."""
    cluster.lists.counts[PASSES] += 1
    sort_decreasing(cluster.space.by_room, memory_left, memory_left, cluster.space.spare)


@subroutine
def _kind_fits(cluster: FluidCluster, job: int, memory_left: Floats, cpu_needed: Floats) -> bool:
    """Whether jobs of this one's kind fit on sorted nodes; looked at once in a pass."""
    space, kind = cluster.space, cluster.needs.kind[job]
    if space.seen[kind] != cluster.lists.counts[PASSES]:
        space.seen[kind] = cluster.lists.counts[PASSES]
        space.fits[kind] = _fits(cluster, job, True, memory_left, cpu_needed)
    return space.fits[kind]


@subroutine
def _reach(cluster: FluidCluster) -> None:
    """Set what memory would be left, and what CPU needed, if all jobs were paused that may be."""
    needs, states, space = cluster.needs, cluster.states, cluster.space
    copy(space.memory_reached, space.memory_left)
    copy(space.cpu_kept, space.cpu_needed)
    for job in cluster.lists.running[: cluster.lists.counts[RUNNING]]:
        if states.may_pause[job]:
            for node in states.places[needs.first[job] : needs.end[job]]:
                space.memory_reached[node] += needs.memory[job]
                space.cpu_kept[node] -= needs.cpu[job]


@subroutine
def make_room(cluster: FluidCluster, newcomer: int, now_s: float, by_loss: bool) -> None:
    """Place the newcomer if possible, and note in `space.paused_s` which jobs were paused for it."""
    space = cluster.space
    if place(cluster, newcomer):
        return
    _reach(cluster)
    if not _fits(cluster, newcomer, False, space.memory_reached, space.cpu_kept):
        return
    running = space.by_priority[: _list_victims(cluster, now_s, by_loss)]
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
def take_back(cluster: FluidCluster, now_s: float, by_loss: bool) -> None:
    """Let the jobs stay that were paused at this instant and have room again where they were.

    This is so where a second newcomer had a larger job paused. The others of them were paused from now on.
    """
    lists, space, count = cluster.lists, cluster.space, 0
    for job in lists.waiting[: lists.counts[WAITING]]:
        if space.paused_s[job] == now_s:
            space.by_priority[count] = job
            count += 1
    paused = space.by_priority[:count]
    _sort_victims(cluster, paused, now_s, by_loss)
    for job in paused:
        if _has_room(cluster, job):
            remove_waiting(cluster, job)
            give_nodes(cluster, job)
        else:
            cluster.states.was_paused[job] = True


@subroutine
def _list_victims(cluster: FluidCluster, now_s: float, by_loss: bool) -> int:
    """Write the running jobs that may be paused to `space.by_priority`, the first one to pause last; how many."""
    space, count = cluster.space, 0
    for job in cluster.lists.running[: cluster.lists.counts[RUNNING]]:
        if cluster.states.may_pause[job]:
            space.by_priority[count] = job
            count += 1
    _sort_victims(cluster, space.by_priority[:count], now_s, by_loss)
    return count


@subroutine
def _sort_victims(cluster: FluidCluster, victims: Integers, now_s: float, by_loss: bool) -> None:
    """Sort jobs that may be paused, the first one to pause last."""
    space = cluster.space
    if by_loss:
        for job in victims:
            space.other[job] = -float(job)
        sort_decreasing(victims, cluster.states.loss, space.other, space.spare)
    else:
        sort_by_priority(cluster, victims, now_s)


@subroutine
def _has_room(cluster: FluidCluster, job: int) -> bool:
    """Whether the nodes where the job was have room for its tasks; its tasks on one node follow each other."""
    needs, states, space = cluster.needs, cluster.states, cluster.space
    places = states.places[needs.first[job] : needs.end[job]]
    tasks = 0
    for at, node in enumerate(places):
        tasks += 1
        if at + 1 == len(places) or places[at + 1] != node:
            if (
                tasks * needs.memory[job] > space.memory_left[node]
                or space.cpu_needed[node] + tasks * needs.cpu[job] > cluster.capacity.most_needed[node]
            ):
                return False
            tasks = 0
    return True
