"""When the next cycle begins: at its time, or as soon as a job is submitted. A flood of these makes twice as many."""

from math import inf

from slurm_sns.scheduler.ports import Clock, Submissions


class CyclePauses:
    """The pauses between cycles. A submission may end one, once before each regular cycle, which stays where it is."""

    def __init__(self, clock: Clock, submissions: Submissions | None) -> None:
        self._clock, self._submissions = clock, submissions
        self._due_s = inf  # when the regular cycle is due before which an early one came

    def end(self) -> None:
        """A cycle begins: what has been submitted until now is looked at."""
        if self._submissions is not None:
            self._submissions.forget()

    def begin(self, pause_s: float, least_s: float) -> None:
        """Pause for so long, or less if a job is submitted. The early cycle is `least_s` apart from those around it."""
        now_s = self._clock.steady()
        due_s, was_early = min(now_s + max(0.0, pause_s), self._due_s), self._due_s < inf
        self._due_s = inf
        first_s, last_s = now_s + least_s, due_s - least_s
        if self._submissions is not None and not was_early and first_s < last_s:
            self._clock.sleep(least_s)
            if self._submissions.wait(last_s - self._clock.steady()):
                self._due_s = due_s
                return
        self._clock.sleep(max(0.0, due_s - self._clock.steady()))
