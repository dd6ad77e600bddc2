"""The state table of CONTRIBUTING.md, one test a row, and the cases without a record of ours."""

import pytest
from live import ENFORCE, NOW, job, pinned, record, running

from slurm_sns.scheduler.observe.job_status import JobStatus, status_of
from slurm_sns.scheduler.observe.nice import boosted
from slurm_sns.scheduler.observe.observed import JobState
from slurm_sns.scheduler.observe.records import Stage


def seen(observed, known=None) -> JobStatus:
    return status_of(observed, known, NOW, ENFORCE)


def test_a_marked_job_of_priority_0_without_nodes_is_ours_and_waits() -> None:
    assert seen(job(1), record(1, Stage.HELD)) is JobStatus.WAITING


def test_a_marked_job_of_priority_0_that_we_pinned_is_held_by_its_owner() -> None:
    assert seen(job(1, pinned_to=("c1",)), record(1)) is JobStatus.OWNER_HELD


@pytest.mark.parametrize("reason", ["JobHeldAdmin", "BadConstraints"])
def test_a_job_that_slurm_or_an_administrator_holds_is_not_ours_to_place(reason: str) -> None:
    assert seen(job(1, reason=reason), record(1, Stage.HELD)) is JobStatus.ADMIN_HELD
    assert seen(job(1, reason=reason, extra="mine"), record(1, Stage.HELD)) is JobStatus.ADMIN_HELD
    assert seen(job(1, reason="JobHeldUser"), record(1, Stage.HELD)) is JobStatus.WAITING


def test_a_placed_job_that_slurm_holds_because_it_could_never_run_there_is_overdue_at_once() -> None:
    """Left as if its owner held it, it would stay held for ever."""
    assert seen(pinned(1, "c1", priority=0, reason="BadConstraints"), record(1)) is JobStatus.OVERDUE


@pytest.mark.parametrize("known", [None, record(1)])
def test_a_placed_job_that_its_owner_gave_to_slurm_and_slurm_holds_for_our_nodes_loses_them(known) -> None:
    left = {"extra": "sns:1 advised", "priority": 0, "nice": boosted(0, "priority/basic")}
    assert seen(pinned(1, "c1", reason="BadConstraints", **left), known) is JobStatus.CHANGED
    assert seen(pinned(1, "c1", reason="JobHeldUser", **left), known) in (JobStatus.RELEASED, JobStatus.FOREIGN)
    assert seen(pinned(1, "c2", reason="BadConstraints", **left | {"nice": 0}), known) in (
        JobStatus.RELEASED,
        JobStatus.FOREIGN,
    )


def test_a_pinned_job_that_has_not_started_yet_is_placed() -> None:
    assert seen(pinned(1, "c1"), record(1)) is JobStatus.PLACED


def test_a_pinned_job_is_overdue_only_after_the_whole_timeout() -> None:
    assert seen(pinned(1, "c1"), record(1, placed_s=NOW - 10)) is JobStatus.PLACED
    assert seen(pinned(1, "c1"), record(1, placed_s=NOW - 10.1)) is JobStatus.OVERDUE


def test_a_job_placed_in_the_future_is_overdue_for_the_clock_was_stepped_back() -> None:
    assert seen(pinned(1, "c1"), record(1, placed_s=NOW + 10)) is JobStatus.PLACED
    assert seen(pinned(1, "c1"), record(1, placed_s=NOW + 3600)) is JobStatus.OVERDUE


def test_a_pinned_job_with_more_restarts_than_recorded_was_requeued() -> None:
    assert seen(pinned(1, "c1", restarts=2), record(1, restarts=1)) is JobStatus.REQUEUED


def test_a_requeue_counts_before_the_timeout() -> None:
    assert seen(pinned(1, "c1", restarts=1), record(1, placed_s=0)) is JobStatus.REQUEUED


@pytest.mark.parametrize("stage", [Stage.RUNNING, Stage.OWNER_HELD])
def test_a_job_that_ran_and_was_requeued_is_planned_again_also_if_it_was_held_in_between(stage: Stage) -> None:
    assert seen(pinned(1, "c1", restarts=1), record(1, stage)) is JobStatus.REQUEUED


def test_a_marked_job_with_a_priority_and_without_nodes_was_released_by_its_owner() -> None:
    assert seen(job(1, priority=1000), record(1, Stage.HELD)) is JobStatus.RELEASED


def test_a_job_in_our_records_without_our_mark_has_lost_it() -> None:
    assert seen(job(1, extra="my own note"), record(1, Stage.HELD)) is JobStatus.MARK_LOST


