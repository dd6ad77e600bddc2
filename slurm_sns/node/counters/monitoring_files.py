"""The monitoring files of a resctrl group: bytes moved and bytes of cache occupied, by cache domain.

    GROUP/mon_data/mon_L3_XX/{mbm_total_bytes,mbm_local_bytes,llc_occupancy}

A file holds a number or a word (Documentation/filesystems/resctrl.rst): `Unavailable` while the hardware does not
count, `Unassigned` while no counter is assigned to the group (mbm_event mode, since 6.18), `Error`. A word makes the
value unknown. A number that goes back was reset, also when a monitoring group below this one was removed: the file
shows the sum over both.

Directories below mon_L3_XX (mon_sub_L3_YY, sub-NUMA clusters) are parts of the same sum; other monitored resources have
other names. Neither is read.
"""

import errno
import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from slurm_sns.node.counters.readings import CacheTraffic

#: All traffic, else that to local memory: the first that the machine offers.
MOVED = ("mbm_total_bytes", "mbm_local_bytes")
OCCUPIED = "llc_occupancy"

_DOMAIN = re.compile(r"mon_L3_(\d+)")

#: The group was removed.
_GONE = (errno.ENOENT, errno.ENODEV)

_MEANINGS = {
    "Unassigned": "no hardware counter is assigned to the group; valid: 1 in info/L3_MON/mbm_assign_on_mkdir",
    "Unavailable": "the hardware does not count the group now",
    "Error": "the hardware refuses to count the group",
}


class MonitoringFiles:
    """The monitoring files of the group at `directory`, kept open: a sample then costs one system call for each file.

    `domains` limits them to the cache domains that the group's jobs touch; without it all are read. `say` is told, in
    one line, why a value is unknown. A group that does not exist has no files, and of one that was removed all is
    unknown: nothing is said then.
    """

    def __init__(self, directory: Path, domains: Collection[int] | None, say: Callable[[str], None]) -> None:
        self._say = say
        self._opened: dict[int, tuple[int | None, int | None]] = {}
        for domain, path in sorted(_domains(directory / "mon_data").items()):
            if domains is None or domain in domains:
                moved = next((file for name in MOVED if (file := self._open(path / name)) is not None), None)
                self._opened[domain] = (moved, self._open(path / OCCUPIED))

    def read(self) -> Mapping[int, CacheTraffic]:
        """What the group used, by cache domain."""
        return {
            domain: CacheTraffic(self._number(moved), self._number(occupied))
            for domain, (moved, occupied) in self._opened.items()
        }

    def close(self) -> None:
        """Close the files."""
        for files in self._opened.values():
            for file in files:
                if file is not None:
                    os.close(file)
        self._opened.clear()

    def _open(self, path: Path) -> int | None:
        """The open file; None if there is none, or if it cannot be opened."""
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as problem:
            if problem.errno not in _GONE:
                self._say(f"{path.name} of a group cannot be read: {problem.strerror}")
            return None

    def _number(self, file: int | None) -> int | None:
        """The number that the file holds now; None for anything else."""
        if file is None:
            return None
        try:
            text = os.pread(file, 64, 0)  # at offset 0 the kernel makes the content anew
        except OSError as problem:
            if problem.errno not in _GONE:
                self._say(f"a monitoring file of a group cannot be read: {problem.strerror}")
            return None
        return self._value(text.decode("ascii", "replace").strip())

    def _value(self, text: str) -> int | None:
        """The number; None for a word."""
        if text.isascii() and text.isdigit():
            return int(text)
        self._say(f"a monitoring file of a group holds '{text}': {_MEANINGS.get(text, 'a number is expected')}")
        return None


def _domains(monitored: Path) -> dict[int, Path]:
    """The directories of the L3 domains, by cache id; none without monitoring."""
    try:
        found = list(monitored.iterdir())
    except OSError:
        return {}
    return {int(match[1]): path for path in found if (match := _DOMAIN.fullmatch(path.name))}
