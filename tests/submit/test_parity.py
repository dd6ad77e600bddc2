"""Python and Lua give the same verdict, with the same record, the same gate and the same words, on every case."""

from dataclasses import fields, replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.submit.hints import KEYS
from slurm_sns.submit.judge import Manage, PassThrough, Refuse, judge
from slurm_sns.submit.messages import MESSAGES
from slurm_sns.submit.submission import UNPLACED, Submission
from slurm_sns.submit.table import FilterTable, NodeShape

BIG, SMALL = NodeShape(28, 28, 128000, 4), NodeShape(4, 8, 32768, 2)
TWINS = (NodeShape(14, 28, 128000, 1), NodeShape(28, 28, 128000, 1))
HOSTILE = (
    "",
    "\x01\x7f ~",
    "\x1b[31m",
    "\udcff\udcfe",
    "é" * 30,
    "%s%n%d",
    "%1",
    "]]--",
    "'\"\\",
    "{key}",
    "x" * 200,
    "a\nb\r",
    "$(id)",
)
HEURISTICS = ("first-fit", "best-fit-memory", "mix-fit")

TABLE = FilterTable(
    mode="enforce",
    partitions={
        "big": (BIG,),
        "mixed": (SMALL, BIG),
        "small": (SMALL,),
        "empty": (),
        "twins": TWINS,
        "od'd\udcff name": (SMALL,),
    },
    default_partition="mixed",
    heuristics=HEURISTICS,
    default_memory_per_cpu_mb=4500,
    heartbeat_path="/run/sns/heartbeat",
    heartbeat_timeout_s=10,
    kill_switch_path="/etc/slurm/sns/disabled",
)
TABLES = (
    TABLE,
    replace(TABLE, mode="advise", default_memory_per_cpu_mb=0),
    replace(TABLE, mode="observe"),
    replace(TABLE, default_partition="", heuristics=()),
    replace(TABLE, sharing=("small", "twins")),
    replace(TABLE, places_gpus=True, default_memory_per_cpu_mb=0),
)


def assert_same(lua_judge, job, table=TABLE, *, heartbeat_s=1000, killed=False):
    verdict = judge(job, table, 1000, heartbeat_s, killed)
    assert lua_judge.judge(job, table, 1000, heartbeat_s, killed) == verdict
    return verdict


VALUES = (
    *("0.9", "1", "0", "1.0", "1.000000000", "1.0000000000", "1.1", ".5", "5.", ".", "", "0.0", "0.000000001"),
    *("00.5", "0.90", "1e-1", "0x1p-1", "nan", "inf", "-0.5", "+0.5", " 0.5", "0.5 ", "0,5", "0.1234567891"),
    *("\u0660.\u0665", "64", "65", "1", "01", "6.0", "4\n"),  # Arabic digits
    *("600", "604800", "604801", "999999", "1000000", "0600", "600s", "9" * 400),
    *("mg", "a" * 64, "a" * 65, "a b", "../x", "A-Z_0+.", "mix-fit", "MIX-FIT", "mix", "yes", "no", "YES", "true"),
)  # fmt: skip


NO_HINTS = ("off", "fixed", "g", "free", "grant", "maxscale", "max_scale", "Alpha")


@pytest.mark.long
@pytest.mark.parametrize("key", [*KEYS, *NO_HINTS, *HOSTILE], ids=ascii)
def test_every_key_with_every_value_in_comment_and_option(lua_judge, key):
    for value in (*VALUES, *HOSTILE):
        for comment in (f"sns:{key}={value}", f"sns:{key}{value}", f"sns:program=a,{key}={value}", f"{key}={value}"):
            assert_same(lua_judge, Submission(comment=comment))
        assert_same(lua_judge, Submission(options=((key, value),)))
        both = Submission(comment="sns:alpha=0.5,exclusive", options=((key, value), ("reprofile", "")))
        assert_same(lua_judge, both)


LONG = ("sns:" + "," * 508, "sns:" + "," * 509, "sns:program=" + "a" * 600, "sns:" + "é" * 254, "sns:" + "é" * 255)


@pytest.mark.parametrize("comment", LONG, ids=len)
def test_long_comments(lua_judge, comment):
    assert_same(lua_judge, Submission(comment=comment))


@pytest.mark.parametrize("asked", [{}, {"min_nodes": 2, "max_nodes": 2}, {"distribution": "block"}], ids=str)
def test_fixed_geometry(lua_judge, asked):
    for hints in ("", "alpha=1", "program=a", "max-scale=1", "max-scale=2", "exclusive", "program=a,max-scale=1"):
        assert_same(lua_judge, Submission(comment=hints and "sns:" + hints, **asked))


@pytest.mark.parametrize("comment", ["a" * 1024, "a" * 1025, "é" * 512, "é" * 513])
def test_comments_that_slurm_takes_and_longer_ones(lua_judge, comment):
    for admin_comment in ("", "sns:2", "notes"):
        assert_same(lua_judge, Submission(comment=comment, admin_comment=admin_comment))


