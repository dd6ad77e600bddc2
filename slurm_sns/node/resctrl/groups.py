"""Our control groups in a resctrl tree: make, write, read, move tasks, remove; nothing of anybody else is touched.

A group is ours when its name begins with `PREFIX`; callers give and get names without it. Whoever changes the tree
holds the lock (`Groups.lock`), as the kernel's documentation asks: `move`, `move_all` and `remove_all` take it
themselves, for `make`, `write` and `remove` the caller holds it. Each change is one system call, so a process that is
killed leaves a tree in which every group is whole. Source: the kernel's Documentation/filesystems/resctrl.rst.

Jobs that share a control group are counted apart by monitoring groups in it (`monitor`), which have an RMID and no
CLOSID. A control group takes its monitoring groups with it.

The kernel gives one errno for many mistakes and says the rest in `info/last_cmd_status`, which the next command
overwrites: one line, since Linux 6.7 also two. Both are in our errors.
"""

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slurm_sns.errors import SnsError
from slurm_sns.node.resctrl.schemata import Schemata, parse

PREFIX = "sns_"
# Directories of the tree that are no control groups.
_OTHER_DIRECTORIES = {"info", "mon_groups", "mon_data"}
# A name is a directory's; the kernel forbids the newline only, we whatever could leave the tree.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# In these modes a group shares its part of the cache with nobody.
_UNSHARED_MODES = {"exclusive", "pseudo-locked"}
_LOCK_TIMEOUT_S = 5.0
_LOCK_PAUSE_S = 0.01
# Each round of `move_all` moves what the round before has forked; a fork bomb must not keep us here.
_MOST_ROUNDS = 10


class ResctrlError(SnsError):
    """A change or a read of resctrl failed: what was to be done, the kernel's errno, its words in last_cmd_status."""

    def __init__(self, what: str, number: int, status: str = "") -> None:
        status = "; ".join(status.splitlines())
        # "ok" beside an error means that the kernel has no words for it (an unknown domain, for example).
        words = f" ({status})" if status and status != "ok" else ""
        super().__init__(f"{what}: {os.strerror(number)}{words}")


class CannotMake(ResctrlError):
    """The machine has no room for one more group. The job runs without a partition of its own.

    All CLOSIDs are taken, by our groups, by others' and by the root group; or all RMIDs, of which a group with a
    partition needs one, too; or exclusive groups of others hold the whole cache.
    """


class GroupGone(ResctrlError):
    """The group or the whole tree no longer exists: somebody removed it or unmounted resctrl."""


class DeadTask(ResctrlError):
    """The thread has ended."""


_CLASSES: dict[int, type[ResctrlError]] = {
    errno.ENOENT: GroupGone,
    errno.ENODEV: GroupGone,  # the group was removed while the file was open
    errno.ESRCH: DeadTask,
    errno.ENOSPC: CannotMake,
}


def refusal(what: str, problem: OSError, status: str = "") -> ResctrlError:
    """The error of the class that fits; `what` names the file or the group and what was to be done."""
    number = problem.errno or 0
    # The last free RMIDs rest while lines of removed groups are in the cache. Kernels differ in the case of the word.
    is_resting = number == errno.EBUSY and "rmid" in status.lower()
    return (CannotMake if is_resting else _CLASSES.get(number, ResctrlError))(what, number, status)


