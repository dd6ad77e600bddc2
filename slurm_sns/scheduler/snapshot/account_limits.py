"""The alternatives of a job that leave Slurm's limits of users, accounts and QOS in force.

Whatever SlurmUser changes in a job, slurmctld notes as set by an administrator, and checks no limit of an association
or a QOS on that TRES for this job any more, also after a requeue, and in another account or QOS (seen on 26.05.5;
limit_set in slurmctld's job_mgr.c). So a placement changes no TRES that is limited: the job is run another alternative,
or left to Slurm before anything is changed in it. What nothing limits, nothing bypasses. Two changes are noted so:

- memory, of a job that gets whole nodes;
- nodes, where tasks per node are set for a job that says its tasks alone, unless it came through our submit filter.

The note stays with the job, so a limit counts wherever its owner could move the job: in all his accounts, and in all
QOS. Alternatives and bandwidth (gres) are not noted: Slurm checks them. But their limit must not keep a job waiting
that asked for none of them itself, and neither must a limit of nodes keep one waiting because we spread it.
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

    def permitted(self, job: ObservedJob, choice: Choice) -> Choice:
        """The alternatives of these that change nothing which is limited.

        Raises:
            Infeasible: there is none; or it is not known what is limited.
        """
        anywhere, there = self._limited_of(job)
        if anywhere is not None and not anywhere and not there:
            return choice
        reasons = [_why_not(job, alternative, anywhere, there) for alternative in choice.alternatives]
        left = tuple(alternative for alternative, why in zip(choice.alternatives, reasons, strict=True) if not why)
        if not left:
            raise Infeasible(reasons[0])
        if NODES in there:
            left = _on_fewest_nodes(left)
        return choice if len(left) == len(choice.alternatives) else choice._replace(alternatives=left)

    def _limited_of(self, job: ObservedJob) -> tuple[Names | None, Names]:
        """What is limited wherever the job's owner could move it (None: not known), and where it is now."""
        key = job.user, job.qos, job.partitions
        found = self._limited.get(key)
        if found is None:
            found = self._limited[key] = self._limits.anywhere(job.user), self._limits.of_job(*key)
        return found


def _why_not(job: ObservedJob, alternative: Alternative, anywhere: Names | None, there: Names) -> str:
    """Why this alternative is not taken; empty when it may be."""
    for tres in _set_by_us(job, alternative):
        if anywhere is None:
            return f"{_CHANGES[tres]}, and it cannot be read whether that is limited"
        if tres in anywhere:
            return f"{_CHANGES[tres]}, which is limited: Slurm would no longer check it"
    for tres in _asked_by_us(alternative):
        if tres in there:
            return f"{_CHANGES[tres]}, which is limited"
    return ""


def _on_fewest_nodes(alternatives: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
    fewest = min(alternative.nodes for alternative in alternatives)
    return tuple(alternative for alternative in alternatives if alternative.nodes == fewest)


def _set_by_us(job: ObservedJob, alternative: Alternative) -> Iterator[str]:
    """The TRES that this placement sets as an administrator does."""
    if alternative.exclusive:
        yield MEMORY
    # One that is not held has not come through the filter: observe and advise plan it as if it had.
    if alternative.tasks_per_node is not None and not job.has_open_nodes and job.priority == 0:
        yield NODES


def _asked_by_us(alternative: Alternative) -> Iterator[str]:
    """The TRES that this placement adds, and that Slurm checks."""
    if alternative.demand.ways:
        yield WAYS
    if alternative.demand.bandwidth_gbps:
        yield BANDWIDTH
