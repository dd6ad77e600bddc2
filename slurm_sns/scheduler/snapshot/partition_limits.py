"""What Slurm's partitions allow now: checked before a placement, so that no job is placed where it would not start.

A job that its partitions do not let start stays gated until they do; Slurm alone would let it wait as well. In
the state DRAIN a partition takes no new jobs, but starts those that it has. A QOS may exempt its jobs from a limit.
Slurm itself checks the limits of users and accounts: when such a limit keeps a placed job from starting, Slurm's reason
names it. `account_limits` changes nothing whose limit Slurm could then no longer check.
"""

from slurm_sns.errors import Closed
from slurm_sns.policies.base import Choice
from slurm_sns.scheduler.observation.observed import Observation, ObservedJob, ObservedPartition

#: The flags of a QOS that exempt its jobs from a partition's limit (sacctmgr).
ANY_WALLTIME, ANY_MOST_NODES, ANY_LEAST_NODES = "PartitionTimeLimit", "PartitionMaxNodes", "PartitionMinNodes"


class PartitionLimits:
    """The limits of the partitions in one observation. A partition that it does not show has no limits."""

    def __init__(self, observation: Observation) -> None:
        self._partitions = {each.name: each for each in observation.partitions}
        self._exemptions = dict(observation.qos_freedoms)

    def closed(self, job: ObservedJob) -> dict[str, str]:
        """The job's partitions in which Slurm would start none of its alternatives now, each with the reason."""
        shown = (self._partitions[name] for name in job.partitions if name in self._partitions)
        whys = {each.name: self._why_closed(job, each) for each in shown}
        return {name: why for name, why in whys.items() if why}

    def permitted(self, job: ObservedJob, choice: Choice, partitions: tuple[str, ...]) -> Choice:
        """The alternatives whose number of nodes at least one of these partitions gives to a job.

        Raises:
            Closed: there is none.
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
            raise Closed(f"{'; '.join(map(_nodes_given, shown))}, the job needs {asked}")
        return choice if len(permitted) == len(choice.alternatives) else choice._replace(alternatives=permitted)

    def _why_closed(self, job: ObservedJob, partition: ObservedPartition) -> str:
        if not partition.starts_jobs:
            return f"partition {partition.name} is {partition.state.lower()}"
        if job.has_open_nodes and partition.nodes_max is not None and not self._is_exempt_by(ANY_MOST_NODES, job):
            # The job is older than this limit: our filter asks for any number only where every partition gives it.
            most = partition.nodes_max
            return (
                f"partition {partition.name} gives at most {most} nodes, and the job says any number; valid: "
                f"scontrol update JobId={job.id} NumNodes=1-{most}"
            )
        limit_s = partition.walltime_s
        if limit_s is None or self._is_exempt_by(ANY_WALLTIME, job):
            return ""
        if job.walltime_s is not None and job.walltime_s <= limit_s:
            return ""
        asked = "has no time limit" if job.walltime_s is None else f"asks for {job.walltime_s // 60}"
        return f"partition {partition.name} allows {limit_s // 60} minutes, the job {asked}"

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
