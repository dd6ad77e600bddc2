"""MCB8: pack tasks with CPU and memory requirements on nodes (two-dimensional vector packing).

The jobs form two lists: those whose tasks require more CPU than memory, and the others. Each list is sorted by the
larger requirement, decreasing; ties: by the other requirement, decreasing, then the later submit first. The nodes are
filled one after the other. While a node has more memory left than CPU, it takes a task of the first job on the memory
list that fits, otherwise of the first on the CPU list; if no job of that list fits, one of the other list.

Nodes that are alike and are filled from the same lists get the same tasks, as long as no job on them runs out of tasks.
So one filling is computed and repeated: the number of fillings grows with that of jobs, not of nodes or tasks. On the
lists, jobs that are too large are skipped by bisection, and jobs without tasks are taken away from time to time.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-B; Leinberger, Karypis, Kumar: Multi-capacity
bin packing algorithms (ICPP 1999). Ties, and what the paper leaves open, as in the authors' simulator vcsim.
"""

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import Floats, FluidCluster, Integers, Places, copy
from slurm_sns.policies.dfrs.order_kernel import sort_decreasing
from slurm_sns.policies.placement.compiled import entry_point, subroutine

#: Memory and CPU left that differ by a smaller fraction of a node are equal.
BALANCE = 1e-12


