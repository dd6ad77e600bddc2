"""The heap of jobs, and the choice of those with the highest priority, against sorting them all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.policies.dfrs.fluid_arrays import RUNNING, WAITING, cluster_of, job_needs, node_capacity
from slurm_sns.policies.dfrs.job_lists import add_waiting, give_nodes, list_all, remove_waiting, take_nodes
from slurm_sns.policies.dfrs.order_kernel import order_heap, pop, push
from slurm_sns.policies.dfrs.priority_kernel import choose_highest, first_by_priority, sort_by_priority
from slurm_sns.policies.placement.compiled import entry_point

#: Virtual times of which some are equal, some nearly equal (each to the next, not the first to the last), some far off.
NEARLY = [100 * (1 + step * 4e-13) for step in range(6)]
virtual_s = st.sampled_from([0.0, 1.0, 50.0, 100.0, 1e4, *NEARLY]) | st.floats(0.01, 1e5)


@entry_point
def sorted_by_heap(keys, is_ordered_first, heap, found):
    """Write all jobs to `found` in the order in which the heap gives them."""
    for job in range(len(keys)):
        if is_ordered_first:
            heap[job] = job
        else:
            push(heap, job, keys, job)
    if is_ordered_first:
        order_heap(heap, keys)
    for count in range(len(keys), 0, -1):
        found[len(keys) - count] = pop(heap, count, keys)


@entry_point
def toggled(cluster, job):
    """Give a waiting job nodes, or take them from a running one."""
    if cluster.states.has_nodes[job]:
        take_nodes(cluster, job)
        add_waiting(cluster, job)
    else:
        remove_waiting(cluster, job)
        give_nodes(cluster, job)


@entry_point
def first_of(cluster, jobs):
    return first_by_priority(cluster, jobs)


@given(keys=st.lists(st.integers(0, 5) | st.integers(0, 1 << 62), max_size=40), is_ordered_first=st.booleans())
def test_the_heap_gives_jobs_by_key_and_equal_ones_by_submit(keys, is_ordered_first):
    heap, found = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    sorted_by_heap(np.array(keys, np.int64), is_ordered_first, heap, found)
    assert found.tolist() == sorted(range(len(keys)), key=lambda job: (keys[job], job))


def cluster_with(jobs, nodes=4, running=()):
    """A cluster of nodes of 100 % whose waiting jobs are (virtual time, tasks, memory), all submitted within 30 s."""
    had_s, tasks, memory = (np.array(column) for column in zip(*jobs, strict=True))
    needs = job_needs(np.zeros(len(jobs)), tasks.astype(np.int64), np.full(len(jobs), 1.0), memory.astype(np.float64))
    cluster = cluster_of(node_capacity([100] * nodes, [100] * nodes), needs)
    cluster.states.virtual_s[:] = had_s
    cluster.states.has_nodes[[job for job in running if job < len(jobs)]] = True
    list_all(cluster)
    return cluster


listed = st.lists(st.tuples(virtual_s, st.integers(1, 3), st.integers(0, 60)), min_size=1, max_size=60)


leasts = st.sampled_from([0.0, 1e-9, 30 / 100**2, 30 / NEARLY[3] ** 2, 1.0, 1e9]) | st.floats(0, 100)


@given(
    jobs=listed,
    running=st.sets(st.integers(0, 59)),
    moments=st.lists(st.tuples(st.integers(1, 10**6), leasts), min_size=1, max_size=5),
)
def test_those_chosen_are_the_first_of_all_sorted_by_priority_until_memory_is_full(jobs, running, moments):
    """Whatever the least priority is that is looked at first."""
    cluster = cluster_with(jobs, running=running)
    for now_s, least in sorted(moments):
        cluster.space.least[0] = least
        order = np.arange(len(jobs))
        chosen = cluster.space.by_priority[: choose_highest(cluster, float(now_s))].tolist()
        sort_by_priority(cluster, order, float(now_s))
        held = np.cumsum([jobs[job][1] * jobs[job][2] for job in order])
        assert chosen == order[: np.searchsorted(held, 400, side="right")].tolist()
        cluster.states.virtual_s[chosen] += now_s / 7


@given(jobs=listed, some=st.sets(st.integers(0, 59), min_size=1))
def test_the_first_of_some_waiting_jobs_is_the_first_of_them_among_all_sorted_or_it_is_not_sure(jobs, some):
    chosen = [job for job in sorted(some) if job < len(jobs)] or [0]
    cluster, order = cluster_with(jobs), np.arange(len(jobs))
    sort_by_priority(cluster, order, 10.0)
    first = next(job for job in order.tolist() if job in chosen)
    cluster.space.key[:] = [30 / had_s**2 if had_s else np.inf for had_s, _, _ in jobs]
    assert first_of(cluster, np.array(chosen)) in {first, -1}


def test_it_is_not_sure_where_jobs_are_equal_only_through_others_between_them():
    """Jobs 2, 1 and 0 have falling priorities, each equal to the next; so the order of all is 0, 1, 2."""
    cluster = cluster_with([(NEARLY[2], 1, 10), (NEARLY[1], 1, 10), (NEARLY[0], 1, 10)])
    order = np.arange(3)
    sort_by_priority(cluster, order, 10.0)
    assert order.tolist() == [0, 1, 2]
    cluster.space.key[:] = [30 / had_s**2 for had_s in NEARLY[2::-1]]
    assert first_of(cluster, np.array([0, 2])) == -1
    assert first_of(cluster, np.array([2])) == 2


@given(changes=st.lists(st.integers(0, 19), max_size=60))
def test_what_running_jobs_hold_is_the_sum_of_their_needs_and_they_are_in_submit_order(changes):
    cluster = cluster_with([(1.0, 1, 1 + job % 7) for job in range(20)])
    for job in changes:
        toggled(cluster, job)
    running = cluster.lists.running[: cluster.lists.counts[RUNNING]].tolist()
    waiting = cluster.lists.waiting[: cluster.lists.counts[WAITING]].tolist()
    expected = sorted(job for job in range(20) if changes.count(job) % 2)
    assert running == expected == np.flatnonzero(cluster.states.has_nodes).tolist()
    assert sorted(waiting) == sorted(set(range(20)) - set(expected))
    assert cluster.space.memory_left[0] == 100 - sum(1 + job % 7 for job in expected)
    assert cluster.space.cpu_needed[0] == len(expected)
