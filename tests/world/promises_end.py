"""Promises about the end: no job is lost, none waits for ever, and nothing of ours is left on any."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from math import inf
from typing import Any

from world.promises_jobs import OURS, UNKNOWN, Job
from world.promises_tale import Tale
from world.promises_writes import left_of_ours
from world.slurm import Slurm
from world.slurm_jobs import OCCUPYING, WAITING, ModelJob

#: So long must nothing have changed before a job that waits is said to wait for ever: longer than Slurm's and our own
#: pauses (sched_interval, the longest back-off, place_timeout_s and two cycles).
LONG_S = 75.0
#: A scheduler has so long to take back what it did last: place_timeout_s and two slow cycles.
SOON_S = 20.0


def at_the_end(result: Any, tale: Tale) -> Iterator[str]:
    """What the end of a history shows."""
    tale.wall_s += result.end_s - tale.at_s
    for job in tale.jobs.of.values():
        if job.now.state in (WAITING, *OCCUPYING) and not job.is_gone and job.id not in result.slurm.jobs:
            yield f"job lost: job {job.id} is gone, and has not ended"
    yield from _tries(result, tale)
    for job in tale.jobs.of.values():
        if job.id in result.slurm.jobs and result.end_s - _last_s(job) > SOON_S:
            yield from _left(job, result, tale)
    if result.alive and result.end_s - result.quiet_from_s > LONG_S:
        yield from _waiting_for_ever(result, tale)


def _last_s(job: Job) -> float:
    """When anybody last changed the job."""
    return max(job.changed_s, job.waits_s, *job.written_s.values(), *job.started_s[-1:], -inf)


def _tries(result: Any, tale: Tale) -> Iterator[str]:
    """The store has tries of jobs that slurmctld knows only, and no pause in them is longer than the longest."""
    if not result.alive:
        return
    for job_id, each in sorted(result.store.items()):
        job = tale.jobs.of.get(job_id)
        if job_id not in result.slurm.jobs and (job is None or result.end_s - _last_s(job) > SOON_S):
            yield f"tries kept: the store has a try of job {job_id}, which slurmctld does not know any more"
        if tale.services.stepped_s < 0 and each.retry_s - tale.wall_s > result.settings.backoff_max_s:
            yield f"back-off too long: job {job_id} is tried again in {each.retry_s - tale.wall_s:.0f} s"


def _left(job: Job, result: Any, tale: Tale) -> Iterator[str]:
    """What misleads on a job that is not ours any more, and what is still ours though nobody works for it."""
    told = f"left at the end: job {job.id} ({job.now.state.lower()}) has"
    words = job.mark
    is_shown = job.now.state == "RUNNING" and not job.now.hold
    if is_shown and job.is_placed and job.now.is_boosted and result.alive:
        yield f"{told} the boost"
    if job.now.state != WAITING or words is None:
        return
    if "free" in words and job.now.hold != "bad" and not job.is_mixed:
        for what in left_of_ours(job, job.now):
            yield f"{told} {what}"
    if not result.alive and "free" not in words:
        is_over = result.schedule.ending != "gone" or result.end_s - result.quiet_from_s > tale.lease_s
        if job.is_gated(tale.wall_s) and is_over:
            yield f"{told} a gate, and nobody renews it"
        if job.is_placed and result.schedule.ending != "gone":
            yield f"{told} our placement, and nobody takes it back"


# --- who waits for ever


def _waiting_for_ever(result: Any, tale: Tale) -> Iterator[str]:
    slurm: Slurm = result.slurm
    for model in slurm.jobs.values():
        job = tale.jobs.of[model.id]
        last_s = max(job.changed_s, *(each for name, each in job.written_s.items() if name not in OURS), -inf)
        # Its begin time had come, and lies ahead again: unless that is our gate, nobody can place it.
        is_ours = job.is_gated(tale.wall_s) and "b" not in (job.mark or {})
        is_set_back = tale.set_back_s > 0 and model.begin_s > tale.wall_s and not is_ours
        is_wanted = (
            is_set_back or job.own_hold or job.own["begin_s"] is UNKNOWN or job.own["begin_s"] > tale.wall_s - LONG_S
        )
        if model.state != WAITING or result.end_s - last_s < LONG_S or is_wanted or model.dependency_state == "failed":
            continue
        if model.dependency is not None and model.dependency_state != "fulfilled":
            continue  # the other job waits, and is judged itself
        if _could_start(model, job, slurm):
            yield (
                f"waits for ever: job {job.id} has not started by {result.end_s:.0f} s, though nothing keeps it "
                f"(reason {model.reason or 'none'}, nodes {','.join(model.required) or 'none'}, begin {model.begin_s})"
            )


def _could_start(model: ModelJob, job: Job, slurm: Slurm) -> bool:
    """Whether Slurm itself would start the job now as its owner wants it, on a partition without other jobs."""
    inside = [name for each in model.asks_in for name in slurm.partitions[each].nodes]
    is_empty = not any(set(inside) & set(other.allocated) for other in slurm.jobs.values() if other.state in OCCUPYING)
    if not is_empty or any(value is UNKNOWN for value in job.own.values()) or model.gres:
        return False
    plain = copy(model)
    plain.required, (plain.ways, plain.bandwidth_gbps, _) = job.own["nodes"], job.own["gres"]
    plain.memory_per_cpu_mb, plain.memory_per_node_mb = job.own["memory"]
    plain.tasks_per_node, plain.min_cpus_per_node = job.own["tasks_per_node"], job.own["min_cpus_per_node"]
    return any(slurm.passes.would_start(replace(plain, partition=name)) for name in plain.asks_in)
