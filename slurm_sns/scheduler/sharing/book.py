"""What is remembered of jobs that share cores, also over a restart of the scheduler: their progress, and pauses.

A pause is stored before it is sent, with the work that it loses, so the budget holds after a crash. Progress is stored
every minute: after a crash the time since then counts with the yield that the job has by then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from slurm_sns.log import Log
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.scheduler.history import KeptValue
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.ports import History
from slurm_sns.sharing.progress import Progress

#: The name under which the store keeps it, beside the policies' histories.
NAME = "sharing"
#: The time for which lost work counts.
DAY_S = 86_400


class Pause(NamedTuple):
    """A pause: when, of which job, and how much work it lost at most (core-seconds)."""

    at_s: float
    job_id: int
    lost_core_s: float


class JobProgress(NamedTuple):
    """The progress of a job. Slurm's submit time tells jobs apart that had the same id; a requeue sets it anew."""

    job_id: int
    first_submit_s: int
    submit_s: int
    progress: Progress

    def is_of(self, job: ObservedJob) -> bool:
        """Whether it is this job's."""
        return self.submit_s == job.submit_s or job.restarts > self.progress.restarts


@dataclass(frozen=True, slots=True)
class StoredSharing:
    """What is stored."""

    jobs: tuple[JobProgress, ...] = ()
    pauses: tuple[Pause, ...] = ()


FORM = HistoryFormat(1, StoredSharing)


class Book:
    """Progress by job, and the pauses of the last day. `most_lost_core_s` is what they may cost together.

    Raises:
        SnsError: the store does not answer at the start.
    """

    def __init__(self, history: History, log: Log) -> None:
        self._kept = KeptValue(NAME, FORM, history, log, "no job is paused meanwhile")
        stored = self._kept.found if isinstance(self._kept.found, StoredSharing) else StoredSharing()
        self._jobs = {each.job_id: each for each in stored.jobs}
        self.pauses = stored.pauses

    @property
    def trouble(self) -> str:
        """What keeps it from being stored now; empty when nothing does."""
        return self._kept.trouble

    def of(self, job: ObservedJob) -> Progress:
        """The progress of this job."""
        return self._known(job).progress

    def submit_s(self, job: ObservedJob) -> int:
        """When the job was submitted first."""
        return self._known(job).first_submit_s

    def _known(self, job: ObservedJob) -> JobProgress:
        known = self._jobs.get(job.id)
        if known is not None and known.is_of(job):
            return known
        return JobProgress(job.id, job.submit_s, job.submit_s, Progress(job.restarts))

    def go_on(self, jobs: Iterable[ObservedJob], parts: Mapping[int, float], now_s: float) -> None:
        """The jobs have run since the last look with these yields, by job id; what has ended is forgotten."""
        after: dict[int, JobProgress] = {}
        for job in jobs:
            if job.state is JobState.ENDED:
                continue
            known = self._known(job)
            if job.id in parts:
                progress = known.progress.after(job.restarts, float(job.ran_s), parts[job.id])
                after[job.id] = known._replace(submit_s=job.submit_s, progress=progress)
            elif job.id in self._jobs:
                after[job.id] = known
        # A pause that lies ahead was noted before the clock was set back: it counts.
        pauses = tuple(each for each in self.pauses if each.at_s > now_s - DAY_S)
        is_changed = after != self._jobs or pauses != self.pauses
        self._jobs, self.pauses = after, pauses
        if is_changed and self._kept.is_due(now_s):
            self._store(now_s)

    @property
    def lost_core_s(self) -> float:
        """What the pauses of the last day have cost at most."""
        return sum(each.lost_core_s for each in self.pauses)

    def add(self, pause: Pause) -> bool:
        """Note a pause and store it; False if the store does not take it: then it is not noted."""
        before = self.pauses
        self.pauses = (*before, pause)
        if self._store(pause.at_s):
            return True
        self.pauses = before
        return False

    def take_back(self, pause: Pause) -> None:
        """Forget a pause that Slurm has refused."""
        self.pauses = tuple(each for each in self.pauses if each != pause)

    def _store(self, now_s: float) -> bool:
        return self._kept.store(StoredSharing(tuple(self._jobs.values()), self.pauses), now_s)
