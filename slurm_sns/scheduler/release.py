"""Releases held jobs to Slurm: on a clean stop, on `sns release --all`, under the kill switch, and for the watchdog.

That takes only the jobs and our records, neither nodes nor a plan.
"""

from collections.abc import Iterable, Iterator, Mapping

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
) -> Iterator[int]:
    """Release every job that we hold, and unpin every placed job that Slurm has not started; yield the id of each.

    Users take turns, one job each, so that no user waits until a thousand jobs of another are released. Jobs that
    their owners hold stay held, without our placement; they are not yielded.

    Raises:
        Unreachable: slurmctld does not answer; jobs may still be held.
    """
    seen = list(jobs)
    found = reconcile(seen, records, settings, now_s).found
    for job in round_robin(seen, lambda job: job.user_id):
        status, record = found[job.id]
        changes = handed_over(job, status, record, reason)
        if not changes:
            continue
        # After a refusal the rest is not sent: a job that still has our placement must not be released.
        answers = reached(executor.execute(changes))
        refusal = next((answer.refused for answer in answers if answer.refused is not None), None)
        if refusal is not None:
            log(f"job {job.id}: could not be released: {refusal}")
        elif status is not JobStatus.OWNER_HELD:
            log(f"job {job.id}: released to Slurm: {reason}")
            yield job.id
