"""What an algorithm does at one instant: where each job's tasks are from now on, and the job's yield.

The order: newcomers and jobs whose back-off has ended, by submit; then paused jobs are resumed; then, where it is due,
all jobs are packed anew; then the yields, once.

A job's priority is max(30 s, flow time) / (virtual time)^2, and infinite before it has made progress. The flow time is
the time since its submission: it grows while a job is paused, so that no job is paused for ever. The square favours
jobs that have had little time so far, which are mostly short.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III.
"""

import numpy as np

from slurm_sns.policies.dfrs.algorithms import Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import DecisionMoment, FluidCluster, Integers, copy
from slurm_sns.policies.dfrs.greedy_kernel import make_room, occupy, place
from slurm_sns.policies.dfrs.search_kernel import LEAST_YIELD, search_stretch, search_yield
from slurm_sns.policies.dfrs.sort_kernel import sort_decreasing
from slurm_sns.policies.dfrs.yields_kernel import equal_yield, raise_yields, slice_time
from slurm_sns.policies.placement.compiled import entry_point, subroutine

#: Priorities that differ by a smaller fraction are equal.
_ROUNDING = 1e-12
#: Shorter flow times count as this much, as in the bounded stretch.
_SHORTEST_FLOW_S = 30.0


@entry_point
def decide(algorithm: Algorithm, cluster: FluidCluster, jobs: Integers, clock: DecisionMoment) -> None:
    """Give each of the jobs, which are in submit order, its nodes and its yield. Other jobs are not looked at."""
    for job in jobs:
        cluster.turns.failed[job] = False
        cluster.space.paused[job] = False
    if algorithm.starts_newcomers:
        occupy(cluster, jobs)
        _start(algorithm, cluster, jobs, clock.now_s)
        if algorithm.preempts:
            _resume(algorithm, cluster, jobs, clock.now_s)
    if algorithm.packs_at_events or (algorithm.packs_periodically and clock.is_run):
        by_priority = cluster.space.by_priority[: len(jobs)]
        copy(by_priority, jobs)
        sort_by_priority(cluster, by_priority, clock.now_s)
        if algorithm.minimises_stretch:
            search_stretch(cluster, jobs, by_priority, clock)
        else:
            search_yield(cluster, jobs, by_priority)
    _set_yields(algorithm, cluster, jobs, clock)


@subroutine
def _start(algorithm: Algorithm, cluster: FluidCluster, jobs: Integers, now_s: float) -> None:
    """Place the jobs whose turn it is; mark those that were paused for them."""
    states, turns = cluster.states, cluster.turns
    for job in jobs:
        has_turn = turns.is_new[job] or turns.is_due[job] or algorithm.retries_at_events
        if not has_turn or states.has_nodes[job] or cluster.space.paused[job]:
            continue
        if algorithm.preempts:
            running = cluster.space.by_priority[: _choose(cluster, jobs, True)]
            sort_by_priority(cluster, running, now_s)
            make_room(cluster, job, running)
        else:
            turns.failed[job] = not place(cluster, job)


@subroutine
def _resume(algorithm: Algorithm, cluster: FluidCluster, jobs: Integers, now_s: float) -> None:
    """Place paused jobs greedily, those with the highest priority first; what does not fit is skipped."""
    without = cluster.space.by_priority[: _choose(cluster, jobs, False)]
    sort_by_priority(cluster, without, now_s)
    for job in without:
        if algorithm.migrates or not cluster.space.paused[job]:
            place(cluster, job)


@subroutine
def _choose(cluster: FluidCluster, jobs: Integers, have_nodes: bool) -> int:
    """Write the jobs that have nodes, or those that have none, to `space.by_priority`; how many these are."""
    count = 0
    for job in jobs:
        if cluster.states.has_nodes[job] == have_nodes:
            cluster.space.by_priority[count] = job
            count += 1
    return count


@subroutine
def _set_yields(algorithm: Algorithm, cluster: FluidCluster, jobs: Integers, clock: DecisionMoment) -> None:
    """Set the yields of the jobs that have nodes; the others have none."""
    states = cluster.states
    base = 1.0 if algorithm.minimises_stretch else equal_yield(cluster, jobs)
    for job in jobs:
        if algorithm.minimises_stretch:
            base = max(states.floor[job], LEAST_YIELD)
        states.cpu_yield[job] = base if states.has_nodes[job] else 0.0
    if algorithm.slices_time:
        slice_time(cluster, jobs)
    else:
        raise_yields(cluster, jobs, algorithm.minimises_stretch, clock.next_run_s)


@entry_point
def sort_by_priority(cluster: FluidCluster, jobs: Integers, now_s: float) -> None:
    """Sort the jobs, the highest priority first; of equal ones the earlier submit is higher.

    Priorities next to each other that differ by rounding errors only are made equal before the jobs are sorted again.
    """
    space = cluster.space
    for job in jobs:
        space.key[job] = _priority(now_s - cluster.needs.submit_s[job], cluster.states.virtual_s[job])
        space.other[job] = -float(job)
    sort_decreasing(jobs, space.key, space.other, space.spare)
    last = np.inf
    for at in range(len(jobs)):
        mine = space.key[jobs[at]]
        if at and mine >= last * (1.0 - _ROUNDING):
            space.key[jobs[at]] = space.key[jobs[at - 1]]
        last = mine
    sort_decreasing(jobs, space.key, space.other, space.spare)


@subroutine
def _priority(flow_s: float, virtual_s: float) -> float:
    if virtual_s <= 0.0:
        return np.inf
    return max(_SHORTEST_FLOW_S, flow_s) / (virtual_s * virtual_s)
