"""Which suspended jobs are decided on, and what is known of them. Pure.

A job that a person suspended (`scontrol suspend`) has priority 0; one that preemption suspended keeps its priority.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from slurm_sns.model import NOTHING, Seconds
from slurm_sns.restarts.decision import SuspendedJob
from slurm_sns.restarts.past_jobs import PastJob, PastJobs
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob

#: The most jobs that one cycle decides on.
MOST_DECIDED = 10
#: Slurm may suspend a job this long after the other one has started.
GANG_S = 1


def candidates(jobs: Iterable[ObservedJob], rules: RestartRules, now_s: float) -> list[ObservedJob]:
    """The jobs to decide on, the longest suspended first."""
    found = [job for job in jobs if may_restart(job, rules) and now_s - job.suspended_s >= rules.least_suspended_s]
    return sorted(found, key=lambda job: (job.suspended_s, job.id))


def may_restart(job: ObservedJob, rules: RestartRules) -> bool:
    """Whether the job was suspended by preemption, and owner and rules let it restart."""
    record, hints = job.record, job.hints
    if job.state is not JobState.SUSPENDED or job.priority == 0 or record is None or hints is None:
        return False
    is_ours = record.is_placed and not (record.is_slurms or job.is_special or job.is_completing)
    has_opted_in = hints.restartable or not (rules.needs_hint or job.task is not None)
    return is_ours and has_opted_in and job.may_restart and job.is_batch and job.restarts < rules.max_moves


def suspended_job(job: ObservedJob, observation: Observation, past: PastJobs, now_s: float) -> SuspendedJob | None:
    """What is known of the job; None if nobody knows how long it runs."""
    expected_s = _run_s(job, past, now_s)
    if expected_s is None:
        return None
    return SuspendedJob(
        partition=job.partitions[0],
        run_s=expected_s,
        ran_s=job.ran_s,
        resumes_in_s=_resumes_in_s(job, observation, past, now_s),
        checkpoint_s=None if job.hints is None else job.hints.checkpoint_s,
    )


def _run_s(job: ObservedJob, past: PastJobs, now_s: float) -> Seconds | None:
    """How long the job is expected to run: as recent runs of its program, or its limit if it has run for longer."""
    mean_s = past.mean_run_s(job.user_id, job.stored_name, now_s)
    return mean_s if mean_s is not None and mean_s > job.ran_at(now_s) else job.walltime_s or None


def _resumes_in_s(job: ObservedJob, observation: Observation, past: PastJobs, now_s: float) -> float | None:
    """When the jobs that were started over it have ended; None if none of them runs, or one has no expected end."""
    tiers, nodes = tiers_of(observation), set(job.allocated)
    own_tier = tiers.get(job.partitions[0], 1)
    ends_s = [
        _end_s(other, past, now_s)
        for other in observation.jobs
        if other.state is JobState.RUNNING
        and other.start_s <= job.suspended_s + GANG_S
        and tiers.get(other.partitions[0] if other.partitions else "", 1) > own_tier
        and not nodes.isdisjoint(other.allocated)
    ]
    known_s = [end_s for end_s in ends_s if end_s is not None]
    return max(known_s) - now_s if known_s and len(known_s) == len(ends_s) else None


def _end_s(job: ObservedJob, past: PastJobs, now_s: float) -> float | None:
    """When a running job is expected to end."""
    run_s = _run_s(job, past, now_s)
    return None if run_s is None else now_s + max(0.0, float(run_s) - job.ran_at(now_s))


def tiers_of(observation: Observation) -> dict[str, int]:
    """The PriorityTier of each partition."""
    return {partition.name: partition.tier for partition in observation.partitions}


def past_jobs(observation: Observation, past: PastJobs) -> Iterator[PastJob]:
    """The jobs that have ended after a run, as samples, but for those that are known."""
    tiers = tiers_of(observation)
    for job in observation.jobs:
        if job.state is not JobState.ENDED or past.knows(job.id):
            continue
        if not (job.start_s and job.allocated and job.partitions):
            continue
        record = job.record
        eligible_s = max(job.submit_s, (record.begin_s or 0) if record is not None else job.begin_s)
        suspended_s = max(0, job.end_s - job.start_s - job.ran_s)
        yield PastJob(
            job_id=job.id,
            ended_s=job.end_s,
            partition=job.partitions[0],
            tier=tiers.get(job.partitions[0], 1),
            user_id=job.user_id,
            name=job.stored_name,
            wait_s=max(0, job.start_s - eligible_s),
            suspended_s=suspended_s,
            was_suspended=suspended_s > 0,
            run_s=job.ran_s if job.has_succeeded else None,
        )


def as_waiting(job: ObservedJob, partitions: tuple[str, ...]) -> ObservedJob:
    """The job as it would wait in these partitions after a requeue: with its owner's own requests."""
    record = job.record
    own: dict[str, Any] = {}
    if record is not None and record.given_tasks_per_node is not None:
        tasks_per_node = record.tasks_per_node or None
        own |= {"tasks_per_node": tasks_per_node, "min_cpus_per_node": job.cpus_per_task * (tasks_per_node or 1)}
    if record is not None and record.own_memory is not None:
        memory = record.own_memory
        own["memory_per_cpu_mb"] = memory.mb if memory.is_by_cpu else None
        own["memory_per_node_mb"] = None if memory.is_by_cpu else memory.mb
    return replace(
        job,
        state=JobState.PENDING,
        partitions=partitions,
        pinned_to=(),
        allocated=(),
        ways=0,
        bandwidth_gbps=0,
        occupies=NOTHING,
        start_s=0,
        end_s=0,
        **own,
    )
