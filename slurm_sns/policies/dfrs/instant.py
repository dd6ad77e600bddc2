"""One instant and the decision for it, as values: what the policy gives to the compiled kernels and takes from them.

A job is a number of tasks that are all alike: each needs memory, of which it must have all, and CPU, of which it may
have any fraction, the same for all tasks: the job's yield. CPU and memory of nodes and tasks are integers in common
units (module fluid_arrays).

Source: Dynamic fractional resource scheduling (IPDPS 2010), section II-B.
"""

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

import numpy as np

from slurm_sns.model import Seconds, Share
from slurm_sns.policies.dfrs.algorithms import Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import (
    CHANGED,
    TURNS,
    DecisionMoment,
    FluidCluster,
    cluster_of,
    job_needs,
    node_capacity,
)
from slurm_sns.policies.dfrs.instant_kernel import decide as decide_in_place
from slurm_sns.policies.dfrs.job_lists import list_all


class Nodes(NamedTuple):
    """The capacity of each node."""

    cpu: tuple[int, ...]
    memory: tuple[int, ...]


class FluidJob(NamedTuple):
    """A job that has been submitted and has not ended.

    `cpu` and `memory` are the needs of one task. `virtual_s` is the integral of its yield so far. `nodes` has the
    position of a node for each of its tasks, in increasing order; it is empty for a job that waits or is paused. A node
    has at most `together` of its tasks where they are placed greedily (None: any number).

    `may_pause`: the job may be paused for others; `loss` is the work that it would lose, in a unit common to all jobs.
    `was_paused`: it has been paused, so that it never pauses others.
    """

    id: int
    submit_s: Seconds
    tasks: int
    cpu: int
    memory: int
    virtual_s: Seconds = 0
    nodes: tuple[int, ...] = ()
    together: int | None = None
    may_pause: bool = True
    loss: float = 0
    was_paused: bool = False


class Instant(NamedTuple):
    """The jobs in submit order, and what has happened or is due at this moment.

    `newcomers` were submitted now; the back-off of those `due` ends now. `is_run`: a periodic run is due. `next_run_s`
    is the one after this moment. `floors` are the yields that the last run gave (STRETCH), by job. Where jobs are
    placed greedily, the CPU needs on a node are at most `most_to_a_core` times its CPU.
    """

    now_s: Seconds
    nodes: Nodes
    jobs: tuple[FluidJob, ...]
    newcomers: frozenset[int] = frozenset()
    due: frozenset[int] = frozenset()
    is_run: bool = False
    period_s: Seconds = 600
    next_run_s: Seconds = 600
    floors: Mapping[int, Share] = {}
    most_to_a_core: float = inf


class YieldDecision(NamedTuple):
    """The nodes of each job that has some from now on, its yield, the jobs that failed to start, the new floors."""

    places: Mapping[int, tuple[int, ...]]
    yields: Mapping[int, Share]
    failed: frozenset[int]
    floors: Mapping[int, Share]


def arrays_of(at: Instant) -> FluidCluster:
    """The nodes and jobs of this instant as arrays, the jobs in their order."""
    capacity = node_capacity(at.nodes.cpu, at.nodes.memory, at.most_to_a_core)
    needs = job_needs(
        np.array([float(job.submit_s) for job in at.jobs], np.float64),
        np.array([job.tasks for job in at.jobs], np.int64),
        np.array([job.cpu for job in at.jobs], np.float64),
        np.array([job.memory for job in at.jobs], np.float64),
        np.array([job.tasks if job.together is None else job.together for job in at.jobs], np.int64),
    )
    cluster = cluster_of(capacity, needs)
    states, lists = cluster.states, cluster.lists
    for position, job in enumerate(at.jobs):
        if job.nodes:
            begin = needs.first[position]
            states.places[begin : begin + job.tasks] = job.nodes
            states.has_nodes[position] = True
        elif job.id in at.newcomers or job.id in at.due:
            lists.turns[lists.counts[TURNS]] = position
            lists.counts[TURNS] += 1
        states.virtual_s[position] = float(job.virtual_s)
        states.floor[position] = float(at.floors.get(job.id, 0))
        states.may_pause[position] = job.may_pause
        states.loss[position] = float(job.loss)
        states.was_paused[position] = job.was_paused
    list_all(cluster)
    lists.counts[CHANGED] = True
    return cluster


def decide(algorithm: Algorithm, at: Instant) -> YieldDecision:
    """The decision for this instant; yields are floats."""
    cluster = arrays_of(at)
    clock = DecisionMoment(float(at.now_s), at.is_run, float(at.period_s), float(at.next_run_s))
    decide_in_place(algorithm, cluster, clock)
    needs, states = cluster.needs, cluster.states
    places, yields, floors = {}, {}, {}
    for position in np.flatnonzero(states.has_nodes).tolist():
        job, begin = at.jobs[position], int(needs.first[position])
        places[job.id] = tuple(states.places[begin : begin + job.tasks].tolist())
        yields[job.id] = float(states.cpu_yield[position])
        if algorithm.minimises_stretch:
            floors[job.id] = float(states.floor[position])
    failed = frozenset(at.jobs[position].id for position in np.flatnonzero(cluster.lists.failed).tolist())
    return YieldDecision(places, yields, failed, floors)
