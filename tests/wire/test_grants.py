"""A grant's token: it survives, it cannot be changed, and it is worth nothing for anything else."""

import dataclasses
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurm_sns.task_ids import task_id
from slurm_sns.wire.grants import BadGrant, is_token, token, verified
from slurm_sns.wire.keys import Keys, key_line
from slurm_sns.wire.values import Grant, RunId

OLD = Keys.parse(key_line("old", b"o" * 32))
BOTH = Keys.parse(key_line("new", b"n" * 32) + key_line("old", b"o" * 32))
NEW = Keys.parse(key_line("new", b"n" * 32))

RUN = RunId(4711, 2)
NODES = ("c1", "c2")
GRANT = Grant(RUN, NODES, ways=4, bandwidth_gbps=60, cpu_share=0.75, has_nodes_alone=True, samples=True)

names = st.from_regex(r"[a-z][a-z0-9.-]{0,10}", fullmatch=True)
tasks = st.builds(task_id, st.integers(1, 2**32 - 1), st.integers(0, 2**32 - 2))
grants = st.builds(
    Grant,
    run=st.builds(RunId, st.integers(1, 2**32 - 1) | tasks, st.integers(0, 2**32 - 1)),
    nodes=st.lists(names, min_size=1, max_size=5, unique=True).map(tuple),
    ways=st.integers(0, 1024),
    bandwidth_gbps=st.integers(0, 100_000),
    cpu_share=st.floats(0, 1, exclude_min=True),
    has_nodes_alone=st.booleans(),
    samples=st.booleans(),
)


@given(grants)
@example(dataclasses.replace(GRANT, cpu_share=5e-324))
@example(dataclasses.replace(GRANT, cpu_share=2.2250738585072014e-308))
def test_every_grant_survives_as_one_word(grant: Grant) -> None:
    text = token(grant, BOTH)
    assert re.fullmatch(r"[A-Za-z0-9._:-]{1,199}", text)
    assert is_token(text)
    assert verified(text, BOTH, grant.run, grant.nodes[-1], grant.nodes) == grant


def test_its_size_does_not_grow_with_the_nodes() -> None:
    many = tuple(f"c{number}" for number in range(4096))
    assert len(token(dataclasses.replace(GRANT, nodes=many), OLD)) == len(token(GRANT, OLD)) < 200


def test_the_nodes_are_a_set_in_any_order() -> None:
    text = token(GRANT, OLD)
    assert verified(text, OLD, RUN, "c1", ("c2", "c1")).nodes == ("c2", "c1")


def test_the_first_key_signs_and_every_key_of_the_file_verifies() -> None:
    assert verified(token(GRANT, OLD), BOTH, RUN, "c1", NODES) == GRANT  # signed before the rotation
    assert verified(token(GRANT, BOTH), NEW, RUN, "c1", NODES) == GRANT  # and after it


@pytest.mark.parametrize(
    ("run", "node", "nodes", "problem"),
    [
        (RunId(4712, 2), "c1", NODES, "of another job: 4711, not 4712"),
        (RunId(4711, 3), "c1", NODES, "of another restart of the job: 2, not 3"),
        (RUN, "c1", ("c1",), "of other nodes than the job has"),
        (RUN, "c1", ("c1", "c2", "c3"), "of other nodes than the job has"),
        (RUN, "c1", ("c1,c2",), "of other nodes than the job has"),
        (RUN, "c3", NODES, "of other nodes than c3"),
        (RUN, "c1", ("c1\nc2",), "a node's name contains a line break"),
        (RUN, "c1", (), "of other nodes than the job has"),
    ],
)
def test_a_grant_of_something_else_is_none(run: RunId, node: str, nodes: tuple[str, ...], problem: str) -> None:
    with pytest.raises(BadGrant, match=re.escape(problem)):
        verified(token(GRANT, OLD), OLD, run, node, nodes)


def test_a_grant_of_an_arrays_task_names_the_task_and_leaves_it_to_the_agent_which_job_that_is() -> None:
    run = RunId(task_id(41, 7), 2)
    text = token(dataclasses.replace(GRANT, run=run), OLD)
    assert ":41_7.2:" in text
    assert verified(text, OLD, RUN, "c1", NODES).run == run
    with pytest.raises(BadGrant, match="of another restart"):
        verified(text, OLD, RunId(48, 0), "c1", NODES)
    with pytest.raises(BadGrant, match="of other nodes"):
        verified(text, OLD, RUN, "c1", ("c1",))


def test_a_grant_of_an_unknown_key_or_of_the_same_name_with_another_secret_is_none() -> None:
    with pytest.raises(BadGrant, match="signed with the key old; known: new"):
        verified(token(GRANT, OLD), NEW, RUN, "c1", NODES)
    with pytest.raises(BadGrant, match="does not verify with the key old"):
        verified(token(GRANT, OLD), Keys.parse(key_line("old", b"x" * 32)), RUN, "c1", NODES)


def test_another_version_is_said_to_be_one() -> None:
    with pytest.raises(BadGrant, match="of version 2; valid: 1"):
        verified("2" + token(GRANT, OLD)[1:], OLD, RUN, "c1", NODES)


@given(st.data())
def test_no_character_of_a_token_can_be_changed(data: st.DataObject) -> None:
    text = token(GRANT, OLD)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("aAbB019._:-").filter(lambda each: each != text[at]))
    with pytest.raises(BadGrant):
        verified(text[:at] + other + text[at + 1 :], OLD, RUN, "c1", NODES)


def test_a_number_moved_from_one_field_to_the_next_does_not_verify() -> None:
    text = token(dataclasses.replace(GRANT, ways=4, bandwidth_gbps=60), OLD)
    with pytest.raises(BadGrant, match="does not verify"):
        verified(text.replace(":4.60:", ":46.0:"), OLD, RUN, "c1", NODES)


@given(st.one_of(st.text(max_size=250), st.from_regex(r"1:old:[0-9.:a-z-]{0,120}", fullmatch=True)))
def test_any_other_text_is_refused_in_one_line_that_quotes_nothing_hostile(text: str) -> None:
    with pytest.raises(BadGrant) as refused:
        verified(text, OLD, RUN, "c1", NODES)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, math.nan, math.inf])
def test_a_share_out_of_range_is_not_signed(share: float) -> None:
    with pytest.raises(BadGrant, match="a share above 0 and at most 1"):
        token(dataclasses.replace(GRANT, cpu_share=share), OLD)


@pytest.mark.parametrize("wrong", [{"ways": -1}, {"ways": 10_000}, {"bandwidth_gbps": 1_000_000}])
def test_a_number_out_of_range_is_not_signed(wrong: dict) -> None:
    with pytest.raises(BadGrant, match="valid: at most 9999 ways and 999999 GB/s"):
        token(dataclasses.replace(GRANT, **wrong), OLD)


@pytest.mark.parametrize("text", ["", "1", "1:", ":x", "1:a b", "1:a=b", "1:é", "1:a\n", "x:1", "1:" + "a" * 198])
def test_what_has_not_the_form_of_a_token_is_none(text: str) -> None:
    assert not is_token(text)
