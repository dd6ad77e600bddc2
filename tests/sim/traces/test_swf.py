import io

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Resources
from slurm_sns.sim.traces import swf
from slurm_sns.sim.traces.columns import NotPlain
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.read_trace import read_records

KB = 1024
GB = 1024 * KB


def line(*, job=1, submit=0, run=60, used=1, used_kb=-1, asked=-1, asked_kb=-1, status=1) -> str:
    return f"{job} {submit} -1 {run} {used} -1 {used_kb} {asked} -1 {asked_kb} {status} 1 1 -1 1 -1 -1 -1\n"


@pytest.fixture
def read(write, small_pool):
    def read(*lines: str, **options):
        return read_records(write("trace.swf", "; Version: 2.2\n\n" + "".join(lines)), small_pool, **options).values()

    return read


def only(trace) -> Alternative:
    (each,) = trace.jobs
    (way,) = each.job.alternatives
    return way


def test_requested_processors_and_memory_come_before_used_ones(read):
    assert only(read(line(used=4, used_kb=8 * GB, asked=2, asked_kb=2 * GB))).demand == Resources(2, 4096)
    assert only(read(line(used=4, used_kb=2 * GB))).demand == Resources(4, 8192)


def test_unknown_memory_is_one_gb_on_each_node_and_less_counts_as_one_gb(read):
    assert only(read(line(asked=4))).demand.memory_mb == 1024
    assert only(read(line(asked=4, asked_kb=0))).demand.memory_mb == 1024
    assert only(read(line(asked=2, asked_kb=10 * KB))).demand.memory_mb == 1024


def test_memory_per_processor_is_rounded_up_to_whole_mib(read):
    assert only(read(line(asked=2, asked_kb=1000 * KB + 1))).demand.memory_mb == 2 * 1001


def test_more_processors_than_the_largest_node_has_become_equal_parts_on_several(read):
    assert only(read(line(asked=5, asked_kb=GB))) == Alternative(nodes=2, demand=Resources(3, 3072))
    assert only(read(line(asked=4, asked_kb=GB))) == Alternative(nodes=1, demand=Resources(4, 4096))


def test_jobs_that_cannot_be_replayed_are_dropped_and_counted_by_reason(read):
    trace = read(
        line(job=1),
        line(job=2, run=-1),
        line(job=3, run=-1359980000),
        line(job=4, used=-1),
        line(job=5, asked=100),
        line(job=6, asked=1, asked_kb=17 * GB),
        line(job=7, submit=-1),
        line(job=1, status=2),
    )

    assert [each.job.id for each in trace.jobs] == [1]
    assert trace.dropped == {
        "larger than any nodes": 2,
        "partial execution": 1,
        "unknown run time": 2,
        "unknown size": 1,
        "unknown submit time": 1,
    }


def test_a_run_time_of_0_counts_as_1_second(read):
    assert read(line(run=0)).jobs[0].run_s == 1


def test_jobs_are_submitted_in_order_and_those_of_one_second_in_the_files_order(read):
    trace = read(line(job=3, submit=9), line(job=2, submit=5), line(job=9, submit=5), line(job=1, submit=7))

    assert [each.job.id for each in trace.jobs] == [2, 9, 1, 3]


def test_the_load_factor_multiplies_arrivals_and_rounds_halves_up_by_decimal_digits(read):
    trace = read(line(job=1, submit=25), line(job=2, submit=24), line(job=3, submit=100), load_factor=0.58)

    assert [(each.job.id, each.job.submit_s) for each in trace.jobs] == [(2, 14), (1, 15), (3, 58)]  # 13.92, 14.5, 58


def test_the_limit_keeps_the_first_jobs_of_the_file(read):
    assert [each.job.id for each in read(line(job=8), line(job=7), line(job=6), limit=2).jobs] == [8, 7]


def test_swf_comes_from_standard_input_too(monkeypatch, small_pool):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line(job=5).encode())))

    assert read_records("-", small_pool).values().jobs[0].job.id == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 2 3\n", "line 3 has 3 fields; SWF has 18"),
        (line(submit="soon"), "line 3: submit is 'soon'; valid: a number"),
        (line() + line(job=2, run="nan"), "line 4: run time is 'nan'; valid: a number"),
        (line(asked="inf"), "line 3: requested processors is inf; valid: a number"),
        (line(asked_kb="1e300"), "line 3: requested memory is 1e\\+300; valid: a number"),
        (line(job=7) + line(job=7), "line 4: job 7 is there twice; valid: each once"),
        ("; only a comment\n", "there is no job in it"),
        (line(asked=1000), "no job can run on these nodes: 1 larger than any nodes"),
    ],
)
def test_an_unusable_line_is_named_with_what_is_valid(read, text, words):
    with pytest.raises(BadInput, match=words):
        read(text)


LIMITED = "7 0 -1 60 1 -1 -1 1 3600 -1 1 1 1 -1 1 -1 -1 -1\n"


@pytest.mark.parametrize("plainly", [True, False])
def test_further_fields_are_read_by_both_readers(plainly, monkeypatch):
    if not plainly:
        monkeypatch.setattr(swf.SwfReader, "_plain", refuse)
    fields = swf.read_fields(TraceFile("t", ("; a comment\n" + LIMITED + line(job=8)).encode()), {8: "requested time"})

    assert fields["requested time"].tolist() == [3600, -1]
    assert fields["job"].tolist() == [7, 8]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LIMITED.replace("3600", "long"), "line 1: requested time is 'long'; valid: a number"),
        (LIMITED * 2, "line 2: job 7 is there twice; valid: each once"),
        ("; only a comment\n", "there is no job in it"),
    ],
)
def test_an_unusable_line_is_named_with_further_fields_too(text, words):
    with pytest.raises(BadInput, match=words):
        swf.read_fields(TraceFile("t", text.encode()), {8: "requested time"})


def refuse(*_):
    raise NotPlain
