"""The order of the live queue inside one project, and who is over-aged (CONTRIBUTING.md, "Queue order").

Fair share between projects is the matching cycle's business, as it moves with every match.
"""

from slurm_sns.scheduler.observe.observed import ObservedJob


def order_key(
    job: ObservedJob, own_nice: int, tiers: dict[str, int], qos_priorities: dict[str, int], *, is_limited: bool = False
) -> tuple[int, ...]:
    """Sorts a project's jobs, the first to be planned smallest: partition tier, QOS priority, nice, submit time, id.

    `own_nice` is the owner's nice value, without our boost. A held job has no Slurm priority, so none is read. One that
    met a limit of its owner's comes after the others of its tier and QOS. A task stands where its array does, whatever
    job id it got when it was split off, and after the tasks before it.
    """
    tier = max((tiers.get(name, 1) for name in job.partitions), default=1)
    site = -tier, -qos_priorities.get(job.qos, 0), int(is_limited)
    return (*site, own_nice, job.submit_s, job.array_id or job.id, job.array_task or 0)


def is_over_aged(job: ObservedJob, now_s: float, age_limit_s: int | None) -> bool:
    """Whether the job has waited longer than the limit (None: nobody is ever over-aged)."""
    return age_limit_s is not None and now_s - max(job.submit_s, job.begin_s) > age_limit_s
