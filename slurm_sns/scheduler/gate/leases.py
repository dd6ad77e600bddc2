"""Leases: until when a gate stands, and which gates are renewed now.

A gate is a lease: not renewed, it opens by itself, and the job is Slurm's. With N gated jobs a lease is at least two
hours, and long enough for 5 renewals a second. It is renewed when less than half of it is left. So that renewals are
spread evenly, each job has a phase, by its id alone, and its gate stands where time modulo half a lease equals the
phase: from the first renewal on, its gate moves by exactly half a lease, at its own moment.

No gate stands later than the last moment at which the job can still meet its deadline. A gate at the begin time that
the owner asked for stays there until that time is near.

Where the start of a job is estimated, and by the time limits it lies behind the lease, the gate stands there when it is
written next: `squeue --start` shows it. It stands at most `MOST_LEASE_S` ahead, as the longest lease. So if scheduler
and watchdog are both dead, such a job waits for up to twelve hours; `scheduler.estimates: false` keeps it at the lease.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, floor, inf

from slurm_sns.scheduler.gate.job_status import Status, own_begin_s
from slurm_sns.scheduler.observation import EMPTY_QUEUE, DatabaseQueue, ObservedJob
from slurm_sns.submit.record import Record
from slurm_sns.submit.table import first_lease_s

#: So much of a lease for each gated job: with renewals below half a lease these are 5 a second, each of which costs
#: slurmctld 0.31 ms and four to five lines of its log (measured).
LEASE_PER_JOB_S = 0.4
#: The longest lease: after it, a job that nobody renews has waited for half a day.
MOST_LEASE_S = 12 * 3600
#: Lease lengths are multiples of this, so that one job more or less does not move all phases.
LEASE_STEP_S = 600
#: Before its deadline a job needs its time limit and this: Slurm's own main pass runs once a minute.
DEADLINE_MARGIN_S = 60
#: Routine renewals a second: twice what `LEASE_PER_JOB_S` needs, so that what was put off is made up for.
MOST_PER_S = 10
#: Urgent renewals a second, of gates that have lapsed or will within a first lease: about half of the slowest rate
#: that was measured (880 a second at 10,000 jobs).
MOST_URGENT_PER_S = 400
#: No more than so many seconds are made up for at once.
MOST_INTERVAL_S = 10.0
#: While messages for slurmdbd pile up, only what lapses within this time is renewed.
LAPSES_SOON_S = 600
#: They pile up above this part of MaxDBDMsgs: each renewal adds one (seen), and a full queue loses starts of jobs.
MOST_OF_QUEUE = 0.25
#: The fraction of the golden ratio: its multiples spread consecutive ids evenly over [0, 1) (Weyl 1916; Knuth, The Art
#: of Computer Programming, vol. 3, section 6.4).
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Leases:
    """How long leases are: the first one, which the submit filter writes, and a later one.

    With `is_spread` a gate stands at its job's phase, otherwise a whole lease away.
    """

    first_s: int
    length_s: int
    is_spread: bool = True

    @property
    def half_s(self) -> int:
        """A lease is renewed when less than this is left."""
        return self.length_s // 2


def leases(heartbeat_timeout_s: float, gate_lease_s: float, gated_jobs: int) -> Leases:
    """The leases while there are so many gated jobs; `gate_lease_s` is the setting, two hours by default."""
    first_s = first_lease_s(heartbeat_timeout_s)
    wanted_s = min(max(gate_lease_s, LEASE_PER_JOB_S * gated_jobs), MOST_LEASE_S)
    in_steps_s = min(ceil(wanted_s / LEASE_STEP_S) * LEASE_STEP_S, MOST_LEASE_S)
    return Leases(first_s, max(in_steps_s, 2 * first_s))


def latest_s(job: ObservedJob) -> float:
    """The latest moment at which the job's gate may open: no limit without a deadline.

    A job with a deadline and without a time limit that can be read may not be gated at all.
    """
    if job.deadline_s is None:
        return inf
    needed_s = job.time_min_s or job.walltime_s
    return -inf if needed_s is None else job.deadline_s - needed_s - DEADLINE_MARGIN_S


#: Estimates a job's start by the time limits (Unix seconds); None: not known.
ByLimits = Callable[[int], float | None]


def no_estimates(_: int) -> None:
    """Where nothing is estimated."""


def next_gate_s(job: ObservedJob, now_s: float, lease: Leases, by_limits: ByLimits = no_estimates) -> int | None:
    """Where the job's gate stands if it is written now; None if no gate in the future fits before its deadline.

    The owner's own begin time is the gate if it is at least the first lease away; squeue then shows what was asked for.
    No gate opens before it, whatever the deadline. `by_limits` estimates the start of the job.
    """
    record = job.record
    own_s = None if record is None else own_begin_s(job, record, now_s)
    wanted_s = _at_phase_s(job.id, now_s, lease) if own_s is None else max(own_s, floor(now_s) + lease.first_s)
    if own_s is None and (start_s := by_limits(job.id)) is not None:
        wanted_s = max(wanted_s, min(floor(start_s), floor(now_s) + MOST_LEASE_S))
    gate_s = max(min(wanted_s, latest_s(job)), own_s or 0)  # what its owner wants needs no margin of ours
    return floor(gate_s) if gate_s >= floor(now_s) + 1 else None


def is_due(job: ObservedJob, record: Record, now_s: float, lease: Leases, by_limits: ByLimits = no_estimates) -> bool:
    """Whether the gate of a gated job is to be renewed now.

    The first renewal of a job waits a little for its estimated start: most of the first lease must be left for
    thousands of jobs that come at once.
    """
    if job.begin_s - now_s >= lease.half_s:  # nearly every job of a long queue
        return False
    own_s = own_begin_s(job, record, now_s)
    is_awaited = by_limits is not no_estimates and job.begin_s - now_s <= lease.first_s and by_limits(job.id) is None
    least_s: float = lease.half_s
    if own_s is not None:
        least_s = lease.first_s / 2
    elif is_awaited:
        least_s = lease.first_s * 3 / 4
    if job.begin_s - now_s >= least_s:
        return False
    gate_s = next_gate_s(job, now_s, lease, by_limits)
    return gate_s is not None and gate_s > job.begin_s


def renewals(
    jobs: Iterable[tuple[ObservedJob, Status]],
    now_s: float,
    lease: Leases,
    interval_s: float,
    queue: DatabaseQueue = EMPTY_QUEUE,
    *,
    by_limits: ByLimits = no_estimates,
) -> list[tuple[ObservedJob, int]]:
    """The jobs whose gates are renewed now, each with its new gate.

    First come the lapsed ones in the order of `jobs` (the queue's), then the next to lapse.
    `interval_s` is the time since the last call, which sets how many are renewed: at least one of each kind. A lapsed
    gate for which `next_gate_s` is None is not among them: the job has opened in time for its deadline.
    """
    lapsed: list[ObservedJob] = []
    urgent: list[ObservedJob] = []
    routine: list[ObservedJob] = []
    for job, status in jobs:
        record = job.record
        if record is None or status not in (Status.GATED, Status.LAPSED):
            continue
        if status is Status.LAPSED:
            lapsed.append(job)
        elif is_due(job, record, now_s, lease, by_limits):
            (urgent if job.begin_s - now_s <= lease.first_s else routine).append(job)
    if queue.length > MOST_OF_QUEUE * queue.most:
        routine = [job for job in routine if job.begin_s - now_s <= LAPSES_SOON_S]
        lease = replace(lease, is_spread=False)  # a whole lease each: nearly half as many renewals
    found: list[tuple[ObservedJob, int]] = []
    for due, per_s in (
        ([*lapsed, *sorted(urgent, key=_by_gate)], MOST_URGENT_PER_S),
        (sorted(routine, key=_by_gate), MOST_PER_S),
    ):
        gates = ((job, next_gate_s(job, now_s, lease, by_limits)) for job in due)
        most = max(1, floor(per_s * min(interval_s, MOST_INTERVAL_S)))
        found += islice(((job, gate_s) for job, gate_s in gates if gate_s is not None), most)
    return found


def _by_gate(job: ObservedJob) -> tuple[int, int]:
    return job.begin_s, job.id


def _at_phase_s(job_id: int, now_s: float, lease: Leases) -> int:
    """The last second up to a whole lease from now that is at the job's phase: more than half a lease away."""
    last_s = floor(now_s) + lease.length_s
    if not lease.is_spread:
        return last_s
    phase_s = floor((job_id * _GOLDEN) % 1 * lease.half_s)
    return last_s - (last_s - phase_s) % lease.half_s
