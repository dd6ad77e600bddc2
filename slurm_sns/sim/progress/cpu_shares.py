"""Progress by CPU shares: in a second a running job does its share of a second's work, a suspended job none.

A job's work is its run time in the trace; the job ends when the integral of its share reaches its work. This integral
is the job's virtual time. Nothing is rounded if shares and times are exact fractions. Ends that are floats are rounded
to nanoseconds: ends that should fall together do, whatever the rounding errors.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf

from slurm_sns.model import Alternative, Job, Seconds
from slurm_sns.sim.progress.progress import PlacedRun

#: Decimals of an end in seconds that is a float.
DECIMALS = 9


@dataclass(slots=True)
class _Work:
    """A job's work, what it had done at `since_s`, and the share at which it advances from then on."""

    placed: PlacedRun
    work_s: Seconds
    done_s: Seconds
    since_s: Seconds
    share: Seconds


class Shared:
    """The progress of the jobs of one simulation."""

    def __init__(self, run_time: Callable[[Job, Alternative], Seconds]) -> None:
        """Start without jobs; `run_time` gives a job's work."""
        self._run_time = run_time
        self._running: dict[int, _Work] = {}

    def start(self, placed: PlacedRun, done_s: Seconds = 0) -> Iterable[PlacedRun]:
        """The job with its end at a share of 1; `pace` sets another share. So much of its work is done already."""
        work_s = self._run_time(placed.job, placed.alternative)
        mine = self._running[placed.job.id] = _Work(placed, work_s, done_s, placed.start_s, 1)
        return (_timed(mine),)

    def pace(self, job_id: int, share: Seconds, now_s: Seconds, *, penalty_s: Seconds = 0) -> PlacedRun:
        """The job with its end at this share from now on; at a share of 0 the end is infinite.

        With `penalty_s` it makes no progress for so long first; a penalty that is under way goes on until its end.
        """
        work = self._running[job_id]
        begin_s = max(now_s + penalty_s, work.since_s)
        work.done_s, work.since_s, work.share = self.virtual_s(job_id, now_s), begin_s, share
        return _timed(work)

    def stop(self, job_id: int, now_s: Seconds) -> PlacedRun:
        """The job at a share of 0; a penalty that is under way is over."""
        work = self._running[job_id]
        work.done_s, work.since_s, work.share = self.virtual_s(job_id, now_s), now_s, 0
        return _timed(work)

    def virtual_s(self, job_id: int, now_s: Seconds) -> Seconds:
        """The job's virtual time."""
        work = self._running[job_id]
        return work.done_s + work.share * (now_s - work.since_s) if now_s > work.since_s else work.done_s

    def move(self, job_id: int, placed: PlacedRun) -> None:
        """Store the placement with the nodes on which the job goes on."""
        self._running[job_id].placed = placed

    def finish(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """Forget the job; no other job's end changes."""
        self._running.pop(placed.job.id, None)
        return ()


def _timed(work: _Work) -> PlacedRun:
    """The job with its end; at a share of 1 nothing is divided, so that whole seconds stay whole."""
    left_s = work.work_s - work.done_s
    end_s = work.since_s + (left_s if work.share == 1 else left_s / work.share if work.share else inf)
    work.placed = replace(work.placed, end_s=round(end_s, DECIMALS) if isinstance(end_s, float) else end_s)
    return work.placed
