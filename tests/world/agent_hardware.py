"""What a simulated node has for its agent: a resctrl tree in memory, processes, counters, a disk. No file is touched.

The tree is the one of the emulator (resctrl_emulator.rules), which has the kernel's rules; `TreeFiles` are the agent's
system calls on it. The disk keeps the agent's state and its spool; it may be full. Every access is a call of the node's
(`Node.call`), at which anything may happen. `stand_ins` lets the real classes use all that.
"""

import errno
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from resctrl_emulator.groups import Group
from resctrl_emulator.machines import XEON
from resctrl_emulator.refusal import Refusal
from resctrl_emulator.rules import Tree
from resctrl_emulator.worlds import EmulatedTasks

from slurm_sns.node.agent import state_file, tree
from slurm_sns.node.agent.tasks_of_job import Tasks
from slurm_sns.node.counters.readings import CacheTraffic, Count, Executed, Reading
from slurm_sns.node.group_writes import job_of
from slurm_sns.node.resctrl.groups import Files, Groups, refusal
from slurm_sns.node.resctrl.machine import Bandwidth, Cache, Machine, MonitoringFeatures
from slurm_sns.wire.values import RunId

PREFIX = "sns_"
WAYS = 20
#: Where the tree and the disk of a node are.
ROOT, DISK = Path("/sys/fs/resctrl"), "/var/lib/sns-agent"
#: Threads of each job, and how their ids follow from the job's.
THREADS, ID_STEP = 2, 10
GHZ = 2.4


class Calls(Protocol):
    """The node, as its hardware sees it."""

    name: str

    def call(self, kind: str, effect: Callable[[], Any]) -> Any: ...

    def note(self, kind: str, job: int = 0, **data: Any) -> None: ...

    def steady(self) -> float: ...


def machine_with(closids: int) -> Any:
    """One socket of the paper's node with so many CLOSIDs, as the emulator knows machines."""
    caches = tuple(replace(each, domains=(0,), closids=closids, shareable=0) for each in XEON.caches)
    monitoring = None if XEON.monitoring is None else replace(XEON.monitoring, domains=(0,), rmids=32)
    return replace(XEON, llc_domains=(0,), caches=caches, bandwidth=None, monitoring=monitoring)


def discovered(closids: int) -> Machine:
    """The same machine, as `discover` reads it from a tree."""
    mask = (1 << WAYS) - 1
    cache = Cache("L3", mask, 1, 0, is_sparse=False, domains=(0,), closids=closids)
    bandwidth: Bandwidth | None = None
    return Machine((cache,), bandwidth, MonitoringFeatures(("llc_occupancy", "mbm_total_bytes"), 32, (0,)), closids)


# --- the disk


class DiskPath:
    """A path on the disk of a node, with what the agent does to paths."""

    def __init__(self, disk: "Disk", text: str) -> None:
        self._disk, self._text = disk, text

    def __truediv__(self, name: str) -> "DiskPath":
        return DiskPath(self._disk, f"{self._text}/{name}")

    def __str__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiskPath) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def suffix(self) -> str:
        return "." + self._text.rpartition(".")[2]

    def with_suffix(self, ending: str) -> "DiskPath":
        return DiskPath(self._disk, self._text.rpartition(".")[0] + ending)

    def mkdir(self, **_: object) -> None:
        """Every directory is there."""

    def iterdir(self) -> Iterator["DiskPath"]:
        inside = f"{self._text}/"
        return iter([DiskPath(self._disk, each) for each in sorted(self._disk.files) if each.startswith(inside)])

    def read_bytes(self) -> bytes:
        return self._disk.read(self._text)

    def read_text(self, encoding: str = "utf-8") -> str:
        return self._disk.read(self._text).decode(encoding)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        self._disk.write(self._text, text.encode(encoding))

    def unlink(self) -> None:
        self._disk.unlink(self._text)

    def replace(self, to: "DiskPath") -> None:
        self._disk.rename(self._text, to._text)


