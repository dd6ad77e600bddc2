"""What is learnt of programs is kept in the database: the same comes back, and a damaged row costs that row only."""

import json
import sqlite3
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from slurm_sns import typed_json
from slurm_sns.errors import Unreachable
from slurm_sns.model import Resources
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.spread_n_share.evidence import Estimate, Evidence, KnownEvidence
from slurm_sns.policies.spread_n_share.exploration import ExplorationStep
from slurm_sns.scheduler.learning.values import (
    FailedRuns,
    LearningChanges,
    LearningState,
    Learnt,
    RunOutcome,
    RunToLearn,
)
from slurm_sns.store.database import open_store
from slurm_sns.store.learning import StoredEvidence, report_of
from slurm_sns.store.schema import learnt_programs, run_reports, runs_to_learn_from
from slurm_sns.wire.messages import encode
from slurm_sns.wire.values import Point, RunId, RunReport

MG = ("mg", 16)
IPC = {2: Estimate(1, 0.8), 20: Estimate(3, 1.0, 0.01)}
EVIDENCE = Evidence(Estimate(2, 97.86, 0.5), IPC, {2: Estimate(1, 112.0), 20: Estimate()})
LEARNT = Learnt(
    KnownEvidence("mg", 16, {1: EVIDENCE}, {2: Evidence(Estimate(1, 50.0))}, 2, is_explored=True),
    1_790_000_000.25,
    {4: FailedRuns(2, 1_790_000_001.5)},
    1_790_000_002.0,
    77,
    (2001, 2002),
)
RUN = RunToLearn(
    RunId(7, 1),
    MG,
    2,
    ("c1", "c2"),
    Request(16, 1, 2, memory_per_cpu_mb=1000, alpha=0.9, max_scale=4, exclusive=True),
    (NodeType(Resources(28, 128_000, 20, 118, 15), 4),),
    ways=18,
    step=ExplorationStep(2, samples=True),
    user_id=2001,
    placed_s=1_790_000_003.5,
    outcome=RunOutcome.SUCCEEDED,
    ended_s=1_790_000_099.0,
    was_suspended=True,
)
REPORT = RunReport(RunId(7, 1), "c1", 1_790_000_098.0, 94.5, was_alone=True, points=(Point(2, 5.0, 0.8, None),))


def stored(url: str) -> StoredEvidence:
    return StoredEvidence(open_store(url))


def test_everything_comes_back_after_a_restart(url: str) -> None:
    other = replace(RUN, run=RunId(8), step=None)
    stored(url).save(LearningChanges({MG: LEARNT}, (), (RUN, other), (), (REPORT,)))
    state = LearningState({MG: LEARNT}, {RUN.run: RUN, other.run: other}, {RUN.run: {"c1": REPORT}})
    assert stored(url).load() == (state, ())


def test_evidence_and_the_run_that_it_comes_from_change_together(url: str, monkeypatch) -> None:
    learning = stored(url)
    learning.save(LearningChanges(runs=(RUN,), reports=(REPORT,)))
    before = learning.load()
    monkeypatch.setattr("slurm_sns.store.learning.delete", broken)
    with pytest.raises(Unreachable, match=r"what is learnt of programs cannot be .* the store: .*disk I/O error"):
        learning.save(LearningChanges({MG: LEARNT}, gone=(RUN.run,)))
    assert learning.load() == before
    monkeypatch.undo()
    learning.save(LearningChanges({MG: LEARNT}, gone=(RUN.run,)))
    assert learning.load() == (LearningState({MG: LEARNT}), ())


def broken(_table) -> None:
    raise OperationalError("DELETE", {}, sqlite3.OperationalError("disk I/O error"))


