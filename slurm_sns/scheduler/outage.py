"""A problem that lasts, in few lines of the log: one when it begins, one when it changes, one when it is over."""

import traceback

from slurm_sns.scheduler.ports import Log

#: A problem that never reads the same twice is cut short after so many lines.
MOST_LINES = 10


class Outage:
    """What does not work at the moment; `what_next` is said after each problem."""

    def __init__(self, log: Log, what_next: str = "") -> None:
        self._log = log
        self._what_next = what_next
        self._said: list[str] = []
        self._since_s = 0.0
        #: The problem as it was met the last time; empty while there is none.
        self.now = ""

    def met(self, problem: str, now_s: float) -> None:
        """It does not work, for this reason."""
        self.now = problem
        if not self._said:
            self._since_s = now_s
        if problem not in self._said and len(self._said) < MOST_LINES:
            self._said.append(problem)
            self._log(f"{problem}{self._what_next}")

    def met_defect(self, problem: Exception, now_s: float) -> None:
        """A defect of ours: with its traceback, once."""
        said = f"defect: {type(problem).__name__}: {problem}"
        if said not in self._said and len(self._said) < MOST_LINES:
            for line in traceback.format_exception(problem):
                for part in line.rstrip().splitlines():
                    self._log(part)
        self.met(said, now_s)

    def over(self, now_s: float) -> None:
        """It works; said when it did not the last time."""
        self.now = ""
        if self._said:
            lasted_s = max(0.0, now_s - self._since_s)  # the clock may have been stepped back
            self._log(f"over after {lasted_s:.0f} s: {self._said[0]}")
            self._said.clear()
