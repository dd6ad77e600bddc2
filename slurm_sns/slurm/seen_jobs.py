"""The jobs as slurmctld shows them. Where reading all takes long, a look reads again those that may have changed.

slurmctld takes a second or more to write 120,000 jobs, and shows ids and states of all in a fiftieth of that (seen). A
look then asks for these, and reads a job again if it is new, if its state or the number of its waiting tasks has
changed, if an order of ours has gone to it, or if whoever looks watches it. What changes in a job without that, as by
`scontrol update`, is seen at its user's turn: looks read the jobs of one user after the other, all within `ALL_S` if
that takes a quarter of the time or less. So a job that this look has not read is read once more before an order goes to
it, and one that somebody has changed meanwhile gets none: its order was decided on what it no longer is.

Only our own library shows states. With pyslurm alone, and at smaller sites, each look reads all.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

#: Reading all jobs at once takes long from here on, some 25,000 jobs. Then each user has his turn within this time. Of
#: fewer jobs than these all are always read: a read of them that took long has waited for something else.
LONG_S, ALL_S, LEAST_JOBS = 0.25, 30.0, 10_000
#: For so much of the time the jobs of users are read, at most. With thousands of users a round then takes longer.
USERS_SHARE = 0.25
#: So many jobs are read one by one, at most, in a look and before orders are sent. Where more are needed, all are read.
MOST_AGAIN = 2048
#: All are read at once this often, too, so that it is noticed where that no longer takes long. It takes seconds.
MEASURED_S = 3600.0
#: So many jobs are read side by side: most of the time each waits for slurmctld.
READERS = 4
#: What slurmctld changes in a job by itself. Whether somebody holds the job is seen by its priority, 0.
MOVING = frozenset({"priority", "state_reason", "start_time", "end_time", "scheduled_nodes"})


class SeenJobs:
    """The jobs of the last look. `binding` gives what reads them: `Jobs.load`, and where it has them the others.

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
        self._states: Mapping[int, object] = {}
        #: How long slurmctld took to show all jobs, or their ids and states alone.
        self.shown_in_s = 0.0
        #: When all were read at once, and how long that took; when jobs were looked at last.
        self._all_read_s, self._took_s, self._looked_s = 0.0, 0.0, 0.0
        #: The users who have jobs, first those whose jobs were read longest ago, and how many jobs are due to be read.
        self._users: dict[int, None] = {}
        self._due = 0.0
        #: Those to which orders of ours have gone, or were held back: the next look reads them.
        self._unsure: set[int] = set()
        #: Those that the last look has read (None: all), and those that were read since.
        self._read_by_look: set[int] | None = None
        self._read_since: set[int] = set()

    def look(self, watched: Iterable[int] = ()) -> Mapping[int, Any]:
        """All jobs by id. Their ids and states are those of now, and the `watched` ones are as they are now."""
        jobs = self._binding().Jobs
        takes_long = self._took_s >= LONG_S and len(self._records) >= self._least_jobs
        if not takes_long or not hasattr(jobs, "states"):
            self._look_at_all(jobs)
            self._states = {}
            return self._shown
        began_s = self._steady()
        states = jobs.states()  # before the jobs: what changes in between differs at the next look
        self.shown_in_s = self._steady() - began_s
        again = {job_id for job_id, state in states.items() if self._states.get(job_id) != state}
        again |= {*self._unsure, *watched} & states.keys()
        if len(again) > MOST_AGAIN or began_s - self._all_read_s >= MEASURED_S:
            self._look_at_all(jobs)
        else:
            for job_id in self._records.keys() - states.keys():
                del self._records[job_id]
            self._read_since = set()
            self._read_users(jobs)
            self._read(jobs, again - self._read_since)
            self._unsure, self._read_by_look, self._shown = set(), self._read_since, dict(self._records)
        self._states, self._read_since = states, set()
        return self._shown

    def outdated(self, job_ids: Iterable[int]) -> set[int]:
        """Those of these jobs to which no order may go: they are not as the last look has shown them.

        The next look reads all of these jobs again.
        """
        asked = list(dict.fromkeys(job_ids))
        self._unsure |= set(asked)
        if self._read_by_look is None:
            return set()
        doubtful = [job_id for job_id in asked if job_id not in self._read_by_look]
        unread = [job_id for job_id in doubtful if job_id not in self._read_since]
        if len(unread) > MOST_AGAIN:
            self._read_all(self._binding().Jobs)
            self._read_since |= {*unread}
        else:
            self._read(self._binding().Jobs, unread)
        return {each for each in doubtful if _differ(self._shown.get(each), self._records.get(each))}

    def _look_at_all(self, jobs: Any) -> None:
        self._read_all(jobs)
        self._unsure, self._read_by_look, self._shown = set(), None, dict(self._records)

    def _read_all(self, jobs: Any) -> None:
        began_s = self._steady()
        self._records = jobs.load()
        self._looked_s = self._all_read_s = self._steady()
        self._took_s = self.shown_in_s = self._looked_s - began_s
        self._users = dict.fromkeys(jobs.users(self._records.values())) if hasattr(jobs, "users") else {}
        self._due = 0.0

    def _read_users(self, jobs: Any) -> None:
        """Read the jobs of those users who are due: of all jobs as large a part as of `ALL_S` has gone by."""
        before_s, self._looked_s = self._looked_s, self._steady()
        gone_by_s, count = self._looked_s - before_s, len(self._records)
        self._due = min(count, self._due + count * gone_by_s / ALL_S)
        while self._due > 0 and self._users and self._steady() - self._looked_s <= USERS_SHARE * gone_by_s:
            user = next(iter(self._users))
            records = jobs.of_user(user)
            del self._users[user]
            self._due -= max(1, len(records))
            self._keep(jobs, records)

    def _read(self, jobs: Any, job_ids: Collection[int]) -> None:
        """Read these jobs again; one that is gone is left out from now on. An array's id brings all its records."""
        if not job_ids:
            return
        with ThreadPoolExecutor(READERS) as readers:
            found = list(readers.map(jobs.of, job_ids))
        for job_id, records in zip(job_ids, found, strict=True):
            if job_id not in records:
                self._records.pop(job_id, None)
                self._read_since.add(job_id)
            self._keep(jobs, records)

    def _keep(self, jobs: Any, records: Mapping[int, Any]) -> None:
        self._records.update(records)
        self._read_since |= records.keys()
        for user in jobs.users(records.values()):
            self._users.setdefault(user)


def _differ(before: Any, after: Any) -> bool:
    """Whether somebody has changed the job between two reads of it."""
    if before is None or after is None:
        return True
    if before.raw == after.raw:
        return False
    return bool((before.priority == 0) != (after.priority == 0) or before.but(MOVING) != after.but(MOVING))
