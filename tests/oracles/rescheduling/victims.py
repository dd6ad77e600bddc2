"""Which running jobs are suspended to make room for a job of a higher priority.

Victims are taken in this order: the lowest priority, the latest start of the present attempt, the last in submit order.
The node is that of the first victim in this order whose node can make room. There victims are taken until the job fits;
then, from the last taken to the first, each that is not needed after all goes on running.

Source: our choice; Cost-based dynamic job rescheduling (2010), section 2.2, says only that lower priorities give way.
"""

from collections.abc import Sequence

from oracles.rescheduling.site import SiteJob, SiteState
from slurm_sns.model import ActiveState, Resources, Seconds


def victims(site: SiteState, job: SiteJob, needed: Resources, nodes: Sequence[str]) -> tuple[str, list[SiteJob]] | None:
    """The node among these on which so much can be made free, and the jobs to suspend; None if there is none."""
    running = [each for each in site.of_pool(job.pool, ActiveState.RUNNING) if each.node in nodes]
    lower = sorted((each for each in running if each.priority < job.priority), key=_order)
    by_node: dict[str, list[SiteJob]] = {}
    for each in lower:
        by_node.setdefault(each.node, []).append(each)
    for node, listed in by_node.items():  # in the order of their first victims
        chosen = _enough(site, needed, node, listed)
        if chosen is not None:
            return node, chosen
    return None


def _order(job: SiteJob) -> tuple[int, Seconds, int]:
    return (job.priority, -job.account.attempt_s, -job.place)


def _enough(site: SiteState, needed: Resources, node: str, listed: Sequence[SiteJob]) -> list[SiteJob] | None:
    """As few of these jobs as make room on their node, None if all of them do not."""
    free, taken = site.free[node], []
    for each in listed:
        if needed.within(free):
            break
        free = free.plus(site.resuming(each))
        taken.append(each)
    if not needed.within(free):
        return None
    for each in reversed(taken.copy()):
        without = free.minus(site.resuming(each))
        if needed.within(without):
            free = without
            taken.remove(each)
    return taken
