"""A policy's history is read back as it was stored; a history that cannot be read does no other harm."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.model import Seconds
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.scheduler.history import recall, remember
from slurm_sns.scheduler.ports import PolicyHistory


class Pace(StrEnum):
    SLOW = "slow"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class Turn:
    virtual_s: Seconds = 0
    pace: Pace = Pace.SLOW


@dataclass(frozen=True, slots=True)
class Backlog:
    of_jobs: Mapping[int, Turn] = field(default_factory=dict)
    passed: tuple[int, ...] = ()
    pools: frozenset[str] = frozenset()
    share: float = 1.0
    last: str | None = None


FORM = HistoryFormat(2, Backlog)
GOOD = Backlog({7: Turn(Fraction(1, 3)), 8: Turn(2.5, Pace.FAST)}, (1, 2), frozenset({"short"}), 0.25, "job 'ü'")

finite = st.floats(allow_nan=False, allow_infinity=False)
turns = st.builds(Turn, st.integers() | finite | st.fractions(), st.sampled_from(Pace))
histories = st.builds(
    Backlog,
    st.dictionaries(st.integers(0, 2**63), turns, max_size=4),
    st.lists(st.integers(), max_size=4).map(tuple),
    st.frozensets(st.text(st.characters(codec="utf-8")), max_size=3),
    finite,
    st.none() | st.text(st.characters(codec="utf-8")),
)


def never(line: str) -> None:
    raise AssertionError(line)


@given(histories)
def test_a_history_comes_back_as_it_was(history: Backlog) -> None:
    kept = remember("turns", FORM, history, never)
    assert (kept.policy, kept.version) == ("turns", 2)
    assert recall(kept, FORM, never) == history


@pytest.mark.parametrize("moment", [3, 3.0, Fraction(3), Fraction(10, 3)])
def test_a_moment_keeps_its_kind(moment: Seconds) -> None:
    back = recall(remember("turns", FORM, Backlog({1: Turn(moment)}), never), FORM, never)
    assert isinstance(back, Backlog)
    assert type(back.of_jobs[1].virtual_s) is type(moment)


def test_without_a_stored_history_nothing_is_recalled_or_logged() -> None:
    assert recall(None, FORM, never) is None


def test_a_history_of_another_version_is_dropped_and_said_in_one_line() -> None:
    log: list[str] = []
    assert recall(PolicyHistory("turns", 3, "{}"), FORM, log.append) is None
    assert log == [
        "the history of policy turns is of version 3, but the policy reads version 2: it starts without history"
    ]


TEXT = remember("turns", FORM, GOOD, never).text


def edited(**fields: object) -> str:
    (value,) = json.loads(TEXT)
    return json.dumps([{**value, **fields}])


def test_the_helper_that_edits_histories_leaves_them_readable() -> None:
    assert recall(PolicyHistory("turns", 2, edited()), FORM, never) == GOOD


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        TEXT[:-2],
        "null",
        "{}",
        "[]",
        "[null]",
        "[1]",
        "[[]]",
        '["\\ud800"]',
        "[" * 100_000,
        edited(share=float("nan")),
        edited(share=float("inf")),
        edited(share="0.25"),
        edited(share=None),
        edited(passed="12"),
        edited(passed=[1.5]),
        edited(of_jobs={"x": {"virtual_s": 1}}),
        edited(of_jobs={"1": {"virtual_s": "1/0"}}),
        edited(of_jobs={"1": {"pace": "medium"}}),
        edited(colour="green"),
        b"\xff\xfe",
        17,
    ],
)
def test_a_history_that_cannot_be_read_is_dropped_and_said_in_one_line(text) -> None:
    log: list[str] = []
    assert recall(PolicyHistory("turns", 2, text), FORM, log.append) is None
    (line,) = log
    assert line.startswith("the history of policy turns cannot be read (")
    assert line.endswith("): it starts without history")
    assert "\n" not in line
    assert len(line) < 300


@pytest.mark.parametrize("version", ["2", None, b"2", 2.5])
def test_a_version_that_we_have_never_written_is_another_one(version) -> None:
    log: list[str] = []
    assert recall(PolicyHistory("turns", version, TEXT), FORM, log.append) is None
    assert len(log) == 1


@pytest.mark.parametrize("history", ["text", Turn(), Backlog(share="x"), Backlog(passed=("x",))])
def test_a_history_of_another_type_costs_the_history_and_a_line(history: object) -> None:
    log: list[str] = []
    assert recall(remember("turns", FORM, history, log.append), FORM, never) is None
    assert len(log) == 1
    assert log[0].startswith("error: the history of policy turns cannot be stored: ")


def test_a_history_that_is_dropped_is_not_recalled() -> None:
    assert recall(remember("turns", FORM, None, never), FORM, never) is None
