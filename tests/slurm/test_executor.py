"""What is sent to Slurm, and what its refusals mean."""

from dataclasses import replace
from subprocess import CompletedProcess, TimeoutExpired
from unittest import mock

import pytest
import recorded

from slurm_sns.errors import Refused, SnsError, Unreachable
from slurm_sns.model import Alternative, Release, Requeue, Resources, Resume, SetShare, Start, Suspend
from slurm_sns.scheduler.observe.arrays import Split
from slurm_sns.scheduler.observe.follow_up import Advise, Unpin
from slurm_sns.scheduler.observe.nice import OwnNice
from slurm_sns.scheduler.observe.records import OwnMemory
from slurm_sns.scheduler.orders import EndHold, PlacementOrder, Replaced
from slurm_sns.slurm import translate
from slurm_sns.slurm.api import is_unreachable
from slurm_sns.slurm.commands import run
from slurm_sns.slurm.executor import INFINITE, SlurmExecutor


def placement(nice: int = -500, memory_mb: int | None = None, tasks: int | None = None, **way) -> PlacementOrder:
    alternative = Alternative(**{"nodes": 2, "demand": Resources(20, 90_000), **way})
    return PlacementOrder(Start(7, ("c1", "c2"), alternative), nice, memory_mb, tasks)


def execute(order) -> None:
    """Carry out one order; raises what its answer says."""
    (answer,) = SlurmExecutor().execute([order])
    assert answer.order is order
    if not answer.is_done:
        raise answer.refused or answer.unreachable


def test_a_placement_is_one_change_with_exactly_these_fields(pyslurm) -> None:
    execute(placement(tasks=40, tasks_per_node=20))
    pyslurm.Job.assert_called_once_with(7)
    pyslurm.Job.return_value.modify.assert_called_once_with(
        {
            "required_nodes": ["c1", "c2"],
            "ntasks": 40,
            "ntasks_per_node": 20,
            "gres_per_node": None,
            "memory_per_node": None,
            "nice": -500,
            "extra": None,
            "priority": INFINITE,
        }
    )


def test_a_job_that_keeps_its_geometry_is_only_pinned(pyslurm) -> None:
    execute(placement())
    (change,) = pyslurm.Job.return_value.modify.call_args.args
    assert (change["ntasks"], change["ntasks_per_node"]) == (None, None)


def test_ways_and_bandwidth_are_asked_for_as_gres(pyslurm) -> None:
    execute(placement(demand=Resources(20, 90_000, ways=4, bandwidth_gbps=10)))
    (change,) = pyslurm.Job.return_value.modify.call_args.args
    assert change["gres_per_node"] == {"llc": 4, "membw": 10}


def test_a_job_that_is_to_be_alone_asks_for_all_the_memory_of_its_nodes(pyslurm) -> None:
    execute(placement(memory_mb=128_000, exclusive=True))
    (change,) = pyslurm.Job.return_value.modify.call_args.args
    assert change["memory_per_node"] == 128_000


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({"state_reason": "JobHeldAdmin"}, "it is held by Slurm or an administrator: JobHeldAdmin"),
        ({"state_reason": "BadConstraints"}, "it is held by Slurm or an administrator: BadConstraints"),
        ({"priority": 1000, "state_reason": "Priority"}, "it is not held any more"),
        ({"state": "RUNNING", "state_reason": "None"}, "it does not wait any more"),
    ],
)
def test_a_job_that_somebody_else_holds_since_we_looked_is_not_placed(pyslurm, now, why: str) -> None:
    pyslurm.Job.load.return_value = recorded.job(**now)
    with pytest.raises(Refused, match=why):
        execute(placement())
    pyslurm.Job.return_value.modify.assert_not_called()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"nice": 100}, "its nice value changed since we looked"),
        ({"required_nodes": "c2"}, "its node list changed"),
        ({"extra": "sns:1 advised"}, "its mark changed"),
        ({"ntasks": 3}, "its number of tasks changed"),
        ({"memory_per_cpu": None, "memory_per_node": 512}, "its memory changed"),
        ({"nice": 100, "ntasks": 3}, "its nice value and number of tasks changed"),
        ({"gres_per_node": {"gres/llc": 3, "gres/membw": 10}}, "its gres changed"),
        ({"gres_per_node": {"gres/gpu": 1}}, "its gres changed"),
        ({"array_id": 7, "array_tasks_waiting": "0-1"}, "its array tasks changed"),
    ],
)
def test_a_job_that_its_owner_has_changed_since_the_plan_is_not_placed(pyslurm, changed, why: str) -> None:
    planned = Replaced.of(translate.job(recorded.job()))
    pyslurm.Job.load.return_value = recorded.job(**changed)
    with pytest.raises(Refused, match=why):
        execute(replace(placement(), replaced=planned))
    pyslurm.Job.load.return_value = recorded.job()
    execute(replace(placement(), replaced=planned))
    pyslurm.Job.return_value.modify.assert_called_once()


