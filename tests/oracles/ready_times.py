"""When there is room for a job, node by node and moment by moment."""

from collections import Counter
from collections.abc import Sequence
from math import inf

from slurm_sns.model import Resources

#: The node, the end and what comes free then.
Release = tuple[int, float, Resources]


def ready_s(node: int, need: Resources, free: Resources, releases: Sequence[Release], now_s: float) -> float:
    """The first moment from which the need fits on the node; inf: not known, or never."""
    for moment_s in sorted({now_s, *(end_s for at, end_s, _ in releases if at == node)}):
        given = free
        for at, end_s, amount in releases:
            if at == node and end_s <= moment_s:
                given = given.plus(amount)
        if need.within(given):
            return moment_s
    return inf


def start_s(ready: Sequence[float], part: Sequence[int | None], wanted: int) -> float:
    """The first moment at which so many nodes of one part are ready; None is the part of a node that is not allowed."""
    for moment_s in sorted(set(ready)):
        counts = Counter(of for of, at_s in zip(part, ready, strict=True) if of is not None and at_s <= moment_s)
        if max(counts.values(), default=0) >= wanted:
            return moment_s
    return inf
