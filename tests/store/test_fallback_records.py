"""Who only releases jobs gets on without the store."""

import threading
from pathlib import Path

import pytest

from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.store.fallback_records import FallbackRecords
from slurm_sns.store.history import StoredHistory
from slurm_sns.store.schema import open_store

RECORD = JobRecord(7, 99, Stage.PLACED, ("c1",))
PATIENCE_S = 60


@pytest.fixture
def url(tmp_path: Path) -> str:
    where = f"sqlite:///{tmp_path / 'sns.db'}"
    StoredHistory(open_store(where)).save([RECORD], [])
    return where


def test_records_are_what_the_store_says_now(url: str) -> None:
    records = FallbackRecords(url, print, PATIENCE_S)
    assert records.load() == {7: RECORD}
    StoredHistory(open_store(url)).save([], [7])
    assert records.load() == {}


def test_another_file_in_its_place_is_read(url: str, tmp_path: Path) -> None:
    records = FallbackRecords(url, print, PATIENCE_S)
    assert records.load() == {7: RECORD}
    for part in tmp_path.glob("sns.db*"):
        part.unlink()
    assert records.load() == {}


def test_a_broken_store_is_said_once_and_is_like_one_without_records(tmp_path: Path) -> None:
    (tmp_path / "sns.db").write_text("no database at all\n" * 100)
    log: list[str] = []
    records = FallbackRecords(f"sqlite:///{tmp_path / 'sns.db'}", log.append, PATIENCE_S)
    assert [records.load() for _ in range(3)] == [{}] * 3
    (line,) = log
    assert "file is not a database" in line
    assert line.endswith("jobs are released without it")


def test_a_store_that_hangs_is_waited_for_once_and_its_last_records_serve(url: str, mocker) -> None:
    log: list[str] = []
    records = FallbackRecords(url, log.append, 0.05)
    slow_disk = threading.Event()
    slow_disk.set()
    load = StoredHistory.load

    def hang(self: StoredHistory):
        assert slow_disk.wait(PATIENCE_S)
        return load(self)

    mocker.patch.object(StoredHistory, "load", hang)
    while not records.load():
        pass
    log.clear()
    slow_disk.clear()
    try:
        before = threading.active_count()
        assert [records.load() for _ in range(5)] == [{7: RECORD}] * 5
        assert threading.active_count() <= before + 1
        assert log == ["the store does not answer within 0.05 s; jobs are released without it"]
    finally:
        slow_disk.set()
