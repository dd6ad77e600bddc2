"""The state table of CONTRIBUTING.md, one test a row, and the cases without a record of ours."""

import pytest
from live import NOW, job, pinned, record, running

from slurm_sns.scheduler.observed import JobState
from slurm_sns.scheduler.records import Stage
from slurm_sns.scheduler.standing import Standing, standing


def seen(observed, known=None, *, timeout_s=10.0) -> Standing:
    return standing(observed, known, NOW, timeout_s)


def test_a_marked_job_of_priority_0_without_nodes_is_ours_and_waits() -> None:
    assert seen(job(1), record(1, Stage.HELD)) is Standing.WAITING


def test_a_marked_job_of_priority_0_that_we_pinned_is_held_by_its_owner() -> None:
    assert seen(job(1, pinned_to=("c1",)), record(1)) is Standing.OWNER_HELD


@pytest.mark.parametrize("reason", ["JobHeldAdmin", "BadConstraints"])
def test_a_job_that_slurm_or_an_administrator_holds_is_not_ours_to_place(reason: str) -> None:
    assert seen(job(1, reason=reason), record(1, Stage.HELD)) is Standing.ADMIN_HELD
    assert seen(job(1, reason=reason, extra="mine"), record(1, Stage.HELD)) is Standing.ADMIN_HELD
    assert seen(job(1, reason="JobHeldUser"), record(1, Stage.HELD)) is Standing.WAITING


def test_a_placed_job_that_slurm_holds_because_it_could_never_run_there_is_overdue_at_once() -> None:
    """Left as if its owner held it, it would stay held for ever."""
    assert seen(pinned(1, "c1", priority=0, reason="BadConstraints"), record(1)) is Standing.OVERDUE


def test_a_pinned_job_that_has_not_started_yet_is_placed() -> None:
    assert seen(pinned(1, "c1"), record(1)) is Standing.PLACED


def test_a_pinned_job_is_overdue_only_after_the_whole_timeout() -> None:
    assert seen(pinned(1, "c1"), record(1, placed_s=NOW - 10)) is Standing.PLACED
    assert seen(pinned(1, "c1"), record(1, placed_s=NOW - 10.1)) is Standing.OVERDUE


def test_a_job_placed_in_the_future_is_overdue_for_the_clock_was_stepped_back() -> None:
    assert seen(pinned(1, "c1"), record(1, placed_s=NOW + 10)) is Standing.PLACED
    assert seen(pinned(1, "c1"), record(1, placed_s=NOW + 3600)) is Standing.OVERDUE


def test_a_pinned_job_with_more_restarts_than_recorded_was_requeued() -> None:
    assert seen(pinned(1, "c1", restarts=2), record(1, restarts=1)) is Standing.REQUEUED


def test_a_requeue_counts_before_the_timeout() -> None:
    assert seen(pinned(1, "c1", restarts=1), record(1, placed_s=0)) is Standing.REQUEUED


def test_a_marked_job_with_a_priority_and_without_nodes_was_released_by_its_owner() -> None:
    assert seen(job(1, priority=1000), record(1, Stage.HELD)) is Standing.RELEASED


def test_a_job_in_our_records_without_our_mark_has_lost_it() -> None:
    assert seen(job(1, extra="my own note"), record(1, Stage.HELD)) is Standing.MARK_LOST


@pytest.mark.parametrize("extra", ["sns:1", "", "my own note"])
def test_a_job_that_occupies_nodes_is_running_whatever_it_says(extra: str) -> None:
    assert seen(running(1, "c1", extra=extra), record(1)) is Standing.OCCUPYING


@pytest.mark.parametrize("known", [None, record(1)])
def test_a_job_that_has_ended_is_no_business_of_ours(known) -> None:
    assert seen(job(1, state=JobState.ENDED), known) is Standing.ENDED


def test_a_job_without_mark_and_record_is_not_ours() -> None:
    assert seen(job(1, extra="")) is Standing.FOREIGN
    assert seen(job(1, extra="sns:1 something=else")) is Standing.FOREIGN


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (job(1), Standing.WAITING),
        (job(1, pinned_to=("c1",), nice=-500), Standing.OWNER_HELD),
        (pinned(1, "c1"), Standing.PLACED),
        (pinned(1, "c1", restarts=3), Standing.PLACED),
        (job(1, priority=1000), Standing.RELEASED),
        (running(1, "c1"), Standing.OCCUPYING),
    ],
)
def test_the_mark_alone_tells_what_a_job_is_when_our_records_are_lost(observed, expected) -> None:
    assert seen(observed) is expected


def test_a_job_that_its_owner_held_and_released_after_we_placed_it_is_placed_again() -> None:
    assert seen(pinned(1, "c1"), record(1, Stage.OWNER_HELD, placed_s=0)) is Standing.PLACED


@pytest.mark.parametrize("forged", [job(1, pinned_to=("c1",)), pinned(1, "c1", nice=0)])
def test_a_mark_that_a_user_wrote_on_a_job_with_his_own_node_list_makes_it_not_ours(forged) -> None:
    assert seen(forged) is Standing.FOREIGN
