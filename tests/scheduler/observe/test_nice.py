"""The nice value of a placed job against Slurm's own arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import job, record, running

from slurm_sns.scheduler.observe.follow_up import Unpin, handed_over
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.nice import (
    OwnNice,
    boosted,
    is_boosted,
    started_with_boost,
    stays_while_held,
    without_boost,
)
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.submit.mark import MOST_NICE

TYPES = ["priority/multifactor", "priority/basic", ""]
#: priority/basic counts down from here (TOP_PRIORITY in slurmctld.h); NO_VAL and INFINITE are no priorities (slurm.h).
TOP_PRIORITY, NO_VAL = 0xFFFF0000, 0xFFFFFFFE
own_nices = st.integers(-MOST_NICE, MOST_NICE)


@given(st.integers(1, 1_999_999_999), st.integers(1, 2_147_000_000), st.integers(0, MOST_NICE))
def test_by_weighted_factors_a_placed_job_is_before_every_other_and_fits_in_32_bits(other, own, nice) -> None:
    priority = own - boosted(nice, "priority/multifactor")
    assert other < priority < NO_VAL


@given(own_nices, st.sampled_from(["priority/basic", "priority/unknown"]))
def test_counted_down_no_nice_value_wraps_a_placed_job_around(nice, priority_type) -> None:
    assert TOP_PRIORITY - boosted(nice, priority_type) < NO_VAL


@pytest.mark.parametrize("ahead", [1, 59_999])
def test_counted_down_a_placed_job_is_before_those_that_were_submitted_earlier(ahead: int) -> None:
    base = TOP_PRIORITY - 100_000
    assert base - boosted(100, "priority/basic") > base + ahead


@given(own_nices, st.sampled_from(TYPES))
def test_a_boosted_nice_value_is_known_again_and_is_one_that_no_user_can_give(nice, priority_type) -> None:
    given_nice = boosted(nice, priority_type)
    assert -MOST_NICE <= given_nice < 0
    assert is_boosted(given_nice, nice)


@given(st.integers(-5_000, MOST_NICE), st.sampled_from(TYPES))
def test_what_an_administrator_gave_is_found_again_in_the_boosted_nice_value(nice, priority_type) -> None:
    assert without_boost(boosted(nice, priority_type)) == min(nice, 0)


@pytest.mark.parametrize(("shown", "own"), [(0, 0), (7, 7), (-500, 0), (-60_000, 0), (-60_030, -30)])
def test_without_a_boost_a_nice_value_is_the_owners(shown: int, own: int) -> None:
    assert without_boost(shown) == own


def test_jobs_that_run_with_our_boost_are_found_until_they_complete() -> None:
    jobs = [
        running(1, "c1", nice=-2_000_000_000),
        running(2, "c1", nice=-60_000),
        running(3, "c1", nice=7),
        running(4, "c1", nice=-2_000_000_000, is_completing=True),
        running(5, "c1", nice=-2_000_000_000),
        running(6, "c1", nice=-100),
        job(7, priority=9, nice=-2_000_000_000),
        running(8, "c1", nice=-60_000, priority=0),
    ]
    records = {number: JobRecord(number, 0, Stage.RUNNING, nice=7) for number in (1, 2, 3, 4, 6, 7, 8)}
    assert started_with_boost(jobs, records) == (OwnNice(1, 7), OwnNice(2, 7, checks_hold=True))


@pytest.mark.parametrize(
    ("fields", "stays"),
    [
        ({"nice": -60_000}, True),
        ({"nice": -60_000, "priority": 9}, False),
        ({"nice": -60_000, "reason": "BadConstraints"}, False),
        ({"nice": -2_000_000_000}, False),
        ({"nice": 7}, False),
    ],
)
def test_under_priority_basic_a_boost_stays_while_the_job_is_held_because_slurm_would_start_it(fields, stays) -> None:
    assert stays_while_held(job(1, **fields)) is stays


def test_a_job_held_by_its_owner_with_nothing_of_ours_but_that_boost_is_left_alone() -> None:
    left = job(1, nice=-60_000, extra="sns:1 advised")
    held = record(1, Stage.OWNER_HELD, nodes=(), nice=0)
    assert handed_over(left, JobStatus.OWNER_HELD, held, "") == ()
    (change,) = handed_over(job(1, nice=-60_000), JobStatus.OWNER_HELD, held, "")  # the mark does not say so yet
    assert isinstance(change, Unpin)
    assert change.checks_hold
