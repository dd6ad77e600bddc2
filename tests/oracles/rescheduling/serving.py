"""A pool serves its waiting jobs, those in its queue and the suspended ones: who starts or resumes now.

The higher priority comes first. At equal priority suspended jobs come before queued ones: those by the start of the
present suspension, then in submit order, these in the order in which they joined the queue. The first job that can be
served is served, and the pool begins again at the head, until none can. A job that cannot be served blocks nobody, and
nothing is kept for it.

A queued job starts on a node with room, which a heuristic chooses; a suspended one resumes on its own node only. If
there is no room, running jobs of strictly lower priority on one node are suspended (module victims).

Source: Cost-based dynamic job rescheduling (2010), section 2; the order among equal priorities is our choice.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oracles.rescheduling.site import SiteJob, SiteState
from oracles.rescheduling.victims import victims
from slurm_sns.model import ActiveState, Resources
from slurm_sns.policies.placement.heuristics import Heuristic
from slurm_sns.policies.placement.node_arrays import amounts

#: The node for a demand among nodes with room, in list order.
ChooseNode = Callable[[SiteState, Resources, Sequence[str]], str]


def serve(site: SiteState, pool: str, choose: ChooseNode) -> None:
    """Serve the waiting jobs of a pool until none can be served."""
    while any(_serve(site, job, choose) for job in waiting(site, pool)):
        pass


def waiting(site: SiteState, pool: str) -> list[SiteJob]:
    """The waiting jobs of a pool, the first to be served first."""
    return sorted([*site.of_pool(pool, None), *site.of_pool(pool, ActiveState.SUSPENDED)], key=_order)


def by(heuristic: Heuristic) -> ChooseNode:
    """The node that the heuristic scores best."""

    def choose(site: SiteState, demand: Resources, nodes: Sequence[str]) -> str:
        capacity = amounts([site.capacity[node] for node in nodes])
        free = amounts([site.free[node] for node in nodes])
        scores = heuristic(capacity, free, np.arange(len(nodes)), demand.all_but_gpus)
        return nodes[int(np.argmin(scores))]

    return choose


def _order(job: SiteJob) -> tuple[Any, ...]:
    if job.state is ActiveState.SUSPENDED:
        return (-job.priority, 0, job.account.since_s, job.place)
    return (-job.priority, 1, job.account.joined, 0)


def _serve(site: SiteState, job: SiteJob, choose: ChooseNode) -> bool:
    is_suspended = job.state is ActiveState.SUSPENDED
    needed = site.resuming(job) if is_suspended else job.demand
    nodes = (job.node,) if is_suspended else site.pools[job.pool]
    with_room = [node for node in nodes if needed.within(site.free[node])]
    if with_room:
        node = choose(site, needed, with_room)
    else:
        found = victims(site, job, needed, nodes)
        if found is None:
            return False
        node, suspended = found
        for each in suspended:
            site.suspend(each, f"job {job.id} of priority {job.priority} needs its node")
    if is_suspended:
        site.resume(job)
    else:
        site.start(job, node)
    return True
