"""What is remembered of jobs that share cores, also over a restart of the scheduler: progress, pauses, shared hours.

A pause is stored before it is sent, with the work that it loses, so the budget holds after a crash. Progress is stored
every minute and at a clean stop: after a crash the time since then counts with the yield that the job has by then.

A run that has ended is counted once, by day and account: the core time that Slurm charges for it, all its cores for as
long as it ran, and what it had of that. A pause is counted there when it is noted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from slurm_sns.log import Log
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.scheduler.history import KeptValue
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.ports import History
from slurm_sns.sharing.progress import RunProgress, SharingJob

#: The name under which the store keeps it, beside the policies' histories.
NAME = "sharing"
#: The time for which lost work counts.
DAY_S = 86_400
#: So many accounts of a day are told apart, by so many letters; what others had is counted together.
MOST_ACCOUNTS, MOST_LETTERS, OTHERS = 1000, 64, "others"
#: Shared time is kept for so many days.
DAYS_KEPT = 366


class Pause(NamedTuple):
    """A pause: when, of which job, and how much work it lost at most (core-seconds)."""

    at_s: float
    job_id: int
    lost_core_s: float


class SharedTime(NamedTuple):
    """The runs of an account that ended in a day (days since 1970, UTC): what Slurm charges, and what they had.

    `pauses` are those of the account's jobs in that day, with the work that they lost at most.
    """

    day: int
    account: str
    runs: int = 0
    charged_core_s: float = 0.0
    virtual_core_s: float = 0.0
    pauses: int = 0
    lost_core_s: float = 0.0

    def plus(self, run: RunProgress, cores: int) -> "SharedTime":
        """With one run more, of so many cores in all."""
        charged_s, virtual_s = self.charged_core_s + cores * run.ran_s, self.virtual_core_s + cores * run.virtual_s
        return self._replace(runs=self.runs + 1, charged_core_s=charged_s, virtual_core_s=virtual_s)

    def plus_pause(self, lost_core_s: float, number: int) -> "SharedTime":
        """With one pause more that lost so much; with `number` -1 without it again."""
        return self._replace(pauses=self.pauses + number, lost_core_s=self.lost_core_s + number * lost_core_s)


class JobProgress(NamedTuple):
    """The progress of a job. Slurm's submit time tells jobs apart that had the same id; a requeue sets it anew.

    `cores` are those of its present run, in all; 0 while it has none.
    """

    job_id: int
    first_submit_s: int
    submit_s: int
    account: str
    progress: RunProgress
    cores: int = 0

    def is_of(self, job: ObservedJob) -> bool:
        """Whether it is this job's."""
        return self.submit_s == job.submit_s or job.restarts > self.progress.restarts


@dataclass(frozen=True, slots=True)
class StoredSharing:
    """What is stored."""

    jobs: tuple[JobProgress, ...] = ()
    pauses: tuple[Pause, ...] = ()
    times: tuple[SharedTime, ...] = ()


FORM = HistoryFormat(1, StoredSharing)


