"""What happens to a job of the pools, from joining a queue to its end (compiled).

A suspended job gives its cores back. It keeps its memory, or gives that back, too (parameter `suspended_memory`). Each
change keeps up the lists of jobs, those of the nodes and of the queues, and the heap of the running jobs' ends.

Source: Cost-based dynamic job rescheduling (2010), section 2.
"""

from slurm_sns.policies.placement.compiled import subroutine
from slurm_sns.policies.rescheduling.pool_arrays import (
    CHECKS,
    CORES_USED,
    ENDED,
    FIRST_CHECK,
    HAS_ENDED,
    IN_HEAP,
    JOINED,
    NOBODY,
    NOW,
    PENDING_END,
    PENDING_FIRST,
    QUEUED,
    RUNNING,
    SUSPENDED,
    SUSPENDED_JOBS,
    SUSPENSIONS,
    VISITS,
    Integers,
    Lives,
    PoolRules,
    PoolSite,
)


@subroutine
def join(site: PoolSite, rules: PoolRules, pool: int, job: int) -> None:
    """Put the job into a pool's queue."""
    lives = site.lives
    lives.state[job], lives.pool[job], lives.node[job] = QUEUED, pool, NOBODY
    lives.since[job] = site.counters[NOW]
    lives.waited[job], lives.suspended[job] = 0, 0
    _enqueue(site, pool, job)
    if rules.check_every:
        note_check(site, rules, job)


@subroutine
def note_check(site: PoolSite, rules: PoolRules, job: int) -> None:
    """Let the job be decided on after so long, if it still waits then."""
    checks, counters = site.checks, site.counters
    at = (counters[FIRST_CHECK] + counters[CHECKS]) % len(checks.due)
    site.lives.end[job] = site.counters[NOW] + rules.check_every
    checks.due[at], checks.job[at] = site.lives.end[job], job
    counters[CHECKS] += 1


@subroutine
def start(site: PoolSite, node: int, job: int) -> None:
    """Start a queued job, the first of its kind."""
    lives, now = site.lives, site.counters[NOW]
    _dequeue(site, lives.pool[job], job)
    lives.waited[job] += now - lives.since[job]
    lives.start[job], lives.node[job] = now, node
    if lives.first_start[job] == NOBODY:
        lives.first_start[job] = now
    kind = site.jobs.kind[job]
    site.nodes.free_memory[node] -= site.kinds.memory[kind]
    _run(site, job)


@subroutine
def suspend(site: PoolSite, rules: PoolRules, job: int) -> None:
    """Suspend a running job."""
    lives, counters, now = site.lives, site.counters, site.counters[NOW]
    node = lives.node[job]
    _leave(site, job)
    lives.ran[job] += now - lives.since[job]
    lives.state[job], lives.since[job] = SUSPENDED, now
    if lives.suspensions[job] == 0:
        lives.first_suspended[job] = now
    lives.suspensions[job] += 1
    _link(lives, site.nodes.suspended, node, job)
    if rules.frees_memory:
        site.nodes.free_memory[node] += site.kinds.memory[site.jobs.kind[job]]
    counters[SUSPENDED_JOBS] += 1
    _pend(site, job)


@subroutine
def resume(site: PoolSite, rules: PoolRules, job: int) -> None:
    """Let a suspended job run on; if it was suspended at this moment, it never was."""
    lives = site.lives
    if lives.since[job] == site.counters[NOW]:
        lives.suspensions[job] -= 1
        lives.joined[job] = NOBODY
        if lives.suspensions[job] == 0:
            lives.first_suspended[job] = NOBODY
    else:
        _end_suspension(site, job, False)
    _leave_suspended(site, job)
    if rules.frees_memory:
        site.nodes.free_memory[lives.node[job]] -= site.kinds.memory[site.jobs.kind[job]]
    _run(site, job)


