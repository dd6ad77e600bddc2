"""When there is room for a job between bookings of whole nodes, beside what running jobs hold (compiled).

A *booking* keeps a node for a waiting job from its planned start to its planned end. A node is *open to a job* at a
moment if it is ready by then (module `ready_time_kernel`), and if no booking of the node lies between that moment and
the end of the job. A job on n nodes can start at the first moment at which n nodes of one part are open to it.

From a moment on, each node has a first moment at which it is open to the job. The n-th smallest of these is never
later than the start, and n nodes may be open then: so the search goes from one such moment to the next, until it stays.
For N nodes with B bookings each costs O(N + B) a step. The oracle is `oracles.batch.slurm`.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.compiled import compiled, subroutine
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Integers
from slurm_sns.policies.placement.order_statistics import nth_smallest
from slurm_sns.policies.placement.ready_time_kernel import NodeRoom

#: Later than every moment that is looked for.
NEVER_OPEN = 1 << 60


class Bookings(NamedTuple):
    """The bookings of each node in the order of their begins; they do not overlap. All moments are whole seconds."""

    first: Integers  #: (N) the first booking of the node, or NOBODY
    following: Integers  #: (room) the next booking of the same node, or NOBODY
    begin_s: Integers  #: (room)
    end_s: Integers  #: (room)
    number: Integers  #: (1) how many these are
    open_s: Integers  #: (N) from when on the node is open to the job that was asked for last, or NEVER_OPEN
    scratch: Integers  #: (N)
    of_part: Integers  #: (N) scratch


def bookings_for(nodes: int, most: int) -> Bookings:
    """Room for this many bookings of these nodes, none of them made."""
    return Bookings(
        first=np.full(nodes, NOBODY, np.int64),
        following=np.empty(most, np.int64),
        begin_s=np.empty(most, np.int64),
        end_s=np.empty(most, np.int64),
        number=np.zeros(1, np.int64),
        open_s=np.empty(nodes, np.int64),
        scratch=np.empty(nodes, np.int64),
        of_part=np.empty(nodes, np.int64),
    )


@compiled
def cancel_all(bookings: Bookings) -> None:
    """Begin without bookings."""
    bookings.number[0] = 0
    for node in range(len(bookings.first)):
        bookings.first[node] = NOBODY


@compiled
def book(bookings: Bookings, node: int, begin_s: int, end_s: int) -> None:
    """Book the node, which must be open then."""
    at, before, after = bookings.number[0], NOBODY, bookings.first[node]
    bookings.number[0] += 1
    while after != NOBODY and bookings.begin_s[after] < begin_s:
        before, after = after, bookings.following[after]
    bookings.begin_s[at] = begin_s
    bookings.end_s[at] = end_s
    bookings.following[at] = after
    if before == NOBODY:
        bookings.first[node] = at
    else:
        bookings.following[before] = at


@subroutine
def earliest_opening(room: NodeRoom, bookings: Bookings, wanted: int, length_s: int, from_s: int) -> int:
    """The first moment, not before `from_s`, at which `wanted` nodes of one part are open to a job of this length.

    `room` has the part and the ready time of each node; `bookings.open_s` then tells the open nodes: it is their
    moment. NEVER_OPEN: the nodes are too few, or ready times are not known.
    """
    time_s = from_s
    while True:
        for node in range(len(room.part)):
            bookings.open_s[node] = _opens(room, bookings, node, length_s, time_s)
        next_s = _nth_of_one_part(room, bookings, wanted)
        if next_s <= time_s or next_s == NEVER_OPEN:
            return next_s
        time_s = next_s


@compiled
def _opens(room: NodeRoom, bookings: Bookings, node: int, length_s: int, from_s: int) -> int:
    """The first moment from then on at which the node is open to a job of this length."""
    if room.part[node] == NOBODY or room.ready_s[node] == inf:
        return NEVER_OPEN
    time_s = max(from_s, int(room.ready_s[node]))
    booking = bookings.first[node]
    while booking != NOBODY:
        # As in Slurm, a job that may end in the very second in which a booking begins is in its way.
        if time_s < bookings.end_s[booking] and time_s + length_s >= bookings.begin_s[booking]:
            time_s = bookings.end_s[booking]
        booking = bookings.following[booking]
    return time_s


@compiled
def _nth_of_one_part(room: NodeRoom, bookings: Bookings, wanted: int) -> int:
    """The smallest, over the parts, of the n-th smallest moments in `open_s`."""
    last = 0
    for node in range(len(room.part)):
        last = max(last, room.part[node])
    best = NEVER_OPEN
    for part in range(last + 1):
        count = 0
        for node in range(len(room.part)):
            if room.part[node] == part and bookings.open_s[node] < NEVER_OPEN:
                bookings.of_part[count] = bookings.open_s[node]
                count += 1
        if count >= wanted:
            best = min(best, nth_smallest(bookings.scratch[:count], bookings.of_part[:count], wanted))
    return best
