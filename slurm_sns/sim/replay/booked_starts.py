"""When jobs would start by the rule of `squeue --start`: each in turn books whole nodes, all run until their limits.

It is one backfill of Slurm (module `slurm_loop`) on the state of a look ahead, without its groups of expected ends:
each job gets the first moment at which enough nodes are open to it, between what running jobs hold and the bookings of
the jobs before it. A job for which there is room now books it, too, as Slurm would have started it.
"""

import numpy as np
from numpy.typing import NDArray

from slurm_sns.estimates.look_ahead import Scene
from slurm_sns.policies.placement.compiled import entry_point
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Integers, Problem, Releases, Small
from slurm_sns.policies.placement.ready_time_kernel import (
    NodeRoom,
    earliest_start,
    in_order_of_ends,
    node_room,
    put_lack,
)
from slurm_sns.sim.replay.booked_time_kernel import NEVER_OPEN, Bookings, book, bookings_for, earliest_opening

#: Limits are cut to a year, as in Slurm.
YEAR_S = 365 * 86_400


def booked_starts(
    scene: Scene, run_s: NDArray[np.float64], end_s: NDArray[np.float64], most: int
) -> NDArray[np.float64]:
    """The starts of the scene's jobs, in their order; infinite for those behind the first `most`, and where unknown."""
    problem, holders = scene.problem, scene.holders
    parts = np.diff(holders.first)
    releases = in_order_of_ends(np.repeat(np.maximum(end_s, scene.now_s + 1), parts), holders.node, holders.amount)
    (resources, nodes), count = problem.nodes.capacity.shape, min(most, len(scene.jobs))
    room = node_room(np.empty((resources, nodes), np.int64), np.empty(nodes, np.int64))
    bookings = bookings_for(nodes, max(1, count * int(problem.alternatives.nodes.max(initial=1))))
    lengths_s = np.ceil(np.minimum(run_s, YEAR_S)).astype(np.int64)
    starts_s = np.full(len(scene.jobs), NEVER_OPEN, np.int64)
    free = np.maximum(scene.free, 0)
    _book_all(problem, scene.queue.kind, free, room, bookings, releases, lengths_s[:count], starts_s, int(scene.now_s))
    return np.where(starts_s == NEVER_OPEN, np.inf, starts_s.astype(np.float64))


@entry_point
def _book_all(  # noqa: PLR0917  arrays, as the kernels take them
    problem: Problem,
    kind: Small,
    free: Integers,
    room: NodeRoom,
    bookings: Bookings,
    releases: Releases,
    length_s: Integers,
    start_s: Integers,
    now_s: int,
) -> None:
    before = NOBODY
    for job in range(len(length_s)):
        alternative = problem.kinds.alternative[problem.kinds.first[kind[job]]]
        if alternative != before:
            put_lack(room, problem, free, alternative)
            earliest_start(room, len(room.part) + 1, releases, float(now_s))  # so many are never ready: all are seen
            before = alternative
        wanted = problem.alternatives.nodes[alternative]
        start_s[job] = earliest_opening(room, bookings, wanted, length_s[job], now_s)
        if start_s[job] == NEVER_OPEN:
            continue
        for node in range(len(room.part)):
            if wanted > 0 and bookings.open_s[node] == start_s[job]:
                book(bookings, node, start_s[job], start_s[job] + length_s[job])
                wanted -= 1
