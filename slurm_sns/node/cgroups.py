"""The CPU time of jobs by cgroups: weights, and a quota in each period, set, read back and lifted again.

A share is a part of the CPUs that the job asked for on this node: 0.25 of 8 is the time of 2 CPUs. cgroup v2 has it in
`cpu.max`, v1 in `cpu.cfs_quota_us` and `cpu.cfs_period_us` (Documentation/admin-guide/cgroup-v2.rst,
scheduler/sched-bwc.rst). A weight (`cpu.weight`, `cpu.shares`) counts among siblings, and only where they want more CPU
time than there is. On v2 all jobs are siblings. On v1 those of one user are, and so are the users (`weigh_users`).

Where Slurm puts a job (cgroup.conf(5), cgroup_v2.html; src/plugins/cgroup/v1/xcgroup.c, v2/cgroup_v2.c):

    v2  SLICE/[NODE_]slurmstepd.scope/job_ID      SLICE is system.slice (CgroupSlice's default); NODE_ with
        SLICE/[NODE_]slurmstepd.scope/SLUID       --enable-multiple-slurmd, as Debian builds it. The SLUID names the job
                                                  since 26.05, unless cgroup.conf says CgroupJobIdPaths=yes (26.05.2).
    v1  HIERARCHY/slurm[_NODE]/uid_U/job_ID       Slurm uses cpuacct (JobAcctGatherType=jobacct_gather/cgroup) and never
                                                  cpu. A hierarchy may have both (cpu,cpuacct); where cpu is one apart,
                                                  quotas need a cgroup of our own there (`provide`).

All four were seen on 26.05.5. A SLUID does not contain the job's id; without it a job is found by its slurmstepd,
which runs in step_*/slurm below the job and is titled `slurmstepd: [ID.STEP]`; only root can put a process there.

No symbolic link is followed below the root: each part of a path is opened in the one before. A job's cgroup that has
vanished is no error: the job has ended.
"""

import errno
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path
from typing import NamedTuple

from slurm_sns.errors import SnsError
from slurm_sns.node.counters.readings import numbers_of

#: The path of a cgroup: the names from the root down.
Names = tuple[str, ...]

#: The kernel's limits in microseconds (tg_set_cfs_bandwidth, kernel/sched/core.c): quota and period at least 1 ms, a
#: period at most 1 s. The default period is 100 ms.
LEAST_QUOTA_US = 1_000
PERIOD_US = 100_000
LONGEST_PERIOD_US = 1_000_000


class Weights(NamedTuple):
    """The file of a cgroup's weight, the most that it takes, what it has at first, and what we write for a CPU."""

    file: str
    most: int
    at_first: int
    of_a_cpu: int

    def text(self, cpus: int) -> str:
        """The weight of so many CPUs; 0: what the cgroup had at first."""
        return str(min(cpus * self.of_a_cpu, self.most) or self.at_first)


#: Weights of jobs, by the version of cgroups (MAX_SHARES in kernel/sched/sched.h; CGROUP_WEIGHT_MAX in
#: include/linux/cgroup.h): those of 1 to 1,000 CPUs, 1,024 on v1, are in proportion.
JOB_WEIGHTS = {1: Weights("cpu.shares", 1 << 18, 1024, 256), 2: Weights("cpu.weight", 10_000, 100, 10)}
#: On v1 that of a user's jobs together, up to 16,384 CPUs, and that of all jobs in a cgroup of our own. Outside of it
#: are the single threads of the system, each of which weighs 1024: as much as a CPU here.
USER_WEIGHTS = Weights("cpu.shares", 1 << 18, 1024, 16)
NODE_WEIGHTS = Weights("cpu.shares", 1 << 18, 1024, 1024)

#: A SLUID as Slurm writes it (src/common/sluid.c): s and 13 digits of Crockford's base 32.
SLUID = re.compile(r"s[0-9A-HJKMNP-TV-Z]{13}")

#: A job's directory on cgroup v1.
_JOB = re.compile(r"job_(\d{1,10})")

#: Where cgroups divide and limit the CPU time of jobs, by the version of cgroups.
_LIMITED = {
    1: "a cgroup of our own in cpu; cpu and cpuacct in one hierarchy; or cgroup v2",
    2: "the controller cpu in the job's cgroup (EnableControllers=yes in cgroup.conf)",
}

#: What a slurmstepd calls itself: for batch scripts `41.batch`, for external steps `41.extern`; a job of several
#: components has an id for each.
TITLE = re.compile(rb"slurmstepd: \[(\d{1,10})\.")

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC

