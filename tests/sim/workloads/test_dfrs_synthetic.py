"""The DFRS paper's synthetic traces: needs, offered load, scaling, and the file they are written to."""

import csv
import gzip

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from slurm_sns.errors import BadInput
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import PARTS
from slurm_sns.sim.workloads.dfrs_synthetic import annotate, offered_load, paper_trace, scaled
from slurm_sns.sim.workloads.lublin import SETS, lublin_jobs
from slurm_sns.sim.workloads.write import fluid_lines, write_pieces


def rng(seed=1):
    return np.random.default_rng(seed)


def trace_of(*jobs) -> TraceArrays:
    """A trace of jobs (submit, run, tasks)."""
    submit_s, run_s, tasks = np.array(jobs).T
    needs = np.full(len(jobs), PARTS)
    return TraceArrays(np.arange(1, len(jobs) + 1), submit_s * 1.0, run_s * 1.0, tasks=tasks, cores=needs, memory=needs)


def columns(trace):
    return {name: getattr(trace, name).tolist() for name in ("identity", "run_s", "tasks", "cores", "memory")}


def test_a_paper_trace_has_1000_jobs_of_up_to_128_tasks_and_begins_with_its_first_submit():
    trace = paper_trace(rng())
    assert len(trace) == 1000
    assert trace.identity.tolist() == list(range(1, 1001))
    assert trace.submit_s[0] == 0
    assert trace.tasks.min() == 1
    assert trace.tasks.max() == 128
    assert len(trace.limit) == 0
    assert trace.dropped == {}


def test_the_last_of_1000_jobs_is_submitted_after_four_to_six_days_generally():
    days = [paper_trace(rng(seed)).submit_s[-1] / 86_400 for seed in range(100)]
    assert 5 < np.median(days) < 6
    assert np.mean([4 <= each <= 6 for each in days]) > 0.4


def test_one_task_jobs_need_a_quarter_of_a_nodes_cpu_and_others_all_of_it():
    trace = paper_trace(rng())
    assert set(trace.cores[trace.tasks == 1]) == {PARTS // 4}
    assert set(trace.cores[trace.tasks > 1]) == {PARTS}


def test_55_percent_of_the_jobs_need_a_tenth_of_the_memory_and_the_others_2_to_10_tenths_alike():
    trace = annotate(lublin_jobs(SETS["paper"], 100_000, 128, rng()), rng(2))
    tenths = np.bincount(trace.memory // (PARTS // 10), minlength=11) / len(trace)
    assert (trace.memory % (PARTS // 10) == 0).all()
    assert tenths[0] == 0
    assert tenths[1] == pytest.approx(0.55, abs=0.008)
    assert tenths[2:] == pytest.approx([0.45 / 9] * 9, abs=0.004)
    # The needs of memory do not depend on the size.
    assert (trace.memory[trace.tasks == 1] == PARTS // 10).mean() == pytest.approx(0.55, abs=0.02)


def test_the_same_generator_gives_the_same_trace_and_another_seed_another_one():
    assert columns(paper_trace(rng(5))) == columns(paper_trace(rng(5)))
    assert columns(paper_trace(rng(5))) != columns(paper_trace(rng(6)))


def test_the_offered_load_counts_a_whole_node_per_task_and_time_from_the_first_submit():
    # 10 * 4 + 60 * 1 node seconds on 2 nodes in 100 s.
    assert offered_load(trace_of((0, 10, 4), (100, 60, 1)), 2) == pytest.approx(0.5)
    assert offered_load(trace_of((50, 10, 4), (150, 60, 1)), 2) == pytest.approx(0.5)
    assert offered_load(trace_of((50, 10, 4)), 2) == float("inf")


def test_scaling_multiplies_the_gaps_and_rounds_submits_to_seconds():
    trace = scaled(trace_of((50, 10, 4), (51, 10, 1), (150, 50, 1)), 2, 1.0)
    assert trace.submit_s.tolist() == [0, 1, 50]  # by 0.5; halves are rounded up


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_a_scaled_trace_has_the_load_and_the_same_jobs(load):
    trace = paper_trace(rng())
    other = scaled(trace, 128, load)
    assert offered_load(other, 128) == pytest.approx(load, rel=1e-5)
    assert columns(other) == columns(trace)


@given(st.integers(0, 2**32), st.integers(2, 200), st.floats(0.01, 10), st.sampled_from([32, 128, 256]))
@settings(max_examples=60)
def test_scaling_keeps_the_order_and_hits_the_load_as_far_as_whole_seconds_allow(seed, count, load, nodes):
    trace = paper_trace(rng(seed), jobs=count, nodes=nodes)
    assume(np.isfinite(offered_load(trace, nodes)))
    work_s = float((trace.run_s * trace.tasks).sum())
    assume(work_s / (nodes * load) > 1)
    other = scaled(trace, nodes, load)
    assert other.submit_s[0] == 0
    assert (np.diff(other.submit_s) >= 0).all()
    assert (other.submit_s == np.floor(other.submit_s)).all()
    assert abs(work_s / (nodes * load) - other.submit_s[-1]) <= 0.5 + 1e-6


@pytest.mark.parametrize("jobs", [[(5, 10, 1)], [(5, 10, 1), (5, 10, 1)], [(0, 1, 1), (9, 1, 1)]])
def test_a_load_that_puts_all_submits_into_one_second_is_refused(jobs):
    with pytest.raises(BadInput, match="load 90: all jobs are submitted in one second; valid: more jobs"):
        scaled(trace_of(*jobs), 128, 90)


def test_the_file_has_needs_as_fractions_of_a_node_without_trailing_zeros(tmp_path):
    trace = TraceArrays(
        np.array([7, 8]),
        np.array([0.0, 1200.0]),
        np.array([10.0, 2.5]),
        tasks=np.array([1, 100]),
        cores=np.array([PARTS // 4, PARTS]),
        memory=np.array([PARTS // 10, 195_312]),
    )
    write_pieces(tmp_path / "t.csv.gz", fluid_lines(trace))
    assert gzip.decompress((tmp_path / "t.csv.gz").read_bytes()).decode().splitlines() == [
        "job_id,submit_s,run_s,tasks,cpu_need,memory_need",
        "7,0,10,1,0.25,0.1",
        "8,1200,2.5,100,1,0.195312",
    ]


def test_the_needs_in_a_file_are_exact():
    trace = paper_trace(rng())
    rows = list(csv.DictReader("".join(fluid_lines(trace)).splitlines()))
    assert [round(float(row["memory_need"]) * PARTS) for row in rows] == trace.memory.tolist()
    assert [round(float(row["cpu_need"]) * PARTS) for row in rows] == trace.cores.tolist()
    assert [float(row["submit_s"]) for row in rows] == trace.submit_s.tolist()
    assert [float(row["run_s"]) for row in rows] == trace.run_s.tolist()


def test_a_file_that_is_not_completed_does_not_appear(tmp_path):
    def failing():
        yield "job_id\n"
        raise BadInput("no more")

    with pytest.raises(BadInput):
        write_pieces(tmp_path / "t.csv", failing())
    assert list(tmp_path.iterdir()) == []
