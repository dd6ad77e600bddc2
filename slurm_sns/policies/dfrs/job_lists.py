"""Which jobs are in the system, with nodes or without, and what those with nodes hold: kept up to date at each change.

What is done at an instant thus takes time for the jobs that run or change, not for all that wait: these are many when
there is more work than the nodes can do, while the running ones are bounded by the memory. Amounts are exact
(module fluid_arrays), so that no error grows with the changes.
"""

from slurm_sns.policies.dfrs.fluid_arrays import CHANGED, RUNNING, WAITING, FluidCluster, Integers, copy
from slurm_sns.policies.placement.compiled import entry_point, subroutine


@entry_point
def list_all(cluster: FluidCluster) -> None:
    """Add all jobs, none of which may be on a list yet, to that on which `has_nodes` says that they are."""
    for job in range(len(cluster.needs.tasks)):
        if cluster.states.has_nodes[job]:
            give_nodes(cluster, job)
        else:
            add_waiting(cluster, job)


@subroutine
def add_waiting(cluster: FluidCluster, job: int) -> None:
    """Add a job that has no nodes."""
    lists = cluster.lists
    lists.waiting[lists.counts[WAITING]] = job
    lists.position[job] = lists.counts[WAITING]
    lists.counts[WAITING] += 1


@subroutine
def remove_waiting(cluster: FluidCluster, job: int) -> None:
    """Take away a job that has no nodes; the last of the list takes its position."""
    lists = cluster.lists
    lists.counts[WAITING] -= 1
    last = lists.waiting[lists.counts[WAITING]]
    lists.waiting[lists.position[job]] = last
    lists.position[last] = lists.position[job]


@subroutine
def give_nodes(cluster: FluidCluster, job: int) -> None:
    """Give a job that is on no list its places. O(running jobs + its tasks)."""
    lists = cluster.lists
    at = lists.counts[RUNNING]
    while at and lists.running[at - 1] > job:
        lists.running[at] = lists.running[at - 1]
        at -= 1
    lists.running[at] = job
    lists.counts[RUNNING] += 1
    _hold(cluster, job, 1.0)


@subroutine
def take_nodes(cluster: FluidCluster, job: int) -> None:
    """Take its places from a running job, which is on no list then. O(running jobs + its tasks)."""
    lists = cluster.lists
    lists.counts[RUNNING] -= 1
    at = lists.counts[RUNNING]
    moved = lists.running[at]
    while moved != job:
        at -= 1
        moved, lists.running[at] = lists.running[at], moved
    _hold(cluster, job, -1.0)


@subroutine
def give_all_nodes(cluster: FluidCluster, jobs: Integers) -> None:
    """Give their places to these jobs, which are in submit order, and none to any other. O(jobs + nodes + tasks)."""
    lists, states, space = cluster.lists, cluster.states, cluster.space
    running = lists.running[: lists.counts[RUNNING]]
    for job in running:
        states.has_nodes[job] = False
        add_waiting(cluster, job)
    for job in jobs:
        remove_waiting(cluster, job)
    lists.counts[RUNNING] = len(jobs)
    copy(lists.running, jobs)
    copy(space.memory_left, cluster.capacity.memory)
    for node in range(len(space.cpu_needed)):
        space.cpu_needed[node] = 0.0
    for job in jobs:
        _hold(cluster, job, 1.0)


@subroutine
def _hold(cluster: FluidCluster, job: int, sign: float) -> None:
    """Count what the job's tasks hold on its places, or with a `sign` of -1 no longer hold."""
    needs, space = cluster.needs, cluster.space
    cluster.states.has_nodes[job] = sign > 0.0
    cluster.lists.counts[CHANGED] = True
    for node in cluster.states.places[needs.first[job] : needs.end[job]]:
        space.memory_left[node] -= sign * needs.memory[job]
        space.cpu_needed[node] += sign * needs.cpu[job]
