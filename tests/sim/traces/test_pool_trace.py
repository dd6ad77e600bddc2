"""Traces for a site with pools: which files are read, what is read of them, and what is refused."""

import dataclasses

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.sim.traces import pool_trace
from slurm_sns.sim.traces.columns import CsvReader, NotPlain
from slurm_sns.sim.traces.nodes_csv import read_nodes, read_site
from slurm_sns.sim.traces.pool_trace import ANY_POOL, has_pools, read_pool_trace

NODES = "name,cores,mem_gb,pool\nb1,4,8,B\na1,2,8,A\nb2,2,16,B\n"
HEADER = "job_id,submit_s,run_s,cores,mem_gb,pool,priority"
LONG_HEADER = f"{HEADER},allowed_pools,limit_s,program"


@pytest.fixture
def site(write):
    return read_site(write("nodes.csv", NODES))


@pytest.fixture
def read(write, site):
    def read(*lines: str, header: str = HEADER, name: str = "t.csv", **options):
        return read_pool_trace(write(name, "\n".join([header, *lines]) + "\n"), site, **options)

    return read


def same(one, other) -> bool:
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one)
    )


# The site


def test_pools_are_in_the_order_of_their_first_node(site):
    assert site.pools == ("B", "A")
    assert site.pool_of.tolist() == [0, 1, 0]
    assert site.nodes.names == ("b1", "a1", "b2")


def test_a_cluster_ignores_the_pools(write):
    assert read_nodes(write("nodes.csv", NODES)).names == ("b1", "a1", "b2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,cores,mem_gb\na,1,1\n", "line 1: column pool is missing; valid: name,cores,mem_gb,pool"),
        ("name,cores,mem_gb,pool\na,1,1,A+B\n", "line 2: pool is 'A[+]B'; valid: letters, digits"),
        ("name,cores,mem_gb,pool\na,1,1,\n", "line 2: pool is ''; valid: letters, digits"),
        (
            "name,cores,mem_gb,pool\n" + "".join(f"n{at},1,1,p{at}\n" for at in range(4097)),
            "4097 pools; valid: at most 4096",
        ),
    ],
)
def test_a_site_with_wrong_pools_is_refused(write, text, words):
    with pytest.raises(BadInput, match=words):
        read_site(write("nodes.csv", text))


# What is read


def test_the_columns_of_a_job(read, site):
    trace = read(
        "7,0,300,1,2,A,5,A+B,600,gcc",
        "8,10,20,2,0.5,,0,,,",
        "9,10,20,2,0.5,B,0,B,,gcc",
        header=LONG_HEADER,
    )
    assert trace.identity.tolist() == [7, 8, 9]
    assert trace.submit.tolist() == [0, 10, 10]
    assert trace.run.tolist() == [300, 20, 20]
    assert trace.cores.tolist() == [1, 2, 2]
    assert trace.memory.tolist() == [2048, 512, 512]
    assert trace.priority.tolist() == [5, 0, 0]
    assert [site.pools[at] if at != ANY_POOL else "" for at in trace.pool] == ["A", "", "B"]
    assert trace.allowed_sets[trace.allowed].tolist() == [[True, True], [True, True], [True, False]]
    assert trace.limit.tolist() == [600, 0, 0]
    assert [trace.programs[at] if at >= 0 else "" for at in trace.program] == ["gcc", "", "gcc"]
    assert (trace.ticks_per_s, trace.dropped) == (1, {})


def test_without_the_optional_columns_all_pools_are_allowed_and_nothing_is_known(read):
    trace = read("1,0,300,1,2,A,0")
    assert trace.allowed_sets[trace.allowed].tolist() == [[True, True]]
    assert (trace.limit.tolist(), trace.program.tolist(), trace.programs) == ([0], [-1], ())


def test_memory_has_no_minimum_and_is_rounded_up_to_mib(read):
    assert read("1,0,1,1,0,A,0", "2,0,1,1,0.0001,A,0", "3,0,1,1,2.337890625,A,0").memory.tolist() == [0, 1, 2394]


def test_jobs_are_in_submit_order_and_those_of_one_moment_in_that_of_the_file(write, site):
    name = write("t.csv", f"{HEADER}\n3,20,1,1,1,A,0\n2,5,1,1,1,A,0\n1,5,1,1,1,A,0\n")
    trace = read_pool_trace(name, site)
    assert trace.identity.tolist() == [2, 1, 3]
    assert trace.unsorted == 2


