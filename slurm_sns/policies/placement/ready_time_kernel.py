"""When there is room for a job, if running jobs end when they are expected to (compiled).

Every part of a job needs the same of its node, and until the job starts nothing else is taken. So each node has a
*ready time* of its own: the first moment from which it has what the job needs there, with all that has come free by
then. A job on n nodes can start at the n-th smallest ready time of the nodes that it may use. Only nodes that a switch
joins count together: where the nodes are several unconnected parts, it is the smallest of these times over the parts.

So one sweep over the releases, in the order of their ends, finds the start of one alternative; no nodes are searched.
For E releases, N nodes and R resources it costs O(R (N + E)), and ends at the release with which enough nodes are
ready. The start of a job is the smallest over its alternatives. Heuristics and weights do not change it: they choose
among the nodes that are ready by then. The oracle is `oracles.ready_times`.
"""

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import ActiveJob
from slurm_sns.policies.placement.compiled import compiled, entry_point, subroutine
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Floats, Integers, Problem, Releases
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.policies.placement.node_state_kernel import LEAST_CORES, LEAST_MEMORY_MB

#: A job beyond its time limit is assumed to end after so many seconds.
ANY_MOMENT_S = 1.0
#: What a node lacks of a resource that is not demanded: far less than nothing.
ANY_AMOUNT = -(1 << 60)
#: The jobs that have nodes, and the nodes on which some job is completing.
Active = tuple[Iterable[ActiveJob], Iterable[str]]
#: Of use where nobody asks when jobs end.
NOTHING_COMES_FREE = Releases(np.zeros(0, np.float64), np.zeros(0, np.int64), np.zeros((0, 0), np.int64))


class NodeRoom(NamedTuple):
    """What the nodes lack for one alternative, and from when on they have it."""

    lack: Integers  #: (R, N) the need minus what is free; the sweep changes it
    part: Integers  #: (N) the number, below N, of the connected part of the node; NOBODY if the job may not use it
    ready_s: Floats  #: (N) the ready times that were found; infinite where it is not known, or after the start
    ready: Integers  #: (N) scratch: how many nodes of the part are ready


def node_room(lack: Integers, part: Integers) -> NodeRoom:
    """The room of nodes that lack so much, with working memory; both arrays are used as they are."""
    count = len(part)
    return NodeRoom(lack, part, np.empty(count, np.float64), np.empty(count, np.int64))


def coming_free(node_arrays: NodeArrays, free: Integers, active: Active, now_s: float) -> Releases:
    """What the active jobs will give back on these nodes, of which this much is free; overdue ones at any moment.

    Where a job is completing, all that no active job holds comes free at any moment, whatever that job had.
    """
    column, capacity = {name: at for at, name in enumerate(node_arrays.names)}, node_arrays.capacity
    jobs, completing_on = active
    parts = [(job, column[name]) for job in jobs for name in job.nodes if name in column]
    soon_s = now_s + ANY_MOMENT_S
    ends_s = [inf if job.expected_end_s is None else max(job.expected_end_s, soon_s) for job, _ in parts]
    node = np.array([at for _, at in parts], np.int64)
    amount = node_arrays.amounts([job.demand for job, _ in parts]).T
    held = np.zeros_like(capacity)
    for row, taken in zip(held, amount.T, strict=True):
        np.add.at(row, node, taken)
    completing = np.array([column[name] for name in completing_on if name in column], np.int64)
    left = np.maximum((capacity - free - held)[:, completing], 0).T
    return in_order_of_ends(
        np.array([*ends_s, *[soon_s] * len(completing)], np.float64),
        np.concatenate([node, completing]),
        np.concatenate([amount, left]),
    )


def in_order_of_ends(end_s: NDArray[np.float64], node: Integers, amount: Integers) -> Releases:
    """The releases in the order that the sweep needs; the shapes are those of `Releases`."""
    order = np.argsort(end_s, kind="stable")
    return Releases(end_s[order], node[order], np.take(amount, order, axis=0))


@entry_point
def earliest_start(room: NodeRoom, wanted: int, releases: Releases, now_s: float) -> float:
    """When `wanted` nodes of one part are ready, in the unit of `end_s`; infinite if not known, or never.

    `room.lack` and `room.part` are given. All nodes that are ready by the start, at the same moment too, have their
    ready time in `room.ready_s`.
    """
    part, ready_s, ready = room.part, room.ready_s, room.ready
    start_s = inf
    for node in range(len(part)):
        ready_s[node] = inf
        ready[node] = 0
    for node in range(len(part)):
        if part[node] != NOBODY and _lacks_nothing(room.lack, node):
            ready_s[node] = now_s
            ready[part[node]] += 1
            if ready[part[node]] == wanted:
                start_s = now_s
    for at in range(len(releases.end_s)):
        end_s, node = releases.end_s[at], releases.node[at]
        if end_s == inf or end_s > start_s:
            break
        for row in range(room.lack.shape[0]):
            room.lack[row, node] -= releases.amount[at, row]
        if part[node] != NOBODY and ready_s[node] == inf and _lacks_nothing(room.lack, node):
            ready_s[node] = end_s
            ready[part[node]] += 1
            if ready[part[node]] == wanted:
                start_s = end_s
    return start_s


@compiled
def _lacks_nothing(lack: Integers, node: int) -> bool:
    lacks = False
    for row in range(lack.shape[0]):
        lacks |= lack[row, node] > 0
    return not lacks


@subroutine
def put_lack(room: NodeRoom, problem: Problem, free: Integers, alternative: int) -> None:
    """Put down what the nodes lack for the alternative when so much (R, N) is free.

    A node is ready when `best_node_kernel.find_nodes` would count it: it has room for the smallest job, too, and for an
    exclusive alternative it is empty. Of what is not demanded beyond cores and memory any amount will do: withheld
    capacity may have made it negative.
    """
    nodes, alternatives = problem.nodes, problem.alternatives
    demand, allowed = alternatives.demand[alternative], alternatives.allowed[alternative]
    whole = alternatives.exclusive[alternative]
    is_apart = alternatives.nodes[alternative] > 1 and nodes.switch.shape[0] > 0
    for row in range(free.shape[0]):
        least = demand[row]
        if row == CORES:
            least = max(least, LEAST_CORES)
        elif row == MEMORY:
            least = max(least, LEAST_MEMORY_MB)
        for node in range(free.shape[1]):
            need = max(least, nodes.capacity[row, node]) if whole else least
            room.lack[row, node] = need - free[row, node] if need > 0 else ANY_AMOUNT
    for node in range(free.shape[1]):
        room.part[node] = nodes.switch[-1, node] if is_apart else 0
        if allowed != NOBODY and not nodes.allowed[allowed, node]:
            room.part[node] = NOBODY
