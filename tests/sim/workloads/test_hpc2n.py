"""The HPC2N log becomes tasks with needs as the DFRS paper infers them, in weeks of the log's clock."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.fluid_trace import PARTS
from slurm_sns.sim.traces.swf import read_fields
from slurm_sns.sim.workloads.hpc2n import MEMORY_FLOOR, NODE_KB, processor_memory_kb, read_hpc2n, weeks

SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))
LOG = SHARED / "traces" / "HPC2N-2002-2.2-cln.swf.gz"
MB = 1024
WEEK_S = 7 * 24 * 3600


def line(*, job=1, submit=0, run=60, used=-1, used_kb=-1, asked=1, asked_s=-1, asked_kb=-1, status=1) -> str:
    return f"{job} {submit} -1 {run} {used} -1 {used_kb} {asked} {asked_s} {asked_kb} {status} 1 1 -1 1 -1 -1 -1\n"


def converted(*lines: str, **options):
    return read_hpc2n(TraceFile("log.swf", "".join(lines).encode()), **options)


def shape(**fields) -> tuple[int, float, float]:
    """Tasks, CPU need and memory need of the only job."""
    trace = converted(line(**fields))
    return int(trace.tasks[0]), trace.cores[0] / PARTS, trace.memory[0] / PARTS


@pytest.fixture(scope="module")
def source() -> TraceFile:
    if not LOG.is_file():
        pytest.skip(f"{LOG} is missing (SNS_SHARED names the folder)")
    return TraceFile.of(str(LOG))


@pytest.fixture(scope="module")
def log(source):
    return read_hpc2n(source)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"asked": 4, "asked_kb": 512 * MB}, (2, 1.0, 0.5)),
        ({"asked": 3, "asked_kb": 512 * MB}, (3, 0.5, 0.25)),
        ({"asked": 1, "asked_kb": 2048 * MB}, (1, 0.5, 1.0)),
        ({"asked": 4, "asked_kb": 1024 * MB}, (4, 0.5, 0.5)),  # not less than 50 %
        ({"asked": 4, "asked_kb": 1023 * MB}, (2, 1.0, 0.999023)),
        ({"asked": 200, "asked_kb": 512 * MB}, (100, 1.0, 0.5)),
    ],
)
def test_processors_in_pairs_are_one_task_where_both_fit_on_a_node_with_room(fields, expected):
    assert shape(**fields) == expected


def test_memory_is_the_larger_of_requested_and_used():
    assert shape(asked_kb=512 * MB, used_kb=256 * MB) == (1, 0.5, 0.25)
    assert shape(asked_kb=256 * MB, used_kb=512 * MB) == (1, 0.5, 0.25)
    assert shape(used_kb=512 * MB) == (1, 0.5, 0.25)


def test_memory_below_a_tenth_per_processor_counts_as_a_tenth_and_without_the_floor_as_it_is():
    small = (line(job=1, asked_kb=MB), line(job=2, asked=2, asked_kb=MB), line(job=3, asked=2))
    assert converted(*small).memory.tolist() == [PARTS // 10, PARTS // 5, PARTS // 5]
    assert converted(*small, memory_floor=False).memory.tolist() == [488, 976, PARTS // 5]


def test_unknown_memory_is_a_tenth_per_processor():
    assert shape(asked=1) == (1, 0.5, 0.1)
    assert shape(asked=6) == (3, 1.0, 0.2)
    assert shape(asked=1, asked_kb=0, used_kb=0) == (1, 0.5, 0.1)


def test_requested_processors_come_before_used_ones():
    assert shape(asked=3, used=4)[0] == 3
    assert shape(asked=-1, used=4)[0] == 2


def test_the_time_limit_is_the_requested_time_where_it_is_known():
    trace = converted(line(job=1, asked_s=3600), line(job=2), line(job=3, asked_s=0))
    assert trace.limit[0] == 3600
    assert (trace.limit[1:] == 0).all()


def test_what_cannot_be_simulated_is_dropped_and_counted_by_reason():
    trace = converted(
        line(job=1),
        line(job=2, run=-1),
        line(job=3, asked=-1),
        line(job=4, submit=-1),
        line(job=5, asked=1, asked_kb=2049 * MB),
        line(job=6, asked=121),
        line(job=7, asked=242),
        line(job=8, run=0),
        line(job=1, status=2),
    )
    assert trace.identity.tolist() == [1, 8]
    assert trace.run_s.tolist() == [60, 1]
    assert trace.dropped == {
        "larger than any nodes": 3,
        "partial execution": 1,
        "unknown run time": 1,
        "unknown size": 1,
        "unknown submit time": 1,
    }


def test_jobs_are_by_submit_time_and_those_of_one_second_by_number():
    trace = converted(line(job=3, submit=9), line(job=9, submit=5), line(job=2, submit=5), line(job=1, submit=7))
    assert trace.identity.tolist() == [2, 9, 1, 3]


def test_weeks_are_those_of_the_logs_clock_and_times_count_from_their_begin():
    times = (WEEK_S - 1, WEEK_S, WEEK_S + 5, 3 * WEEK_S)
    split = weeks(converted(*(line(job=at, submit=time) for at, time in enumerate(times))))
    assert [each.identity.tolist() for each in split] == [[0], [1, 2], [], [3]]
    assert [each.submit_s.tolist() for each in split] == [[WEEK_S - 1], [0, 5], [], [0]]
    assert [len(each.memory) for each in split] == [1, 2, 0, 1]


def test_a_log_without_a_usable_job_is_refused():
    with pytest.raises(BadInput, match=r"log.swf: no job can run on 120 nodes; valid: SWF"):
        converted(line(run=-1))


@given(st.integers(1, 240), st.integers(1, 2048), st.booleans())
@settings(max_examples=200)
def test_the_tasks_have_the_processors_and_the_memory_of_the_job(processors, mib, memory_floor):
    trace = converted(line(asked=processors, asked_kb=mib * MB), line(job=2), memory_floor=memory_floor)
    if processors > 120 and (processors % 2 or 2 * mib >= 2048):
        assert trace.dropped == {"larger than any nodes": 1}
        return
    tasks, cpu, memory = int(trace.tasks[0]), int(trace.cores[0]), int(trace.memory[0])
    assert tasks * cpu * 2 == processors * PARTS
    exact = processors * mib / 2048
    if memory_floor:
        exact = max(exact, processors / 10)
    assert exact - tasks * 1e-6 < tasks * memory / PARTS <= exact
    assert 0 < memory <= PARTS
    # A node holds as many of these tasks as by the log's own MiB.
    if memory > cpu / PARTS * 2 * MEMORY_FLOOR:
        assert PARTS // memory == 2048 // (mib * cpu * 2 // PARTS)


def test_all_jobs_of_the_log_are_left_and_182_weeks_have_jobs(log):
    assert len(log) == 202_871
    assert log.dropped == {}
    split = weeks(log)
    assert len(split) == 182
    assert sum(map(len, split)) == 202_871
    assert min(map(len, split)) == 43
    assert all(0 <= each.submit_s[0] <= each.submit_s[-1] < WEEK_S for each in split)


def test_from_the_first_submit_there_are_181_weeks(log):
    assert (log.submit_s[-1] - log.submit_s[0]) // WEEK_S + 1 == 181


def test_1823_jobs_of_the_log_lie_below_a_tenth_and_one_percent_is_unknown(source, log):
    fields = read_fields(source, {})
    memory_kb = processor_memory_kb(fields["requested memory"], fields["memory"])
    assert ((memory_kb > 0) & (10 * memory_kb < NODE_KB)).sum() == 1823
    assert (memory_kb < 0).sum() == 2137
    assert (memory_kb[memory_kb > 0] % MB == 0).all()
    free = read_hpc2n(source, memory_floor=False)
    assert (free.memory != log.memory).sum() == 1823
    assert log.memory.min() == MEMORY_FLOOR


def test_the_jobs_of_the_log_fit_the_cluster_one_task_per_node(log):
    assert log.tasks.max() <= 120
    assert log.memory.max() <= PARTS
    assert set(log.cores) == {PARTS // 2, PARTS}
    assert log.run_s.min() >= 1
    assert (log.limit > 0).all()
