"""What estimates are learnt from, in the database."""

import pytest

from slurm_sns.estimates.past_runs import PastRun
from slurm_sns.scheduler.ports import EstimatedStart
from slurm_sns.store import estimates
from slurm_sns.store.database import open_store
from slurm_sns.store.estimates import StoredEstimates


@pytest.fixture
def stored(url: str) -> StoredEstimates:
    return StoredEstimates(open_store(url))


def run(at: int) -> PastRun:
    return PastRun(at, float(at), 2001, "mg", 0.5)


def start(at: int) -> EstimatedStart:
    return EstimatedStart(at, float(at), at - 60.0, 1000, at - 70.0, 30, 90, 20, 60, 120)


def test_what_is_written_is_read_back_oldest_first(stored):
    stored.save([run(3), run(2)], [start(5), start(4)])
    stored.save([run(1)], [])

    assert stored.load() == ((run(1), run(2), run(3)), (start(4), start(5)))


def test_a_job_id_that_slurm_uses_again_has_one_row(stored):
    stored.save([run(1)], [start(1)])
    stored.save([PastRun(1, 99.0, 2002, "ep", 0.1)], [])

    assert stored.load()[0] == (PastRun(1, 99.0, 2002, "ep", 0.1),)


def test_the_oldest_are_forgotten(stored, monkeypatch):
    monkeypatch.setattr(estimates, "MOST_RUNS", 3)
    monkeypatch.setattr(estimates, "MOST_STARTS", 2)
    for at in range(10):
        stored.save([run(at)], [start(at)])

    runs, starts = stored.load()
    assert [each.job_id for each in runs] == [7, 8, 9]
    assert [each.job_id for each in starts] == [8, 9]
