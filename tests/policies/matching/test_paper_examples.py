"""The examples of the Max-Jobs paper (JSSPP 2013), figures 3, 4, 8, 9 and 10."""

import numpy as np
import pytest
from clusters import GB, job, node, placed, plan, queue

from slurm_sns.policies.placement.heuristics import mix_fit
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts

TWO_MACHINES = (node("A"), node("B"))
FIGURE_3 = queue((1, 16), (1, 16), *[(1, 4)] * 6)
FIGURE_4 = queue((1, 8), (1, 8), (1, 8), (1, 32))


def test_figure_3_best_fit_fills_a_with_memory_and_b_with_cores_so_two_jobs_wait():
    result = plan(TWO_MACHINES, FIGURE_3, "best-fit-memory")

    assert placed(result) == {1: "A", 2: "A", 3: "B", 4: "B", 5: "B", 6: "B"}
    assert set(result.waiting) == {7, 8}


@pytest.mark.parametrize("heuristic", ["worse-fit-memory", "worse-fit-cores", "mix-fit"])
def test_figures_3_and_9_spreading_the_large_jobs_leaves_room_for_all(heuristic):
    result = plan(TWO_MACHINES, FIGURE_3, heuristic)

    assert placed(result)[1] == "A"
    assert placed(result)[2] == "B"
    assert len(result.starts) == 8
    assert result.waiting == {}


def test_figure_4_worse_fit_leaves_no_machine_whole_for_the_large_job():
    result = plan(TWO_MACHINES, FIGURE_4, "worse-fit-memory")

    assert placed(result) == {1: "A", 2: "B", 3: "A"}
    assert set(result.waiting) == {4}


@pytest.mark.parametrize("heuristic", ["best-fit-memory", "best-fit-cores", "mix-fit"])
def test_figures_4_and_10_packing_the_small_jobs_keeps_b_whole(heuristic):
    assert placed(plan(TWO_MACHINES, FIGURE_4, heuristic)) == {1: "A", 2: "A", 3: "A", 4: "B"}


def test_figure_8_mix_fit_takes_the_machine_where_cores_and_memory_run_out_together():
    machines = (node("A", free=(3, 8)), node("B", free=(2, 16)), node("C", free=(1, 24)))
    node_arrays, free = NodeArrays.of(machines), amounts([machine.free for machine in machines])

    angles = mix_fit(node_arrays.capacity, free, np.arange(3), (1, 8 * GB))

    assert angles[1] == 0
    assert angles[0] > 0
    assert angles[2] > 0
    assert placed(plan(machines, [job(1, 1, 8)], "mix-fit")) == {1: "B"}


def test_mix_fit_gives_angle_0_to_a_node_that_the_job_fills_completely():
    machines = (node("A", free=(4, 32)), node("B", free=(1, 8)))

    assert placed(plan(machines, [job(1, 1, 8)], "mix-fit")) == {1: "A"}  # both angles are 0: the first
    assert placed(plan(machines[::-1], [job(1, 1, 8)], "mix-fit")) == {1: "B"}
