"""Gives jobs to Slurm: under the kill switch, on a clean stop, on `sns release --all`, and for the watchdog.

That takes the jobs alone: what is ours on a job stands in its record.
"""

from collections.abc import Iterable, Iterator

from slurm_sns.log import Log
from slurm_sns.scheduler.gate.orders import free, reached, round_robin
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.ports import Executor


def free_marked(
    jobs: Iterable[ObservedJob], now_s: float, *, executor: Executor, log: Log, reason: str
) -> Iterator[int]:
    """Free every waiting job that has our record; yield the id of each that Slurm has changed.

    Users take turns, one job each, so that no user waits until a thousand jobs of another are freed. A job that
    somebody holds stays held.

    Raises:
        Unreachable: slurmctld does not answer; jobs may still be gated, until their leases end.
    """
    found = ((job, free(job, reason, now_s)) for job in round_robin(list(jobs), lambda job: job.user_id))
    orders = {order.job_id: order for _, order in found if order is not None}
    for answer in reached(executor.execute(orders.values())):
        if answer.refused is not None:
            log(f"job {answer.order.job_id}: could not be freed: {answer.refused}")
        else:
            log(f"job {answer.order.job_id}: left to Slurm: {reason}")
            yield answer.order.job_id
