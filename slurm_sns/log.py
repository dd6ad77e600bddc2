"""A daemon's log: a lasting problem comes once, a flood is limited to so many lines a minute, texts are printable."""

import traceback
from collections.abc import Callable

#: Writes one line of the daemon's log.
Log = Callable[[str], None]

#: The most lines for one outage, should the text of the problem change again and again.
MOST_LINES = 10
#: In which `LimitedLog` counts its lines.
PERIOD_S = 60.0


def printable(text: str) -> str:
    """The text with `?` for each character that could begin a new line or be a command to a terminal."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


class Outage:
    """A problem as it lasts. The text `what_next` is added to each problem in the log."""

    def __init__(self, log: Log, what_next: str = "") -> None:
        self._log = log
        self._what_next = what_next
        self._logged: list[str] = []
        self._since_s = 0.0
        #: The problem as it was last met; empty while there is none.
        self.now = ""

    def met(self, problem: str, now_s: float) -> None:
        """Note that this problem was met; log it unless this outage has logged it already."""
        self.now = problem
        if not self._logged:
            self._since_s = now_s
        if problem not in self._logged and len(self._logged) < MOST_LINES:
            self._logged.append(problem)
            self._log(f"{problem}{self._what_next}")

    def met_defect(self, problem: Exception, now_s: float) -> None:
        """Note that a defect of our own was met; log its traceback once."""
        described = f"defect: {type(problem).__name__}: {problem}"
        if described not in self._logged and len(self._logged) < MOST_LINES:
            for line in traceback.format_exception(problem):
                for part in line.rstrip().splitlines():
                    self._log(part)
        self.met(described, now_s)

    def over(self, now_s: float) -> None:
        """Note that all works. If the outage was logged, log how long it lasted."""
        self.now = ""
        if self._logged:
            lasted_s = max(0.0, now_s - self._since_s)  # the clock may have been stepped back
            self._log(f"over after {lasted_s:.0f} s: {self._logged[0]}")
            self._logged.clear()


class LimitedLog:
    """A log that a flood cannot flood: at most `most` lines in `PERIOD_S`, then one says how many were left out.

    `steady` gives monotonic seconds.
    """

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
