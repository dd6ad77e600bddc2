"""Gives jobs to Slurm: under the kill switch, on a clean stop, on `sns release`, and for the watchdog.

That takes the jobs alone: what is ours on a job stands in its record.
"""

import threading
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


class ReleaseRequests:
    """The jobs whose owners have asked to leave them to Slurm. Threads of the socket add them, the loop takes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._job_ids: set[int] = set()

    def add(self, job_ids: Iterable[int]) -> None:
        """Let the next cycle leave these jobs to Slurm."""
        with self._lock:
            self._job_ids.update(job_ids)

    def take(self) -> frozenset[int]:
        """The jobs that were asked for since the last call."""
        with self._lock:
            taken = frozenset(self._job_ids)
            self._job_ids.clear()
        return taken
