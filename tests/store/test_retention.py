"""Old rows go in small batches after writes, on every database, and SQLite's file becomes smaller again."""

from pathlib import Path

import pytest
from pytest_mock import MockerFixture
from sqlalchemy import Connection, Engine, func, select

from slurm_sns.errors import Unreachable
from slurm_sns.model import Alternative, Plan, Resources, Snapshot, Start
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.ports import PolicyHistory
from slurm_sns.store import retention
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions
from slurm_sns.store.history import StoredHistory
from slurm_sns.store.retention import EVERY, Retention, older_than
from slurm_sns.store.schema import array_tasks, cycles, decisions, snapshots

DAY = 86_400


def record(stored: StoredDecisions, at_s: float, *job_ids: int, array: int | None = None) -> None:
    starts = tuple(Start(job_id, ("c1",), Alternative(1, Resources(1, 1)), "by mix-fit") for job_id in job_ids)
    tasks = {} if array is None else {job_id: (array, job_id) for job_id in job_ids}
    stored.record(at_s, Snapshot((), ()), Plan(starts), {}, owners={}, explanations={}, tasks=tasks)


def rows(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        tables = (cycles, decisions, snapshots, array_tasks)
        return [connection.execute(select(func.count()).select_from(table)).scalar() for table in tables]


@pytest.fixture
def few_at_once(mocker: MockerFixture) -> None:
    """Two rows or snapshots in a batch."""
    for module in ("retention", "decisions"):
        mocker.patch(f"slurm_sns.store.{module}.BATCH_ROWS", 2)
    mocker.patch("slurm_sns.store.decisions.SNAPSHOTS", 2)


@pytest.mark.usefixtures("few_at_once")
def test_all_that_is_old_goes_in_batches_and_nothing_else(url: str) -> None:
    engine = open_store(url)
    history = StoredHistory(engine)
    history.save([Try(1, 0)], [], PolicyHistory("dfrs", 1, "[]"))
    before = StoredDecisions(engine, keep_days=30, keep_snapshots=500)
    for at_s in range(5):
        record(before, at_s, *range(10 * at_s, 10 * at_s + 7), array=at_s)
    record(before, 2 * DAY, 100, 101)
    assert rows(engine) == [6, 37, 6, 35]
    record(StoredDecisions(engine, keep_days=30, keep_snapshots=500), 31 * DAY, 200, array=9)
    assert rows(engine) == [2, 3, 2, 1]
    assert [len(before.of_job(job_id)) for job_id in (0, 46, 100, 200)] == [0, 0, 1, 1]
    assert history.load() == {1: Try(1, 0)}, "a job may wait for longer than decisions are kept"
    assert history.load_memory("dfrs") is not None


@pytest.mark.usefixtures("few_at_once")
def test_fewer_snapshots_than_before_are_kept_and_their_decisions_stay(url: str) -> None:
    engine = open_store(url)
    before = StoredDecisions(engine, keep_days=30, keep_snapshots=500)
    for job_id in range(1, 10):
        record(before, job_id, job_id)
    after = StoredDecisions(engine, keep_days=30, keep_snapshots=2)
    record(after, 10, 10)
    assert rows(engine)[:3] == [10, 10, 2]
    kept = [job_id for job_id in range(1, 11) if after.snapshot_of(after.of_job(job_id)[0].cycle_id)]
    assert kept == [9, 10]


def test_what_does_not_fit_into_the_time_goes_after_the_next_writes(file_url: str, mocker: MockerFixture) -> None:
    mocker.patch.object(retention, "BUDGET_S", 0.5)
    clock = mocker.patch("slurm_sns.store.retention.time.monotonic", side_effect=[0.0, 0.0, 1.0, *[2.0] * 4])
    batches = []

    def two_batches(_connection: Connection, now_s: float) -> bool:
        batches.append(now_s)
        return len(batches) < 2

    mocker.patch("slurm_sns.store.retention._give_pages_back", return_value=False)
    kept = Retention(open_store(file_url), "it cannot be deleted", two_batches)
    kept.after_write(10)
    assert batches == [10], "the time was over"
    kept.after_write(11)
    assert batches == [10, 11]
    clock.side_effect, clock.return_value = None, 3.0
    for now_s in range(12, 12 + EVERY):
        kept.after_write(now_s)
    assert batches == [10, 11, 10 + EVERY], "nothing was left: it looks again after so many writes"


def test_rows_of_one_moment_go_together(url: str, mocker: MockerFixture) -> None:
    mocker.patch.object(retention, "BATCH_ROWS", 2)
    engine = open_store(url)
    with engine.begin() as connection:
        row = {"array_id": 1, "task": 1}
        times = [1.0] * 7 + [2.0, 3.0, 99.0]
        connection.execute(array_tasks.insert(), [{"job_id": at, **row, "at_s": each} for at, each in enumerate(times)])
    batch, left = older_than(10, array_tasks.c.at_s), []
    for _ in range(2):
        with engine.begin() as connection:
            more = batch(connection, 100.0)
        left.append((more, rows(engine)[3]))
    assert left == [(True, 3), (False, 1)]


def test_a_batch_that_fails_is_no_answer(url: str) -> None:
    engine = open_store(url)
    kept = Retention(engine, "it cannot be deleted", older_than(10, cycles.c.at_s))
    with engine.begin() as connection:
        cycles.drop(connection)
    with pytest.raises(Unreachable, match="it cannot be deleted"):
        kept.after_write(100)


def test_sqlites_file_becomes_smaller_where_much_is_deleted(
    file_url: str, tmp_path: Path, mocker: MockerFixture
) -> None:
    mocker.patch.object(retention, "FREE_PAGES", 10)
    engine = open_store(file_url)
    stored = StoredDecisions(engine, keep_days=30, keep_snapshots=500)
    for at_s in range(EVERY):
        record(stored, at_s, *range(400 * at_s, 400 * at_s + 400), array=at_s)

    def size() -> int:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return (tmp_path / "sns.db").stat().st_size

    full = size()
    record(stored, 31 * DAY, 1)
    assert rows(engine) == [1, 1, 1, 0]
    assert size() < full / 2
