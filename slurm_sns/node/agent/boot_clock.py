"""The clock of an agent: seconds since the node's boot (CLOCK_BOOTTIME), which no restart of the agent changes."""

import time
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class BootClock:
    """The time by this node."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def steady(self) -> float:
        """Seconds since the boot, which no change of the system time affects; suspended time counts."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id(path: Path = _BOOT_ID) -> str:
    """What the kernel calls this boot; without its file each start of an agent counts as one."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return f"unknown-{time.time_ns()}"