@dataclass
class Disk:
    """The files of an agent, by name. A full disk takes no new data."""

    node: Calls
    files: dict[str, bytes] = field(default_factory=dict)
    is_full: bool = False

    def read(self, name: str) -> bytes:
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", name)
        return self.files[name]

    def write(self, name: str, data: bytes) -> None:
        self.node.call("write-file", lambda: self._write(name, data))

    def _write(self, name: str, data: bytes) -> None:
        if self.is_full:
            self.files[name] = b""  # the name takes no room
            raise OSError(errno.ENOSPC, "No space left on device", name)
        self.files[name] = data

    def rename(self, name: str, to: str) -> None:
        self.node.call("rename-file", lambda: self._rename(name, to))

    def _rename(self, name: str, to: str) -> None:
        self.files[to] = self.files.pop(name)
        if to.endswith(".report"):
            self._note("spooled", to)

    def unlink(self, name: str) -> None:
        self.node.call("unlink", lambda: self._unlink(name))

    def _unlink(self, name: str) -> None:
        self.read(name)
        del self.files[name]
        if name.endswith(".report"):
            self._note("unspooled", name)

    def _note(self, what: str, name: str) -> None:
        job, restarts = _run_in(name)
        self.node.note(what, job, run=RunId(job, restarts))

    def spooled(self) -> set[tuple[int, int]]:
        """The runs of which a report is in the spool."""
        return {(job, restarts) for job, restarts in map(_run_in, self.files) if job}


def _run_in(name: str) -> tuple[int, int]:
    last = name.rpartition("/")[2]
    if not last.endswith(".report"):
        return 0, 0
    job, restarts, _ = last.split("-", 2)
    return int(job), int(restarts)


class SpoolFilesOf:
    """The changes of files in the spool."""

    def write(self, path: Any, data: bytes) -> None:
        path.write_text(data.decode())

    def rename(self, path: Any, to: Any) -> None:
        path.replace(to)


# --- processes


@dataclass
class Processes:
    """The jobs whose processes are on the node, and their cores."""

    node: Calls
    tasks: EmulatedTasks = field(default_factory=EmulatedTasks)
    cores: dict[int, int] = field(default_factory=dict)
    suspended: set[int] = field(default_factory=set)

    def begin(self, job: int, cores: int) -> None:
        self.cores[job] = cores
        for thread in threads_of(job):
            self.tasks.start(thread)

    def end(self, job: int) -> None:
        if self.cores.pop(job, None) is not None:
            for thread in threads_of(job):
                self.tasks.end(thread)

    def of(self, jobs: Iterable[int]) -> Mapping[int, Tasks]:
        """In place of `SlurmTasks`."""
        found: Mapping[int, Tasks] = self.node.call("tasks", lambda: {job: self._of(job) for job in jobs})
        return found

    def _of(self, job: int) -> Tasks:
        there = job in self.cores
        return Tasks(threads_of(job), tuple(range(self.cores[job]))) if there else Tasks()

    def slurmstepds(self) -> Collection[int]:
        found: Collection[int] = self.node.call("stepds", lambda: tuple(self.cores))
        return found


def threads_of(job: int) -> tuple[int, ...]:
    """The ids of the threads that each job has."""
    return tuple(range(job * ID_STEP, job * ID_STEP + THREADS))


# --- the tree


