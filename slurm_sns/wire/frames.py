"""Frames: messages behind their length, sequence number and MAC; those of the handshake behind their length alone.

A frame is its length (4 bytes, big-endian), its sequence number (8 bytes), a MAC (32 bytes) and a message. The MAC is
an HMAC-SHA256 over all the rest with the session's key of that direction. So a frame that is forged, changed, repeated,
left out or out of order is noticed. Each of the two classes is one direction of one connection.
"""

import hmac
import struct

from slurm_sns.errors import SnsError
from slurm_sns.wire.messages import LONGEST_BYTES

_HEAD = struct.Struct(">IQ")  # length of the message, sequence number
_MAC_BYTES = 32
#: What stands before the message of a frame.
HEAD_BYTES = _HEAD.size + _MAC_BYTES

#: The length before a message of the handshake.
LENGTH = struct.Struct(">I")


class BadFrame(SnsError):
    """A frame that is too long, does not verify, or is not the one that is due; after it the connection is no good."""


class FrameWriter:
    """The frames that are sent with this key."""

    def __init__(self, key: bytes) -> None:
        self._key, self._next = key, 0

    def frame(self, message: bytes) -> tuple[bytes, bytes, bytes]:
        """The next frame, in three parts that follow each other."""
        head = _HEAD.pack(len(message), self._next)
        self._next += 1
        return head, _mac(self._key, head, message), message


class FrameReader:
    """The frames that are received with this key."""

    def __init__(self, key: bytes) -> None:
        self._key, self._next = key, 0

    def length(self, head: bytes) -> int:
        """How long the message is that follows these `HEAD_BYTES` bytes.

        Raises:
            BadFrame: longer than a message can be.
        """
        length, _ = _HEAD.unpack_from(head)
        if length > LONGEST_BYTES:
            raise BadFrame(f"a frame of {length} bytes; valid: at most {LONGEST_BYTES}")
        return int(length)

    def verify(self, head: bytes, message: bytes) -> None:
        """Accept the message that followed this head.

        Raises:
            BadFrame: it was not sent so with this key, or not as the next one.
        """
        said, mac = head[: _HEAD.size], head[_HEAD.size :]
        if not hmac.compare_digest(_mac(self._key, said, message), mac):
            raise BadFrame("a frame that does not verify")
        _, sequence = _HEAD.unpack(said)
        if sequence != self._next:
            raise BadFrame(f"frame {sequence} where {self._next} is due")
        self._next += 1


def _mac(key: bytes, head: bytes, message: bytes) -> bytes:
    return hmac.digest(key, head + message, "sha256")
