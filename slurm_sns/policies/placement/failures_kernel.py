"""What has found no place in a walk through the queue, and therefore finds none again (compiled).

Free capacity only shrinks in a walk. So an alternative that has failed fails again, and so does every alternative at
least as large on the same nodes.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.kernel_arrays import AlternativeArrays, Integers, JobKinds

COUNT, WALK = range(2)


class WalkFailures(NamedTuple):
    """The failures of one walk, which is dated by its number."""

    tried: Integers  #: (W) the last walk in which the alternative was tried
    failed: Integers  #: (W) the last walk in which the alternative failed
    kind: Integers  #: (K) the last walk in which all alternatives of the kind failed
    smallest: Integers  #: (W) the failed alternatives of this walk, without those larger than another one
    state: Integers  #: (2) COUNT of the smallest, the number of this WALK


def failures_for(alternatives: AlternativeArrays, kinds: JobKinds) -> WalkFailures:
    """The failures before the first walk."""
    by_alternative = (np.zeros(len(alternatives.nodes), np.int64) for _ in range(3))
    tried, failed, smallest = by_alternative
    return WalkFailures(tried, failed, np.zeros(len(kinds.own), np.int64), smallest, np.zeros(2, np.int64))


@compiled
def forget(failures: WalkFailures) -> None:
    """Begin another walk: everything may find a place again."""
    failures.state[COUNT] = 0
    failures.state[WALK] += 1


@compiled
def must_fail(failures: WalkFailures, alternatives: AlternativeArrays, alternative: int) -> bool:
    """Whether the alternative, or one at most as large with the same allowed nodes, has failed in this walk."""
    walk = failures.state[WALK]
    if failures.failed[alternative] == walk:
        return True
    if failures.tried[alternative] == walk:
        return False
    failures.tried[alternative] = walk
    for at in range(failures.state[COUNT]):
        if _as_large(alternatives, alternative, failures.smallest[at]):
            failures.failed[alternative] = walk
            return True
    return False


@compiled
def fail(failures: WalkFailures, alternatives: AlternativeArrays, alternative: int) -> None:
    """Remember that the alternative found too few nodes, and forget failures that are at least as large."""
    failures.failed[alternative] = failures.state[WALK]
    kept = 0
    for at in range(failures.state[COUNT]):
        if not _as_large(alternatives, failures.smallest[at], alternative):
            failures.smallest[kept] = failures.smallest[at]
            kept += 1
    failures.smallest[kept] = alternative
    failures.state[COUNT] = kept + 1


@compiled
def _as_large(alternatives: AlternativeArrays, alternative: int, other: int) -> bool:
    """Whether the alternative asks for at least as much as the other, with the same allowed nodes."""
    if (
        alternatives.nodes[alternative] < alternatives.nodes[other]
        or alternatives.allowed[alternative] != alternatives.allowed[other]
    ):
        return False
    if alternatives.exclusive[alternative] != alternatives.exclusive[other]:
        return False
    for row in range(alternatives.demand.shape[1]):
        if alternatives.demand[alternative, row] < alternatives.demand[other, row]:
            return False
    return True
