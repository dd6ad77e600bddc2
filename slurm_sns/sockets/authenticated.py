"""A TCP connection between scheduler and agent after both have proved that they have the same key.

First come the three messages of the handshake (wire/handshake.py), then frames (wire/frames.py). A bad frame ends the
connection. What is said is not secret: anybody on the network can read it.
"""

import asyncio
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from slurm_sns.errors import SnsError
from slurm_sns.wire import handshake
from slurm_sns.wire.frames import HEAD_BYTES, LENGTH, BadFrame, FrameReader, FrameWriter
from slurm_sns.wire.handshake import AgentSide, NotAuthenticated, SchedulerSide, Session
from slurm_sns.wire.keys import Keys
from slurm_sns.wire.messages import LONGEST_BYTES, VERSION

#: How much the kernel's data may wait in this process for one connection; a stranger can fill twice as much.
BUFFER_BYTES = 16 * 1024
#: A peer that leaves so much unread is dropped. It gets the state of things anew when it connects again.
MOST_UNREAD_BYTES = 8 * LONGEST_BYTES

# The kernel's own check of a connection on which nothing is said; the beats of `Pace` find more than a dead host.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 60_000}


@dataclass(frozen=True, slots=True)
class Pace:
    """How long both sides wait, in seconds.

    `handshake_s`: until a peer has proved who it is. `beat_s`: between two signs of life. `silent_s`: without any the
    peer counts as gone; with `check_s`, how often that and the keys are looked at, this stays below 90 s. `resend_s`:
    until a report that is not acknowledged is sent again. `first_retry_s` and `last_retry_s`: the back-off.
    """

    handshake_s: float = 10.0
    beat_s: float = 25.0
    silent_s: float = 75.0
    check_s: float = 2.0
    resend_s: float = 60.0
    first_retry_s: float = 0.5
    last_retry_s: float = 10.0


class Broken(SnsError):
    """The connection is at its end; the text says why in one line. Empty: the peer closed it."""


class Connection:
    """An authenticated connection. One thread uses it: that of its event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: Session) -> None:
        self._reader, self._writer, self.session = reader, writer, session
        self._sends, self._receives = FrameWriter(session.sends), FrameReader(session.receives)

    def send(self, message: bytes) -> None:
        """Send a message; this never waits.

        Raises:
            Broken: the peer does not read, or is gone.
        """
        if self._writer.is_closing():
            raise Broken("")
        if self._writer.transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            raise Broken(f"it has left {MOST_UNREAD_BYTES} bytes unread")
        self._writer.writelines(self._sends.frame(message))

    async def drain(self) -> None:
        """Wait until most of what was sent has left this process."""
        await self._writer.drain()

    async def receive(self) -> bytes:
        """The next message.

        Raises:
            Broken: the connection ended, or a frame is not the one that is due.
        """
        head = await _exactly(self._reader, HEAD_BYTES)
        try:
            message = await _exactly(self._reader, self._receives.length(head))
            self._receives.verify(head, message)
        except BadFrame as problem:
            raise Broken(str(problem)) from None
        return message

    def close(self) -> None:
        """End the connection; what was sent may still arrive."""
        self._writer.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._writer.transport.abort()


async def introduce(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node: str, keys: Keys, version: int = VERSION
) -> Connection:
    """The agent's side of the handshake.

    Raises:
        NotAuthenticated: one of the two did not accept the other.
        Broken: the connection ended.
    """
    side = AgentSide(node, keys, os.urandom(handshake.NONCE_BYTES), version)
    _put(writer, side.hello())
    proof, session = side.answer(await _said(reader))
    _put(writer, proof)
    return Connection(reader, writer, session)


async def meet(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, keys: Keys, version: int = VERSION
) -> Connection:
    """The scheduler's side of the handshake; the agent is told why it is refused.

    Raises:
        NotAuthenticated: the agent was not accepted.
        Broken: the connection ended.
    """
    side = SchedulerSide(keys, os.urandom(handshake.NONCE_BYTES), version)
    try:
        _put(writer, side.challenge(await _said(reader)))
        return Connection(reader, writer, side.session(await _said(reader)))
    except NotAuthenticated as problem:
        _put(writer, handshake.refusal(str(problem), version))
        raise NotAuthenticated(f"{side.node or 'no agent'}: {problem}") from None


def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Let the kernel notice a peer whose host is gone, and send small messages at once."""
    connection: Any = writer.get_extra_info("socket")
    with suppress(OSError):  # it may have ended already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, value in _KEEPALIVE.items():
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _put(writer: asyncio.StreamWriter, message: bytes) -> None:
    writer.write(LENGTH.pack(len(message)) + message)


async def _said(reader: asyncio.StreamReader) -> bytes:
    (length,) = LENGTH.unpack(await _exactly(reader, LENGTH.size))
    if length > handshake.LONGEST_BYTES:
        raise NotAuthenticated(f"a first message of {length} bytes; valid: at most {handshake.LONGEST_BYTES}")
    return await _exactly(reader, length)


async def _exactly(reader: asyncio.StreamReader, count: int) -> bytes:
    try:
        return await reader.readexactly(count)
    except asyncio.IncompleteReadError as problem:
        raise Broken("a message that is cut" if problem.partial else "") from None
    except OSError as problem:
        raise Broken(problem.strerror or str(problem)) from None
