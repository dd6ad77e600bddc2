"""Promises about the heartbeat: a small history breaks each, and one that is near keeps it."""

import pytest

from world.hand_made import BEGIN_S, Case


def test_a_beat_from_the_future_is_found(case: Case) -> None:
    case.add(5, "beat", by="scheduler", value=int(BEGIN_S) + 9)
    assert case.names() == ["heartbeat not honest"]


def test_a_beat_of_a_scheduler_that_does_not_run_is_found(case: Case) -> None:
    case.beats_until_s = 4
    case.add(4.5, "daemon", name="scheduler", what="crash")
    case.add(5, "beat", by="scheduler", value=int(BEGIN_S) + 5)
    assert case.names() == ["heartbeat not honest"]


def test_a_beat_before_the_first_look_is_found(case: Case) -> None:
    case.add(0.5, "beat", by="scheduler", value=int(BEGIN_S))
    assert case.names() == ["heartbeat not honest"]


def test_a_beat_after_the_stale_one_of_a_stop_is_found(case: Case) -> None:
    case.beats_until_s = 4
    case.add(4.5, "beat", by="scheduler", value=0)
    case.add(5, "beat", by="scheduler", value=int(BEGIN_S) + 5)
    assert case.names() == ["heartbeat not honest"]


@pytest.mark.parametrize(("stale", "found"), [(False, ["heartbeat not honest"]), (True, [])])
def test_a_heartbeat_that_is_fresh_after_a_clean_stop_is_found(case: Case, stale: bool, found: list[str]) -> None:
    case.beats_until_s = 4
    if stale:
        case.add(4.5, "beat", by="scheduler", value=0)
    case.add(5, "daemon", name="scheduler", what="stop")
    assert case.names() == found


@pytest.mark.parametrize("service", ["slurmctld", "munge"])
def test_beats_while_a_service_is_down_are_found(case: Case, service: str) -> None:
    case.end_s = 15
    case.add(5.5, service, state="down")
    assert case.names() == ["heartbeat not honest"] * 2, "at 14 s and at 15 s"


@pytest.mark.parametrize(("thawed_s", "number"), [(13.0, 0), (5.8, 2)])
def test_a_scheduler_that_stood_still_ends_its_cycle_before_it_finds_munge_down(
    case: Case, thawed_s: float, number: int
) -> None:
    case.end_s = 15
    case.add(5.2, "daemon", name="scheduler", what="freeze")
    case.add(5.5, "munge", state="down")
    case.add(thawed_s, "daemon", name="scheduler", what="thaw")
    assert case.names() == ["heartbeat not honest"] * number


def test_beats_while_the_store_is_locked_for_long_are_found(case: Case) -> None:
    case.end_s = 30
    case.add(5.5, "store", state="locked")
    case.add(20.5, "store", state="up")
    assert case.names() == ["heartbeat not honest"] * 2, "at 19 s and at 20 s"
