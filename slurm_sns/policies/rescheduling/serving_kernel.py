"""A pool serves its waiting jobs, those in its queue and the suspended ones (compiled): who starts or resumes now.

The higher priority comes first. At equal priority suspended jobs come before queued ones: those by the start of the
present suspension, then in submit order, these in the order in which they joined the queue. The first job that can be
served is served, and the pool begins again at the head, until none can. A job that cannot be served blocks nobody, and
nothing is kept for it.

A queued job starts on a node with room, which a heuristic chooses; a suspended one resumes on its own node only. If
there is no room, running jobs of strictly lower priority on one node are suspended (module victims_kernel).

A suspended job is looked at only if its node is a changed one, a kind of queued jobs only if it is new or there are
changed nodes (module pool_arrays).

Source: Cost-based dynamic job rescheduling (2010), section 2; the order among equal priorities is our choice.
"""

import math

import numpy as np

from slurm_sns.policies.placement.compiled import subroutine
from slurm_sns.policies.rescheduling.changes_kernel import resume, start
from slurm_sns.policies.rescheduling.pool_arrays import NOBODY, Integers, PoolRules, PoolSite
from slurm_sns.policies.rescheduling.victims_kernel import can_make_room, make_room, node_of_first_victim

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
            if (found == NOBODY or _is_before(site, job, found)) and can_make_room(
                site, rules, node, site.kinds.level[kind], site.kinds.cores[kind], memory
            ):
                found = job
            job = site.lives.next[job]
    return found


@subroutine
def _is_before(site: PoolSite, job: int, other: int) -> bool:
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
        if can_make_room(site, rules, node, level, cores, memory):
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
    make_room(site, rules, node, site.kinds.level[kind], site.kinds.cores[kind], memory)
    resume(site, rules, job)


@subroutine
def _serve_queued(site: PoolSite, rules: PoolRules, pool: int, kind: int) -> None:
    cores, memory, level = site.kinds.cores[kind], site.kinds.memory[kind], site.kinds.level[kind]
    first, end = _nodes_for(site, pool, kind)
    is_new = site.queues.is_new[pool, kind]
    nodes = site.nodes.all[first:end] if is_new else site.nodes.changed[first:end]
    node = _best_node(site, rules, nodes, is_new, cores, memory)
    if node == NOBODY:
        node = node_of_first_victim(site, rules, nodes, level, cores, memory)
        make_room(site, rules, node, level, cores, memory)
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
