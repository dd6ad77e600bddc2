"""Giving held jobs to Slurm: on a clean stop, on `sns release --all`, when disabled, and by the watchdog.

It needs nothing but the jobs and our records: no nodes, no plan.
"""

from collections.abc import Iterable, Mapping

from slurm_sns.scheduler.observe.follow_up import handed_over
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import ObservedJob
from slurm_sns.scheduler.observe.reconcile import reconcile
from slurm_sns.scheduler.observe.records import JobRecord
from slurm_sns.scheduler.orders import reached
from slurm_sns.scheduler.ports import Executor, Log
from slurm_sns.scheduler.round_robin import round_robin
from slurm_sns.scheduler.settings import Settings


def release_held(
    jobs: Iterable[ObservedJob],
    records: Mapping[int, JobRecord],
    settings: Settings,
    now_s: float,
    *,
    executor: Executor,
    log: Log,
    reason: str,
) -> int:
    """Release every job that we hold, and unpin every placed one that Slurm has not started; the number of both.

    One of each user, then a second: nobody waits until a thousand of another's are released. Those that their
    owners hold stay held, without a placement of ours.

    Raises:
        Unreachable: slurmctld does not answer; jobs may still be held.
    """
    seen = list(jobs)
    found = reconcile(seen, records, settings, now_s).found
    released = 0
    for job in round_robin(seen, lambda job: job.user_id):
        what, record = found[job.id]
        changes = handed_over(job, what, record, reason)
        if not changes:
            continue
        # What follows a refusal is not sent: a job whose placement is still on it must not be released.
        answers = reached(executor.execute(changes))
        refusal = next((answer.refused for answer in answers if answer.refused is not None), None)
        if refusal is not None:
            log(f"job {job.id}: could not be released: {refusal}")
        elif what is not JobStatus.OWNER_HELD:
            released += 1
            log(f"job {job.id}: released to Slurm: {reason}")
    return released
