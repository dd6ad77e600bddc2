"""What a test does to a tree: the same calls on the model in memory and on the mounted file system."""

import os
import subprocess
import sys
from contextlib import suppress
from errno import EACCES, EINVAL, ENOENT, EPERM, ESRCH
from pathlib import Path
from typing import Protocol

import pytest

from resctrl_emulator import files
from resctrl_emulator.assignments import Caller
from resctrl_emulator.files import Directory, File
from resctrl_emulator.machines import MACHINES
from resctrl_emulator.refusal import Refusal
from resctrl_emulator.rules import ROOT_ONLY, Tree
from resctrl_emulator.worlds import EmulatedTasks

#: What a write as nobody can be refused with.
ERRNOS = (EACCES, EPERM, ESRCH, EINVAL)
#: Debian's user nobody.
NOBODY = 65534


class Client(Protocol):
    """Every method that changes something answers with 0 or the errno."""

    def write(self, path: str, text: str) -> int: ...

    def write_as_nobody(self, path: str, text: str) -> int: ...

    def read(self, path: str) -> str: ...

    def make(self, path: str) -> int: ...

    def remove(self, path: str) -> int: ...

    def rename(self, old: str, new: str) -> int: ...

    def names(self, path: str) -> set[str]: ...

    def task(self, *, parent: int | None = None) -> int:
        """A task that lives until the end of the test."""

    def end(self, task_id: int) -> None: ...

    def status(self) -> str:
        return self.read("info/last_cmd_status").rstrip("\n")


class ModelClient(Client):
    """On a tree in memory."""

    def __init__(self, machine: str) -> None:
        self.world = EmulatedTasks()
        self.tree = Tree(MACHINES[machine], self.world)
        self._task = 100

    def _node(self, path: str):
        node = files.find(self.tree, path)
        if node is None:
            raise Refusal(ENOENT)
        return node

    def write(self, path: str, text: str, caller: Caller = ROOT_ONLY) -> int:
        try:
            node = self._node(path)
            if not isinstance(node, File) or node.write is None:
                return EACCES
            node.write(text.encode("latin-1"), caller)
        except Refusal as refusal:
            return refusal.errno or EINVAL
        return 0

    def write_as_nobody(self, path: str, text: str) -> int:
        return self.write(path, text, Caller(NOBODY, 1))

    def read(self, path: str) -> str:
        return self._node(path).read()

    def make(self, path: str) -> int:
        folder, _, name = path.rpartition("/")
        try:
            self._node(folder).make(name, (0, 0))
        except Refusal as refusal:
            return refusal.errno or EINVAL
        return 0

    def remove(self, path: str) -> int:
        try:
            node = self._node(path)
            if node.remove is None:
                return EPERM
            node.remove()
        except Refusal as refusal:
            return refusal.errno or EINVAL
        return 0

    def rename(self, old: str, new: str) -> int:
        try:
            files.rename(self.tree, old, new)
        except Refusal as refusal:
            return refusal.errno or EINVAL
        return 0

    def names(self, path: str) -> set[str]:
        node = self._node(path)
        return set(node.entries()) if isinstance(node, Directory) else set()

    def task(self, *, parent: int | None = None) -> int:
        self._task += 1
        return self.world.start(self._task, parent=parent or 1)

    def end(self, task_id: int) -> None:
        self.world.end(task_id)


#: A process that starts a child for each line it reads, and prints the child's id.
_PARENT = """
import subprocess, sys
print(flush=True)
for line in sys.stdin:
    child = subprocess.Popen(["sleep", "60"])
    print(child.pid, flush=True)
"""


class MountedClient(Client):
    """On a mounted tree, with this machine's processes as tasks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._children: list[int] = []

    def reset(self) -> None:
        """As after a fresh mount, except for the counters."""
        for name in self.names("") - {"info", "mon_groups", "mon_data"}:
            if (self.root / name).is_dir():
                self.remove(name)
        for name in self.names("mon_groups") if "mon_groups" in self.names("") else ():
            self.remove(f"mon_groups/{name}")
        if "schemata" not in self.names(""):
            return
        self.write("mode", "shareable\n")
        lines = []
        for line in self.read("schemata").splitlines():
            name, values = line.split(":")
            info = f"info/{name.strip()}"
            if "cbm_mask" in self.names(info):
                most = self.read(f"{info}/cbm_mask").strip()
            else:
                most = {"mib": str(2**32 - 1), "amd": "2048"}.get(self.root.name.rpartition("-")[2], "100")
            lines.append(f"{name}:" + ";".join(f"{part.split('=')[0]}={most}" for part in values.split(";")))
        assert self.write("schemata", "\n".join(lines) + "\n") == 0, self.status()

    def close(self) -> None:
        for child in self._children:
            with suppress(ProcessLookupError):
                os.kill(child, 9)
        for process in self._processes.values():
            process.kill()
            process.communicate()

    def write(self, path: str, text: str) -> int:
        try:
            handle = os.open(self.root / path, os.O_WRONLY)
        except OSError as error:
            return error.errno
        try:
            assert os.write(handle, text.encode("latin-1")) == len(text)
        except OSError as error:
            return error.errno
        finally:
            os.close(handle)
        return 0

    def write_as_nobody(self, path: str, text: str) -> int:
        """The file is opened to everybody first, as its owner could do."""
        if os.geteuid():
            pytest.skip("only root can become nobody")
        file = self.root / path
        file.chmod(0o666)
        handle = os.open(file.parent, os.O_RDONLY)  # the directories above are not open to everybody
        try:
            done = subprocess.run(
                ["sh", "-c", f"cat > /proc/self/fd/{handle}/{file.name}"],
                input=text,
                text=True,
                pass_fds=(handle,),
                user=NOBODY,
                group=NOBODY,
                stderr=subprocess.PIPE,
                check=False,
            )
        finally:
            os.close(handle)
        says = done.stderr.strip().rpartition(": ")[2]
        return next((number for number in ERRNOS if os.strerror(number) == says), done.returncode)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def make(self, path: str) -> int:
        return _errno_of(os.mkdir, self.root / path)

    def remove(self, path: str) -> int:
        return _errno_of(os.rmdir, self.root / path)

    def rename(self, old: str, new: str) -> int:
        return _errno_of(os.rename, self.root / old, self.root / new)

    def names(self, path: str) -> set[str]:
        return {entry.name for entry in (self.root / path).iterdir()}

    def task(self, *, parent: int | None = None) -> int:
        if parent is None:
            process = subprocess.Popen(
                [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert process.stdout is not None
            process.stdout.readline()
            self._processes[process.pid] = process
            return process.pid
        process = self._processes[parent]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        self._children.append(child)
        return child

    def end(self, task_id: int) -> None:
        process = self._processes.pop(task_id)
        process.kill()
        process.communicate()


def _errno_of(call, *arguments) -> int:
    try:
        call(*arguments)
    except OSError as error:
        return error.errno or EINVAL
    return 0
