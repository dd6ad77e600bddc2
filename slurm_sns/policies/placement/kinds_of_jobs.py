"""Results that are computed once for each kind of job, and used for every job of that kind.

Jobs are of one kind when they have equal alternatives, may use the same nodes and name the same heuristic. To compare
the values of 100,000 jobs takes longer than most of the computations, and most jobs of one kind share the very same
objects. So a kind is recognised by the identity of its objects, and by their values only if the objects are new.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from slurm_sns.model import Alternative, Job

Allowed = frozenset[str] | None
Kind = tuple[tuple[Alternative, ...], Allowed, str | None]

#: How many identities are remembered: 30 MB, besides the objects themselves. At this number all are forgotten.
MOST_IDENTITIES = 1 << 17

Result = TypeVar("Result")


class OncePerKind(Generic[Result]):
    """The results of a function of a job that depend on the job's kind alone."""

    def __init__(self, work_out: Callable[[Job], Result], most: int = MOST_IDENTITIES) -> None:
        """`work_out` is called with the first job of each kind; `most` is how many identities are remembered."""
        self._work_out = work_out
        self._most = most
        #: It also holds the objects themselves: as long as they are alive no other object has their identity.
        self._by_identity: dict[tuple[int, int, str | None], tuple[Result, tuple[Alternative, ...], Allowed]] = {}
        self._by_value: dict[Kind, Result] = {}

    def of(self, job: Job) -> Result:
        """The result for this job."""
        alternatives, allowed, heuristic = job.alternatives, job.allowed, job.heuristic
        identity = (id(alternatives), id(allowed), heuristic)
        known = self._by_identity.get(identity)
        if known is None:
            result = self._new(job)
            self._by_identity[identity] = (result, alternatives, allowed)
            return result
        return known[0]

    def _new(self, job: Job) -> Result:
        """The result for objects that were not met before."""
        if len(self._by_identity) >= self._most:
            self._by_identity.clear()
            self._by_value.clear()
        kind = (job.alternatives, job.allowed, job.heuristic)
        try:
            return self._by_value[kind]  # one look-up, because hashing takes most of the time
        except KeyError:
            result = self._by_value[kind] = self._work_out(job)
            return result
