"""The jobs as slurmctld shows them. Where reading all takes long, a look reads again only those that may have changed.

slurmctld takes a second to write 120,000 jobs, and shows the ids and states of all in a fiftieth of that (seen). A look
then asks for these, and reads a job again if it is new, if its state or the number of its waiting tasks has changed, or
if an order of ours has gone to it. What changes in a job without that, as by `scontrol update`, is seen when all are
read again: by the first look after `ALL_S`. So a job that this look has not read is read once more before an order goes
to it, and one that somebody has changed meanwhile gets none: its order was decided on what it no longer is.

Only our own library shows states. With pyslurm alone, and at smaller sites, each look reads all.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

#: Reading all jobs takes long from here on, some 25,000 jobs. Then all are read this often. Of fewer jobs than these
#: all are always read: a read of them that took long has waited for something else.
LONG_S, ALL_S, LEAST_JOBS = 0.25, 30.0, 10_000
#: So many jobs are read one by one, at most, in a look and before orders are sent. A look that needs more reads all.
MOST_AGAIN = 512
#: So many jobs are read side by side: most of the time each waits for slurmctld.
READERS = 4
#: What slurmctld changes in a job by itself. Whether somebody holds the job is seen by its priority, 0.
MOVING = frozenset({"priority", "state_reason", "start_time", "end_time", "scheduled_nodes"})


class SeenJobs:
    """The jobs of the last look. `binding` gives what reads them: `Jobs.load`, and `states` and `of` where it has them.

    Its methods raise what the binding raises: then nothing is forgotten of what has to be read again.
    """

    def __init__(
        self,
        binding: Callable[[], Any],
        steady: Callable[[], float] = time.monotonic,
        *,
        least_jobs: int = LEAST_JOBS,
    ) -> None:
        self._binding, self._steady, self._least_jobs = binding, steady, least_jobs
        #: As they were read last, and as the last look has shown them.
        self._records: dict[int, Any] = {}
        self._shown: Mapping[int, Any] = {}
        self._states: Mapping[int, bytes] = {}
        #: When all were read, and how long that took.
        self._read_s, self._took_s = 0.0, 0.0
        #: Those to which orders of ours have gone, or were held back: the next look reads them.
        self._unsure: set[int] = set()
        #: Those that the last look has read (None: all), and those that were read since.
        self._read_by_look: set[int] | None = None
        self._read_since: set[int] = set()

    def look(self) -> Mapping[int, Any]:
        """All jobs by id. Their ids and states are those of now."""
        jobs = self._binding().Jobs
        takes_long = self._took_s >= LONG_S and len(self._records) >= self._least_jobs
        if not takes_long or not hasattr(jobs, "states"):
            self._look_at_all(jobs)
            self._states = {}
            return self._shown
        states = jobs.states()  # before the jobs: what changes in between differs at the next look
        again = {job_id for job_id, state in states.items() if self._states.get(job_id) != state}
        again |= self._unsure & states.keys()
        if len(again) > MOST_AGAIN or self._steady() - self._read_s >= ALL_S:
            self._look_at_all(jobs)
        else:
            self._records = {job_id: record for job_id, record in self._records.items() if job_id in states}
            self._read(jobs, again)
            self._unsure, self._read_by_look, self._shown = set(), again, dict(self._records)
        self._states, self._read_since = states, set()
        return self._shown

    def outdated(self, job_ids: Iterable[int]) -> set[int]:
        """Those of these jobs to which no order may go: they are not as the last look has shown them, or too many.

        The next look reads all of these jobs again.
        """
        asked = list(dict.fromkeys(job_ids))
        self._unsure |= set(asked)
        if self._read_by_look is None:
            return set()
        doubtful = [job_id for job_id in asked if job_id not in self._read_by_look]
        unread = [job_id for job_id in doubtful if job_id not in self._read_since]
        if unread:
            self._read(self._binding().Jobs, unread[:MOST_AGAIN])
        left = set(unread[MOST_AGAIN:])
        return left | {each for each in doubtful if _differ(self._shown.get(each), self._records.get(each))}

    def _look_at_all(self, jobs: Any) -> None:
        self._read_all(jobs)
        self._read_by_look, self._shown = None, self._records

    def _read_all(self, jobs: Any) -> None:
        began_s = self._steady()
        self._records = jobs.load()
        self._read_s = self._steady()
        self._took_s, self._unsure = self._read_s - began_s, set()

    def _read(self, jobs: Any, job_ids: Collection[int]) -> None:
        """Read these jobs again; one that is gone is left out from now on. An array's id brings all its records."""
        if not job_ids:
            return
        with ThreadPoolExecutor(READERS) as readers:
            found = list(readers.map(jobs.of, job_ids))
        for job_id, records in zip(job_ids, found, strict=True):
            if job_id not in records:
                self._records.pop(job_id, None)
            self._records.update(records)
            self._read_since |= {job_id, *records}


def _differ(before: Any, after: Any) -> bool:
    """Whether somebody has changed the job between two reads of it."""
    if before is None or after is None:
        return True
    if before.raw == after.raw:
        return False
    return bool((before.priority == 0) != (after.priority == 0) or before.but(MOVING) != after.but(MOVING))
