"""Why jobs wait, and how much stands idle that no waiting job can use, at instants of a simulated run.

At an instant a waiting job lacks memory if enough of the nodes that it may use had its cores free, and cores if enough
had its memory free; it lacks both if neither holds. It lacks GPUs if enough nodes have both free, and too few of them
its GPUs, too. If enough nodes have all, there is room: jobs before it, or a booking, keep it waiting. Each waiting job
counts with the time from one instant to the next.

On a node where no waiting job fits, the idle cores are stranded if some waiting job asks for no more cores: memory is
short there. The idle memory is stranded if some waiting job asks for no more memory: cores are short. A job whose GPUs
are not free on the node strands nothing there.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES, GPUS, MEMORY, NodeArrays
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import Flags, Integers

#: From one instant to the next; a shorter time has this many instants.
STEP_S, FEWEST_INSTANTS = 1800, 300
#: Why a job waits, in the order of the columns of `Instants.waiting_h`.
REASONS = ("room", "memory", "cores", "both", "gpus")
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
    demand: Integers  #: (rows of `_rows`, kinds)
    allowed: Flags  #: (kinds, nodes)


def look(run: TraceRun, node_arrays: NodeArrays, length_s: int, *, step_s: int | None = None) -> Instants:
    """Look at the run every `step_s` seconds of this time, without it at least at FEWEST_INSTANTS or each second.

    The first instant is one step after the begin.
    """
    trace = run.trace
    step_s = step_s or max(1, min(STEP_S, length_s // FEWEST_INSTANTS))
    count = max(1, length_s // step_s)
    kinds = _kinds(run, node_arrays)
    free = _free(run, node_arrays, kinds, count, step_s)
    partitions = max(1, len(trace.partitions))
    groups, waiting = _waiting(run, count, partitions, step_s)
    waiting_h, idle, stranded = np.zeros((partitions, len(REASONS))), np.zeros(2), np.zeros(2)
    total = waiting.sum(axis=1)
    for at in np.flatnonzero(total).tolist():
        there = np.flatnonzero(waiting[at])
        waits, place = np.unique(groups[there] // partitions, return_inverse=True)
        reason, lost = _judge(kinds, waits, free[at])
        hours = waiting[at, there] * (step_s / 3600)
        np.add.at(waiting_h, (groups[there] % partitions, reason[place]), hours)
        idle += free[at, : MEMORY + 1].sum(axis=1)
        stranded += lost
    return Instants(waiting_h, idle, stranded, int(np.count_nonzero(total)), total, step_s)


def _rows(node_arrays: NodeArrays) -> list[int]:
    """The resources that are looked at: cores, memory and GPUs."""
    return [CORES, MEMORY, *range(GPUS, len(node_arrays.capacity))]


def _kinds(run: TraceRun, node_arrays: NodeArrays) -> _Kinds:
    trace = run.trace
    allowed = [node_arrays.allows(each) for each in trace.allowed_nodes or [None] * len(trace.kinds)]
    everywhere = np.ones(len(node_arrays.names), np.bool_)
    nodes = np.array([kind[0] for kind in trace.kinds], np.int64)
    demand = node_arrays.amounts([first.demand for first, *_ in trace.choices])[_rows(node_arrays)]
    return _Kinds(nodes, demand, np.array([everywhere if mask is None else mask for mask in allowed]))


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


def _free(run: TraceRun, node_arrays: NodeArrays, kinds: _Kinds, count: int, step_s: int) -> Integers:
    """What is free of the resources `_rows` on each node, shape (instants, rows, nodes)."""
    trace = run.trace
    nodes, rows = kinds.nodes[trace.kind], _rows(node_arrays)
    job = np.repeat(np.arange(len(trace)), nodes)
    offset = np.arange(len(job)) - np.repeat(np.cumsum(nodes) - nodes, nodes)
    several = nodes[job] > 1
    node = np.asarray(run.place)[job].astype(np.int64)
    node[several] = run.spread[node[several] + offset[several]]
    changes = np.zeros((count + 1, len(rows), len(node_arrays.names)), np.int64)
    begin, end = (_instant(each, count, step_s)[job] for each in (run.start, run.end))
    for row, demand in enumerate(kinds.demand):
        amount = demand[trace.kind][job]
        np.add.at(changes[:, row], (begin, node), -amount)
        np.add.at(changes[:, row], (end, node), amount)
    return node_arrays.capacity[rows] + np.cumsum(changes[:-1], axis=0)


def _instant(moment_s: Integers, count: int, step_s: int) -> Integers:
    """The first instant that is not before this moment, `count` behind the last; instant i is at (i + 1) steps."""
    return np.clip(-(-moment_s // step_s) - 1, 0, count).astype(np.int64)


def _judge(kinds: _Kinds, there: Integers, free: Integers) -> tuple[Integers, Floats]:
    """Why each of the kinds that wait does so, as a place in REASONS, and the stranded cores and memory."""
    enough = np.zeros((4, len(there)), np.int64)
    fits_some, may_cores, may_memory = (np.zeros(free.shape[1], np.bool_) for _ in range(3))
    block = max(1, AT_A_TIME // free.shape[1])
    for begin in range(0, len(there), block):
        of = there[begin : begin + block]
        allowed, demand = kinds.allowed[of], kinds.demand[:, of, np.newaxis]
        cores = allowed & (demand[CORES] <= free[CORES])
        memory = allowed & (demand[MEMORY] <= free[MEMORY])
        both, gpus = cores & memory, np.ones_like(cores)
        for row in range(MEMORY + 1, len(free)):
            gpus &= (demand[row] <= free[row]) | (demand[row] == 0)
        for row, each in enumerate((both & gpus, cores, memory, both)):
            enough[row, begin : begin + block] = np.count_nonzero(each, axis=1)
        fits_some |= (both & gpus).any(axis=0)
        may_cores |= (cores & gpus).any(axis=0)
        may_memory |= (memory & gpus).any(axis=0)
    has_room, has_cores, has_memory, has_both = enough >= kinds.nodes[there]
    reason = np.select([has_room, has_both, has_cores, has_memory], [0, 4, 1, 2], 3)
    lost = [free[CORES, may_cores & ~fits_some].sum(), free[MEMORY, may_memory & ~fits_some].sum()]
    return reason, np.array(lost, np.float64)
