"""A task joins its job's group before its program starts, and nothing that is wrong there keeps the program from it."""

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

JOB, MOST_MS = 4711, 5000
PID = 123

Join = Callable[..., str]


def asking(library: ctypes.CDLL) -> Join:
    """The compiled function: empty when all is well, otherwise the message."""
    library.sns_join.restype = ctypes.c_bool

    def join(root: Path | str, pid: int = PID, most_ms: int = MOST_MS) -> str:
        message = ctypes.create_string_buffer(512)
        done = library.sns_join(str(root).encode(), JOB, pid, most_ms, message, ctypes.c_size_t(len(message)))
        assert done == (message.value == b"")
        return message.value.decode("ascii")

    return join


@pytest.fixture(scope="session")
def join(parts: ctypes.CDLL) -> Join:
    return asking(parts)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory with the shared group, a group of another job, and a foreign one."""
    root = tmp_path / "resctrl"
    for name in ("sns_shared", "sns_job47", "sns_job47110", "job4711"):
        (root / name).mkdir(parents=True)
        (root / name / "tasks").touch()
    root.chmod(0o755)
    return root


def group(tree: Path, name: str = f"sns_job{JOB}") -> Path:
    (tree / name).mkdir()
    (tree / name / "tasks").touch()
    return tree / name / "tasks"


def tasks(tree: Path) -> dict[str, str]:
    """What was written, by group."""
    return {path.parent.name: path.read_text() for path in tree.glob("*/tasks") if path.read_text()}


def test_it_joins_the_group_of_its_job(join: Join, tree: Path) -> None:
    group(tree)
    assert join(tree) == ""
    assert tasks(tree) == {f"sns_job{JOB}": f"{PID}\n"}


def test_a_job_without_a_group_of_its_own_joins_the_shared_one(join: Join, tree: Path) -> None:
    assert join(tree) == ""
    assert tasks(tree) == {"sns_shared": f"{PID}\n"}


def test_without_groups_or_without_resctrl_there_is_nothing_to_do(join: Join, tmp_path: Path) -> None:
    assert join(tmp_path) == ""
    assert join(tmp_path / "missing") == ""
    assert list(tmp_path.iterdir()) == []


def test_a_group_whose_job_just_ended_is_said(join: Join, tree: Path) -> None:
    group(tree).unlink()
    assert join(tree) == f"sns: a task of job {JOB} is in no group of {tree}: No such file or directory"
    assert tasks(tree) == {}


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_tree_in_which_others_may_write_is_not_trusted(join: Join, tree: Path, mode: int) -> None:
    group(tree)
    tree.chmod(mode)
    assert join(tree).endswith(": not of root, or others may write in it")
    assert tasks(tree) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_tree_of_another_user_is_not_trusted(join: Join, tree: Path) -> None:
    group(tree)
    os.chown(tree, 12345, 12345)
    assert join(tree).endswith(": not of root, or others may write in it")
    assert tasks(tree) == {}


def test_no_link_is_followed(join: Join, tree: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tasks").touch()
    (tree / f"sns_job{JOB}").symlink_to(elsewhere)
    assert join(tree) != ""
    (tree / f"sns_job{JOB}").unlink()
    group(tree).unlink()
    (tree / f"sns_job{JOB}" / "tasks").symlink_to(elsewhere / "tasks")
    assert join(tree).endswith(": Too many levels of symbolic links")
    (tmp_path / "link").symlink_to(tree)
    assert join(tmp_path / "link") != ""
    assert (elsewhere / "tasks").read_text() == ""


def test_a_file_in_place_of_the_tree_is_said(join: Join, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert join(tmp_path / "file").endswith(": Not a directory")


def test_a_path_of_any_length_is_no_danger(join: Join, tmp_path: Path) -> None:
    for path in (tmp_path / ("x" * 300), f"{tmp_path}{'/x' * 5000}"):
        said = join(path)
        assert said.endswith(f": {os.strerror(errno.ENAMETOOLONG)}")
        assert len(said) < 512
    assert join(f"{tmp_path}{'/x' * 300}") == "", "no such directory: no resctrl here"


WITHOUT_RIGHTS = """
import ctypes, os, sys
if os.geteuid() == 0:
    os.setgid(12345)
    os.setuid(12345)
library = ctypes.CDLL(sys.argv[1])
message = ctypes.create_string_buffer(512)
print(library.sns_join(sys.argv[2].encode(), int(sys.argv[3]), 123, 5000, message, 512) & 1, message.value.decode())
"""


def test_without_the_right_to_write_the_task_goes_on(parts: ctypes.CDLL) -> None:
    # Not below tmp_path, which another user cannot reach.
    library = Path(parts._name)
    folder = Path(tempfile.mkdtemp(prefix="sns-join."))
    try:
        folder.chmod(0o755)
        group(folder).chmod(0)
        copy = folder / "parts.so"
        copy.write_bytes(library.read_bytes())
        words = [sys.executable, "-I", "-S", "-c", WITHOUT_RIGHTS, copy, folder, str(JOB)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout == f"0 sns: a task of job {JOB} is in no group of {folder}: Permission denied\n"
    finally:
        shutil.rmtree(folder)


#: Stands in for the kernel: a write to `tasks` fails with this errno, or never returns.
REFUSING = """
#include <errno.h>
#include <string.h>
#include <unistd.h>
int refused_with = 0;
ssize_t __real_write(int to, const void *text, size_t size);
ssize_t __wrap_write(int to, const void *text, size_t size)
{
	if (memchr(text, '\\n', size) == NULL)
		return __real_write(to, text, size);
	while (refused_with < 0)
		pause();
	errno = refused_with;
	return -1;
}
"""


@pytest.fixture(scope="module")
def kernel(build) -> ctypes.CDLL:
    return build(REFUSING, "-Wl,--wrap=write")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENODEV, errno.ESRCH, errno.EBUSY])
def test_what_the_kernel_refuses_is_said_in_its_words(kernel: ctypes.CDLL, tree: Path, number: int) -> None:
    group(tree)
    ctypes.c_int.in_dll(kernel, "refused_with").value = number
    assert asking(kernel)(tree) == f"sns: a task of job {JOB} is in no group of {tree}: {os.strerror(number)}"
    assert tasks(tree) == {}


def test_a_file_system_that_does_not_answer_delays_no_job(kernel: ctypes.CDLL, tree: Path) -> None:
    group(tree)
    ctypes.c_int.in_dll(kernel, "refused_with").value = -1
    before = children()
    assert asking(kernel)(tree, most_ms=50).endswith(": no answer in time")
    # Killed, it may end later than the plugin waits for that.
    until_s = time.monotonic() + 30
    for number in map(int, children() - before):
        while (status := os.waitpid(number, os.WNOHANG)) == (0, 0) and time.monotonic() < until_s:
            time.sleep(0.05)
        assert status == (number, signal.SIGKILL), "the process that hung has been killed"


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


NAMES = {b"/sys/fs/resctrl": True, b"/": True, b"/a.b_c-d/9": True}
NAMES |= dict.fromkeys((b"", b"sys", b"./a", b"/a b", b"/a;b", b"/a\n", b"/\xc3\xa9", b"/%n"), False)


@pytest.mark.parametrize(("name", "valid"), [*NAMES.items()])
def test_the_directories_in_plugstack_conf_have_a_grammar(parts: ctypes.CDLL, name: bytes, valid: bool) -> None:
    parts.sns_is_directory_name.restype = ctypes.c_bool
    assert parts.sns_is_directory_name(name) is valid
