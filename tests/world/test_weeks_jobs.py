"""The submissions of a simulated week."""

import numpy as np
import pytest

from world.weeks_jobs import ARRAY, CORES, DAY_S, LIMITS_S, SMALL, TASKS, asked_of, submissions

DAYS, JOBS, NODES, LOAD = 7, 20_000, 400, 0.8


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return submissions(JOBS, DAYS, NODES, LOAD, seed=1)


def test_there_are_exactly_so_many_jobs_in_the_order_of_submission(rows):
    assert rows["tasks"].sum() == JOBS
    assert rows["tasks"].min() == 1
    assert (np.diff(rows["at_s"]) >= 0).all()
    assert 0 <= rows["at_s"][0] <= rows["at_s"][-1] < DAYS * DAY_S


def test_together_they_need_the_wanted_part_of_the_core_hours(rows):
    ran_s = np.minimum(rows["run_s"], rows["limit_s"])
    assert (ran_s * rows["cores"] * rows["tasks"]).sum() == pytest.approx(LOAD * NODES * CORES * DAYS * DAY_S, rel=0.1)


def test_most_come_in_the_afternoon_and_few_at_the_weekend(rows):
    rows = rows[rows["kind"] != SMALL]  # bursts of small jobs come at any time
    hour, day = rows["at_s"] // 3600 % 24, rows["at_s"] // DAY_S
    assert (np.abs(hour - 15) < 3).sum() > 1.5 * (np.abs(hour - 3) < 3).sum()
    assert (day >= 5).mean() < 0.7 * 2 / 7


def test_a_few_reach_their_time_limit_and_no_other(rows):
    assert set(np.unique(rows["limit_s"])) <= set(LIMITS_S)
    assert 0.01 < (rows["run_s"] > rows["limit_s"]).mean() < 0.04


def test_the_same_seed_gives_the_same_week_and_another_seed_another(rows):
    assert (submissions(JOBS, DAYS, NODES, LOAD, seed=1) == rows).all()
    assert not np.array_equal(submissions(JOBS, DAYS, NODES, LOAD, seed=2)["at_s"][:50], rows["at_s"][:50])


def test_an_array_is_asked_for_with_all_its_tasks(rows):
    row = rows[(rows["kind"] == ARRAY) & (rows["tasks"] > TASKS)][0]
    asked = asked_of(row, ["mg"])
    assert asked["array"] == tuple(range(row["tasks"]))
    assert asked["tasks"] * asked["cpus_per_task"] == row["cores"]
