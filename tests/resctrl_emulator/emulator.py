"""An emulated machine: a tree, the programs that run on it, a clock, and faults that are to happen.

Time passes before every access: what a program has counted up to then, it has counted under the tree as it was.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from resctrl_emulator.machines import MachineType
from resctrl_emulator.programs import Programs
from resctrl_emulator.rules import Tree
from resctrl_emulator.worlds import World


class EmulatedClock:
    """Time passes when it is told to."""

    def __init__(self) -> None:
        """It begins at 0."""
        self.now_s = 0.0

    def __call__(self) -> float:
        """Seconds since the start."""
        return self.now_s


@dataclass
class Fault:
    """The next `times` accesses of that kind (write, make, remove, read) to a path are refused."""

    path: str
    access: str
    number: int
    message: str
    times: int = 1


class Emulator:
    """An emulated machine."""

    def __init__(
        self, machine: MachineType, world: World | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """A fresh mount on this machine."""
        self.clock = clock
        self._seen_s = clock()
        self.tree = Tree(machine, world, clock)
        self.programs = Programs(self.tree)
        self.faults: list[Fault] = []

    def catch_up(self) -> None:
        """Let the time pass that has passed by the clock."""
        now_s = self.clock()
        self.programs.advance(now_s - self._seen_s)
        self._seen_s = now_s

    def advance(self, seconds: float) -> None:
        """Set an emulated clock forward.

        Raises:
            TypeError: the clock is real.
        """
        if not isinstance(self.clock, EmulatedClock):
            raise TypeError("the clock is real; valid: --clock emulated")
        self.catch_up()
        self.clock.now_s += seconds
        self.catch_up()

    def check_fault(self, path: str, access: str) -> None:
        """Refuse an access that is to be refused.

        Raises:
            Refusal: as the fault says.
        """
        for fault in self.faults:
            if fault.times > 0 and fault.access == access and fault.path.strip("/") == path.strip("/"):
                fault.times -= 1
                self.tree.refuse(fault.number, fault.message)
