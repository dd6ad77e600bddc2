"""Progress by shares of CPU: in a second a running job does as much of its work as its share, a suspended one none.

A job's work is its run time in the trace; it ends when the integral of its share reaches that. Nothing is rounded: with
a share and times that are fractions, ends are exact.
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
        """Nobody runs yet; `run_time` is a job's work."""
        self._run_time = run_time
        self._running: dict[int, _Work] = {}

    def start(self, placed: Placement) -> Iterable[Placement]:
        """The job with its end at a share of 1; `pace` says where it has another."""
        work_s = self._run_time(placed.job, placed.alternative)
        mine = self._running[placed.job.id] = _Work(placed, work_s, placed.start_s, 1)
        return (_timed(mine),)

    def pace(self, job_id: int, share: Seconds, now_s: Seconds) -> Placement:
        """The job with its end at this share from now on; with a share of 0 it has none."""
        work = self._running[job_id]
        work.left_s -= work.share * (now_s - work.since_s)
        work.since_s, work.share = now_s, share
        return _timed(work)

    def move(self, job_id: int, placed: Placement) -> None:
        """Let the job go on where it is now."""
        self._running[job_id].placed = placed

    def finish(self, placed: Placement) -> Iterable[Placement]:
        """Nobody else's end changes."""
        self._running.pop(placed.job.id, None)
        return ()


def _timed(work: _Work) -> Placement:
    """The job with its end. A whole number stays one: seconds of work at a share of 1 are not divided."""
    left_s = work.left_s if work.share == 1 else work.left_s / work.share if work.share else inf
    work.placed = replace(work.placed, end_s=work.since_s + left_s)
    return work.placed