@pytest.mark.parametrize(
    ("times", "ticks_per_s", "ticks"),
    [
        ("5,7,9", 1, (5, 7, 9)),
        ("5.0,7.000,", 1, (5, 7, 0)),
        ("5.5,7,", 1000, (5500, 7000, 0)),
        ("5,7.001,", 1000, (5000, 7001, 0)),
        ("5,7,9.25", 1000, (5000, 7000, 9250)),
        ("5,0.0001,9", 1_000_000, (5_000_000, 100, 9_000_000)),
        ("3999999999.123457,1,", 1_000_000, (3_999_999_999_123_457, 1_000_000, 0)),
        ("0.1234567,1,", 1_000_000, (123_457, 1_000_000, 0)),
    ],
)
def test_a_tick_is_the_longest_unit_that_holds_all_times(read, times, ticks_per_s, ticks):
    trace = read(f"1,{times},1,1,A,0", header="job_id,submit_s,run_s,limit_s,cores,mem_gb,pool,priority")
    assert trace.ticks_per_s == ticks_per_s
    assert (trace.submit[0], trace.run[0], trace.limit[0]) == ticks


def test_the_load_factor_multiplies_submit_times_to_the_tick(read):
    lines = ("1,25,5,1,1,A,0", "2,50,5,1,1,A,0", "3,0,5,1,1,A,0")
    assert read(*lines, load_factor=0.58).submit.tolist() == [0, 15, 29]  # 14.5 s, half up
    assert read(*lines, "4,0.5,5,1,1,A,0", load_factor=0.58).submit.tolist() == [0, 290, 14_500, 29_000]
    assert read(*lines, load_factor=1 / 3).submit.tolist() == [0, 8, 17]


def test_jobs_that_a_load_factor_brings_together_are_in_the_order_of_the_file(read):
    assert read("1,100,5,1,1,A,0", "2,99,5,1,1,A,0", load_factor=0.001).identity.tolist() == [1, 2]


def test_jobs_that_no_node_of_their_pools_holds_are_dropped_and_counted(read):
    trace = read(
        "1,0,5,4,8,,0,",
        "2,0,5,3,1,A,0,",  # node a1 has 2 cores
        "3,0,5,3,1,,0,A",
        "4,0,5,4,9,,0,",  # of pool B one node has the cores, and the other one the memory
        "5,0,5,2,16,B,0,A+B",
        "6,0,5,1000000000000,1,,0,",
        "7,0,5,1,1000000000000,,0,",
        header=f"{HEADER},allowed_pools",
    )
    assert trace.identity.tolist() == [1, 5]
    assert trace.dropped == {"larger than any node of their pools": 5}


def test_only_so_many_jobs_from_the_beginning_are_read(read):
    lines = ("1,9,5,1,1,A,0", "2,8,5,1,1,A,0", "3,nonsense")
    assert read(*lines, limit=2).identity.tolist() == [2, 1]
    assert read(*lines, limit=1).identity.tolist() == [1]


def test_a_compressed_file_is_read_by_its_header(read):
    assert read("1,0,5,1,1,A,0", name="trace.gz").identity.tolist() == [1]


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_a_file_with_pools_is_told_by_its_header(write, name):
    assert has_pools(write(name, f"{HEADER}\n1,0,5,1,1,A,0\n"))
    assert not has_pools(write(name, "job_id,submit_s,run_s,cores,mem_gb\n1,0,5,1,1\n"))
    assert not has_pools("-")


# Both readers


ODD_LINES = {
    "blanks around cells": " 1 , 0 ,5, 1,1, A , 0 , A + B , 7 , gcc ",
    "exponents": "1e0,0,5e0,1.0,1,A,0,,,",
    "a number as its program": "1,0,5,1,1,,0,,,007",
    "fractions": "1,0.25,0.1,1,0.1,A,1000,,0.000001,x",
}


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES)
def test_the_strict_reader_reads_the_same(read, mocker, line):
    lines = ("3,1,5,1,1,B,0,B+A,,b", "2,2,5,1,1,,0,B,8,a", line)
    plain = read(*lines, header=LONG_HEADER)
    mocker.patch.object(CsvReader, "_plain", side_effect=NotPlain)
    assert same(read(*lines, header=LONG_HEADER), plain)


