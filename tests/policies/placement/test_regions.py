"""Which nodes of those that fit are taken: under the lowest switch that has enough, the lighter ones first."""

from itertools import combinations

import numpy as np
import pytest
from clusters import GB, job, regions
from hypothesis import given
from hypothesis import strategies as st
from oracles.batch.policies import easy, fcfs

from slurm_sns.model import Node, Resources, Snapshot
from slurm_sns.policies.base import Policy
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.regions import Regions
from slurm_sns.policies.registry import specification

SPREADING = ("ce", "cs", "sns", "combined")


@st.composite
def clusters(draw) -> tuple[list[int], list[tuple[str, ...]]]:
    weights, switches = draw(regions())
    count = draw(st.integers(1, 8))
    return [draw(weights) for _ in range(count)], [draw(switches) for _ in range(count)]


def lowest_common_level(switches: list[tuple[str, ...]], nodes: tuple[int, ...], levels: int) -> int | None:
    """The lowest level at which one switch joins the nodes; None if none does."""
    if len(nodes) == 1 or levels == 0:
        return 0
    paths = [switches[node] for node in nodes]
    if not all(paths):
        return None
    return next(
        (level for level in range(levels) if len({path[min(level, len(path) - 1)] for path in paths}) == 1), None
    )


@given(clusters(), st.data())
def test_no_choice_of_nodes_lies_lower_and_in_its_switch_none_is_lighter(cluster, data) -> None:
    """Against all sets of so many nodes."""
    weights, switches = cluster
    everything = range(len(weights))
    candidates = sorted(data.draw(st.sets(st.sampled_from(everything), min_size=1)))
    count = data.draw(st.integers(1, len(candidates)))
    levels = max(map(len, switches))
    found = Regions.of(weights, switches).find(np.array(candidates), count)
    sets = {
        nodes: level
        for nodes in combinations(candidates, count)
        if (level := lowest_common_level(switches, nodes, levels)) is not None
    }
    if found is None:
        assert not sets
        return
    taken = tuple(sorted([*found.lighter.tolist(), *found.equal.tolist()[: count - len(found.lighter)]]))
    lowest = min(sets.values())
    assert sets[taken] == lowest
    assert len(found.lighter) < count <= len(found.lighter) + len(found.equal)
    assert all(weights[one] < weights[other] for one in found.lighter for other in found.equal)
    heaviest = {nodes: max(weights[node] for node in nodes) for nodes, level in sets.items() if level == lowest}
    assert heaviest[taken] == min(heaviest.values())


LIGHT, HEAVY = 10, 90
GPU = Node("g1", Resources(8, 8 * GB), Resources(8, 8 * GB), HEAVY)  # first in the list: every tie would take it


def cpu(name: str, cores: int) -> Node:
    return Node(name, Resources(8, 8 * GB), Resources(cores, 8 * GB), LIGHT)


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_a_heavier_node_is_taken_when_the_lighter_ones_are_full(heuristic: str) -> None:
    snapshot = Snapshot((GPU, cpu("c1", 2), cpu("c2", 4)), tuple(job(at, 2, 1) for at in range(4)))
    starts = max_jobs(MatchingParameters(portfolio=(heuristic,))).plan(snapshot).starts
    assert [start.nodes[0] for start in starts].count("g1") == 1
    assert starts[-1].nodes == ("g1",)


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_a_job_of_several_nodes_lies_under_the_smallest_switch_that_has_room(heuristic: str) -> None:
    full = Resources(8, 8 * GB)
    switches = [*[("left", "top")] * 3, *[("right", "top")] * 2]
    nodes = tuple(Node(f"n{at}", full, full, 1, each) for at, each in enumerate(switches))
    policy = max_jobs(MatchingParameters(portfolio=(heuristic,)))
    assert policy.plan(Snapshot(nodes, (job(1, 8, 1, nodes=2),))).starts[0].nodes == ("n3", "n4")
    assert policy.plan(Snapshot(nodes, (job(1, 8, 1, nodes=3),))).starts[0].nodes == ("n0", "n1", "n2")
    assert len(policy.plan(Snapshot(nodes, (job(1, 8, 1, nodes=4),))).starts[0].nodes) == 4
    apart = tuple(Node(each.name, full, full, 1, each.switches[:1]) for each in nodes)
    waits = policy.plan(Snapshot(apart, (job(1, 8, 1, nodes=4), job(2, 8, 1, nodes=3))))
    assert [start.job_id for start in waits.starts] == [2]


def test_a_job_that_no_switch_has_room_for_waits_with_that_reason() -> None:
    full, busy = Resources(8, 8 * GB), Resources(2, 8 * GB)
    switches = [*[("left",)] * 3, *[("right",)] * 3]
    nodes = tuple(Node(f"n{at}", full, busy if at in (0, 3) else full, 1, each) for at, each in enumerate(switches))
    snapshot = Snapshot(nodes, (job(1, 8, 1, nodes=3, withholds=False),))
    plan = max_jobs().plan(snapshot)
    assert plan.waiting[1].endswith("nodes that fit: 4; no switch joins more than 2 of them")
    said = max_jobs().explain(snapshot, plan, 1).details
    assert any("needed: 3; no switch joins more than 2 of them." in each for each in said)


@pytest.mark.parametrize("policy", [easy(), fcfs(), *(specification(each).policy() for each in SPREADING)])
def test_every_policy_that_matches_keeps_to_weights_and_switches(policy: Policy) -> None:
    full = Resources(8, 8 * GB)
    switches = [*[("left",)] * 3, *[("right",)] * 3]
    weights = [5, 1, 1, 5, 5, 5]
    nodes = tuple(
        Node(f"n{at}", full, full, weight, each)
        for at, (weight, each) in enumerate(zip(weights, switches, strict=True))
    )
    starts = policy.plan(Snapshot(nodes, (job(1, 8, 1, nodes=2), job(2, 8, 1, nodes=2), job(3, 8, 1)))).starts
    placed = {start.job_id: start.nodes for start in starts}
    assert placed[1] == ("n1", "n2")
    assert placed[2] in (("n3", "n4"), ("n4", "n5"), ("n3", "n5"))
