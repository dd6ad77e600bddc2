"""What was measured of runs, in the database: written, replaced, read back, and deleted when it is old."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from slurm_sns.errors import Unreachable
from slurm_sns.scheduler.ports import MeasuredRun
from slurm_sns.store.database import open_store
from slurm_sns.store.measured_runs import StoredMeasurements
from slurm_sns.store.retention import EVERY
from slurm_sns.wire.values import RunId

DAY = 86_400.0
FULL = MeasuredRun(RunId(7, 2), "c1", 1001, 100.0, 4, 20, 60.0, 1.25, 8.5, 20.0, 1.5)
EMPTY = MeasuredRun(RunId(7, 0), "c2", None, 50.0, 0, 0, 5.0)


@pytest.fixture
def stored(url: str) -> StoredMeasurements:
    return StoredMeasurements(open_store(url), keep_days=30)


def test_what_is_written_is_read_back_and_a_report_that_comes_again_replaces_it(stored: StoredMeasurements) -> None:
    stored.record([FULL, EMPTY], 100.0)
    stored.record([replace(FULL, ipc=None), replace(FULL, run=RunId(8))], 100.0)
    assert stored.of_jobs({7}) == [EMPTY, replace(FULL, ipc=None)]
    assert stored.of_jobs({7, 8, 9})[-1].run == RunId(8)
    assert stored.of_jobs(set()) == []


def test_it_is_kept_as_long_as_decisions(stored: StoredMeasurements) -> None:
    stored.record([FULL], 100.0)
    for number in range(1, EVERY):
        stored.record([replace(FULL, run=RunId(100 + number), ended_s=31 * DAY)], 31 * DAY)
    assert stored.of_jobs({7}) == [FULL]
    stored.record([replace(FULL, run=RunId(9), ended_s=31 * DAY)], 31 * DAY)
    assert stored.of_jobs({7}) == []
    assert len(stored.of_jobs(range(200))) == EVERY


def test_a_store_that_does_not_answer_says_so(url: str) -> None:
    engine = open_store(url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE measured_runs"))
    stored = StoredMeasurements(engine, keep_days=30)
    for ask in (lambda: stored.record([FULL], 0.0), lambda: stored.of_jobs({7})):
        with pytest.raises(Unreachable, match="what was measured of runs cannot"):
            ask()
