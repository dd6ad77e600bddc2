"""Progress by CPU shares: in a second a running job does its share of a second's work, a suspended job none.

A job's work is its run time in the trace; the job ends when the integral of its share reaches its work. Nothing is
rounded: if shares and times are exact fractions, ends are exact.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf

from slurm_sns.model import Alternative, Job, Seconds
from slurm_sns.sim.progress.progress import Placement


@dataclass(slots=True)
class _Work:
    """What is left of a job's work at `since_s`, and the share at which it has advanced since."""

    placed: Placement
    left_s: Seconds
    since_s: Seconds
    share: Seconds


class Shared:
    """The progress of the jobs of one simulation."""

    def __init__(self, run_time: Callable[[Job, Alternative], Seconds]) -> None:
        """Start without jobs; `run_time` gives a job's work."""
        self._run_time = run_time
        self._running: dict[int, _Work] = {}

    def start(self, placed: Placement) -> Iterable[Placement]:
        """The job with its end at a share of 1; `pace` sets another share."""
        work_s = self._run_time(placed.job, placed.alternative)
        mine = self._running[placed.job.id] = _Work(placed, work_s, placed.start_s, 1)
        return (_timed(mine),)

    def pace(self, job_id: int, share: Seconds, now_s: Seconds) -> Placement:
        """The job with its end at this share from now on; at a share of 0 the end is infinite."""
        work = self._running[job_id]
        work.left_s -= work.share * (now_s - work.since_s)
        work.since_s, work.share = now_s, share
        return _timed(work)

    def move(self, job_id: int, placed: Placement) -> None:
        """Store the placement with the nodes on which the job goes on."""
        self._running[job_id].placed = placed

    def finish(self, placed: Placement) -> Iterable[Placement]:
        """Forget the job; no other job's end changes."""
        self._running.pop(placed.job.id, None)
        return ()


def _timed(work: _Work) -> Placement:
    """The job with its end; at a share of 1 nothing is divided, so that whole seconds stay whole."""
    left_s = work.left_s if work.share == 1 else work.left_s / work.share if work.share else inf
    work.placed = replace(work.placed, end_s=work.since_s + left_s)
    return work.placed
