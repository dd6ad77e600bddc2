from dataclasses import replace

import pytest
from programs import GB, PAPER_NODE, alternatives_of, paper_programs, program, run, types

from slurm_sns.errors import BadInput, Infeasible
from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.base import Choice, JobRequest, NodeType, Request
from slurm_sns.policies.baselines.compact import exclusive_alternatives, shared_scales
from slurm_sns.policies.placement.request import fewest_nodes, spread
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.parameters import (
    PAPER_FREQUENCY_FACTORS,
    REPRODUCTION,
    SpreadingParameters,
    require_valid,
)
from slurm_sns.policies.spread_n_share.scales import NONE_ELIGIBLE, choose

FLAT = {"ipc": (1.0, 1.0)}
SCALING = program({1: 100, 2: 80, 4: 60, 8: 70}, **FLAT)
NEUTRAL = program({1: 100, 2: 100, 4: 96, 8: 88}, **FLAT)
COMPACT = program({1: 100, 2: 110, 4: 120}, **FLAT)
LIVE = SpreadingParameters(shared_ways=0, frequency_factors=PAPER_FREQUENCY_FACTORS)


def scales(alternatives) -> list[int]:
    return [alternative.scale for alternative in alternatives]


def layouts(tasks, parameters=LIVE, **request) -> list[tuple[int, int]]:
    """(n, c) of a neutral program at each eligible scale."""
    of = Program("p", tuple(run(scale, 100.0, processes=tasks, **FLAT) for scale in (1, 2, 4, 8)))
    found = alternatives_of(of, tasks, parameters=replace(parameters, frequency_factors=(1.0,)), **request)
    return [(alternative.nodes, alternative.demand.cores) for alternative in found]


def test_scaling_programs_try_their_scales_by_run_time():
    assert scales(alternatives_of(SCALING)) == [4, 8, 2, 1]


def test_neutral_programs_try_the_smallest_scale_first():
    assert scales(alternatives_of(NEUTRAL)) == [1, 2, 4, 8]


def test_compact_programs_want_their_node_alone_and_then_shared():
    alternatives = alternatives_of(COMPACT)

    assert [(alternative.scale, alternative.exclusive) for alternative in alternatives] == [(1, True), (1, False)]
    assert alternatives[0].demand == Resources(16, GB, 20, 118)  # all ways, all bandwidth
    assert alternatives[1].demand == Resources(16, GB, 2, 10)


def test_sixteen_processes_fill_no_node_and_divide_evenly():
    assert layouts(16) == [(1, 16), (2, 8), (4, 4), (8, 2)]


def test_twenty_eight_processes_leave_no_node_empty_at_scale_eight():
    assert layouts(28) == [(1, 28), (2, 14), (4, 7), (7, 4)]


def test_even_scales_only_drops_scales_whose_nodes_do_not_divide_the_processes():
    assert layouts(28, REPRODUCTION) == [(1, 28), (2, 14), (4, 7)]


def test_never_more_nodes_than_processes_and_never_the_same_nodes_twice():
    assert layouts(1) == [(1, 1)]
    assert layouts(4) == [(1, 4), (2, 2), (4, 1)]
    assert layouts(5) == [(1, 5), (2, 3), (3, 2)]  # scale 8 would be 8 nodes for 5 processes


def test_never_more_nodes_than_there_are():
    assert scales(alternatives_of(NEUTRAL, nodes=types(3))) == [1, 2]


def test_a_job_larger_than_a_node_has_several_at_scale_one():
    assert layouts(56) == [(2, 28), (4, 14), (8, 7)]  # 16 nodes are more than the 8 there are


def test_memory_can_decide_the_fewest_nodes():
    request = Request(16, memory_per_cpu_mb=16 * GB)  # 8 processes a node

    assert fewest_nodes(request, types()) == 2
    assert spread(request, 2, 1) == Alternative(2, Resources(8, 128 * GB), tasks_per_node=8, scale=1)


def test_memory_per_node_is_never_divided():
    assert {alternative.demand.memory_mb for alternative in alternatives_of(NEUTRAL, memory_per_node_mb=5 * GB)} == {
        5 * GB
    }


