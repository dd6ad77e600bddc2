"""The calibrated range: it has the truth four times of five, whatever the look aheads miss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.estimates.calibration import BURST_S, LEAST_BURSTS, Calibration, OwnerBurst, OwnerBursts, WaitRange


def coverage(waits: np.ndarray, raw: WaitRange, known: Calibration, many: int = 1, owner: int = 1) -> float:
    """The share of the waits that lay in the ranges told before them; so many jobs of a burst share each wait."""
    inside = []
    for at, wait_s in enumerate(waits.tolist()):
        for _ in range(many):
            told = known.told(raw)
            inside.append(told.has(wait_s))
            known.learn(raw, told, wait_s, OwnerBurst(owner, at))
    return float(np.mean(inside))


def test_while_nothing_is_known_the_range_is_wider_than_the_look_aheads():
    low, middle, high = Calibration().told(WaitRange.of(1000, 4000))

    assert (low, middle, high) == pytest.approx((500, 2000, 8000))


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 20), st.floats(0.1, 2), st.integers(0, 99))
def test_waits_that_are_longer_or_shorter_than_foretold_lie_in_the_range_four_times_of_five(factor, spread, seed):
    waits = 7200 * factor * np.random.default_rng(seed).lognormal(0, spread, 1500)
    known = Calibration()
    coverage(waits[:500], WaitRange.of(3600, 14400), known)

    assert 0.75 < coverage(waits[500:], WaitRange.of(3600, 14400), known) < 0.85 or (waits < 60).mean() > 0.1


def test_a_day_on_which_everything_takes_three_times_as_long_is_learnt():
    rng = np.random.default_rng(1)
    known, raw = Calibration(), WaitRange.of(3600, 14400)
    coverage(7200 * rng.lognormal(0, 0.5, 1000), raw, known)

    assert coverage(21600 * rng.lognormal(0, 0.5, 300), raw, known) > 0.6


def test_ranges_that_are_too_wide_become_narrower():
    known, raw = Calibration(), WaitRange.of(100, 100_000)
    coverage(3000 * np.random.default_rng(1).lognormal(0, 0.2, 200), raw, known)

    low, _, high = known.told(raw)

    assert 1500 < low < 3000 < high < 6000


def test_long_waits_are_judged_by_long_waits():
    known, short, long = Calibration(), WaitRange.of(600, 600), WaitRange.of(90_000, 90_000)
    coverage(np.full(100, 6000.0), short, known)
    coverage(np.full(100, 90_000.0), long, known)

    assert known.told(short).middle_s == pytest.approx(6000)
    assert known.told(long).middle_s == pytest.approx(90_000)


def test_waits_of_seconds_are_alike():
    assert WaitRange(0, 0, 0).has(20)
    assert not WaitRange(0, 0, 0).has(90)


def test_a_burst_of_hundreds_says_no_more_of_the_next_than_one_job():
    waits, raw = 7200 * np.random.default_rng(1).lognormal(0, 1, 100), WaitRange.of(7200, 7200)
    single, in_bursts, swamped = Calibration(), Calibration(), Calibration()
    coverage(waits, raw, single)
    coverage(waits, raw, in_bursts, many=5)
    coverage(waits, raw, swamped)
    told = swamped.told(raw)
    for _ in range(5000):
        swamped.learn(raw, told, 7200.0, OwnerBurst(2, 0))

    assert in_bursts.told(raw) == pytest.approx(single.told(raw), rel=0.3)
    assert swamped.told(raw) == pytest.approx(single.told(raw), rel=0.3)


def test_one_burst_is_too_little_to_go_by():
    known, raw = Calibration(), WaitRange.of(1000, 4000)
    for begun_s in range(LEAST_BURSTS - 1):
        for _ in range(10):
            known.learn(raw, known.told(raw), 9000, OwnerBurst(1, begun_s))
    assert known.told(raw).middle_s == pytest.approx(2000)

    known.learn(raw, known.told(raw), 9000, OwnerBurst(2, 0))
    assert known.told(raw).middle_s == pytest.approx(9000)


def test_a_burst_is_an_owners_jobs_within_minutes_of_its_first():
    bursts, later = OwnerBursts(), BURST_S - 1

    assert [bursts.of(owner, at) for owner, at in ((1, 0), (2, 10), (1, later), (1, later + 1), (2, 700))] == [
        OwnerBurst(1, 0),
        OwnerBurst(2, 10),
        OwnerBurst(1, 0),
        OwnerBurst(1, BURST_S),
        OwnerBurst(2, 700),
    ]


def test_a_clock_that_is_set_back_begins_a_burst():
    bursts = OwnerBursts()
    bursts.of(1, 1000)

    assert bursts.of(1, 900) == OwnerBurst(1, 900)


def test_the_oldest_scores_are_forgotten_with_their_bursts():
    known, raw = Calibration(), WaitRange.of(7200, 7200)
    coverage(np.full(1100, 70_000.0), raw, known)
    coverage(np.full(1000, 3600.0), raw, known, owner=2)

    assert known.told(raw).middle_s == pytest.approx(3600)
