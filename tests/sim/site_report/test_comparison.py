"""Waits are compared with intervals over weeks, and advice keeps to them."""

import numpy as np
import pytest

from slurm_sns.sim.site_report.advice import advise, longest_interval
from slurm_sns.sim.site_report.bootstrap import RatioInterval, ratio_interval
from slurm_sns.sim.site_report.comparison import Compared, Waits, by_group, compared, longest, size_of
from slurm_sns.sim.site_report.words import difference, part, span


def ratio(above, below, seed=0):
    return ratio_interval(np.array(above, float), np.array(below, float), seed)


def test_equal_weeks_have_an_interval_without_width():
    assert ratio([3] * 6, [2] * 6) == (1.5, 1.5)


def test_fewer_than_six_weeks_with_jobs_have_no_interval():
    assert ratio([3] * 5, [2] * 5) is None
    assert ratio([3] * 5 + [0], [2] * 5 + [0]) is None


def test_of_six_weeks_nine_in_ten_intervals_have_the_truth():
    rng = np.random.default_rng(3)
    found = [ratio(rng.normal(0, 1, 6), np.ones(6), seed) for seed in range(200)]
    assert sum(each.low <= 0 <= each.high for each in found) >= 180


def test_the_interval_is_that_of_student_for_many_weeks():
    weeks = np.random.default_rng(1).normal(5, 2, 40)
    found = ratio(weeks, np.ones(40))
    width = 2 * 2.02 * weeks.std(ddof=1) / np.sqrt(40)
    assert found.high - found.low == pytest.approx(width, rel=0.1)
    assert ratio(weeks, np.ones(40), 3) != found


def waits(slurm_s, sns_s, week=None, size=None) -> Waits:
    slurm, sns = np.array(slurm_s), np.array(sns_s)
    one = np.ones(len(slurm), np.int64)
    return Waits(
        np.arange(len(slurm)) + 100,
        np.zeros(len(slurm), np.int64) if week is None else np.array(week),
        0 * one,
        0 * one if size is None else np.array(size),
        one,
        one,
        slurm,
        slurm,
        sns,
    )


def test_a_group_is_compared_by_means_and_by_who_notices():
    found = compared(waits([0, 1000, 500, 500], [400, 0, 500, 500]), "all", np.ones(4, np.bool_), 0)
    assert (found.slurm[0], found.sns[0], found.difference_s) == (500, 350, -150)
    assert (found.earlier, found.later, found.interval) == (0.25, 0.25, None)


def test_only_groups_with_jobs_are_shown():
    found = by_group(waits([1, 2], [1, 2], size=[2, 2]), np.array([2, 2]), ("a", "b", "c"), 0)
    assert [(each.name, each.jobs) for each in found] == [("c", 2)]


def test_the_longest_waits_are_those_that_grew_most():
    found = longest(waits([0, 0, 50, 0], [7, 0, 10, 9]), ["main"])
    assert [(each.job, each.sns_s) for each in found] == [("103", 9), ("100", 7)]


def test_sizes_of_jobs():
    assert size_of([(1, 1, 5, ""), (1, 2, 5, ""), (2, 1, 5, "")]).tolist() == [0, 1, 2]


def group(recorded_s=1000.0, slurm_s=1000.0, interval=None) -> Compared:
    return Compared("main", 5, (recorded_s, 0), (slurm_s, 0), (0, 0), 0.0, interval, 0, 0)


@pytest.mark.parametrize(
    ("found", "managed", "verdict"),
    [
        (group(interval=RatioInterval(-9, -1)), None, "manage"),
        (group(interval=RatioInterval(1, 9)), 1.0, "do not manage"),
        (group(interval=RatioInterval(-9, 1)), 1.0, "cannot tell"),
        (group(interval=RatioInterval(-9, 0)), 1.0, "cannot tell"),
        (group(interval=None), 1.0, "cannot tell"),
        (group(interval=RatioInterval(-9, -1)), 0.3, "do not manage"),
        (group(interval=RatioInterval(-9, -1), slurm_s=3000), 1.0, "cannot tell"),
        (group(interval=RatioInterval(-9, -1), recorded_s=20, slurm_s=30), 1.0, "nothing to gain"),
    ],
)
def test_a_partition_is_advised_only_where_the_interval_and_the_record_bear_it(found, managed, verdict):
    assert advise(found, managed).verdict == verdict


def test_the_longest_interval_that_costs_no_more_than_a_hundredth():
    assert longest_interval({1: 100.0, 5: 101.0, 30: 100.5, 60: 101.1}) == 30
    assert longest_interval({1: 0.0, 60: 0.0}) == 60
    assert longest_interval({1: 0.0, 60: 1.0}) == 1


def test_times_are_written_with_a_unit_that_suits_them():
    assert [span(each) for each in (0, 45, 150, 18_000, 400_000)] == ["0 s", "45 s", "2.5 min", "5 h", "4.6 d"]
    assert difference(-720, RatioInterval(-1200, -246)) == "-12 min [-20, -4.1]"
    assert difference(0, None) == "0 s"
    assert (part(0.123), part(0.004), part(0)) == ("12 %", "0.4 %", "0 %")
