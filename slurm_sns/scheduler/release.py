"""Giving held jobs to Slurm: on a clean stop, on `sns release --all`, when disabled, and by the watchdog.

It needs nothing but the jobs and our records: no nodes, no plan.
"""

from collections.abc import Iterable, Mapping

from slurm_sns.errors import Refused
from slurm_sns.model import Release
from slurm_sns.scheduler.follow_up import Unpin, handed_over
from slurm_sns.scheduler.observed import ObservedJob
from slurm_sns.scheduler.ports import Log, Planner
from slurm_sns.scheduler.reconcile import reconcile
from slurm_sns.scheduler.records import JobRecord
from slurm_sns.scheduler.round_robin import round_robin
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.standing import Standing


def release_held(
    jobs: Iterable[ObservedJob],
    records: Mapping[int, JobRecord],
    settings: Settings,
    now_s: float,
    *,
    planner: Planner,
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
        try:
            for change in changes:
                send(change, job, planner)
        except Refused as refusal:
            log(f"job {job.id}: could not be released: {refusal}")
            continue
        if changes and what is not Standing.OWNER_HELD:
            released += 1
            log(f"job {job.id}: released to Slurm: {reason}")
    return released


def send(change: Unpin | Release, job: ObservedJob, planner: Planner) -> None:
    """Send one change of the state table.

    Raises:
        Refused: the job has started or ended in the meantime; the next look shows what it is now.
        Unreachable: slurmctld does not answer.
    """
    if isinstance(change, Unpin):
        planner.unpin(job.address, change)
    else:
        planner.release(change.job_id)
