"""Jobs that came without a prolog, and jobs that went without an epilog."""

import pytest

from slurm_sns.node.agent.presence import LastSeen
from slurm_sns.node.agent.runs_here import RunHere, RunsHere
from slurm_sns.wire.values import RunId

HERE = RunsHere((RunHere(RunId(1), 1, 0.0),))


@pytest.fixture
def seen() -> LastSeen:
    found = LastSeen(after_s=60.0)
    found.begin(1, 0.0)
    return found


def test_a_job_with_a_slurmstepd_of_which_no_prolog_told_is_a_stranger(seen: LastSeen) -> None:
    assert seen.strangers({1, 3, 2}, HERE, 5.0) == [RunId(2), RunId(3)]


def test_a_stranger_is_the_run_that_the_controller_calls_active(seen: LastSeen) -> None:
    seen.active = frozenset({RunId(2, 4)})
    assert seen.strangers({2, 3}, HERE, 5.0) == [RunId(2, 4), RunId(3)]


def test_a_job_that_has_just_ended_is_no_stranger_until_it_should_have_gone(seen: LastSeen) -> None:
    seen.end(2, 5.0)
    assert seen.strangers({2}, HERE, 64.9) == []
    assert seen.strangers({2}, HERE, 65.0) == [RunId(2)]


def test_a_job_that_begins_again_has_not_ended(seen: LastSeen) -> None:
    seen.end(2, 5.0)
    seen.begin(2, 6.0)
    assert seen.strangers({2}, HERE, 7.0) == [RunId(2)]


def test_a_job_has_gone_when_it_was_not_seen_for_long_enough(seen: LastSeen) -> None:
    seen.strangers({1}, HERE, 10.0)
    assert seen.vanished(HERE, 69.9) == set()
    assert seen.vanished(HERE, 70.0) == {1}


def test_a_job_that_the_controller_calls_active_has_not_gone(seen: LastSeen) -> None:
    seen.active = frozenset({RunId(1)})
    assert seen.vanished(HERE, 1000.0) == set()


def test_only_jobs_that_are_here_are_remembered(seen: LastSeen) -> None:
    seen.begin(2, 0.0)
    seen.keep([2])
    assert seen.seen_s == {2: 0.0}
