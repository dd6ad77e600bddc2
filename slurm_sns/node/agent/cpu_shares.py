"""The CPU shares of the runs on a node, in force: a share below 1 is a limit in the job's cgroup."""

from collections.abc import Callable, Iterable

from slurm_sns.node.agent.runs_here import RunHere
from slurm_sns.node.cgroup_files import CgroupError
from slurm_sns.node.cgroups import Cgroups


class CpuShares:
    """The shares that this agent has set. What is refused is said once for each run, and tried again."""

    def __init__(self, cgroups: Cgroups | None, log: Callable[[str], None]) -> None:
        self._cgroups, self._log = cgroups, log
        self._set: dict[int, float] = {}
        self._said: dict[int, str] = {}

    def bring_about(self, run: RunHere, cpus: int) -> None:
        """Let the run have its share of so many CPUs on this node; 0 where their number is not known."""
        job_id = run.run.job_id
        if self._cgroups is None or run.cpu_share == self._set.get(job_id, 1.0):
            return
        try:
            cgroup = self._cgroups.provide(job_id)
            if cgroup is None or not cpus:
                return  # it has not begun, or its CPUs are not limited: a share of what?
            is_there = (
                self._cgroups.set_share(cgroup, run.cpu_share, cpus)
                if run.cpu_share < 1
                else self._cgroups.lift(cgroup)
            )
        except CgroupError as problem:
            if self._said.get(job_id) != str(problem):
                self._said[job_id] = str(problem)
                self._log(f"job {job_id}: its CPU share of {run.cpu_share:g} is not in force: {problem}")
            return
        if is_there:
            self._set[job_id] = run.cpu_share

    def forget(self, jobs: Iterable[int]) -> None:
        """These jobs have ended: remove what was made for them."""
        for job_id in jobs:
            self._said.pop(job_id, None)
            if self._set.pop(job_id, None) is not None and self._cgroups is not None:
                try:
                    self._cgroups.remove(job_id)
                except CgroupError as problem:
                    self._log(f"job {job_id}: the cgroup that limited its CPU time stays: {problem}")
