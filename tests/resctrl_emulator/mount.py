"""The emulated resctrl as a FUSE file system, through mfusepy: the one module that needs it and libfuse.

What a client sees is what the kernel's own file system (kernfs) does: a file's text is made when a read begins at its
start, every write is one command (at most a page: E2BIG), an open file of a removed group is gone (ENODEV), and nobody,
not even root, opens a read-only file for writing (EACCES).
"""

import ctypes
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes.util import find_library
from dataclasses import dataclass
from errno import E2BIG, EACCES, EINVAL, EIO, ENODEV, ENOENT, ENOTCONN, ENOTDIR, EPERM
from pathlib import Path
from types import ModuleType
from typing import Any

from resctrl_emulator import control, files
from resctrl_emulator.assignments import Caller
from resctrl_emulator.emulator import Emulator
from resctrl_emulator.files import Directory, File, Node
from resctrl_emulator.refusal import Refusal

#: The kernel takes one page a write.
LONGEST_WRITE = 4096
#: How long a mount may take: Python and libfuse need a second on a busy machine.
STARTED_WITHIN_S = 30.0
STOPPED_WITHIN_S = 10.0
#: What fuse_main of libfuse 3 returns when a signal has ended it, after it has unmounted.
LOOP_ENDED = 8
DEVICE = Path("/dev/fuse")
#: capabilities(7): what mount(2) needs.
CAP_SYS_ADMIN = 21
#: umount2(2): detach now, whoever is in it.
MNT_DETACH = 2
PACKAGES = "apt-get install fuse3; pip install mfusepy"


def check() -> None:
    """Raise when nothing can be mounted here.

    Raises:
        OSError: one line that says why.
    """
    reason = why_not() or missing_package()
    if reason:
        raise OSError(reason)


def why_not() -> str | None:
    """Why this machine lets nobody mount here, for a test that is skipped; None: it lets us.

    A missing package is no such reason: the test fails, and `mounted` says what to install.
    """
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"{DEVICE} is missing or not open to us"
    if not os.geteuid() and not _effective_capabilities() >> CAP_SYS_ADMIN & 1:
        return "the capability SYS_ADMIN is missing (docker run --cap-add SYS_ADMIN)"
    return None


def missing_package() -> str | None:
    """What has to be installed before anything can be mounted; None: nothing."""
    if importlib.util.find_spec("mfusepy") is None:
        return f"mfusepy is not installed ({PACKAGES})"
    if find_library("fuse3") is None:
        return f"libfuse 3 is not installed ({PACKAGES})"
    if os.geteuid() and shutil.which("fusermount3") is None:
        return f"only root mounts without fusermount3 ({PACKAGES})"
    return None


def _effective_capabilities() -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1], 16) for line in status if line.startswith("CapEff:")), 0)


def serve(emulator: Emulator, mountpoint: Path, profiles: control.Profiles) -> None:
    """Mount, and answer until the file system is unmounted or the process gets SIGTERM or SIGINT."""
    fuse = _mfusepy()
    operations = _operations(fuse)(emulator, profiles)
    try:
        _serve(fuse, operations, str(mountpoint))
    except RuntimeError as error:
        if error.args != (LOOP_ENDED,):
            raise OSError(EIO, f"libfuse: fuse_main ended with {error}", str(mountpoint)) from error


def _serve(fuse: ModuleType, operations: object, mountpoint: str) -> None:
    # One thread: a command of the kernel's resctrl holds its mutex from begin to end, too.
    fuse.FUSE(
        operations,
        mountpoint,
        foreground=True,
        nothreads=True,
        raw_fi=False,
        fsname="resctrl_emulator",
        subtype="resctrl",
        default_permissions=True,
        allow_other=os.geteuid() == 0,
        # What one client changes, another sees at once.
        entry_timeout=0,
        attr_timeout=0,
        negative_timeout=0,
        direct_io=True,
    )


def _mfusepy() -> ModuleType:
    # mfusepy takes libfuse 2 first, whose mount cannot be told to pass an open file of a removed directory.
    os.environ.setdefault("FUSE_LIBRARY_NAME", "fuse3")
    return importlib.import_module("mfusepy")


