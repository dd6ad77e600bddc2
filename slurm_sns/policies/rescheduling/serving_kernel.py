"""A pool serves its waiting jobs, those in its queue and the suspended ones (compiled): who starts or resumes now.

The higher priority comes first. At equal priority suspended jobs come before queued ones: those by the start of the
present suspension, then in submit order, these in the order in which they joined the queue, or by their
turns. The first job that can be served is served, and the pool begins again at the head, until none can. A job that
cannot be served blocks nobody, and nothing is kept for it.

A queued job starts on a node with room, which a heuristic chooses; a suspended one resumes on its own node only. If
there is no room, running jobs of strictly lower priority on one node are suspended, in this order: the lowest priority,
the latest start of the present attempt, the last in submit order. The node is that of the first victim in this order
whose node can make room. There victims are taken until the job fits; then, from the last taken to the first, each that
is not needed after all goes on running.

A suspended job is looked at only if its node is a changed one, a kind of queued jobs only if it is new or there are
changed nodes (module pool_arrays).

Source: Cost-based dynamic job rescheduling (2010), section 2, which says of victims only that lower priorities give way
(2.2); their order, and the order among equal priorities, are our choice.
"""

import math

import numpy as np

from slurm_sns.policies.placement.compiled import subroutine
from slurm_sns.policies.rescheduling.changes_kernel import resume, start, suspend
from slurm_sns.policies.rescheduling.pool_arrays import NOBODY, Integers, PoolRules, PoolSite

#: As in heuristics.mix_fit: the factor, and the number of angles in a radian.
CORNER = 1.01
PER_RADIAN = 1e9


@subroutine
def serve(site: PoolSite, rules: PoolRules, pool: int) -> None:
    """Serve the waiting jobs of a pool until none can be served."""
    nodes, queues, level = site.nodes, site.queues, site.kinds.level
    while True:
        job = _next_suspended(site, rules, pool)
        kind = _next_kind(site, rules, pool)
        if job == NOBODY and kind == NOBODY:
            break
        if job != NOBODY and (kind == NOBODY or level[site.jobs.kind[job]] >= level[kind]):
            _serve_suspended(site, rules, job)
        else:
            _serve_queued(site, rules, pool, kind)
    first = nodes.first[pool]
    for node in nodes.changed[first : first + nodes.changes[pool]]:
        nodes.is_changed[node] = False
    nodes.changes[pool] = 0
    queues.is_due[pool] = False
    for at in range(queues.kinds[pool]):
        queues.is_new[pool, queues.present[pool, at]] = False


@subroutine
def has_room(site: PoolSite, pool: int, kind: int) -> bool:
    """Whether a node of the pool has room for a job of this kind now."""
    cores, memory = site.kinds.cores[kind], site.kinds.memory[kind]
    for node in range(site.nodes.first[pool], site.nodes.first[pool + 1]):
        if site.nodes.free_cores[node] >= cores and site.nodes.free_memory[node] >= memory:
            return True
    return False


@subroutine
def _next_suspended(site: PoolSite, rules: PoolRules, pool: int) -> int:
    """The first suspended job on changed nodes that can resume, NOBODY if there is none."""
    nodes, found = site.nodes, NOBODY
    first = nodes.first[pool]
    for node in nodes.changed[first : first + nodes.changes[pool]]:
        job = nodes.suspended[node]
        while job != NOBODY:
            kind = site.jobs.kind[job]
            memory = site.kinds.memory[kind] if rules.frees_memory else 0
            if (found == NOBODY or _is_served_before(site, job, found)) and _can_make_room(
                site, rules, node, site.kinds.level[kind], site.kinds.cores[kind], memory
            ):
                found = job
            job = site.lives.next[job]
    return found


@subroutine
def _is_served_before(site: PoolSite, job: int, other: int) -> bool:
    """Whether a suspended job is served before another one."""
    since, level = site.lives.since, site.kinds.level
    mine, its = level[site.jobs.kind[job]], level[site.jobs.kind[other]]
    if mine != its:
        return bool(mine > its)
    if since[job] != since[other]:
        return bool(since[job] < since[other])
    return job < other


