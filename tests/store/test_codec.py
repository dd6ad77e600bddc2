"""A snapshot that was kept is the snapshot that was planned on."""

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.errors import SnsError
from slurm_sns.model import Alternative, Job, Node, Project, Resources, Snapshot
from slurm_sns.store import codec

amounts = st.integers(-(10**6), 10**9)
names = st.text(max_size=8)
floats = st.floats(allow_nan=False)
resources = st.builds(Resources, amounts, amounts, amounts, amounts)
alternatives = st.builds(
    Alternative,
    nodes=st.integers(1, 99),
    demand=resources,
    tasks_per_node=st.none() | st.integers(1, 99),
    scale=st.integers(1, 64),
    slowdown=floats,
    exclusive=st.booleans(),
)
jobs = st.builds(
    Job,
    id=st.integers(1, 2**32),
    submit_s=st.integers(0, 2**33),
    alternatives=st.lists(alternatives, max_size=3).map(tuple),
    order=st.lists(amounts, max_size=5).map(tuple),
    project=names,
    heuristic=st.none() | names,
    allowed=st.none() | st.frozensets(names, max_size=3),
    over_aged=st.booleans(),
    withholds=st.booleans(),
)
snapshots = st.builds(
    Snapshot,
    nodes=st.lists(st.builds(Node, names, resources, resources), max_size=4).map(tuple),
    waiting=st.lists(jobs, max_size=4).map(tuple),
    projects=st.dictionaries(names, st.builds(Project, floats, resources), max_size=3),
    unavailable=st.dictionaries(names, names, max_size=3),
)


@settings(deadline=None)
@given(snapshots)
def test_a_snapshot_comes_back_as_it_was(snapshot: Snapshot) -> None:
    assert codec.unpack(codec.pack(snapshot)) == snapshot


def test_a_snapshot_from_before_the_limit_of_withholding_is_read() -> None:
    value = json.loads(zlib.decompress(codec.pack(Snapshot((), (Job(1, 1, ()),)))))
    value["waiting"][0].pop()
    assert codec.unpack(packed(value)).waiting[0].withholds


def test_a_snapshot_of_a_large_queue_is_small() -> None:
    allowed = frozenset(f"n{number:04}" for number in range(1000))
    waiting = tuple(
        Job(number, number, (Alternative(1, Resources(4, 8000)),), (0, 0, 0, number), "physics", None, allowed)
        for number in range(10_000)
    )
    assert len(codec.pack(Snapshot((), waiting))) < 300_000


GOOD = codec.pack(Snapshot((Node("c1", Resources(1, 1), Resources(1, 1)),), ()))


def packed(value: object) -> bytes:
    return zlib.compress(json.dumps(value).encode())


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"garbage",
        GOOD[:-4],
        zlib.compress(b"\xff\xfe"),
        zlib.compress(b"{"),
        packed([]),
        packed(None),
        packed({}),
        packed({"version": 1}),
        packed({"version": 1, "nodes": [[]], "allowed": [], "waiting": [], "projects": {}, "unavailable": {}}),
        packed({"version": 1, "nodes": [], "allowed": [], "waiting": [[1]], "projects": {}, "unavailable": {}}),
        packed({"version": 1, "nodes": [], "allowed": [], "waiting": [], "projects": [], "unavailable": {}}),
    ],
)
def test_a_damaged_snapshot_is_an_error_of_ours(damaged: bytes) -> None:
    with pytest.raises(SnsError, match="a recorded snapshot cannot be read") as problem:
        codec.unpack(damaged)
    assert "\n" not in str(problem.value)


def test_a_snapshot_of_another_version_is_refused_and_not_guessed() -> None:
    with pytest.raises(SnsError, match="is of version 2; this is version 1"):
        codec.unpack(packed({"version": 2}))
