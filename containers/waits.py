"""The mini cluster for a watcher: it says what it waits for, and how long that took the last time."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from cluster import Cluster

#: A wait that was shorter than this the last time is not announced, in seconds.
SHORT_S = 2.0


class Durations:
    """How long each wait took the last time: lines of a name, a tab and seconds, as timed.sh writes them.

    A file that cannot be read or written is no error: the waits are then announced as first ones.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def last_s(self, name: str) -> float | None:
        """The seconds that it took; None if that is not known."""
        return self._read().get(name)

    def note(self, name: str, seconds: float) -> None:
        """Remember the seconds that it took."""
        lines = [f"{each}\t{took_s:g}\n" for each, took_s in {**self._read(), name: round(seconds, 1)}.items()]
        written = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            written.write_text("".join(lines), encoding="utf-8")
            written.replace(self._path)
        except OSError:
            return

    def _read(self) -> dict[str, float]:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return {}
        return {
            name: float(number) for name, number in re.findall(r"^(.+)\t([0-9]+(?:\.[0-9]+)?)$", text, re.MULTILINE)
        }


def durations() -> Durations:
    """Those of this user, where timed.sh keeps them."""
    home = os.environ.get("HOME", "")
    cache = os.environ.get("XDG_CACHE_HOME") or (Path(home, ".cache") if home else os.devnull)
    return Durations(Path(cache, "slurm_sns", "durations"))


class TellingCluster(Cluster):
    """A cluster that prints a line before each wait. Waits of the same name are told apart by their order."""

    def __init__(self, console: Console, known: Durations) -> None:
        super().__init__()
        self._console, self._known = console, known
        self._waits: Counter[str] = Counter()

    def wait_for(self, what: str, holds: Callable[[], bool], timeout_s: float = 60, every_s: float = 0.15) -> float:
        """As for any cluster, with a line before it."""
        name = self.begin(what)
        took_s = super().wait_for(what, holds, timeout_s, every_s)
        self._known.note(name, took_s)
        return took_s

    def begin(self, what: str) -> str:
        """Print that a wait begins, and return the name under which `Durations` keeps it."""
        self._waits[what] += 1
        name = f"demo {self._waits[what]}: {what}"
        last_s = self._known.last_s(name)
        if last_s is None or last_s >= SHORT_S:
            said = "" if last_s is None else f" ({last_s:.0f} s the last time)"
            self._console.print(f"  waiting until {re.sub(r'^1 jobs end', 'the job ends', what)}{said}", style="dim")
        return name

    def watched(self, what: str, wait: Callable[[], None]) -> None:
        """Announce a wait that shows its own progress, carry it out, and note how long it took."""
        name, began = self.begin(what), time.monotonic()
        wait()
        self._known.note(name, time.monotonic() - began)
