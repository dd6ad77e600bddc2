"""The key file: closed to others, read again when it changes, and a broken one changes nothing."""

import os
import threading
from pathlib import Path

import pytest
from channel_world import NEW, OLD

from slurm_sns.errors import BadInput, SnsError, Unreachable
from slurm_sns.sockets import key_file
from slurm_sns.sockets.key_file import KeyFile, read_keys, write

ME = os.geteuid()


@pytest.fixture
def lines() -> list[str]:
    return []


def rewrite(path: Path, text: str, mode: int = 0o600) -> None:
    """As an admin's tools do: another file is moved to its place."""
    beside = path.with_name("beside")
    beside.write_text(text)
    beside.chmod(mode)
    beside.rename(path)


def test_a_changed_file_is_read_again_whether_it_is_written_or_replaced(key_path: Path, lines: list[str]) -> None:
    keys = KeyFile(key_path, ME, lines.append)
    assert keys().names == ("old",)
    with key_path.open("a") as stream:
        stream.write(NEW)
    assert keys().names == ("old", "new")
    rewrite(key_path, NEW)
    assert keys().names == ("new",)
    assert lines == []


def test_an_unchanged_file_is_not_read_again(key_path: Path, lines: list[str], mocker) -> None:
    keys = KeyFile(key_path, ME, lines.append)
    keys()
    spy = mocker.spy(key_file, "read_keys")
    assert keys().names == keys().names == ("old",)
    assert spy.call_count == 0


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("old abc\n", 0o600, "line 1 is no key; valid: "),
        ("", 0o600, "0 keys; valid: 1 to 16"),
        (NEW, 0o640, "has mode 0640 and owner"),
        (NEW, 0o604, "has mode 0604 and owner"),
        ("x" * (key_file.LONGEST_BYTES + 1), 0o600, "more than 65536 bytes; valid: one key a line"),
        ("\0\xff\ud7ff", 0o600, "line 1 is no key"),
    ],
)
def test_a_broken_new_file_keeps_the_old_keys_and_is_said_once(
    key_path: Path, lines: list[str], text: str, mode: int, problem: str
) -> None:
    keys = KeyFile(key_path, ME, lines.append)
    old = keys()
    rewrite(key_path, text, mode)
    assert [keys() for _ in range(3)] == [old] * 3
    assert len(lines) == 1
    assert problem in lines[0]
    assert lines[0].endswith("the keys that were read before stay in use")
    rewrite(key_path, NEW)
    assert keys().names == ("new",)
    assert lines[1:] == [f"the key file {key_path} can be used again"]


def test_a_missing_file_keeps_the_old_keys_until_it_is_back(key_path: Path, lines: list[str]) -> None:
    keys = KeyFile(key_path, ME, lines.append)
    old = keys()
    away = key_path.rename(key_path.with_name("away"))
    assert keys() == keys() == old
    problem = f"the key file {key_path}: No such file or directory; sns key new makes one"
    assert lines == [f"{problem}; the keys that were read before stay in use"]
    away.rename(key_path)
    assert keys() == old
    assert len(lines) == 2


def test_without_keys_a_problem_is_raised_each_time(key_path: Path, lines: list[str]) -> None:
    key_path.chmod(0o644)
    keys = KeyFile(key_path, ME, lines.append)
    for _ in range(2):
        with pytest.raises(BadInput, match=r"has mode 0644 and owner \d+; valid: a file of mode 0600"):
            keys()
    key_path.unlink()
    with pytest.raises(Unreachable, match="No such file or directory; sns key new makes one"):
        keys()
    rewrite(key_path, OLD)
    assert keys().names == ("old",)
    assert lines == []


def test_a_file_of_another_user_is_refused_and_one_of_root_is_not(key_path: Path) -> None:
    if ME != 0:
        with pytest.raises(BadInput, match=f"and owner {ME}; valid: a file of mode 0600 that belongs to user id 12345"):
            read_keys(key_path, 12345)
        return
    assert read_keys(key_path, 12345)[0].names == ("old",)
    os.chown(key_path, 12345, -1)
    assert read_keys(key_path, 12345)[0].names == ("old",)
    with pytest.raises(BadInput, match="and owner 12345; valid: a file of mode 0600 that belongs to user id 0"):
        read_keys(key_path, 0)


def test_what_is_no_file_is_refused_and_waits_for_nobody(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    with pytest.raises(BadInput, match="valid: a file of mode 0600"):
        read_keys(fifo, ME)
    with pytest.raises(SnsError, match="the key file"):
        read_keys(tmp_path, ME)


def test_a_new_file_is_private_whatever_the_umask_and_replaces_none(tmp_path: Path) -> None:
    path = tmp_path / "sns.key"
    before = os.umask(0o000)
    try:
        write(path, OLD, ME, replaces=False)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(BadInput, match="exists; --add appends a key to it"):
        write(path, NEW, ME, replaces=False)
    assert path.read_text() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_replaced_is_never_seen_half_written(key_path: Path, lines: list[str]) -> None:
    keys, seen, is_done = KeyFile(key_path, ME, lines.append), set(), threading.Event()

    def look() -> None:
        while not is_done.is_set():
            seen.add(keys().names)

    watcher = threading.Thread(target=look)
    watcher.start()
    for _ in range(100):
        write(key_path, OLD + NEW, ME, replaces=True)
        write(key_path, OLD, ME, replaces=True)
    is_done.set()
    watcher.join()
    assert lines == []
    assert seen <= {("old",), ("old", "new")}
    assert key_path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SnsError, match="cannot be written: No such file or directory"):
        write(tmp_path / "missing" / "sns.key", OLD, ME, replaces=False)