class Book:
    """Progress by job, the pauses of the last day, and the shared time of the last year.

    Raises:
        SnsError: the store does not answer at the start.
    """

    def __init__(self, history: History, log: Log) -> None:
        self._kept = KeptValue(NAME, FORM, history, log, "no job is paused meanwhile")
        stored = self._kept.found if isinstance(self._kept.found, StoredSharing) else StoredSharing()
        self._jobs = {each.job_id: each for each in stored.jobs}
        self.pauses = stored.pauses
        self._times = {(each.day, each.account): each for each in stored.times}
        self._is_stored, self._day = True, -1

    @property
    def trouble(self) -> str:
        """What keeps it from being stored now; empty when nothing does."""
        return self._kept.trouble

    def of(self, job: ObservedJob) -> RunProgress:
        """The progress of this job."""
        return self._known(job).progress

    def submit_s(self, job: ObservedJob) -> int:
        """When the job was submitted first."""
        return self._known(job).first_submit_s

    def _known(self, job: ObservedJob) -> JobProgress:
        known = self._jobs.get(job.id)
        if known is not None and known.is_of(job):
            return known
        return JobProgress(job.id, job.submit_s, job.submit_s, job.account, RunProgress(job.restarts))

    def go_on(
        self, jobs: Iterable[ObservedJob], sharing: Mapping[int, SharingJob], parts: Mapping[int, float], now_s: float
    ) -> None:
        """The jobs have run since the last look with these yields, by job id; what has ended is counted, and forgotten.

        `sharing` are those that run. A run that ended since then had its last yield until its end.
        """
        after: dict[int, JobProgress] = {}
        day = int(now_s // DAY_S)
        for job in jobs:
            if job.id not in sharing and job.id not in self._jobs:
                continue
            known = self._known(job)
            has_run_anew = job.restarts != known.progress.restarts
            if known.cores and (has_run_anew or job.id not in sharing):
                ran_s = known.progress.ran_s if has_run_anew else float(job.ran_at(now_s))
                ended = known.progress.after(known.progress.restarts, ran_s, parts.get(job.id, 1.0))
                self._count(day, known, ended)
                known = known._replace(progress=ended, cores=0)
            if job.id in sharing:
                here = sharing[job.id]
                progress = known.progress.after(job.restarts, float(job.ran_at(now_s)), parts.get(job.id, 1.0))
                cores = here.cores * len(here.nodes)
                after[job.id] = known._replace(submit_s=job.submit_s, progress=progress, cores=cores)
            elif job.state is not JobState.ENDED:
                after[job.id] = known
        # A pause that lies ahead was noted before the clock was set back: it counts.
        pauses = tuple(each for each in self.pauses if each.at_s > now_s - DAY_S)
        self._is_stored = self._is_stored and after == self._jobs and pauses == self.pauses
        self._jobs, self.pauses = after, pauses
        if not self._is_stored and self._kept.is_due(now_s):
            self._store(now_s)

    def _count(self, day: int, job: JobProgress, ended: RunProgress) -> None:
        key = self._key(day, job.account)
        self._times[key] = self._time(key).plus(ended, job.cores)

    def _key(self, day: int, account: str) -> tuple[int, str]:
        """Where this account is counted on this day: users may name any account where none is enforced."""
        key = day, account[:MOST_LETTERS]
        if key not in self._times:
            if day != self._day:  # the first of its day
                self._day = day
                self._times = {each: time for each, time in self._times.items() if each[0] > day - DAYS_KEPT}
            if sum(each[0] == day for each in self._times) >= MOST_ACCOUNTS:
                return day, OTHERS
        return key

    def _time(self, key: tuple[int, str]) -> SharedTime:
        return self._times.get(key, SharedTime(*key))

    def _count_pause(self, pause: Pause, number: int) -> None:
        job = self._jobs.get(pause.job_id)
        key = self._key(int(pause.at_s // DAY_S), "" if job is None else job.account)
        self._times[key] = self._time(key).plus_pause(pause.lost_core_s, number)

    @property
    def lost_core_s(self) -> float:
        """What the pauses of the last day have cost at most."""
        return sum(each.lost_core_s for each in self.pauses)

    def add(self, pause: Pause) -> bool:
        """Note a pause and store it; False if the store does not take it: then it is not noted."""
        before = self.pauses
        self.pauses = (*before, pause)
        self._count_pause(pause, 1)
        if self._store(pause.at_s):
            return True
        self.pauses = before
        self._count_pause(pause, -1)
        return False

    def take_back(self, pause: Pause) -> None:
        """Forget a pause that Slurm has refused."""
        self.pauses = tuple(each for each in self.pauses if each != pause)
        self._count_pause(pause, -1)
        self._is_stored = False

    def store_rest(self, now_s: float) -> None:
        """Store what has changed since the last time, before a clean stop."""
        if not self._is_stored:
            self._store(now_s)

    def _store(self, now_s: float) -> bool:
        stored = StoredSharing(tuple(self._jobs.values()), self.pauses, tuple(self._times.values()))
        is_stored = self._kept.store(stored, now_s)
        self._is_stored = self._is_stored or is_stored
        return is_stored
