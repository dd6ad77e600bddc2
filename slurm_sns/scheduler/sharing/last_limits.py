"""What is left to do for jobs that share cores while no scheduler lives: nobody keeps their virtual time. Pure.

A job whose end is near gets the longest limit that it may have, once. A scheduler that lives again moves it back to
where its virtual time ends.
"""

from collections.abc import Iterable, Iterator
from math import floor

from slurm_sns.scheduler.gate.orders import GateOrder, move_limit, own_limit_s
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.sharing.limits import MINUTE_S, NEAR_S
from slurm_sns.sharing.rules import SharingRules


def last_limits(jobs: Iterable[ObservedJob], rules: SharingRules, now_s: float) -> Iterator[GateOrder]:
    """The orders that give these limits."""
    for job in jobs:
        own_s = own_limit_s(job)
        is_near = job.state is JobState.RUNNING and own_s is not None and job.end_s - now_s < NEAR_S
        if own_s is None or not is_near or rules.partitions.isdisjoint(job.partitions):
            continue
        longest_s = floor(rules.most_extension * own_s / MINUTE_S) * MINUTE_S
        order = move_limit(job, longest_s) if longest_s > (job.walltime_s or 0) else None
        if order is not None:
            yield order
