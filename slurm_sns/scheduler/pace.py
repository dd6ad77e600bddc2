"""How often something is done that takes long at a large site: for a tenth of the time, but every so often at least."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

#: Two times begin at least so many times as far apart as the first of them took.
APART = 10


def apart_s(took_s: float, most_s: float) -> float:
    """How far apart two times begin of what took so long; at most `most_s`."""
    return min(APART * took_s, most_s)


class CostPace:
    """When something is due again, by the clock `steady`; at most `most_s` after it was done."""

    def __init__(self, steady: Callable[[], float], most_s: float) -> None:
        self._steady, self._most_s = steady, most_s
        self._due_s = -inf

    def is_due(self) -> bool:
        """Whether it may be done now."""
        return self._steady() >= self._due_s

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Do it inside the block."""
        began_s = self._steady()
        yield
        self._due_s = began_s + apart_s(self._steady() - began_s, self._most_s)

    def hurry(self) -> None:
        """Let it be due at once: something is left to be done."""
        self._due_s = -inf