@subroutine
def _next_kind(site: PoolSite, rules: PoolRules, pool: int) -> int:
    """The kind whose first queued job is the first that can be served, NOBODY if there is none."""
    queues, level, joined = site.queues, site.kinds.level, site.lives.joined
    found = NOBODY
    for at in range(queues.kinds[pool]):
        kind = queues.present[pool, at]
        if not queues.is_new[pool, kind] and site.nodes.changes[pool] == 0:
            continue
        if found != NOBODY:
            is_later = joined[queues.head[pool, kind]] > joined[queues.head[pool, found]]
            if level[kind] < level[found] or (level[kind] == level[found] and is_later):
                continue
        if _can_be_served(site, rules, pool, kind):
            found = kind
    return found


@subroutine
def _can_be_served(site: PoolSite, rules: PoolRules, pool: int, kind: int) -> bool:
    """Whether a job of the kind can start; a new kind for which the pool has no room is no longer new."""
    cores, memory, level = site.kinds.cores[kind], site.kinds.memory[kind], site.kinds.level[kind]
    first, end = _nodes_for(site, pool, kind)
    is_new = site.queues.is_new[pool, kind]
    for at in range(first, end):
        node = at if is_new else site.nodes.changed[at]
        if _can_make_room(site, rules, node, level, cores, memory):
            return True
    site.queues.is_new[pool, kind] = False
    return False


@subroutine
def _nodes_for(site: PoolSite, pool: int, kind: int) -> tuple[int, int]:
    """Where the nodes begin and end that can have room: in `all` for a new kind, else in `changed`."""
    first = site.nodes.first[pool]
    if site.queues.is_new[pool, kind]:
        return first, site.nodes.first[pool + 1]
    return first, first + site.nodes.changes[pool]


@subroutine
def _serve_suspended(site: PoolSite, rules: PoolRules, job: int) -> None:
    kind, node = site.jobs.kind[job], site.lives.node[job]
    memory = site.kinds.memory[kind] if rules.frees_memory else 0
    _make_room(site, rules, node, site.kinds.level[kind], site.kinds.cores[kind], memory)
    resume(site, rules, job)


@subroutine
def _serve_queued(site: PoolSite, rules: PoolRules, pool: int, kind: int) -> None:
    cores, memory, level = site.kinds.cores[kind], site.kinds.memory[kind], site.kinds.level[kind]
    first, end = _nodes_for(site, pool, kind)
    is_new = site.queues.is_new[pool, kind]
    nodes = site.nodes.all[first:end] if is_new else site.nodes.changed[first:end]
    node = _best_node(site, rules, nodes, is_new, cores, memory)
    if node == NOBODY:
        node = _node_of_first_victim(site, rules, nodes, level, cores, memory)
        _make_room(site, rules, node, level, cores, memory)
    start(site, node, site.queues.head[pool, kind])


@subroutine
def _best_node(  # noqa: PLR0917  compiled functions have no keyword-only arguments
    site: PoolSite, rules: PoolRules, nodes: Integers, in_order: bool, cores: int, memory: int
) -> int:
    """Of these nodes, the one with room and the smallest score; of equal ones the first. NOBODY if none has room."""
    found, best = NOBODY, 0
    is_first_fit = not rules.by_angle and rules.weights == (0, 0, 0, 0)
    for node in nodes:
        if site.nodes.free_cores[node] < cores or site.nodes.free_memory[node] < memory:
            continue
        score = 0 if is_first_fit else _score(site, rules, node, cores, memory)
        if found == NOBODY or score < best or (score == best and node < found):
            found, best = node, score
        if is_first_fit and in_order:
            break
    return found


@subroutine
def _score(site: PoolSite, rules: PoolRules, node: int, cores: int, memory: int) -> int:
    """The heuristic's score, as in module heuristics."""
    nodes, weights = site.nodes, rules.weights
    if rules.by_angle:
        left_cores = (CORNER * nodes.cores[node] - (nodes.cores[node] - nodes.free_cores[node] + cores)) / (
            nodes.cores[node]
        )
        left_memory = (CORNER * nodes.memory[node] - (nodes.memory[node] - nodes.free_memory[node] + memory)) / (
            nodes.memory[node]
        )
        return int(np.int64(np.rint(abs(math.pi / 4 - math.atan(left_cores / left_memory)) * PER_RADIAN)))
    free = weights[0] * nodes.free_cores[node] + weights[1] * nodes.free_memory[node]
    return int(free + weights[2] * nodes.cores[node] + weights[3] * nodes.memory[node])


