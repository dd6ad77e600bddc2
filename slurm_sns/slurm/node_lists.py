"""Slurm's node lists as names: each text is parsed once, for as long as there is room to remember it.

ClusterShell takes 2 ms for a list of 1,000 nodes (measured), and each look meets each job's lists again.
"""

from collections import OrderedDict
from sys import intern

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from slurm_sns.errors import SnsError

#: Different texts that are remembered: more than the jobs of a slurmctld (MaxJobCount is 10,000 unless set).
MOST_TEXTS = 1 << 14
#: Names and characters of these texts together: 10,000 jobs with lists of 1,600 nodes, 128 MB of references to names.
#: What one look shows holds the same tuples, so in use they cost nothing more.
MOST_TOTAL = 1 << 24


class NodeLists:
    """Reads node lists. The texts that were asked for longest ago are forgotten first. For one thread."""

    def __init__(self, most_texts: int = MOST_TEXTS, most_total: int = MOST_TOTAL) -> None:
        self._most_texts = most_texts
        self._most_total = most_total
        self._known: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._total = 0

    def names(self, text: str | None) -> tuple[str, ...]:
        """`c[1-3],s1` as names, in Slurm's order.

        Raises:
            SnsError: the text is no node list. That is not remembered.
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
    """What an entry counts: its names and the characters of its text."""
    return len(text) + len(names)


def _parsed(text: str) -> tuple[str, ...]:
    try:
        found = NodeSet(text, resolver=RESOLVER_NOGROUP)  # to Slurm `@all` is no group
    except NodeSetException as problem:
        raise SnsError(f"Slurm answered with the node list {text!r}, which cannot be read: {problem}") from None
    return tuple(map(intern, found))  # lists of the same nodes share their names
