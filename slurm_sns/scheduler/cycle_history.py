"""What the running scheduler shows of its last cycles: the last view, and how long the recent ones took."""

from collections import deque
from math import ceil

from slurm_sns.scheduler.answers.view import View

#: Ten minutes of cycles of one second.
CYCLES_KEPT = 600


class Recent:
    """The loop's thread writes it, the threads that answer requests read it: a view is replaced, never changed."""

    def __init__(self) -> None:
        self.view: View | None = None
        self.began_s = 0.0
        self._took_s: deque[float] = deque(maxlen=CYCLES_KEPT)

    def publish(self, view: View) -> None:
        """Take the view of a cycle that has just ended."""
        if self.view is None:
            self.began_s = view.at_s - view.took_s
        self._took_s.append(view.took_s)
        self.view = view

    def took_s(self, share: float) -> float:
        """The time within which this share of the recent cycles ended (nearest rank); 0 before the first."""
        times = sorted(self._took_s.copy())
        return times[max(0, ceil(share * len(times)) - 1)] if times else 0.0
