"""What an algorithm does at one instant: where each job's tasks are from now on, and the job's yield.

The order: newcomers and jobs whose back-off has ended, by submit; then paused jobs are resumed; then, where it is due,
all jobs are packed anew; then the yields, once.

While no job gets or loses nodes, yields stay what they are: an instant at which nothing is placed costs no more than
the attempts. Between runs the yields for the smallest stretch do not change either: they depend on the next run only.

The yields: one for all, then raised job by job with the CPU that is left. The largest yield that all jobs can have is
1 / max(1, L), where L is the highest CPU load of any node. Then the jobs whose nodes all have CPU left are raised one
after the other, each as far as possible: those first that need the least CPU over all their tasks (ties: the earlier
submit), which improves the average yield most. A job that has been raised has yield 1, or a node without CPU left; so
one pass over the jobs raises all that can be raised.

Under gang scheduling a node with a CPU load of 2.5 has three time slices, in each of which some of its jobs run at full
speed. A job runs on all of its nodes at once, so its node with the most slices decides. The slices are not filled up
with others.

By weight, a node with a CPU load of 2.5 gives each of its tasks 1/2.5 of its need, and the node with the highest load
decides for a job. What a job on several nodes leaves unused on the less loaded ones is given to nobody.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III; gang scheduling and weights are no part of it.
"""

import numpy as np

from slurm_sns.policies.dfrs.algorithms import Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import (
    CHANGED,
    RUNNING,
    TURNS,
    WAITING,
    DecisionMoment,
    FluidCluster,
    Integers,
    copy,
)
from slurm_sns.policies.dfrs.greedy_kernel import list_fitting, list_within_reach, make_room, place, take_back
from slurm_sns.policies.dfrs.order_kernel import sort_by_submit, sort_decreasing
from slurm_sns.policies.dfrs.priority_kernel import choose_highest, first_by_priority, priority, sort_by_priority
from slurm_sns.policies.dfrs.search_kernel import LEAST_YIELD, search_stretch, search_yield
from slurm_sns.policies.placement.compiled import entry_point, subroutine


@entry_point
def decide(algorithm: Algorithm, cluster: FluidCluster, clock: DecisionMoment) -> bool:
    """Give each job that is on the lists its nodes and its yield; False if all stays as it was."""
    lists = cluster.lists
    if algorithm.starts_newcomers:
        _start(algorithm, cluster, clock.now_s)
        if algorithm.preempts:
            _resume(algorithm, cluster, clock.now_s)
    if algorithm.packs_at_events or (algorithm.packs_periodically and clock.is_run):
        highest = cluster.space.by_priority[: choose_highest(cluster, clock.now_s)]
        if algorithm.minimises_stretch:
            search_stretch(cluster, highest, clock)
        else:
            search_yield(cluster, highest)
    elif not lists.counts[CHANGED]:
        return False
    _set_yields(algorithm, cluster, clock)
    lists.counts[CHANGED] = False
    return True


@subroutine
def _start(algorithm: Algorithm, cluster: FluidCluster, now_s: float) -> None:
    """Place the jobs whose turn it is."""
    lists, space = cluster.lists, cluster.space
    if algorithm.retries_at_events:
        waiting = lists.waiting[: lists.counts[WAITING]]
        if algorithm.preempts:
            lists.counts[TURNS] = list_within_reach(cluster, waiting, lists.turns)
        else:
            lists.counts[TURNS] = list_fitting(cluster, waiting, lists.turns, np.inf)
        sort_by_submit(lists.turns[: lists.counts[TURNS]], space.key, space.spare)
    for job in lists.turns[: lists.counts[TURNS]]:
        if algorithm.preempts:
            make_room(cluster, job, now_s, algorithm.least_loss)
            if algorithm.retries_at_events and cluster.states.has_nodes[job]:
                cluster.states.may_pause[job] = False  # at this instant: it has just begun
        else:
            lists.failed[job] = not place(cluster, job)
    if algorithm.preempts and algorithm.retries_at_events:
        take_back(cluster, now_s, algorithm.least_loss)


