"""What restarts remember, also over a restart of the scheduler: jobs that have ended, and the restarts of 24 hours.

A restart is stored before it is sent, with the work that it loses: so no user's budget is exceeded after a crash.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.restarts.past_jobs import PastJob, PastJobs
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.history import recall, remember
from slurm_sns.scheduler.ports import History

#: The name under which the store keeps it, beside the policies' histories.
NAME = "restarts"
#: The time for which a user's lost work counts.
DAY_S = 86_400
HOUR_S = 3600
#: What is learnt of jobs that have ended is stored so often.
STORE_S = 60.0


class Restarted(NamedTuple):
    """A restart: when, of whose job, and how much work it lost at most (core-seconds). `is_proposal`: none was sent."""

    at_s: float
    job_id: int
    user_id: int
    lost_core_s: float
    is_proposal: bool


@dataclass(frozen=True, slots=True)
class StoredLedger:
    """What is stored."""

    past: tuple[PastJob, ...] = ()
    restarted: tuple[Restarted, ...] = ()


FORM = HistoryFormat(1, StoredLedger)


class Ledger:
    """The jobs that have ended lately (`past`), and the restarts of the last day (`restarted`).

    Raises:
        SnsError: the store does not answer at the start.
    """

    def __init__(self, history: History, rules: RestartRules, log: Log) -> None:
        self._history, self._rules, self._log = history, rules, log
        self._outage = Outage(log, "; no suspended job is restarted meanwhile")
        found = recall(history.load_memory(NAME), FORM, log)
        stored = found if isinstance(found, StoredLedger) else StoredLedger()
        self.past = PastJobs(rules.window_s, only_suspended=rules.only_suspended, jobs=stored.past)
        self.restarted = stored.restarted
        self._is_stored, self._stored_s = True, float("-inf")

    @property
    def trouble(self) -> str:
        """What keeps it from being stored now; empty when nothing does."""
        return self._outage.now

    def learn(self, jobs: Iterable[PastJob], now_s: float) -> None:
        """Take in what has ended, forget what is old, and store it now and then."""
        # A restart that lies ahead was noted before the clock was set back: it counts.
        left = tuple(each for each in self.restarted if each.at_s > now_s - DAY_S)
        is_changed = self.past.learn(jobs, now_s) or left != self.restarted
        self.restarted, self._is_stored = left, self._is_stored and not is_changed
        if not self._is_stored and not 0 <= now_s - self._stored_s < STORE_S:
            self._store(now_s)

    def has_proposed(self, job_id: int, since_s: float) -> bool:
        """Whether a restart of this job has been proposed since then."""
        return any(each.is_proposal and each.job_id == job_id and each.at_s >= since_s for each in self.restarted)

    def allows(self, restart: Restarted) -> bool:
        """Whether the owner's restarts, or proposals, of the last day cost at most the limit with this one."""
        same = (each for each in self.restarted if each.is_proposal is restart.is_proposal)
        before_s = sum(each.lost_core_s for each in same if each.user_id == restart.user_id)
        return before_s + restart.lost_core_s <= self._rules.lost_core_hours_per_user_day * HOUR_S

    def add(self, restart: Restarted) -> bool:
        """Note the restart, and store it; False if the store does not take it: then it is not noted."""
        before = self.restarted
        self.restarted = (*before, restart)
        if self._store(restart.at_s):
            return True
        self.restarted = before
        return False

    def take_back(self, restart: Restarted) -> None:
        """Forget a restart that Slurm has refused."""
        self.restarted = tuple(each for each in self.restarted if each != restart)
        self._is_stored = False

    def _store(self, now_s: float) -> bool:
        kept = remember(NAME, FORM, StoredLedger(self.past.jobs, self.restarted), self._log)
        problem = "" if kept.text else "what is known of them cannot be written as JSON"
        if not problem:
            try:
                self._history.save((), (), kept)
            except SnsError as refusal:
                problem = str(refusal)
        if problem:
            self._outage.met(f"restarts: {problem}", now_s)
            return False
        self._outage.over(now_s)
        self._is_stored, self._stored_s = True, now_s
        return True