@subroutine
def move(site: PoolSite, rules: PoolRules, pool: int, job: int) -> None:
    """Take a suspended job from its node, and let it join the queue of another pool."""
    lives, node = site.lives, site.lives.node[job]
    _end_suspension(site, job, True)
    _leave_suspended(site, job)
    if not rules.frees_memory:
        site.nodes.free_memory[node] += site.kinds.memory[site.jobs.kind[job]]
        mark_changed(site, node)
    taken_over = (lives.ran[job] if rules.keeps_work else 0) - rules.move_cost
    lives.wasted[job] += lives.ran[job] - taken_over
    lives.ran[job] = taken_over
    _log_visit(site, job, lives.start[job])
    join(site, rules, pool, job)


@subroutine
def leave_queue(site: PoolSite, rules: PoolRules, pool: int, job: int) -> None:
    """Take a job from its queue, and let it join that of another pool."""
    lives, now = site.lives, site.counters[NOW]
    _dequeue(site, lives.pool[job], job)
    lives.waited[job] += now - lives.since[job]
    _log_visit(site, job, now)
    join(site, rules, pool, job)


@subroutine
def _log_visit(site: PoolSite, job: int, start: int) -> None:
    """Log the visit that ends now."""
    lives, log, row = site.lives, site.logs.visits, site.counters[VISITS]
    if row < len(log):
        log[row, 0], log[row, 1], log[row, 2], log[row, 3] = job, lives.pool[job], lives.node[job], start
        log[row, 4], log[row, 5] = lives.waited[job], lives.suspended[job]
        log[row, 6] = site.counters[NOW] - start - lives.suspended[job]
        log[row, 7] = lives.last_visit[job]
        lives.last_visit[job] = row
    site.counters[VISITS] += 1
    lives.moves[job] += 1


@subroutine
def end(site: PoolSite, job: int) -> None:
    """Complete a running job."""
    lives = site.lives
    _leave(site, job)
    site.nodes.free_memory[lives.node[job]] += site.kinds.memory[site.jobs.kind[job]]
    lives.state[job] = ENDED
    site.counters[HAS_ENDED] += 1
    row = lives.last_visit[job]
    while row != NOBODY:
        log = site.logs.visits
        if log[row, 1] == lives.pool[job]:
            lives.waited[job] += log[row, 4]
            lives.suspended[job] += log[row, 5]
        row = log[row, 7]


@subroutine
def mark_changed(site: PoolSite, node: int) -> None:
    """Note that something was freed on the node."""
    nodes = site.nodes
    if nodes.is_changed[node]:
        return
    pool = nodes.pool[node]
    site.queues.is_due[pool] = True
    nodes.is_changed[node] = True
    nodes.changed[nodes.first[pool] + nodes.changes[pool]] = node
    nodes.changes[pool] += 1


@subroutine
def _run(site: PoolSite, job: int) -> None:
    """Let the job run on its node from now on: its memory is there already."""
    lives, nodes, kind = site.lives, site.nodes, site.jobs.kind[job]
    node, cores, level = lives.node[job], site.kinds.cores[kind], site.kinds.level[kind]
    nodes.free_cores[node] -= cores
    nodes.level_cores[node, level] += cores
    nodes.level_memory[node, level] += site.kinds.memory[kind]
    site.counters[CORES_USED] += cores
    lives.state[job], lives.since[job] = RUNNING, site.counters[NOW]
    lives.end[job] = lives.since[job] + site.jobs.run[job] - lives.ran[job]
    _link(lives, nodes.running, node, job)
    _push(site, job)


@subroutine
def _leave(site: PoolSite, job: int) -> None:
    """Take a running job from the cores of its node; its memory stays."""
    lives, nodes, kind = site.lives, site.nodes, site.jobs.kind[job]
    node, cores, level = lives.node[job], site.kinds.cores[kind], site.kinds.level[kind]
    nodes.free_cores[node] += cores
    nodes.level_cores[node, level] -= cores
    nodes.level_memory[node, level] -= site.kinds.memory[kind]
    site.counters[CORES_USED] -= cores
    _unlink(lives, nodes.running, node, job)
    _remove(site, job)
    mark_changed(site, node)


@subroutine
def _leave_suspended(site: PoolSite, job: int) -> None:
    lives = site.lives
    _unlink(lives, site.nodes.suspended, lives.node[job], job)
    site.counters[SUSPENDED_JOBS] -= 1


