"""The record: our note in the `AdminComment` field of a Slurm job: `sns:2 program=mg fixed g=1764060000 r=1`.

Submit filter and scheduler write it by the RPC that makes the change, and an owner cannot write the field. The record
is one segment of the field's text: it begins with `sns:2` at the start of the text or after a blank, a newline or a
semicolon, and it ends before the next semicolon or newline. All other text of the field is kept.

The words of a segment stand in one canonical order: the hints, then what we changed in the job. A segment that begins
as ours and has any other form, or stands there twice, counts as `free=`: the job is Slurm's.

| word | meaning |
|---|---|
| `alpha=`, `program=`, `max-scale=`, `heuristic=`, `exclusive`, `reprofile` | the owner's hints |
| `restartable`, `restartable=600` | the same; with the seconds between two checkpoints |
| `fixed` | the owner's options fix the job's geometry |
| `g=` | the gate that was written last, in Unix seconds; it stays while the job is placed |
| `b=` | the owner's own begin time, in Unix seconds |
| `r=` | Slurm's restart count when the record was written; left out if it is 0 |
| `p=` | the owner's partitions, if we have added the others of their group; it stays, so that is done once |
| `n=`, `at=` | nodes and time of the placement; this and all below only while the job is placed |
| `t=`, `tg=` | tasks per node: the owner's (0: the owner says none), and those that we gave |
| `mo=`, `mg=` | memory in MiB: the owner's (`4000c` by CPU, `4000n` by node), and what we gave on each node |
| `w=`, `bw=` | the cache ways and the bandwidth (GB/s) that we gave as gres on each node |
| `l=`, `lg=` | time limits in seconds: the owner's, and the one that we gave to the running job |
| `free=` | why the job is Slurm's; then nothing of ours is on it |
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from slurm_sns.submit.hints import (
    FLAGS,
    NO_HINTS,
    PREFIX,
    RESTARTABLE,
    Hints,
    is_alpha,
    is_checkpoint,
    is_max_scale,
    is_program,
)

BEGIN = PREFIX + "2"

#: The most letters of a segment: the names of 4,000 nodes with 15 letters each. Slurm itself sets no limit, but every
#: bulk read contains the text.
MOST_LETTERS = 1 << 16
#: Numbers have at most so many digits: Unix seconds have ten until the year 2286, memory in MiB has fewer.
MOST_DIGITS = 11
#: The most letters of the reason in `free=`: enough for a few words, and no line of squeue is too long.
MOST_WHY = 64
#: `read` remembers so many segments, 65 MB: those of 100,000 jobs. With fewer than one look shows, each is read again.
MOST_KNOWN = 1 << 17

#: Why a job is Slurm's whose segment cannot be read.
UNREADABLE = "unreadable"

# All that begins as a segment of any version; trailing blanks are no part of it. Linear in the length of the text.
_SEGMENT = re.compile(r"(?:\A|(?<=[ \t\n;]))sns:[0-9](?:[^;\n]*[^;\n ])?")
# Between other text and a segment that is appended to it.
_SEPARATOR = ";"


class MemoryRequest(NamedTuple):
    """A job's request for memory in MiB, by CPU or by node; 0 by node asks for the whole memory of each node."""

    mb: int
    is_by_cpu: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """What we noted in the job itself; None, 0 or empty where the segment has no such word.

    Attributes:
        hints: the owner's hints, and `fixed`.
        gate_s: the gate that was written last.
        begin_s: the owner's own begin time.
        restarts: Slurm's restart count when the record was written.
        own_partitions: the owner's partitions if we have added others of their group; otherwise empty.
        nodes: the nodes of the placement; empty if the job is not placed.
        placed_s: when it was placed.
        tasks_per_node: the owner's tasks per node if the placement replaced them; 0 if the owner says none.
        given_tasks_per_node: those of the placement.
        own_memory: the owner's memory if the placement replaced it.
        given_memory_mb: the memory on each node that the placement gave.
        ways, bandwidth_gbps: the gres on each node that the placement gave.
        own_limit_s: the owner's time limit if we have moved it while the job ran.
        given_limit_s: the one that we gave.
        free_why: why the job is Slurm's; empty if it is ours.
    """

    hints: Hints = NO_HINTS
    gate_s: int | None = None
    begin_s: int | None = None
    restarts: int = 0
    own_partitions: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    placed_s: int | None = None
    tasks_per_node: int | None = None
    given_tasks_per_node: int | None = None
    own_memory: MemoryRequest | None = None
    given_memory_mb: int | None = None
    ways: int = 0
    bandwidth_gbps: int = 0
    own_limit_s: int | None = None
    given_limit_s: int | None = None
    free_why: str = ""

    @property
    def is_placed(self) -> bool:
        """Whether the record names a placement."""
        return bool(self.nodes)

    @property
    def is_slurms(self) -> bool:
        """Whether the job is Slurm's."""
        return bool(self.free_why)


