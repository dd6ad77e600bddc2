"""The alternatives of a job that leave Slurm's limits of users, accounts and QOS in force.

When SlurmUser changes a TRES of a job, slurmctld notes that TRES as set by an administrator. From then on slurmctld
checks no limit of an association or a QOS on that TRES for this job, also after a requeue, and in another account or
QOS (seen on 26.05.5; limit_set in slurmctld's job_mgr.c). So a placement changes no limited TRES: the job gets another
alternative, or is left to Slurm before anything is changed in it. Slurm notes two changes of a placement:

- memory, of a job that gets whole nodes;
- nodes, where we set tasks per node for a job that gives only its number of tasks, unless the job came through our
  submit filter.

The note stays with the job, so a limit counts wherever the owner could move the job: in all accounts of the owner, and
in all QOS. Slurm does not note cache ways and bandwidth (gres): it still checks their limits. But such a limit must not
keep a job waiting that asked for neither itself, and a limit of nodes must not keep a job waiting because we spread it.
"""

from collections.abc import Iterator

from slurm_sns.errors import Infeasible
from slurm_sns.model import Alternative
from slurm_sns.policies.base import Choice
from slurm_sns.scheduler.observation.observed import ObservedJob
from slurm_sns.scheduler.observation.tres_limits import Names, TresLimits

MEMORY, NODES, WAYS, BANDWIDTH = "mem", "node", "gres/llc", "gres/membw"

_CHANGES = {
    MEMORY: "whole nodes change its memory",
    NODES: "tasks per node change its number of nodes",
    WAYS: "its profile asks for cache ways",
    BANDWIDTH: "its profile asks for memory bandwidth",
}


class AccountLimits:
    """Applies the limits of one observation. Jobs with equal user, QOS and partitions share one lookup."""

    def __init__(self, limits: TresLimits) -> None:
        self._limits = limits
        self._limited: dict[tuple[str, str, tuple[str, ...]], tuple[Names | None, Names]] = {}

    def permitted(self, job: ObservedJob, choice: Choice) -> Choice:
        """The alternatives of the choice that change no limited TRES.

        Where nodes are limited, only the alternatives on the fewest nodes are left.

        Raises:
            Infeasible: there is none, or it is not known what is limited.
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
        """The TRES limited anywhere the owner could move the job (None: not known), and those limited where it is."""
        key = job.user, job.qos, job.partitions
        found = self._limited.get(key)
        if found is None:
            found = self._limited[key] = self._limits.anywhere(job.user), self._limits.of_job(*key)
        return found


def _why_not(job: ObservedJob, alternative: Alternative, anywhere: Names | None, there: Names) -> str:
    """Why this alternative must not be taken; empty when it may be."""
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
    """The TRES that Slurm notes as set by an administrator in this placement."""
    if alternative.exclusive:
        yield MEMORY
    # A job that was never gated has not come through the filter: observe and advise plan it as if it had.
    is_gated = job.record is not None and not job.record.is_slurms
    if alternative.tasks_per_node is not None and not job.has_open_nodes and is_gated:
        yield NODES


def _asked_by_us(alternative: Alternative) -> Iterator[str]:
    """The TRES that this placement adds and whose limits Slurm still checks."""
    if alternative.demand.ways:
        yield WAYS
    if alternative.demand.bandwidth_gbps:
        yield BANDWIDTH
