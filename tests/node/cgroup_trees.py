"""Cgroups in plain directories, as Slurm lays them out; `KernelFiles` makes them answer as the kernel does.

It refuses and clamps what the kernel does (kernel/sched/core.c: cpu_weight_write_u64, sched_group_set_shares,
tg_set_cfs_bandwidth), gives a new cgroup its files, keeps a thread in one cgroup of a hierarchy, and removes no cgroup
that has threads.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from slurm_sns.node.cgroups import CgroupError, CgroupFiles, Names

#: The files of CPU time and what they hold at first, by the version of cgroups.
AT_FIRST = {
    1: {"cpu.shares": "1024", "cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000", "tasks": ""},
    2: {"cpu.weight": "100", "cpu.max": "max 100000", "cgroup.threads": ""},
}


def give_files(cgroup: Path, version: int) -> None:
    """The files of CPU time that the kernel gives a cgroup, unless they are there."""
    for name, text in AT_FIRST[version].items():
        if not (cgroup / name).exists():
            (cgroup / name).write_text(f"{text}\n" if text else "")


def make_v2(root: Path, job: str, scope: str = "slurmstepd.scope", limit: str = "max 100000") -> Path:
    """A job's cgroup with one step, as Slurm's cgroup/v2 makes it."""
    directory = root / "system.slice" / scope / job
    for below in ("", "step_0", "step_0/slurm", "step_0/user", "step_0/user/task_0"):
        (directory / below).mkdir(parents=True)
        (directory / below / "cgroup.threads").write_text("")
    (directory / "step_0" / "slurm" / "cgroup.procs").write_text("")
    (directory / "cpu.max").write_text(f"{limit}\n")
    give_files(directory, 2)
    (root / "cgroup.controllers").write_text("cpuset cpu memory\n")
    return directory


def make_v1(root: Path, job: int, hierarchy: str = "cpu,cpuacct", slurm: str = "slurm", user: int = 1000) -> Path:
    """A job's cgroup in one hierarchy, as Slurm's cgroup/v1 makes it."""
    directory = root / hierarchy / slurm / f"uid_{user}" / f"job_{job}"
    (directory / "step_batch" / "task_0").mkdir(parents=True)
    for cgroup in (directory, directory / "step_batch", directory / "step_batch" / "task_0"):
        (cgroup / "tasks").write_text("")
    if "cpu" in hierarchy.split(","):
        for cgroup in (directory, directory.parent, directory.parent.parent):
            give_files(cgroup, 1)
    return directory


class KernelFiles(CgroupFiles):
    """The tree; `before` is called before each change."""

    def __init__(self, root: Path, before: Callable[[], None] = lambda: None) -> None:
        super().__init__(root)
        self._before = before

    def write(self, names: Names, file: str, text: str) -> None:
        self._before()
        cgroup = self.root.joinpath(*names)
        if file == "tasks":
            for other in (self.root / names[0]).rglob("tasks"):
                threads = [line for line in other.read_text().split() if line != text]
                other.write_text("".join(f"{each}\n" for each in threads))
            with (cgroup / "tasks").open("a") as tasks:
                tasks.write(f"{text}\n")
            return
        if file == "cpu.weight" and not 1 <= int(text) <= 10_000:
            raise CgroupError(f"{file} cannot be used: Numerical result out of range")
        if file == "cpu.shares":
            text = str(min(max(2, int(text)), 1 << 18))
        if file == "cpu.max":
            quota, period = text.split()
            self._check(text, quota, period, "max")
        if file == "cpu.cfs_quota_us":
            self._check(text, text, self.read(names, "cpu.cfs_period_us"), "-1")
        if file == "cpu.cfs_period_us":
            self._check(text, self.read(names, "cpu.cfs_quota_us"), text, "-1")
        super().write(names, file, text)

    def make(self, names: Names) -> None:
        self._before()
        super().make(names)
        for depth in range(2, len(names) + 1):
            give_files(self.root.joinpath(*names[:depth]), 1)

    def remove(self, names: Names) -> None:
        self._before()
        cgroup = self.root.joinpath(*names)
        if cgroup.is_dir() and ((cgroup / "tasks").read_text() or self.directories(names)):
            raise CgroupError(f"{'/'.join(names)} cannot be used: Device or resource busy")
        shutil.rmtree(cgroup, ignore_errors=True)

    def _check(self, text: str, quota: str, period: str, unlimited: str) -> None:
        """The kernel's limits: quota and period at least 1 ms, a period at most 1 s."""
        if not 1_000 <= int(period) <= 1_000_000 or (quota.strip() != unlimited and int(quota) < 1_000):
            raise CgroupError(f"the kernel refuses {text!r}")
