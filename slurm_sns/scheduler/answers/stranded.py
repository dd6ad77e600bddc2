"""What a cycle leaves free on each node, and what of it no waiting job can use for want of something else there. Pure.

A node's free cores are stranded if it has less free memory than each waiting job needs on a node. Its free GPUs of a
type are stranded if for each waiting job that asks for this type, or for any type, it has too few free cores or too
little free memory. Cores are stranded only while a job waits for nodes, GPUs of a type only while a job waits for some.
It only compares amounts: which nodes a job may use does not count.
"""

from collections.abc import Iterable
from typing import NamedTuple

from slurm_sns.gpus import by_type
from slurm_sns.model import NOTHING, Alternative, Node, Resources, gpus_of
from slurm_sns.scheduler.answers.view import View

#: Cores and memory in MiB.
_Pair = tuple[int, int]


class Needs(NamedTuple):
    """The least that waiting jobs need on a node.

    `memory_mb` is the least memory, None if no job waits. `beside_gpus` has the smallest pairs of cores and memory that
    go with GPUs, by the type that is asked for; under "" those of jobs that take any type.
    """

    memory_mb: int | None
    beside_gpus: dict[str, tuple[_Pair, ...]]


def needs_of(alternatives: Iterable[Alternative]) -> Needs:
    """The needs of jobs that can run in these ways."""
    least_mb, beside = None, dict[str, set[_Pair]]()
    for demand in {each.demand for each in alternatives}:
        least_mb = demand.memory_mb if least_mb is None else min(least_mb, demand.memory_mb)
        for kind in by_type(demand.gpus):
            beside.setdefault(kind, set()).add((demand.cores, demand.memory_mb))
    return Needs(least_mb, {kind: _smallest(pairs) for kind, pairs in beside.items()})


def waiting_needs(view: View) -> Needs:
    """The needs of the jobs for which the cycle looked for nodes and found none."""
    started = {start.job_id for start in view.plan.starts}
    waiting = (job for job in view.situation.snapshot.waiting if job.id not in started)
    return needs_of(each for job in waiting for each in job.alternatives)


def stranded(needs: Needs, node: Node) -> Resources:
    """The free cores and GPUs of a node that are stranded; its other resources are 0."""
    free = node.free
    lacks_memory = needs.memory_mb is not None and free.memory_mb < needs.memory_mb
    gpus = {kind: count for kind, count in by_type(free.gpus).items() if _are_useless(needs, kind, free)}
    return Resources(free.cores if lacks_memory else 0, 0, gpus=gpus_of(gpus))


def left_free(view: View) -> list[Node]:
    """The nodes that are planned on, with what the cycle's placements leave free; nothing is free below zero."""
    taken: dict[str, Resources] = {}
    if view.mode == "enforce":
        for start in view.plan.starts:
            for name in start.nodes:
                taken[name] = taken.get(name, NOTHING).plus(start.alternative.demand)
    return [
        Node(node.name, node.capacity, _not_negative(node.free.minus(taken.get(node.name, NOTHING))))
        for node in view.situation.snapshot.nodes
    ]


def _not_negative(amounts: Resources) -> Resources:
    return amounts.minus(amounts.up_to(NOTHING))


def _are_useless(needs: Needs, kind: str, free: Resources) -> bool:
    """Whether jobs want GPUs of this type, and none of them finds its cores and its memory beside them."""
    wanted = [*needs.beside_gpus.get("", ()), *(needs.beside_gpus.get(kind, ()) if kind else ())]
    return bool(wanted) and not any(cores <= free.cores and memory_mb <= free.memory_mb for cores, memory_mb in wanted)


def _smallest(pairs: Iterable[_Pair]) -> tuple[_Pair, ...]:
    """The pairs than which no other has fewer cores and no more memory, or as many cores and less memory."""
    found: list[_Pair] = []
    for pair in sorted(pairs):
        if not found or pair[1] < found[-1][1]:
            found.append(pair)
    return tuple(found)
