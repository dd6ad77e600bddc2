"""RMIDs, and what is counted for each of them in each domain.

The files of a control group count its own tasks and those of its monitoring groups: a sum, which falls when a
monitoring group is removed.
"""

from collections.abc import Callable, Iterable
from errno import EBUSY, ENOSPC

from resctrl_emulator.machines import MonitoringType
from resctrl_emulator.refusal import Refusal

OCCUPANCY = "llc_occupancy"


class Rmids:
    """Hands out the RMIDs, least recently used first; RMID 0 is the root group's."""

    def __init__(self, kind: MonitoringType, now_s: Callable[[], float]) -> None:
        self._kind = kind
        self._now_s = now_s
        self._free: list[tuple[int, float]] = [(rmid, 0.0) for rmid in range(1, kind.rmids)]

    def take(self) -> int:
        """A free RMID.

        Raises:
            Refusal: ENOSPC when all are in use; EBUSY when the cache still holds lines of the free ones.
        """
        for at, (rmid, free_from_s) in enumerate(self._free):
            if free_from_s <= self._now_s():
                del self._free[at]
                return rmid
        raise Refusal(EBUSY if self._free else ENOSPC, "Out of RMIDs")

    def give_back(self, rmid: int) -> None:
        """Its group is gone."""
        self._free.append((rmid, self._now_s() + self._kind.limbo_s))


class Counters:
    """The counters of a machine, by RMID and domain."""

    def __init__(self, kind: MonitoringType) -> None:
        self.kind = kind
        self._bytes: dict[tuple[int, int], float] = {}
        self._occupancy: dict[tuple[int, int], float] = {}
        self._failing: dict[tuple[int, int, str], str] = {}

    def start(self, rmid: int) -> None:
        """A new group has it: count from 0."""
        for domain in self.kind.domains:
            self._bytes[rmid, domain] = 0.0

    def add(self, rmid: int, domain: int, count: float) -> None:
        """So many bytes have gone between cache and memory."""
        self._bytes[rmid, domain] = self._bytes.get((rmid, domain), 0.0) + count

    def set_occupancy(self, occupancy: dict[tuple[int, int], float]) -> None:
        """The bytes of the cache that each RMID holds now."""
        self._occupancy = occupancy

    def reset(self, domain: int | None = None) -> None:
        """Count from 0 again, as when the events are chosen anew."""
        for key in self._bytes:
            if domain is None or key[1] == domain:
                self._bytes[key] = 0.0

    def fail(self, rmid: int, domain: int, feature: str, text: str | None) -> None:
        """From now on the file reads this text (Unavailable, Error, Unassigned); None: it counts again."""
        if text is None:
            self._failing.pop((rmid, domain, feature), None)
        else:
            self._failing[rmid, domain, feature] = text

    def text(self, rmids: Iterable[int], domain: int, feature: str) -> str:
        """What a file in mon_data reads: a sum over the RMIDs that can be read."""
        counted, texts = [], []
        for rmid in rmids:
            failing = self._failing.get((rmid, domain, feature))
            if failing is not None:
                texts.append(failing)
                continue
            source = self._occupancy if feature == OCCUPANCY else self._bytes
            counted.append(int(source.get((rmid, domain), 0.0) // self.kind.unit_bytes) * self.kind.unit_bytes)
        return f"{sum(counted)}\n" if counted else f"{texts[0]}\n"