@subroutine
def _can_make_room(  # noqa: PLR0917  compiled functions have no keyword-only arguments
    site: PoolSite, rules: PoolRules, node: int, level: int, cores: int, memory: int
) -> bool:
    """Whether so much would be free on the node if all running jobs of lower levels were suspended."""
    nodes = site.nodes
    cores -= nodes.free_cores[node]
    memory -= nodes.free_memory[node]
    for lower in range(level):
        cores -= nodes.level_cores[node, lower]
        if rules.frees_memory:
            memory -= nodes.level_memory[node, lower]
    return cores <= 0 and memory <= 0


@subroutine
def _node_of_first_victim(  # noqa: PLR0917  compiled functions have no keyword-only arguments
    site: PoolSite, rules: PoolRules, nodes: Integers, level: int, cores: int, memory: int
) -> int:
    """Of these nodes, the one of the first victim whose node can make room; NOBODY if none can."""
    found, first = NOBODY, NOBODY
    for node in nodes:
        if _can_make_room(site, rules, node, level, cores, memory):
            victim = _first_victim(site, node, level)
            if victim != NOBODY and (first == NOBODY or _is_suspended_before(site, victim, first)):
                found, first = node, victim
    return found


@subroutine
def _make_room(  # noqa: PLR0917  compiled functions have no keyword-only arguments
    site: PoolSite, rules: PoolRules, node: int, level: int, cores: int, memory: int
) -> None:
    """Suspend as few running jobs of lower levels on the node as make room, in the order of victims."""
    _lower_in_order(site, node, level)
    cores -= site.nodes.free_cores[node]
    memory -= site.nodes.free_memory[node]
    taken = 0
    while cores > 0 or memory > 0:
        kind = site.jobs.kind[site.spare[taken]]
        cores -= site.kinds.cores[kind]
        if rules.frees_memory:
            memory -= site.kinds.memory[kind]
        taken += 1
    for at in range(taken - 1, -1, -1):
        kind = site.jobs.kind[site.spare[at]]
        freed = site.kinds.memory[kind] if rules.frees_memory else 0
        if cores + site.kinds.cores[kind] <= 0 and memory + freed <= 0:
            cores += site.kinds.cores[kind]
            memory += freed
            site.spare[at] = NOBODY  # it is not needed after all
    for at in range(taken):
        if site.spare[at] != NOBODY:
            suspend(site, rules, site.spare[at])


@subroutine
def _lower_in_order(site: PoolSite, node: int, level: int) -> None:
    """Put the node's running jobs of lower levels into `spare`, in the order of victims."""
    count = 0
    job = site.nodes.running[node]
    while job != NOBODY:
        if site.kinds.level[site.jobs.kind[job]] < level:
            at = count
            while at > 0 and _is_suspended_before(site, job, site.spare[at - 1]):
                site.spare[at] = site.spare[at - 1]
                at -= 1
            site.spare[at] = job
            count += 1
        job = site.lives.next[job]


@subroutine
def _first_victim(site: PoolSite, node: int, level: int) -> int:
    """The first victim of a level below this one on the node, NOBODY if there is none."""
    first = NOBODY
    job = site.nodes.running[node]
    while job != NOBODY:
        is_lower = site.kinds.level[site.jobs.kind[job]] < level
        if is_lower and (first == NOBODY or _is_suspended_before(site, job, first)):
            first = job
        job = site.lives.next[job]
    return first


@subroutine
def _is_suspended_before(site: PoolSite, job: int, other: int) -> bool:
    """Whether a job is suspended before another one: lower level, later start of the attempt, later in the trace."""
    lives, level = site.lives, site.kinds.level
    mine, its = level[site.jobs.kind[job]], level[site.jobs.kind[other]]
    if mine != its:
        return bool(mine < its)
    if lives.start[job] != lives.start[other]:
        return bool(lives.start[job] > lives.start[other])
    return job > other