class TreeFiles(Files):
    """The system calls on the tree of a node. `is_mounted` is False while nobody has mounted it."""

    def __init__(self, node: Calls, closids: int, processes: Processes) -> None:
        self.node, self.is_mounted, self.mounts = node, True, 1
        self._machine, self._processes = machine_with(closids), processes
        self.machine = discovered(closids)
        #: So many writes are refused, with this number.
        self.refuses, self.refuses_with = 0, errno.EBUSY
        self.tree: Tree = self._fresh()

    def mount_anew(self) -> None:
        """A fresh tree: nothing of ours is in it."""
        self.mounts += 1
        self.tree = self._fresh()

    def _fresh(self) -> Tree:
        return Tree(self._machine, self._processes.tasks, self.node.steady)

    def device(self) -> int | None:
        return self.mounts if self.is_mounted else None

    def names(self) -> list[str]:
        self._require()
        return sorted(self.tree.groups)

    def monitors(self, name: str) -> tuple[str, ...]:
        self._require()
        group = self.tree.groups.get(PREFIX + name)
        found = () if group is None else group.monitors
        return tuple(sorted(each.removeprefix(PREFIX) for each in found if each.startswith(PREFIX)))

    def masks(self) -> dict[str, int]:
        """The ways of each control group."""
        [cache] = self.tree.resources
        return {name: cache.values[group.closid][0] for name, group in self.tree.groups.items()}

    def read(self, path: Path) -> str:
        text: str = self._call("read-tree", lambda: self._read(path))
        return text

    def _read(self, path: Path) -> str:
        self._require()
        *folder, name = self._parts(path)
        if folder == ["info"]:
            return self.tree.status
        group = self._group(folder)
        if name == "schemata":
            return self.tree.schemata_text(group)
        if name == "mode":
            return "shareable\n"
        assert name == "tasks", path
        return "".join(f"{each}\n" for each in self.tree.tasks.of(group))

    def write(self, path: Path, text: str) -> None:
        self._call("write-tree", lambda: self._write(path, text))

    def _write(self, path: Path, text: str) -> None:
        self._change()
        *folder, name = self._parts(path)
        group = self._group(folder)
        if name == "tasks":
            self.tree.write_tasks(group, text.encode())
            return
        self.tree.write_schemata(group, text.encode())
        self._note("ways", group)

    def make_directory(self, path: Path) -> None:
        self._call("make-group", lambda: self._make(self._parts(path)))

    def _make(self, parts: Sequence[str]) -> None:
        self._change()
        if len(parts) == 1:
            self._note("made", self.tree.make_group(parts[0]))
        else:
            self.tree.make_monitor(self._group(parts[:1]), parts[-1])

    def remove_directory(self, path: Path) -> None:
        self._call("remove-group", lambda: self._remove(self._parts(path)))

    def _remove(self, parts: Sequence[str]) -> None:
        self._change()
        group = self._group(parts)
        self.tree.remove(group)
        if len(parts) == 1:
            self._note("removed", group)

    def _call(self, kind: str, effect: Callable[[], Any]) -> Any:
        """A system call: a refusal is the error of its number, such as FileExistsError."""
        try:
            return self.node.call(kind, effect)
        except Refusal as problem:
            raise OSError(problem.errno, problem.strerror) from None

    def lock(self, _descriptor: int) -> None:
        """Nobody else is there."""

    def join(self, job: int) -> None:
        """The SPANK plugin puts the tasks of a job into its group, else into the shared group, as they start."""
        if not self.is_mounted:
            return
        group = self.tree.groups.get(f"{PREFIX}job{job}") or self.tree.groups.get(f"{PREFIX}shared")
        for thread in threads_of(job) if group is not None else ():
            self.tree.write_tasks(group, f"{thread}\n".encode())

    def _note(self, what: str, group: Group) -> None:
        job = job_of(group.name.removeprefix(PREFIX))
        if job is not None:
            [cache] = self.tree.resources
            mask = 0 if what == "removed" else cache.values[group.closid][0]
            self.node.note("group", job, what=what, mask=mask)

    def _change(self) -> None:
        self._require()
        if self.refuses > 0:
            self.refuses -= 1
            self.node.note("agent-refused")
            raise Refusal(self.refuses_with)

    def _require(self) -> None:
        if not self.is_mounted:
            raise Refusal(errno.ENOENT)

    def _parts(self, path: Path) -> list[str]:
        return str(path)[len(str(ROOT)) + 1 :].split("/")

    def _group(self, parts: Sequence[str]) -> Group:
        group = self.tree.groups.get(parts[0]) if parts else self.tree.root
        if group is not None and len(parts) == 3:  # GROUP/mon_groups/MONITOR
            group = group.monitors.get(parts[2])
        if group is None:
            raise Refusal(errno.ENOENT)
        return group


