"""Files and directories of a cgroup tree. No symbolic link is followed below the root.

A path is the tuple of its names from the root down. Each part is opened in the one before, so that what a link replaces
is refused rather than followed.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slurm_sns.errors import SnsError

Names = tuple[str, ...]

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


class ThreadEnded(CgroupError):
    """The thread that was to be put into a cgroup has ended."""


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
                if problem.errno == errno.EINVAL:
                    raise CgroupError(f"the kernel refuses {text!r} in {'/'.join((*names, file))}") from None
                if problem.errno == errno.ESRCH:
                    raise ThreadEnded(f"thread {text} has ended") from None
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
