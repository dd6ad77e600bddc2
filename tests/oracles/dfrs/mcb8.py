"""MCB8: pack tasks with CPU and memory requirements on nodes (two-dimensional vector packing).

The jobs form two lists: those whose tasks require more CPU than memory, and the others. Each list is sorted by the
larger requirement, decreasing; ties: by the other requirement, decreasing, then the later submit first. The nodes are
filled one after the other. While a node has more memory left than CPU, it takes a task of the first job on the memory
list that fits, otherwise of the first on the CPU list; if no job of that list fits, one of the other list.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-B; Leinberger, Karypis, Kumar: Multi-capacity
bin packing algorithms (ICPP 1999). Ties, and what the paper leaves open, as in the authors' simulator vcsim.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from slurm_sns.policies.dfrs.instant import Nodes

#: Requirements that are no exact numbers fit if they exceed a node by no more than this fraction of it.
TOLERANCE = 1e-9
#: Memory and CPU left that differ by a smaller fraction of a node are equal.
BALANCE = 1e-12


class Packable(NamedTuple):
    """The tasks of one job: `cpu` and `memory` are what each requires."""

    id: int
    tasks: int
    cpu: int | float | Fraction
    memory: int


#: The nodes of each job's tasks, in increasing order.
Packing = dict[int, tuple[int, ...]]


def pack(nodes: Nodes, jobs: Sequence[Packable], tolerance: float = 0) -> Packing | None:
    """The packing of all tasks of the jobs, given in submit order; None if some task finds no node.

    With a `tolerance`, a fraction of a node's CPU, requirements need not be exact.
    """
    slack = tolerance * max(nodes.cpu, default=0)

    def size(amount: int | float | Fraction) -> int | float | Fraction:
        return round(amount / slack) if slack else amount  # rounding errors decide no order

    later_first = jobs[::-1]  # the sort is stable
    first = sorted(later_first, key=lambda job: (-size(max(job.cpu, job.memory)), -size(min(job.cpu, job.memory))))
    cpu_heavy = [job for job in first if job.cpu > job.memory + slack]
    memory_heavy = [job for job in first if job.cpu <= job.memory + slack]
    left = {job.id: job.tasks for job in jobs}
    packing: dict[int, list[int]] = {job.id: [] for job in jobs}
    for node in range(len(nodes.cpu)):
        cpu: int | float | Fraction = nodes.cpu[node]
        memory = nodes.memory[node]
        margin = slack + BALANCE * nodes.cpu[node]
        of_memory = Fraction(nodes.cpu[node], memory) if memory else 1  # so that both are compared in percent
        while True:
            lists = (memory_heavy, cpu_heavy) if memory * of_memory > cpu + margin else (cpu_heavy, memory_heavy)
            job = next(
                (
                    job
                    for each in lists
                    for job in each
                    if left[job.id] and job.memory <= memory and job.cpu <= cpu + tolerance * nodes.cpu[node]
                ),
                None,
            )
            if job is None:
                break
            left[job.id] -= 1
            packing[job.id].append(node)
            cpu -= job.cpu
            memory -= job.memory
    return None if any(left.values()) else {identity: tuple(on) for identity, on in packing.items()}