@subroutine
def _end_suspension(site: PoolSite, job: int, by_move: bool) -> None:
    """Count the suspension that ends now."""
    lives, log, row = site.lives, site.logs.suspensions, site.counters[SUSPENSIONS]
    took = site.counters[NOW] - lives.since[job]
    lives.suspended[job] += took
    lives.all_suspended[job] += took
    if row < len(log):
        log[row, 0], log[row, 1], log[row, 2] = job, lives.moves[job], lives.node[job]
        log[row, 3], log[row, 4], log[row, 5] = lives.since[job], site.counters[NOW], by_move
    site.counters[SUSPENSIONS] += 1


@subroutine
def _pend(site: PoolSite, job: int) -> None:
    """Put the job at the end of the decisions to take; those that are no longer to be taken make room."""
    pending, counters, lives = site.pending, site.counters, site.lives
    if counters[PENDING_END] == len(pending):
        kept = 0
        for at in range(counters[PENDING_FIRST], counters[PENDING_END]):
            other = pending[at]
            if lives.state[other] == SUSPENDED and lives.joined[other] == at:
                pending[kept] = other
                lives.joined[other] = kept
                kept += 1
        counters[PENDING_FIRST], counters[PENDING_END] = 0, kept
    lives.joined[job] = counters[PENDING_END]
    pending[counters[PENDING_END]] = job
    counters[PENDING_END] += 1


@subroutine
def _link(lives: Lives, head: Integers, at: int, job: int) -> None:
    """Put the job at the front of the list that begins at `head[at]`."""
    first = head[at]
    lives.next[job], lives.previous[job] = first, NOBODY
    if first != NOBODY:
        lives.previous[first] = job
    head[at] = job


@subroutine
def _unlink(lives: Lives, head: Integers, at: int, job: int) -> None:
    """Take the job out of the list that begins at `head[at]`."""
    before, after = lives.previous[job], lives.next[job]
    if before == NOBODY:
        head[at] = after
    else:
        lives.next[before] = after
    if after != NOBODY:
        lives.previous[after] = before


@subroutine
def _enqueue(site: PoolSite, pool: int, job: int) -> None:
    """Put the job into the pool's queue: at its end, or at its turn where jobs have turns."""
    queues, lives, kind = site.queues, site.lives, site.jobs.kind[job]
    lives.joined[job] = site.jobs.turn[job] if len(site.jobs.turn) else site.counters[JOINED]
    site.counters[JOINED] += 1
    before, after = queues.tail[pool, kind], NOBODY
    is_empty = before == NOBODY
    while before != NOBODY and lives.joined[before] > lives.joined[job]:
        before, after = lives.previous[before], before
    lives.previous[job], lives.next[job] = before, after
    if after == NOBODY:
        queues.tail[pool, kind] = job
    else:
        lives.previous[after] = job
    if before == NOBODY:
        queues.head[pool, kind] = job
    else:
        lives.next[before] = job
    if not is_empty:
        return
    queues.is_new[pool, kind] = True
    queues.is_due[pool] = True
    queues.at[pool, kind] = queues.kinds[pool]
    queues.present[pool, queues.kinds[pool]] = kind
    queues.kinds[pool] += 1


@subroutine
def _dequeue(site: PoolSite, pool: int, job: int) -> None:
    """Take the job out of the pool's queue."""
    queues, lives, kind = site.queues, site.lives, site.jobs.kind[job]
    if lives.next[job] == NOBODY:
        queues.tail[pool, kind] = lives.previous[job]
    _unlink(lives, queues.head[pool], kind, job)
    if queues.head[pool, kind] != NOBODY:
        return
    queues.is_new[pool, kind] = False
    queues.kinds[pool] -= 1
    moved = queues.present[pool, queues.kinds[pool]]
    queues.present[pool, queues.at[pool, kind]] = moved
    queues.at[pool, moved] = queues.at[pool, kind]


@subroutine
def _push(site: PoolSite, job: int) -> None:
    """Put the end of a running job on the heap."""
    at = site.counters[IN_HEAP]
    site.counters[IN_HEAP] += 1
    _rise(site, at, job)


@subroutine
def _remove(site: PoolSite, job: int) -> None:
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