#: The cgroup was removed: opening it, and using a file of it that is open.
_GONE = (errno.ENOENT, errno.ENODEV)


class CgroupError(SnsError):
    """A cgroup could not be used."""


class NoSuchFile(CgroupError):
    """The cgroup exists, but has no such file: its controller is not enabled."""


class CgroupGone(CgroupError):
    """The cgroup does not exist, or no longer."""


class ThreadStays(CgroupError):
    """The thread cannot be put into a cgroup: it has ended, or it is a real-time thread on cgroup v1.

    A new cgroup there has no time for those (`cpu.rt_runtime_us`, CONFIG_RT_GROUP_SCHED).
    """


class CgroupFiles:
    """The tree at `root`. Each method raises `CgroupGone` if the cgroup does not exist, and `CgroupError` otherwise."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def exists(self, names: Names) -> bool:
        """Whether the cgroup exists; never `CgroupGone`."""
        try:
            with self._at(names, ""):
                return True
        except CgroupGone:
            return False

    def directories(self, names: Names) -> list[str]:
        """The names of the directories in the cgroup, sorted."""
        with self._at(names, "") as directory, os.scandir(directory) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    def read(self, names: Names, file: str) -> str:
        """What the file in the cgroup holds.

        Raises:
            NoSuchFile: the cgroup has no such file.
        """
        with self._at(names, file) as directory:
            opened = os.open(file, os.O_RDONLY | _FILE, dir_fd=directory)
            with os.fdopen(opened, encoding="ascii", errors="replace") as content:
                return content.read()

    def write(self, names: Names, file: str, text: str) -> None:
        """Write the line with one system call, as the kernel wants it.

        Raises:
            NoSuchFile: the cgroup has no such file.
        """
        with self._at(names, file) as directory:
            opened = os.open(file, os.O_WRONLY | os.O_TRUNC | _FILE, dir_fd=directory)
            try:
                os.write(opened, f"{text}\n".encode("ascii"))
            except OSError as problem:
                if problem.errno in (errno.EINVAL, errno.ESRCH):
                    error = ThreadStays if file == "tasks" else CgroupError
                    raise error(f"the kernel refuses {text!r} in {'/'.join((*names, file))}") from None
                raise
            finally:
                os.close(opened)

    def make(self, names: Names) -> None:
        """Make the cgroup, and those above it, unless it exists."""
        for depth in range(1, len(names) + 1):
            if not self.exists(names[:depth]):
                with self._at(names[: depth - 1], "") as directory, suppress(FileExistsError):
                    os.mkdir(names[depth - 1], 0o755, dir_fd=directory)

    def remove(self, names: Names) -> None:
        """Remove the cgroup, which must have no threads and none below it."""
        with self._at(names[:-1], names[-1]) as directory:
            os.rmdir(names[-1], dir_fd=directory)

    @contextmanager
    def _at(self, names: Names, file: str) -> Iterator[int]:
        """The open directory of the cgroup. `file` is what is used in it, for errors."""
        try:
            directory = os.open(self.root, _DIRECTORY)
        except OSError as problem:
            raise CgroupError(f"the cgroup root {self.root} cannot be read: {problem.strerror}") from None
        is_open = False
        try:
            for name in names:
                below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
                os.close(directory)
                directory = below
            is_open = True
            yield directory
        except OSError as problem:
            raise self._error(problem, names, file if is_open else "") from None
        finally:
            os.close(directory)

    def _error(self, problem: OSError, names: Names, file: str) -> CgroupError:
        """The error of ours for the kernel's."""
        path = "/".join((*names, file) if file else names)
        if problem.errno in _GONE:
            # A file that is missing in a cgroup that exists is another matter.
            is_file = problem.errno == errno.ENOENT and file and self.exists(names)
            return (
                NoSuchFile(f"{path} does not exist below {self.root}") if is_file else CgroupGone(f"no cgroup {path}")
            )
        if problem.errno in (errno.ELOOP, errno.ENOTDIR):
            return CgroupError(f"{path} below {self.root} is, or lies below, a symbolic link or a file; it is not used")
        return CgroupError(f"{path} below {self.root} cannot be used: {problem.strerror}")


class CpuLimit(NamedTuple):
    """So much CPU time in each period; without a quota there is no limit."""

    quota_us: int | None
    period_us: int

    @property
    def cpus(self) -> float | None:
        """The limit as a number of CPUs; None without limit."""
        return None if self.quota_us is None else self.quota_us / self.period_us


