"""The prototype's scales, and neutral programs by run time, beside those of the paper's text."""

from dataclasses import replace
from functools import partial

import pytest

from slurm_sns.policies.base import JobRequest, NodeType, Request
from slurm_sns.policies.placement.request import compact
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.policies.spread_n_share.scales import alternatives
from slurm_sns.sim.engine.spreading_policies import prototype_alternatives
from sns_reproductions.spread_n_share import NODE, shipped_programs

NODES = (NodeType(NODE, 8),)


def scales(make, program, processes=16, nodes=NODES, parameters=REPRODUCTION):
    request = Request(processes)
    asked = JobRequest(compact(request, nodes), request, shipped_programs()[program])
    return [each.scale for each in make(parameters, asked, nodes).alternatives]


@pytest.mark.parametrize(
    ("program", "processes", "by_text", "by_prototype"),
    [
        ("mg", 16, [8, 4, 2, 1], [4, 2, 1]),
        ("bfs", 16, [1, 1], [1, 2, 4]),  # compact: on empty nodes, then on shared ones
        ("gan", 16, [1], [1]),
        ("wc", 16, [1, 2, 4, 8], [1, 2, 4]),
        ("hc", 28, [1, 2, 4], [1, 2, 4]),
    ],
)
def test_the_prototype_tries_every_class_by_run_time_up_to_scale_4(program, processes, by_text, by_prototype):
    assert scales(alternatives, program, processes) == by_text
    assert scales(prototype_alternatives, program, processes) == by_prototype


def test_the_prototypes_demand_keeps_alpha_of_the_ipc_and_shares_the_nodes():
    request = Request(16)
    asked = JobRequest(compact(request, NODES), request, shipped_programs()["bfs"])
    run = shipped_programs()["bfs"].at(16)

    for each in prototype_alternatives(REPRODUCTION, asked, NODES).alternatives:
        assert not each.exclusive
        assert each.demand.ways == run[each.scale].fewest_ways(0.9, NODE.ways)
        assert each.nodes * each.demand.cores == 16


def test_a_job_without_profile_keeps_its_own_geometry():
    asked = JobRequest(compact(Request(16), NODES), Request(16), None)

    assert prototype_alternatives(REPRODUCTION, asked, NODES).alternatives == (asked.own,)


def test_no_scale_needs_more_nodes_than_there_are():
    assert scales(prototype_alternatives, "mg", nodes=(NodeType(NODE, 2),)) == [2, 1]


def test_by_run_time_only_neutral_programs_change_their_order():
    times = {scale: run.time_s for scale, run in shipped_programs()["nw"].at(16).items()}
    factors = {1: 1.0, 2: 1.02, 4: 1.05, 8: 1.15}

    by_run_time = partial(scales, alternatives, parameters=replace(REPRODUCTION, neutral_by_run_time=True))
    assert by_run_time("nw") == sorted(times, key=lambda scale: times[scale] * factors[scale])
    assert by_run_time("nw") != scales(alternatives, "nw")
    for program in ("mg", "cg", "bfs", "rnn"):
        assert by_run_time(program) == scales(alternatives, program)
