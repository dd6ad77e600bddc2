"""Slurm's limits, checked before a placement, so that no job is placed where it would not start.

Partitions: a job that its partitions do not let start stays gated until they do; Slurm alone would let it wait as well.
In the state DRAIN a partition takes no new jobs, but starts those that it has. A QOS may exempt its jobs from a limit.

Users, accounts and QOS: Slurm itself checks their limits, and its reason names the limit that keeps a placed job from
starting. When SlurmUser changes a TRES of a job, slurmctld notes that TRES as set by an administrator. From then on
slurmctld checks no limit of an association or a QOS on that TRES for this job, also after a requeue, and in another
account or QOS (seen on 26.05.5; limit_set in slurmctld's job_mgr.c). So a placement changes no limited TRES: the job
gets another alternative, or is left to Slurm before anything is changed in it. Slurm notes two changes of a placement:

- memory, of a job that gets whole nodes;
- nodes, where we set tasks per node for a job that gives only its number of tasks, unless the job came through our
  submit filter.

The note stays with the job, so a limit counts wherever the owner could move the job: in all accounts of the owner, and
in all QOS. Slurm does not note cache ways and bandwidth (gres): it still checks their limits. But such a limit must not
keep a job waiting that asked for neither itself, and a limit of nodes must not keep a job waiting because we spread it.
"""

from collections.abc import Iterator

from slurm_sns.errors import Closed, ClosedForGood, Infeasible
from slurm_sns.model import Alternative, Reason, WaitKind
from slurm_sns.policies.base import Choice
from slurm_sns.scheduler.observation import Names, Observation, ObservedJob, ObservedPartition, TresLimits
from slurm_sns.scheduler.snapshot.geometry import is_fixed, takes_all_memory

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
            fewest = min(alternative.nodes for alternative in left)
            left = tuple(alternative for alternative in left if alternative.nodes == fewest)
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


def _set_by_us(job: ObservedJob, alternative: Alternative) -> Iterator[str]:
    """The TRES that Slurm notes as set by an administrator in this placement."""
    if takes_all_memory(job, alternative):
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


#: The flags of a QOS that exempt its jobs from a partition's limit (sacctmgr).
ANY_WALLTIME, ANY_MOST_NODES, ANY_LEAST_NODES = "PartitionTimeLimit", "PartitionMaxNodes", "PartitionMinNodes"


class PartitionLimits:
    """The limits of the partitions in one observation. A partition that it does not show has no limits."""

    def __init__(self, observation: Observation) -> None:
        self._partitions = {each.name: each for each in observation.partitions}
        self._exemptions = dict(observation.qos_freedoms)

    def closed(self, job: ObservedJob) -> dict[str, Reason]:
        """The job's partitions in which Slurm would start none of its alternatives now, each with the reason.

        The kind of a reason is `NEVER` where the partition, as it is, would not start the job as it is at any time.
        """
        shown = (self._partitions[name] for name in job.partitions if name in self._partitions)
        whys = {each.name: self._why_closed(job, each) for each in shown}
        return {name: why for name, why in whys.items() if why is not None}

    def permitted(self, job: ObservedJob, choice: Choice, partitions: tuple[str, ...]) -> Choice:
        """The alternatives whose number of nodes at least one of these partitions gives to a job.

        Raises:
            Closed: there is none; ClosedForGood if the job's owner chose its nodes.
        """
        shown = [self._partitions[name] for name in partitions if name in self._partitions]
        if len(shown) < len(partitions):
            return choice
        permitted = tuple(
            alternative
            for alternative in choice.alternatives
            if any(self._gives(job, each, alternative.nodes) for each in shown)
        )
        if not permitted:
            asked = " or ".join(sorted({str(alternative.nodes) for alternative in choice.alternatives}))
            why = f"{'; '.join(map(_nodes_given, shown))}, the job needs {asked}"
            # Of another job Slurm may choose a number of nodes that we do not plan.
            raise ClosedForGood(why) if is_fixed(job) and set(partitions) == set(job.partitions) else Closed(why)
        return choice if len(permitted) == len(choice.alternatives) else choice._replace(alternatives=permitted)

    def _why_closed(self, job: ObservedJob, partition: ObservedPartition) -> Reason | None:
        if not partition.starts_jobs:
            return Reason(f"partition {partition.name} is {partition.state.lower()}", WaitKind.PARTITION)
        if job.has_open_nodes and partition.nodes_max is not None and not self._is_exempt_by(ANY_MOST_NODES, job):
            # The job is older than this limit: our filter asks for any number only where every partition gives it.
            most = partition.nodes_max
            return Reason(
                f"partition {partition.name} gives at most {most} nodes, and the job says any number; valid: "
                f"scontrol update JobId=JOBID NumNodes=1-{most}",
                WaitKind.NEVER,
            )
        limit_s = partition.walltime_s
        if limit_s is None or self._is_exempt_by(ANY_WALLTIME, job):
            return None
        if job.walltime_s is not None and job.walltime_s <= limit_s:
            return None
        asked = "has no time limit" if job.walltime_s is None else f"asks for {job.walltime_s // 60}"
        # One without a limit, or with a lower --time-min, may be given less by Slurm.
        is_sure = job.walltime_s is not None and (job.time_min_s is None or job.time_min_s > limit_s)
        kind = WaitKind.NEVER if is_sure else WaitKind.PARTITION
        return Reason(f"partition {partition.name} allows {limit_s // 60} minutes, the job {asked}", kind)

    def _gives(self, job: ObservedJob, partition: ObservedPartition, nodes: int) -> bool:
        too_many = partition.nodes_max is not None and nodes > partition.nodes_max
        too_few = nodes < partition.nodes_min
        if too_many and not self._is_exempt_by(ANY_MOST_NODES, job):
            return False
        return not too_few or self._is_exempt_by(ANY_LEAST_NODES, job)

    def _is_exempt_by(self, flag: str, job: ObservedJob) -> bool:
        return flag in self._exemptions.get(job.qos, frozenset())


def _nodes_given(partition: ObservedPartition) -> str:
    least, most = max(1, partition.nodes_min), partition.nodes_max
    return f"partition {partition.name} gives " + (
        f"{least} nodes or more" if most is None else f"{least} to {most} nodes"
    )
