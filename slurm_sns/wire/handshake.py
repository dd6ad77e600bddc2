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
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter

from slurm_sns.errors import SnsError
from slurm_sns.wire.keys import MOST_KEYS, Key, Keys
from slurm_sns.wire.messages import VERSION, VERSIONS, BadMessage, is_neighbour, json_object, quoted, read_strictly
from slurm_sns.wire.values import Hex32, KeyName, NodeName

T = TypeVar("T")

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


@dataclass(frozen=True, slots=True)
class _Hello:
    node: NodeName
    keys: Annotated[tuple[KeyName, ...], Field(max_length=MOST_KEYS)]
    nonce: Hex32


@dataclass(frozen=True, slots=True)
class _Challenge:
    key: KeyName
    nonce: Hex32
    proof: Hex32


@dataclass(frozen=True, slots=True)
class _Proof:
    proof: Hex32


_HELLO, _CHALLENGE, _PROOF = TypeAdapter(_Hello), TypeAdapter(_Challenge), TypeAdapter(_Proof)


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
        said = _heard(challenge, "challenge", _CHALLENGE)
        key = self._keys.named(said.key)
        if key is None:
            raise NotAuthenticated(f"it wants the key {said.key!r}; known: {', '.join(self._keys.names)}")
        text = _transcript(self._hello, key, said.nonce)
        _verify(key, _SCHEDULER_PROVES, text, said.proof)
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
        said = _heard(hello, "hello", _HELLO)
        self.node = said.node
        known = [key for key in self._keys.keys if key.name in said.keys]
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
        _verify(self._session.key, _AGENT_PROVES, self._text, _heard(proof, "proof", _PROOF).proof)
        return self._session


def refusal(why: str, version: int = VERSION) -> bytes:
    """What the scheduler says to an agent whose hello or proof it does not accept."""
    return _said(version, "refused", why=why[:_LONGEST_WHY])


def _said(version: int, kind: str, **more: Any) -> bytes:
    return json.dumps({"v": version, "kind": kind, **more}, separators=(",", ":")).encode()


def _heard(data: bytes, kind: str, reader: TypeAdapter[T]) -> T:
    """What a peer said, of a neighbouring version and of the kind that is due now."""
    try:
        said = json_object(data)
        if said.get("kind") == "refused":  # of any version: an old peer may say why
            raise NotAuthenticated(f"it refuses: {quoted(said.get('why'), _LONGEST_WHY)}")
        if not is_neighbour(said.get("v")):
            raise NotAuthenticated(f"version {quoted(said.get('v'))} of the channel; valid: {VERSIONS}")
        if said.get("kind") != kind:
            raise NotAuthenticated(f"a message {quoted(said.get('kind'))} where {kind!r} is due")
        return read_strictly(reader, data, kind)
    except BadMessage as problem:
        raise NotAuthenticated(str(problem)) from None


def _transcript(hello: bytes, key: Key, nonce: str) -> bytes:
    """All that was said before the proofs. What comes after the last NUL contains none, so this is unambiguous."""
    return hello + b"\0" + f"{key.name}:{nonce}".encode()


def _derived(key: Key, label: bytes, text: bytes) -> bytes:
    return hmac.digest(key.secret, _DOMAIN + label + b"\0" + text, "sha256")


def _verify(key: Key, label: bytes, text: bytes, proof: str) -> None:
    if not hmac.compare_digest(_derived(key, label, text).hex(), proof):
        raise NotAuthenticated(f"the proof with the key {key.name} is wrong; valid: the same key file on both sides")
