"""Sorts the candidates: jobs that the policy plans now, jobs that cannot start now or ever, and job arrays."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.model import Job, Seconds
from slurm_sns.policies.sns.alternatives_report import AlternativesReport
from slurm_sns.scheduler.observation.observed import Observation, ObservedJob
from slurm_sns.scheduler.remembered import Try
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.eligibility import Eligibility
from slurm_sns.scheduler.snapshot.preemption import Preemptors
from slurm_sns.scheduler.snapshot.queue_order import is_over_aged, order_key


@dataclass(frozen=True, slots=True)
class Plannable:
    """The candidates, sorted.

    `waiting` are the jobs for the policy, in queue order. By job id, `infeasible` says why a job can never be placed,
    and `closed` why a job cannot start now. `arrays` are the array records of several tasks, in queue order, each with
    the number of tasks that its nodes could hold. `explanations` say, by job id, how alternatives came about that
    were made from a profile.
    """

    waiting: list[Job] = field(default_factory=list)
    infeasible: dict[int, str] = field(default_factory=dict)
    closed: dict[int, str] = field(default_factory=dict)
    explanations: dict[int, AlternativesReport] = field(default_factory=dict)
    arrays: list[tuple[Job, int]] = field(default_factory=list)


def sort_out(
    candidates: Iterable[ObservedJob],
    tries: Mapping[int, Try],
    observation: Observation,
    settings: Settings,
    *,
    eligibility: Eligibility,
    may_withhold: Callable[[int], bool] = lambda _: True,
) -> Plannable:
    """Sort the candidates, and make jobs for the policy of those that can be planned now.

    In the modes advise and observe the record of an array is planned as its next task. `may_withhold` says, by user id,
    whether capacity may be withheld for a user's jobs that find no place.
    """
    tiers = {partition.name: partition.tier for partition in observation.partitions}
    qos_priorities = dict(observation.qos_priorities)
    preemptors = Preemptors(observation)
    found = Plannable()
    for job in candidates:
        try:
            _check(job, preemptors, settings)
            choice, allowed = eligibility.of(job)
        except Infeasible as never:
            found.infeasible[job.id] = str(never)
            continue
        except Closed as later:
            found.closed[job.id] = str(later)
            continue
        tried, hints = tries.get(job.id), job.hints
        is_limited = tried is not None and tried.limited_by != ""
        wanted = Job(
            id=job.id,
            submit_s=job.submit_s,
            alternatives=choice.alternatives,
            order=order_key(job, tiers, qos_priorities, is_limited=is_limited),
            project=job.account,
            heuristic=None if hints is None else hints.heuristic,
            allowed=allowed,
            over_aged=not is_limited and is_over_aged(job, eligibility.now_s, settings.age_limit_s),
            withholds=not is_limited and may_withhold(job.user_id),
            pool=job.partitions[0] if job.partitions else "",
        )
        if choice.explanation is not None:
            found.explanations[job.id] = choice.explanation
        if job.is_array_record and settings.mode == "enforce":
            found.arrays.append((wanted, eligibility.room(choice, allowed)))
        else:
            found.waiting.append(wanted)
    found.waiting.sort(key=queue_key)
    found.arrays.sort(key=lambda array: queue_key(array[0]))
    return found


def queue_key(job: Job) -> tuple[bool, Seconds, tuple[int, ...]]:
    """The sort key of the queue: over-aged jobs come first, oldest first, then all others by their `order`."""
    return not job.over_aged, job.submit_s if job.over_aged else 0, job.order


def _check(job: ObservedJob, preemptors: Preemptors, settings: Settings) -> None:
    """Check what the owner may have changed since the job was submitted, and what the submit filter does not know.

    Raises:
        Infeasible: we can no longer place the job.
    """
    unmanaged = sorted(set(job.partitions) - settings.partitions)
    if unmanaged:
        raise Infeasible(f"partition {','.join(unmanaged)} is not managed")
    if why := preemptors.reason(job):
        raise Infeasible(f"it may preempt jobs: {why}")