def test_a_job_that_an_administrator_holds_while_one_of_several_dependencies_has_failed_is_not_placed(pyslurm) -> None:
    """Slurm gives a job that we hold this reason only when none of them can be fulfilled any more."""
    either = {**recorded.NO_DEPENDENCIES, "afterok": ["1(failed)", "2(unfulfilled)"], "satisfy": "any"}
    pyslurm.Job.load.return_value = recorded.job(state_reason="JobHeldAdmin", dependencies=either)
    with pytest.raises(Refused, match="held by Slurm or an administrator"):
        execute(placement())
    pyslurm.Job.return_value.modify.assert_not_called()


@pytest.mark.parametrize(
    ("extra", "new"),
    [("sns:1 alpha=0.9", "sns:1 alpha=0.9 advised"), ("mine", None), ("", None)],
)
def test_a_release_changes_the_priority_and_says_in_the_mark_that_we_no_longer_hold_the_job(
    pyslurm, extra: str, new: str | None
) -> None:
    pyslurm.Job.load.return_value = recorded.job(extra=extra)
    execute(Release(7, "over"))
    pyslurm.Job.return_value.modify.assert_called_once_with({"priority": INFINITE, "extra": new})


def test_of_a_job_that_is_free_only_the_mark_is_written_for_a_release_would_clear_its_nice_value(pyslurm) -> None:
    """When a placement that Slurm found impossible is taken back, Slurm itself frees the job."""
    pyslurm.Job.load.return_value = recorded.job(priority=900, nice=100, extra="sns:1 grant=1:abc")
    execute(Release(7, "over"))
    pyslurm.Job.return_value.modify.assert_called_once_with({"extra": "sns:1 advised"})


@pytest.mark.parametrize(
    "now",
    [
        {"extra": "mine"},
        {"extra": "sns:1 advised"},
    ],
)
def test_a_free_job_that_is_no_longer_ours_to_release_is_left_alone(pyslurm, now) -> None:
    pyslurm.Job.load.return_value = recorded.job(priority=900, **now)
    execute(Release(7, "over"))
    pyslurm.Job.return_value.modify.assert_not_called()


@pytest.mark.parametrize(
    ("now", "why"), [({"state": "COMPLETED"}, "has ended"), ({"required_nodes": "c1"}, "has been placed meanwhile")]
)
def test_a_job_that_has_ended_or_been_placed_since_we_looked_is_not_released(pyslurm, now, why: str) -> None:
    pyslurm.Job.load.return_value = recorded.job(priority=900, extra="sns:1", **now)
    with pytest.raises(Refused, match=why):
        execute(Release(7, "over"))
    pyslurm.Job.return_value.modify.assert_not_called()


def test_the_mark_of_a_job_that_has_started_before_its_release_says_so_all_the_same(pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(priority=900, extra="sns:1", state="RUNNING")
    execute(Release(7, "over"))
    pyslurm.Job.return_value.modify.assert_called_once_with({"extra": "sns:1 advised"})


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("JobHeldAdmin", "an administrator holds it"),
        ("job requeued in held state", "it is held: job requeued in held state"),
    ],
)
def test_a_job_that_somebody_else_holds_since_we_looked_is_not_released(pyslurm, reason: str, why: str) -> None:
    pyslurm.Job.load.return_value = recorded.job(state_reason=reason)
    with pytest.raises(Refused, match=why):
        execute(Release(7, "over"))
    pyslurm.Job.return_value.modify.assert_not_called()


