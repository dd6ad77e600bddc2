"""Which tasks exist: the threads of this machine (/proc), or emulated ones.

A task is a thread, as everywhere in resctrl. Its parent is its process for a further thread, and its parent process for
the first thread of a process.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

#: Where /proc/PID/stat has the parent and the start time, counted after the name, which may hold anything.
_PARENT, _STARTED = 1, 19


class Task(NamedTuple):
    """A task; `started` tells it from an older one with the same id."""

    parent: int
    started: int


class World(Protocol):
    """The tasks of a machine."""

    def tasks(self) -> Mapping[int, Task]:
        """All tasks by id."""

    def owners(self, task_id: int) -> frozenset[int]:
        """The real and the saved user id of a task, by which the kernel decides who may move it."""


class EmulatedTasks:
    """Tasks that are numbers only."""

    def __init__(self) -> None:
        self._tasks: dict[int, Task] = {1: Task(0, 0)}
        self._owners: dict[int, int] = {}
        self._started = 0

    def start(self, task_id: int, *, parent: int = 1, uid: int = 0) -> int:
        """A task begins: it is in its parent's group."""
        self._started += 1
        self._tasks[task_id] = Task(parent, self._started)
        self._owners[task_id] = uid
        return task_id

    def end(self, task_id: int) -> None:
        """A task is gone."""
        self._tasks.pop(task_id, None)

    def tasks(self) -> Mapping[int, Task]:
        """All tasks by id."""
        return self._tasks

    def owners(self, task_id: int) -> frozenset[int]:
        """Who owns it."""
        return frozenset({self._owners.get(task_id, 0)})


class ProcTasks:
    """The threads of this machine. Only a look at them shows a new one: its parent's group is that at the look."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def tasks(self) -> Mapping[int, Task]:
        """All threads by id."""
        found: dict[int, Task] = {}
        for name in os.listdir(self._proc):  # noqa: PTH208  called for every change: Path costs three times as much
            if not name.isdigit():
                continue
            try:
                text = (self._proc / name / "stat").read_text(errors="replace")
                threads = os.listdir(self._proc / name / "task")  # noqa: PTH208  as above
            except OSError:
                continue  # it has ended
            fields = text.rpartition(")")[2].split()
            process, started = int(name), int(fields[_STARTED])
            found[process] = Task(int(fields[_PARENT]), started)
            found.update((int(thread), Task(process, started)) for thread in threads if thread != name)
        return found

    def owners(self, task_id: int) -> frozenset[int]:
        """Who owns it."""
        for line in (self._proc / str(task_id) / "status").read_text(errors="replace").splitlines():
            if line.startswith("Uid:"):
                real, _, saved, _ = map(int, line.split()[1:])
                return frozenset({real, saved})
        return frozenset()
