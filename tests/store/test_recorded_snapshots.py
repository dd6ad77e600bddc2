"""A snapshot that was kept is the snapshot that was planned on."""

import json
import zlib
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.errors import SnsError
from slurm_sns.model import (
    ActiveJob,
    ActiveState,
    Alternative,
    Job,
    JobPool,
    Node,
    Project,
    QueueStatistics,
    Resources,
    Seconds,
    Snapshot,
    gpus_of,
)
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.store.decisions import pack, unpack

amounts = st.integers(-(10**6), 10**9)
names = st.text(max_size=8)
floats = st.floats(allow_nan=False)
seconds = st.integers(0, 2**33) | floats | st.fractions()
resources = st.builds(Resources, amounts, amounts, amounts, amounts, amounts, st.sampled_from([(), gpus_of({"a": 2})]))
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
    submit_s=seconds,
    alternatives=st.lists(alternatives, max_size=3).map(tuple),
    order=st.lists(amounts, max_size=5).map(tuple),
    project=names,
    heuristic=st.none() | names,
    expected_run_s=st.none() | seconds,
    program=names,
    allowed=st.none() | st.frozensets(names, max_size=3),
    over_aged=st.booleans(),
    withholds=st.booleans(),
    pool=names,
    priority=st.integers(-(2**31), 2**32),
)
active = st.builds(
    ActiveJob,
    id=st.integers(1, 2**32),
    state=st.sampled_from(ActiveState),
    nodes=st.lists(names, max_size=3).map(tuple),
    demand=resources,
    since_s=seconds,
    submit_s=seconds,
    project=names,
    pool=names,
    priority=st.integers(-(2**31), 2**32),
    may_restart=st.booleans(),
    cpu_share=floats,
    virtual_s=seconds,
    in_storage=st.booleans(),
    expected_end_s=st.none() | seconds,
)
pools = st.builds(
    JobPool, names, st.lists(names, max_size=3).map(tuple), st.builds(QueueStatistics, st.integers(0), floats, floats)
)


@dataclass(frozen=True)
class Passes:
    of_jobs: dict[int, int]
    until_s: Seconds = 0


@dataclass(frozen=True)
class Moves:
    of_jobs: dict[int, int]


PASSES = HistoryFormat(1, Passes)
histories = st.builds(Passes, st.dictionaries(st.integers(0), st.integers(), max_size=3), st.fractions())
snapshots = st.builds(
    Snapshot,
    nodes=st.lists(st.builds(Node, names, resources, resources), max_size=4).map(tuple),
    waiting=st.lists(jobs, max_size=4).map(tuple),
    projects=st.dictionaries(names, st.builds(Project, floats, resources), max_size=3),
    unavailable=st.dictionaries(names, names, max_size=3),
    now_s=seconds,
    active=st.lists(active, max_size=3).map(tuple),
    pools=st.lists(pools, max_size=3).map(tuple),
    history=st.none() | histories,
    completing=st.lists(names, max_size=3).map(tuple),
)


@pytest.mark.long
@given(snapshots)
def test_a_snapshot_comes_back_as_it_was(snapshot: Snapshot) -> None:
    assert unpack(pack(snapshot, PASSES), PASSES) == snapshot


@pytest.mark.parametrize("moment", [3, 3.0, Fraction(3), Fraction(10, 3)])
def test_a_moment_keeps_its_kind(moment: Seconds) -> None:
    assert type(unpack(pack(Snapshot((), (), now_s=moment))).now_s) is type(moment)


WITH_HISTORY = Snapshot((), (), now_s=5, history=Passes({7: 2}, Fraction(1, 3)))


@pytest.mark.parametrize("form", [None, HistoryFormat(2, Passes), HistoryFormat(1, Moves)])
def test_the_history_of_another_policy_or_version_is_left_out(form: HistoryFormat | None) -> None:
    without = replace(WITH_HISTORY, history=None)
    assert unpack(pack(WITH_HISTORY, PASSES), form) == without
    assert unpack(pack(without, PASSES), form) == without


def test_a_damaged_history_costs_only_itself() -> None:
    value = json.loads(zlib.decompress(pack(WITH_HISTORY, PASSES)))
    value[0]["history"][2] = "garbage"
    assert unpack(packed(value), PASSES) == replace(WITH_HISTORY, history=None)


EXPECTED = Snapshot(
    (),
    (Job(1, 1, (), expected_run_s=60),),
    active=(ActiveJob(2, ActiveState.RUNNING, ("c1",), Resources(1, 1), 0, expected_end_s=90),),
    completing=("c2",),
)


def test_what_promises_are_made_from_is_kept_and_missing_in_an_older_row_it_is_unknown() -> None:
    assert unpack(pack(EXPECTED)) == EXPECTED
    value = json.loads(zlib.decompress(pack(EXPECTED)))
    kept = value[0]["snapshot"]
    del kept["completing"], kept["waiting"][0]["expected_run_s"], kept["active"][0]["expected_end_s"]
    older = unpack(packed(value))
    assert older == replace(
        EXPECTED,
        waiting=(replace(EXPECTED.waiting[0], expected_run_s=None),),
        active=(replace(EXPECTED.active[0], expected_end_s=None),),
        completing=(),
    )


def test_a_policy_without_a_form_has_its_history_left_out() -> None:
    assert unpack(pack(WITH_HISTORY), PASSES) == replace(WITH_HISTORY, history=None)


def test_what_is_no_value_of_a_snapshot_is_not_packed() -> None:
    with pytest.raises(ValueError, match="object"):
        pack(Snapshot((), (), now_s=object()))


def test_a_snapshot_of_a_large_queue_is_small() -> None:
    allowed = frozenset(f"n{number:04}" for number in range(1000))
    waiting = tuple(
        Job(number, number, (Alternative(1, Resources(4, 8000)),), (0, 0, 0, number), "physics", None, allowed)
        for number in range(10_000)
    )
    assert len(pack(Snapshot((), waiting))) < 300_000


GOOD = pack(Snapshot((Node("c1", Resources(1, 1), Resources(1, 1)),), ()))


def packed(value: object) -> bytes:
    return zlib.compress(json.dumps(value).encode())


(EMPTY,) = json.loads(zlib.decompress(pack(Snapshot((), (Job(1, 1, ()),)))))
SNAPSHOT = EMPTY["snapshot"]


def changed(**fields: object) -> bytes:
    return packed([{**EMPTY, "snapshot": {**SNAPSHOT, **fields}}])


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
        packed([{}]),
        packed([{**EMPTY, "version": 3}]),
        packed([{**EMPTY, "allowed": []}]),
        packed([{**EMPTY, "allowed_of": []}]),
        packed([{**EMPTY, "history": 5}]),
        changed(nodes=[[]]),
        changed(waiting=[[1]]),
        changed(projects=[]),
        changed(now_s="1/0"),
        changed(now_s=[1, 0]),
        changed(now_s="five"),
        changed(now_s=None),
        changed(active=[[1]]),
        changed(active=[{"id": 1, "state": "dancing", "nodes": [], "demand": [1, 1], "since_s": 0}]),
        changed(pools=[["short"]]),
        changed(colour="red"),
    ],
)
def test_a_damaged_snapshot_is_an_error_of_ours(damaged: bytes) -> None:
    with pytest.raises(SnsError, match="a recorded snapshot cannot be read") as problem:
        unpack(damaged, PASSES)
    assert "\n" not in str(problem.value)
