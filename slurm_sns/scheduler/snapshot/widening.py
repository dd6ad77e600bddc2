"""Waiting jobs that may run in more partitions from now on: in those that are alike with theirs for users.

A group of such partitions is one of the setting `rescheduling.pools`. A job that has waited for `queued_check_s`, or
that has been requeued after it ran, gets the others of its group after its own ones, as if its owner had named them
(`sbatch -p main,main-old`). So Slurm, its tools and our plan need to know nothing more. That is done once for each job:
the word `p=` of its record says so. What its owner changes afterwards stays. Where suspended jobs are restarted, a
requeued job gets them even if no time is set for those that wait: its restart may have been decided for a place there.

A partition is left out if it is not up, lets the job not in (PartitionAccess), or is one where we could not place it:
because of a limit that we know, because its nodes are too small, or because the job might preempt others there. Slurm
itself takes a partition that does not let the job in beside one that does (seen, EnforcePartLimits=NO). And it drops
those that take no new jobs from a list, without an error (seen): a job in such a partition stays as it is. Pure.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from slurm_sns.durations import duration
from slurm_sns.errors import Closed, Infeasible
from slurm_sns.scheduler.gate.leases import MOST_OF_QUEUE
from slurm_sns.scheduler.observation import Observation, ObservedJob
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.eligibility import Eligibility
from slurm_sns.scheduler.snapshot.plannable import Preemptors


class Widening(NamedTuple):
    """The partitions in which a job may run as well from now on, and why."""

    others: tuple[str, ...]
    why: str


def widenings(
    waiting: Iterable[ObservedJob], eligibility: Eligibility, observation: Observation, settings: Settings, now_s: float
) -> dict[int, Widening]:
    """The widening of each of these jobs for which it is time, by job id. Nothing holds them, and they are not placed.

    An array's record of several tasks is widened as a whole. Each widening is a message to slurmdbd: none is due while
    too many of them pile up.
    """
    queue = observation.database_queue
    is_on = settings.pools and (settings.queued_check_s or settings.restarts) and settings.mode == "enforce"
    if not is_on or queue.length > MOST_OF_QUEUE * queue.most:
        return {}
    rules = _Rules(observation, eligibility)
    found: dict[int, Widening] = {}
    for job in waiting:
        why = _why(job, settings, now_s)
        may_be = why and rules.keeps(job)
        others = tuple(name for name in _others(job, settings) if rules.lets_in(job, name)) if may_be else ()
        if others and rules.places(job, *job.partitions, *others):
            found[job.id] = Widening(others, why)
    return found


def _why(job: ObservedJob, settings: Settings, now_s: float) -> str:
    """Why it is time for this job; empty if it is not, or it has had its turn."""
    record = job.record
    if record is None or record.own_partitions:
        return ""
    if job.restarts:
        return "it has been requeued"
    waited_s = now_s - max(job.submit_s, record.begin_s or 0)
    return f"it has waited for {duration(waited_s)}" if 0 < settings.queued_check_s <= waited_s else ""


def _others(job: ObservedJob, settings: Settings) -> tuple[str, ...]:
    """The other partitions of the group that has all of the job's; none if no group has."""
    own = set(job.partitions)
    group = next((pool for pool in settings.pools if own and own <= set(pool)), ())
    return tuple(name for name in group if name not in own)


class _Rules:
    """Which partitions let a job in, as far as an observation shows."""

    def __init__(self, observation: Observation, eligibility: Eligibility) -> None:
        self._shown = {each.name: each for each in observation.partitions}
        self._eligibility = eligibility
        self._preemptors = Preemptors(observation)

    def keeps(self, job: ObservedJob) -> bool:
        """Whether the job's own partitions take new jobs: Slurm would drop others from the list."""
        return all(self._shown[own].state in ("UP", "DOWN") for own in job.partitions if own in self._shown)

    def lets_in(self, job: ObservedJob, name: str) -> bool:
        """Whether the job may be in this partition, and we could place it there.

        Nobody but Slurm knows the groups of the job's owner: the partition must let in the same ones as its own.
        """
        partition = self._shown.get(name)
        if partition is None or partition.state != "UP" or self._preemptors.in_partition(name):
            return False
        groups = {self._shown[own].access.groups for own in job.partitions if own in self._shown}
        is_let_in = partition.access.groups in groups and partition.access.admits(job.account, job.qos)
        return is_let_in and self.places(job, name)

    def places(self, job: ObservedJob, *partitions: str) -> bool:
        """Whether we could place the job in these partitions; nodes that differ in memory may prevent it in several."""
        try:
            self._eligibility.of(replace(job, partitions=partitions))
        except (Infeasible, Closed):
            return False
        return True