KINDS = tuple(NodeShape(28, 28, 128000 + number, 1) for number in range(501))


@pytest.mark.parametrize("first", [0, 1, 250])
def test_very_many_kinds_of_nodes(lua_judge, first):
    table = replace(TABLE, partitions={"mixed": KINDS[first:], "b": KINDS[:251]})
    for partition in ("", "mixed", "mixed,b", "b,mixed,b,mixed"):
        for asked in ({"num_tasks": 10**6}, {"num_tasks": 10**6, "max_nodes": 3}, {"min_mem_per_node": 0}):
            assert_same(lua_judge, Submission(partition=partition, **asked), table)


ODD_COMMENTS = ("sns:", "sns:,", "sns:off,", "sns:off=", "sns:off,alpha=1", "sns:alpha=1,alpha=1", "sns:exclusive=")


@pytest.mark.parametrize("text", [*ODD_COMMENTS, "SNS:off", " sns:off", "sns :off"])
def test_odd_comments(lua_judge, text):
    assert_same(lua_judge, Submission(comment=text))
    assert_same(lua_judge, Submission(admin_comment=text))


#: Begin times around now (1000), the first lease (60 s), and what a record can hold.
BEGINS = (999, 1000, 1001, 1059, 1060, 1061, 10**10, 10**11 - 1, 10**11, 2**53, 2**63 - 1)


def _one_field_jobs():
    texts = ("x", "sns:", "a;sns:2 g=5", "SNS:", "cpu:2", "cpu=2,gres/gpu:1", "cpu:2,,", "gres/gpu", "cpux")
    for field in fields(Submission):
        if field.name == "options" or isinstance(field.default, bool):
            continue
        kind = "text" if field.default == "" else "number"
        for value in texts if kind == "text" else (0, 1, 2, 300):
            yield {field.name: value}
    yield from ({"batch": False}, {"cron": True}, {"spread": True}, {"has_deadline": True})
    yield from ({"script_bytes": count} for count in (262144, 262145))
    yield from ({"begin_time": begin_s} for begin_s in BEGINS)
    yield from ({"tres_per_task": "cpu:1," * count} for count in (170, 171))


@pytest.mark.parametrize("asked", [*_one_field_jobs()], ids=ascii)
def test_each_field_by_itself(lua_judge, asked):
    for table in TABLES:
        assert_same(lua_judge, replace(Submission(), **asked), table)


GPUS = (
    *(
        "gpu",
        "gres/gpu:2",
        "gres:gpu:a:2",
        "gpu:a100_1g.5gb:3",
        "gpu:1g.5gb:2",
        "gpu:a",
        "gpu:a,gpu:b=2",
        "gpu=4",
        "gpu:4,",
    ),
    *("gpu:0", "gpu:01", "gpu:1k", "gpu:2:3", "gpu:", "gpu:a:", "gpu:a:b:1", "shard:1", "gpux", ",", "gpu:1,fpga:1"),
    *(
        "gpu:1,gpu:a:1",
        "gpu:a:1,gpu:1",
        "gpu:a:1,gpu:a:1",
        "gpu:1,gpu:1",
        "gpu:é:1",
        "gpu:\u0661",
        "gpu:a\n",
        "x/gpu:1",
    ),
    *(
        "gpu:" + "9" * 9,
        "gpu:" + "9" * 10,
        "gpu:a:" + "9" * 10,
        "gpu:" + "a" * 64,
        "gpu:" + "a" * 65 + ":1",
        "gpu:1,,gpu:a",
    ),
    *(",".join(f"gpu:a{each}:1" for each in range(count)) for count in (8, 9)),
    *("gpu:1" + "," * count for count in (1019, 1020)),
    *("gres/gres/gpu:1", "gres/", "gres:", "gpu:a=", "gpu=a", "gpu:-:1", "gpu:_.-1:2", "gpu:.a:2"),
)
GRES_FIELDS = ("tres_per_node", "tres_per_task", "tres_per_job", "tres_per_socket", "cpus_per_tres", "mem_per_tres")


@pytest.mark.parametrize("text", GPUS, ids=lambda text: ascii(text[:24]))
def test_gpus_are_read_alike(lua_judge, text):
    for table in (TABLE, TABLES[-1]):
        for field in GRES_FIELDS:
            assert_same(lua_judge, Submission(**{field: text}), table)
            assert_same(lua_judge, Submission(**{field: text}, has_gres_flags=True), table)
            for other in ("tres_per_node", "tres_per_task"):
                assert_same(
                    lua_judge, Submission(**{other: "cpu=2,gpu:1" if "task" in other else "gpu:1", field: text}), table
                )


@pytest.mark.parametrize("text", [*HOSTILE, "JS1:H4sI;", "note sns"], ids=ascii)
def test_gates_and_other_text_in_admin_comment(lua_judge, text):
    for table, begin_s in product((*TABLES, replace(TABLE, heartbeat_timeout_s=900)), (None, *BEGINS)):
        job = Submission(partition="big", admin_comment=text, begin_time=begin_s, comment="sns:alpha=.90,exclusive")
        assert_same(lua_judge, job, table)


