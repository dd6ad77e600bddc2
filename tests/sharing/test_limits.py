"""Time limits in virtual time: a job ends when its virtual time is used up, and not before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.sharing.limits import LimitedJob, new_limit_s, wanted_limit_s
from slurm_sns.sharing.progress import RunProgress

HOUR = 3600


def test_a_job_alone_keeps_its_owners_limit():
    assert wanted_limit_s(LimitedJob(HOUR, HOUR), RunProgress(0, 1800.0, 1800.0), 1.0, 4) == HOUR


def test_half_the_speed_doubles_what_is_left():
    at = RunProgress(0, 1800.0, 900.0)
    assert wanted_limit_s(LimitedJob(HOUR, HOUR), at, 0.5, 4) == 1800 + 2 * 2700
    assert wanted_limit_s(LimitedJob(HOUR, HOUR), at, 0.5, 1.5) == 1.5 * HOUR
    assert wanted_limit_s(LimitedJob(HOUR, HOUR), at, 0.5, 1) == HOUR, "limits count the time on the clock"
    assert wanted_limit_s(LimitedJob(HOUR, HOUR, longest_s=4000), at, 0.5, 4) == 3960, "a reservation begins"
    assert wanted_limit_s(LimitedJob(HOUR, 7200, longest_s=1000), at, 0.5, 4) == 7200, "it has begun meanwhile"


@pytest.mark.parametrize(
    ("ran_s", "virtual_s", "limit_s", "moved_s", "new_s"),
    [
        pytest.param(100, 50, HOUR, None, None, id="its end is far"),
        pytest.param(3100, 1550, HOUR, None, 3100 + 2 * 2050, id="its end is near"),
        pytest.param(3100, 1550, HOUR, 9900, None, id="it was moved a moment ago"),
        pytest.param(3550, 1775, HOUR, 9900, 3550 + 2 * 1825, id="it was moved a moment ago, but is about to end"),
        pytest.param(5000, 3600, 7200, 9900, 5040, id="its time is used up"),
    ],
)
def test_limits_are_moved_rarely(ran_s, virtual_s, limit_s, moved_s, new_s):
    found = new_limit_s(LimitedJob(HOUR, limit_s, moved_s), RunProgress(0, ran_s, virtual_s), 0.5, 10_000, 4)
    assert found == (None if new_s is None else -(-new_s // 60) * 60)


@given(
    st.integers(1, 300).map(lambda minutes: 60 * minutes),
    st.lists(st.tuples(st.integers(1, 7200), st.sampled_from([0.25, 0.5, 2 / 3, 1.0])), min_size=1, max_size=12),
    st.integers(1, 30),
)
def test_a_job_ends_when_its_virtual_time_is_used_up(own_s, course, cycle_s):
    """Whatever its neighbours do: it never ends before, and afterwards within the two minutes that rounding costs."""
    limit_s, moved_s, at, now_s = own_s, None, RunProgress(), 0.0
    steps = [part for lasts_s, part in course for _ in range(-(-lasts_s // cycle_s))]
    parts = iter(steps)
    part = 1.0
    while at.ran_s < limit_s:
        part = next(parts, part)
        now_s += cycle_s
        at = at.after(0, now_s, part)
        new_s = new_limit_s(LimitedJob(own_s, limit_s, moved_s), at, part, now_s, 100)
        if new_s is not None:
            limit_s, moved_s = new_s, now_s
    assert at.virtual_s >= own_s - cycle_s
    assert at.virtual_s <= own_s + 120 + cycle_s
