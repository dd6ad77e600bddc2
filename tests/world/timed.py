"""The processor time of a scheduler's cycles in the world, without that of what its ports ask."""

from time import process_time
from typing import Any

from slurm_sns.scheduler.answers.view import View
from slurm_sns.scheduler.loop import Scheduler


class TimedCalls:
    """A daemon, before its class: it counts the processor time of its calls; other processes may run meanwhile.

    `cycles_s` gets the processor time of each cycle of its `TimedScheduler`, without that of the calls.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.outside_s = 0.0
        self.cycles_s: list[float] = []

    def call(self, *given: Any, **named: Any) -> Any:
        """Call a port."""
        began_s = process_time()
        try:
            return super().call(*given, **named)  # type: ignore[misc] - a Caller's
        finally:
            self.outside_s += process_time() - began_s


class TimedScheduler(Scheduler):
    """The scheduler of a daemon whose `calls` are timed."""

    calls: TimedCalls

    def cycle(self) -> View:
        """One cycle."""
        calls = self.calls
        began_s = process_time() - calls.outside_s
        view = super().cycle()
        calls.cycles_s.append(process_time() - calls.outside_s - began_s)
        return view