def read(admin_comment: str) -> Record | None:
    """The record in the text of AdminComment; None if no segment of ours is in it. Raises nothing, whatever the text.

    A segment that cannot be read, or a second one, gives a record with nothing but `free_why`.
    """
    segments = _SEGMENT.findall(admin_comment) if PREFIX in admin_comment else []
    if not segments:
        return None
    return UNREADABLE_RECORD if len(segments) > 1 else _read_segment(segments[0])


def written(admin_comment: str, record: Record) -> str:
    """The text of AdminComment with this record; all text outside of our segment is kept.

    Further segments, which make the text unreadable, are removed. The values of `record` are valid; what is not would
    read as `free=`.
    """
    new = segment(record)
    first = _SEGMENT.search(admin_comment)
    if first is None:
        return admin_comment + _SEPARATOR + new if admin_comment else new
    return admin_comment[: first.start()] + new + _SEGMENT.sub("", admin_comment[first.end() :])


def others(admin_comment: str) -> str:
    """The text of AdminComment outside of our segments: what another program has written."""
    return _SEGMENT.sub("", admin_comment).strip(" \t\n;")


_DIGITS = rf"(?:0|[1-9][0-9]{{0,{MOST_DIGITS - 1}}})"
_NUMBER = re.compile(rf"{_DIGITS}\Z")
_MEMORY = re.compile(rf"{_DIGITS}[cn]\Z")
_NAMES = re.compile(r"[A-Za-z0-9_.-]+(?:,[A-Za-z0-9_.-]+)*\Z")
_WHY = re.compile(rf"[a-z0-9-]{{1,{MOST_WHY}}}\Z")
# A name that the configuration knew when the job was submitted; it may no longer know the name when it is read.
_HEURISTIC = re.compile(r"[a-z0-9-]{1,64}\Z")


class _Word(NamedTuple):
    """A word with a value: the field that it stands for, the grammar of its text, how that is read and written."""

    key: str
    field: str
    is_valid: Callable[[str], object] = _NUMBER.match
    read: Callable[[str], Any] = int
    write: Callable[[Any], str] = str


# In the canonical order. A word is left out where its field has the default.
_HINT_WORDS = (
    _Word("alpha", "alpha", is_alpha, float, lambda alpha: f"{alpha:.9f}".rstrip("0").rstrip(".")),
    _Word("program", "program", is_program, str),
    _Word("max-scale", "max_scale", is_max_scale),
    _Word("heuristic", "heuristic", _HEURISTIC.match, str),
)
# The words without a value, after the hints with one. A restartable job with checkpoints has a number there.
_FLAGS = (*FLAGS, "fixed")
_CHECKPOINT = _Word(RESTARTABLE, "checkpoint_s", is_checkpoint)
_WORDS = (
    _Word("g", "gate_s"),
    _Word("b", "begin_s"),
    _Word("r", "restarts"),
    _Word("p", "own_partitions", _NAMES.match, lambda text: tuple(text.split(",")), ",".join),
    _Word("n", "nodes", _NAMES.match, lambda text: tuple(text.split(",")), ",".join),
    _Word("at", "placed_s"),
    _Word("t", "tasks_per_node"),
    _Word("tg", "given_tasks_per_node"),
    _Word(
        "mo",
        "own_memory",
        _MEMORY.match,
        lambda text: MemoryRequest(int(text[:-1]), text.endswith("c")),
        lambda memory: f"{memory.mb}{'c' if memory.is_by_cpu else 'n'}",
    ),
    _Word("mg", "given_memory_mb"),
    _Word("w", "ways"),
    _Word("bw", "bandwidth_gbps"),
    _Word("l", "own_limit_s"),
    _Word("lg", "given_limit_s"),
    _Word("free", "free_why", _WHY.match, str),
)
_BY_KEY = {word.key: word for word in (*_HINT_WORDS, _CHECKPOINT, *_WORDS)}
_EMPTY = Record()