def test_a_held_job_that_was_placed_since_we_looked_is_not_released(pyslurm) -> None:
    """Its owner holds it."""
    pyslurm.Job.load.return_value = recorded.job(required_nodes="c1")
    with pytest.raises(Refused, match="it has been placed meanwhile"):
        execute(Release(7, "over"))
    pyslurm.Job.return_value.modify.assert_not_called()
    execute(Release(7, "its owner asks for a node list", pinned_to=("c1",)))
    pyslurm.Job.return_value.modify.assert_called_once()


def unpin(**fields) -> None:
    execute(Unpin(**{"job_id": 7, "nice": 30, "reason": "overdue", **fields}))


@pytest.fixture
def sent(mocker, pyslurm):
    """Slurm's commands, of a job that nobody holds."""
    pyslurm.Job.load.return_value = recorded.job(priority=1000, extra="sns:1")
    return mocker.patch("slurm_sns.slurm.executor.run")


def test_an_unpin_clears_first_and_holds_then(sent) -> None:
    """A crash in between leaves a job that Slurm runs, not one that nobody releases."""
    unpin()
    assert [call.args for call in sent.call_args_list] == [
        ("scontrol", "update", "JobId=7", "Nice=30", "ReqNodeList=", "TresPerNode="),
        ("scontrol", "uhold", "7"),
    ]


