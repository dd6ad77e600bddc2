"""Our records of jobs and what the policy remembers, in this process and in the store.

Of both only what has changed is written.
"""

from slurm_sns.scheduler.observe.follow_up import verified
from slurm_sns.scheduler.observe.records import JobRecord
from slurm_sns.scheduler.policy_history import Remembering
from slurm_sns.scheduler.ports import History, Log


class StoredRecords:
    """The records `now`, by job id, beside those that the store has; it begins with what an earlier scheduler stored.

    Raises:
        SnsError: the store does not answer.
    """

    def __init__(self, history: History, remembering: Remembering, log: Log) -> None:
        self._history, self._remembering = history, remembering
        self._stored = dict(history.load())
        self.now: dict[int, JobRecord] = {job_id: verified(record) for job_id, record in self._stored.items()}
        if self._stored:
            log(f"going on with {len(self._stored)} jobs on record from the last run")
        #: Jobs whose records were sent to the store without an answer: it may have them.
        self._unsure: set[int] = set()
        #: The policy's history as an earlier scheduler stored it; None if there is none.
        self.recalled = remembering.recall()
        self._memory = None if self.recalled is None else remembering.remember(self.recalled)
        self._stored_memory = self._memory

    def remember(self, history: object) -> None:
        """Let the next `store` write this history of the policy."""
        self._memory = self._remembering.remember(history)

    def store(self) -> None:
        """Save the records and the policy's memory; write only what changed since they were last saved.

        Raises:
            SnsError: the store does not answer; the next call writes what this one did not.
        """
        known = self._stored.get
        # Most records are the very same object as in the last cycle, which takes no comparison of their fields.
        changed = [
            record
            for job_id, record in self.now.items()
            if ((stored := known(job_id)) is not record and stored != record) or job_id in self._unsure
        ]
        gone = [job_id for job_id in {**self._stored, **dict.fromkeys(self._unsure)} if job_id not in self.now]
        self._unsure.update(record.job_id for record in changed)
        memory = None if self._memory == self._stored_memory else self._memory
        if memory is not None:
            self._history.save(changed, gone, memory)
            self._stored_memory = memory
        elif changed or gone:
            self._history.save(changed, gone)
        self._unsure.clear()
        self._stored = dict(self.now)
