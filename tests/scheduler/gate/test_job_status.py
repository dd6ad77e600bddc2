from dataclasses import replace

import pytest
from gate_jobs import GATE, HINTS, JOBS, NOW, TIMEOUT_S, gated, job_with, placed
from hypothesis import given

from slurm_sns.scheduler.gate.job_status import Status, is_held, own_begin_s, status_of
from slurm_sns.scheduler.observation import JobState
from slurm_sns.submit.record import Record


def seen(job, now_s=NOW):
    return status_of(job, now_s, TIMEOUT_S)


def test_a_job_without_a_record_is_foreign():
    assert seen(job_with(begin_s=GATE)) is Status.FOREIGN
    assert seen(job_with(admin_comment="a site's note")) is Status.FOREIGN


def test_a_cron_federated_or_heterogeneous_job_is_foreign_whatever_its_record_says():
    assert seen(gated(is_special=True)) is Status.FOREIGN


@pytest.mark.parametrize("comment", ["sns:2 free=advise", "sns:2 what is this", "note;sns:1 g=5"])
@pytest.mark.parametrize("state", JobState)
def test_a_job_whose_record_says_so_or_cannot_be_read_is_slurms(comment, state):
    assert seen(replace(gated(admin_comment=comment), state=state)) is Status.SLURMS


def test_a_job_that_has_ended_is_ended():
    assert seen(replace(placed(), state=JobState.ENDED)) is Status.ENDED


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.SUSPENDED])
def test_a_running_or_suspended_job_is_running_held_or_not(state):
    assert seen(replace(placed(), state=state)) is Status.RUNNING
    assert seen(replace(placed(priority=0), state=state)) is Status.RUNNING


def test_a_pending_job_with_more_restarts_than_its_record_says_was_requeued():
    assert seen(placed(restarts=1, begin_s=NOW + 121)) is Status.REQUEUED
    assert seen(gated(restarts=1)) is Status.REQUEUED
    assert seen(placed(restarts=1, priority=0, reason="JobHeldAdmin")) is Status.REQUEUED


@pytest.mark.parametrize("begin_s", [0, NOW - 3, NOW])
def test_a_job_with_the_nodes_of_its_record_and_an_open_gate_is_placed(begin_s):
    assert seen(placed(begin_s=begin_s)) is Status.PLACED
    assert seen(placed(begin_s=begin_s, reason="Priority")) is Status.PLACED


def test_a_placed_job_that_slurm_has_not_started_in_time_is_overdue():
    assert seen(placed({"placed_s": NOW - 10}, begin_s=NOW - 10)) is Status.PLACED
    assert seen(placed({"placed_s": NOW - 11}, begin_s=NOW - 11)) is Status.OVERDUE


def test_a_placed_job_whose_time_lies_ahead_because_the_clock_was_set_back_is_overdue():
    assert seen(placed({"placed_s": NOW + 11})) is Status.OVERDUE


@pytest.mark.parametrize(
    "fields", [{"waits_for_others": True}, {"reason": "Dependency"}, {"reason": "JobArrayTaskLimit"}]
)
def test_a_placed_job_that_waits_for_others_is_placed_ahead_and_never_overdue(fields):
    assert seen(placed({"placed_s": NOW - 9000}, begin_s=0, **fields)) is Status.AHEAD
    assert seen(placed(**fields)) is Status.AHEAD
    assert seen(placed(priority=0, reason="JobHeldUser", waits_for_others=True)) is Status.HELD_PLACED


def test_a_job_placed_ahead_has_its_whole_time_to_start_from_when_it_waits_no_more():
    assert seen(placed({"placed_s": NOW - 9000}, begin_s=NOW - 10, reason="Resources")) is Status.PLACED
    assert seen(placed({"placed_s": NOW - 9000}, begin_s=NOW - 11, reason="Resources")) is Status.OVERDUE


def test_a_placed_job_whose_dependency_can_never_be_fulfilled_is_overdue_at_once():
    assert seen(placed(begin_s=0, waits_for_others=True, reason="DependencyNeverSatisfied")) is Status.OVERDUE


