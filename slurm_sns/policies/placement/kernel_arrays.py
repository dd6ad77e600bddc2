"""What the compiled cycle works on: nodes, alternatives, kinds of jobs and the queue, as arrays.

Many jobs are alike. An *alternative* is a distinct (number of nodes, demand on each, whether they must be empty,
allowed nodes). A *choice* is an alternative with the slowdown that is predicted for a job. A *kind* is a distinct list
of choices, with the heuristic that the jobs name or none. A job is then one small number, its kind. What a cycle knows
of an alternative (it has failed; the best node of each block) holds for all jobs that share it.

A heuristic looks at resources beyond cores and memory only where the job demands them. A *case* is a distinct set of
such resources; case 0 is the empty set, the others are those that the alternatives at hand demand. A *score* is a
distinct ranking of nodes; two cases that rank nodes alike, of the same or of different heuristics, share one score.

Shapes: R resources (module `node_arrays`), N nodes, W alternatives, K kinds, J jobs, P projects, H heuristics, C cases,
S scores. Where no job demands more than cores and memory a replay has R = 2. Arrays may have spare room behind their
entries, which is never read.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.compiled import compiled

Integers = NDArray[np.int64]
Small = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: The index that points at nothing: no job, no project, no heuristic; of a set of allowed nodes: every node.
NOBODY = -1


class Scores(NamedTuple):
    """How nodes are scored: by angle, or by a weighted sum of what is free, configured and occupied."""

    of: Integers  #: (H, C) the heuristic's score for demands of each case
    demanded: Flags  #: (C, R) the resources beyond cores and memory that the case's demands have
    angle: Flags  #: (S) the score is Mix-Fit's angle, and its weights are 0
    grouped: Flags  #: (S) nodes with more idle cores come first; several nodes have equally many where possible
    free: Integers  #: (S, 4) weights of what is free of cores, memory, ways and bandwidth
    configured: Integers  #: (S, 4) weights of the capacity
    occupied: Floats  #: (S, R of the nodes) weights of the shares of the capacity that are occupied
    span: int  #: more than any sum of occupied shares in these units
    unit: float  #: how many units an occupied share of 1 is


class KernelNodes(NamedTuple):
    """The nodes in the machine list's order."""

    capacity: Integers  #: (R, N)
    allowed: Flags  #: (sets, N) the sets of nodes to which alternatives are restricted
    weight: Integers  #: (N) the rank of the node's weight
    switch: Integers  #: (levels, N) the number of the switch above the node
    weighs: bool  #: nodes differ in weight


class AlternativeArrays(NamedTuple):
    """The distinct alternatives of jobs."""

    nodes: Integers  #: (W) the number of nodes
    demand: Integers  #: (W, R) the demand on each node
    exclusive: Flags  #: (W) it needs empty nodes and takes them whole
    allowed: Integers  #: (W) a row of `Nodes.allowed`, or NOBODY for every node
    case: Integers  #: (W) its case, a column of `Scores.of`
    simple: Flags  #: (W) it demands cores and memory only, on any nodes, not exclusive


class JobKinds(NamedTuple):
    """The distinct kinds of jobs; kind k has the choices `first[k]` to `first[k + 1]`, best first.

    The best schedule has the largest sum of gains; among equal ones the smallest sum of costs.
    """

    first: Integers  #: (K + 1)
    alternative: Integers  #: (choices) the alternative
    gain: Integers  #: (choices) 1 for each match
    cost: Integers  #: (choices) the predicted slowdown in units of 1e-9; 0 if the rules ignore slowdowns
    by_use: Integers  #: (choices) the kind's choices by slowdown times dominant share, least first
    own: Integers  #: (K) the heuristic that these jobs named, or NOBODY


class Releases(NamedTuple):
    """What comes free on the nodes, one entry for each node of each running job, in the order of `end_s`."""

    end_s: Floats  #: (E) ascending, now or later; infinite where the end is not known
    node: Integers  #: (E) the column of the node
    amount: Integers  #: (E, R) of each resource; negative where a node is overbooked


