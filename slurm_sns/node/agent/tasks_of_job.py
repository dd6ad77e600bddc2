"""The threads of a job, the CPUs that it may use, and its cgroup: from Slurm's cgroups, else from its slurmstepds."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from slurm_sns.node.agent.processes import Processes
from slurm_sns.node.cgroup_files import CgroupError
from slurm_sns.node.cgroups import Cgroups


class Tasks(NamedTuple):
    """The threads of a job, ascending; its CPUs, none if nothing limits them; its directory in cgroup v2."""

    threads: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    directory: Path | None = None


class JobTasks(Protocol):
    """Finds the tasks of jobs on this node."""

    def of(self, jobs: Iterable[int]) -> Mapping[int, Tasks]:
        """The tasks of each of these jobs; a job that has none has no threads."""


class SlurmTasks:
    """Finds them in Slurm's cgroups, and by slurmstepd where Slurm makes none. Without cgroups all by slurmstepd."""

    def __init__(self, cgroups: Cgroups | None, processes: Processes, log: Callable[[str], None]) -> None:
        self._cgroups, self._processes, self._log = cgroups, processes, log
        self._said: set[str] = set()

    def of(self, jobs: Iterable[int]) -> Mapping[int, Tasks]:
        """See `JobTasks.of`."""
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
            return Tasks(self._cgroups.threads(cgroup), self._cgroups.cpus(cgroup), self._cgroups.directory(cgroup))
        except (CgroupError, ValueError) as problem:  # a number list that is none
            if str(problem) not in self._said and len(self._said) < 100:
                self._said.add(str(problem))
                self._log(f"the cgroups of jobs: {problem}")
            return Tasks()