def test_programs_may_all_be_numbers(read):
    assert read("1,0,5,1,1,,0,,,007", "2,0,5,1,1,,0,,,7", header=LONG_HEADER).programs == ("007", "7")


def test_a_large_file_is_read_in_parts(read, mocker):
    lines = [f"{at},{at // 3},{1 + at % 7},1,1,{'AB '[at % 3].strip()},0,,,p{(7 * at) % 11}" for at in range(3000)]
    whole = read(*lines, header=LONG_HEADER)
    strict = mocker.patch.object(CsvReader, "_lines")
    mocker.patch("slurm_sns.sim.traces.files.PART_BYTES", 1000)
    assert same(read(*lines, header=LONG_HEADER), whole)
    assert read(*lines, header=LONG_HEADER, limit=1234).identity.tolist() == whole.identity[:1234].tolist()
    strict.assert_not_called()


# What is refused


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("2,0,5,1,1,C,0,,,", "line 3: pool is 'C'; valid: empty, or a pool of the nodes: B, A"),
        ("2,0,5,1,1,A,0,A+C,,", "line 3: allowed_pools is 'A[+]C'; valid: empty, or pools .* joined by '[+]': B, A"),
        ("2,0,5,1,1,A,0,A+,,", "line 3: allowed_pools is 'A[+]'"),
        ("2,0,5,1,1,A,0,B,,", "line 3: pool is 'A'; valid: one of its allowed_pools, B"),
        ("2,0,5,1,1,A,1001,,,", "line 3: priority is '1001'; valid: a number from 0 to 1000"),
        ("2,0,5,1,1,A,-1,,,", "line 3: priority is '-1'"),
        ("2,0,5,1,1,A,0.5,,,", "line 3: priority is '0.5'; valid: a whole number"),
        ("2,0,5,1,1,A,,,,", "line 3: priority is ''"),
        ("2,0,5,0,1,A,0,,,", "line 3: cores is '0'; valid: a number from 1"),
        ("2,0,0,1,1,A,0,,,", "line 3: run_s is '0'; valid: a number from 1e-06 to 4e[+]09"),
        ("2,0,4000000001,1,1,A,0,,,", "line 3: run_s is '4000000001'"),
        ("2,4000000001,5,1,1,A,0,,,", "line 3: submit_s is '4000000001'"),
        ("2,-1,5,1,1,A,0,,,", "line 3: submit_s is '-1'"),
        ("2,nan,5,1,1,A,0,,,", "line 3: submit_s is 'nan'"),
        ("2,inf,5,1,1,A,0,,,", "line 3: submit_s is 'inf'"),
        ("2,0,5,1,1,A,0,,0,", "line 3: limit_s is '0'"),
        ("2,0,5,1,1,A,0,,nan,", "line 3: limit_s is 'nan'"),
        ("2,0,5,1,-1,A,0,,,", "line 3: mem_gb is '-1'"),
        ("1,0,5,1,1,A,0,,,", "line 3: job_id is '1'; valid: each value once"),
        ("2,0,5,1,1,A,0,,", "line 3 has 9 fields; the header has 10"),
        ("2,0,5,1,1,A,0,,,,", "line 3 has 11 fields; the header has 10"),
        ("", None),
        ('2,0,5,1,1,"A",0,,,', "line 3 has a quoted field"),
    ],
)
def test_a_wrong_line_is_named_with_what_is_valid(read, line, words):
    lines = ("1,0,5,1,1,A,0,,,", line)
    if words is None:
        assert len(read(*lines, header=LONG_HEADER)) == 1
        return
    with pytest.raises(BadInput, match=words) as refused:
        read(*lines, header=LONG_HEADER)
    assert len(str(refused.value).splitlines()) == 1


def test_short_and_long_lines_do_not_make_up_for_each_other(read):
    with pytest.raises(BadInput, match="line 2 has 6 fields"):
        read("1,0,5,1,1,A", "2,0,5,1,1,A,0,9")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("job_id,submit_s,run_s,cores,mem_gb", "column pool is missing; valid: job_id,.*,priority and optionally"),
        (f"{HEADER},nodes", "column 'nodes' is unknown"),
        (f"{HEADER},pool", "a column is named twice"),
    ],
)
def test_a_wrong_header_is_refused(read, header, words):
    with pytest.raises(BadInput, match=words):
        read("1,0,5,1,1,A,0", header=header)


