"""Why jobs wait, and how much stands idle that no waiting job can use, at instants of a simulated run.

At an instant a waiting job lacks memory if enough of the nodes that it may use had its cores free, and cores if enough
had its memory free; it lacks both if neither holds. If enough nodes have both, there is room: jobs before it, or a
booking, keep it waiting. Each waiting job counts with the time from one instant to the next.

On a node where no waiting job fits, the idle cores are stranded if some waiting job asks for no more cores: memory is
short there. The idle memory is stranded if some waiting job asks for no more memory: cores are short.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import Flags, Integers

#: From one instant to the next; a shorter time has this many instants.
STEP_S, FEWEST_INSTANTS = 1800, 300
#: Why a job waits, in the order of the columns of `Instants.waiting_h`.
REASONS = ("room", "memory", "cores", "both")
#: So many pairs of a kind of jobs and a node are looked at together.
AT_A_TIME = 1 << 22

Floats = NDArray[np.float64]


class Instants(NamedTuple):
    """What the instants of a run show.

    `waiting_h` are hours of waiting, shape (partitions, reasons). `idle` and `stranded` are cores and memory in MiB,
    shape (2), summed over the `busy` instants, those at which something waits. `waiting` is the number of waiting jobs
    at each instant, and `step_s` the time from one to the next.
    """

    waiting_h: Floats
    idle: Floats
    stranded: Floats
    busy: int
    waiting: Integers
    step_s: int


@dataclass(frozen=True)
class _Kinds:
    """The kinds of the waiting jobs: what each asks for on each node, of how many, and which nodes it may use."""

    nodes: Integers
    cores: Integers
    memory: Integers
    allowed: Flags  #: (kinds, nodes)


def look(run: TraceRun, node_arrays: NodeArrays, length_s: int, *, step_s: int | None = None) -> Instants:
    """Look at the run every `step_s` seconds of this time, without it at least at FEWEST_INSTANTS or each second.

    The first instant is one step after the begin.
    """
    trace = run.trace
    step_s = step_s or max(1, min(STEP_S, length_s // FEWEST_INSTANTS))
    count = max(1, length_s // step_s)
    free = _free(run, node_arrays, count, step_s)
    partitions = max(1, len(trace.partitions))
    groups, waiting = _waiting(run, count, partitions, step_s)
    waiting_h, idle, stranded = np.zeros((partitions, len(REASONS))), np.zeros(2), np.zeros(2)
    kinds = _kinds(run, node_arrays)
    total = waiting.sum(axis=1)
    for at in np.flatnonzero(total).tolist():
        there = np.flatnonzero(waiting[at])
        waits, place = np.unique(groups[there] // partitions, return_inverse=True)
        reason, lost = _judge(kinds, waits, free[at])
        hours = waiting[at, there] * (step_s / 3600)
        np.add.at(waiting_h, (groups[there] % partitions, reason[place]), hours)
        idle += free[at].sum(axis=1)
        stranded += lost
    return Instants(waiting_h, idle, stranded, int(np.count_nonzero(total)), total, step_s)


def _kinds(run: TraceRun, node_arrays: NodeArrays) -> _Kinds:
    trace = run.trace
    allowed = [node_arrays.allows(each) for each in trace.allowed_nodes or [None] * len(trace.kinds)]
    everywhere = np.ones(len(node_arrays.names), np.bool_)
    nodes, cores, memory = (np.array([kind[at] for kind in trace.kinds], np.int64) for at in range(3))
    return _Kinds(nodes, cores, memory, np.array([everywhere if mask is None else mask for mask in allowed]))


def _waiting(run: TraceRun, count: int, partitions: int, step_s: int) -> tuple[Integers, Integers]:
    """The groups of jobs of one kind and partition, and how many of each wait, shape (instants, groups).

    A group is the kind times the number of partitions, plus the partition.
    """
    trace = run.trace
    partition = trace.partition if len(trace.partition) else np.zeros(len(trace), np.int32)
    groups, of_job = np.unique(trace.kind.astype(np.int64) * partitions + partition, return_inverse=True)
    changes = np.zeros((count + 1, len(groups)), np.int32)
    np.add.at(changes, (_instant(trace.submit, count, step_s), of_job), 1)
    np.add.at(changes, (_instant(run.start, count, step_s), of_job), -1)
    return groups, np.cumsum(changes[:-1], axis=0)


def _free(run: TraceRun, node_arrays: NodeArrays, count: int, step_s: int) -> Integers:
    """The free cores and memory of each node, shape (instants, 2, nodes)."""
    trace = run.trace
    nodes, cores, memory = (np.array([kind[at] for kind in trace.kinds], np.int64)[trace.kind] for at in range(3))
    job = np.repeat(np.arange(len(trace)), nodes)
    offset = np.arange(len(job)) - np.repeat(np.cumsum(nodes) - nodes, nodes)
    several = nodes[job] > 1
    node = np.asarray(run.place)[job].astype(np.int64)
    node[several] = run.spread[node[several] + offset[several]]
    changes = np.zeros((count + 1, 2, len(node_arrays.names)), np.int64)
    begin, end = (_instant(each, count, step_s)[job] for each in (run.start, run.end))
    for row, amount in ((CORES, cores[job]), (MEMORY, memory[job])):
        np.add.at(changes[:, row], (begin, node), -amount)
        np.add.at(changes[:, row], (end, node), amount)
    return node_arrays.capacity[[CORES, MEMORY]] + np.cumsum(changes[:-1], axis=0)


def _instant(moment_s: Integers, count: int, step_s: int) -> Integers:
    """The first instant that is not before this moment, `count` behind the last; instant i is at (i + 1) steps."""
    return np.clip(-(-moment_s // step_s) - 1, 0, count).astype(np.int64)


def _judge(kinds: _Kinds, there: Integers, free: Integers) -> tuple[Integers, Floats]:
    """Why each of the kinds that wait does so, as a place in REASONS, and the stranded cores and memory."""
    enough = np.zeros((3, len(there)), np.int64)
    fits_some, may_cores, may_memory = (np.zeros(free.shape[1], np.bool_) for _ in range(3))
    block = max(1, AT_A_TIME // free.shape[1])
    for begin in range(0, len(there), block):
        of = there[begin : begin + block]
        allowed = kinds.allowed[of]
        cores = allowed & (kinds.cores[of, np.newaxis] <= free[CORES])
        memory = allowed & (kinds.memory[of, np.newaxis] <= free[MEMORY])
        both = cores & memory
        for row, each in enumerate((both, cores, memory)):
            enough[row, begin : begin + block] = np.count_nonzero(each, axis=1)
        fits_some |= both.any(axis=0)
        may_cores |= cores.any(axis=0)
        may_memory |= memory.any(axis=0)
    has_room, lacks_memory, lacks_cores = enough >= kinds.nodes[there]
    reason = np.select([has_room, lacks_memory, lacks_cores], [0, 1, 2], 3)
    lost = [free[CORES, may_cores & ~fits_some].sum(), free[MEMORY, may_memory & ~fits_some].sum()]
    return reason, np.array(lost, np.float64)
