"""The lists of jobs in the compiled pools: of a node, of a queue; and the heap of the running jobs' ends."""

from slurm_sns.policies.placement.compiled import subroutine
from slurm_sns.policies.rescheduling.pool_arrays import IN_HEAP, JOINED, NOBODY, Integers, Lives, PoolSite


@subroutine
def link(lives: Lives, head: Integers, at: int, job: int) -> None:
    """Put the job at the front of the list that begins at `head[at]`."""
    first = head[at]
    lives.next[job], lives.previous[job] = first, NOBODY
    if first != NOBODY:
        lives.previous[first] = job
    head[at] = job


@subroutine
def unlink(lives: Lives, head: Integers, at: int, job: int) -> None:
    """Take the job out of the list that begins at `head[at]`."""
    before, after = lives.previous[job], lives.next[job]
    if before == NOBODY:
        head[at] = after
    else:
        lives.next[before] = after
    if after != NOBODY:
        lives.previous[after] = before


@subroutine
def enqueue(site: PoolSite, pool: int, job: int) -> None:
    """Put the job at the end of the pool's queue."""
    queues, lives, kind = site.queues, site.lives, site.jobs.kind[job]
    lives.joined[job] = site.counters[JOINED]
    site.counters[JOINED] += 1
    last = queues.tail[pool, kind]
    lives.previous[job], lives.next[job] = last, NOBODY
    queues.tail[pool, kind] = job
    if last != NOBODY:
        lives.next[last] = job
        return
    queues.head[pool, kind] = job
    queues.is_new[pool, kind] = True
    queues.is_due[pool] = True
    queues.at[pool, kind] = queues.kinds[pool]
    queues.present[pool, queues.kinds[pool]] = kind
    queues.kinds[pool] += 1


@subroutine
def dequeue(site: PoolSite, pool: int, job: int) -> None:
    """Take the job out of the pool's queue."""
    queues, lives, kind = site.queues, site.lives, site.jobs.kind[job]
    before, after = lives.previous[job], lives.next[job]
    if before == NOBODY:
        queues.head[pool, kind] = after
    else:
        lives.next[before] = after
    if after == NOBODY:
        queues.tail[pool, kind] = before
    else:
        lives.previous[after] = before
    if queues.head[pool, kind] != NOBODY:
        return
    queues.is_new[pool, kind] = False
    queues.kinds[pool] -= 1
    moved = queues.present[pool, queues.kinds[pool]]
    queues.present[pool, queues.at[pool, kind]] = moved
    queues.at[pool, moved] = queues.at[pool, kind]


@subroutine
def push(site: PoolSite, job: int) -> None:
    """Put the end of a running job on the heap."""
    at = site.counters[IN_HEAP]
    site.counters[IN_HEAP] += 1
    _rise(site, at, job)


@subroutine
def remove(site: PoolSite, job: int) -> None:
    """Take a job's end from the heap."""
    at = site.lives.heap_at[job]
    site.counters[IN_HEAP] -= 1
    last = site.heap[site.counters[IN_HEAP]]
    if last == job:
        return
    if at > 0 and site.lives.end[last] < site.lives.end[site.heap[(at - 1) // 2]]:
        _rise(site, at, last)
    else:
        _sink(site, at, last)


@subroutine
def _rise(site: PoolSite, at: int, job: int) -> None:
    """Put the job here, or as far up as it ends earlier."""
    heap, lives = site.heap, site.lives
    end = lives.end[job]
    while at > 0:
        above = (at - 1) // 2
        other = heap[above]
        if lives.end[other] <= end:
            break
        heap[at] = other
        lives.heap_at[other] = at
        at = above
    heap[at] = job
    lives.heap_at[job] = at


@subroutine
def _sink(site: PoolSite, at: int, job: int) -> None:
    """Put the job here, or as far down as others end earlier."""
    heap, lives, count = site.heap, site.lives, site.counters[IN_HEAP]
    end = lives.end[job]
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and lives.end[heap[below + 1]] < lives.end[heap[below]]:
            below += 1
        other = heap[below]
        if lives.end[other] >= end:
            break
        heap[at] = other
        lives.heap_at[other] = at
        at = below
    heap[at] = job
    lives.heap_at[job] = at
