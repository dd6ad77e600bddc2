"""The watchdog, a process of its own: while the scheduler shows no sign of life, it frees the jobs that wait for it.

Without it their gates open by themselves, at the end of their leases. While the heartbeat is stale the submit filter
passes new jobs through, so freeing all once leaves no job gated. The watchdog still looks again, because a job may have
been submitted in the second before.
"""

from collections.abc import Callable

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.scheduler.dispatch.to_slurm import free_marked
from slurm_sns.scheduler.gate.orders import reached
from slurm_sns.scheduler.ports import Clock, Executor, State
from slurm_sns.scheduler.sharing.last_limits import last_limits
from slurm_sns.sharing.rules import SharingRules

#: When the wall clock moves this much against the steady clock, somebody has set the time: jitter is smaller.
LEAST_STEP_S = 2.0
#: After the time was set, a living scheduler has this long to write a heartbeat of the new time. Together with the
#: pause between two looks this is less than the five seconds in which jobs are freed.
STEP_GRACE_S = 3.0
#: What a watchdog says that is not on duty.
STANDS_BY = "standing by: slurmctld acts on another host, or has only just begun to act on this one"


def is_stale(heartbeat_s: float | None, now_s: float, timeout_s: float) -> bool:
    """Whether the scheduler counts as dead. A heartbeat far in the future is stale, too: the clock was stepped."""
    return heartbeat_s is None or not abs(now_s - heartbeat_s) <= timeout_s  # written this way, NaN is stale


class Watchdog:
    """Looks at the heartbeat, and frees gated and placed jobs while it is stale.

    It does so in every mode: the mode enforce may have gated jobs before the mode was changed. Where jobs share cores
    (`sharing`), it also gives those that are near their end their longest limits. With several controllers it does so
    only while `is_on_duty`.
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
        sharing: SharingRules | None = None,
        is_on_duty: Callable[[], bool] = lambda: True,
    ) -> None:
        self._state, self._executor, self._last_beat = state, executor, last_beat
        self._clock, self._log, self._timeout_s = clock, log, timeout_s
        self._sharing = sharing
        self._is_on_duty, self._was_on_duty = is_on_duty, True
        self._was_stale = False
        self._offset_s = self._clock.now() - self._clock.steady()
        self._stepped_s = float("-inf")

    @property
    def status(self) -> str:
        """What the last look found, in one line."""
        if not self._was_on_duty:
            return STANDS_BY
        return "no heartbeat: freeing gated jobs" if self._was_stale else "the scheduler lives"

    def look(self) -> int:
        """Look once at the heartbeat; return the number of jobs freed.

        A scheduler that lives again meanwhile keeps the jobs that still wait for it.
        """
        if not self._is_stale():
            return 0
        observation, now_s = self._state.observe(), self._clock.now()
        if not self._is_stale():  # the answer may have taken long, and may be of a backup that has taken over (seen)
            return 0
        freed = free_marked(
            observation.jobs,
            now_s,
            executor=self._executor,
            log=self._log,
            reason="the scheduler shows no sign of life",
        )
        number = 0
        for _ in freed:
            number += 1
            if not self._is_stale():
                return number
        if self._sharing is not None:
            for answer in reached(self._executor.execute(last_limits(observation, self._sharing, now_s))):
                told = "got the longest time limit that it may have: nobody keeps its virtual time"
                self._log(f"job {answer.order.job_id}: {told if answer.refused is None else answer.refused}")
        return number

    def _is_stale(self) -> bool:
        """Whether the scheduler counts as dead now. A change is logged.

        The heartbeat is read before the clock: a clock that is set between the two is seen.
        """
        beat_s, now_s = self._last_beat(), self._clock.now()
        stale = not self._was_stepped(now_s) and is_stale(beat_s, now_s, self._timeout_s)
        on_duty = self._is_on_duty()
        if on_duty != self._was_on_duty:
            self._log("slurmctld acts on this host: on duty" if on_duty else STANDS_BY)
            self._was_on_duty, self._was_stale = on_duty, False
        if not on_duty:
            return False
        if stale != self._was_stale:
            self._log("no heartbeat: freeing gated jobs" if stale else "heartbeat is back")
        self._was_stale = stale
        return stale

    def _was_stepped(self, now_s: float) -> bool:
        """Whether the time was set a moment ago: a living scheduler's heartbeat may then still show the old time."""
        steady_s = self._clock.steady()
        step_s = now_s - steady_s - self._offset_s
        self._offset_s += step_s
        if abs(step_s) >= LEAST_STEP_S:
            self._log(f"the clock was set {'forward' if step_s > 0 else 'back'} by {abs(step_s):.0f} s")
            self._stepped_s = steady_s
        return steady_s - self._stepped_s < STEP_GRACE_S

    def run(self, interval_s: float, is_stopping: Callable[[], bool]) -> None:
        """Look every `interval_s` until `is_stopping`. A problem is logged once; the next look tries again."""
        outage = Outage(self._log, "; trying again")
        while not is_stopping():
            try:
                self.look()
                outage.over(self._clock.now())
            except SnsError as problem:
                outage.met(str(problem), self._clock.now())
            except Exception as problem:  # noqa: BLE001 - the outermost loop: a defect must not end it
                outage.met_defect(problem, self._clock.now())
            self._clock.sleep(interval_s)