class JobCgroup(NamedTuple):
    """A job's cgroup: the version of cgroups, and the directories from the root down to it."""

    version: int
    names: Names


def limit_of(share: float, cpus: int) -> CpuLimit:
    """The limit for a share (above 0, at most 1) of so many CPUs.

    The period is 100 ms, and longer where the quota would be below 1 ms: 0.2 % of a CPU is 1 ms in 500 ms.

    Raises:
        CgroupError: there is no such share, or it is below the kernel's least limit, 1 ms in 1 s.
    """
    if not 0 < share <= 1 or cpus < 1:
        raise CgroupError(f"a share of {share} of {cpus} CPUs cannot be set; valid: above 0, at most 1; 1 CPU or more")
    most, least = share * cpus, LEAST_QUOTA_US / LONGEST_PERIOD_US
    if most < least:
        raise CgroupError(f"a share of {share} of {cpus} CPUs is {most:g} CPUs; the kernel's least limit is {least:g}")
    period_us = min(LONGEST_PERIOD_US, max(PERIOD_US, ceil(LEAST_QUOTA_US / most)))
    return CpuLimit(max(LEAST_QUOTA_US, round(most * period_us)), period_us)


class Cgroups:
    """The cgroups below `root` (/sys/fs/cgroup) of the jobs that Slurm runs on `node`, its NodeName.

    `processes` is where the processes are (/proc); `files` are those below the root.
    """

    def __init__(
        self, root: Path, node: str, *, processes: Path = Path("/proc"), files: CgroupFiles | None = None
    ) -> None:
        if node in ("", ".", "..") or "/" in node:
            raise CgroupError(f"{node!r} cannot be a part of a cgroup's path; valid: a name without /")
        self._files, self._node, self._processes = files or CgroupFiles(root), node, processes

    def find(self, job_id: int) -> JobCgroup | None:
        """The cgroup of the job with this number (SLURM_JOB_ID, for a task of an array its own); None if it has none.

        On cgroup v1 without a hierarchy that limits CPU time, another of the job's cgroups: it has the job's threads.

        Raises:
            CgroupError: the root cannot be read.
        """
        names = self._find_v2(job_id) if self._version() == 2 else self._find_v1(job_id)
        return None if names is None else JobCgroup(self._version(), names)

    def provide(self, job_id: int) -> JobCgroup | None:
        """The job's cgroup in which its CPU time is set: Slurm's, or one of our own where Slurm makes none.

        Ours has the name of Slurm's, and the threads that the job has now; their children follow. Threads of a later
        step need another call. It stays until `remove`. None if Slurm has no cgroup of the job: it has ended.

        Raises:
            CgroupError: as `find`, and where the cgroup cannot be made.
        """
        apart = self._apart()
        if apart is None:
            return self.find(job_id)
        slurms = self._find_v1(job_id, but=apart)
        if slurms is None:
            return None
        own = JobCgroup(1, (apart, *slurms[1:]))
        self._files.make(own.names)
        there = set(self.threads(own))
        for thread in self.threads(JobCgroup(1, slurms)):
            if thread not in there:
                with suppress(ThreadStays):
                    self._files.write(own.names, "tasks", str(thread))
        return own

    def remove(self, job_id: int) -> bool:
        """Remove the cgroup that `provide` has made for a job that has ended; False if there is none.

        Raises:
            CgroupError: it still has threads.
        """
        apart = self._apart()
        names = None if apart is None else self._find_v1(job_id, only=apart)
        if names is None:
            return False
        try:
            self._files.remove(names)
            for depth in (3, 2):  # its user's and Slurm's, unless another job is there
                if not self._files.directories(names[:depth]):
                    self._files.remove(names[:depth])
        except CgroupGone:
            pass  # somebody was faster
        return True

    def own(self) -> frozenset[int]:
        """The jobs for which `provide` has made a cgroup that is still there.

        Raises:
            CgroupError: the root cannot be read.
        """
        apart = self._apart()
        return frozenset() if apart is None else frozenset(job for _, jobs in self._users(apart) for job in jobs)

    def limit(self, job: JobCgroup) -> CpuLimit:
        """The job's present limit, as the kernel has it.

        Raises:
            CgroupGone: the cgroup has vanished.
            CgroupError: the cgroup has no limit of CPU time, or it cannot be read.
        """
        try:
            if job.version == 2:
                quota, period = self._files.read(job.names, "cpu.max").split()
            else:
                quota = self._files.read(job.names, "cpu.cfs_quota_us").strip()
                period = self._files.read(job.names, "cpu.cfs_period_us")
        except NoSuchFile as missing:
            raise CgroupError(f"{missing}: CPU time cannot be limited there; valid: {_LIMITED[job.version]}") from None
        return CpuLimit(None if quota in ("max", "-1") else int(quota), int(period))

    def set_weight(self, job: JobCgroup, cpus: int) -> bool:
        """Weigh the job by so many CPUs (0: as before any weight was set); False if the cgroup has vanished.

        On cgroup v1 it counts among the jobs of one user: `weigh_users` is to follow.

        Raises:
            CgroupError: there are no weights in the cgroup.
        """
        return self._weigh(job.names, JOB_WEIGHTS[job.version], cpus, job.version)

    def weigh_users(self, cpus: Mapping[int, int]) -> None:
        """On cgroup v1, weigh each user by the CPUs of all their jobs; nothing on v2, where jobs lie side by side.

        `cpus` is by job; a job that is not in it counts as one CPU. To be called when a job begins, changes or ends.

        Raises:
            CgroupError: there are no weights in the cgroup.
        """
        hierarchy = self._limiting()
        if hierarchy is None:
            return
        total: Counter[Names] = Counter()
        for user, jobs in self._users(hierarchy):
            needed = sum(cpus.get(job, 1) for job in jobs)
            if needed:
                self._weigh(user, USER_WEIGHTS, needed, 1)
                total[user[:-1]] += needed
        if hierarchy == self._apart():
            for slurm, needed in total.items():
                self._weigh(slurm, NODE_WEIGHTS, needed, 1)

    def set_share(self, job: JobCgroup, share: float, cpus: int) -> bool:
        """Let the job have this share of the time of so many CPUs on this node; False if the cgroup has vanished.

        Raises:
            CgroupError: the share cannot be set (see `limit_of`), or the kernel refuses it.
        """
        return self._set(job, limit_of(share, cpus))

    def lift(self, job: JobCgroup) -> bool:
        """Take the limit off the job; False if the cgroup has vanished.

        Raises:
            CgroupError: the kernel refuses it.
        """
        return self._set(job, CpuLimit(None, PERIOD_US))

    def threads(self, job: JobCgroup) -> tuple[int, ...]:
        """The ids of the job's threads, also of its slurmstepd, ascending; none if the cgroup has vanished.

        Raises:
            CgroupError: a cgroup of the job cannot be read.
        """
        file = "cgroup.threads" if job.version == 2 else "tasks"
        found: set[int] = set()
        unread = [job.names]
        while unread:
            names = unread.pop()
            try:
                found.update(int(word) for word in self._files.read(names, file).split())
                unread += [(*names, name) for name in self._files.directories(names)]
            except (CgroupGone, NoSuchFile):
                continue  # a step has ended, or a cgroup that was made this very moment
        return tuple(sorted(found))

    def cpus(self, job: JobCgroup) -> tuple[int, ...]:
        """The CPUs that the job may use; none if nothing limits them, or if the cgroup has vanished.

        Raises:
            CgroupError: the cgroup cannot be read.
        """
        return self._cpuset(job.version, job.names)

    def cpus_of_all(self, job: JobCgroup) -> tuple[int, ...]:
        """The CPUs that all of Slurm's jobs on the node may use together; none if nothing limits them.

        Raises:
            CgroupError: the cgroup cannot be read.
        """
        return self._cpuset(job.version, job.names[:2])  # a user's on v1 has the CPUs of that user's jobs alone

    def directory(self, job: JobCgroup) -> Path | None:
        """The directory by which perf events count the job; None on cgroup v1, where Slurm makes none."""
        return self._files.root.joinpath(*job.names) if job.version == 2 else None

    def _version(self) -> int:
        """The version of cgroups at the root; 1 also for a hybrid, as Slurm's `CgroupPlugin=autodetect` takes it."""
        return 2 if (self._files.root / "cgroup.controllers").is_file() else 1

    def _find_v2(self, job_id: int) -> Names | None:
        """The directories down to the job, in the scope of this node or in that of a single slurmd."""
        for scope in (f"{self._node}_slurmstepd.scope", "slurmstepd.scope"):
            parents = ("system.slice", scope)
            if self._files.exists((*parents, f"job_{job_id}")):
                return (*parents, f"job_{job_id}")
            for name in self._below(parents):
                if SLUID.fullmatch(name) and self._is_of(job_id, (*parents, name)):
                    return (*parents, name)
        return None

    def _limiting(self) -> str | None:
        """The hierarchy of cgroup v1 that has CPU time; None on v2."""
        if self._version() == 2:
            return None
        return next((name for name in self._files.directories(()) if "cpu" in name.split(",")), None)

    def _apart(self) -> str | None:
        """The hierarchy of cgroup v1 that has CPU time and in which Slurm makes no cgroups of jobs."""
        hierarchy = self._limiting()
        return None if hierarchy is None or "cpuacct" in hierarchy.split(",") else hierarchy

    def _users(self, hierarchy: str) -> Iterator[tuple[Names, list[int]]]:
        """The directory of each user with jobs on this node in a hierarchy of cgroup v1, and these jobs."""
        for slurm in (f"slurm_{self._node}", "slurm"):
            for user in self._below((hierarchy, slurm)):
                names = (hierarchy, slurm, user)
                if user.startswith("uid_"):
                    yield names, [int(match[1]) for match in map(_JOB.fullmatch, self._below(names)) if match]

    def _weigh(self, names: Names, weights: Weights, cpus: int, version: int) -> bool:
        try:
            self._files.write(names, weights.file, weights.text(cpus))
        except NoSuchFile as missing:
            raise CgroupError(f"{missing}: CPU time cannot be weighed there; valid: {_LIMITED[version]}") from None
        except CgroupGone:
            return False
        return True

    def _cpuset(self, version: int, names: Names) -> tuple[int, ...]:
        """The CPUs of a cgroup of jobs; none if nothing limits them, or if it has vanished."""
        places = [(names, "cpuset.cpus.effective")]
        if version == 1:
            cpusets = [name for name in self._files.directories(()) if "cpuset" in name.split(",")]
            places = [((name, *names[1:]), "cpuset.cpus") for name in cpusets]
        for place, file in places:
            try:
                return numbers_of(self._files.read(place, file))
            except (CgroupGone, NoSuchFile):
                continue
        return ()

    def _find_v1(self, job_id: int, *, only: str | None = None, but: str | None = None) -> Names | None:
        """The directories down to the job, first in the hierarchies that limit CPU time."""
        hierarchies = sorted(self._files.directories(()), key=lambda name: "cpu" not in name.split(","))
        for hierarchy in hierarchies:
            if hierarchy == but or only not in (None, hierarchy):
                continue
            for slurm in (f"slurm_{self._node}", "slurm"):
                for user in self._below((hierarchy, slurm)):
                    names = (hierarchy, slurm, user, f"job_{job_id}")
                    if user.startswith("uid_") and self._files.exists(names):
                        return names
        return None

    def _is_of(self, job_id: int, names: Names) -> bool:
        """Whether a slurmstepd in the cgroup says that it serves this job."""
        for step in self._below(names):
            try:
                served = self._files.read((*names, step, "slurm"), "cgroup.procs").split()
            except (CgroupGone, NoSuchFile):
                continue
            titles = (TITLE.match(self._title(process)) for process in served)
            if any(title is not None and int(title[1]) == job_id for title in titles):
                return True
        return False

    def _below(self, names: Names) -> list[str]:
        """The directories in the cgroup; none if it does not exist."""
        try:
            return self._files.directories(names)
        except CgroupGone:
            return []

    def _title(self, process: str) -> bytes:
        """The process title of the process; empty if it has ended."""
        try:
            return (self._processes / process / "cmdline").read_bytes()
        except OSError:
            return b""

    def _set(self, job: JobCgroup, limit: CpuLimit) -> bool:
        """Write the limit unless it is set already.

        Each write gives the job a full quota at once. The kernel itself doubles quota and period of a busy machine
        (sched_cfs_period_timer), so equal CPUs are an equal limit.
        """
        try:
            before = self.limit(job)
            if before.cpus != limit.cpus:
                for file, text in writes(job.version, before, limit):
                    self._files.write(job.names, file, text)
        except CgroupGone:
            return False
        return True


def writes(version: int, before: CpuLimit, limit: CpuLimit) -> tuple[tuple[str, str], ...]:
    """The files and texts that make the limit.

    cgroup v1 has two files. Between the two writes the job has at most the larger of the limits before and after: a
    longer period is written before its quota, a shorter one after it.
    """
    if version == 2:
        return (("cpu.max", f"{'max' if limit.quota_us is None else limit.quota_us} {limit.period_us}"),)
    quota = ("cpu.cfs_quota_us", str(-1 if limit.quota_us is None else limit.quota_us))
    period = ("cpu.cfs_period_us", str(limit.period_us))
    return (period, quota) if limit.period_us >= before.period_us else (quota, period)
