"""The ways to run a job that leave Slurm's limits of users, accounts and QOS in force.

Whatever SlurmUser changes in a job, slurmctld notes as set by an administrator, and checks no limit of an association
or a QOS on that TRES for this job any more, also after a requeue, and in another account or QOS (seen on 26.05.5;
limit_set in slurmctld's job_mgr.c). So a placement changes no TRES that is limited: the job is run another way, or left
to Slurm before anything is changed in it. What nothing limits, nothing bypasses. Two changes are noted so:

- memory, of a job that gets whole nodes;
- nodes, where tasks per node are set for a job that says its tasks alone, unless it came through our submit filter.

The note stays with the job, so a limit counts wherever its owner could move the job: in all his accounts, and in all
QOS. Ways and bandwidth (gres) are not noted: Slurm checks them. But their limit must not keep a job waiting that asked
for none of them itself, and neither must a limit of nodes keep one waiting because we spread it.
"""

from collections.abc import Iterator

from slurm_sns.errors import Infeasible
from slurm_sns.model import Alternative
from slurm_sns.policies.base import Choice
from slurm_sns.scheduler.observe.observed import ObservedJob
from slurm_sns.scheduler.observe.tres_limits import Names, TresLimits

MEMORY, NODES, WAYS, BANDWIDTH = "mem", "node", "gres/llc", "gres/membw"

_CHANGES = {
    MEMORY: "whole nodes change its memory",
    NODES: "tasks per node change its number of nodes",
    WAYS: "its profile asks for cache ways",
    BANDWIDTH: "its profile asks for memory bandwidth",
}


class AccountLimits:
    """Applies the limits that one look shows. Jobs of one user, QOS and partitions share what is found."""

    def __init__(self, limits: TresLimits) -> None:
        self._limits = limits
        self._limited: dict[tuple[str, str, tuple[str, ...]], tuple[Names | None, Names]] = {}

    def permitted(self, job: ObservedJob, ways: Choice) -> Choice:
        """The ways of these that change nothing which is limited.

        Raises:
            Infeasible: there is none; or it is not known what is limited.
        """
        anywhere, there = self._limited_of(job)
        if anywhere is not None and not anywhere and not there:
            return ways
        reasons = [_why_not(job, way, anywhere, there) for way in ways.alternatives]
        left = tuple(way for way, why in zip(ways.alternatives, reasons, strict=True) if not why)
        if not left:
            raise Infeasible(reasons[0])
        if NODES in there:
            left = _on_fewest_nodes(left)
        return ways if len(left) == len(ways.alternatives) else ways._replace(alternatives=left)

    def _limited_of(self, job: ObservedJob) -> tuple[Names | None, Names]:
        """What is limited wherever the job's owner could move it (None: not known), and where it is now."""
        key = job.user, job.qos, job.partitions
        found = self._limited.get(key)
        if found is None:
            found = self._limited[key] = self._limits.anywhere(job.user), self._limits.of_job(*key)
        return found


def _why_not(job: ObservedJob, way: Alternative, anywhere: Names | None, there: Names) -> str:
    """Why this way is not taken; empty when it may be."""
    for tres in _set_by_us(job, way):
        if anywhere is None:
            return f"{_CHANGES[tres]}, and it cannot be read whether that is limited"
        if tres in anywhere:
            return f"{_CHANGES[tres]}, which is limited: Slurm would no longer check it"
    for tres in _asked_by_us(way):
        if tres in there:
            return f"{_CHANGES[tres]}, which is limited"
    return ""


def _on_fewest_nodes(ways: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
    fewest = min(way.nodes for way in ways)
    return tuple(way for way in ways if way.nodes == fewest)


def _set_by_us(job: ObservedJob, way: Alternative) -> Iterator[str]:
    """The TRES that this placement sets as an administrator does."""
    if way.exclusive:
        yield MEMORY
    # One that is not held has not come through the filter: observe and advise plan it as if it had.
    if way.tasks_per_node is not None and not job.has_open_nodes and job.priority == 0:
        yield NODES


def _asked_by_us(way: Alternative) -> Iterator[str]:
    """The TRES that this placement adds, and that Slurm checks."""
    if way.demand.ways:
        yield WAYS
    if way.demand.bandwidth_gbps:
        yield BANDWIDTH
