"""A log that a flood of events cannot flood: so many lines a minute, then one that says how many were left out."""

from collections.abc import Callable

from slurm_sns.log import Log

PERIOD_S = 60.0


class LimitedLog:
    """Passes on at most `most` lines in `PERIOD_S`. `steady` gives monotonic seconds."""

    def __init__(self, log: Log, most: int, steady: Callable[[], float]) -> None:
        self._log, self._most, self._steady = log, most, steady
        self._began_s = steady()
        self._passed = self._left_out = 0

    def __call__(self, text: str) -> None:
        """Log the text, unless the minute is full."""
        self.tick()
        if self._passed < self._most:
            self._passed += 1
            self._log(text)
        else:
            self._left_out += 1

    def tick(self) -> None:
        """Begin a new minute if it is time, and say how many lines the last one left out."""
        if self._steady() - self._began_s < PERIOD_S:
            return
        if self._left_out:
            self._log(f"{self._left_out} more such lines were left out")
        self._began_s, self._passed, self._left_out = self._steady(), 0, 0