@pytest.mark.parametrize("extra", ["sns:1", "", "my own note"])
def test_a_job_that_occupies_nodes_is_running_whatever_it_says(extra: str) -> None:
    assert seen(running(1, "c1", extra=extra), record(1)) is JobStatus.RUNNING


@pytest.mark.parametrize("known", [None, record(1)])
def test_a_job_that_has_ended_is_no_business_of_ours(known) -> None:
    assert seen(job(1, state=JobState.ENDED), known) is JobStatus.ENDED


def test_a_job_without_mark_and_record_is_not_ours() -> None:
    assert seen(job(1, extra="")) is JobStatus.FOREIGN
    assert seen(job(1, extra="sns:1 something=else")) is JobStatus.FOREIGN


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (job(1), JobStatus.WAITING),
        (job(1, pinned_to=("c1",), nice=-60_000), JobStatus.OWNER_HELD),
        (pinned(1, "c1"), JobStatus.PLACED),
        (pinned(1, "c1", restarts=3), JobStatus.PLACED),
        (job(1, priority=1000), JobStatus.RELEASED),
        (running(1, "c1"), JobStatus.RUNNING),
        (running(1, "c1", state=JobState.SUSPENDED), JobStatus.SUSPENDED),
    ],
)
def test_the_mark_alone_tells_what_a_job_is_when_our_records_are_lost(observed, expected) -> None:
    assert seen(observed) is expected


# --- what an owner changes, as far as Slurm lets them


def test_a_placed_job_that_its_owner_held_and_released_is_slurms_with_nothing_of_ours_left_on_it() -> None:
    held = record(1, Stage.OWNER_HELD, placed_s=0)
    assert seen(pinned(1, "c1"), held) is JobStatus.CHANGED
    assert seen(pinned(1, "c1"), record(1, Stage.RELEASED)) is JobStatus.CHANGED, "until nothing of ours is left"
    assert seen(job(1, priority=1000), record(1, Stage.RELEASED)) is JobStatus.RELEASED
    assert seen(pinned(1, "c1", priority=0), record(1, Stage.RELEASED)) is JobStatus.OWNER_HELD, "so it stays held"


@pytest.mark.parametrize("known", [None, record(1, Stage.HELD)])
@pytest.mark.parametrize(
    "edit", [{"pinned_to": ("c1",)}, {"asks_for": ("constraint",)}, {"unreadable": "x"}, {"ways": 4}], ids=str
)
def test_a_held_job_that_its_owner_made_one_that_we_do_not_place_is_left_to_slurm(known, edit) -> None:
    assert seen(job(1, **edit), known) is JobStatus.CHANGED


@pytest.mark.parametrize("stage", [Stage.PLACED, Stage.OWNER_HELD])
def test_a_placed_job_whose_owner_gave_it_other_nodes_or_none_is_left_to_slurm(stage: Stage) -> None:
    assert seen(pinned(1, "c2"), record(1, stage)) is JobStatus.CHANGED
    assert seen(pinned(1), record(1, stage)) is JobStatus.CHANGED


@pytest.mark.parametrize("nodes", [("c1",), ("c2",), ()])
def test_a_placed_job_that_its_owner_holds_stays_held_whatever_else_they_change(nodes) -> None:
    assert seen(pinned(1, *nodes, priority=0), record(1)) is JobStatus.OWNER_HELD
    assert seen(job(1, pinned_to=nodes), record(1, Stage.OWNER_HELD)) is JobStatus.OWNER_HELD
    assert seen(pinned(1, *nodes, priority=0, extra="mine"), record(1)) is JobStatus.OWNER_HELD


def test_a_job_whose_placement_was_recorded_and_never_sent_waits() -> None:
    assert seen(job(1), record(1)) is JobStatus.WAITING
    assert seen(job(1, extra="mine"), record(1)) is JobStatus.MARK_LOST


def test_a_placement_that_could_not_be_taken_back_is_ours_to_take_back() -> None:
    for stage in (Stage.HELD, Stage.HOLDING):
        refused = record(1, stage, nodes=("c1",))
        assert seen(pinned(1, "c1"), refused) is JobStatus.OVERDUE
        assert seen(pinned(1, "c1", priority=0), refused) is JobStatus.OWNER_HELD  # the nodes go before we hold it
        half_done = JobStatus.OVERDUE if stage is Stage.HELD else JobStatus.OWNER_HELD
        assert seen(pinned(1, "c1", nice=0, priority=0), refused) is half_done