@contextmanager
def mounted(
    mountpoint: Path, machine: str = "xeon", *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """A process of its own that serves an emulated tree there; `options` are those of the command line.

    Raises:
        RuntimeError: it ended, or was not ready in time; the text is what it wrote.
    """
    mountpoint.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "resctrl_emulator", str(mountpoint), "--machine", machine, *options],
        env={**os.environ, **(environment or {}), "PYTHONPATH": python_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        _wait_until_ready(process, mountpoint)
        yield mountpoint
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        unmount(mountpoint)


def python_path() -> str:
    """The PYTHONPATH with which another process finds this package."""
    return os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])


def unmount(mountpoint: Path) -> None:
    """Take away what a killed emulator has left; does nothing where nothing is mounted."""
    if not _is_mounted(mountpoint):
        return
    if ctypes.CDLL(None, use_errno=True).umount2(os.fsencode(mountpoint), MNT_DETACH):
        subprocess.run(["fusermount3", "-u", "-z", str(mountpoint)], check=False)


def _is_mounted(mountpoint: Path) -> bool:
    try:
        os.lstat(mountpoint)
    except OSError as error:
        return error.errno == ENOTCONN  # its server is dead
    return os.path.ismount(mountpoint)


def _wait_until_ready(process: "subprocess.Popen[str]", mountpoint: Path) -> None:
    end_s = time.monotonic() + STARTED_WITHIN_S
    while time.monotonic() < end_s:
        if process.poll() is not None:
            raise RuntimeError(f"the emulator ended: {process.communicate()[0]}")
        if os.path.ismount(mountpoint):
            return
        time.sleep(0.02)
    raise RuntimeError(f"the emulator was not ready within {STARTED_WITHIN_S} s")


@dataclass
class _Open:
    """An open file: its text is made anew when a read begins at its start."""

    path: str
    file: File
    text: bytes = b""

    def check(self) -> None:
        if self.file.group is not None and self.file.group.is_removed:
            raise Refusal(ENODEV)