class Files:
    """The system calls on the tree. Every write is a command of its own, so it is one write(2)."""

    def read(self, path: Path) -> str:
        """The whole file."""
        return path.read_text(encoding="ascii")

    def write(self, path: Path, text: str) -> None:
        """One command. A plain directory gets the file that is missing; resctrl has all files already."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, text.encode("ascii"))
        finally:
            os.close(descriptor)

    def make_directory(self, path: Path) -> None:
        """A new group."""
        path.mkdir(mode=0o755)

    def remove_directory(self, path: Path) -> None:
        """Remove a group with all its files, as the kernel does; its tasks go back to the root group."""
        path.rmdir()

    def lock(self, descriptor: int) -> None:
        """Take the lock of the tree that is open here, until it is closed. Raises BlockingIOError at once."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Groups:
    """Our groups in the tree at `root`, for one thread. Failures are `ResctrlError`s."""

    def __init__(self, root: Path, files: Files | None = None) -> None:
        self._root, self._files = root, files or Files()
        self._is_locked = False

    def names(self) -> tuple[str, ...]:
        """Our groups, sorted."""
        return tuple(name.removeprefix(PREFIX) for name in self._all() if name.startswith(PREFIX))

    def foreign(self) -> tuple[str, ...]:
        """The groups of others, sorted: each has a CLOSID that we cannot have."""
        return tuple(name for name in self._all() if not name.startswith(PREFIX))

    def unshared(self) -> tuple[Schemata, ...]:
        """What others have for themselves alone: the kernel refuses masks of ours that overlap with it."""
        return tuple(
            found
            for path in (self._root, *(self._root / name for name in self.foreign()))
            if (found := self._unshared(path)) is not None
        )

    def monitors(self, name: str) -> tuple[str, ...]:
        """Our monitoring groups in a control group, sorted; none where the machine has none."""
        try:
            found = [entry.name for entry in os.scandir(self.directory(name) / "mon_groups") if entry.is_dir()]
        except FileNotFoundError:
            return ()
        except OSError as problem:
            raise refusal(f"{self.directory(name)} cannot be read", problem) from None
        return tuple(sorted(each.removeprefix(PREFIX) for each in found if each.startswith(PREFIX)))

    def directory(self, name: str, monitor: str = "") -> Path:
        """Where the files of a control group are, or those of a monitoring group in it."""
        control = self._root / self._ours(name)
        return control / "mon_groups" / self._ours(monitor) if monitor else control

    def make(self, name: str, monitor: str = "") -> bool:
        """Make a group; False if it is there already. It may use the whole cache until its schemata are written.

        Raises:
            CannotMake: the machine has no room for it.
        """
        path = self.directory(name, monitor)
        try:
            self._files.make_directory(path)
        except FileExistsError:
            return False
        except OSError as problem:
            raise self._refusal(f"group {path} cannot be made", problem) from None
        return True

    def write(self, name: str, text: str) -> None:
        """Write lines of schemata (schemata.lines); only the domains that they name change."""
        path = self.directory(name) / "schemata"
        self._write(path, text, f"{text.strip()!r} cannot be written to {path}")

    def read(self, name: str) -> Schemata:
        """The schemata of a group."""
        return parse(self._read(self.directory(name) / "schemata"))

    def tasks(self, name: str, monitor: str = "") -> tuple[int, ...]:
        """The thread ids in a group."""
        return self._tasks(self.directory(name, monitor))

    def root_tasks(self) -> tuple[int, ...]:
        """The thread ids in the root group: everything that nobody has put into a group."""
        return self._tasks(self._root)

    def move(self, name: str, thread_ids: Iterable[int], monitor: str = "") -> tuple[int, ...]:
        """Put threads into a group; the result are those that are in it now. A thread that has ended is no error.

        Write the group's schemata first: until then it may use the whole cache. A monitoring group takes only threads
        of its control group.
        """
        path, moved = self.directory(name, monitor) / "tasks", []
        with self.lock():
            for thread_id in thread_ids:
                with suppress(DeadTask):
                    self._write(path, f"{thread_id}\n", f"thread {thread_id} cannot be moved to {path.parent}")
                    moved.append(thread_id)
        return tuple(moved)

    def move_all(self, name: str, list_thread_ids: Callable[[], Iterable[int]]) -> int:
        """Move threads until no new one shows up, because a child that was forked meanwhile is where its parent was.

        Returns how many were moved. `list_thread_ids` is asked again for each round, ten times at most.
        """
        with self.lock():
            present = set(self.tasks(name))
            total = 0
            for _ in range(_MOST_ROUNDS):
                missing = sorted(set(list_thread_ids()) - present)
                if not missing:
                    break
                total += len(self.move(name, missing))
                present.update(missing)
        return total

    def remove(self, name: str, monitor: str = "") -> None:
        """Remove a group of ours; a group that is gone is no error.

        The tasks of a control group go back to the root group, those of a monitoring group stay in its control group.
        """
        path = self.directory(name, monitor)
        try:
            self._files.remove_directory(path)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise self._refusal(f"group {path} cannot be removed", problem) from None

    def remove_all(self) -> tuple[str, ...]:
        """Remove all our groups and nothing else; the result are their names. One that fails does not stop the rest.

        Raises the first failure at the end.
        """
        removed, failures = [], []
        with self.lock():
            for name in self.names():
                try:
                    self.remove(name)
                    removed.append(name)
                except ResctrlError as problem:
                    failures.append(problem)
        if failures:
            raise failures[0]
        return tuple(removed)

    @contextmanager
    def lock(self, timeout_s: float = _LOCK_TIMEOUT_S) -> Iterator[None]:
        """Hold the lock of the tree (flock on its directory), which other tools respect, too.

        Whoever holds it through this object may take it again: it lasts until the first one ends. So one lock may
        cover reading what is in force, the layout, `apply` and the moves.
        """
        if self._is_locked:
            yield
            return
        try:
            descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as problem:
            raise refusal(f"{self._root} cannot be locked", problem) from None
        try:
            self._wait_for_lock(descriptor, timeout_s)
            self._is_locked = True
            yield
        finally:
            self._is_locked = False
            os.close(descriptor)  # this unlocks it

    def _wait_for_lock(self, descriptor: int, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                return self._files.lock(descriptor)
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    what = f"{self._root} is locked by another program for {timeout_s:g} s"
                    raise ResctrlError(what, errno.EBUSY) from None
                time.sleep(_LOCK_PAUSE_S)

    def _ours(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise SnsError(f"the name of a group is {name!r}; valid: letters, digits, '_', '.', '-'")
        return PREFIX + name

    def _all(self) -> list[str]:
        try:
            found = [entry.name for entry in os.scandir(self._root) if entry.is_dir(follow_symlinks=False)]
        except OSError as problem:
            raise refusal(f"{self._root} cannot be read", problem) from None
        return sorted(set(found) - _OTHER_DIRECTORIES)

    def _unshared(self, path: Path) -> Schemata | None:
        # A group of somebody else may vanish or be half set up while we look.
        try:
            if self._read(path / "mode").strip() in _UNSHARED_MODES:
                return parse(self._read(path / "schemata"))
        except SnsError:
            pass
        return None

    def _tasks(self, path: Path) -> tuple[int, ...]:
        return tuple(int(line) for line in self._read(path / "tasks").split())

    def _read(self, path: Path) -> str:
        try:
            return self._files.read(path)
        except OSError as problem:
            raise refusal(f"{path} cannot be read", problem) from None

    def _write(self, path: Path, text: str, what: str) -> None:
        try:
            self._files.write(path, text)
        except OSError as problem:
            raise self._refusal(what, problem) from None

    def _refusal(self, what: str, problem: OSError) -> ResctrlError:
        status = ""  # where the kernel has no words on its last command
        with suppress(OSError, ValueError):
            status = self._files.read(self._root / "info" / "last_cmd_status").strip()
        return refusal(what, problem, status)
