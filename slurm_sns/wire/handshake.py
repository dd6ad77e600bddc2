"""How scheduler and agent prove to each other that they have the same key, as bytes in and bytes out.

    agent      hello: its node, the names of its keys, a nonce
    scheduler  challenge: the name of one of these keys, a nonce of its own, a proof
    agent      a proof of its own

A proof is an HMAC-SHA256 with the key over all that was said and over who proves, so that no proof of one connection or
of one side is good for another. From the same text come two keys of the session, one for each direction. The
connection is authenticated and protected against changes; what is said on it is not secret.

Challenge and response with nonces of both sides: ISO/IEC 9798-4, mechanism 3. Derived keys: RFC 5869's expand step.
"""

import hmac
import json
from dataclasses import dataclass, field
from typing import Any

from slurm_sns.errors import SnsError
from slurm_sns.wire.keys import Key, Keys
from slurm_sns.wire.messages import (
    VERSION,
    BadMessage,
    is_neighbour,
    is_node_name,
    json_object,
    quoted,
    versions,
)

#: So many random bytes are never drawn twice.
NONCE_BYTES = 32
#: A hello with `keys.MOST_KEYS` names is half as long.
LONGEST_BYTES = 1024
_LONGEST_WHY = 200

_DOMAIN = b"slurm_sns channel\0"
_SCHEDULER_PROVES, _AGENT_PROVES = b"scheduler proves", b"agent proves"
_FROM_SCHEDULER, _FROM_AGENT = b"from scheduler", b"from agent"


class NotAuthenticated(SnsError):
    """The peer has not proved that it has the key, or its version is not understood. The text is one line."""


@dataclass(frozen=True, slots=True)
class Session:
    """What both sides agree on: the agent's node, the key they share, and the keys of the frames they send."""

    node: str
    key: Key
    sends: bytes = field(repr=False)
    receives: bytes = field(repr=False)


class AgentSide:
    """The agent's part; `nonce` is `NONCE_BYTES` new random bytes."""

    def __init__(self, node: str, keys: Keys, nonce: bytes, version: int = VERSION) -> None:
        self._node, self._keys = node, keys
        names = list(keys.names)
        self._hello = _said(version, "hello", node=node, keys=names, nonce=nonce.hex())
        self._version = version

    def hello(self) -> bytes:
        """The first message."""
        return self._hello

    def answer(self, challenge: bytes) -> tuple[bytes, Session]:
        """The answer to the scheduler's challenge, after which the session stands.

        Raises:
            NotAuthenticated: the scheduler refuses, or has not proved that it has the key.
        """
        said = _heard(challenge, "challenge")
        key, nonce = self._keys.named(_text_of(said, "key")), _nonce_of(said)
        if key is None:
            raise NotAuthenticated(f"it wants the key {quoted(said['key'])}; known: {', '.join(self._keys.names)}")
        text = _transcript(self._hello, key, nonce)
        _verify(key, _SCHEDULER_PROVES, text, said)
        proof = _said(self._version, "proof", proof=_derived(key, _AGENT_PROVES, text).hex())
        return proof, Session(
            self._node, key, sends=_derived(key, _FROM_AGENT, text), receives=_derived(key, _FROM_SCHEDULER, text)
        )


class SchedulerSide:
    """The scheduler's part; `nonce` is `NONCE_BYTES` new random bytes. `node` is known after `challenge`."""

    def __init__(self, keys: Keys, nonce: bytes, version: int = VERSION) -> None:
        self._keys, self._nonce, self._version = keys, nonce.hex(), version
        self._session: Session | None = None
        self._text = b""
        self.node = ""

    def challenge(self, hello: bytes) -> bytes:
        """The challenge for the agent that said this.

        Raises:
            NotAuthenticated: it is no hello, of no neighbouring version, or names no key that we have.
        """
        said = _heard(hello, "hello")
        node, names = said.get("node"), said.get("keys")
        if not is_node_name(node):
            raise NotAuthenticated(f"the node {quoted(node)}; valid: a node's name")
        self.node = str(node)
        _nonce_of(said)
        known = [key for key in self._keys.keys if isinstance(names, list) and key.name in names]
        if not known:
            raise NotAuthenticated("none of the agent's keys is one of ours; valid: the same key file on both sides")
        key, self._text = known[0], _transcript(hello, known[0], self._nonce)
        self._session = Session(
            self.node,
            key,
            sends=_derived(key, _FROM_SCHEDULER, self._text),
            receives=_derived(key, _FROM_AGENT, self._text),
        )
        proof = _derived(key, _SCHEDULER_PROVES, self._text).hex()
        return _said(self._version, "challenge", key=key.name, nonce=self._nonce, proof=proof)

    def session(self, proof: bytes) -> Session:
        """The session with the agent that proves so that it has the key.

        Raises:
            NotAuthenticated: it does not.
        """
        if self._session is None:
            raise NotAuthenticated("a proof before a hello")
        _verify(self._session.key, _AGENT_PROVES, self._text, _heard(proof, "proof"))
        return self._session


def refusal(why: str, version: int = VERSION) -> bytes:
    """What the scheduler says to an agent whose hello or proof it does not accept."""
    return _said(version, "refused", why=why[:_LONGEST_WHY])


def _said(version: int, kind: str, **more: Any) -> bytes:
    return json.dumps({"v": version, "kind": kind, **more}, separators=(",", ":")).encode()


def _heard(data: bytes, kind: str) -> dict[str, Any]:
    """What a peer said, of a neighbouring version and of the kind that is due now."""
    try:
        said = json_object(data)
    except BadMessage as problem:
        raise NotAuthenticated(str(problem)) from None
    if said.get("kind") == "refused":  # of any version: an old peer may say why
        why = quoted(said.get("why"), _LONGEST_WHY)
        raise NotAuthenticated(f"it refuses: {why}")
    if not is_neighbour(said.get("v")):
        raise NotAuthenticated(f"version {quoted(said.get('v'))} of the channel; valid: {versions()}")
    if said.get("kind") != kind:
        raise NotAuthenticated(f"a message {quoted(said.get('kind'))} where {kind!r} is due")
    return said


def _text_of(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str):
        raise NotAuthenticated(f"a message {said['kind']!r} without {name}")
    return value


def _nonce_of(said: dict[str, Any]) -> str:
    nonce = _text_of(said, "nonce")
    if len(nonce) != 2 * NONCE_BYTES:
        raise NotAuthenticated(f"a nonce of {len(nonce)} digits; valid: {2 * NONCE_BYTES}")
    return nonce


def _transcript(hello: bytes, key: Key, nonce: str) -> bytes:
    """All that was said before the proofs. What comes after the last NUL contains none, so this is unambiguous."""
    return hello + b"\0" + f"{key.name}:{nonce}".encode(errors="backslashreplace").replace(b"\0", b"?")


def _derived(key: Key, label: bytes, text: bytes) -> bytes:
    return hmac.digest(key.secret, _DOMAIN + label + b"\0" + text, "sha256")


def _verify(key: Key, label: bytes, text: bytes, said: dict[str, Any]) -> None:
    proof = _text_of(said, "proof").encode(errors="backslashreplace")
    if not hmac.compare_digest(_derived(key, label, text).hex().encode(), proof):
        raise NotAuthenticated(f"the proof with the key {key.name} is wrong; valid: the same key file on both sides")