def test_memory_per_cpu_goes_with_the_cores():
    alternatives = alternatives_of(NEUTRAL, memory_per_node_mb=None, memory_per_cpu_mb=GB)

    assert [alternative.demand.memory_mb for alternative in alternatives] == [16 * GB, 8 * GB, 4 * GB, 2 * GB]


def test_processes_are_counted_by_tasks_and_a_task_is_never_split():
    of = Program("p", tuple(run(scale, 100.0, processes=12, **FLAT) for scale in (1, 2, 4)))
    alternatives = alternatives_of(of, 3, parameters=LIVE, cpus_per_task=4, threads_per_core=2)

    assert [
        (alternative.nodes, alternative.tasks_per_node, alternative.demand.cores) for alternative in alternatives
    ] == [(1, 3, 6), (2, 2, 4)]


def test_on_unlike_nodes_scale_one_is_the_fewest_nodes_that_can_hold_the_job():
    small, large = NodeType(Resources(8, 64 * GB, 11, 50), 20), NodeType(PAPER_NODE, 1)

    assert fewest_nodes(Request(16), (small, large)) == 1
    assert fewest_nodes(Request(40), (small, large)) == 5  # two large ones there are not


def test_a_job_that_no_nodes_could_hold_is_refused_in_one_line():
    with pytest.raises(Infeasible, match="300 processes fit on no nodes: there are 8, the largest with 28 cores"):
        alternatives_of(NEUTRAL, 300)
    with pytest.raises(Infeasible, match="one process needs 1 cores and 999999 MiB"):
        alternatives_of(NEUTRAL, 1, memory_per_node_mb=999_999)


def test_a_job_without_profile_has_its_own_request_at_scale_one():
    assert alternatives_of(None, 40) == (Alternative(2, Resources(20, GB), tasks_per_node=20),)
    assert alternatives_of(SCALING, 15) == (
        Alternative(1, Resources(15, GB), tasks_per_node=15),
    )  # not at 15 processes
    choice = choose(Request(15), SCALING, types(), LIVE)
    assert "p is profiled with 16 processes" in choice.explanation.summary[0]


def test_scales_that_keep_less_than_alpha_are_not_eligible():
    of = program({1: 100, 2: 80, 4: 130}, **FLAT)  # at 4: 136.5 s after the frequency factor

    assert scales(alternatives_of(of)) == [2, 1]
    assert scales(alternatives_of(of, alpha=0.7)) == [2, 1, 4]


def test_fewer_ways_and_more_bandwidth_for_those_who_tolerate_more():
    of = program({1: 100}, ways=(2, 10, 20), ipc=(0.5, 0.9, 1.0), bandwidth=(40.0, 20.0, 10.0))

    demands = [alternatives_of(of, alpha=alpha)[0].demand[2:4] for alpha in (1.0, 0.9, 0.7, 0.1)]

    assert demands == [(20, 10), (10, 20), (6, 30), (2, 40)]


def test_bandwidth_is_rounded_up_to_whole_gigabytes():
    of = program({1: 100}, bandwidth=(0.09, 0.09))

    assert alternatives_of(of)[0].demand.bandwidth_gbps == 1


def test_the_predicted_slowdown_is_the_spreadings_times_the_caches():
    of = program({1: 100, 2: 80}, ways=(2, 10, 20), ipc=(0.5, 0.9, 1.0), bandwidth=(1.0, 1.0, 1.0))

    assert alternatives_of(of)[0].slowdown == pytest.approx(0.8 * 1.02 / 0.9)


def test_hints_bind_the_scale_and_the_mode():
    assert scales(alternatives_of(SCALING, max_scale=2)) == [2, 1]
    assert scales(alternatives_of(SCALING, max_scale=1)) == [1]
    assert all(
        alternative.exclusive and alternative.demand[2:4] == (20, 118)
        for alternative in alternatives_of(SCALING, exclusive=True)
    )
    assert [alternative.exclusive for alternative in alternatives_of(COMPACT, exclusive=True)] == [True]
    assert [alternative.exclusive for alternative in alternatives_of(None, exclusive=True)] == [True]


def test_the_programs_max_scale_binds():
    assert scales(alternatives_of(replace(SCALING, max_scale=2))) == [2, 1]


