"""The threads of a job, the CPUs that it may use, and its cgroup: from Slurm's cgroups, else from its slurmstepds.

A slurmstepd serves one step of a job and says which in its title: `slurmstepd: [41.0]`. A title is what any process
may call itself, so only those of root count. What descends from a slurmstepd belongs to its job. Nothing else that a
user can set (environment, names, groups) decides.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from slurm_sns.node.cgroups import TITLE, CgroupError, Cgroups

_LONGEST_TITLE = 64
_LONGEST_STAT = 1024  # a name of 16 bytes and some 50 numbers


class Processes:
    """The processes below `proc` (/proc). `trusted` is the user whose slurmstepds count: root."""

    def __init__(self, proc: Path = Path("/proc"), trusted: int = 0) -> None:
        self._proc, self._trusted = proc, trusted

    def slurmstepds(self) -> Mapping[int, int]:
        """The job of each slurmstepd, by process id."""
        found = {}
        for process in self._all():
            job_id = self._served_by(process)
            if job_id is not None:
                found[int(process)] = job_id
        return found

    def threads_of(self, jobs: Iterable[int]) -> Mapping[int, tuple[int, ...]]:
        """The threads of these jobs, ascending: those of their slurmstepds and of all that descends from them."""
        wanted = set(jobs)
        served = {process: job_id for process, job_id in self.slurmstepds().items() if job_id in wanted}
        if not served:
            return dict.fromkeys(wanted, ())
        found_parents = {process: self._parent(process) for process in map(int, self._all())}
        parents = {process: parent for process, parent in found_parents.items() if parent is not None}
        found: dict[int, list[int]] = {job_id: [] for job_id in wanted}
        for process in parents:
            job_id = _job_of(process, parents, served)
            if job_id is not None:
                found[job_id] += self._threads(process)
        return {job_id: tuple(sorted(threads)) for job_id, threads in found.items()}

    def _all(self) -> list[str]:
        return [name for name in os.listdir(self._proc) if name.isdigit()]  # noqa: PTH208 -- names alone, a third of the time

    def _served_by(self, process: str) -> int | None:
        directory = f"{self._proc}/{process}"
        try:
            with open(f"{directory}/cmdline", "rb", buffering=0) as file:  # noqa: PTH123 -- as above
                match = TITLE.match(file.read(_LONGEST_TITLE) or b"")
            # The owner of the directory is the process's effective user.
            return int(match[1]) if match and os.stat(directory).st_uid == self._trusted else None  # noqa: PTH116 -- as above
        except OSError:
            return None  # it has ended

    def _parent(self, process: int) -> int | None:
        try:
            with open(f"{self._proc}/{process}/stat", "rb", buffering=0) as file:  # noqa: PTH123 -- as above
                text = file.read(_LONGEST_STAT) or b""
        except OSError:
            return None
        # The name in parentheses may hold anything, parentheses too: state and parent follow the last one.
        fields = text.rpartition(b")")[2].split()
        return int(fields[1]) if len(fields) > 1 else None

    def _threads(self, process: int) -> list[int]:
        try:
            return [int(name) for name in os.listdir(f"{self._proc}/{process}/task")]  # noqa: PTH208 -- as above
        except OSError:
            return []


def _job_of(process: int, parents: Mapping[int, int], served: Mapping[int, int]) -> int | None:
    """The job whose slurmstepd is the process or its next ancestor."""
    seen = set()
    while process not in seen:
        if process in served:
            return served[process]
        seen.add(process)
        process = parents.get(process, process)
    return None


class Tasks(NamedTuple):
    """The threads of a job, ascending; its CPUs, none if nothing limits them; its directory in cgroup v2.

    `is_confined`: these are some only of the CPUs that Slurm's jobs have on this node.
    """

    threads: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    directory: Path | None = None
    is_confined: bool = False


class SlurmTasks:
    """Finds the tasks of jobs in Slurm's cgroups; by slurmstepd where Slurm makes none, or without cgroups."""

    def __init__(self, cgroups: Cgroups | None, processes: Processes, log: Callable[[str], None]) -> None:
        self._cgroups, self._processes, self._log = cgroups, processes, log
        self._said: set[str] = set()

    def of(self, jobs: Iterable[int]) -> Mapping[int, Tasks]:
        """The tasks of each of these jobs; a job that has none has no threads."""
        found = {job_id: self._in_cgroup(job_id) for job_id in jobs}
        without = [job_id for job_id, tasks in found.items() if not tasks.threads]
        if without:
            threads = self._processes.threads_of(without)
            found |= {job_id: found[job_id]._replace(threads=threads[job_id]) for job_id in without}
        return found

    def _in_cgroup(self, job_id: int) -> Tasks:
        if self._cgroups is None:
            return Tasks()
        try:
            cgroup = self._cgroups.find(job_id)
            if cgroup is None:
                return Tasks()
            cpus = self._cgroups.cpus(cgroup)
            is_confined = bool(cpus) and set(cpus) < set(self._cgroups.cpus_of_all(cgroup))
            return Tasks(self._cgroups.threads(cgroup), cpus, self._cgroups.directory(cgroup), is_confined)
        except (CgroupError, ValueError) as problem:  # a number list that is none
            if str(problem) not in self._said and len(self._said) < 100:
                self._said.add(str(problem))
                self._log(f"the cgroups of jobs: {problem}")
            return Tasks()
