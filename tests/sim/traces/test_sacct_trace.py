"""A dump of sacct as a trace: which jobs, of which size, where they may run, and what each bad line costs."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.coverage import sacct
from slurm_sns.errors import BadInput
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.traces.cluster_nodes import read_cluster
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.pool_trace import read_pool_trace
from slurm_sns.sim.traces.program_trace import TraceReader
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.traces.sacct_trace import EARLIER_RUN, WRONG_FIELDS, read_sacct
from slurm_sns.sim.traces.site_partitions import EVERYWHERE, SitePartitions
from slurm_sns.sim.traces.slurm_conf import SiteNode, node_arrays

SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared")) / "traces" / "sacct"
JOB = {
    "JobID": "7",
    "Submit": "2026-11-27T20:00:00",
    "Start": "2026-11-27T20:05:00",
    "State": "COMPLETED",
    "ElapsedRaw": "60",
    "NNodes": "1",
    "AllocCPUS": "2",
    "ReqMem": "4G",
}


def site_node(name: str, *, cores=4, memory_mb=16 << 10, features="", partitions="", cpus_per_core=1) -> SiteNode:
    words = (frozenset(filter(None, each.split(","))) for each in (features, partitions))
    return SiteNode(name, cores, memory_mb, 1, *words, has_gres=False, cpus_per_core=cpus_per_core)


POOL = tuple(map(site_node, "ABC"))


def dump(*jobs: dict[str, str], delimiter: str = "|", **same: str) -> str:
    """A dump in which jobs are like JOB but for some columns; each has the columns of all."""
    rows = [{**JOB, "JobID": str(7 + at), **same, **job} for at, job in enumerate(jobs or [{}])]
    header = list(dict.fromkeys(column for row in rows for column in row))
    lines = [header, *([row.get(column, "") for column in header] for row in rows)]
    return "".join(delimiter.join(line) + "\n" for line in lines)


def read(text: str | bytes, nodes=POOL, *, has_partitions=True, **options):
    stored = text if isinstance(text, bytes) else text.encode()
    partitions = SitePartitions(nodes) if has_partitions else EVERYWHERE
    return read_sacct(TraceFile("x.psv", stored), node_arrays(nodes), partitions, **options)


def only(text: str, **options):
    trace = read(text, **options)
    assert len(trace) == 1
    return trace.kinds[0][:3]


# --- which columns


@pytest.mark.parametrize("delimiter", ["|", "\t", ",", ";"])
def test_columns_are_found_by_name_whatever_stands_between_them(delimiter, write):
    text = dump({"Account": "a"}, delimiter=delimiter)
    backwards = "".join(delimiter.join(line.split(delimiter)[::-1]) + "\n" for line in text.splitlines())
    for each in (text, backwards, text.replace("\n", "\r\n"), "\ufeff\n" + text):
        trace = read_records(write("dump.psv.gz", each), node_arrays(POOL))
        assert (trace.identity.tolist(), trace.run.tolist(), trace.kinds) == ([7], [60], [(1, 2, 4096, "")])
        assert trace.projects == ["a"]


def test_a_dump_that_ends_each_line_with_the_delimiter_is_read():
    assert only("".join(line + "|\n" for line in dump().splitlines())) == (1, 2, 4096)


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ("JobID|ExitCode|State|MaxRSS|Elapsed", "Submit, NNodes, AllocCPUS, AllocTRES"),
        ("JobID|Submit|State|End|ReqTRES", "Start"),
    ],
)
def test_a_dump_without_needed_columns_is_refused_with_the_command(columns, missing):
    with pytest.raises(BadInput, match=f"not asked for {missing}; try: sacct") as raised:
        read(columns + "\n1|2|3|4|5\n")
    assert "\n" not in str(raised.value)


def test_time_limits_are_a_column_where_they_count():
    with pytest.raises(BadInput, match="not asked for TimelimitRaw"):
        read(dump(), user_estimates=True)
    limits = ["UNLIMITED", "Partition_Limit", "30", "1-00:00:00", ""]
    trace = read(dump(*({"Timelimit": each} for each in limits)), user_estimates=True)
    assert trace.limit.tolist() == [0, 0, 1800, 86400, 0]
    assert len(read(dump()).limit) == 0


def test_a_blank_line_before_the_header_is_no_line():
    assert only("  \n\f\n" + dump()) == only(dump())


def test_a_gres_of_nothing_is_none():
    assert len(read(dump({"AllocTRES": "cpu=2,gres/gpu=0,mem=2G,node=1"}))) == 1


def test_the_documented_command_makes_what_is_read():
    with pytest.raises(BadInput, match="it has none"):
        read("\t".join(sacct.COLUMNS) + "\n", user_estimates=True)


@pytest.mark.parametrize("text", ["JobID State\n----- -----\n7 COMPLETED\n", "JobID\n7\n", "7|a|b|c|COMPLETED\n"])
def test_a_table_and_a_dump_without_header_are_refused_with_the_command(text, write):
    with pytest.raises(BadInput, match="sacct -aPX") as raised:
        read_records(write("dump.txt", text), node_arrays(POOL))
    assert "\n" not in str(raised.value)


def test_a_site_of_pools_refuses_it(write):
    with pytest.raises(BadInput, match="no pools"):
        read_pool_trace(write("dump.psv", dump()), None)


# --- which jobs


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"JobID": "7.batch"}, "step of a job"),
        ({"JobID": "7_3.0"}, "step of a job"),
        ({"JobID": "7_[1-2%5]"}, "tasks of an array that never started"),
        ({"JobID": "7+0"}, "part of a heterogeneous job"),
        ({"JobID": "seven"}, "unknown job number"),
        ({"JobID": "7_99999999999999"}, "unknown job number"),
        ({"State": "RUNNING"}, "not ended"),
        ({"State": "PENDING", "Start": "Unknown"}, "not ended"),
        ({"State": "FOO"}, "unknown state"),
        ({"State": "CANCELLED by 1234", "ElapsedRaw": "0"}, "never started"),
        ({"State": "CANCELLED", "Start": "None"}, "never started"),
        ({"AllocCPUS": "0", "ReqCPUS": "4"}, "never started"),
        ({"ReqTRES": "cpu=2,gres/gpu=1,node=1"}, "generic resources (GPUs and others)"),
        ({"AllocTRES": "cpu=2,gres/gpu:a100=1"}, "generic resources (GPUs and others)"),
        ({"Submit": "Unknown"}, "unknown submit time"),
        ({"Submit": "yesterday"}, "unknown submit time"),
        ({"ElapsedRaw": "-5"}, "unknown run time"),
        ({"ElapsedRaw": "9" * 5000}, "unknown run time"),
        ({"NNodes": "x"}, "unknown size"),
        ({"AllocCPUS": "9" * 15}, "unknown size"),
        ({"AllocCPUS": "64"}, "larger than any nodes"),
        ({"ReqMem": "9" * 400}, None),
        ({"State": "CANCELLED by 1234"}, None),
        ({"State": "NODE_FAIL"}, None),
        ({"JobID": "7_3"}, None),
        ({"ReqTRES": "billing=2,cpu=2,license/matlab=1,node=1"}, None),
    ],
)
def test_what_cannot_be_replayed_is_dropped_by_its_reason(job, reason):
    trace = read(dump({"JobID": "1"}, job))
    assert dict(trace.dropped) == ({reason: 1} if reason else {})
    assert len(trace) == (1 if reason else 2)


def test_tasks_of_an_array_are_jobs_with_numbers_of_their_own():
    trace = read(dump({"JobID": "7"}, {"JobID": "7_0"}, {"JobID": "7_1"}))
    assert len(set(trace.identity.tolist())) == 3
    raw = read(dump({"JobID": "7_0", "JobIDRaw": "8"}, {"JobID": "7_1", "JobIDRaw": "7"}))
    assert raw.identity.tolist() == [8, 7]


def test_of_a_requeued_job_the_last_run_counts():
    runs = [
        {"JobID": "7", "State": "PREEMPTED", "ElapsedRaw": "10"},
        {"JobID": "8", "ElapsedRaw": "20"},
        {"JobID": "7", "ElapsedRaw": "30", "Submit": "2026-11-27T21:00:00"},
        {"JobID": "7", "State": "PENDING", "ElapsedRaw": "0"},
    ]
    trace = read(dump(*runs))
    assert trace.identity.tolist() == [8, 7]
    assert (trace.submit.tolist(), trace.run.tolist()) == ([0, 3600], [20, 30])
    assert trace.dropped == {EARLIER_RUN: 1, "not ended": 1}


def test_a_limit_counts_jobs_and_not_lines():
    jobs = [{"JobID": "1.batch"}, {"JobID": "2"}, {"JobID": "3"}, {"JobID": "4"}]
    assert read(dump(*jobs), limit=2).identity.tolist() == [2, 3]


# --- times and sizes


def test_submits_are_relative_to_the_first_one():
    local = [{"Submit": "2026-11-27T20:00:10"}, {"Submit": "2026-11-27T20:00:00"}]
    epoch = [{"Submit": "1795809610"}, {"Submit": "1795809600"}]
    for jobs in (local, epoch):
        trace = read(dump(*jobs))
        assert (trace.submit.tolist(), trace.identity.tolist(), trace.unsorted) == ([0, 10], [8, 7], 1)
    assert read(dump(*local), load_factor=0.5).submit.tolist() == [0, 5]


@pytest.mark.parametrize(
    ("job", "run_s"),
    [
        ({"ElapsedRaw": "", "Elapsed": "1-00:00:01"}, 86401),
        ({"ElapsedRaw": "0"}, 1),
        ({"ElapsedRaw": "", "Start": "2026-11-27T20:00:00", "End": "2026-11-27T20:01:30"}, 90),
    ],
)
def test_the_run_time_is_what_elapsed(job, run_s):
    assert read(dump(job)).run.tolist() == [run_s]


@pytest.mark.parametrize(
    ("job", "size"),
    [
        ({"NNodes": "2", "AllocCPUS": "5", "ReqMem": "5G"}, (2, 3, 2560)),
        ({"NNodes": "2", "AllocCPUS": "4", "ReqMem": "4000Mn"}, (2, 2, 4000)),
        ({"NNodes": "2", "AllocCPUS": "4", "ReqMem": "2Gc"}, (2, 2, 4096)),
        ({"NNodes": "2", "AllocCPUS": "4", "ReqMem": "3000Mc", "AllocTRES": "mem=3000M,node=2"}, (2, 2, 6000)),
        ({"ReqMem": "2G", "ReqTRES": "mem=3G", "AllocTRES": "cpu=9,mem=1.50T,node=3"}, "larger"),
        ({"ReqMem": "2G", "ReqTRES": "mem=3G"}, (1, 2, 3072)),
        ({"ReqMem": "0n"}, (1, 2, 1024)),
        ({"ReqMem": "0n", "AllocTRES": "cpu=2,mem=12G,node=1"}, (1, 2, 12_288)),
        ({"ReqMem": ""}, (1, 2, 1024)),
        ({"NNodes": "", "AllocCPUS": "", "ReqTRES": "billing=8,cpu=8,mem=8G,node=2"}, (2, 4, 4096)),
        ({"NNodes": "", "AllocCPUS": "", "ReqNodes": "2", "ReqCPUS": "8"}, (2, 4, 2048)),
        ({"NNodes": "", "AllocNodes": "3", "AllocCPUS": "3"}, (3, 1, 1366)),
        ({"NNodes": "1K", "AllocCPUS": "1K"}, "larger"),
    ],
)
def test_amounts_are_those_on_each_node(job, size):
    if size == "larger":
        with pytest.raises(BadInput, match="1 larger than any nodes"):
            read(dump(job))
    else:
        assert only(dump(job)) == size


def test_cpus_become_cores_by_the_threads_of_the_nodes():
    threads = (site_node("A", partitions="p", cpus_per_core=2), site_node("B", partitions="q"))
    assert only(dump({"AllocCPUS": "3", "Partition": "p"}), nodes=threads)[1] == 2
    assert only(dump({"AllocCPUS": "3", "Partition": "q"}), nodes=threads)[1] == 3
    assert only(dump({"AllocCPUS": "3"}), nodes=threads)[1] == 3, "the fewest of nodes that differ"


def test_priorities_are_kept():
    assert read(dump({"Priority": "5"}, {"Priority": ""})).priority.tolist() == [5, 0]


# --- where


SITE = (
    site_node("a1", features="ib,avx", partitions="main,debug"),
    site_node("a2", features="ib", partitions="main"),
    site_node("b1", features="opa", partitions="big"),
)


@pytest.mark.parametrize(
    ("job", "allowed"),
    [
        ({}, None),
        ({"Partition": "main"}, {"a1", "a2"}),
        ({"Partition": "main", "Constraints": "avx"}, {"a1"}),
        ({"Partition": "debug,big"}, {"a1", "b1"}),
        ({"Constraints": "avx|opa"}, {"a1", "b1"}),
        ({"Partition": "main,big", "Constraints": "(null)"}, None),
        ({"Partition": "gone"}, "partition of no node here"),
        ({"Partition": "main", "Constraints": "opa"}, "constraint that no node here meets"),
        ({"Constraints": "[ib|opa]"}, "constraint with counts or brackets"),
        ({"Partition": "debug", "NNodes": "2"}, "larger than any nodes"),
    ],
)
def test_partition_and_constraint_say_which_nodes_a_job_may_use(job, allowed):
    trace = read(dump({"JobID": "1"}, job, delimiter="\t"), nodes=SITE)
    if isinstance(allowed, str):
        assert (trace.identity.tolist(), trace.dropped) == ([1], {allowed: 1})
    else:
        sets = trace.allowed_nodes or [None] * len(trace.kinds)
        assert sets[trace.kind[1]] == (None if allowed is None else frozenset(allowed))


def test_on_nodes_without_partitions_and_features_jobs_may_run_everywhere():
    job = {"Partition": "main", "Constraints": "ib"}
    assert read(dump(job), has_partitions=False).allowed_nodes is None
    assert read(dump(job)).allowed_nodes is None


# --- what is no dump


def test_bad_lines_cost_themselves_only():
    good = dump(*({"JobID": str(number)} for number in range(1, 91))).splitlines()
    between = len(JOB) - 1
    bad = [
        "7|8",
        "|" * 40,
        "x" * 100_000,
        "\xff\xfe|" * between,
        "",
        "9|now|then" + "|" * (between - 2),
        '"|' * between,
    ]
    bad += ["a\rb|" * (between + 1)]
    trace = read("\n".join([good[0], *bad, *good[1:], "91|2026-11-27T20:00:00|COMPL"]).encode("latin-1"))
    assert len(trace) == 90
    assert trace.dropped == {WRONG_FIELDS: 5, "unknown job number": 2, "unknown state": 1}


@pytest.mark.parametrize("stored", [b"", b"\n\n", b"JobID|State\n\0\0\0", bytes(range(256)) * 9, b"JobID|Submit"])
def test_what_is_no_text_of_sacct_is_one_line(stored, tmp_path):
    (tmp_path / "dump").write_bytes(stored)
    with pytest.raises(BadInput) as raised:
        read_records(str(tmp_path / "dump"), node_arrays(POOL))
    assert "\n" not in str(raised.value)


@given(st.lists(st.lists(st.text(max_size=12), min_size=len(JOB), max_size=len(JOB)), max_size=8))
def test_whatever_the_cells_are_each_line_is_a_job_or_counted(rows):
    lines = ["|".join(row).replace("\n", " ").replace("\0", " ") for row in rows]
    trace = read("\n".join([*dump({"JobID": "1"}).splitlines(), *lines]) + "\n")
    assert len(trace) + sum(trace.dropped.values()) == 1 + sum(bool(line.strip("\r")) for line in lines)


def test_dumps_from_the_field_are_read_or_refused():
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there")
    nodes, all_columns = node_arrays(POOL), SHARED / "sacct-all-cols.txt"
    trace = read_records(str(all_columns), nodes)
    assert (trace.identity.tolist(), trace.kinds, trace.run.tolist()) == ([32650736], [(1, 1, 7996, "")], [3606])
    for path in sorted(SHARED.iterdir()):
        if path != all_columns:
            with pytest.raises(BadInput) as raised:
                read_records(str(path), nodes)
            assert "\n" not in str(raised.value)
            assert "README" in path.name or "sacct -aPX" in str(raised.value)


def test_alternatives_that_the_allowed_nodes_cannot_hold_are_no_alternatives(write):
    site = (site_node("a1", partitions="p"), *(site_node(f"b{at}", partitions="q") for at in range(4)))
    name = write("dump.psv", dump({"Partition": "p", "AllocCPUS": "4"}, {"Partition": "q", "AllocCPUS": "4"}))
    parameters = SpreadingParameters()
    reader = TraceReader(node_arrays(site), "cs", {}, parameters, partitions=SitePartitions(site))
    records = reader.read(name).records
    assert [[each.nodes for each in records.choices[kind]] for kind in records.kind] == [[1], [1, 2, 4]]


def test_a_pipe_gives_its_dump_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=[dump()])
    writer.start()
    reader = TraceReader(node_arrays(POOL), "ce", {}, SpreadingParameters())
    assert len(reader.read(str(pipe)).records) == 1
    writer.join()


def test_a_dump_and_a_slurm_conf_go_together(write):
    conf = write("slurm.conf", "NodeName=n[1-4] CPUs=8 RealMemory=16000\nPartitionName=p Nodes=n[1-2] Default=YES\n")
    nodes, partitions = read_cluster(conf)
    trace = read_records(write("dump.psv", dump({"Partition": "p"})), nodes, partitions=partitions)
    assert trace.allowed_nodes == [frozenset({"n1", "n2"})]
