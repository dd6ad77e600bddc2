"""When the jobs of a node were seen last: which are here without a prolog, and which have gone without an epilog."""

from collections.abc import Collection, Iterable

from slurm_sns.node.agent.runs_here import RunsHere
from slurm_sns.node.agent.vanished import vanished
from slurm_sns.wire.values import RunId


class LastSeen:
    """What was seen, in seconds since the node's boot. A job that is not seen for `after_s` has gone."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        #: When each job that is here had a slurmstepd last, or began.
        self.seen_s: dict[int, float] = {}
        self._ended_s: dict[int, float] = {}
        #: The runs that are active here, as the controller says; None while it says nothing.
        self.active: frozenset[RunId] | None = None

    def begin(self, job_id: int, now_s: float) -> None:
        """A run of the job begins here, or an earlier agent has left it."""
        self.seen_s[job_id] = now_s
        self._ended_s.pop(job_id, None)

    def end(self, job_id: int, now_s: float) -> None:
        """A run of the job has ended: its slurmstepd may be there for a while longer."""
        self._ended_s[job_id] = now_s

    def strangers(self, there: Collection[int], here: RunsHere, now_s: float) -> list[RunId]:
        """Note that these jobs have a slurmstepd now; return the runs among them of which no prolog told.

        The restart count is that of the run that the controller calls active, or 0.
        """
        self._ended_s = {job: at_s for job, at_s in self._ended_s.items() if now_s - at_s < self._after_s}
        self.seen_s |= dict.fromkeys(there, now_s)
        restarts = {each.job_id: each.restarts for each in self.active or ()}
        unknown = sorted(job for job in set(there) - self._ended_s.keys() if here.of(job) is None)
        return [RunId(job, restarts.get(job, 0)) for job in unknown]

    def vanished(self, here: RunsHere, now_s: float) -> frozenset[int]:
        """The jobs whose runs have gone although no epilog said so."""
        return vanished([each.run for each in here.runs], self.seen_s, now_s, self._after_s, self.active)

    def keep(self, jobs: Iterable[int]) -> None:
        """Forget all jobs but these, which are here."""
        known = set(jobs)
        self.seen_s = {job: at_s for job, at_s in self.seen_s.items() if job in known}