def test_a_row_is_replaced_and_forgotten_by_its_key(url: str) -> None:
    learning = stored(url)
    larger = ("mg", 32)
    both = {MG: LEARNT, larger: replace(LEARNT, known=replace(LEARNT.known, processes=32))}
    learning.save(LearningChanges(both, runs=(RUN,)))
    changed = replace(LEARNT, used_s=5.0, failures={})
    learning.save(LearningChanges({MG: changed}, (larger,), (replace(RUN, was_suspended=False),)))
    state, _ = learning.load()
    assert state.learnt == {MG: changed}
    assert not state.runs[RUN.run].was_suspended


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "[null]", '[{"colour": 2}]', '[{"known": 7}]', "[" * 100_000])
def test_a_row_that_cannot_be_read_is_left_out_and_said_and_written_anew_later(url: str, text: str) -> None:
    learning = stored(url)
    everything = LearningChanges({MG: LEARNT}, (), (RUN,), (), (REPORT,))
    learning.save(everything)
    with open_store(url).begin() as connection:
        for table in (learnt_programs, runs_to_learn_from, run_reports):
            connection.execute(table.update().values(content=text))
    state, damaged = learning.load()
    assert state == LearningState()
    assert [line.split(" cannot be read")[0] for line in damaged] == [
        "the store: what is learnt of 'mg' with 16 processes",
        "the store: the run of job 7",
        "the store: the report of job 7 from 'c1'",
    ]
    assert all(len(line) < 300 and line.isprintable() for line in damaged)
    learning.save(everything)
    assert learning.load()[1] == ()


def test_programs_that_differ_in_upper_and_lower_case_are_two(url: str) -> None:
    """Not by itself on MariaDB, where the second would be refused, with all that is learnt in the same cycle."""
    both = {MG: LEARNT, ("MG", 16): replace(LEARNT, used_s=7.0)}
    stored(url).save(LearningChanges(both))
    assert stored(url).load() == (LearningState(both), ())
    stored(url).save(LearningChanges(forgotten=(("MG", 16),)))
    assert stored(url).load() == (LearningState({MG: LEARNT}), ())


def test_a_store_that_cannot_be_read_is_said_in_one_line(url: str) -> None:
    learning = stored(url)
    with open_store(url).begin() as connection:
        learnt_programs.drop(connection)
    with pytest.raises(Unreachable, match="what is learnt of programs cannot be read"):
        learning.load()


ESTIMATES = st.builds(Estimate, st.integers(0, 10**6), st.floats(0, 1e9), st.floats(0, 1e12))
CURVES = st.dictionaries(st.integers(1, 64), ESTIMATES, max_size=5)
SCALES = st.dictionaries(st.integers(1, 64), st.builds(Evidence, ESTIMATES, CURVES, CURVES), max_size=4)


@settings(max_examples=50)
@given(
    st.builds(
        Learnt,
        st.builds(
            KnownEvidence,
            st.just("mg"),
            st.just(16),
            SCALES,
            st.none() | SCALES,
            st.integers(0, 10**6),
            is_explored=st.booleans(),
        ),
        st.floats(0, 1e12),
        st.dictionaries(st.integers(1, 64), st.builds(FailedRuns, st.integers(0, 99), st.floats(0, 1e12)), max_size=3),
        st.floats(0, 1e12),
        st.integers(0, 2**32),
        st.lists(st.integers(0, 2**32), max_size=5).map(tuple),
    )
)
def test_what_is_learnt_is_read_back_as_it_was_written(learnt: Learnt) -> None:
    assert typed_json.read(Learnt, typed_json.written(Learnt, learnt)) == learnt


def test_a_run_and_a_report_are_read_back_as_they_were_written() -> None:
    assert typed_json.read(RunToLearn, typed_json.written(RunToLearn, RUN)) == RUN
    assert report_of(encode(REPORT).decode()) == REPORT


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)
KNOWN_NAMES = ("program", "processes", "current", "renewal", "strange", "is_explored")
NAMES = ("known", "used_s", "failures", "renewed_s", "renewed_by", "users")
RUN_NAMES = ("run", "key", "scale", "nodes", "request", "types", "ways", "step", "placed_s", "outcome", "ended_s")


@pytest.mark.long
@settings(max_examples=200)
@given(st.data())
def test_any_content_is_read_or_is_a_value_error(data) -> None:
    (row,), (run,) = (json.loads(typed_json.written(type(each), each)) for each in (LEARNT, RUN))
    row["known"] |= data.draw(st.dictionaries(st.sampled_from(KNOWN_NAMES), JSON, max_size=2))
    row |= data.draw(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=2))
    run |= data.draw(st.dictionaries(st.sampled_from(RUN_NAMES), JSON, max_size=2))
    for read in (
        lambda: typed_json.read(Learnt, json.dumps([row])),
        lambda: typed_json.read(RunToLearn, json.dumps([run])),
        lambda: report_of(json.dumps(row)),
    ):
        with suppress(ValueError):
            assert read() is not None
