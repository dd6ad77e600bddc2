"""What is left to do for jobs that share cores while no scheduler lives: nobody keeps their virtual time. Pure.

A job that is about to end gets the longest limit that it may have, once. A scheduler that lives again moves it back to
where its virtual time ends.
"""

from collections.abc import Iterable, Iterator
from math import floor, inf

from slurm_sns.scheduler.gate.orders import GateOrder, move_limit, own_limit_s
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob, ObservedReservation
from slurm_sns.sharing.limits import MINUTE_S
from slurm_sns.sharing.rules import SharingRules

#: So long before its end a job gets it; the watchdog looks every second.
SOON_S = 2 * MINUTE_S


def last_limits(observation: Observation, rules: SharingRules, now_s: float) -> Iterator[GateOrder]:
    """The orders that give these limits; none is beyond the beginning of a reservation of the job's nodes."""
    for job in observation.jobs:
        own_s = own_limit_s(job)
        is_near = job.state is JobState.RUNNING and own_s is not None and job.end_s - now_s < SOON_S
        if own_s is None or not is_near or rules.partitions.isdisjoint(job.partitions):
            continue
        longest_s = min(rules.most_extension * own_s, until_reserved_s(job, observation.reservations))
        limit_s = floor(longest_s / MINUTE_S) * MINUTE_S
        order = move_limit(job, limit_s) if limit_s > (job.walltime_s or 0) else None
        if order is not None:
            yield order


def until_reserved_s(job: ObservedJob, reservations: Iterable[ObservedReservation]) -> float:
    """How long the job may have run when a reservation of one of its nodes begins; infinite without one."""
    starts = (
        each.start_s - job.start_s
        for each in reservations
        if each.end_s > job.start_s and not each.nodes.isdisjoint(job.allocated)
    )
    return float(max(0, min(starts, default=inf)))
