"""Slurm's node lists as names, and names as a list. What was read is cached: each text is read once while it is there.

Every observation contains every job's lists again.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from sys import intern

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from slurm_sns.errors import SnsError

#: Most texts in the cache: more than the jobs of a slurmctld (MaxJobCount is 10,000 unless set).
MOST_TEXTS = 1 << 14
#: Most names and characters of these texts in total: 10,000 jobs with lists of 1,600 nodes, 128 MB of references to
#: names. The observation in use refers to the same tuples, so the cache adds nothing to those.
MOST_TOTAL = 1 << 24
#: Slurm's own limit (hostlist.c).
MOST_IN_RANGE = 1 << 16
#: Most names of one list, and most brackets with what stands before them: no cluster known to us has so many nodes.
MOST_NAMES = 1 << 17


class NodeLists:
    """Reads node lists with a cache; the least recently used texts leave it first. For one thread."""

    def __init__(self, most_texts: int = MOST_TEXTS, most_total: int = MOST_TOTAL) -> None:
        self._most_texts = most_texts
        self._most_total = most_total
        self._known: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._total = 0

    def names(self, text: str | None) -> tuple[str, ...]:
        """`c[1-3],s1` as names, in Slurm's order.

        Raises:
            SnsError: the text is no node list. This answer is not cached.
        """
        if not text:
            return ()
        known = self._known.get(text)
        if known is None:
            known = unfolded(text)
            self._remember(text, known)
        else:
            self._known.move_to_end(text)
        return known

    def _remember(self, text: str, names: tuple[str, ...]) -> None:
        self._known[text] = names
        self._total += _size(text, names)
        while len(self._known) > self._most_texts or self._total > self._most_total:
            self._total -= _size(*self._known.popitem(last=False))


def _size(text: str, names: tuple[str, ...]) -> int:
    """The size of a cache entry: the number of its names and of the characters of its text."""
    return len(text) + len(names)


def folded(nodes: Iterable[str]) -> str:
    """Node names as Slurm folds them: c[1-4]."""
    return str(NodeSet.fromlist(nodes, resolver=RESOLVER_NOGROUP))


def unfolded(text: str) -> tuple[str, ...]:
    """The names in a list, each once, as slurmctld reads it.

    ClusterShell reads most lists so, but no adjacent brackets (`n[0-1][0-1]`), no digits between brackets, no blanks
    between parts, and no padding by the first number alone (`n[08-9]`). slurmctld keeps a list letter by letter
    as the job's owner writes it, so one such as `c[1-1000],c[1-999],...` may have as many parts as fit into a command
    line (128 KiB): numbers are bits of integers until the end, and a part costs a few microseconds.

    Raises:
        SnsError: it is no node list.
    """
    found: dict[tuple[str, int, int, str], int] = {}
    before = 0
    for prefix, *rest in _parts(text):
        if not rest:
            found[prefix, 0, -1, ""] = 1
            continue
        *inner, ranges, suffix = rest
        prefixes = [prefix]
        for each, between in zip(inner[::2], inner[1::2], strict=True):
            numbers = [
                f"{number:0{width}}" for width, first, last in _ranges(text, each) for number in range(first, last)
            ]
            before += len(prefixes) * len(numbers)
            if before > MOST_NAMES:
                raise _unreadable(text, f"more than {MOST_NAMES} names")
            prefixes = [f"{start}{number}{between}" for start in prefixes for number in numbers]
        for width, first, last in _ranges(text, ranges):
            for block in range(first >> 16, (last - 1 >> 16) + 1):
                low, high = max(0, first - (block << 16)), min(1 << 16, last - (block << 16))
                for start in prefixes:
                    key = start, width, block, suffix
                    found[key] = found.get(key, 0) | ((1 << (high - low)) - 1) << low
    if sum(bits.bit_count() for bits in found.values()) > MOST_NAMES:
        raise _unreadable(text, f"more than {MOST_NAMES} names")
    return tuple(dict.fromkeys(map(intern, _names(found))))


#: A name, in which brackets may stand for numbers; names are separated by commas or blanks.
_PART = re.compile(r"[^\[\], \t\n]*(?:\[[0-9,-]+\][^\[\], \t\n]*)*")
_SEPARATORS = re.compile(r"[, \t\n]*")
_BRACKETS = re.compile(r"[\[\]]")


def _parts(text: str) -> Iterator[list[str]]:
    """The parts of a list, each split at its brackets: `n[0-1]x[2]` as n, 0-1, x, 2 and an empty text."""
    separators = _SEPARATORS.match(text)
    while separators is not None and separators.end() < len(text):
        part = _PART.match(text, separators.end())  # not search: that would scan the rest again for each character
        separators = _SEPARATORS.match(text, part.end()) if part is not None else None
        if part is None or separators is None or not part[0] or part.end() == separators.end() < len(text):
            raise _unreadable(text, "valid are names such as c1 and c[1-3,08-10]")
        yield _BRACKETS.split(part[0])


def _ranges(text: str, numbers: str) -> Iterator[tuple[int, int, int]]:
    """`08-10,12` as ranges: the width that numbers are padded to or 0, the first number, and the one after the last."""
    for part in numbers.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and max(len(first), len(last)) <= len(str(1 << 63))):
            raise _unreadable(text, f"[{numbers[:40]}] has no numbers such as 1-3,5")
        low, end = int(first), int(last) + 1
        if not 0 < end - low <= MOST_IN_RANGE:
            raise _unreadable(text, f"{part} is no range of at most {MOST_IN_RANGE} numbers")
        if first.startswith("0") and len(first) > 1:
            padded_end = min(end, 10 ** (len(first) - 1))
            yield len(first), low, padded_end
            low = padded_end
        if low < end:
            yield 0, low, end


def _names(found: Mapping[tuple[str, int, int, str], int]) -> Iterator[str]:
    for (prefix, width, block, suffix), bits in found.items():
        if block < 0:  # a name without brackets
            yield prefix
            continue
        for run in re.finditer("1+", f"{bits:b}"[::-1]):
            for number in range(*run.span()):
                yield f"{prefix}{(block << 16) + number:0{width}}{suffix}"


def _unreadable(text: str, why: str) -> SnsError:
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    return SnsError(f"Slurm answered with the node list {shown!r}, which cannot be read: {why}")