def test_a_job_that_the_watchdog_has_given_to_slurm_in_between_is_not_held(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(priority=1000, extra="sns:1 advised")
    unpin()
    assert [call.args[1] for call in sent.call_args_list] == ["update"]


def test_a_mark_without_the_grant_does_not_replace_the_watchdogs_word_that_the_job_is_slurms(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(priority=1000, extra="sns:1 advised")
    unpin(mark="sns:1")
    assert [call.args for call in sent.call_args_list] == [
        ("scontrol", "update", "JobId=7", "Nice=30", "ReqNodeList=", "TresPerNode=")
    ]
    pyslurm.Job.load.return_value = recorded.job(priority=1000, extra="sns:1 grant=token")
    unpin(mark="sns:1")
    assert sent.call_args_list[1].args[-1] == "Extra=sns:1"


def test_a_hold_that_met_a_job_just_given_to_slurm_is_taken_back(sent, pyslurm) -> None:
    """Nobody else would: with that mark it looks like its owner's hold."""
    pyslurm.Job.load.side_effect = [recorded.job(priority=1000, extra="sns:1"), recorded.job(extra="sns:1 advised")]
    unpin()
    assert [call.args[1] for call in sent.call_args_list] == ["update", "uhold"]
    pyslurm.Job.return_value.modify.assert_called_once_with({"priority": INFINITE})


@pytest.mark.parametrize("extra", ["sns:1", "mine"])
def test_a_hold_that_met_a_job_just_given_nodes_by_its_owner_is_taken_back(sent, pyslurm, extra: str) -> None:
    """Their list may be the one that we have just cleared: then it looks like its owner's hold."""
    pyslurm.Job.load.side_effect = [
        recorded.job(priority=1000, extra="sns:1"),
        recorded.job(required_nodes="c1", extra=extra),
    ]
    unpin()
    assert [call.args[1] for call in sent.call_args_list] == ["update", "uhold"]
    pyslurm.Job.return_value.modify.assert_called_once_with({"priority": INFINITE})


@pytest.mark.parametrize("changed", [{"required_nodes": "c1"}, {"extra": "mine"}, {"extra": ""}])
def test_a_job_that_its_owner_gave_nodes_or_another_mark_just_before_our_hold_is_not_held(
    sent, pyslurm, changed: dict[str, str]
) -> None:
    pyslurm.Job.load.return_value = recorded.job(priority=1000, **changed)
    unpin()
    assert [call.args[1] for call in sent.call_args_list] == ["update"]


def test_a_hold_that_met_a_job_just_started_is_taken_back(sent, pyslurm) -> None:
    """The job runs with it; a requeue would make it look like an administrator's."""
    pyslurm.Job.load.side_effect = [recorded.job(priority=1000, extra="sns:1"), recorded.job(state="RUNNING")]
    unpin()
    assert [call.args[1] for call in sent.call_args_list] == ["update", "uhold"]
    pyslurm.Job.return_value.modify.assert_called_once_with({"priority": INFINITE})


@pytest.mark.parametrize(
    ("now", "is_ended"),
    [
        ({"extra": "sns:1 advised"}, True),
        ({"extra": "sns:1 advised", "priority": 1000}, False),
        ({"extra": "sns:1 advised", "state_reason": "JobHeldAdmin"}, False),
        ({"extra": "sns:1"}, False),
        ({"extra": "sns:1", "required_nodes": "c1"}, False),
    ],
)
def test_only_a_users_hold_of_a_job_that_is_slurms_is_ended(pyslurm, now, is_ended: bool) -> None:
    pyslurm.Job.load.return_value = recorded.job(**now)
    execute(EndHold(7))
    calls = [mock.call({"priority": INFINITE})] if is_ended else []
    assert pyslurm.Job.return_value.modify.call_args_list == calls


@pytest.mark.parametrize(
    ("now", "is_said"),
    [
        ({}, True),
        ({"state": "RUNNING"}, True),
        ({"extra": "sns:1 advised"}, False),
        ({"extra": "mine"}, False),
    ],
)
def test_a_mark_says_that_its_owner_released_the_job_while_the_job_is_free(pyslurm, now, is_said: bool) -> None:
    pyslurm.Job.load.return_value = recorded.job(**{"extra": "sns:1", "priority": 1000, **now})
    execute(Advise(7, "released by its owner"))
    calls = [mock.call({"extra": "sns:1 advised"})] if is_said else []
    assert pyslurm.Job.return_value.modify.call_args_list == calls


@pytest.mark.parametrize("now", [{}, {"priority": 1000, "state": "COMPLETED"}])
def test_the_mark_of_a_job_that_is_held_again_or_has_ended_is_left_alone(pyslurm, now) -> None:
    pyslurm.Job.load.return_value = recorded.job(**{"extra": "sns:1", **now})
    with pytest.raises(Refused, match="held again, or has ended"):
        execute(Advise(7, "released by its owner"))
    pyslurm.Job.return_value.modify.assert_not_called()


def test_a_hold_without_an_answer_is_looked_at_all_the_same(sent, pyslurm) -> None:
    """It may have met a job just given to Slurm, which nobody else would release."""
    sent.side_effect = [None, Unreachable("the reply was lost")]
    pyslurm.Job.load.side_effect = [recorded.job(priority=1000, extra="sns:1"), recorded.job(extra="sns:1 advised")]
    with pytest.raises(Unreachable, match="the reply was lost"):
        unpin()
    pyslurm.Job.return_value.modify.assert_called_once_with({"priority": INFINITE})


def test_a_hold_without_an_answer_is_reported_as_such_when_the_look_has_none_either(sent, pyslurm) -> None:
    sent.side_effect = [None, Unreachable("the reply was lost")]
    pyslurm.Job.load.side_effect = [recorded.job(priority=1000, extra="sns:1"), Unreachable("nor here")]
    with pytest.raises(Unreachable, match="the reply was lost"):
        unpin()


def test_a_job_that_is_held_since_we_looked_is_not_given_to_slurm_with_that_hold(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job()
    with pytest.raises(Refused, match="held meanwhile"):
        unpin(hold=False, mark="sns:1 advised")
    sent.assert_not_called()
    unpin(hold=False, was_held=True, mark="sns:1 advised")
    pyslurm.Job.return_value.modify.assert_not_called()


def test_a_hold_that_comes_just_after_a_job_was_given_to_slurm_stays(sent, pyslurm) -> None:
    """It may be its owner's. A scheduler that works on an old look takes its own hold back by itself."""
    pyslurm.Job.load.side_effect = [recorded.job(priority=1000, extra="sns:1"), recorded.job(extra="sns:1 advised")]
    unpin(hold=False, mark="sns:1 advised")
    assert [call.args[1] for call in sent.call_args_list] == ["update"]
    pyslurm.Job.return_value.modify.assert_not_called()


def test_a_job_that_was_given_to_slurm_since_we_looked_is_not_released_again(pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(extra="sns:1 advised")
    execute(Release(7, "why"))
    pyslurm.Job.return_value.modify.assert_not_called()


def test_slurms_own_hold_of_a_job_that_is_slurms_is_released(pyslurm) -> None:
    """It could never run on our nodes, which are gone by now."""
    pyslurm.Job.load.return_value = recorded.job(extra="sns:1 advised", state_reason="BadConstraints")
    execute(Release(7, "why"))
    pyslurm.Job.return_value.modify.assert_called_once_with({"priority": INFINITE, "extra": None})


def test_a_hold_that_came_in_between_stays_whose_it_is(sent, pyslurm) -> None:
    """uhold would make an administrator's hold the owner's, and we would place the job."""
    pyslurm.Job.load.return_value = recorded.job(state_reason="JobHeldAdmin")
    unpin()
    assert [call.args[1] for call in sent.call_args_list] == ["update"]


def test_slurms_own_hold_that_came_in_between_becomes_ours(sent, pyslurm) -> None:
    """Cleared of its nodes, Slurm has tried the job within milliseconds (seen); nobody else would end this hold."""
    pyslurm.Job.load.return_value = recorded.job(extra="sns:1", state_reason="BadConstraints")
    unpin()
    assert [call.args[1] for call in sent.call_args_list] == ["update", "uhold"]


def test_a_job_that_slurm_started_in_between_is_not_held(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(state="RUNNING", priority=1000)
    unpin()
    assert [call.args[1] for call in sent.call_args_list] == ["update"]


def test_what_the_owner_wrote_since_stays(sent) -> None:
    unpin(keeps_nodes=True, keeps_gres=True, hold=False)
    assert [call.args for call in sent.call_args_list] == [("scontrol", "update", "JobId=7", "Nice=30")]


def test_who_releases_only_clears(sent) -> None:
    unpin(hold=False)
    assert [call.args[1] for call in sent.call_args_list] == ["update"]


@pytest.mark.parametrize(
    ("own", "words"),
    [((4500, 0), "MinMemoryCPU=4500"), ((None, 2000), "MinMemoryNode=2000"), ((None, 0), "MinMemoryNode=0")],
)
def test_an_unpin_gives_a_job_that_had_whole_nodes_its_own_memory_back(sent, own, words: str) -> None:
    unpin(own_memory=OwnMemory(*own))
    assert sent.call_args_list[0].args[-1] == words


def test_an_unpin_that_slurm_refuses_holds_nothing(sent) -> None:
    sent.side_effect = Refused("Job is no longer pending execution")
    with pytest.raises(Refused):
        unpin()
    assert sent.call_count == 1


ARRAY = {"id": 41, "array_id": 41, "array_tasks_waiting": "0-9", "nice": 30, "extra": "sns:1"}


def test_tasks_are_split_off_by_one_change_that_changes_nothing(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(**ARRAY)
    execute(Split(41, (0, 1, 5), nice=30, extra="sns:1"))
    sent.assert_called_once_with("scontrol", "update", "JobId=41_[0,1,5]", "Nice=30")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"nice": 100}, "its nice value changed"),
        ({"extra": "sns:1 advised"}, "its mark changed"),
        ({"priority": 900}, "it is not held any more"),
        ({"state": "RUNNING"}, "it does not wait any more"),
        ({"id": 42}, "Slurm does not know it any more"),
    ],
)
def test_no_tasks_are_split_off_an_array_that_its_owner_has_changed_since_we_looked(
    sent, pyslurm, changed, why: str
) -> None:
    """The split would give these tasks the nice value of before."""
    pyslurm.Job.load.return_value = recorded.job(**{**ARRAY, **changed})
    with pytest.raises(Refused, match=why):
        execute(Split(41, (0, 1, 5), nice=30, extra="sns:1"))
    sent.assert_not_called()


@pytest.mark.parametrize(("nice", "sent_as"), [(0, "0"), (7, "7"), (-30, "-30")])
def test_the_nice_value_of_a_job_that_runs_is_sent_as_text_for_pyslurm_leaves_the_number_0_out(
    pyslurm, nice: int, sent_as: str
) -> None:
    execute(OwnNice(7, nice))
    pyslurm.Job.return_value.modify.assert_called_once_with({"nice": sent_as})


def test_the_last_task_of_an_array_is_unpinned_alone_though_it_has_the_arrays_id(sent) -> None:
    last = translate.job(recorded.job(id=41, array_id=41, array_task_id=9))
    unpin(address=last.address)
    assert [call.args[2] for call in sent.call_args_list] == ["JobId=41_9", "41_9"]


@pytest.mark.parametrize(
    ("errno", "text"),
    [
        (1800, "Unable to contact slurm controller (connect failure)"),
        (1801, "Unable to contact slurm controller (send failure)"),
        (1001, "Communication connection failure"),
        (2027, "Slurm backup controller in standby mode"),
        (2131, "Slurm backup controller in standby mode, use backup"),
        (104, "Connection reset by peer"),
        (32, "Broken pipe"),
        (5004, "Socket timed out on send/recv operation"),
    ],
)
def test_no_answer_is_not_a_refusal(pyslurm, errno: int, text: str) -> None:
    pyslurm.Job.return_value.modify.side_effect = pyslurm.RPCError(errno, text)
    with pytest.raises(Unreachable) as problem:
        execute(Release(7, "over"))
    assert str(problem.value) == f"slurmctld does not answer: {text}"


@pytest.mark.parametrize(
    ("errno", "text"), [(1007, "Protocol authentication error"), (6000, "Invalid authentication credential")]
)
def test_a_munge_that_does_not_run_is_asked_after(pyslurm, errno: int, text: str) -> None:
    pyslurm.Job.return_value.modify.side_effect = pyslurm.RPCError(errno, text)
    with pytest.raises(Unreachable) as problem:
        execute(Release(7, "over"))
    assert str(problem.value) == f"slurmctld does not answer: {text}; does munge run here and there?"


@pytest.mark.parametrize(
    ("errno", "text"),
    [
        (2017, "Invalid job id specified"),
        (2084, "Job has already finished"),
        (2014, "Requested node configuration is not available"),
        (2026, "Invalid job credential"),
        (11, "Resource temporarily unavailable"),
    ],
)
def test_slurms_own_words_come_with_a_refusal(pyslurm, errno: int, text: str) -> None:
    pyslurm.Job.return_value.modify.side_effect = pyslurm.RPCError(errno, text)
    with pytest.raises(Refused) as problem:
        execute(placement())
    assert str(problem.value) == text


def test_an_error_without_words_says_its_number(pyslurm) -> None:
    pyslurm.Job.return_value.modify.side_effect = pyslurm.RPCError(2000, "")
    with pytest.raises(Refused, match="Slurm error 2000"):
        execute(Release(7, "over"))


def test_only_errors_of_slurm_are_met(pyslurm) -> None:
    pyslurm.Job.return_value.modify.side_effect = ValueError("a defect of ours")
    with pytest.raises(ValueError, match="a defect of ours"):
        execute(Release(7, "over"))


def test_the_numbers_around_the_ranges_are_refusals() -> None:
    assert not any(is_unreachable(errno) for errno in (0, 999, 1100, 1799, 1900, 2000, 4999, 5100, 5999, 6100))


# --- actions of a policy


@pytest.mark.parametrize(
    ("order", "call"), [(Suspend(7), "suspend"), (Resume(7), "unsuspend"), (Requeue(7), "requeue")]
)
def test_a_suspension_its_end_and_a_requeue_are_one_change_each(pyslurm, order, call: str) -> None:
    pyslurm.Job.load.return_value = recorded.running()
    execute(order)
    assert pyslurm.Job.return_value.mock_calls == [getattr(mock.call, call)()]


def test_a_suspended_job_is_resumed_before_it_is_requeued(pyslurm) -> None:
    """Slurm would let it wait with an administrator's hold."""
    pyslurm.Job.load.return_value = recorded.running(state="SUSPENDED")
    execute(Requeue(7))
    assert pyslurm.Job.return_value.mock_calls == [mock.call.unsuspend(), mock.call.requeue()]


def test_a_job_is_resumed_where_it_is_and_nowhere_else(pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.running(state="SUSPENDED", allocated_nodes="c[1-2]")
    execute(Resume(7, ("c2", "c1")))
    with pytest.raises(Refused, match="a running job cannot be moved"):
        execute(Resume(7, ("c1", "c3")))
    assert pyslurm.Job.return_value.unsuspend.call_count == 1


SHARED = PlacementOrder(Start(7, ("c1",), Alternative(1, Resources(1, 1)), cpu_share=0.5), -500)


@pytest.mark.parametrize("order", [SetShare(7, 0.5), Resume(7, cpu_share=0.5), SHARED])
def test_a_share_of_cpu_is_refused(pyslurm, order) -> None:
    with pytest.raises(Refused, match="shares of CPU need an agent on the nodes"):
        execute(order)
    pyslurm.Job.return_value.unsuspend.assert_not_called()
    pyslurm.Job.return_value.modify.assert_not_called()


@pytest.mark.parametrize("state", ["PENDING", "COMPLETING"])
def test_a_requeue_in_another_pool_changes_the_partition_then_and_holds_last(sent, pyslurm, state: str) -> None:
    pyslurm.Job.load.return_value = recorded.job(state=state, priority=1000, array_id=7, array_task_id=3)
    pyslurm.Job.return_value.requeue.side_effect = lambda: sent("requeue")
    execute(Requeue(7, "small"))
    assert [call.args for call in sent.call_args_list] == [
        ("requeue",),
        ("scontrol", "update", "JobId=7_3", "Partition=small", "Nice=0", "ReqNodeList=", "TresPerNode="),
        ("scontrol", "uhold", "7_3"),
    ]


def test_a_requeued_job_that_has_started_again_is_not_held(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.running()
    execute(Requeue(7, "small"))
    assert [call.args[1] for call in sent.call_args_list] == ["update"]


def test_a_job_that_may_not_change_pools_says_that_it_was_requeued(sent) -> None:
    sent.side_effect = Refused("scontrol: Invalid partition name specified")
    with pytest.raises(Refused, match="requeued, but in its own pool: scontrol: Invalid partition name specified"):
        execute(Requeue(7, "small"))


# --- several orders


def test_after_the_first_order_that_finds_nobody_the_others_are_not_sent(pyslurm) -> None:
    send = pyslurm.Job.return_value
    send.suspend.side_effect = [None, pyslurm.RPCError(2077, "already suspended"), pyslurm.RPCError(1800, "nobody")]
    orders = [Suspend(1), Suspend(2), Suspend(3), Resume(4), placement(), Requeue(5)]
    answers = list(SlurmExecutor().execute(orders))
    assert [answer.order for answer in answers] == orders
    assert [answer.is_done for answer in answers] == [True, False, False, False, False, False]
    assert [str(answer.refused or "") for answer in answers] == ["", "already suspended", "", "", "", ""]
    assert [answer.unreachable is None for answer in answers] == [True, True, False, False, False, False]
    assert {str(each.unreachable) for each in answers[2:]} == {"slurmctld does not answer: nobody"}
    assert not any(each.called for each in (send.unsuspend, send.requeue, send.modify))


def test_who_stops_asking_for_answers_sends_no_more(pyslurm) -> None:
    answers = SlurmExecutor().execute([Suspend(1), Suspend(2)])
    next(answers)
    assert pyslurm.Job.return_value.suspend.call_count == 1


def test_of_many_placements_those_that_were_not_answered_are_unreachable(mocker, pyslurm) -> None:
    asked = [PlacementOrder(Start(number, ("c1",), Alternative(1, Resources(1, 1))), -500) for number in range(1, 101)]
    pyslurm.Jobs.load.return_value = {each: recorded.job(id=each) for each in range(1, 101)}

    def half(line):
        yield from ((each, None) for each in line[:50])
        raise Unreachable("nobody")

    mocker.patch("slurm_sns.slurm.senders.Senders.place", side_effect=half)
    answers = list(SlurmExecutor().execute([*asked, Suspend(7)]))
    assert [answer.order for answer in answers] == [*asked, Suspend(7)]
    assert [answer.is_done for answer in answers] == [True] * 50 + [False] * 51
    pyslurm.Job.return_value.suspend.assert_not_called()


# --- Slurm's commands


def answer(mocker, code: int = 0, output: str = "", errors: str = ""):
    return mocker.patch("subprocess.run", return_value=CompletedProcess([], code, output, errors))


def test_a_command_is_run_without_a_shell(mocker) -> None:
    ran = answer(mocker, output="normal|0\n")
    assert run("sacctmgr", "show", "qos") == "normal|0\n"
    assert ran.call_args.args == (["sacctmgr", "show", "qos"],)
    assert "shell" not in ran.call_args.kwargs


@pytest.mark.parametrize(
    "errors",
    [
        "slurm_update error: Unable to contact slurm controller (connect failure)",
        "Unexpected message received for job 7",
        "sacctmgr: error: Problem talking to the database: Connection refused",
        "sacctmgr: error: Sending PersistInit msg: Resource temporarily unavailable",
        "slurm_buffers_pack_msg: auth_g_create: REQUEST_UPDATE_JOB has authentication error",
    ],
)
def test_a_command_that_finds_nobody_means_no_answer(mocker, errors: str) -> None:
    answer(mocker, 1, errors=errors + "\n")
    with pytest.raises(Unreachable):
        run("scontrol", "uhold", "7")


@pytest.mark.parametrize("own_name", ["", "scontrol: "])
def test_a_command_that_fails_otherwise_is_a_refusal_in_one_line(mocker, own_name: str) -> None:
    answer(mocker, 1, errors=f"{own_name}Invalid job id specified\n  for job 99999\n")
    with pytest.raises(Refused) as problem:
        run("scontrol", "uhold", "99999")
    assert str(problem.value) == "scontrol: Invalid job id specified for job 99999"


def test_a_command_that_hangs_or_is_missing_is_met(mocker) -> None:
    mocker.patch("subprocess.run", side_effect=TimeoutExpired(["scontrol"], 30))
    with pytest.raises(Unreachable, match="did not answer within 30 s"):
        run("scontrol", "uhold", "7")
    mocker.patch("subprocess.run", side_effect=FileNotFoundError(2, "No such file or directory"))
    with pytest.raises(SnsError, match="scontrol cannot be run: No such file or directory"):
        run("scontrol", "uhold", "7")


def test_under_priority_basic_a_job_that_is_held_keeps_its_nice_value_for_slurm_would_start_it(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(priority=0, nice=-60_000, extra="sns:1")
    unpin(hold=False, was_held=True, checks_hold=True)
    assert sent.call_args.args == ("scontrol", "update", "JobId=7", "ReqNodeList=", "TresPerNode=")
    with pytest.raises(Refused, match="it is held"):
        execute(OwnNice(7, 30, checks_hold=True))
    pyslurm.Job.return_value.modify.assert_not_called()


def test_under_priority_basic_a_job_that_is_not_held_gets_its_own_nice_value_back(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(priority=1000, nice=-60_000, extra="sns:1")
    unpin(hold=False, checks_hold=True)
    assert "Nice=30" in sent.call_args.args
    execute(OwnNice(7, 30, checks_hold=True))
    pyslurm.Job.return_value.modify.assert_called_once_with({"nice": "30"})
