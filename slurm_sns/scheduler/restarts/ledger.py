"""What restarts remember, also over a restart of the scheduler: jobs that have ended, and the restarts of 24 hours.

A restart is stored before it is sent, with the work that it loses: so no user's budget is exceeded after a crash.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from slurm_sns.log import Log
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.restarts.past_jobs import PastJob, PastJobs
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.history import KeptValue
from slurm_sns.scheduler.ports import History

#: The name under which the store keeps it, beside the policies' histories.
NAME = "restarts"
#: The time for which a user's lost work counts.
DAY_S = 86_400
HOUR_S = 3600


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
        self._rules = rules
        self._kept = KeptValue(NAME, FORM, history, log, "no suspended job is restarted meanwhile")
        stored = self._kept.found if isinstance(self._kept.found, StoredLedger) else StoredLedger()
        self.past = PastJobs(rules.window_s, only_suspended=rules.only_suspended, jobs=stored.past)
        self.restarted = stored.restarted
        self._is_stored = True

    @property
    def trouble(self) -> str:
        """What keeps it from being stored now; empty when nothing does."""
        return self._kept.trouble

    def learn(self, jobs: Iterable[PastJob], now_s: float) -> None:
        """Take in what has ended, forget what is old, and store it now and then."""
        # A restart that lies ahead was noted before the clock was set back: it counts.
        left = tuple(each for each in self.restarted if each.at_s > now_s - DAY_S)
        is_changed = self.past.learn(jobs, now_s) or left != self.restarted
        self.restarted, self._is_stored = left, self._is_stored and not is_changed
        if not self._is_stored and self._kept.is_due(now_s):
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
        is_stored = self._kept.store(StoredLedger(self.past.jobs, self.restarted), now_s)
        self._is_stored = self._is_stored or is_stored
        return is_stored
