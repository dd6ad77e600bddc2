"""Which running jobs are suspended to make room for a job of a higher priority (compiled).

Victims are taken in this order: the lowest priority, the latest start of the present attempt, the last in submit order.
The node is that of the first victim in this order whose node can make room. There victims are taken until the job fits;
then, from the last taken to the first, each that is not needed after all goes on running.

Source: our choice; Cost-based dynamic job rescheduling (2010), section 2.2, says only that lower priorities give way.
"""

from slurm_sns.policies.placement.compiled import subroutine
from slurm_sns.policies.rescheduling.changes_kernel import suspend
from slurm_sns.policies.rescheduling.pool_arrays import NOBODY, Integers, PoolRules, PoolSite


@subroutine
def can_make_room(  # noqa: PLR0917  compiled functions have no keyword-only arguments
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
def node_of_first_victim(  # noqa: PLR0917  compiled functions have no keyword-only arguments
    site: PoolSite, rules: PoolRules, nodes: Integers, level: int, cores: int, memory: int
) -> int:
    """Of these nodes, the one of the first victim whose node can make room; NOBODY if none can."""
    found, first = NOBODY, NOBODY
    for node in nodes:
        if can_make_room(site, rules, node, level, cores, memory):
            victim = _first_victim(site, node, level)
            if victim != NOBODY and (first == NOBODY or _is_before(site, victim, first)):
                found, first = node, victim
    return found


@subroutine
def make_room(  # noqa: PLR0917  compiled functions have no keyword-only arguments
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
            while at > 0 and _is_before(site, job, site.spare[at - 1]):
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
        if is_lower and (first == NOBODY or _is_before(site, job, first)):
            first = job
        job = site.lives.next[job]
    return first


@subroutine
def _is_before(site: PoolSite, job: int, other: int) -> bool:
    """Whether a job is suspended before another one: lower level, later start of the attempt, later in the trace."""
    lives, level = site.lives, site.kinds.level
    mine, its = level[site.jobs.kind[job]], level[site.jobs.kind[other]]
    if mine != its:
        return bool(mine < its)
    if lives.start[job] != lives.start[other]:
        return bool(lives.start[job] > lives.start[other])
    return job > other
