"""The fewest equal parts of a job, found by kinds of nodes: the same as trying every number of nodes, for less."""

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import job, node

from slurm_sns.errors import Infeasible
from slurm_sns.model import Alternative, Resources
from slurm_sns.scheduler.geometry import demand, extremes, geometry, geometry_on
from slurm_sns.scheduler.node_kinds import NodeKind, kinds_of
from slurm_sns.scheduler.observed import ObservedJob, ObservedNode


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
        return geometry(job, nodes)
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


@settings(max_examples=200, deadline=None)
@given(sizes(), clusters())
def test_a_job_gets_the_parts_that_trying_every_number_of_nodes_finds(job: ObservedJob, nodes: list) -> None:
    assert by_kinds(job, nodes) == by_every_number_of_nodes(job, nodes)


def test_the_number_of_nodes_costs_nothing() -> None:
    """A million of millions of nodes: whoever looked at each would never answer."""
    number = 10**12
    nodes = (NodeKind(Resources(4, 4000), 1, number), NodeKind(Resources(2, 9000), 1, number))
    asked = job(1, tasks=4 * number - 1, cpus=1, nodes_max=None, memory_per_cpu_mb=1500)
    way = geometry_on(asked, nodes)
    assert (way.nodes, way.tasks_per_node) == (2 * number, 2)
    with pytest.raises(Infeasible, match=f"{2 * number} nodes, the largest with 4 cores and 4000 MiB"):
        geometry_on(replace(asked, tasks=10**14), nodes)


def test_nodes_are_alike_by_capacity_and_threads_whatever_runs_on_them() -> None:
    nodes = [node("c1"), node("c2", taken=(28, 1)), node("c3", threads_per_core=2), node("c4", unavailable="down")]
    assert kinds_of(nodes) == (
        NodeKind(Resources(28, 128_000), 1, 3),
        NodeKind(Resources(28, 128_000), 2, 1),
    )
