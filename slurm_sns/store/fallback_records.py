"""Our records for the watchdog and `sns release`: as far as the store can be read, within a few seconds.

Jobs must be released even if the store is broken, locked or hangs. Without its record, a job's own nice value and
memory are guessed from what Slurm shows. A job without a record and without our mark cannot be recognised as ours.
"""

import threading
import time
from collections.abc import Mapping

from slurm_sns.errors import SnsError
from slurm_sns.scheduler.observe.records import JobRecord
from slurm_sns.scheduler.outage_log import Outage
from slurm_sns.scheduler.ports import Log
from slurm_sns.store.history import StoredHistory
from slurm_sns.store.schema import open_store

#: Far below the five seconds in which the watchdog acts after the heartbeat's timeout, far above a slow disk's read.
DEADLINE_S = 2.0


class FallbackRecords:
    """The records of the store at `url`; while it does not answer, those that were read last. For one thread."""

    def __init__(self, url: str, log: Log, deadline_s: float = DEADLINE_S) -> None:
        self._url = url
        self._deadline_s = deadline_s
        self._known: Mapping[int, JobRecord] = {}
        self._problem = ""
        self._reading: threading.Thread | None = None
        self._silence = Outage(log, "; jobs are released without it")

    def load(self) -> Mapping[int, JobRecord]:
        """All records by job id."""
        if self._reading is None or not self._reading.is_alive():
            self._reading = threading.Thread(target=self._read, name="records", daemon=True)
            self._reading.start()
        self._reading.join(self._deadline_s)
        if self._reading.is_alive():
            self._silence.met(f"the store does not answer within {self._deadline_s:g} s", time.monotonic())
        elif self._problem:
            self._silence.met(self._problem, time.monotonic())
        else:
            self._silence.over(time.monotonic())
        return self._known

    def _read(self) -> None:
        try:
            engine = open_store(self._url)  # each time, because an admin may have replaced the file
            try:
                self._known, self._problem = StoredHistory(engine).load(), ""
            finally:
                engine.dispose()
        except Exception as problem:  # noqa: BLE001 - jobs are released whatever is wrong with the store; it is logged
            self._problem = str(problem) if isinstance(problem, SnsError) else repr(problem)
