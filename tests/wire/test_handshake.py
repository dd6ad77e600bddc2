"""The handshake: both sides end with the same session, and nobody without the key gets one."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.wire.handshake import NONCE_BYTES, AgentSide, NotAuthenticated, SchedulerSide, refusal
from slurm_sns.wire.keys import Keys, key_line
from slurm_sns.wire.messages import VERSION

OLD, NEW = key_line("old", b"o" * 32), key_line("new", b"n" * 32)


def sides(agent: str = OLD, scheduler: str = OLD, **versions: int) -> tuple[AgentSide, SchedulerSide]:
    return (
        AgentSide("c1", Keys.parse(agent), os.urandom(NONCE_BYTES), versions.get("of_agent", VERSION)),
        SchedulerSide(Keys.parse(scheduler), os.urandom(NONCE_BYTES), versions.get("of_scheduler", VERSION)),
    )


def changed(message: bytes, **fields: object) -> bytes:
    return json.dumps(json.loads(message) | fields, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("agent", "scheduler", "used"),
    [
        (OLD, OLD, "old"),
        (OLD, OLD + NEW, "old"),  # the new key is not on the node yet
        (OLD + NEW, NEW + OLD, "new"),  # it is promoted at the scheduler
        (NEW + OLD, OLD + NEW, "old"),  # or at the node
        (OLD + NEW, NEW, "new"),  # the old one is removed
    ],
)
def test_both_sides_agree_on_a_session_in_every_step_of_a_rotation(agent: str, scheduler: str, used: str) -> None:
    node, hub = sides(agent, scheduler)
    proof, ours = node.answer(hub.challenge(node.hello()))
    theirs = hub.session(proof)
    assert (ours.node, ours.key.name) == (theirs.node, theirs.key.name) == ("c1", used)
    assert (ours.sends, ours.receives) == (theirs.receives, theirs.sends)
    assert ours.sends != ours.receives
    assert ours.sends.hex() not in repr(ours)


def test_every_session_has_keys_of_its_own() -> None:
    node, hub = sides()
    _, first = node.answer(hub.challenge(node.hello()))
    other = SchedulerSide(Keys.parse(OLD), os.urandom(NONCE_BYTES))
    _, second = node.answer(other.challenge(node.hello()))
    assert len({first.sends, first.receives, second.sends, second.receives}) == 4


def test_a_recorded_proof_is_not_good_for_another_connection() -> None:
    node, hub = sides()
    recorded, _ = node.answer(hub.challenge(node.hello()))
    other = SchedulerSide(Keys.parse(OLD), os.urandom(NONCE_BYTES))
    other.challenge(node.hello())
    with pytest.raises(NotAuthenticated, match="the proof with the key old is wrong"):
        other.session(recorded)


def test_the_scheduler_s_own_proof_sent_back_to_it_is_not_the_agent_s() -> None:
    node, hub = sides()
    challenge = json.loads(hub.challenge(node.hello()))
    with pytest.raises(NotAuthenticated, match="is wrong"):
        hub.session(json.dumps({"v": VERSION, "kind": "proof", "proof": challenge["proof"]}).encode())


def test_neither_side_accepts_another_secret_under_the_same_name() -> None:
    node, hub = sides(OLD, key_line("old", b"x" * 32))
    challenge = hub.challenge(node.hello())
    with pytest.raises(NotAuthenticated, match="is wrong"):
        node.answer(challenge)
    _, forger = sides(OLD, OLD)
    proof, _ = node.answer(forger.challenge(node.hello()))
    with pytest.raises(NotAuthenticated, match="is wrong"):
        hub.session(proof)


@pytest.mark.parametrize("field", ["node", "nonce"])
def test_a_hello_that_is_changed_on_its_way_is_noticed(field: str) -> None:
    node, hub = sides()
    other = {"node": "c2", "nonce": "00" * NONCE_BYTES}[field]
    with pytest.raises(NotAuthenticated, match="is wrong"):
        node.answer(hub.challenge(changed(node.hello(), **{field: other})))


def test_a_scheduler_without_any_of_the_agent_s_keys_refuses_and_names_none_of_its_own() -> None:
    node, hub = sides(OLD, NEW)
    with pytest.raises(NotAuthenticated, match="none of the agent's keys is one of ours") as refused:
        hub.challenge(node.hello())
    assert "new" not in str(refused.value)


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_neighbouring_versions_meet(version: int) -> None:
    for versions in ({"of_agent": version}, {"of_scheduler": version}):
        node, hub = sides(**versions)
        proof, _ = node.answer(hub.challenge(node.hello()))
        assert hub.session(proof).node == "c1"


@pytest.mark.parametrize("version", [VERSION + 2, VERSION + 100, -1, "x", None])
def test_other_versions_are_refused_on_both_sides(version: int) -> None:
    node, hub = sides()
    hello = changed(node.hello(), v=version)
    with pytest.raises(NotAuthenticated, match=r"version .* of the channel; valid: 0 to 2"):
        hub.challenge(hello)
    with pytest.raises(NotAuthenticated, match=r"version .* of the channel; valid: 0 to 2"):
        node.answer(changed(hub.challenge(node.hello()), v=version))


def test_a_field_that_a_later_version_says_is_part_of_what_is_proved() -> None:
    node, hub = sides()
    with pytest.raises(NotAuthenticated, match="is wrong"):
        node.answer(hub.challenge(changed(node.hello(), later=1)))


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("node", "c1 c2", "node 'c1 c2': string should match"),
        ("node", 1, "node 1: input should be a valid string"),
        ("keys", ["k"] * 17, "keys a list: tuple should have at most 16 items"),
        ("keys", ["K"], "keys.0 'K': string should match"),
        ("keys", "old", "keys 'old': input should be a valid array"),
        ("nonce", "00" * 31, "nonce .*: string should match"),
        ("nonce", None, "nonce None: input should be a valid string"),
    ],
)
def test_a_hello_with_a_value_out_of_its_bounds_is_refused(field: str, value: object, problem: str) -> None:
    node, hub = sides()
    with pytest.raises(NotAuthenticated, match=f"a message 'hello': {problem}"):
        hub.challenge(changed(node.hello(), **{field: value}))


@pytest.mark.parametrize("field", ["key", "nonce", "proof"])
def test_a_challenge_with_a_value_out_of_its_bounds_is_refused(field: str) -> None:
    node, hub = sides()
    for value in ("x" * 65, "\x1b\0", 1, None):
        with pytest.raises(NotAuthenticated, match=f"a message 'challenge': {field} "):
            node.answer(changed(hub.challenge(node.hello()), **{field: value}))


def test_an_agent_is_told_why_it_is_refused_and_nothing_of_it_reaches_a_terminal() -> None:
    node, _ = sides()
    with pytest.raises(NotAuthenticated, match="it refuses: 'go away'"):
        node.answer(refusal("go away"))
    with pytest.raises(NotAuthenticated) as refused:
        node.answer(changed(refusal(""), why="\x1b[2J" * 1000))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


json_values = st.none() | st.booleans() | st.integers() | st.text(max_size=80) | st.lists(st.text(max_size=5))
fields = st.sampled_from(["v", "kind", "node", "keys", "nonce", "key", "proof", "why"])


@given(st.binary(max_size=100) | st.dictionaries(fields, json_values).map(lambda value: json.dumps(value).encode()))
def test_any_bytes_from_a_stranger_are_refused_in_one_line(data: bytes) -> None:
    node, hub = sides()
    for step in (hub.challenge, hub.session, node.answer):
        with pytest.raises(NotAuthenticated) as refused:
            step(data)
        assert str(refused.value).isprintable()


@given(fields, json_values)
def test_a_message_of_the_handshake_with_one_hostile_field_gives_no_session(field: str, value: object) -> None:
    node, hub = sides()
    hello = node.hello()
    if json.loads(hello).get(field) == value:
        return
    try:
        challenge = hub.challenge(changed(hello, **{field: value}))
    except NotAuthenticated:
        challenge = hub.challenge(hello)
        if json.loads(challenge).get(field) in (value, None):
            return
        challenge = changed(challenge, **{field: value})
    with pytest.raises(NotAuthenticated):
        node.answer(challenge)