def _operations(fuse: ModuleType) -> type:
    """The class of the file system: its base is in mfusepy, which is imported when it is needed."""

    class Resctrl(fuse.Operations):
        use_ns = True

        def __init__(self, emulator: Emulator, profiles: control.Profiles) -> None:
            self._emulator = emulator
            self._tree = emulator.tree
            self._control = control.directory(emulator, profiles)
            self._opened: dict[int, _Open] = {}
            self._listed: dict[int, tuple[str, ...]] = {}
            self._last_handle = 0
            self._user = (os.geteuid(), os.getegid())
            #: What chmod and chown have changed, by path.
            self._changed: dict[str, dict[str, int]] = {}

        def init_with_config(self, _connection: Any, config: Any) -> None:
            if config is not None:
                config.nullpath_ok = 1  # an open file of a removed directory has no path
                config.direct_io = 1  # sizes are not known: as in kernfs, files have size 0

        def _find(self, path: str) -> Node:
            parts = path.strip("/").split("/")
            if parts[0] == control.NAME:
                node: Node | None = self._control.entries().get(parts[1]) if len(parts) == 2 else None
                node = self._control if len(parts) == 1 else node
            else:
                node = files.find(self._tree, path)
            if node is None:
                raise Refusal(ENOENT)
            return node

        def _caller(self) -> Caller:
            uid, _, task_id = fuse.fuse_get_context()
            return Caller(uid, task_id)

        def _handle(self) -> int:
            self._last_handle += 1
            return self._last_handle

        def getattr(self, path: str | None, fh: int | None = None) -> dict[str, int]:
            node: Node = self._opened[fh].file if fh and fh in self._opened else self._find(path or "/")
            kind = stat.S_IFDIR if isinstance(node, Directory) else stat.S_IFREG
            uid, gid = node.group.owner if node.group is not None and node.group.owner != (0, 0) else self._user
            mode = control.MODES.get(path or "", node.mode)
            shown = {"st_uid": uid, "st_gid": gid, "st_mode": mode, **self._changed.get(path or "", {})}
            links = 2 if isinstance(node, Directory) else 1
            return {**shown, "st_mode": kind | shown["st_mode"], "st_nlink": links, "st_size": 0}

        def opendir(self, path: str) -> int:
            node = self._find(path)
            if not isinstance(node, Directory):
                raise Refusal(ENOTDIR)
            handle = self._handle()
            self._listed[handle] = tuple(node.entries())
            return handle

        def readdir(self, _path: str | None, fh: int) -> list[str]:
            return [".", "..", *self._listed[fh]]

        def releasedir(self, _path: str | None, fh: int) -> int:
            del self._listed[fh]
            return 0

        def open(self, path: str, flags: int) -> int:
            node = self._find(path)
            if not isinstance(node, File):
                raise Refusal(EINVAL)
            if flags & os.O_ACCMODE != os.O_RDONLY and node.write is None:
                raise Refusal(EACCES)
            handle = self._handle()
            self._opened[handle] = _Open(path, node)
            return handle

        def release(self, _path: str | None, fh: int) -> int:
            self._opened.pop(fh, None)
            return 0

        def read(self, _path: str | None, size: int, offset: int, fh: int) -> bytes:
            opened = self._opened[fh]
            opened.check()
            if offset == 0:
                self._emulator.catch_up()
                self._emulator.check_fault(opened.path, "read")
                opened.text = opened.file.read().encode("latin-1")
            return opened.text[offset : offset + size]

        def write(self, _path: str | None, data: bytes, _offset: int, fh: int) -> int:
            opened = self._opened[fh]
            if len(data) > LONGEST_WRITE:
                raise Refusal(E2BIG)
            opened.check()
            self._emulator.catch_up()
            self._emulator.check_fault(opened.path, "write")
            if opened.file.write is None:
                raise Refusal(EINVAL)
            opened.file.write(data, self._caller())
            return len(data)

        def truncate(self, _path: str | None, _length: int, _fh: int | None = None) -> int:
            return 0  # as kernfs: the size means nothing

        def mkdir(self, path: str, _mode: int) -> int:
            folder, _, name = path.rpartition("/")
            node = self._find(folder)
            if not isinstance(node, Directory):
                raise Refusal(EPERM)
            self._emulator.catch_up()
            self._emulator.check_fault(path, "make")
            uid, gid, _ = fuse.fuse_get_context()
            node.make(name, (uid, gid))
            return 0

        def rmdir(self, path: str) -> int:
            node = self._find(path)
            if not isinstance(node, Directory) or node.remove is None:
                raise Refusal(EPERM)
            self._emulator.catch_up()
            self._emulator.check_fault(path, "remove")
            node.remove()
            inside = f"{path}/"
            self._changed = {
                at: value for at, value in self._changed.items() if at != path and not at.startswith(inside)
            }
            return 0

        def rename(self, old: str, new: str) -> int:
            self._emulator.catch_up()
            files.rename(self._tree, old, new)
            return 0

        def chmod(self, path: str, mode: int) -> int:
            self._changed.setdefault(path, {})["st_mode"] = stat.S_IMODE(mode)
            return 0

        def chown(self, path: str, uid: int, gid: int) -> int:
            changed = {"st_uid": uid, "st_gid": gid}
            self._changed.setdefault(path, {}).update({name: value for name, value in changed.items() if value >= 0})
            return 0

        def utimens(self, _path: str, _times: object = None) -> int:
            return 0

        # What kernfs has no operation for, the kernel refuses so.

        def create(self, _path: str, _mode: int, _flags: int = 0) -> int:
            raise Refusal(EACCES)

        def mknod(self, _path: str, _mode: int, _device: int) -> int:
            raise Refusal(EPERM)

        def unlink(self, _path: str) -> int:
            raise Refusal(EPERM)

        def symlink(self, _target: str, _source: str) -> int:
            raise Refusal(EPERM)

        def link(self, _target: str, _source: str) -> int:
            raise Refusal(EPERM)

    return Resctrl