@entry_point
def pack(cluster: FluidCluster, jobs: Integers, scale: float, tolerance: float, places: Places) -> bool:
    """Write the packing of all tasks of the jobs into `places`; False if some task finds no node.

    The jobs are in submit order. `space.required` is the CPU that a task of each requires; capacities and memory needs
    count `scale` times. `tolerance` is a fraction of a node's CPU.
    """
    capacity, needs, space = cluster.capacity, cluster.needs, cluster.space
    slack = tolerance * scale * capacity.most_cpu
    cpu, memory, tasks = 0.0, 0.0, 0
    for job in jobs:
        space.memory[job] = needs.memory[job] * scale
        space.left[job] = needs.tasks[job]
        cpu += space.required[job] * needs.tasks[job]
        memory += space.memory[job] * needs.tasks[job]
        tasks += needs.tasks[job]
    if cpu > scale * capacity.all_cpu + slack * len(capacity.cpu) or memory > scale * capacity.all_memory:
        return False
    ordered = space.lists[: len(jobs)]
    middle = _make_lists(cluster, jobs, slack, ordered)
    cpu_heavy, memory_heavy = ordered[:middle], ordered[middle:]
    least = _least(cluster, jobs)
    node, ended = 0, 0
    while node < len(capacity.cpu) and tasks:
        if 4 * ended > len(cpu_heavy) + len(memory_heavy):
            cpu_heavy = cpu_heavy[: _with_tasks(cluster, cpu_heavy)]
            memory_heavy = memory_heavy[: _with_tasks(cluster, memory_heavy)]
            ended = 0
        used = space.used[: _fill(cluster, cpu_heavy, memory_heavy, node, scale, least, slack)]
        times = capacity.alike_to[node] - node
        for job in used:
            times = min(times, 1 + space.left[job] // space.used_by[job])
        for job in used:
            on_each = space.used_by[job]
            begin = needs.end[job] - space.left[job] - on_each
            for place in range(on_each * times):
                places[begin + place] = node + place // on_each
            space.left[job] -= on_each * (times - 1)
            space.used_by[job] = 0
            ended += space.left[job] == 0
            tasks -= on_each * times
        node += times
    return tasks == 0


@subroutine
def _make_lists(cluster: FluidCluster, jobs: Integers, slack: float, ordered: Integers) -> int:
    """Write the CPU-heavy jobs, whose number is returned, then the memory-heavy ones, each in the order of its list."""
    space = cluster.space
    for at, job in enumerate(jobs):
        ordered[len(jobs) - 1 - at] = job  # the later submit first; the sort is stable
        space.key[job] = max(space.required[job], space.memory[job])
        space.other[job] = min(space.required[job], space.memory[job])
        if slack > 0.0:  # rounding errors decide no order
            space.key[job] = np.rint(space.key[job] / slack)
            space.other[job] = np.rint(space.other[job] / slack)
    sort_decreasing(ordered, space.key, space.other, space.spare)
    cpu_heavy, memory_heavy = 0, 0
    for job in ordered:
        if space.required[job] > space.memory[job] + slack:
            ordered[cpu_heavy] = job
            cpu_heavy += 1
        else:
            space.spare[memory_heavy] = job
            memory_heavy += 1
    copy(ordered[cpu_heavy:], space.spare[:memory_heavy])
    return cpu_heavy


@subroutine
def _least(cluster: FluidCluster, jobs: Integers) -> tuple[float, float]:
    """The least CPU and the least memory that a task of these jobs requires."""
    cpu, memory = np.inf, np.inf
    for job in jobs:
        cpu = min(cpu, cluster.space.required[job])
        memory = min(memory, cluster.space.memory[job])
    return cpu, memory


@subroutine
def _with_tasks(cluster: FluidCluster, listed: Integers) -> int:
    """Take jobs without tasks away from a list; the number of those that are left."""
    count = 0
    for job in listed:
        if cluster.space.left[job]:
            listed[count] = job
            count += 1
    return count


@subroutine
def _fill(  # noqa: PLR0917  compiled functions have no keyword-only arguments
    cluster: FluidCluster,
    cpu_heavy: Integers,
    memory_heavy: Integers,
    node: int,
    scale: float,
    least: tuple[float, float],
    slack: float,
) -> int:
    """Fill one node; how many jobs have tasks on it: they are the first of `space.used`.

    `space.used_by` is the number of their tasks there. Room only shrinks while a node is filled, so that a job that
    does not fit once is not looked at again.
    """
    space, capacity = cluster.space, cluster.capacity
    cpu, memory = scale * capacity.cpu[node] + slack, scale * capacity.memory[node]
    of_memory = capacity.cpu[node] / capacity.memory[node] if memory > 0.0 else 1.0  # both are compared in percent
    margin = BALANCE * scale * capacity.cpu[node]
    count, at_cpu, at_memory = 0, 0, 0
    while cpu >= least[0] and memory >= least[1]:
        at_cpu = _skip(cpu_heavy, at_cpu, space.required, cpu + slack)
        while at_cpu < len(cpu_heavy) and not _fits(cluster, cpu_heavy[at_cpu], cpu, memory):
            at_cpu += 1
        at_memory = _skip(memory_heavy, at_memory, space.memory, memory)
        while at_memory < len(memory_heavy) and not _fits(cluster, memory_heavy[at_memory], cpu, memory):
            at_memory += 1
        if at_cpu == len(cpu_heavy) and at_memory == len(memory_heavy):
            break
        if at_memory < len(memory_heavy) and (memory * of_memory > cpu + margin or at_cpu == len(cpu_heavy)):
            job = memory_heavy[at_memory]
        else:
            job = cpu_heavy[at_cpu]
        if not space.used_by[job]:
            space.used[count] = job
            count += 1
        space.used_by[job] += 1
        space.left[job] -= 1
        cpu -= space.required[job]
        memory -= space.memory[job]
    return count


@subroutine
def _fits(cluster: FluidCluster, job: int, cpu: float, memory: float) -> bool:
    """Whether the job has a task left, and there is room for it."""
    space = cluster.space
    return space.left[job] > 0 and space.memory[job] <= memory and space.required[job] <= cpu


@subroutine
def _skip(listed: Integers, begin: int, key: Floats, most: float) -> int:
    """The first position from `begin` on whose job has a key of at most `most`; the keys decrease along the list."""
    if begin == len(listed) or key[listed[begin]] <= most:
        return begin
    end = len(listed)
    while end - begin > 1:
        middle = (begin + end) // 2
        if key[listed[middle]] <= most:
            end = middle
        else:
            begin = middle
    return end
