"""The fewest equal parts of a job, found by kinds of nodes: the same as trying every number of nodes, for less.

And the same as a policy finds for the request of such a job, as far as a request can say what the job wants.
"""

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import job, node

from slurm_sns.errors import Infeasible
from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.base import Request
from slurm_sns.policies.placement.request import compact
from slurm_sns.scheduler.observation import ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.geometry import demand, extremes, geometry, wants_more_cpus
from slurm_sns.scheduler.snapshot.node_sets import NodeKind, kinds_of
from slurm_sns.scheduler.snapshot.spreading import request
from slurm_sns.submit.hints import Hints


def by_every_number_of_nodes(job: ObservedJob, nodes: list[ObservedNode]) -> Alternative | None:
    """The plain search: each number of nodes, and for each of them every node."""
    for wanted in range(1, min(len(nodes), job.tasks) + 1):
        tasks = ceil(job.tasks / wanted)
        count = ceil(job.tasks / tasks)
        way = Alternative(count, demand(job, tasks, count, extremes(nodes)), tasks_per_node=tasks)
        if sum(way.demand.within(node.capacity) for node in nodes) >= way.nodes:
            return way
    return None


def by_kinds(job: ObservedJob, nodes: list[ObservedNode]) -> Alternative | None:
    try:
        return geometry(job, kinds_of(nodes))
    except Infeasible:
        return None


SIZES = st.tuples(st.integers(1, 12), st.integers(1, 40), st.sampled_from((1, 2, 4)))


@st.composite
def clusters(draw) -> list[ObservedNode]:
    """Up to 40 nodes of up to 4 kinds, in any order."""
    kinds = draw(st.lists(SIZES, min_size=1, max_size=4))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=40))
    return [
        node(f"c{at}", cores, memory_mb, threads_per_core=threads)
        for at, (cores, memory_mb, threads) in enumerate(chosen)
    ]


MEMORY = st.one_of(
    st.builds(lambda mb: {"memory_per_cpu_mb": mb}, st.integers(0, 12)),
    st.builds(lambda mb: {"memory_per_cpu_mb": None, "memory_per_node_mb": mb}, st.integers(0, 45)),
    st.just({"memory_per_cpu_mb": None, "memory_per_node_mb": None}),
)


@st.composite
def sizes(draw) -> ObservedJob:
    """A job of -n alone, with whatever else its owner may ask for."""
    tasks, cpus_per_task = draw(st.integers(2, 200)), draw(st.integers(1, 6))
    least_cpus = tasks * cpus_per_task
    asked = job(
        1,
        tasks=tasks,
        cpus_per_task=cpus_per_task,
        cpus=draw(st.one_of(st.just(least_cpus), st.integers(1, 2 * least_cpus))),
        min_cpus_per_node=draw(st.integers(1, 16)),
        nodes_max=None,
    )
    return replace(asked, **draw(MEMORY))


@settings(max_examples=200)
@given(sizes(), clusters())
def test_a_job_gets_the_parts_that_trying_every_number_of_nodes_finds(job: ObservedJob, nodes: list) -> None:
    assert by_kinds(job, nodes) == by_every_number_of_nodes(job, nodes)


def by_request(job: ObservedJob, nodes: list[ObservedNode]) -> Alternative | None:
    """What a policy finds: it knows the job by its request and the nodes by their kinds."""
    kinds = kinds_of(nodes)
    try:
        return compact(request(job, Hints(), kinds), kinds)
    except Infeasible:
        return None


@settings(max_examples=200)
@given(sizes(), clusters(), st.data())
def test_a_job_that_wants_the_cpus_of_its_tasks_gets_what_its_request_gets(
    job: ObservedJob, nodes: list, data: st.DataObject
) -> None:
    least_cpus = job.tasks * job.cpus_per_task
    cpus, on_a_node = data.draw(st.integers(1, least_cpus)), data.draw(st.integers(1, job.cpus_per_task))
    plain = replace(job, cpus=cpus, min_cpus_per_node=on_a_node)
    assert not wants_more_cpus(plain)
    assert by_kinds(plain, nodes) == by_request(plain, nodes)


@settings(max_examples=200)
@given(sizes(), clusters())
def test_a_job_that_wants_more_cpus_never_gets_less_than_its_request(job: ObservedJob, nodes: list) -> None:
    way, least = by_kinds(job, nodes), by_request(job, nodes)
    if way is not None:
        assert least is not None
        assert way.nodes >= least.nodes


@pytest.mark.parametrize(
    ("more", "of_request", "way"),
    [
        ({"min_cpus_per_node": 12}, (1, Resources(8, 8000)), (1, Resources(12, 12_000))),
        ({"min_cpus_per_node": 20, "tasks": 40}, (2, Resources(20, 20_000)), (2, Resources(20, 20_000))),
        ({"cpus": 24}, (1, Resources(8, 8000)), (1, Resources(24, 24_000))),
        ({"cpus": 57}, (1, Resources(8, 8000)), (3, Resources(19, 19_000))),
    ],
    ids=["--mincpus", "--mincpus of no more than its part", "NumCPUs on a node", "NumCPUs of three nodes"],
)
def test_a_request_does_not_say_that_a_job_wants_more_cpus(more: dict, of_request: tuple, way: tuple) -> None:
    nodes = [node(f"c{number}") for number in range(1, 5)]
    asked = job(1, **{"tasks": 8, "cpus": 8, "nodes_max": None, **more})
    assert [(each.nodes, each.demand) for each in (by_request(asked, nodes), by_kinds(asked, nodes))] == [
        of_request,
        way,
    ]


def test_a_request_is_told_of_unlike_nodes_the_fewest_threads_and_the_most_memory() -> None:
    nodes = [node("c1", 8, 1000, threads_per_core=2), node("c2", 8, 2000)]
    asked = job(1, tasks=8, nodes_max=None, memory_per_cpu_mb=None)
    assert by_kinds(asked, nodes) == by_request(asked, nodes) == Alternative(1, Resources(8, 2000), tasks_per_node=8)
    of_two_threads = compact(Request(8, threads_per_core=2), kinds_of(nodes))
    assert of_two_threads == Alternative(1, Resources(4, 0), tasks_per_node=8)


def test_the_number_of_nodes_costs_nothing() -> None:
    """A million of millions of nodes: whoever looked at each would never answer."""
    number = 10**12
    nodes = (NodeKind(Resources(4, 4000), 1, number), NodeKind(Resources(2, 9000), 1, number))
    asked = job(1, tasks=4 * number - 1, cpus=1, nodes_max=None, memory_per_cpu_mb=1500)
    way = geometry(asked, nodes)
    assert (way.nodes, way.tasks_per_node) == (2 * number, 2)
    with pytest.raises(Infeasible, match=f"{2 * number} nodes, the largest with 4 cores and 4000 MiB"):
        geometry(replace(asked, tasks=10**14), nodes)


def test_nodes_are_alike_by_capacity_and_threads_whatever_runs_on_them() -> None:
    nodes = [node("c1"), node("c2", taken=(28, 1)), node("c3", threads_per_core=2), node("c4", unavailable="down")]
    assert kinds_of(nodes) == (
        NodeKind(Resources(28, 128_000), 1, 3),
        NodeKind(Resources(28, 128_000), 2, 1),
    )
