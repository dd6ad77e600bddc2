"""The tries of jobs and what the policy remembers, in this process and in the store.

Of both only what has changed is written. Both may be lost, so the scheduler goes on while the store does not answer.
"""

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.scheduler.history import Remembering
from slurm_sns.scheduler.ports import Clock, History
from slurm_sns.scheduler.remembered import Try


class StoredTries:
    """The tries `now`, by job id, beside those that the store has; it begins with what an earlier scheduler stored.

    Raises:
        SnsError: the store does not answer at the start.
    """

    def __init__(self, history: History, remembering: Remembering, clock: Clock, log: Log) -> None:
        self._history, self._remembering, self._clock = history, remembering, clock
        self._outage = Outage(log)
        self._stored = dict(history.load())
        self.now: dict[int, Try] = dict(self._stored)
        #: Jobs whose tries were sent to the store without an answer: it may have them.
        self._unsure: set[int] = set()
        #: The policy's history as an earlier scheduler stored it; None if there is none.
        self.recalled = remembering.recall()
        self._memory = None if self.recalled is None else remembering.remember(self.recalled)
        self._stored_memory = self._memory

    @property
    def trouble(self) -> str:
        """What keeps them from being stored now; empty when nothing does."""
        return self._outage.now

    def remember(self, history: object) -> None:
        """Let the next `store` write this history of the policy."""
        self._memory = self._remembering.remember(history)

    def store(self) -> None:
        """Save the tries and the policy's memory; what cannot be written now is written by the next call."""
        changed = [
            each for job_id, each in self.now.items() if self._stored.get(job_id) != each or job_id in self._unsure
        ]
        gone = [job_id for job_id in {**self._stored, **dict.fromkeys(self._unsure)} if job_id not in self.now]
        memory = None if self._memory == self._stored_memory else self._memory
        if memory is None and not (changed or gone):
            return
        self._unsure.update(each.job_id for each in changed)
        try:
            self._history.save(changed, gone, memory)
        except SnsError as problem:
            self._outage.met(str(problem), self._clock.now())
            return
        self._outage.over(self._clock.now())
        self._unsure.clear()
        self._stored, self._stored_memory = dict(self.now), self._memory
