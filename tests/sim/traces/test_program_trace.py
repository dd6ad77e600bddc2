"""Traces of programs in the simulator: how they are read, how long their jobs run."""

import pytest

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.package_files import shared_path
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.progress.authors_model import AuthorsModel
from slurm_sns.sim.traces.nodes_csv import read_nodes
from slurm_sns.sim.traces.program_trace import TraceReader

PROGRAMS = {program.name: program for program in read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))}
HEADER = "job_id,submit_s,run_s,program,processes\n"
SWF = "1 0 -1 100 56 -1 -1 56 -1 -1 1 1 1 1 1 -1 -1 -1\n2 5 -1 50 3 -1 2097152 3 -1 -1 1 1 1 1 1 -1 -1 -1\n"


@pytest.fixture
def read(write):
    rows = "".join(f"n{at},28,128,20,118.26\n" for at in range(8))
    pool = read_nodes(write("nodes.csv", "name,cores,mem_gb,ways,bandwidth_gbps\n" + rows))

    def read(text, policy="sns", name="trace.csv", **options):
        return TraceReader(pool, policy, PROGRAMS, REPRODUCTION).read(write(name, text), **options)

    return read


def ways(trace) -> list[list[tuple[int, int, int]]]:
    return [[(way.scale, way.nodes, way.demand.cores) for way in each.job.alternatives] for each in trace.trace.jobs]


def test_each_policy_gives_a_job_its_own_alternatives(read):
    text = HEADER + "1,0,97.86,mg,16\n2,0,419,gan,16\n"

    assert ways(read(text, "ce")) == [[(1, 1, 16)], [(1, 1, 16)]]
    assert ways(read(text, "cs")) == [[(1, 1, 16), (2, 2, 8), (4, 4, 4), (8, 8, 2)], [(1, 1, 16)]]
    assert ways(read(text, "sns")) == [[(8, 8, 2), (4, 4, 4), (2, 2, 8), (1, 1, 16)], [(1, 1, 16)]]
    assert ways(read(text, "combined")) == ways(read(text, "sns"))
    assert all(each.job.alternatives[0].exclusive for each in read(text, "ce").trace.jobs)


def test_the_trace_may_give_alpha_and_is_compressed_or_not(read):
    text = HEADER.strip() + ",alpha\n1,0,665,cg,16,0.6\n2,0,665,cg,16,\n"

    low, default = read(text, name="trace.csv.gz").trace.jobs

    assert [(way.scale, way.demand.ways) for way in low.job.alternatives] == [(2, 2), (4, 2), (1, 3), (8, 2)]
    assert [(way.scale, way.demand.ways) for way in default.job.alternatives] == [(2, 5), (4, 3), (1, 10)]


def test_jobs_of_unknown_programs_and_sizes_have_no_profile(read):
    trace = read(HEADER + "1,0,100,mg,16\n2,0,100,mine,16\n3,0,100,mg,17\n")

    assert trace.without_profile == 2
    assert ways(trace)[1:] == [[(1, 1, 16)], [(1, 1, 17)]]


def test_jobs_larger_than_the_cluster_are_dropped_and_counted(read):
    assert read(HEADER + "1,0,100,mine,16\n2,0,100,mine,225\n").trace.dropped == {"larger than any nodes": 1}


def test_times_are_scaled_limited_and_rounded_as_in_other_traces(read):
    trace = read(HEADER + "1,25,97.4,mg,16\n2,0,0.2,mg,16\n3,0,1,mg,16\n", load_factor=0.58, limit=2)

    assert [(each.job.id, each.job.submit_s) for each in trace.trace.jobs] == [(2, 0), (1, 15)]


def test_swf_jobs_have_no_profile_and_cs_spreads_them(read):
    assert ways(read(SWF, "sns", "trace.swf")) == [[(1, 2, 28)], [(1, 1, 3)]]
    assert ways(read(SWF, "ce", "trace.swf")) == [[(1, 2, 28)], [(1, 1, 3)]]
    cs = read(SWF, "cs", "trace.swf")
    assert ways(cs) == [[(1, 2, 28), (2, 4, 14), (4, 8, 7)], [(1, 1, 3)]]
    assert [way.demand.memory_mb for way in cs.trace.jobs[0].job.alternatives] == [1036, 518, 259]
    assert cs.without_profile == 2


