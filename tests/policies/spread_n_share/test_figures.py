"""The paper's own cases, and its scheduling process read plainly."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import part_of
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import GB, paper_nodes, paper_programs, snapshot, summary, types_of

from slurm_sns.model import Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.base import JobRequest, Request
from slurm_sns.policies.baselines.compact import compact_exclusive, exclusive_alternatives
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.request import compact
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION

sys.path.append(str(Path(__file__).parent))
from figure_11 import figure_11

PROGRAMS = paper_programs()
THREE = [PROGRAMS[name] for name in ("mg", "ts", "hc")]


def test_figure_1_all_three_jobs_share_two_nodes_at_scale_two():
    plan = spread_n_share(REPRODUCTION).plan(snapshot(paper_nodes(2), *THREE))

    assert summary(plan) == dict.fromkeys([1, 2, 3], (2, ("n0", "n1")))
    assert {start.alternative.demand.cores for start in plan.starts} == {8}
    assert not plan.waiting


def test_figure_1_compact_and_exclusive_needs_three_nodes():
    def jobs(nodes):
        types, request = types_of(nodes), Request(16, memory_per_node_mb=GB)
        ways = exclusive_alternatives(JobRequest(compact(request, types), request), types).alternatives
        return Snapshot(nodes, tuple(Job(at, at, ways, order=(at,)) for at in (1, 2, 3)))

    plan = compact_exclusive().plan(jobs(paper_nodes(3)))
    assert summary(plan) == {1: (1, ("n0",)), 2: (1, ("n1",)), 3: (1, ("n2",))}
    assert list(compact_exclusive().plan(jobs(paper_nodes(2))).waiting) == [3]


def test_figure_1_the_predictions_are_near_the_printed_times():
    plan = spread_n_share(REPRODUCTION).plan(snapshot(paper_nodes(2), *THREE))

    predicted = {start.job_id: start.alternative.slowdown for start in plan.starts}
    printed = {1: 443.67 / 487.65, 2: 351.75 / 376.98, 3: 500.43 / 482.33}
    assert predicted == pytest.approx(printed, abs=0.025)


def test_bandwidth_hungry_programs_are_not_put_together_beyond_the_nodes_bandwidth():
    one_node = paper_nodes(1)

    plan = spread_n_share(REPRODUCTION).plan(snapshot(one_node, PROGRAMS["mg"], PROGRAMS["rnn"], PROGRAMS["ep"]))

    assert summary(plan) == {1: (1, ("n0",))}  # 112 of 118 GB/s; rnn's 10 do not fit; ep finds 12 cores, not 16
    assert plan.waiting[2].endswith("nearest: n0 lacks 4 cores and 4 GB/s of bandwidth")


def test_cache_hungry_programs_are_not_put_together_beyond_the_nodes_ways():
    two_nodes = paper_nodes(2)

    plan = spread_n_share(REPRODUCTION).plan(snapshot(two_nodes, PROGRAMS["nw"], PROGRAMS["nw"], PROGRAMS["ts"]))

    # Each nw takes 18 of 20 ways of a node; ts would need 5 on both or 10 on one.
    assert summary(plan) == {1: (1, ("n0",)), 2: (1, ("n1",))}


def test_a_compact_program_is_alone_on_its_node_and_shares_when_none_is_empty():
    bfs, ep = PROGRAMS["bfs"], PROGRAMS["ep"]

    alone = spread_n_share(REPRODUCTION).plan(snapshot(paper_nodes(2), bfs, ep))
    assert summary(alone) == {1: (1, ("n0",)), 2: (1, ("n1",))}
    assert alone.starts[0].alternative.exclusive

    busy = {"n0": Resources(20, 100 * GB, 20, 118)}
    shared = spread_n_share(REPRODUCTION).plan(snapshot(paper_nodes(1, busy), bfs))
    assert not shared.starts[0].alternative.exclusive


def test_a_neutral_program_fills_the_idle_cores_that_scaling_ones_leave():
    plan = spread_n_share(REPRODUCTION).plan(snapshot(paper_nodes(8), PROGRAMS["mg"], PROGRAMS["hc"]))

    assert summary(plan)[1] == (8, tuple(f"n{at}" for at in range(8)))
    assert summary(plan)[2] == (1, ("n0",))


def test_a_job_prefers_nodes_that_are_alike_over_the_idlest_ones():
    free = {"n0": Resources(28, 128 * GB, 20, 118), "n1": Resources(20, 128 * GB, 20, 118)}
    free |= {"n2": Resources(20, 128 * GB, 19, 118)}
    nodes = paper_nodes(3, free)
    at_two = snapshot(nodes, PROGRAMS["hc"]).waiting[0].alternatives[1]

    plan = spread_n_share(REPRODUCTION).plan(Snapshot(nodes, (Job(1, 1, (at_two,)),)))

    assert summary(plan) == {1: (2, ("n1", "n2"))}  # the one node with 28 idle cores is no group of two


@pytest.mark.parametrize(("beta", "node"), [(0.5, "half-its-ways"), (3.0, "little-bandwidth")])
def test_beta_weighs_occupied_ways_against_cores_and_bandwidth(beta, node):
    capacity = Resources(10, 32 * GB, 10, 100)
    nodes = (
        Node("half-its-ways", capacity, Resources(5, 32 * GB, 5, 100)),  # 0.5 + 0.0 + 0.5 beta is occupied
        Node("little-bandwidth", capacity, Resources(5, 32 * GB, 9, 20)),  # 0.5 + 0.8 + 0.1 beta
    )
    job = Job(1, 1, (Alternative(1, Resources(1, GB, 2, 1)),))

    plan = spread_n_share(replace(REPRODUCTION, beta=beta)).plan(Snapshot(nodes, (job,)))

    assert plan.starts[0].nodes == (node,)


# --- figure 11 read plainly ---


@st.composite
def clusters(draw):
    nodes = []
    for at in range(draw(st.integers(1, 8))):
        capacity = draw(st.sampled_from([Resources(8, 16 * GB, 11, 50, 2), Resources(28, 64 * GB, 20, 118, 20)]))
        busy = draw(st.integers(0, 3))
        free = capacity if not busy else part_of(draw, capacity)
        nodes.append(Node(f"n{at}", capacity, free))
    return tuple(nodes)


@st.composite
def queues(draw):
    ways_and_gbps = st.integers(2, 12), st.integers(1, 60)
    demand = st.builds(
        Resources, st.integers(1, 16), st.integers(GB, 8 * GB), *ways_and_gbps, st.integers(0, 1), st.just(())
    )
    alternative = st.builds(
        Alternative, nodes=st.integers(1, 4), demand=demand, exclusive=st.sampled_from([False, False, True])
    )
    ways = [tuple(draw(st.lists(alternative, min_size=1, max_size=4))) for _ in range(draw(st.integers(0, 10)))]
    return tuple(Job(at, at, each, order=(at,)) for at, each in enumerate(ways))


@pytest.mark.long
@settings(max_examples=250)
@given(clusters(), queues(), st.sampled_from([0, 1, 2, 5]))
def test_the_policy_is_figure_11_read_plainly(nodes, queue, beta):
    usable = tuple(node for node in nodes if node.free.cores >= 1 and node.free.memory_mb >= GB)
    parameters = replace(REPRODUCTION, beta=float(beta))

    plan = spread_n_share(parameters).plan(Snapshot(nodes, queue))
    idlest_alone = MatchingParameters(portfolio=("idlest",), reservations=0)
    other = combined(idlest_alone, parameters, portfolio=("idlest",)).plan(Snapshot(nodes, queue))

    alternatives = {job.id: job.alternatives for job in queue}
    planned = {
        start.job_id: (alternatives[start.job_id].index(start.alternative), start.nodes) for start in plan.starts
    }
    assert planned == figure_11(usable, queue, beta)
    assert other == plan
