"""Jobs and nodes as DFRS sees them.

A job is a number of tasks that are all alike: each needs memory, of which it must have all, and CPU, of which it may
have any fraction, the same for all tasks: the job's yield. CPU and memory of nodes and tasks are integers in common
units: the CPU of all nodes together is as many units as their memory, so that the two needs of a task can be compared.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section II-B.
"""

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from slurm_sns.model import Seconds


class Nodes(NamedTuple):
    """The capacity of each node."""

    cpu: tuple[int, ...]
    memory: tuple[int, ...]


class FluidJob(NamedTuple):
    """A job that has been submitted and has not ended.

    `cpu` and `memory` are the needs of one task. `virtual_s` is the integral of its yield so far. `nodes` has the
    position of a node for each of its tasks, in increasing order; it is empty for a job that waits or is paused.
    """

    id: int
    submit_s: Seconds
    tasks: int
    cpu: int
    memory: int
    virtual_s: Seconds = 0
    nodes: tuple[int, ...] = ()


class Scale(NamedTuple):
    """The factors by which amounts of CPU and of memory become amounts in common units."""

    cpu: int
    memory: int

    @classmethod
    def of(cls, cpu: Sequence[int], memory: Sequence[int]) -> "Scale":
        """The factors for nodes with these capacities, as small as possible."""
        cpus, memories = sum(cpu), sum(memory)
        common = gcd(cpus, memories) or 1
        return cls(max(memories // common, 1), max(cpus // common, 1))
