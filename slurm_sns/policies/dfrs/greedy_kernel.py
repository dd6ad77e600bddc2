"""Greedy placement of a job's tasks, and room for a newcomer by pausing running jobs, as few of them as possible.

Each task goes to the node with the lowest CPU load among those that have memory for it, of equal ones to the first. The
CPU load of a node is the sum of the CPU needs of its tasks over its capacity; it may exceed 1.

For a newcomer that finds no place, running jobs are taken away, from the lowest priority on, until it finds one. Then
those whose nodes still have room return to them, from the highest priority on. If the newcomer finds no place even on
empty nodes, nothing changes.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A.
"""

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import FluidCluster, Integers, copy
from slurm_sns.policies.placement.compiled import subroutine


@subroutine
def occupy(cluster: FluidCluster, jobs: Integers) -> None:
    """Compute what the jobs hold: the memory left on each node, and the CPU that its tasks need."""
    copy(cluster.space.memory_left, cluster.capacity.memory)
    for at in range(len(cluster.space.cpu)):
        cluster.space.cpu[at] = 0.0
    for job in jobs:
        if cluster.states.has_nodes[job]:
            _put(cluster, job, 1.0)


@subroutine
def place(cluster: FluidCluster, job: int) -> bool:
    """Place the job greedily; if a task finds no node, nothing changes and False is returned."""
    needs, space = cluster.needs, cluster.space
    for node in range(len(space.tasks_on)):
        space.tasks_on[node] = 0
    is_placed = True
    for _ in range(needs.tasks[job]):
        best, lowest = -1, np.inf
        for node in range(len(space.cpu)):
            if needs.memory[job] <= space.memory_left[node]:
                load = space.cpu[node] / cluster.capacity.cpu[node]
                if load < lowest:
                    best, lowest = node, load
        if best < 0:
            is_placed = False
            break
        space.tasks_on[best] += 1
        _change(cluster, job, best, 1.0)
    at = needs.first[job]
    for node in range(len(space.tasks_on)):
        for _ in range(space.tasks_on[node]):
            if is_placed:
                cluster.states.places[at] = node
                at += 1
            else:
                _change(cluster, job, node, -1.0)
    if is_placed:
        cluster.states.has_nodes[job] = True
    return is_placed


@subroutine
def make_room(cluster: FluidCluster, newcomer: int, running: Integers) -> None:
    """Place the newcomer and mark in `space.paused` the jobs that were paused for it.

    `running` are the jobs that have nodes, with the highest priority first.
    """
    is_placed = place(cluster, newcomer)
    marked = len(running)
    while not is_placed and marked:
        marked -= 1
        _put(cluster, running[marked], -1.0)
        is_placed = place(cluster, newcomer)
    for job in running[marked:]:
        if _has_room(cluster, job):
            _put(cluster, job, 1.0)
        else:
            cluster.space.paused[job] = True


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


@subroutine
def _put(cluster: FluidCluster, job: int, sign: float) -> None:
    """Put the job's tasks on its places, or with a `sign` of -1 take them away."""
    needs, states = cluster.needs, cluster.states
    states.has_nodes[job] = sign > 0.0
    for node in states.places[needs.first[job] : needs.end[job]]:
        _change(cluster, job, node, sign)


@subroutine
def _change(cluster: FluidCluster, job: int, node: int, sign: float) -> None:
    cluster.space.memory_left[node] -= sign * cluster.needs.memory[job]
    cluster.space.cpu[node] += sign * cluster.needs.cpu[job]
