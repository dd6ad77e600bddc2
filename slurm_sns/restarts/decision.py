"""The decision on one suspended job: its expected remaining completion time where it is, and elsewhere.

Where it is: how long it stays suspended, and what is left to run. Elsewhere, from the beginning: the wait there, the
suspensions to expect there, and the whole run. A job with checkpoints repeats what it has run since the last one, at
most. Where the planner has a place for it now, it does not wait. The smallest sum wins; among equal ones, staying, then
the first in the order given.

Source: Cost-based dynamic job rescheduling (2010), equations 2 to 4. Ours: a place that is known, the expected end of
the jobs that hold the cores, checkpoints, the least gain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from slurm_sns.model import Seconds
from slurm_sns.restarts.past_jobs import RecentAverages


class Basis(StrEnum):
    """Where the wait, and the time in suspension, of a term come from."""

    PLACE = "place"
    """It has a place now, and does not wait."""
    PREEMPTORS = "preemptors"
    """The jobs that hold its cores are expected to end."""
    PARTITION = "partition"
    """The averages of the partition."""
    SITE = "site"
    """The averages of all partitions."""


@dataclass(frozen=True, slots=True)
class SuspendedJob:
    """A suspended job: it is expected to run for `run_s` in all, and has run for `ran_s`.

    `resumes_in_s`: when the jobs that hold its cores are expected to end, None if nobody knows. `checkpoint_s`: how
    often it writes checkpoints, None for never. All in seconds.
    """

    partition: str
    run_s: Seconds
    ran_s: Seconds
    resumes_in_s: Seconds | None = None
    checkpoint_s: Seconds | None = None

    @property
    def left_s(self) -> Seconds:
        """What is left to run."""
        return max(self.run_s - self.ran_s, 0)

    @property
    def lost_s(self) -> Seconds:
        """How much of its run a restart loses at most."""
        return self.ran_s if self.checkpoint_s is None else min(self.ran_s, self.checkpoint_s)


@dataclass(frozen=True, slots=True)
class Term:
    """What the remaining completion time in one partition is expected to be, in seconds.

    `nodes` is the place that the planner found there, empty for none.
    """

    partition: str
    basis: Basis
    wait_s: Seconds
    suspended_s: Seconds
    run_s: Seconds
    nodes: tuple[str, ...] = ()

    @property
    def total_s(self) -> Seconds:
        """The sum."""
        return self.wait_s + self.suspended_s + self.run_s


@dataclass(frozen=True, slots=True)
class RestartDecision:
    """`stays` is the term of staying, `others` are those of restarts, in the order in which ties are broken."""

    stays: Term
    others: tuple[Term, ...]
    least_gain_s: Seconds

    @property
    def best(self) -> Term | None:
        """The best of the restarts; None if there is none."""
        return min(self.others, key=lambda term: term.total_s, default=None)

    @property
    def restart(self) -> Term | None:
        """The restart that wins; None: the job stays."""
        best = self.best
        if best is None or best.total_s >= self.stays.total_s:
            return None
        return best if self.stays.total_s - best.total_s >= self.least_gain_s else None


def decide(
    job: SuspendedJob,
    averages: Mapping[str, RecentAverages | None],
    places: Sequence[tuple[str, tuple[str, ...]]],
    least_gain_s: Seconds,
) -> RestartDecision | None:
    """The decision; None where nothing is known by which to decide: the job stays.

    `averages` are by partition. `places` are the partitions in which it may restart, each with the nodes that the
    planner has for it there now, empty for none.
    """
    stays = _staying(job, averages.get(job.partition))
    if stays is None:
        return None
    terms = (_restarting(job, name, averages.get(name), nodes) for name, nodes in places)
    return RestartDecision(stays, tuple(term for term in terms if term is not None), least_gain_s)


def _staying(job: SuspendedJob, here: RecentAverages | None) -> Term | None:
    if job.resumes_in_s is not None:
        return Term(job.partition, Basis.PREEMPTORS, 0, job.resumes_in_s, job.left_s)
    if here is None:
        return None
    return Term(job.partition, _basis(here), 0, here.suspended_s, job.left_s)


def _restarting(job: SuspendedJob, partition: str, there: RecentAverages | None, nodes: tuple[str, ...]) -> Term | None:
    run_s = job.run_s if job.checkpoint_s is None else job.left_s + job.lost_s
    if nodes:
        # A partition without samples counts with 0, as one with room does in the paper's replays.
        suspended_s = 0 if there is None or there.is_of_site else there.suspended_s
        return Term(partition, Basis.PLACE, 0, suspended_s, run_s, nodes)
    if there is None:
        return None
    return Term(partition, _basis(there), there.wait_s, there.suspended_s, run_s)


def _basis(found: RecentAverages) -> Basis:
    return Basis.SITE if found.is_of_site else Basis.PARTITION
