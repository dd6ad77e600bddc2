"""Slurm's node lists as names, and names as a list. What was read is cached: each text is read once while it is there.

Every observation contains every job's lists again.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from sys import intern

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from slurm_sns.errors import SnsError

#: The largest cache, in names and characters of the texts: 100,000 different lists of a few nodes, or 10,000 of 1,600
#: nodes, which are 128 MB of references to names. The observation in use refers to the same tuples, so the cache adds
#: nothing to those. If it were smaller than one observation, each of its lists would be read again in every cycle.
MOST_TOTAL = 1 << 24
#: What an entry counts beside those: its own objects take as much memory as so many references.
OF_AN_ENTRY = 40
#: Slurm's own limit (hostlist.c).
MOST_IN_RANGE = 1 << 16
#: Most names of one list, and most steps to them: no cluster known to us has so many nodes.
MOST_NAMES = 1 << 17
#: So many numbers are the bits of one integer.
BLOCK = 1 << 10


class NodeLists:
    """Reads node lists with a cache; the least recently used texts leave it first. For one thread."""

    def __init__(self, most_total: int = MOST_TOTAL) -> None:
        self._most_total = most_total
        self._known: OrderedDict[str, tuple[str, ...] | SnsError] = OrderedDict()
        self._total = 0

    def names(self, text: str | None) -> tuple[str, ...]:
        """`c[1-3],s1` as names, each once.

        Raises:
            SnsError: the text is no node list.
        """
        if not text:
            return ()
        known = self._known.get(text)
        if known is None:
            try:
                known = unfolded(text)
            except SnsError as problem:  # remembered, too: the same text comes with every observation
                known = problem
            self._remember(text, known)
        else:
            self._known.move_to_end(text)
        if isinstance(known, SnsError):
            raise SnsError(str(known))
        return known

    def _remember(self, text: str, known: tuple[str, ...] | SnsError) -> None:
        self._known[text] = known
        self._total += _size(text, known)
        while self._total > self._most_total:
            self._total -= _size(*self._known.popitem(last=False))


def _size(text: str, known: tuple[str, ...] | SnsError) -> int:
    """The size of a cache entry: its names, the characters of its text, and what each entry counts."""
    return OF_AN_ENTRY + len(text) + (0 if isinstance(known, SnsError) else len(known))


def folded(nodes: Iterable[str]) -> str:
    """Node names as Slurm folds them: c[1-4]."""
    names = tuple(nodes)
    if len(names) < 2:  # as most rows of a long queue have it; ClusterShell would take 5 µs to say the same
        return "".join(names)
    return str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))


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
    budget = _Budget(text)
    for prefix, *rest in dict.fromkeys(_parts(text)):
        if not rest:
            found[prefix, 0, -1, ""] = 1
            continue
        *inner, last_ranges, suffix = rest
        prefixes = [prefix]
        for ranges, between in zip(inner[::2], inner[1::2], strict=True):
            numbers: dict[str, None] = {}
            for width, first, end in _ranges(text, ranges):
                budget.spend(end - first)
                numbers |= dict.fromkeys(f"{number:0{width}}" for number in range(first, end))
            budget.spend(len(prefixes) * len(numbers))
            prefixes = [f"{start}{number}{between}" for start in prefixes for number in numbers]
        for width, first, end in _ranges(text, last_ranges):
            blocks = range(first // BLOCK, (end - 1) // BLOCK + 1)
            budget.spend(len(prefixes) * len(blocks))
            for block in blocks:
                low, high = max(0, first - block * BLOCK), min(BLOCK, end - block * BLOCK)
                for start in prefixes:
                    key = start, width, block, suffix
                    found[key] = found.get(key, 0) | ((1 << (high - low)) - 1) << low
    if sum(bits.bit_count() for bits in found.values()) > MOST_NAMES:
        raise budget.exceeded()
    return tuple(dict.fromkeys(map(intern, _names(found))))


class _Budget:
    """Bounds the work for one text: a part `n[0-9999][7]` costs what stands before its last bracket, 10,000 names."""

    def __init__(self, text: str) -> None:
        self._text, self._left = text, MOST_NAMES

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise self.exceeded()

    def exceeded(self) -> SnsError:
        return _unreadable(self._text, f"more than {MOST_NAMES} names")


#: A name, in which brackets may stand for numbers; names are separated by commas or blanks.
_PART = re.compile(r"[^\[\], \t\n]*(?:\[[0-9,-]+\][^\[\], \t\n]*)*")
_SEPARATORS = re.compile(r"[, \t\n]*")
_BRACKETS = re.compile(r"[\[\]]")


def _parts(text: str) -> Iterator[tuple[str, ...]]:
    """The parts of a list, each split at its brackets: `n[0-1]x[2]` as n, 0-1, x, 2 and an empty text."""
    separators = _SEPARATORS.match(text)
    while separators is not None and separators.end() < len(text):
        part = _PART.match(text, separators.end())  # not search: that would scan the rest again for each character
        separators = _SEPARATORS.match(text, part.end()) if part is not None else None
        if part is None or separators is None or not part[0] or part.end() == separators.end() < len(text):
            raise _unreadable(text, "valid are names such as c1 and c[1-3,08-10]")
        yield tuple(_BRACKETS.split(part[0]))


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
                yield f"{prefix}{block * BLOCK + number:0{width}}{suffix}"


def _unreadable(text: str, why: str) -> SnsError:
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    return SnsError(f"Slurm answered with the node list {shown!r}, which cannot be read: {why}")