def test_a_file_without_jobs_is_refused(read):
    with pytest.raises(BadInput, match="there is no line after the header"):
        read()
    with pytest.raises(BadInput, match="no job can run on these nodes: 1 larger than any node of their pools"):
        read("1,0,5,9,1,A,0")


def test_a_load_factor_that_makes_times_too_long_is_refused(read):
    with pytest.raises(BadInput, match=r"with --load-factor 1000 jobs are submitted after 4e\+09 s; valid: less"):
        read("1,4000001,5,1,1,A,0", load_factor=1000.0)


def test_sets_of_allowed_pools_are_limited(read, mocker):
    mocker.patch.object(pool_trace, "MOST_SETS", 2)
    lines = [f"{at},0,5,1,1,,0,{each}" for at, each in enumerate(["A", "B", "B+A"])]
    with pytest.raises(BadInput, match="more than 2 different sets of allowed pools"):
        read(*lines, header=f"{HEADER},allowed_pools")


# SWF


SWF_FIELDS = ["job", "submit", "wait", "run", "used", "cpu", "memory", "requested", "limit", "memory_kb", "status"]
SWF_FIELDS += ["user", "group", "program", "queue", "partition", "before", "think"]
ONE_NODE = {"submit": 0, "run": 60, "requested": 2, "memory_kb": 1048576, "status": 1}


def swf(job: int, **fields: int) -> str:
    """A line of SWF: two processors for a minute unless something else is said; the rest is unknown."""
    values = {"job": job, **ONE_NODE, **fields}
    return " ".join(str(values.get(name, -1)) for name in SWF_FIELDS)


@pytest.fixture
def read_swf(write, site):
    def read_swf(*lines: str, **options):
        return read_pool_trace(write("t.swf", "\n".join(["; Version: 2.2", "", *lines]) + "\n"), site, **options)

    return read_swf


def test_swf_gives_pool_priority_program_and_limit_by_number(read_swf, site):
    trace = read_swf(
        swf(1, partition=2, queue=7, program=31, limit=3600), swf(2, submit=5), swf(3, submit=6, program=4, partition=1)
    )
    assert [site.pools[at] if at != ANY_POOL else "" for at in trace.pool] == ["A", "", "B"]
    assert trace.priority.tolist() == [7, 0, 0]
    assert [trace.programs[at] if at >= 0 else "" for at in trace.program] == ["31", "", "4"]
    assert trace.limit.tolist() == [3600, 0, 0]
    assert trace.allowed_sets[trace.allowed].all()
    assert trace.cores.tolist() == [2, 2, 2]
    assert trace.memory.tolist() == [2048, 2048, 2048]
    assert trace.ticks_per_s == 1


def test_swf_jobs_have_the_least_memory_and_run_time_of_the_project(read_swf):
    trace = read_swf(swf(1, run=0, memory_kb=-1), swf(2, run=0, requested=1, memory_kb=5))
    assert trace.memory.tolist() == [1024, 1024]
    assert trace.run.tolist() == [1, 1]


def test_swf_jobs_that_no_node_holds_or_of_unknown_size_are_dropped_and_counted(read_swf):
    trace = read_swf(swf(1), swf(2, requested=5), swf(3, run=-1), swf(4, requested=3, partition=2), swf(4, status=2))
    assert trace.identity.tolist() == [1]
    assert trace.dropped == {
        "larger than any node of their pools": 2,
        "unknown run time": 1,
        "partial execution": 1,
    }


def test_of_swf_only_so_many_lines_are_taken(read_swf):
    assert read_swf(swf(1, submit=9), swf(2), swf(3), limit=2).identity.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (swf(2, partition=3), "line 4: partition is 3; valid: 1 to 2, a place in the list of pools, or -1"),
        (swf(2, partition=0), "line 4: partition is 0"),
        (swf(2, queue=1001), "line 4: queue is 1001; valid: a priority up to 1000"),
        (swf(2, submit=5_000_000_000), "line 4: submit is 5000000000; valid: at most 4e[+]09"),
        (swf(2, run=5_000_000_000), "line 4: run time is 5000000000"),
        (swf(2, limit=5_000_000_000), "line 4: requested time is 5000000000"),
        ("1 2 3", "line 4 has 3 fields"),
    ],
)
def test_a_wrong_swf_line_is_named(read_swf, line, words):
    with pytest.raises(BadInput, match=words) as refused:
        read_swf(swf(1), line)
    assert len(str(refused.value).splitlines()) == 1
