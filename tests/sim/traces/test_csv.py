import gzip

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Resources
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.nodes_csv import read_nodes
from slurm_sns.sim.traces.read_trace import read_records

HEADER = "job_id,submit_s,run_s,cores,mem_gb\n"


@pytest.fixture
def read(write, small_pool):
    def read(text: str, name: str = "trace.csv", **options):
        return read_records(write(name, text), small_pool, **options).values()

    return read


def test_memory_is_in_gb_of_1024_mib_fractions_rounded_up(read):
    trace = read(HEADER + "1,0,60,2,1.5\n2,0,60,2,1.0001\n3,0,60,2,0.2\n")

    assert [each.job.alternatives[0].demand.memory_mb for each in trace.jobs] == [1536, 1025, 1024]


def test_with_nodes_cores_and_memory_are_per_node(read):
    (each,) = read("job_id,submit_s,run_s,cores,mem_gb,nodes,project,heuristic\n1,5,60,2,3,2,astro,mix-fit\n").jobs

    assert each.job.alternatives == (Alternative(2, Resources(2, 3072)),)
    assert (each.job.project, each.job.heuristic, each.job.order) == ("astro", "mix-fit", (5,))


def test_priorities_are_those_of_the_jobs_that_stay_in_the_order_of_their_submits(write, small_pool):
    text = HEADER.strip() + ",priority\n1,9,60,2,1,7\n2,5,60,99,1,8\n3,5,60,2,1,9\n"

    assert read_records(write("trace.csv", text), small_pool).priority.tolist() == [9, 7]


def test_columns_may_come_in_any_order_and_compressed(read):
    (each,) = read("mem_gb,cores,run_s,submit_s,job_id\n4,2,60,5,77\n", "trace.csv.gz").jobs

    assert (each.job.id, each.job.submit_s, each.run_s) == (77, 5, 60)


def test_jobs_that_no_node_could_hold_are_dropped_and_counted(read):
    trace = read(HEADER + "1,0,60,2,1\n2,0,60,5,1\n3,0,60,1,17\n")

    assert trace.dropped == {"larger than any nodes": 2}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job_id,submit_s,run_s,cores\n1,0,1,1\n", "line 1: column mem_gb is missing; valid: job_id,submit_s"),
        (HEADER.strip() + ",colour\n1,0,1,1,1,red\n", "line 1: column 'colour' is unknown; valid: .*heuristic"),
        (HEADER.strip() + ",cores\n1,0,1,1,1,1\n", "line 1: a column is named twice"),
        (HEADER, "there is no line after the header"),
        (HEADER + "1,0,1,1,1\n2,0,1,1\n", "line 3 has 4 fields; the header has 5"),
        (HEADER + "1,0,1,1,1\n\n2,0,1,1,1\n", "line 3 has 1 fields"),
        (HEADER + "1,0,1,1,1,1\n", "line 2 has 6 fields"),
        (HEADER + "1,0,1,two,1\n", "line 2: cores is 'two'; valid: a number from 1"),
        (HEADER + "1,0,1,1.5,1\n", "line 2: cores is '1.5'; valid: a whole number"),
        (HEADER + "1,0,1,0,1\n", "line 2: cores is '0'; valid: a number from 1"),
        (HEADER + "1,0,1,1,1\n2,-3,1,1,1\n", "line 3: submit_s is '-3'; valid: a number from 0"),
        (HEADER + "1,0,nan,1,1\n", "line 2: run_s is 'nan'"),
        (HEADER + "1,0,inf,1,1\n", "line 2: run_s is 'inf'"),
        (HEADER + "1,0,,1,1\n", "line 2: run_s is ''"),
        (HEADER + "1,0,1,1,1e99\n", "line 2: mem_gb is '1e99'; valid: a number from 0 to 1e\\+12"),
        (HEADER + "1,0,1,1,1\n1,0,1,1,1\n", "line 3: job_id is '1'; valid: each value once"),
        (HEADER + "1,0,1,1,1\n01, 0,1,1,1\n", "line 3: job_id is '01'; valid: each value once"),
        (HEADER + '1,0,1,1,"1"\n', "line 2 has a quoted field"),
        (HEADER.strip() + ",heuristic\n1,0,1,1,1,magic\n", "line 2: heuristic is 'magic'; valid: empty, first-fit"),
    ],
)
def test_an_unusable_cell_is_named_with_what_is_valid(read, text, words):
    with pytest.raises(BadInput, match=words):
        read(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,cores\nA,1\n", "column mem_gb is missing; valid: name,cores,mem_gb and optionally ways"),
        ("name,cores,mem_gb\nA,1,1\nA,2,1\n", "line 3: name is 'A'; valid: each value once"),
        ("name,cores,mem_gb\nA+B,1,1\n", "line 2: name is 'A\\+B'; valid: letters"),
        ("name,cores,mem_gb\n,1,1\n", "line 2: name is ''"),
        ("name,cores,mem_gb\nA,0,1\n", "line 2: cores is '0'"),
        ("name,cores,mem_gb\nA,1,-1\n", "line 2: mem_gb is '-1'"),
        ("name,cores,mem_gb,ways,closids\nA,1,1,9,3\nB,1,1,9,2\n", "line 3: closids is '2'; valid: 3 or more, 0 for"),
    ],
)
def test_an_unusable_list_of_nodes_is_refused(write, text, words):
    with pytest.raises(BadInput, match=words):
        read_nodes(write("nodes.csv", text))


def test_nodes_may_have_ways_bandwidth_and_a_pool(write):
    pool = read_nodes(write("nodes.csv", "name,cores,mem_gb,ways,bandwidth_gbps,pool\nA,4,0.5,11,99.9,west\n"))

    assert pool.capacity[:, 0].tolist() == [4, 512, 11, 99, 0]


@pytest.mark.parametrize(
    ("ways_and_closids", "for_jobs"),
    [
        (["11,8", "11,0", "0,8"], [6, 11, 0]),  # 0: no limit, as many as ways
        (["11,0", "20,0"], [0, 0]),
        (["0,8"], [0]),
    ],
    ids=["one has a limit", "none has a limit", "no ways"],
)
def test_nodes_may_have_closids(write, ways_and_closids, for_jobs):
    rows = "".join(f"n{at},4,1,{each}\n" for at, each in enumerate(ways_and_closids))

    assert read_nodes(write("nodes.csv", "name,cores,mem_gb,ways,closids\n" + rows)).capacity[4].tolist() == for_jobs


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("cut.swf.gz", gzip.compress(b"1 2 3\n" * 1000, mtime=0)[:-12], "the gzip file is truncated"),
        ("bad.swf.gz", b"\x1f\x8b\x08\x00garbage" * 9, "the gzip file is"),
        ("plain.swf.gz", b"1 2 3\n", "not a gzip file"),
        ("binary.swf", b"\x7fELF\x00\x01", "a binary file"),
        ("empty.swf", b"", "the file is empty"),
        ("blank.csv", b"\n \n", "the file is empty"),
        ("empty.csv.gz", gzip.compress(b"", mtime=0), "the file is empty"),
    ],
)
def test_a_file_that_is_not_text_is_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(BadInput, match=words):
        TraceFile.of(str(tmp_path / name)).text()


def test_a_missing_file_and_a_directory_cannot_be_read(tmp_path):
    with pytest.raises(BadInput, match="cannot be read \\(No such file"):
        TraceFile.of(str(tmp_path / "none"))
    with pytest.raises(BadInput, match="cannot be read \\(Is a directory"):
        TraceFile.of(str(tmp_path))
