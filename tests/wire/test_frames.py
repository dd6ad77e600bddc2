"""Frames: one direction's messages arrive as they were sent, in their order, or a bad frame is noticed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.wire.frames import HEAD_BYTES, BadFrame, FrameReader, FrameWriter
from slurm_sns.wire.messages import LONGEST_BYTES

KEY = b"k" * 32


def read(reader: FrameReader, frame: bytes) -> bytes:
    """The message of a whole frame."""
    head = frame[:HEAD_BYTES]
    message = frame[HEAD_BYTES : HEAD_BYTES + reader.length(head)]
    reader.verify(head, message)
    return message


def frames(*messages: bytes, key: bytes = KEY) -> list[bytes]:
    writer = FrameWriter(key)
    return [b"".join(writer.frame(each)) for each in messages]


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_messages_arrive_as_they_were_sent(messages: list[bytes]) -> None:
    reader = FrameReader(KEY)
    assert [read(reader, each) for each in frames(*messages)] == messages


@pytest.mark.parametrize(
    ("order", "problem"),
    [((0, 0), "frame 0 where 1 is due"), ((1,), "frame 1 where 0 is due"), ((0, 2), "frame 2 where 1 is due")],
)
def test_a_frame_that_is_repeated_or_left_out_is_bad(order: tuple[int, ...], problem: str) -> None:
    reader, sent = FrameReader(KEY), frames(b"a", b"b", b"c")
    for at in order[:-1]:
        read(reader, sent[at])
    with pytest.raises(BadFrame, match=problem):
        read(reader, sent[order[-1]])


def test_a_frame_of_another_key_is_bad() -> None:
    with pytest.raises(BadFrame, match="does not verify"):
        read(FrameReader(KEY), frames(b"a", key=b"x" * 32)[0])


def test_the_longest_frame_is_read_and_a_longer_one_is_refused_by_its_head() -> None:
    longest, longer = frames(b"a" * LONGEST_BYTES, b"a" * (LONGEST_BYTES + 1))
    assert len(read(FrameReader(KEY), longest)) == LONGEST_BYTES
    with pytest.raises(BadFrame, match=rf"a frame of {LONGEST_BYTES + 1} bytes; valid: at most {LONGEST_BYTES}"):
        FrameReader(KEY).length(longer[:HEAD_BYTES])
