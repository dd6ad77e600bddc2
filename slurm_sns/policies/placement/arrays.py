"""What the compiled cycle works on: nodes, ways to run, kinds of jobs and the queue, as arrays.

Many jobs are alike. A *way* is a distinct (alternative, allowed nodes); a *kind* is a distinct list of ways with an own
heuristic or none. A job is then one small number, and what is known of a way in a cycle (it has failed; the best node
of each block) is known for all jobs that share it.

Shapes: R resources, N nodes, W ways, K kinds, J jobs, P projects, H heuristics.
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


class Heuristics(NamedTuple):
    """How nodes are scored, a row for each heuristic: by angle, or by a weighted sum of free and configured amounts."""

    angle: Flags  #: (H) Mix-Fit's angle; the weights are 0 then
    free: Integers  #: (H, R) weights of what is free
    configured: Integers  #: (H, R) weights of the capacity


class Machines(NamedTuple):
    """The nodes in the machine list's order."""

    capacity: Integers  #: (R, N)
    allowed: Flags  #: (sets, N) the sets of nodes that ways are restricted to


class Ways(NamedTuple):
    """The distinct ways to run a job."""

    nodes: Integers  #: (W) on how many nodes
    demand: Integers  #: (W, R) of each node
    exclusive: Flags  #: (W) wants empty nodes and takes them whole
    allowed: Integers  #: (W) a row of `Machines.allowed`, or NOBODY for every node
    simple: Flags  #: (W) asks for cores and memory only, on any node, shared


class Kinds(NamedTuple):
    """The distinct kinds of jobs; kind k may run in the ways `way[first[k]:first[k + 1]]`, best first."""

    first: Integers  #: (K + 1)
    way: Integers  #: (all alternatives of all kinds)
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


class Limits(NamedTuple):
    """How far a cycle looks, how often it withholds, and the heuristics that compete (rows of `Heuristics`)."""

    depth: int
    reservations: int
    portfolio: Integers
    rows: Integers  #: all rows that any job of a cycle may need: the portfolio's and the jobs' own


class Problem(NamedTuple):
    """What is given and stays the same over the cycles of a replay."""

    machines: Machines
    ways: Ways
    kinds: Kinds
    heuristics: Heuristics
    limits: Limits


class Matches(NamedTuple):
    """The result of one heuristic's cycle: entry i got, or withheld, the nodes `node[first[i]:first[i + 1]]`."""

    job: Integers
    way: Integers
    kept: Flags  #: capacity withheld, not a match
    first: Integers
    node: Integers
    totals: Integers  #: (3) entries, matches, jobs looked at


ENTRIES, MATCHED, LOOKED_AT = range(3)


def room_for_matches(jobs: int, nodes: int) -> Matches:
    """Arrays for that many entries on that many nodes together."""
    return Matches(
        job=np.empty(jobs, np.int64),
        way=np.empty(jobs, np.int64),
        kept=np.empty(jobs, np.bool_),
        first=np.zeros(jobs + 1, np.int64),
        node=np.empty(nodes, np.int64),
        totals=np.zeros(3, np.int64),
    )


def largest_number_of_takes(free: Integers, ways: Ways) -> int:
    """How often nodes can be taken in one cycle, each node counted each time: a way takes a core of an open node."""
    if not len(ways.demand):
        return 0
    least = max(int(ways.demand[:, 0].min()), 1)
    return int((np.maximum(free[0], 0) // least + 1).sum())
