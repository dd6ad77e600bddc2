"""The order of the live queue inside one project, and which jobs are over-aged (CONTRIBUTING.md, "Queue order").

The matching cycle itself applies fair share between projects, because each match changes it.
"""

from slurm_sns.scheduler.observation.observed import ObservedJob


def order_key(
    job: ObservedJob, tiers: dict[str, int], qos_priorities: dict[str, int], *, is_limited: bool = False
) -> tuple[int, ...]:
    """The sort key of a project's jobs, smallest first: partition tier, QOS priority, nice, submit time, id.

    A job that met a limit of its owner's (`is_limited`) comes after the others of its tier and QOS. A task has the
    place of its array, whatever job id it has, and comes after the array's earlier tasks.
    """
    tier = max((tiers.get(name, 1) for name in job.partitions), default=1)
    site = -tier, -qos_priorities.get(job.qos, 0), int(is_limited)
    return (*site, job.nice, job.submit_s, job.array_id or job.id, job.array_task or 0)


def is_over_aged(job: ObservedJob, now_s: float, age_limit_s: int | None) -> bool:
    """Whether the job has waited longer than the limit (None: no job is ever over-aged)."""
    record = job.record
    begin_s = job.begin_s if record is None or record.is_slurms else record.begin_s or 0  # not our gate
    return age_limit_s is not None and now_s - max(job.submit_s, begin_s) > age_limit_s