def test_jobs_of_a_matching_trace_keep_their_own_geometry(read):
    text = "job_id,submit_s,run_s,cores,mem_gb,nodes\n1,0,60,4,2,2\n"

    for policy in ("cs", "sns", "combined"):
        assert read(text, policy).trace.jobs[0].job.alternatives == (Alternative(2, Resources(4, 2048)),)
    assert read(text, "ce").trace.jobs[0].job.alternatives[0].exclusive


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER + "1,0,100,mg,0\n", "line 2: processes is '0'; valid: a number from 1"),
        (HEADER + "1,0,100,mg,2.5\n", "line 2: processes is '2.5'; valid: a whole number"),
        (HEADER + "1,0,100,m g,16\n", "line 2: program is 'm g'; valid: 1 to 64 letters"),
        (HEADER + "1,0,100,,16\n", "line 2: program is ''"),
        (HEADER + "1,0,nan,mg,16\n", "line 2: run_s is 'nan'"),
        (HEADER + "1,0,1,mg,16\n1,0,1,mg,16\n", "line 3: job_id is '1'; valid: each value once"),
        (HEADER.strip() + ",alpha\n1,0,1,mg,16,1.5\n", "line 2: alpha is '1.5'; valid: empty, or a number above 0"),
        (HEADER.strip() + ",alpha\n1,0,1,mg,16,nan\n", "line 2: alpha is 'nan'"),
        (HEADER.strip() + ",cores\n1,0,1,mg,16,1\n", "line 1: column 'cores' is unknown; valid: job_id"),
        (HEADER + "1,0,100,mg,999\n", "no job can run on these nodes: 1 larger than any nodes"),
    ],
)
def test_an_unusable_line_is_named_with_what_is_valid(read, text, words):
    with pytest.raises(BadInput, match=words):
        read(text)


def test_a_trace_of_programs_is_none_for_matching(write, small_pool):
    from slurm_sns.sim.traces.read_trace import read_records

    with pytest.raises(BadInput, match="line 1: column"):
        read_records(write("trace.csv", HEADER + "1,0,100,mg,16\n"), small_pool).values()


# --- the authors' model of run times ---


def model(run_s=100.0, name="mg", processes=16) -> AuthorsModel:
    runs = PROGRAMS[name].at(processes) if name else {}
    return AuthorsModel({1: run_s}, {1: runs} if name else {}, REPRODUCTION)


def run_s(of: AuthorsModel, scale=1, ways=0, *, exclusive=False) -> int:
    way = Alternative(1, Resources(1, 1, ways), scale=scale, exclusive=exclusive)
    return of(Job(1, 0, (way,)), way)


def test_under_ce_a_job_runs_as_long_as_the_trace_says():
    assert run_s(model(97.86), exclusive=True) == 98


def test_spreading_and_fewer_ways_change_the_run_time_as_the_profile_says():
    mg = PROGRAMS["mg"].at(16)

    assert run_s(model(10_000), scale=2, ways=3) == round(10_000 * mg[2].time_s * 1.02 / mg[1].time_s / 0.9733)
    assert run_s(model(10_000), scale=1, ways=2) == 12_500  # 0.8 of its IPC
    assert run_s(model(10_000), scale=8, ways=20) == round(10_000 * mg[8].time_s * 1.15 / mg[1].time_s)


def test_all_ways_count_where_none_are_given_or_the_node_is_its_own():
    assert run_s(model(10_000), ways=0) == run_s(model(10_000), ways=2, exclusive=True) == 10_000


def test_a_scale_that_was_not_tried_counts_as_the_next_smaller():
    bw = PROGRAMS["bw"].at(16)

    assert run_s(model(10_000, "bw"), scale=3) == round(10_000 * bw[2].time_s * 1.02 / bw[1].time_s)


def test_a_job_without_profile_runs_as_long_as_the_trace_says_and_at_least_a_second():
    assert run_s(model(99.5, ""), scale=4) == 100
    assert run_s(model(0.1, "")) == 1