class GroupsInMemory(Groups):
    """The real class; what it lists and locks without `Files` comes from the tree in memory."""

    def __init__(self, root: Path, files: Files | None = None) -> None:
        super().__init__(root, files)
        assert isinstance(files, TreeFiles)
        self._there = files

    def _all(self) -> list[str]:
        try:
            return self._there.names()
        except OSError as problem:
            raise refusal(f"{ROOT} cannot be read", problem) from None

    def monitors(self, name: str) -> tuple[str, ...]:
        """See `Groups.monitors`."""
        try:
            return self._there.monitors(name)
        except FileNotFoundError:
            return ()
        except OSError as problem:
            raise refusal(f"{ROOT} cannot be read", problem) from None

    @contextmanager
    def lock(self, _timeout_s: float = 0.0) -> Iterator[None]:
        """See `Groups.lock`."""
        if self._there.device() is None:
            raise refusal(f"{ROOT} cannot be locked", FileNotFoundError(errno.ENOENT, "gone"))
        yield


# --- counters


class CountersOf:
    """`NodeCounters` of a simulated node: what a job executes and moves follows from the ways of its group."""

    measures_ipc = measures_bandwidth = True

    def __init__(self, node: Calls, files: TreeFiles, processes: Processes) -> None:
        self._node, self._files, self._processes = node, files, processes
        #: Of each job: when it was counted last, its instructions, its cycles, its bytes.
        self._counts: dict[int, tuple[float, float, float, float]] = {}

    def job(self, *, threads: Sequence[int] = (), **_: object) -> "_JobCounters":
        return _JobCounters(self, threads[0] // ID_STEP)

    def close(self) -> None:
        """Nothing is open."""

    def read(self, job: int) -> Reading:
        reading: Reading = self._node.call("read-counters", lambda: self._read(job))
        return reading

    def _read(self, job: int) -> Reading:
        now_s = self._node.steady()
        at_s, instructions, cycles, moved = self._counts.get(job, (now_s, 0.0, 0.0, 0.0))
        runs_s = now_s - at_s if job in self._processes.cores and job not in self._processes.suspended else 0.0
        masks = self._files.masks()
        ways = masks.get(f"{PREFIX}job{job}", masks.get(f"{PREFIX}shared", 0)).bit_count()
        ticks = runs_s * GHZ * 1e9
        count = (now_s, instructions + ticks * ipc(ways), cycles + ticks, moved + runs_s * gbps(ways) * 1e9)
        self._counts[job] = count
        enabled_ns = int(now_s * 1e9)
        executed = Executed(*(Count(int(each), enabled_ns, enabled_ns) for each in count[1:3]))
        return Reading(now_s, {0: executed}, {0: CacheTraffic(int(count[3]), 0)})


@dataclass
class _JobCounters:
    counters: CountersOf
    job: int

    def read(self) -> Reading:
        return self.counters.read(self.job)

    def close(self) -> None:
        """Nothing is open."""


def ipc(ways: int) -> float:
    """The instructions per cycle of every program here with so many ways."""
    return 0.6 + 0.04 * min(ways, 12)


def gbps(ways: int) -> float:
    """What every program here moves with so many ways."""
    return 12.0 - 0.4 * min(ways, 12)


class HasMachine(Protocol):
    """The agents of a run."""

    machine: Machine


@contextmanager
def stand_ins(agents: HasMachine | None) -> Iterator[None]:
    """Inside the block trees, disks and locks of these agents are in memory; None: there are no agents."""
    if agents is None:
        yield
        return
    machine = agents.machine
    instead = [
        (tree, "Groups", GroupsInMemory),
        (tree, "_device", lambda root: root.device()),
        (tree, "discover", lambda _root: machine),
        (state_file, "os", SimpleNamespace(replace=lambda path, to: path.replace(to))),
    ]
    real = [(module, name, vars(module)[name]) for module, name, _ in instead]
    for module, name, value in instead:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in real:
            setattr(module, name, value)


class TreeRoot(type(ROOT)):  # type: ignore[misc] # the class that Path makes here
    """The root of a tree, which knows its device."""

    files: TreeFiles

    def device(self) -> int | None:
        return self.files.device()
