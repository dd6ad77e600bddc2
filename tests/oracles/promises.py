"""Nodes that are kept for a job from its start on: what `policies/placement/promise_kernel` must do.

Everything is looked at for each promised start by itself, release by release. What overlaps with the first promised
start is taken to last: at later starts it is still there. So is the place of a job that starts before another one.
"""

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from oracles.ready_times import Release, ready_s, start_s
from slurm_sns.model import Alternative, Job, Resources, Seconds
from slurm_sns.policies.placement.kernel_arrays import Releases
from slurm_sns.policies.placement.node_arrays import (
    CORES,
    MEMORY,
    SMALLEST,
    Amounts,
    Indices,
    NodeArrays,
)
from slurm_sns.policies.placement.pass_record import Withheld
from slurm_sns.policies.placement.regions import NO_SWITCH

#: Nobody asks for this much less than nothing: a resource that is not demanded may be overdrawn.
WHATEVER = -(10**12)
#: The kernel counts the free cores of a node up to here.
MOST_CORES = 2047


class Room(NamedTuple):
    """When an alternative can start: the moment, when each node is ready, and the connected part of each node."""

    start_s: float
    ready_s: Sequence[float]
    part: Sequence[int | None]


class Promises:
    """The promises of a cycle: the places, and what is free beside them at each promised start."""

    def __init__(self, node_arrays: NodeArrays, coming: Releases, now_s: Seconds) -> None:
        """Begin with none; `coming` is what the running jobs give back."""
        self._node_arrays = node_arrays
        self._now_s = float(now_s)
        self._releases: list[Release] = [
            (int(node), float(end_s), node_arrays.resources(amount.tolist()))
            for end_s, node, amount in zip(coming.end_s, coming.node, coming.amount, strict=True)
        ]
        self._places = np.zeros_like(node_arrays.capacity)
        self._starts: list[tuple[float, Amounts]] = []

    def __len__(self) -> int:
        return len(self._starts)

    def lasts(self, job: Job) -> bool:
        """Whether a job that starts now may still run at a promised start."""
        return self._now_s + _run_s(job) > min((at_s for at_s, _ in self._starts), default=inf)

    def beside(self, free: Amounts) -> Amounts:
        """What such a job may take: what is free now and at each promised start, outside the places."""
        return np.minimum.reduce([free, *(left for _, left in self._starts)])

    def matched(self, job: Job, alternative: Alternative, nodes: Indices) -> None:
        """The job takes these nodes now."""
        if self.lasts(job):
            for _, left in self._starts:
                left[:, nodes] -= self._taken(alternative, nodes)
        self._will_end(self._now_s + _run_s(job), alternative, nodes)

    def promise(self, job: Job, free: Amounts) -> Withheld | None:
        """Keep a place for the job; None where no end gives it a start."""
        left = free - self._places
        rooms = {choice: self._room(each, job, left) for choice, each in enumerate(job.alternatives)}
        best = min(rooms, key=lambda choice: rooms[choice].start_s)  # the first of equal ones
        room, alternative = rooms[best], job.alternatives[best]
        if room.start_s == inf:
            return None
        nodes = _place(room, alternative.nodes, left)
        for node, end_s, amount in self._releases:
            if end_s <= room.start_s:
                left[:, node] += self._node_arrays.amounts([amount])[:, 0]
        left[:, nodes] -= self._taken(alternative, nodes)
        self._places[:, nodes] += self._taken(alternative, nodes)
        if any(at_s > room.start_s for at_s, _ in self._starts):
            for _, other in self._starts:
                other[:, nodes] -= self._taken(alternative, nodes)
        self._starts.append((room.start_s, left))
        self._will_end(room.start_s + _run_s(job), alternative, nodes)
        return Withheld(job, alternative, nodes, room.start_s)

    def _will_end(self, end_s: float, alternative: Alternative, nodes: Indices) -> None:
        took = np.broadcast_to(self._taken(alternative, nodes), (len(self._places), len(nodes)))
        amounts = [self._node_arrays.resources(column) for column in took.T.tolist()]
        self._releases += [(int(node), end_s, amount) for node, amount in zip(nodes, amounts, strict=True)]

    def _taken(self, alternative: Alternative, nodes: Indices) -> Amounts:
        return self._node_arrays.taken(alternative, nodes)

    def _need(self, alternative: Alternative, node: int) -> Resources:
        """What must be free on the node for a part of the alternative; an exclusive one needs all of it."""
        demand = np.array(self._node_arrays.demand(alternative.demand))
        if alternative.exclusive:
            need = np.maximum(self._node_arrays.capacity[:, node], demand)
        else:
            need = np.where(demand == 0, WHATEVER, demand)
        need[CORES], need[MEMORY] = max(need[CORES], SMALLEST.cores), max(need[MEMORY], SMALLEST.memory_mb)
        return self._node_arrays.resources(need.tolist())

    def _room(self, alternative: Alternative, job: Job, left: Amounts) -> Room:
        """When the alternative can start if so much is free now."""
        part = self._parts(alternative, job.allowed)
        ready = [
            inf
            if of is None
            else ready_s(
                node,
                self._need(alternative, node),
                self._node_arrays.resources(left[:, node].tolist()),
                self._releases,
                self._now_s,
            )
            for node, of in enumerate(part)
        ]
        return Room(start_s(ready, part, alternative.nodes), ready, part)

    def _parts(self, alternative: Alternative, allowed: frozenset[str] | None) -> list[int | None]:
        """The highest switch above each node, one for all where the job has one node; None: it may not be used."""
        permitted, switches = self._node_arrays.allows(allowed), self._node_arrays.regions.switch
        top = switches[-1].tolist() if len(switches) and alternative.nodes > 1 else [0] * len(self._node_arrays.names)
        return [
            None if of == NO_SWITCH or (permitted is not None and not permitted[node]) else of
            for node, of in enumerate(top)
        ]


def _place(room: Room, count: int, left: Amounts) -> Indices:
    """Of the nodes ready by the start, in the first part with enough of them, those ready last, with few free cores."""
    ready = [node for node, at_s in enumerate(room.ready_s) if at_s <= room.start_s]
    sizes = Counter(of for node in ready if (of := room.part[node]) is not None)
    part = min(of for of, size in sizes.items() if size >= count)
    inside = [node for node in ready if room.part[node] == part]
    inside.sort(key=lambda node: (-room.ready_s[node], min(max(int(left[CORES, node]), 0), MOST_CORES), node))
    return np.sort(np.array(inside[:count], np.intp))


def _run_s(job: Job) -> float:
    return inf if job.expected_run_s is None else float(job.expected_run_s)
