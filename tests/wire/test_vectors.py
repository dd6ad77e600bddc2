"""The test vectors of docs/develop/wire.md: our code makes these very bytes, as does what is written by that page."""

import base64
import hashlib
import hmac
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from slurm_sns.wire.frames import HEAD_BYTES, BadFrame, FrameReader, FrameWriter
from slurm_sns.wire.grants import BadGrant, token, verified
from slurm_sns.wire.handshake import AgentSide, NotAuthenticated, SchedulerSide
from slurm_sns.wire.keys import Keys, key_line
from slurm_sns.wire.messages import decode, encode
from slurm_sns.wire.values import Grant, RunId

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors.json").read_text())
SECRET = bytes.fromhex(VECTORS["key"]["secret"])
KEYS = Keys.parse(key_line(VECTORS["key"]["id"], SECRET))
SHAKE, FRAME = VECTORS["handshake"], VECTORS["frame"]


def sides() -> tuple[AgentSide, SchedulerSide]:
    return (
        AgentSide(SHAKE["node"], KEYS, bytes.fromhex(SHAKE["agent_nonce"])),
        SchedulerSide(KEYS, bytes.fromhex(SHAKE["scheduler_nonce"])),
    )


def grant(of: dict[str, Any]) -> Grant:
    return Grant(RunId(*of["run"]), tuple(of["nodes"]), of["ways"], of["gbps"], of["share"], of["alone"], of["samples"])


def altered(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_the_handshake_says_exactly_this() -> None:
    agent, scheduler = sides()
    assert agent.hello().decode() == SHAKE["hello"]
    assert scheduler.challenge(SHAKE["hello"].encode()).decode() == SHAKE["challenge"]
    proof, session = agent.answer(SHAKE["challenge"].encode())
    assert proof.decode() == SHAKE["proof"]
    theirs = scheduler.session(proof)
    assert (theirs.sends.hex(), theirs.receives.hex()) == (SHAKE["key_to_agent"], SHAKE["key_from_agent"])
    assert (session.receives, session.sends) == (theirs.sends, theirs.receives)


def test_a_proof_with_any_character_altered_is_refused() -> None:
    at = SHAKE["proof"].index('"proof":"') + len('"proof":"')
    for place in range(at, at + 64):
        _, scheduler = sides()
        scheduler.challenge(SHAKE["hello"].encode())
        with pytest.raises(NotAuthenticated):
            scheduler.session(altered(SHAKE["proof"].encode(), place))


def received(data: bytes) -> bytes:
    """What the agent's end of the connection reads from these bytes, its first frame."""
    _, session = sides()[0].answer(SHAKE["challenge"].encode())
    frames, head = FrameReader(session.receives), data[:HEAD_BYTES]
    message = data[HEAD_BYTES : HEAD_BYTES + frames.length(head)]
    frames.verify(head, message)
    return message


def test_the_frame_is_read_and_refused_with_any_byte_altered() -> None:
    frame = bytes.fromhex(FRAME["bytes"])
    assert received(frame).decode() == FRAME["message"]
    assert b"".join(FrameWriter(bytes.fromhex(SHAKE["key_to_agent"])).frame(FRAME["message"].encode())) == frame
    for place in range(len(frame)):
        with pytest.raises(BadFrame):
            received(altered(frame, place))


@pytest.mark.parametrize("message", VECTORS["messages"], ids=lambda message: json.loads(message)["kind"])
def test_each_kind_of_message_is_read_and_written_as_it_stands(message: str) -> None:
    assert encode(decode(message.encode())).decode() == message


def test_every_kind_has_a_vector() -> None:
    kinds = {json.loads(message)["kind"] for message in VECTORS["messages"]}
    assert kinds == {"welcome", "beat", "state", "report", "active", "change", "acknowledged"}


@pytest.mark.parametrize("of", VECTORS["grants"], ids=lambda of: of["token"][:20])
def test_a_token_is_exactly_this_and_refused_with_any_character_altered(of: dict[str, Any]) -> None:
    granted = grant(of)
    assert token(granted, KEYS) == of["token"]
    assert verified(of["token"], KEYS, granted.run, granted.nodes[0], granted.nodes) == granted
    for place in range(len(of["token"])):
        with pytest.raises(BadGrant):
            verified(altered(of["token"].encode(), place).decode(), KEYS, granted.run, granted.nodes[0], granted.nodes)


# --- written from docs/develop/wire.md alone


def mac(secret: bytes, *parts: bytes) -> bytes:
    return hmac.new(secret, b"".join(parts), hashlib.sha256).digest()


def derived(label: bytes) -> bytes:
    challenge = json.loads(SHAKE["challenge"])
    said = SHAKE["hello"].encode() + b"\0" + f"{challenge['key']}:{challenge['nonce']}".encode()
    return mac(SECRET, b"slurm_sns channel\0", label, b"\0", said)


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_the_page_gives_the_same_proofs_and_keys() -> None:
    assert derived(b"scheduler proves").hex() == json.loads(SHAKE["challenge"])["proof"]
    assert derived(b"agent proves").hex() == json.loads(SHAKE["proof"])["proof"]
    assert derived(b"from scheduler").hex() == SHAKE["key_to_agent"]
    assert derived(b"from agent").hex() == SHAKE["key_from_agent"]


def test_the_page_gives_the_same_frame() -> None:
    message = FRAME["message"].encode()
    head = struct.pack(">IQ", len(message), FRAME["sequence"])
    assert (head + mac(bytes.fromhex(SHAKE["key_to_agent"]), head, message) + message).hex() == FRAME["bytes"]


@pytest.mark.parametrize("of", VECTORS["grants"], ids=lambda of: of["token"][:20])
def test_the_page_gives_the_same_tokens(of: dict[str, Any]) -> None:
    nodes = base64url(hashlib.sha256("\n".join(sorted(of["nodes"])).encode()).digest())
    flags = "a" * of["alone"] + "s" * of["samples"] or "-"
    job, restarts = of["job"], of["run"][1]
    signed = f"1:{VECTORS['key']['id']}:{job}.{restarts}:{nodes}:{of['ways']}.{of['gbps']}:{of['share']}:{flags}"
    assert of["token"] == f"{signed}:{base64url(mac(SECRET, b'slurm_sns grant', bytes(1), signed.encode()))}"