def test_slurms_hold_of_a_job_that_we_are_taking_back_is_ours_to_end() -> None:
    """Cleared of its nodes, Slurm tried it before our hold came, and holds it: nobody else would end that."""
    held = job(1, reason="BadConstraints")
    assert seen(held, record(1, Stage.HOLDING, nodes=("c1",))) is JobStatus.OVERDUE
    assert seen(held, record(1, Stage.HELD, nodes=("c1",))) is JobStatus.ADMIN_HELD
    assert seen(job(1, reason="JobHeldAdmin"), record(1, Stage.HOLDING, nodes=("c1",))) is JobStatus.ADMIN_HELD


def test_a_job_that_was_released_stays_slurms_whoever_holds_it_later() -> None:
    assert seen(job(1), record(1, Stage.RELEASED)) is JobStatus.RELEASED
    assert seen(job(1, extra="mine"), record(1, Stage.RELEASED)) is JobStatus.RELEASED


def test_a_placed_job_that_lost_its_mark_is_taken_back_from_its_nodes() -> None:
    assert seen(pinned(1, "c1", extra="mine"), record(1)) is JobStatus.CHANGED


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (job(1, extra="sns:1 advised"), JobStatus.FOREIGN),
        (job(1, extra="sns:1 advised", pinned_to=("c1",), priority=1000), JobStatus.FOREIGN),
        (job(1, extra="sns:1 advised", priority=1000), JobStatus.RELEASED),
    ],
)
def test_a_job_that_the_filter_marked_and_did_not_hold_is_held_by_its_owner_alone(observed, expected) -> None:
    assert seen(observed) is expected


@pytest.mark.parametrize("stage", [Stage.HELD, Stage.HOLDING, Stage.PLACED])
def test_a_job_that_is_held_after_we_gave_it_to_slurm_is_not_held_by_us_whatever_our_record_says(stage) -> None:
    assert seen(job(1, extra="sns:1 advised"), record(1, stage)) is JobStatus.RELEASED
    assert seen(job(1, extra="sns:1 advised", priority=1000), record(1, stage)) is JobStatus.RELEASED
    left = pinned(1, "c1", extra="sns:1 advised")
    assert seen(left, record(1, stage, nodes=("c1",))) is JobStatus.CHANGED, "our placement is still taken back"


def test_a_placed_job_that_its_owner_sends_to_impossible_nodes_is_the_owners_not_a_placement_that_failed() -> None:
    held = pinned(1, "c2", priority=0, reason="BadConstraints")
    assert seen(held, record(1, nodes=("c1",))) is JobStatus.CHANGED
    assert seen(held, record(1, nodes=("c2",))) is JobStatus.OVERDUE


def test_a_job_that_its_owner_holds_is_shown_as_such_also_after_its_placement_was_taken_back() -> None:
    assert seen(job(1, extra="sns:1 advised"), record(1, Stage.OWNER_HELD)) is JobStatus.OWNER_HELD
    assert seen(job(1, extra="sns:1 advised", priority=9), record(1, Stage.OWNER_HELD)) is JobStatus.RELEASED


def test_a_mark_that_a_user_wrote_on_a_job_with_a_node_list_of_their_own_gives_it_to_slurm() -> None:
    assert seen(pinned(1, "c1", nice=0)) is JobStatus.RELEASED
    assert seen(job(1, pinned_to=("c1",))) is JobStatus.CHANGED, "or the filter holds it, and it was pinned since"


def test_a_placed_job_with_a_nice_value_of_its_own_is_known_again_when_our_records_are_lost() -> None:
    assert seen(pinned(1, "c1", nice=boosted(100_000, "priority/multifactor"))) is JobStatus.PLACED


def test_a_requeued_job_with_its_own_nice_value_is_known_again_when_our_records_are_lost() -> None:
    assert seen(pinned(1, "c1", nice=7, restarts=1)) is JobStatus.PLACED


@pytest.mark.parametrize("nice", [-2_000_000_000, -60_000])
def test_a_boost_without_our_nodes_is_known_whichever_it_was(nice: int) -> None:
    assert seen(job(1, priority=9, nice=nice), record(1, nice=7)) is JobStatus.CHANGED
    assert seen(job(1, priority=9, nice=nice - 30), record(1, nice=-30)) is JobStatus.CHANGED


def test_a_nice_value_below_0_that_an_administrator_gives_is_none_of_our_boosts() -> None:
    assert seen(job(1, priority=9, nice=-500), record(1, Stage.RELEASED)) is JobStatus.RELEASED