def test_shared_ways_are_never_promised():
    of = program({1: 100}, ways=(2, 19, 20), ipc=(0.5, 0.89, 1.0), bandwidth=(1.0, 1.0, 1.0))

    choice = choose(Request(16), of, types(), SpreadingParameters(shared_ways=2))

    # 20 ways would be needed and 18 are there: scale 1 on an empty node, as without us.
    assert choice.alternatives == (Alternative(1, Resources(16, 0, 18, 118), 16, exclusive=True),)
    assert choice.explanation.summary[-1].lower() == f"{NONE_ELIGIBLE}."
    assert choice.explanation.considered[1].reason == "18 ways do not reach T-IPC 0.9"


def test_more_bandwidth_than_a_node_has_is_not_asked_of_it():
    of = program({1: 100, 2: 80}, bandwidth=(119.0, 119.0), **FLAT)

    choice = choose(Request(16), of, types(), LIVE)

    assert [alternative.exclusive for alternative in choice.alternatives] == [True]
    assert "nodes with 2 ways and 119 GB/s; 0 have as much" in choice.explanation.considered[-1].reason


def test_where_nodes_have_no_ways_and_no_bandwidth_to_give_none_is_asked_for():
    plain = (NodeType(Resources(28, 128 * GB), 8),)

    assert {alternative.demand[2:4] for alternative in alternatives_of(paper_programs()["cg"], nodes=plain)} == {(0, 0)}


def test_one_profile_can_serve_jobs_of_every_size():
    serves_all = replace(REPRODUCTION, one_profile_for_all_sizes=True)

    assert scales(alternatives_of(SCALING, 112, parameters=serves_all)) == [2, 1]  # 4 nodes, 8 nodes


def test_every_dropped_scale_says_why():
    of = program({1: 100, 2: 99, 4: 150}, max_scale=4, **FLAT)

    choice = choose(Request(16, memory_per_node_mb=GB), of, types(8), replace(LIVE, scales=(1, 2, 3, 4, 8)))

    assert {int(each.name): each.reason for each in choice.explanation.considered if each.outcome == "dropped"} == {
        2: "the program is compact: it runs at scale 1 only",
        3: "the program is not profiled at this scale",
        4: "it keeps 0.6349 of its speed at scale 1; alpha is 0.9",
        8: "the program's max_scale is 4",
    }


def test_the_frequency_factors_that_were_used_are_told_and_none_where_all_are_1():
    papers = choose(Request(16), SCALING, types(), LIVE).explanation
    ours = choose(Request(16), SCALING, types(), SpreadingParameters()).explanation

    told = "Run times are multiplied by 1.02 at scale 2, 1.05 at scale 4, 1.15 at scale 8 (frequency_factors)."
    assert told in papers.summary
    assert not any("multiplied" in sentence for sentence in ours.summary)


def test_ce_has_one_way_and_cs_the_scales_that_fit():
    request = Request(28, memory_per_node_mb=GB)

    asked = JobRequest(Alternative(1, Resources(28, GB)), request)
    assert exclusive_alternatives(asked, types()) == Choice((Alternative(1, Resources(28, GB), 28, exclusive=True),))
    assert [
        (alternative.scale, alternative.nodes) for alternative in shared_scales(request, types(), REPRODUCTION)
    ] == [
        (1, 1),
        (2, 2),
        (4, 4),
    ]
    assert [alternative.nodes for alternative in shared_scales(request, types(), LIVE)] == [1, 2, 4, 7]
    assert [alternative.nodes for alternative in shared_scales(request, types(), LIVE, max_scale=1)] == [1]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": 0}, "alpha is 0; valid: above 0, at most 1"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"beta": -1}, "beta is -1"),
        ({"scales": (2, 4)}, "scales are 2,4; valid: 1 and others"),
        ({"scales": (1, 2, 2)}, "each once"),
        ({"scales": (1, 65)}, "up to 64"),
        ({"shared_ways": -1}, "shared_ways is -1"),
        ({"queue_depth": 0}, "queue_depth is 0"),
    ],
)
def test_impossible_parameters_are_refused(parameters, words):
    with pytest.raises(BadInput, match=words):
        require_valid(SpreadingParameters(**parameters))