def test_every_reason_has_a_job_of_its_own(lua_judge):
    seen = set()
    for asked in (*_one_field_jobs(), {"num_tasks": 4, "min_cpus": 1}):
        verdict = assert_same(lua_judge, replace(Submission(partition="big"), **asked))
        if isinstance(verdict, PassThrough):
            seen.add(verdict.reason)
    assert {reason for reason, _ in UNPLACED} - seen == set()


@pytest.mark.long
def test_geometries(lua_judge):
    said = set()
    memories = (
        (None, None),
        (None, 4500),
        (None, 0),
        (None, 128000),
        (2000, None),
        (131072, None),
        (0, None),
        (2**62, None),
        (None, 2**62),
    )
    for tasks, per_node, cpus, memory, (least, most) in product(
        (None, 1, 5, 28, 113), (None, 4, 30), (None, 1, 4, 29), memories, ((None, None), (1, 1), (2, 3), (5, None))
    ):
        for partition in ("big", "mixed", "small", "big,small", "empty,small", "twins", ""):
            job = Submission(
                partition=partition,
                num_tasks=tasks,
                ntasks_per_node=per_node,
                cpus_per_task=cpus,
                min_mem_per_node=memory[0],
                min_mem_per_cpu=memory[1],
                min_nodes=least,
                max_nodes=most,
            )
            verdict = assert_same(lua_judge, job)
            said.add(verdict.message.split(":")[1][:20] if isinstance(verdict, Refuse) else type(verdict))
    assert Manage in said
    geometry_texts = [name for name in MESSAGES if name.startswith(("task-", "node-", "job-"))]
    assert len(said) >= 1 + len(geometry_texts)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.mode)
@pytest.mark.parametrize("heartbeat_s", [None, 0, 989, 990, 1000, 1010, 1011, 10**14])
@pytest.mark.parametrize("killed", [True, False])
def test_kill_switch_heartbeat_and_mode(lua_judge, table, heartbeat_s, killed):
    for job in (Submission(), Submission(comment="sns:alpha=2"), Submission(num_tasks=1000)):
        assert_same(lua_judge, job, table, heartbeat_s=heartbeat_s, killed=killed)


PARTITIONS = (
    "",
    ",",
    "big",
    "big,small",
    "small,small",
    "small,twins",
    "small,big,small",
    "big,other",
    ",,big,",
    "Big",
    "od'd\udcff name",
    "__index",
    "big," * 256,
    "big," * 257,
)


@pytest.mark.parametrize("partition", [*PARTITIONS, *HOSTILE], ids=ascii)
def test_partitions(lua_judge, partition):
    for table in TABLES:
        for cpus in (1, 100):
            assert_same(lua_judge, Submission(partition=partition, cpus_per_task=cpus), table)


_any_bytes = st.binary(max_size=80).map(lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
_words = st.sampled_from([*VALUES, *HOSTILE, *KEYS, "off", "sns:", ",", "=", "sns:2 alpha=0.9"])
_text = st.one_of(_any_bytes, st.lists(_words, max_size=6).map("".join), st.just(""))
_comment = st.one_of(_text, _text.map(lambda text: "sns:" + text))
_number = st.one_of(st.none(), st.integers(0, 40), st.sampled_from([113, 60000, 2**31]))
_rare = st.one_of(*[st.just("")] * 6, _text)  # a job that uses many things says little
_rare_number = st.one_of(*[st.none()] * 6, st.integers(0, 3))
_GEOMETRY = {"num_tasks", "ntasks_per_node", "cpus_per_task", "min_cpus", "min_nodes", "max_nodes", "min_mem_per_cpu"}


def _strategy(field):
    by_name = {
        "batch": st.sampled_from([True, True, True, False]),
        "cron": st.sampled_from([False, False, False, True]),
        "spread": st.sampled_from([False, False, False, True]),
        "has_deadline": st.sampled_from([False, False, False, True]),
        "begin_time": st.sampled_from([None, None, 0, *BEGINS]),
        "spank_job_env_size": st.sampled_from([None, None, 0, 64, 65]),
        "options": st.lists(st.tuples(st.sampled_from([*KEYS, "x"]), st.one_of(_words, _text)), max_size=4).map(tuple),
        "comment": _comment,
        "partition": st.one_of(st.sampled_from(["big", "small", "mixed", "big,small", "empty"]), _rare),
        "min_mem_per_node": st.one_of(st.none(), st.integers(0, 140000)),
    }
    default = st.just(None) | _number if field.name in _GEOMETRY else _rare_number
    return by_name.get(field.name, _rare if field.default == "" else default)


_jobs = st.builds(Submission, **{field.name: _strategy(field) for field in fields(Submission)})


@pytest.mark.long
@settings(max_examples=600)
@given(job=_jobs, table=st.sampled_from(TABLES), heartbeat_s=st.sampled_from([1000, 1000, 1000, None, 5]))
def test_any_job(lua_judge, job, table, heartbeat_s):
    assert_same(lua_judge, job, table, heartbeat_s=heartbeat_s)
