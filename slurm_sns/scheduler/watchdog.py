"""The watchdog, a process of its own: when the scheduler shows no sign of life, it releases what is still held.

While the heartbeat is stale the submit filter passes new jobs through, so nothing is held any more after one release;
the watchdog still looks again, because a job may have been submitted in the second before.
"""

from collections.abc import Callable, Mapping

from slurm_sns.errors import SnsError
from slurm_sns.scheduler.observe.records import JobRecord
from slurm_sns.scheduler.outage import Outage
from slurm_sns.scheduler.ports import Clock, Executor, Log, State
from slurm_sns.scheduler.release import release_held
from slurm_sns.scheduler.settings import Settings

#: A difference between the wall clock and one that nobody sets which is no jitter but somebody who set the time.
LEAST_STEP_S = 2.0
#: After that a scheduler that lives has so long to beat by the new time: with the pause between two looks, less than
#: the five seconds in which jobs are released.
STEP_GRACE_S = 3.0


def is_stale(heartbeat_s: float | None, now_s: float, timeout_s: float) -> bool:
    """Whether the scheduler must be taken for dead. A heartbeat far in the future is stale too: a clock was stepped."""
    return heartbeat_s is None or not abs(now_s - heartbeat_s) <= timeout_s  # so written, nan is stale


class Watchdog:
    """Looks at the heartbeat every `interval_s`, and releases held jobs while it is stale.

    In every mode: an earlier enforce may have left some.
    """

    def __init__(
        self,
        state: State,
        executor: Executor,
        last_beat: Callable[[], float | None],
        *,
        clock: Clock,
        log: Log,
        timeout_s: float,
        settings: Settings,
        records: Callable[[], Mapping[int, JobRecord]] = dict,
    ) -> None:
        self._state, self._executor, self._last_beat = state, executor, last_beat
        self._clock, self._log, self._timeout_s = clock, log, timeout_s
        self._settings = settings
        self._records = records
        self._was_stale = False
        self._offset_s = self._clock.now() - self._clock.steady()
        self._stepped_s = float("-inf")

    def look(self) -> int:
        """One look; the number of jobs released."""
        now_s = self._clock.now()
        stale = not self._was_stepped(now_s) and is_stale(self._last_beat(), now_s, self._timeout_s)
        if stale != self._was_stale:
            self._log("no heartbeat: releasing held jobs" if stale else "heartbeat is back")
        self._was_stale = stale
        if not stale:
            return 0
        return release_held(
            self._state.observe().jobs,
            self._records(),
            self._settings,
            now_s,
            executor=self._executor,
            log=self._log,
            reason="the scheduler shows no sign of life",
        )

    def _was_stepped(self, now_s: float) -> bool:
        """Whether the time was set a moment ago: the heartbeat is then of another time, though the scheduler lives."""
        steady_s = self._clock.steady()
        step_s = now_s - steady_s - self._offset_s
        self._offset_s += step_s
        if abs(step_s) >= LEAST_STEP_S:
            self._log(f"the clock was set {'forward' if step_s > 0 else 'back'} by {abs(step_s):.0f} s")
            self._stepped_s = steady_s
        return steady_s - self._stepped_s < STEP_GRACE_S

    def run(self, interval_s: float, is_stopping: Callable[[], bool]) -> None:
        """Look until `is_stopping`; a problem is logged once, and tried again at the next look."""
        silence = Outage(self._log, "; trying again")
        while not is_stopping():
            try:
                self.look()
                silence.over(self._clock.now())
            except SnsError as problem:
                silence.met(str(problem), self._clock.now())
            except Exception as problem:  # noqa: BLE001 - the outermost loop: a defect must not end it
                silence.met_defect(problem, self._clock.now())
            self._clock.sleep(interval_s)
