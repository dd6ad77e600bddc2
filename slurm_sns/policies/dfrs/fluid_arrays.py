"""The arrays that the compiled kernels of DFRS work on.

Amounts are integers in common units, stored as floats: sums and products of them are exact below 2^53. The CPU of all
nodes together is as many units as their memory, so that the two needs of a task can be compared. Times are floats in
seconds. Jobs are numbers, in submit order, and arrays by job have an entry for each.
"""

from collections.abc import Sequence
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.compiled import entry_point

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Places = NDArray[np.int32]
Flags = NDArray[np.bool_]


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


class NodeCapacity(NamedTuple):
    """The capacity of each node, that of all nodes together, and the largest.

    The nodes from each one up to `alike_to` of it are alike. Jobs are placed greedily only where the CPU needs on a
    node do not exceed its `most_needed`; MCB8 has no such limit.
    """

    cpu: Floats
    memory: Floats
    alike_to: Integers
    all_cpu: float
    all_memory: float
    most_cpu: float
    most_needed: Floats


class FluidNeeds(NamedTuple):
    """By job, what never changes. The places of a job are those from its `first` up to its `end`.

    A node has at most `together` of a job's tasks, where they are placed greedily. Jobs of one `kind` have equally many
    tasks with equal needs and an equal `together`.
    """

    submit_s: Floats
    tasks: Integers
    cpu: Floats
    memory: Floats
    first: Integers
    end: Integers
    together: Integers
    kind: Integers


class JobStates(NamedTuple):
    """Where the tasks are, in increasing order of the nodes, and how each job stands.

    `places` counts only for jobs that have nodes. `floor` is the yield that the last run gave (STRETCH). `may_pause`:
    the job may be paused for a newcomer at this instant; `loss` is the work that it would lose, in any unit common to
    all jobs. Both are set before each decision. `was_paused`: it has been paused.
    """

    places: Places
    has_nodes: Flags
    virtual_s: Floats
    cpu_yield: Floats
    floor: Floats
    may_pause: Flags
    loss: Floats
    was_paused: Flags


class JobLists(NamedTuple):
    """The jobs in the system: `running` has those that have nodes, in submit order, `waiting` the others, in any order.

    `position` is by job: where it is among the waiting. `counts` are the lengths (RUNNING, WAITING, TURNS), whether a
    job has got or lost nodes since yields were set (CHANGED), and how often waiting jobs were looked at (PASSES).
    `turns` are the jobs, in submit order, that were submitted at this instant or whose back-off ends; `failed` is by
    job: whether it found no place in its turn.
    """

    running: Integers
    waiting: Integers
    position: Integers
    counts: Integers
    turns: Integers
    failed: Flags


RUNNING, WAITING, TURNS, CHANGED, PASSES = range(5)


class Space(NamedTuple):
    """Working memory: kernels allocate nothing.

    By node: `memory_left` and `cpu_needed` by the running jobs, which are kept up to date; `memory_reached` and
    `cpu_kept`, the same if all jobs were paused that may be; `cpu`, which is left; `tasks_on`, of the job that is
    placed. `by_room`: nodes. `packings`: two packings that take turns. Lists of jobs:
    `by_priority`, `packed`, `raised`, `lists`, `used`; `spare` is that of the sort. By job: `required`, what a task
    requires of the CPU; `memory`, `left`, `used_by`: of a packing; `key`, `other`: what jobs are sorted by; `paused_s`:
    when the job was last paused for a newcomer. By kind: `fits`, whether jobs of it fit, in the pass over the waiting
    jobs `seen`. `least`: the lowest priority that is looked at.
    """

    memory_left: Floats
    cpu_needed: Floats
    memory_reached: Floats
    cpu_kept: Floats
    cpu: Floats
    tasks_on: Integers
    by_room: Integers
    packings: NDArray[np.int32]
    by_priority: Integers
    packed: Integers
    raised: Integers
    lists: Integers
    used: Integers
    spare: Integers
    required: Floats
    memory: Floats
    left: Integers
    used_by: Integers
    key: Floats
    other: Floats
    paused_s: Floats
    least: Floats
    seen: Integers
    fits: Flags


class FluidCluster(NamedTuple):
    """All of these: what a kernel works on."""

    capacity: NodeCapacity
    needs: FluidNeeds
    states: JobStates
    lists: JobLists
    space: Space


class DecisionMoment(NamedTuple):
    """The moment, whether a periodic run is due at it, the period, and when the next run is."""

    now_s: float
    is_run: bool
    period_s: float
    next_run_s: float


def cluster_of(capacity: NodeCapacity, needs: FluidNeeds) -> FluidCluster:
    """These nodes and jobs before any job is in the system."""
    count, places, nodes = len(needs.tasks), int(needs.tasks.sum()), len(capacity.cpu)

    def flags() -> Flags:
        return np.zeros(count, np.bool_)

    def floats() -> Floats:
        return np.zeros(count)

    def integers() -> Integers:
        return np.zeros(count, np.int64)

    return FluidCluster(
        capacity,
        needs,
        JobStates(np.zeros(places, np.int32), flags(), floats(), floats(), floats(), ~flags(), floats(), flags()),
        JobLists(integers(), integers(), integers(), np.zeros(5, np.int64), integers(), flags()),
        Space(
            capacity.memory.copy(),
            np.zeros(nodes),
            np.zeros(nodes),
            np.zeros(nodes),
            np.zeros(nodes),
            np.zeros(nodes, np.int64),
            np.arange(nodes),
            np.zeros((2, places), np.int32),
            integers(),
            integers(),
            integers(),
            integers(),
            integers(),
            np.zeros(max(count, nodes), np.int64),
            floats(),
            floats(),
            integers(),
            integers(),
            floats(),
            floats(),
            np.full(count, -np.inf),
            np.zeros(1),
            np.zeros(count, np.int64),
            flags(),
        ),
    )


def node_capacity(cpu: Sequence[int], memory: Sequence[int], most_to_a_core: float = np.inf) -> NodeCapacity:
    """The capacity of these nodes, where the needs of tasks may exceed the CPU by the factor `most_to_a_core`."""
    both = np.array([cpu, memory], np.float64)
    ends = np.flatnonzero(np.append((both[:, 1:] != both[:, :-1]).any(axis=0), True)) + 1
    return NodeCapacity(
        both[0],
        both[1],
        np.repeat(ends, np.diff(ends, prepend=0)),
        float(sum(cpu)),
        float(sum(memory)),
        float(max(cpu, default=0)),
        most_to_a_core * both[0],
    )


def job_needs(
    submit_s: Floats, tasks: Integers, cpu: Floats, memory: Floats, together: Integers | None = None
) -> FluidNeeds:
    """The needs of jobs, in submit order; None: a node may have all tasks of a job."""
    end: Integers = np.cumsum(tasks)
    together = tasks if together is None else together
    kind = np.unique(np.stack([tasks, together, cpu, memory]), axis=1, return_inverse=True)[1].ravel()
    return FluidNeeds(submit_s, tasks, cpu, memory, end - tasks, end, together, kind)


@entry_point
def copy(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy the source's entries; numpy's own assignment would allocate."""
    for at in range(len(source)):
        target[at] = source[at]
