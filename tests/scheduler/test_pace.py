"""The pace of what takes long: at most a tenth of the time, with a clock that is set by hand."""

import pytest

from slurm_sns.scheduler.pace import APART, CostPace, apart_s

MOST_S = 30.0


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.0, 0.0), (0.5, 0.5 * APART), (60.0, MOST_S)])
def test_two_times_are_ten_times_as_far_apart_as_the_first_took(took_s: float, pause_s: float) -> None:
    clock = [100.0]
    pace = CostPace(lambda: clock[0], MOST_S)
    assert pace.is_due()
    with pace.timed():
        clock[0] += took_s
    assert apart_s(took_s, MOST_S) == pause_s
    clock[0] = 100.0 + pause_s - 0.01
    assert not pace.is_due()
    clock[0] += 0.01
    assert pace.is_due()


def test_what_is_in_a_hurry_is_due_at_once() -> None:
    clock = [0.0]
    pace = CostPace(lambda: clock[0], MOST_S)
    with pace.timed():
        clock[0] += 1.0
    pace.hurry()
    assert pace.is_due()


def test_what_fails_is_tried_again_at_once() -> None:
    pace = CostPace(lambda: 0.0, MOST_S)
    with pytest.raises(OSError, match="gone"), pace.timed():
        raise OSError("gone")
    assert pace.is_due()