@pytest.mark.parametrize("reason", ["AssocMaxJobsLimit", "QOSGrpCpuLimit", "MaxCpuPerAccount", "BadConstraints"])
def test_a_placed_job_that_meets_a_limit_or_that_slurm_finds_impossible_is_overdue(reason):
    assert seen(placed(reason=reason)) is Status.OVERDUE


def test_bad_constraints_at_priority_zero_are_no_hold():
    assert seen(placed(reason="BadConstraints", priority=0)) is Status.OVERDUE
    assert not is_held(placed(reason="BadConstraints", priority=0))


def test_a_placed_job_whose_gate_still_stands_is_half_applied():
    assert seen(placed(begin_s=GATE)) is Status.HALF_APPLIED


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin", "job requeued in held state", ""])
def test_a_placed_job_that_somebody_holds_is_held(reason):
    assert seen(placed(priority=0, reason=reason)) is Status.HELD_PLACED


@pytest.mark.parametrize("nodes", [(), ("c1",), ("c1", "c2", "c3"), ("c3",)])
def test_a_placed_job_with_other_nodes_or_none_was_changed(nodes):
    assert seen(placed(pinned_to=nodes)) is Status.CHANGED
    assert seen(placed(pinned_to=nodes, priority=0, reason="JobHeldUser")) is Status.CHANGED


def test_a_placed_job_with_another_begin_time_ahead_was_changed():
    assert seen(placed(begin_s=GATE + 1)) is Status.CHANGED


def test_a_job_whose_begin_time_is_its_gate_ahead_is_gated_also_while_it_is_held():
    assert seen(gated()) is Status.GATED
    assert seen(gated(priority=0, reason="JobHeldUser")) is Status.GATED


@pytest.mark.parametrize("begin_s", [0, GATE])
def test_a_job_whose_gate_is_past_or_zero_has_lapsed(begin_s):
    assert seen(gated(begin_s=begin_s), now_s=GATE) is Status.LAPSED
    assert seen(gated(begin_s=begin_s), now_s=GATE - 0.5) is (Status.GATED if begin_s else Status.LAPSED)


def test_a_begin_time_ahead_that_is_not_the_gate_is_the_owners():
    assert seen(gated(begin_s=GATE + 5)) is Status.OWN_TIME
    assert seen(job_with(Record(HINTS), begin_s=GATE)) is Status.OWN_TIME


def test_a_job_that_its_owner_has_opened_is_slurms_from_now_on():
    assert seen(gated(begin_s=NOW - 1)) is Status.TAKEN


@pytest.mark.parametrize(
    "asked",
    [
        {"asks_for": ("constraint",)},
        {"pinned_to": ("c1",)},
        {"ways": 3},
        {"bandwidth_gbps": 9},
        {"has_other_gres": True},
    ],
)
@pytest.mark.parametrize("begin_s", [0, NOW - 1, GATE, GATE + 5])
def test_a_waiting_job_that_asks_for_what_we_do_not_place_is_slurms_from_now_on(asked, begin_s):
    assert seen(gated(begin_s=begin_s, **asked)) is Status.TAKEN


@given(JOBS)
def test_every_job_has_exactly_one_status_and_none_raises(job):
    assert isinstance(seen(job), Status)


@given(JOBS)
def test_whoever_holds_or_releases_a_job_never_opens_its_gate(job):
    held, released = replace(job, priority=0, reason="JobHeldUser"), replace(job, priority=9, reason="")
    if seen(released) is Status.GATED:
        assert seen(held) is Status.GATED
    assert (seen(held) is Status.TAKEN) == (seen(released) is Status.TAKEN)


def test_the_begin_time_that_slurm_sets_at_a_requeue_is_not_the_owners():
    record = Record(gate_s=GATE)
    requeued = job_with(restarts=1, begin_s=NOW + 121)
    assert own_begin_s(requeued, record, NOW) is None
    assert own_begin_s(replace(requeued, restarts=0), record, NOW) == NOW + 121
    assert own_begin_s(requeued, replace(record, begin_s=NOW + 500), NOW) == NOW + 500
    assert own_begin_s(requeued, replace(record, begin_s=NOW), NOW) is None
