"""Slurm's node lists as names. The results are cached, so that each text is parsed once while it stays in the cache.

ClusterShell takes 2 ms for a list of 1,000 nodes (measured), and every observation contains every job's lists again.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable
from sys import intern

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from slurm_sns.errors import SnsError

#: Most texts in the cache: more than the jobs of a slurmctld (MaxJobCount is 10,000 unless set).
MOST_TEXTS = 1 << 14
#: Most names and characters of these texts in total: 10,000 jobs with lists of 1,600 nodes, 128 MB of references to
#: names. The observation in use refers to the same tuples, so the cache adds nothing to those.
MOST_TOTAL = 1 << 24


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
            known = _parsed(text)
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


def _parsed(text: str) -> tuple[str, ...]:
    try:
        found = NodeSet(without_repetitions(text), resolver=RESOLVER_NOGROUP)  # to Slurm `@all` is no group
    except NodeSetException as problem:
        raise SnsError(f"Slurm answered with the node list {text!r}, which cannot be read: {problem}") from None
    return tuple(map(intern, found))  # lists of the same nodes share their names


def without_repetitions(text: str) -> str:
    """A list of the same nodes in ranges that name each node once; a text of an unknown form is returned unchanged.

    slurmctld keeps the list literally as the job's owner writes it with `scontrol update`. A list such as
    `c[1-1000],c[1-999],...` has as many parts as fit into a command line (128 KiB), and ClusterShell takes up to 2 ms
    for each. Here a part costs a few microseconds, and ClusterShell gets each node once.
    """
    numbers: dict[tuple[str, int], int] = {}
    at = 0
    while at < len(text):
        part = _PART.match(text, at)  # not search: that would scan the rest of the text again for each character
        ranges = _ranges(part[2]) if part is not None else None
        if part is None or ranges is None:
            return text
        at = part.end()
        for width, first, last in ranges:
            key = (part[1], width)
            numbers[key] = numbers.get(key, 0) | ((1 << (last - first + 1)) - 1) << first
    return ",".join(_folded(*key, bits) for key, bits in numbers.items()) if not text.endswith(",") else text


#: A name that ends in a number or in bracketed ranges of numbers, up to the next comma.
_PART = re.compile(r"([A-Za-z0-9_.-]*[A-Za-z_.-])([0-9]+|\[[0-9,-]+\])(?:,|$)", re.ASCII)
#: Node numbers below this become bits of integers of at most 8 KiB; ClusterShell alone reads a list with larger ones.
#: No cluster known to us has so many nodes.
MOST_NUMBERS = 1 << 16


def folded(nodes: Iterable[str]) -> str:
    """Node names as Slurm folds them: c[1-4]."""
    return str(NodeSet.fromlist(nodes, resolver=RESOLVER_NOGROUP))


def _ranges(numbers: str) -> list[tuple[int, int, int]] | None:
    """`[08-10,12]` as ranges (width of a zero-padded number or 0, first, last); None if a part has another form."""
    found = []
    for part in numbers.strip("[]").split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and max(len(first), len(last)) <= len(str(MOST_NUMBERS))):
            return None
        is_padded = any(number.startswith("0") and len(number) > 1 for number in (first, last))
        if (is_padded and len(first) != len(last)) or not int(first) <= int(last) < MOST_NUMBERS:
            return None
        found.append((len(first) if is_padded else 0, int(first), int(last)))
    return found


def _folded(prefix: str, width: int, bits: int) -> str:
    runs = (match.span() for match in re.finditer("1+", f"{bits:b}"[::-1]))
    ranges = [f"{first:0{width}}" + (f"-{end - 1:0{width}}" if end - first > 1 else "") for first, end in runs]
    return prefix + (f"[{','.join(ranges)}]" if len(ranges) > 1 or "-" in ranges[0] else ranges[0])