@subroutine
def _resume(algorithm: Algorithm, cluster: FluidCluster, now_s: float) -> None:
    """Place paused jobs greedily, those with the highest priority first; what does not fit is skipped.

    O(waiting jobs), and once more for each that is placed: to sort all that wait would cost more, as few fit.
    """
    lists, space = cluster.lists, cluster.space
    before_s = np.inf if algorithm.migrates else now_s
    listed = space.by_priority[
        : list_fitting(cluster, lists.waiting[: lists.counts[WAITING]], space.by_priority, before_s)
    ]
    for job in listed:
        space.key[job] = priority(cluster, job, now_s)
    while len(listed):
        first = first_by_priority(cluster, listed)
        if first < 0:
            _resume_in_order(cluster, now_s, before_s)
            break
        place(cluster, first)
        listed = listed[: list_fitting(cluster, listed, listed, before_s)]


@subroutine
def _resume_in_order(cluster: FluidCluster, now_s: float, before_s: float) -> None:
    """Sort all waiting jobs by priority, and place those that fit."""
    listed = cluster.space.by_priority[: cluster.lists.counts[WAITING]]
    copy(listed, cluster.lists.waiting[: len(listed)])
    sort_by_priority(cluster, listed, now_s)
    for job in listed:
        if cluster.space.paused_s[job] < before_s:
            place(cluster, job)


@subroutine
def _set_yields(algorithm: Algorithm, cluster: FluidCluster, clock: DecisionMoment) -> None:
    """Set the yields of the jobs that have nodes. O(their tasks + nodes), and a sort of the jobs."""
    states, jobs = cluster.states, cluster.lists.running[: cluster.lists.counts[RUNNING]]
    if algorithm.slices_time or algorithm.by_weight:
        _share_nodes(algorithm, cluster, jobs)
        return
    base = _equal_yield(cluster)
    for job in jobs:
        states.cpu_yield[job] = max(states.floor[job], LEAST_YIELD) if algorithm.minimises_stretch else base
    _raise_yields(cluster, jobs, algorithm.minimises_stretch, clock.next_run_s)


@subroutine
def _equal_yield(cluster: FluidCluster) -> float:
    """The largest yield that all of the jobs that have nodes can have."""
    highest = 1.0
    for node in range(len(cluster.capacity.cpu)):
        highest = max(highest, cluster.space.cpu_needed[node] / cluster.capacity.cpu[node])
    return 1.0 / highest


@subroutine
def _share_nodes(algorithm: Algorithm, cluster: FluidCluster, jobs: Integers) -> None:
    """Set the yields of gang scheduling, or those by weight, of these jobs, which have nodes."""
    needs, states = cluster.needs, cluster.states
    for job in jobs:
        highest = 1.0
        for node in states.places[needs.first[job] : needs.end[job]]:
            highest = max(highest, cluster.space.cpu_needed[node] / cluster.capacity.cpu[node])
        states.cpu_yield[job] = 1.0 / highest
        if algorithm.slices_time and highest > 1.0:
            states.cpu_yield[job] = (1.0 - algorithm.switch_loss) / np.ceil(highest)


@subroutine
def _raise_yields(cluster: FluidCluster, jobs: Integers, is_weighted: bool, next_run_s: float) -> None:
    """Raise the yields of these jobs, which have nodes: those first that need the least CPU over all their tasks.

    If `is_weighted` their needs are multiplied by their flow time at the next run. The jobs are in submit order.
    """
    needs, states, space = cluster.needs, cluster.states, cluster.space
    copy(space.cpu, cluster.capacity.cpu)
    raised = space.raised[: len(jobs)]
    for job in jobs:
        for node in states.places[needs.first[job] : needs.end[job]]:
            space.cpu[node] -= needs.cpu[job] * states.cpu_yield[job]
        weight = next_run_s - needs.submit_s[job] if is_weighted else 1.0
        space.key[job] = -needs.cpu[job] * needs.tasks[job] * weight
    copy(raised, jobs)
    sort_decreasing(raised, space.key, space.key, space.spare)
    for job in raised:
        _raise_one(cluster, job)


@subroutine
def _raise_one(cluster: FluidCluster, job: int) -> None:
    """Raise one job's yield as far as the nodes allow; a node's tasks follow each other among the places."""
    needs, states, left = cluster.needs, cluster.states, cluster.space.cpu
    places = states.places[needs.first[job] : needs.end[job]]
    raise_by = 1.0 - states.cpu_yield[job]
    tasks = 0
    for at, node in enumerate(places):
        tasks += 1
        if at + 1 == len(places) or places[at + 1] != node:
            raise_by = min(raise_by, left[node] / (tasks * needs.cpu[job]))
            tasks = 0
    if raise_by > 0.0:
        states.cpu_yield[job] += raise_by
        for node in places:
            left[node] -= raise_by * needs.cpu[job]