class Queue(NamedTuple):
    """The waiting jobs: over-aged ones oldest first, then a linked list for each project.

    The last three are of use only where capacity is withheld until a job's start.
    """

    over_aged: Integers  #: (over-aged jobs)
    head: Integers  #: (P) the first job, or NOBODY
    following: Small  #: (J) the next job of the same project, or NOBODY
    kind: Small  #: (J)
    project: Small  #: (J)
    order: Integers  #: (J) decides between the first jobs of projects with equal ratios, smallest first
    whole: Floats  #: (P, 2) share times the cores and share times the memory of all nodes
    used: Integers  #: (P, 2) cores and memory that the project holds; projects are numbered by name
    withholds: Flags  #: (J) capacity may be withheld for it
    now_s: float
    run_s: Floats  #: (J) how long it is expected to run; infinite where nothing is known
    coming: Releases  #: what the running jobs will give back


@compiled
def queue_at(queue: Queue, over_aged: Integers, now_s: float, coming: Releases) -> Queue:
    """The queue at a moment, with the jobs that are over-aged then and what is coming free."""
    return Queue(
        over_aged,
        queue.head,
        queue.following,
        queue.kind,
        queue.project,
        queue.order,
        queue.whole,
        queue.used,
        queue.withholds,
        now_s,
        queue.run_s,
        coming,
    )


@compiled
def withholding(queue: Queue, withholds: Flags) -> Queue:
    """The queue with other jobs for which capacity may be withheld."""
    return Queue(
        queue.over_aged,
        queue.head,
        queue.following,
        queue.kind,
        queue.project,
        queue.order,
        queue.whole,
        queue.used,
        withholds,
        queue.now_s,
        queue.run_s,
        queue.coming,
    )


class KernelRules(NamedTuple):
    """How far a cycle looks, how often it withholds, and the heuristics that compete (rows of `Scores.of`)."""

    depth: int
    reservations: int
    until_start: bool  #: capacity is withheld until a job's start
    portfolio: Integers
    for_profiled: Flags  #: (members) the member competes only while some waiting job has a profile
    keeps: Flags  #: (members) the member's cycles keep whole nodes for the oldest over-aged job that finds no place
    ties: int  #: FIXED, BY_RECORD or BY_CHANCE (module `ties`)
    turns: Integers  #: (members) the order of turns that never changes
    adaptive: bool  #: a queue that does not start as a whole has its alternatives tried by use
    scores: Integers  #: all scores that any job of a cycle may need


class Problem(NamedTuple):
    """The inputs that stay the same from cycle to cycle."""

    nodes: KernelNodes
    alternatives: AlternativeArrays
    kinds: JobKinds
    scores: Scores
    limits: KernelRules


class Matches(NamedTuple):
    """The result of one member's cycle: entry i has the nodes `node[first[i]:first[i + 1]]`.

    A log of all members' cycles has a row for each member in each array.
    """

    job: Integers
    choice: Integers
    kept: Integers  #: MATCH, or capacity withheld: the demand (WITHHELD), whole nodes (WHOLE), from then on (PROMISED)
    start_s: Floats  #: of a promise: from when on
    first: Integers
    node: Integers
    order: Integers  #: the jobs that the cycle looked at, in the order of their turns; empty where nobody asks for it
    totals: Integers  #: (6) entries, matches, jobs looked at, sums of gains and costs, 1 if the whole queue is matched


ENTRIES, MATCHED, LOOKED_AT, GAIN, COST, WHOLE_QUEUE = range(6)
MATCH, WITHHELD, WHOLE, PROMISED = range(4)


def room_for_matches(jobs: int, nodes: int, looked_at: int = 0, rows: tuple[int, ...] = ()) -> Matches:
    """Empty arrays for this many entries, which have this many nodes together, and the jobs looked at.

    `rows` is the number of members in a log, if it is one.
    """

    def room(count: int) -> Integers:
        return np.zeros((*rows, count), np.int64)

    start_s = np.zeros((*rows, jobs), np.float64)
    return Matches(room(jobs), room(jobs), room(jobs), start_s, room(jobs + 1), room(nodes), room(looked_at), room(6))


def largest_number_of_takes(free: Integers, alternatives: AlternativeArrays) -> int:
    """The largest number of times that one cycle can take nodes, counted for each node: each takes a core at least."""
    if not len(alternatives.demand):
        return 0
    least = max(int(alternatives.demand[:, 0].min()), 1)
    return int((np.maximum(free[0], 0) // least + 1).sum())
