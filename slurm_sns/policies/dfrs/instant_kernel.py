"""What an algorithm does at one instant: where each job's tasks are from now on, and the job's yield.

The order: newcomers and jobs whose back-off has ended, by submit; then paused jobs are resumed; then, where it is due,
all jobs are packed anew; then the yields, once.

While no job gets or loses nodes, yields stay what they are: an instant at which nothing is placed costs no more than
the attempts. Between runs the yields for the smallest stretch do not change either: they depend on the next run only.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III.
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
    copy,
)
from slurm_sns.policies.dfrs.greedy_kernel import list_fitting, make_room, place
from slurm_sns.policies.dfrs.priority_kernel import (
    choose_highest,
    first_by_priority,
    priority,
    sort_by_priority,
)
from slurm_sns.policies.dfrs.search_kernel import LEAST_YIELD, search_stretch, search_yield
from slurm_sns.policies.dfrs.sort_kernel import sort_by_submit
from slurm_sns.policies.dfrs.yields_kernel import equal_yield, raise_yields, slice_time
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
        lists.counts[TURNS] = list_fitting(cluster, lists.waiting[: lists.counts[WAITING]], lists.turns, np.inf)
        sort_by_submit(lists.turns[: lists.counts[TURNS]], space.key, space.spare)
    for job in lists.turns[: lists.counts[TURNS]]:
        if algorithm.preempts:
            make_room(cluster, job, now_s)
        else:
            lists.failed[job] = not place(cluster, job)


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
    if algorithm.slices_time:
        slice_time(cluster, jobs)
        return
    base = equal_yield(cluster)
    for job in jobs:
        states.cpu_yield[job] = max(states.floor[job], LEAST_YIELD) if algorithm.minimises_stretch else base
    raise_yields(cluster, jobs, algorithm.minimises_stretch, clock.next_run_s)
