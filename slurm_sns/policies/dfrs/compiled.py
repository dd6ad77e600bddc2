"""The decision for an instant by the compiled kernels: the same as that of module instant, with yields as floats."""

import numpy as np

from slurm_sns.policies.dfrs.algorithms import Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import DecisionMoment, FluidCluster, cluster_of, job_needs, node_capacity
from slurm_sns.policies.dfrs.instant import Instant, YieldDecision
from slurm_sns.policies.dfrs.instant_kernel import decide as decide_in_place


def arrays_of(at: Instant) -> FluidCluster:
    """The nodes and jobs of this instant as arrays, the jobs in their order."""
    capacity = node_capacity(at.nodes.cpu, at.nodes.memory)
    needs = job_needs(
        np.array([float(job.submit_s) for job in at.jobs], np.float64),
        np.array([job.tasks for job in at.jobs], np.int64),
        np.array([job.cpu for job in at.jobs], np.float64),
        np.array([job.memory for job in at.jobs], np.float64),
    )
    cluster = cluster_of(capacity, needs)
    states, turns = cluster.states, cluster.turns
    for position, job in enumerate(at.jobs):
        if job.nodes:
            begin = needs.first[position]
            states.places[begin : begin + job.tasks] = job.nodes
            states.has_nodes[position] = True
        states.virtual_s[position] = float(job.virtual_s)
        states.floor[position] = float(at.floors.get(job.id, 0))
        turns.is_new[position] = job.id in at.newcomers
        turns.is_due[position] = job.id in at.due
    return cluster


def decide(algorithm: Algorithm, at: Instant) -> YieldDecision:
    """The decision for this instant."""
    cluster = arrays_of(at)
    clock = DecisionMoment(float(at.now_s), at.is_run, float(at.period_s), float(at.next_run_s))
    decide_in_place(algorithm, cluster, np.arange(len(at.jobs)), clock)
    needs, states = cluster.needs, cluster.states
    places, yields, floors = {}, {}, {}
    for position in np.flatnonzero(states.has_nodes).tolist():
        job, begin = at.jobs[position], int(needs.first[position])
        places[job.id] = tuple(states.places[begin : begin + job.tasks].tolist())
        yields[job.id] = float(states.cpu_yield[position])
        if algorithm.minimises_stretch:
            floors[job.id] = float(states.floor[position])
    failed = frozenset(at.jobs[position].id for position in np.flatnonzero(cluster.turns.failed).tolist())
    return YieldDecision(places, yields, failed, floors)
