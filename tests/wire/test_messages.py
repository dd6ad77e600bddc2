"""The messages of the channel: every value survives, neighbours understand each other, nothing else gets in."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.wire.messages import (
    LONGEST_BYTES,
    VERSION,
    BadMessage,
    Beat,
    UnknownKind,
    Welcome,
    decode,
    encode,
    is_neighbour,
)
from slurm_sns.wire.values import (
    LONGEST_TEXT,
    Acknowledged,
    ActiveRuns,
    ArrayTask,
    Change,
    JobThere,
    NodeFacts,
    NodeState,
    Point,
    RunId,
    RunReport,
)

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=50)
runs = st.builds(RunId, st.integers(1, 2**32 - 1), st.integers(0, 2**32 - 1))
array_tasks = st.builds(ArrayTask, st.integers(1, 2**32 - 1), st.integers(1, 2**32 - 1), st.integers(0, 2**32 - 2))
ways = st.integers(0, 1024)
gbps = st.integers(0, 1_000_000)
moments = st.floats(0, 1e11)
seconds = st.floats(0, 1e9)
cpu_counts = st.integers(0, 65_536)
shares = st.floats(0, 1, exclude_min=True)
core_counts = st.lists(st.integers(0, 65_536), max_size=4).map(tuple)
facts = st.builds(
    NodeFacts,
    node=names,
    software=texts,
    mode=st.sampled_from(["partition", "observe"]),
    ways=ways,
    jobs_with_ways=st.integers(0, 1_000_000),
    limits_bandwidth=st.booleans(),
    measures_ipc=st.booleans(),
    measures_bandwidth=st.booleans(),
    why_unpartitioned=texts,
    cores=core_counts,
)
flags = {name: st.booleans() for name in ("is_sampled", "is_found", "awaits_task", "is_confined")}
cpu_time = {"cpus": cpu_counts, "cpu_share": shares}
jobs = st.builds(
    JobThere, run=runs, ways=ways, bandwidth_gbps=gbps, why_shared=texts, cores=core_counts, **cpu_time, **flags
)
points = st.builds(
    Point,
    ways=ways,
    seconds=seconds,
    ipc=st.none() | st.floats(0, 1000),
    bandwidth_gbps=st.none() | st.floats(0, 1e6),
)
messages = st.one_of(
    st.builds(Welcome, software=texts),
    st.just(Beat()),
    st.builds(NodeState, at_s=moments, facts=facts, jobs=st.lists(jobs, max_size=4).map(tuple), trouble=texts),
    st.builds(
        RunReport,
        run=runs,
        node=names,
        ended_s=moments,
        ran_s=seconds,
        was_alone=st.booleans(),
        was_sampled=st.booleans(),
        is_whole=st.booleans(),
        points=st.lists(points, max_size=4).map(tuple),
    ),
    st.builds(ActiveRuns, st.frozensets(runs, max_size=5), st.frozensets(array_tasks, max_size=5)),
    st.builds(
        Change,
        run=runs,
        revision=st.integers(0, 2**63 - 1),
        ways=ways,
        bandwidth_gbps=gbps,
        samples=st.booleans(),
        **cpu_time,
    ),
    st.builds(Acknowledged, st.lists(st.tuples(st.integers(1, 99), st.integers(0, 9), names), max_size=5).map(tuple)),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)

STATE = NodeState(5.0, NodeFacts("c1", ways=11), (JobThere(RunId(7, 1), ways=4),))


def json_of(message: object) -> dict:
    return json.loads(encode(message))


def read(value: object) -> object:
    return decode(json.dumps(value).encode())


def problem_with(data: bytes) -> str:
    """Why it is a bad message; empty if it is none."""
    try:
        decode(data)
    except BadMessage as problem:
        return str(problem)
    return ""


@given(messages, st.sampled_from([VERSION - 1, VERSION, VERSION + 1]))
def test_every_value_survives_in_every_neighbouring_version(message: object, version: int) -> None:
    assert decode(encode(message, version)) == message


def fields_of(value: object) -> int:
    return len(dataclasses.fields(value))


@given(messages)
def test_no_field_of_a_value_is_forgotten(message: object) -> None:
    assert len(json_of(message)) == fields_of(message) + 2  # the version and the kind
    if isinstance(message, NodeState):
        assert len(json_of(message)["facts"]) == fields_of(message.facts)


@given(st.binary(max_size=200) | anything.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_message_or_a_bad_one(data: bytes) -> None:
    assert problem_with(data).isprintable()


@given(messages, st.data())
def test_a_message_with_anything_in_one_of_its_fields_is_read_or_a_bad_one(
    message: object, data: st.DataObject
) -> None:
    value = json_of(message)
    place = data.draw(st.sampled_from([inner for inner in (value, value.get("facts")) if inner]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(anything)
    problem = problem_with(json.dumps(value).encode())
    assert problem.isprintable()
    assert len(problem) < 300


@given(messages)
def test_fields_that_a_later_version_has_are_ignored(message: object) -> None:
    value = json_of(message) | {"v": VERSION + 1, "later": {"deep": [1]}}
    for inner in (value.get("facts"), *value.get("jobs", []), *value.get("points", [])):
        if inner is not None:
            inner["later"] = "x"
    assert read(value) == message


def test_a_field_that_an_older_version_did_not_have_gets_its_default() -> None:
    older = {"v": VERSION - 1, "kind": "state", "at_s": 5, "facts": {"node": "c1", "ways": 11}}
    assert read(older) == NodeState(5.0, NodeFacts("c1", ways=11))
    report = {"v": VERSION - 1, "kind": "report", "run": [7, 0], "node": "c1", "ended_s": 9, "ran_s": 4.5}
    assert read(report) == RunReport(RunId(7), "c1", 9.0, 4.5)


def test_a_version_that_shares_no_cpu_time_and_one_that_does_understand_each_other() -> None:
    told, there = json_of(Change(RunId(7), 3, ways=4, cpu_share=0.5, cpus=8)), json_of(STATE)
    del told["cpus"]
    assert read(told) == Change(RunId(7), 3, ways=4, cpu_share=0.5), "an older scheduler: nothing is shared"
    for field in ("cpus", "cpu_share", "is_confined"):
        del there["jobs"][0][field]
    assert read(there) == STATE, "an older agent: nothing is in force"


def test_a_kind_that_only_a_later_version_knows_is_told_apart_from_a_bad_message() -> None:
    with pytest.raises(UnknownKind, match="unknown kind 'evening'"):
        read({"v": VERSION + 1, "kind": "evening"})
    with pytest.raises(UnknownKind):
        read({"v": VERSION, "kind": ["state"]})


@pytest.mark.parametrize("version", [VERSION - 2, VERSION + 2, None, "1", 1.0, True, [1]])
def test_a_version_further_away_is_refused(version: object) -> None:
    assert not is_neighbour(version)
    with pytest.raises(BadMessage, match=r"of version .*; valid: 0 to 2"):
        read({"v": version, "kind": "beat"})


@pytest.mark.parametrize(
    ("kind", "field", "value", "problem"),
    [
        ("change", "cpu_share", 0, "cpu_share 0: input should be greater than 0"),
        ("change", "cpu_share", 1.5, "cpu_share 1.5: input should be less than or equal to 1"),
        ("change", "cpus", -1, "cpus -1: input should be greater than or equal to 0"),
        ("change", "cpus", 65_537, "cpus 65537: input should be less than or equal to 65536"),
        ("change", "ways", -1, "ways -1: input should be greater than or equal to 0"),
        ("change", "ways", 2.0, "ways 2.0: input should be a valid integer"),
        ("change", "ways", True, "ways True: input should be a valid integer"),
        ("change", "run", [7], r"run.1 a list: field required"),
        ("change", "run", [0, 0], r"run.0 0: input should be greater than or equal to 1"),
        ("change", "revision", 2**63, "input should be less than or equal to 9223372036854775807"),
        ("change", "samples", 1, "samples 1: input should be a valid boolean"),
        ("report", "node", "c1 c2", "node 'c1 c2': string should match pattern"),
        ("report", "ran_s", 10**400, "ran_s .*: input should be"),
        ("report", "points", [{"ways": 2}], "points.0.seconds an object: field required"),
        ("report", "points", [{"ways": 2, "seconds": 1}] * 257, "points a list: tuple should have at most 256 items"),
        ("state", "trouble", 5, "trouble 5: input should be a valid string"),
        ("state", "facts", [], "facts a list: input should be an object"),
    ],
)
def test_a_value_out_of_its_limits_is_a_bad_message_that_says_what_is_valid(
    kind: str, field: str, value: object, problem: str
) -> None:
    sent = {
        "change": Change(RunId(7), 1),
        "report": RunReport(RunId(7), "c1", 9.0, 4.5),
        "state": STATE,
    }[kind]
    assert read(json_of(sent)) == sent
    with pytest.raises(BadMessage, match=problem):
        read(json_of(sent) | {field: value})


@pytest.mark.parametrize(
    "data",
    [
        b'{"v":1,"kind":"report","run":[7,0],"node":"c1","ended_s":NaN,"ran_s":1}',
        b'{"v":1,"kind":"report","run":[7,0],"node":"c1","ended_s":Infinity,"ran_s":1}',
        b'{"v":1,"kind":"report","run":[7,0],"node":"c1","ended_s":1e999,"ran_s":1}',
        b'{"v":1,"kind":"report","run":[7,0],"node":"c1","ended_s":' + b"9" * 5000 + b',"ran_s":1}',
        b"[" * 100_000,
        b'{"v":1,"kind":"state"}',
        b"[]",
        b"",
        b"\xff\xfe",
        b'{"v":1,"kind":"beat","x":"' + b"a" * LONGEST_BYTES + b'"}',
    ],
)
def test_hostile_json_is_a_bad_message(data: bytes) -> None:
    with pytest.raises(BadMessage):
        decode(data)


def test_a_text_is_cut_and_made_printable() -> None:
    long = dataclasses.replace(STATE, trouble="x" * 10_000)
    assert decode(encode(long)).trouble == "x" * LONGEST_TEXT
    assert read(json_of(STATE) | {"trouble": "a\x1b[2Jb\nc"}).trouble == "a?[2Jb?c"
    assert decode(encode(dataclasses.replace(STATE, trouble="half a pair: \ud800"))).trouble == "half a pair: ?"
    with pytest.raises(BadMessage, match="no JSON"):
        read(json_of(STATE) | {"trouble": "half a pair: \ud800"})


def test_a_number_that_is_not_finite_is_not_sent() -> None:
    with pytest.raises(BadMessage, match="not finite"):
        encode(dataclasses.replace(STATE, at_s=math.nan))
    with pytest.raises(BadMessage, match="valid: at most"):
        encode(ActiveRuns(frozenset(RunId(number) for number in range(1, 200_000))))
