"""Which cache domain each CPU belongs to, from sysfs: /sys/devices/system/cpu/cpuN/cache/indexM."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from slurm_sns.node.counters.readings import numbers_of

CPUS = Path("/sys/devices/system/cpu")


class CacheDomains:
    """The caches of each CPU below `cpus`, by their ids."""

    def __init__(self, cpus: Path = CPUS) -> None:
        self._cpus = cpus

    def cores(self, cpus: Iterable[int] | None, level: int) -> Mapping[int, int]:
        """How many cores with these CPUs (None: all online) each cache of this level has; empty if sysfs does not say.

        Two CPUs that are threads of one core count once.
        """
        if cpus is None:
            cpus = [cpu for cpu, caches in self._caches_of.items() if caches]  # an offline one shows none
        found: Counter[int] = Counter()
        for cpu in {self._core_of.get(cpu, cpu): cpu for cpu in cpus}.values():
            if level not in self._caches_of.get(cpu, {}):
                return {}
            found[self._caches_of[cpu][level]] += 1
        return dict(found)

    @cached_property
    def _caches_of(self) -> Mapping[int, Mapping[int, int]]:
        """The ids of each CPU's caches, by level. The topology of a machine does not change."""
        found = {}
        for cpu, directory in self._directories():
            found[cpu] = dict[int, int]()
            for each in directory.glob("cache/index*"):
                with suppress(OSError, ValueError):
                    level, number = ((each / name).read_text(encoding="ascii") for name in ("level", "id"))
                    found[cpu][int(level)] = int(number)
        return found

    @cached_property
    def _core_of(self) -> Mapping[int, int]:
        """The first CPU of each CPU's core."""
        found = {}
        for cpu, directory in self._directories():
            with suppress(OSError, ValueError, IndexError):
                siblings = (directory / "topology" / "thread_siblings_list").read_text(encoding="ascii")
                found[cpu] = numbers_of(siblings)[0]
        return found

    def _directories(self) -> Iterator[tuple[int, Path]]:
        return ((int(path.name[3:]), path) for path in self._cpus.glob("cpu[0-9]*") if path.name[3:].isdigit())
