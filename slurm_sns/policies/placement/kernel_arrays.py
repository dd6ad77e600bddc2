"""What the compiled cycle works on: nodes, alternatives, kinds of jobs and the queue, as arrays.

Many jobs are alike. An *alternative* is a distinct (number of nodes, demand on each, whether they must be empty, allowed
nodes); a *choice* is an alternative with its predicted slowdown, as one job has it; a *kind* is a distinct list of
choices with an own heuristic or none. A job is then one small number, and what is known of an alternative in a cycle
(it has failed; the best node of each block) is known for all jobs that share it.

A heuristic looks at cache ways and bandwidth only where the job demands them. So what it makes of a node
depends on which of the two are demanded, four cases; each of them is a *score*, and heuristics that come to the same
share one.

Shapes: R resources, N nodes, W alternatives, K kinds, J jobs, P projects, H heuristics, S scores. What a table has room
for beyond its entries is never read.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Small = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: No job, no project, every node: what an index is when there is nothing to point at.
NOBODY = -1


class Scores(NamedTuple):
    """How nodes are scored: by angle, or by a weighted sum of what is free, configured and occupied."""

    of: Integers  #: (H, 4) the heuristic's score for demands of neither, cache ways, bandwidth, both
    angle: Flags  #: (S) Mix-Fit's angle; the weights are 0 then
    grouped: Flags  #: (S) the nodes of the most idle cores come first; an alternative on several nodes takes equal ones
    free: Integers  #: (S, R) weights of what is free
    configured: Integers  #: (S, R) weights of the capacity
    occupied: Floats  #: (S, R) weights of the shares of the capacity that are occupied
    span: int  #: more than any sum of occupied shares, in units of 1e-9


class Nodes(NamedTuple):
    """The nodes in the machine list's order."""

    capacity: Integers  #: (R, N)
    allowed: Flags  #: (sets, N) the sets of nodes that alternatives are restricted to


class AlternativeArrays(NamedTuple):
    """The distinct alternatives of jobs."""

    nodes: Integers  #: (W) on how many nodes
    demand: Integers  #: (W, R) of each node
    exclusive: Flags  #: (W) wants empty nodes and takes them whole
    allowed: Integers  #: (W) a row of `Machines.allowed`, or NOBODY for every node
    case: Integers  #: (W) 1 when it demands cache alternatives, plus 2 when it demands bandwidth
    simple: Flags  #: (W) asks for cores and memory only, on any node, shared


class Kinds(NamedTuple):
    """The distinct kinds of jobs; kind k has the choices `first[k]` to `first[k + 1]`, best first."""

    first: Integers  #: (K + 1)
    alternative: Integers  #: (choices) the alternative
    slowdown: Integers  #: (choices) the predicted slowdown in units of 1e-9; 0 where it decides nothing
    own: Integers  #: (K) the heuristic that these jobs named, or NOBODY


class Queue(NamedTuple):
    """The waiting jobs: over-aged ones oldest first, then a linked list for each project."""

    over_aged: Integers  #: (over-aged jobs)
    head: Integers  #: (P) the first job, or NOBODY
    following: Small  #: (J) the next job of the same project, or NOBODY
    kind: Small  #: (J)
    project: Small  #: (J)
    order: Integers  #: (J) compares the heads of projects of equal ratio
    whole: Floats  #: (P, 2) share times the cores, the memory of all nodes
    used: Integers  #: (P, 2) cores and memory that the project holds; projects are numbered by name
    withholds: Flags  #: (J) capacity may be withheld for it


class KernelRules(NamedTuple):
    """How far a cycle looks, how often it withholds, and the heuristics that compete (rows of `Scores.of`)."""

    depth: int
    reservations: int
    portfolio: Integers
    keeps: Flags  #: (members) its cycles keep whole nodes for the oldest over-aged job that finds no place
    scores: Integers  #: all scores that any job of a cycle may need


class Problem(NamedTuple):
    """What is given and stays the same over the cycles of a replay."""

    machines: Nodes
    alternatives: AlternativeArrays
    kinds: Kinds
    scores: Scores
    limits: KernelRules


class Matches(NamedTuple):
    """The result of one heuristic's cycle: entry i got, or withheld, the nodes `node[first[i]:first[i + 1]]`."""

    job: Integers
    choice: Integers
    kept: Integers  #: MATCH, or capacity withheld: the WITHHELD demand, or WHOLE nodes
    first: Integers
    node: Integers
    totals: Integers  #: (4) entries, matches, jobs looked at, the matches' slowdowns


ENTRIES, MATCHED, LOOKED_AT, SLOWDOWN = range(4)
MATCH, WITHHELD, WHOLE = range(3)


def room_for_matches(jobs: int, nodes: int) -> Matches:
    """Arrays for that many entries on that many nodes together."""
    return Matches(
        job=np.empty(jobs, np.int64),
        choice=np.empty(jobs, np.int64),
        kept=np.empty(jobs, np.int64),
        first=np.zeros(jobs + 1, np.int64),
        node=np.empty(nodes, np.int64),
        totals=np.zeros(4, np.int64),
    )


def largest_number_of_takes(free: Integers, alternatives: AlternativeArrays) -> int:
    """The largest number of nodes that one cycle can take, a node counted each time: each time takes a core of it."""
    if not len(alternatives.demand):
        return 0
    least = max(int(alternatives.demand[:, 0].min()), 1)
    return int((np.maximum(free[0], 0) // least + 1).sum())
