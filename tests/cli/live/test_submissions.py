"""The file by which the submit filter tells of jobs: a real one, which the kernel watches."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from slurm_sns.cli.live.submissions import watched


@pytest.fixture
def stop():
    """A signal that has not arrived, until somebody writes to it."""
    read, write = os.pipe()
    yield SimpleNamespace(fileno=lambda: read, arrive=lambda: os.write(write, b"x"))
    os.close(read)
    os.close(write)


def write(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"1")


def test_a_byte_that_is_written_ends_the_wait_until_it_is_forgotten(tmp_path: Path, stop) -> None:
    path = tmp_path / "submitted"
    with watched(path, stop, pytest.fail) as submissions:
        assert path.stat().st_mode & 0o777 == 0o600
        assert not submissions.wait(0.01)
        for _ in range(100):
            write(path)
        assert submissions.wait(60)
        assert submissions.wait(60)
        submissions.forget()
        submissions.forget()
        assert not submissions.wait(0.01)
        write(path)
        assert submissions.wait(60)


def test_a_stop_ends_the_wait_and_is_no_submission(tmp_path: Path, stop) -> None:
    with watched(tmp_path / "submitted", stop, pytest.fail) as submissions:
        stop.arrive()
        assert not submissions.wait(60)


def test_a_file_of_an_earlier_scheduler_is_watched_and_nothing_stays_open(tmp_path: Path, stop) -> None:
    before = sorted(Path("/proc/self/fd").iterdir())
    for _ in range(3):
        with watched(tmp_path / "submitted", stop, pytest.fail) as submissions:
            write(tmp_path / "submitted")
            assert submissions.wait(60)
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_where_it_cannot_be_watched_the_log_says_so_and_jobs_are_seen_later(tmp_path: Path, stop) -> None:
    log: list[str] = []
    path = tmp_path / "gone" / "submitted"
    with watched(path, stop, log.append) as submissions:
        assert submissions is None
    assert log == [f"{path} cannot be watched: No such file or directory; jobs are seen at the next cycle"]
