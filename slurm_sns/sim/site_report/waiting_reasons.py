"""Why jobs wait, and how much stands idle that no waiting job can use, at instants of a simulated run.

At an instant a waiting job lacks memory if enough of the nodes that it may use had its cores free, and cores if enough
had its memory free; it lacks both if neither holds. It lacks GPUs if enough nodes have both free, and too few of them
its GPUs, too. If enough nodes have all, there is room: jobs before it, or a booking, keep it waiting. Each waiting job
counts with the time from one instant to the next.

On a node where no waiting job fits, the idle cores are stranded if some waiting job asks for no more cores: memory is
short there. The idle memory is stranded if some waiting job asks for no more memory: cores are short. A job whose GPUs
are not free on the node strands nothing there.

On a node where no waiting job that asks for GPUs of a type, or of any, fits, the idle GPUs of this type are stranded if
all GPUs of some such job are idle there: cores or memory are short. A job without GPUs that fits takes none of them. Of
a job that has GPUs of any type nobody knows which ones: of each type at most as many are idle as of all together.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import GPU
from slurm_sns.policies.placement.node_arrays import CORES, GPUS, MEMORY, NodeArrays
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import Flags, Integers

#: From one instant to the next; a shorter time has this many instants.
STEP_S, FEWEST_INSTANTS = 1800, 300
#: Why a job waits, in the order of the columns of `Instants.waiting_h`.
REASONS = ("room", "memory", "cores", "both", "gpus")
#: So many pairs of a kind of jobs and a node are looked at together.
AT_A_TIME = 1 << 22

#: The first row of GPUs among `_rows`.
_GPUS = MEMORY + 1

Floats = NDArray[np.float64]


class Instants(NamedTuple):
    """What the instants of a run show.

    `waiting_h` are hours of waiting, shape (partitions, reasons). `idle` and `stranded` are amounts (`amounts_of`),
    summed over the `busy` instants, those at which something waits. `waiting` is the number of waiting jobs at each
    instant, and `step_s` the time from one to the next.
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
    wants: Flags  #: Whether it asks for GPUs that may be of this type (types of GPUs, kinds)
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
    waiting_h, total = np.zeros((partitions, len(REASONS))), waiting.sum(axis=1)
    idle, stranded = np.zeros((2, len(amounts_of(free[0]))))
    for at in np.flatnonzero(total).tolist():
        there = np.flatnonzero(waiting[at])
        waits, place = np.unique(groups[there] // partitions, return_inverse=True)
        reason, lost = _judge(kinds, waits, free[at])
        hours = waiting[at, there] * (step_s / 3600)
        np.add.at(waiting_h, (groups[there] % partitions, reason[place]), hours)
        idle += amounts_of(free[at]).sum(axis=1)
        stranded += lost
    return Instants(waiting_h, idle, stranded, int(np.count_nonzero(total)), total, step_s)


def gpu_types(node_arrays: NodeArrays) -> tuple[str, ...]:
    """The types of GPUs in the order of `amounts_of`; the last one, of those without a type, is empty."""
    if not node_arrays.gpu_names:
        return ()
    return (*(name.removeprefix(f"{GPU}:") for name in node_arrays.gpu_names[1:]), "")


def capacity_of(node_arrays: NodeArrays) -> Floats:
    """What all nodes have (`amounts_of`)."""
    found: Floats = amounts_of(node_arrays.capacity[_rows(node_arrays)]).sum(axis=1).astype(np.float64)
    return found


def amounts_of(rows: Integers) -> Integers:
    """Cores, memory in MiB, GPUs of each type in the order of `gpu_names`, and those without a type.

    Given are the resources `_rows`. Where no node has GPUs there are only cores and memory.
    """
    return np.concatenate([rows[:_GPUS], _by_type(rows[_GPUS:])])


def _by_type(gpus: Integers) -> Integers:
    """Of a row of all GPUs and one of each type: the types, and then those of no type, or of any."""
    if not len(gpus):
        return gpus
    untyped = np.maximum(0, gpus[:1] - gpus[1:].sum(axis=0))
    return np.concatenate([np.minimum(gpus[1:], gpus[:1]), untyped])


def _rows(node_arrays: NodeArrays) -> list[int]:
    """The resources that are looked at: cores, memory and GPUs."""
    return [CORES, MEMORY, *range(GPUS, len(node_arrays.capacity))]


def _kinds(run: TraceRun, node_arrays: NodeArrays) -> _Kinds:
    trace = run.trace
    allowed = [node_arrays.allows(each) for each in trace.allowed_nodes or [None] * len(trace.kinds)]
    everywhere = np.ones(len(node_arrays.names), np.bool_)
    nodes = np.array([kind[0] for kind in trace.kinds], np.int64)
    demand = node_arrays.amounts([first.demand for first, *_ in trace.choices])[_rows(node_arrays)]
    gpus = _by_type(demand[_GPUS:])
    wants = (gpus > 0) | (gpus[-1:] > 0)
    return _Kinds(nodes, demand, wants, np.array([everywhere if mask is None else mask for mask in allowed]))


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
    """Why each of the kinds that wait does so, as a place in REASONS, and what is stranded (`amounts_of`)."""
    enough = np.zeros((4, len(there)), np.int64)
    fits_some, may_cores, may_memory = (np.zeros(free.shape[1], np.bool_) for _ in range(3))
    fits_gpus, may_gpus = np.zeros((2, len(kinds.wants), free.shape[1]), np.bool_)
    block = max(1, AT_A_TIME // free.shape[1])
    for begin in range(0, len(there), block):
        of = there[begin : begin + block]
        allowed, demand = kinds.allowed[of], kinds.demand[:, of, np.newaxis]
        cores = allowed & (demand[CORES] <= free[CORES])
        memory = allowed & (demand[MEMORY] <= free[MEMORY])
        both, gpus = cores & memory, np.ones_like(cores)
        for row in range(_GPUS, len(free)):
            gpus &= (demand[row] <= free[row]) | (demand[row] == 0)
        for row, each in enumerate((both & gpus, cores, memory, both)):
            enough[row, begin : begin + block] = np.count_nonzero(each, axis=1)
        fits_some |= (both & gpus).any(axis=0)
        may_cores |= (cores & gpus).any(axis=0)
        may_memory |= (memory & gpus).any(axis=0)
        for of_type, wants in enumerate(kinds.wants[:, of]):
            fits_gpus[of_type] |= (both & gpus)[wants].any(axis=0)
            may_gpus[of_type] |= (allowed & gpus)[wants].any(axis=0)
    has_room, has_cores, has_memory, has_both = enough >= kinds.nodes[there]
    reason = np.select([has_room, has_both, has_cores, has_memory], [0, 4, 1, 2], 3)
    is_lost = np.stack([may_cores & ~fits_some, may_memory & ~fits_some, *(may_gpus & ~fits_gpus)])
    return reason, np.where(is_lost, amounts_of(free), 0).sum(axis=1).astype(np.float64)
