"""Traces for fractional sharing: which files are read, in which units, and what is refused."""

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.fluid_trace import PARTS, on_whole_nodes, read_fluid
from slurm_sns.sim.traces.nodes_csv import read_nodes

HEADER = "job_id,submit_s,run_s,tasks,cpu_need,memory_need\n"


@pytest.fixture
def alike(write):
    return read_nodes(write("nodes.csv", "name,cores,mem_gb\nA,4,8\nB,4,8\n"))


def test_needs_are_parts_of_a_node_and_jobs_are_in_submit_order(write, alike):
    name = write("t.csv", HEADER + "7,20,5,1,0.25,0.1\n3,10,2.5,2,1,0.333333\n")
    trace, node_arrays = read_fluid(name, alike)
    assert trace.identity.tolist() == [3, 7]
    assert trace.cores.tolist() == [PARTS, PARTS // 4]
    assert trace.memory.tolist() == [333_333, PARTS // 10]
    assert trace.run_s.tolist() == [2.5, 5]
    assert trace.unsorted == 1
    assert node_arrays.capacity[:2].tolist() == [[PARTS, PARTS]] * 2


def test_the_load_factor_multiplies_arrival_times_exactly(write, alike):
    name = write("t.csv", HEADER + "1,25,5,1,1,0.1\n2,50,5,1,1,0.1\n")
    assert read_fluid(name, alike, load_factor=0.58)[0].submit_s.tolist() == [14.5, 29]


def test_jobs_that_can_never_run_are_dropped_and_counted(write, alike):
    name = write("t.csv", HEADER + "1,0,5,3,1,0.6\n2,0,5,2,1,0.6\n3,0,5,5,1,0\n")
    trace, _ = read_fluid(name, alike)
    assert trace.identity.tolist() == [2, 3]
    assert trace.dropped == {"larger than any nodes": 1}


def test_a_swf_job_has_a_task_on_each_of_its_nodes(write, alike):
    swf = "1 0 -1 60 6 -1 -1 6 -1 1048576 1 1 -1 -1 -1 -1 -1 -1\n"
    trace, node_arrays = read_fluid(write("t.swf", swf), alike)
    assert (trace.tasks.tolist(), trace.cores.tolist(), trace.memory.tolist()) == ([2], [3], [3072])
    assert node_arrays is alike


def test_a_batch_scheduler_gives_each_task_a_node(write, alike):
    trace, _ = read_fluid(write("t.csv", HEADER + "1,0,5,2,0.25,0.1\n"), alike)
    (job,) = on_whole_nodes(trace, alike).values().jobs
    assert job.job.alternatives[0].nodes == 2
    assert job.job.alternatives[0].exclusive
    assert job.job.expected_run_s == job.run_s == 5
    assert len(trace.limit) == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,0,5,1,0,0.1", "line 2: cpu_need is '0'; valid: a number from 1e-06 to 1"),
        ("1,0,5,1,1.5,0.1", "line 2: cpu_need is '1.5'; valid: a number from 0 to 1"),
        ("1,0,5,1,1,nan", "line 2: memory_need is 'nan'"),
        ("1,0,5,0,1,0.1", "line 2: tasks is '0'; valid: a number from 1 to"),
        ("1,0,5,1.5,1,0.1", "line 2: tasks is '1.5'; valid: a whole number"),
        ("1,-1,5,1,1,0.1", "line 2: submit_s is '-1'"),
        ("1,0,1e300,1,1,0.1", "line 2: run_s is '1e300'"),
        ("1,0,5,1,1", "line 2"),
        ("1,0,5,3,1,1", "no job can run on these nodes: 1 larger than any nodes"),
    ],
)
def test_a_wrong_line_is_named_with_what_is_valid(write, alike, line, words):
    with pytest.raises(BadInput, match=words):
        read_fluid(write("t.csv", HEADER + line + "\n"), alike)


def test_fractions_of_a_node_need_nodes_that_are_alike(write, small_pool):
    with pytest.raises(BadInput, match="valid: nodes that are all alike"):
        read_fluid(write("t.csv", HEADER + "1,0,5,1,1,0.1\n"), small_pool)