def segment(record: Record) -> str:
    """The segment of this record, in the one form that `read` accepts."""
    flags = [_flag(word, record.hints) for word in _FLAGS if getattr(record.hints, word)]
    words = (*_valued(_HINT_WORDS, record.hints, NO_HINTS), *flags, *_valued(_WORDS, record, _EMPTY))
    return " ".join((BEGIN, *words))


def _flag(word: str, hints: Hints) -> str:
    has_number = word == RESTARTABLE and hints.checkpoint_s is not None
    return f"{word}={hints.checkpoint_s}" if has_number else word


def _valued(words: Iterable[_Word], values: object, defaults: object) -> Iterator[str]:
    for word in words:
        value = getattr(values, word.field)
        if value != getattr(defaults, word.field):
            yield f"{word.key}={word.write(value)}"


def reason(text: str) -> str:
    """`text` as the value of `free=`: small letters, digits and hyphens, of limited length, never empty."""
    words = re.findall(r"[a-z0-9]+", text[: 4 * MOST_WHY].lower())
    return "-".join(words)[:MOST_WHY].strip("-") or "unknown"


#: What a segment reads as that is not in the one form.
UNREADABLE_RECORD = Record(free_why=UNREADABLE)


@lru_cache(maxsize=MOST_KNOWN)
def _read_segment(text: str) -> Record:
    if len(text) > MOST_LETTERS:
        return UNREADABLE_RECORD
    first, *words = text.split(" ")
    values = dict(word.split("=", 1) for word in words if "=" in word)
    if first != BEGIN or not all(key in _BY_KEY and _BY_KEY[key].is_valid(value) for key, value in values.items()):
        return UNREADABLE_RECORD
    told, noted = (
        {word.field: word.read(values[word.key]) for word in each if word.key in values}
        for each in ((*_HINT_WORDS, _CHECKPOINT), _WORDS)
    )
    told |= {flag: flag in words or flag in values for flag in _FLAGS}
    record = Record(hints=Hints(**told), **noted)
    # Order, duplicates, unknown words and leading zeros are decided here. What is placed has nodes, and what is Slurm's
    # has none.
    is_whole = segment(record) == text and _is_consistent(record)
    return record if is_whole else UNREADABLE_RECORD


def _is_consistent(record: Record) -> bool:
    """Whether the words that belong to a placement stand there together, and none without its nodes."""
    given = (
        record.tasks_per_node,
        record.given_tasks_per_node,
        record.own_memory,
        record.given_memory_mb,
        record.own_limit_s,
        record.given_limit_s,
    )
    if not record.is_placed:
        has_given = any(each is not None for each in given) or record.ways or record.bandwidth_gbps
        return record.placed_s is None and not has_given
    has_both = (record.tasks_per_node is None) == (record.given_tasks_per_node is None)
    has_both_memories = (record.own_memory is None) == (record.given_memory_mb is None)
    has_both_limits = (record.own_limit_s is None) == (record.given_limit_s is None)
    is_whole = has_both and has_both_memories and has_both_limits
    return record.placed_s is not None and is_whole and not record.is_slurms
