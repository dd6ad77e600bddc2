"""The order in which a cycle looks at the waiting jobs, compiled.

Over-aged jobs come first, oldest first. Then the project with the smallest used / share, first in first out inside it.
Used is the larger of the fractions of all cores and of all memory that the project holds: running plus matched so far
in this schedule. Each match changes a ratio, so the order is decided job by job, by a heap of projects rather than by
sorting. Among equal ratios the project with the older first job comes first, then the project's name decides.

When only one project has waiting jobs, their order does not depend on what is matched: they are put into order once for
all members of the portfolio.

Source: Max-Jobs paper (JSSPP 2013), section 1, on fair share; the measure of use and the ties are ours.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Floats, Integers, Queue

AGED, HEAPED, LAST, SHARED = range(4)


class FairOrderState(NamedTuple):
    """The state of one walk through the queue."""

    cursor: Integers  #: (P) the project's next job
    ratio: Floats  #: (P) used / share
    held: Integers  #: (P, 2) cores and memory: used, plus matched so far in this schedule
    heap: Integers  #: (P) projects that have a next job, except the one whose job is being looked at
    line: Integers  #: (depth + 1) the jobs in order when only one project waits; NOBODY behind the last
    state: Integers  #: (4) over-aged jobs given, projects in the heap, the last project, whether several wait


def turns_for(projects: int, depth: int) -> FairOrderState:
    """The arrays for a walk through this many projects that gives at most `depth` jobs."""
    return FairOrderState(
        cursor=np.empty(projects, np.int64),
        ratio=np.empty(projects, np.float64),
        held=np.empty((projects, 2), np.int64),
        heap=np.empty(projects, np.int64),
        line=np.empty(depth + 1, np.int64),
        state=np.zeros(4, np.int64),
    )


@compiled
def begin(turns: FairOrderState, queue: Queue) -> None:
    """Begin a walk at the first job."""
    waiting = 0
    for project in range(len(queue.head)):
        turns.cursor[project] = queue.head[project]
        if queue.head[project] != NOBODY:
            turns.heap[waiting] = project
            waiting += 1
    turns.state[AGED] = 0
    turns.state[HEAPED] = waiting
    turns.state[LAST] = NOBODY
    turns.state[SHARED] = waiting > 1
    if waiting > 1:
        for project in range(len(queue.head)):
            turns.held[project, 0] = queue.used[project, 0]
            turns.held[project, 1] = queue.used[project, 1]
            turns.ratio[project] = _ratio(turns, queue, project)
        _heapify(turns, queue)


@compiled
def line_up(turns: FairOrderState, queue: Queue, depth: int) -> None:
    """Put the jobs that a cycle may look at into `line`, unless their order depends on what is matched."""
    if turns.state[SHARED]:
        return
    for at in range(min(depth, len(turns.line))):
        turns.line[at] = next_job(turns, queue)
        if turns.line[at] == NOBODY:
            break


@compiled
def job_at(turns: FairOrderState, queue: Queue, position: int) -> int:
    """The job at this position of a walk that has given all jobs before it; NOBODY behind the last."""
    return next_job(turns, queue) if turns.state[SHARED] else turns.line[position]


@compiled
def next_job(turns: FairOrderState, queue: Queue) -> int:
    """The next job, NOBODY when all were given."""
    if turns.state[AGED] < len(queue.over_aged):
        turns.state[AGED] += 1
        return queue.over_aged[turns.state[AGED] - 1]
    last = turns.state[LAST]
    if last != NOBODY:
        turns.cursor[last] = queue.following[turns.cursor[last]]
    if last == NOBODY or turns.cursor[last] == NOBODY:
        turns.state[LAST] = _pop(turns, queue)
    elif turns.state[HEAPED] > 0 and _before(turns, queue, turns.heap[0], last):
        turns.state[LAST] = turns.heap[0]
        turns.heap[0] = last
        _sift_down(turns, queue, 0)
    last = turns.state[LAST]
    return NOBODY if last == NOBODY else turns.cursor[last]


@compiled
def _pop(turns: FairOrderState, queue: Queue) -> int:
    """Take the next project from the heap; NOBODY when it is empty."""
    if turns.state[HEAPED] == 0:
        return NOBODY
    project = turns.heap[0]
    turns.state[HEAPED] -= 1
    turns.heap[0] = turns.heap[turns.state[HEAPED]]
    _sift_down(turns, queue, 0)
    return project


@compiled
def charge(turns: FairOrderState, queue: Queue, job: int, held: tuple[int, int], over_aged: bool) -> None:
    """Count what a matched job takes, over all its nodes, against its project."""
    project = queue.project[job]
    if project == NOBODY:  # an over-aged job of a project that has no other job waiting
        return
    turns.held[project, 0] += held[0]
    turns.held[project, 1] += held[1]
    turns.ratio[project] = _ratio(turns, queue, project)
    if over_aged:  # the project is in the heap, at the place of its old ratio
        _heapify(turns, queue)


@compiled
def _ratio(turns: FairOrderState, queue: Queue, project: int) -> float:
    """The larger of the project's two fractions, by one division each: equal fractions are equal."""
    ratio = 0.0
    for row in range(2):
        whole = queue.whole[project, row]
        if whole > 0:
            ratio = max(ratio, turns.held[project, row] / whole)
    return ratio


@compiled
def _before(turns: FairOrderState, queue: Queue, one: int, other: int) -> bool:
    if turns.ratio[one] != turns.ratio[other]:
        return turns.ratio[one] < turns.ratio[other]
    order_of_one, order_of_other = queue.order[turns.cursor[one]], queue.order[turns.cursor[other]]
    if order_of_one != order_of_other:
        return order_of_one < order_of_other
    return one < other


@compiled
def _heapify(turns: FairOrderState, queue: Queue) -> None:
    for at in range(turns.state[HEAPED] // 2 - 1, -1, -1):
        _sift_down(turns, queue, at)


@compiled
def _sift_down(turns: FairOrderState, queue: Queue, at: int) -> None:
    size = turns.state[HEAPED]
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and _before(turns, queue, turns.heap[child + 1], turns.heap[child]):
            child += 1
        if not _before(turns, queue, turns.heap[child], turns.heap[at]):
            return
        turns.heap[at], turns.heap[child] = turns.heap[child], turns.heap[at]
        at = child
