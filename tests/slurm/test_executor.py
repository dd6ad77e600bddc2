"""What is sent to Slurm, and what its refusals mean."""

from dataclasses import replace
from subprocess import CompletedProcess, TimeoutExpired
from unittest import mock

import pytest
import recorded

from slurm_sns.errors import Refused, SnsError, Unreachable
from slurm_sns.scheduler.gate.orders import BOOST, OPEN, GateOrder, OrderKind, RequeueOrder, SignalOrder
from slurm_sns.scheduler.observation import JobState
from slurm_sns.slurm.api import is_unreachable, run
from slurm_sns.slurm.executor import SlurmExecutor
from slurm_sns.submit.record import MemoryRequest
from slurm_sns.task_ids import task_id

GATE_S = recorded.GATE_S
PLACEMENT = GateOrder(
    7,
    OrderKind.PLACE,
    admin_comment="ticket 4711;sns:2 g=9 n=c1,c2 at=8 t=0 tg=20",
    begin_s=OPEN,
    nodes=("c1", "c2"),
    tasks_per_node=20,
    tasks=40,
    gres=(4, 10),
    memory=MemoryRequest(128_000),
    site_factor=BOOST,
    extra="mine;sns:grant=1:abc",
)
#: The same placement taken back: tasks per node, memory and gres.
REGATE = GateOrder(
    7,
    OrderKind.REGATE,
    admin_comment=f"ticket 4711;sns:2 g={GATE_S}",
    begin_s=GATE_S,
    nodes=(),
    tasks_per_node=0,
    tasks=40,
    gres=(0, 0),
    memory=MemoryRequest(4500, is_by_cpu=True),
    site_factor=0,
    extra="mine",
)
RENEWAL = GateOrder(7, OrderKind.RENEW, f"sns:2 g={GATE_S}", GATE_S)
#: All fields of a change through pyslurm; None leaves a field as it is.
FIELDS = {
    *("admin_comment", "begin_time", "required_nodes", "ntasks", "ntasks_per_node", "gres_per_node", "site_factor"),
    *("memory_per_cpu", "memory_per_node", "extra", "partitions", "time_limit"),
}


def execute(order) -> None:
    """Carry out one order; raises what its answer says."""
    (answer,) = SlurmExecutor().execute([order])
    assert answer.order is order
    if answer.refused or answer.unreachable:
        raise answer.refused or answer.unreachable


@pytest.fixture
def sent(mocker, pyslurm):
    """Slurm's commands; the job is one of two CPUs per task."""
    pyslurm.Job.load.return_value = recorded.job(id=7, cpus_per_task=2)
    return mocker.patch("slurm_sns.slurm.rpc.run")


def updates(sent) -> list[tuple[str, ...]]:
    """The arguments of each `scontrol update`."""
    assert {call.args[:2] for call in sent.call_args_list} <= {("scontrol", "update")}
    return [call.args[2:] for call in sent.call_args_list]


def change(pyslurm) -> dict:
    """The one change that was sent through pyslurm, without what stays as it is."""
    (sent,) = pyslurm.Job.return_value.modify.call_args.args
    assert sent.keys() == FIELDS
    return {name: value for name, value in sent.items() if value is not None}


# --- through pyslurm


def test_a_placement_is_one_change_without_a_look_before(sent, pyslurm) -> None:
    execute(PLACEMENT)
    pyslurm.Job.assert_called_once_with(7)
    assert change(pyslurm) == {
        "admin_comment": "ticket 4711;sns:2 g=9 n=c1,c2 at=8 t=0 tg=20",
        "begin_time": 1,
        "required_nodes": ["c1", "c2"],
        "ntasks": 40,
        "ntasks_per_node": "20",
        "gres_per_node": {"llc": 4, "membw": 10},
        "memory_per_node": 128_000,
        "site_factor": "2000000000",
        "extra": "mine;sns:grant=1:abc",
    }
    pyslurm.Job.load.assert_not_called()
    sent.assert_not_called()


def test_a_job_that_keeps_its_geometry_is_only_pinned(pyslurm) -> None:
    execute(GateOrder(7, OrderKind.PLACE, "sns:2 g=9 n=c1 at=8", OPEN, nodes=("c1",)))
    assert change(pyslurm) == {"admin_comment": "sns:2 g=9 n=c1 at=8", "begin_time": 1, "required_nodes": ["c1"]}


def test_only_gres_that_is_given_is_asked_for(pyslurm) -> None:
    execute(replace(PLACEMENT, gres=(0, 10)))
    assert change(pyslurm)["gres_per_node"] == {"membw": 10}


def test_an_owners_gpus_stay_beside_what_is_given(sent, pyslurm, mocker) -> None:
    api = mocker.patch("slurm_sns.slurm.rpc.library", return_value=mocker.MagicMock()).return_value
    execute(replace(PLACEMENT, own_gres="gres/gpu:a:2"))
    told = api.JobSubmitDescription.call_args.kwargs
    assert (told["gres_per_node"], told["own_gres"]) == ({"llc": 4, "membw": 10}, "gres/gpu:a:2")
    pyslurm.Job.return_value.modify.assert_not_called()
    execute(GateOrder(7, OrderKind.REGATE, "sns:2 g=9", 9, nodes=(), gres=(0, 0), own_gres="gres/gpu:a:2"))
    assert "TresPerNode=gres/gpu:a:2" in updates(sent)[0]
    execute(GateOrder(7, OrderKind.REGATE, "sns:2 g=9", 9, nodes=(), own_gres="gres/gpu:a:2"))
    assert not any(word.startswith("TresPerNode") for word in updates(sent)[1])


def test_cpus_that_go_with_gpus_come_back(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(id=7, cpus_per_task=None)
    execute(GateOrder(7, OrderKind.REGATE, "sns:2 g=9", 9, nodes=(), tasks_per_node=0, tasks=4, cpus_of_gpus=12))
    assert "NumCPUs=12" in updates(sent)[0]


def test_a_renewal_moves_the_gate_of_an_array_by_the_id_of_its_record(sent, pyslurm) -> None:
    """scontrol would change all tasks of the array, also those that run."""
    execute(RENEWAL)
    assert change(pyslurm) == {"admin_comment": f"sns:2 g={GATE_S}", "begin_time": GATE_S}
    sent.assert_not_called()


def test_more_partitions_are_one_change_with_the_record(sent, pyslurm) -> None:
    execute(GateOrder(7, OrderKind.WIDEN, "sns:2 g=9 p=main", partitions=("main", "old")))
    assert change(pyslurm) == {"admin_comment": "sns:2 g=9 p=main", "partitions": ["main", "old"]}
    sent.assert_not_called()


def test_the_boost_is_taken_off_as_text_for_pyslurm_leaves_the_number_0_out(pyslurm) -> None:
    execute(GateOrder(7, OrderKind.UNBOOST, site_factor=0))
    assert change(pyslurm) == {"site_factor": "0"}


def test_what_was_not_placed_is_freed_as_quickly_as_it_is_placed(sent, pyslurm) -> None:
    execute(GateOrder(7, OrderKind.FREE, "sns:2 free=stopped", OPEN, memory=MemoryRequest(4500, is_by_cpu=True)))
    assert change(pyslurm) == {"admin_comment": "sns:2 free=stopped", "begin_time": 1, "memory_per_cpu": 4500}
    sent.assert_not_called()


# --- by scontrol


def test_a_task_is_placed_straight_from_its_arrays_record_by_its_address(sent, pyslurm) -> None:
    execute(replace(PLACEMENT, job_id=task_id(41, 7), address="41_7"))
    assert updates(sent) == [
        (
            "JobId=41_7",
            "AdminComment=ticket 4711;sns:2 g=9 n=c1,c2 at=8 t=0 tg=20",
            "StartTime=uts1000000",
            "ReqNodeList=c1,c2",
            "NumTasks=40",
            "TasksPerNode=20",
            "TresPerNode=gres:llc:4,gres:membw:10",
            "MinMemoryNode=128000",
            "SiteFactor=2000000000",
            "Extra=mine;sns:grant=1:abc",
        )
    ]
    pyslurm.Job.load.assert_not_called()


def test_a_placement_without_tasks_per_node_is_taken_back_by_one_change(sent) -> None:
    execute(replace(REGATE, tasks_per_node=None, tasks=None, memory=MemoryRequest(0), extra=""))
    assert updates(sent) == [
        (
            "JobId=7",
            f"AdminComment=ticket 4711;sns:2 g={GATE_S}",
            f"StartTime=uts{GATE_S}",
            "ReqNodeList=",
            "TresPerNode=",
            "MinMemoryNode=0",
            "SiteFactor=0",
            "Extra=",
        )
    ]


@pytest.mark.parametrize(("own", "least"), [(0, 2), (4, 8)])
def test_the_least_cpus_of_a_node_are_the_owners_again(sent, own: int, least: int) -> None:
    execute(replace(REGATE, tasks_per_node=own, gres=None, memory=None))
    (_, *counts), (_, *left) = updates(sent)
    assert counts[-4:] == ["NumTasks=40", f"TasksPerNode={own}", f"MinCPUsNode={least}", "NumCPUs=80"]
    assert left == [f"AdminComment=ticket 4711;sns:2 g={GATE_S}", "ReqNodeList=", "SiteFactor=0", "Extra=mine"]


def test_one_with_tasks_per_node_is_taken_back_by_two_changes_of_which_the_first_shuts_the_gate(sent, pyslurm) -> None:
    """Slurm would give the job too few CPUs. If the second one is lost, the record names placement and times."""
    placed = "ticket 4711;sns:2 g=9 n=c1,c2 at=8"
    pyslurm.Job.load.return_value = recorded.job(id=7, cpus_per_task=2, admin_comment=placed)
    times = f"sns:2 g={GATE_S} b={GATE_S}"
    execute(replace(REGATE, admin_comment=f"ticket 4711;{times}"))
    comment = f"AdminComment=ticket 4711;{times} n=c1,c2 at=8"
    shut = (comment, f"StartTime=uts{GATE_S}", "NumTasks=40", "TasksPerNode=0", "MinMemoryCPU=4500")
    assert updates(sent) == [
        ("JobId=7", *shut, "MinCPUsNode=2", "NumCPUs=80"),
        (
            "JobId=7",
            f"AdminComment=ticket 4711;{times}",
            "ReqNodeList=",
            "TresPerNode=",
            "SiteFactor=0",
            "Extra=mine",
        ),
    ]


def test_a_job_that_becomes_slurms_starts_only_when_all_is_taken_back(sent) -> None:
    execute(replace(REGATE, kind=OrderKind.FREE, begin_s=OPEN, admin_comment="sns:2 free=stopped"))
    first, second = updates(sent)
    assert not any(word.startswith("StartTime") for word in first)
    assert {"AdminComment=sns:2 free=stopped", "StartTime=uts1000000", "ReqNodeList="} <= set(second)


def test_after_a_refused_first_change_the_second_one_is_not_sent(sent) -> None:
    sent.side_effect = Refused("scontrol: Job/step already completing or completed")
    with pytest.raises(Refused, match="already completing"):
        execute(REGATE)
    assert sent.call_count == 1


@pytest.mark.parametrize(
    "order",
    [
        GateOrder(7, OrderKind.RENEW, "sns:2 g=9", 9, nodes=()),
        GateOrder(7, OrderKind.FREE, "sns:2 free=x", OPEN, gres=(0, 0)),
        GateOrder(7, OrderKind.FREE, "sns:2 free=x", OPEN, extra=""),
        GateOrder(7, OrderKind.FREE, "sns:2 free=x", OPEN, memory=MemoryRequest(0)),
        GateOrder(7, OrderKind.FREE, "sns:2 free=x", OPEN, tasks_per_node=4, tasks=8),
    ],
    ids=["nodes", "gres", "Extra", "memory", "tasks per node"],
)
def test_pyslurm_sends_no_empty_text(sent, pyslurm, order: GateOrder) -> None:
    execute(order)
    assert sent.call_count == (1 if order.tasks_per_node is None else 2)
    pyslurm.Job.return_value.modify.assert_not_called()


def test_the_last_task_of_an_array_is_taken_back_alone_though_it_has_the_arrays_id(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(id=7, array_id=7, array_tasks_waiting="9")
    execute(REGATE)
    assert {words[0] for words in updates(sent)} == {"JobId=7_9"}


def test_nothing_is_cleared_in_the_record_of_several_tasks(sent, pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.job(id=7, array_id=7, array_tasks_waiting="3-9")
    with pytest.raises(Refused, match="these are several tasks of an array"):
        execute(REGATE)
    sent.assert_not_called()


# --- what Slurm answers


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
        execute(RENEWAL)
    assert str(problem.value) == f"slurmctld does not answer: {text}"


@pytest.mark.parametrize(
    ("errno", "text"), [(1007, "Protocol authentication error"), (6000, "Invalid authentication credential")]
)
def test_a_munge_that_does_not_run_is_asked_after(pyslurm, errno: int, text: str) -> None:
    pyslurm.Job.return_value.modify.side_effect = pyslurm.RPCError(errno, text)
    with pytest.raises(Unreachable) as problem:
        execute(RENEWAL)
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
        execute(PLACEMENT)
    assert str(problem.value) == text


def test_an_error_without_words_says_its_number(pyslurm) -> None:
    pyslurm.Job.return_value.modify.side_effect = pyslurm.RPCError(2000, "")
    with pytest.raises(Refused, match="Slurm error 2000"):
        execute(RENEWAL)


def test_only_errors_of_slurm_are_met(pyslurm) -> None:
    pyslurm.Job.return_value.modify.side_effect = ValueError("a defect of ours")
    with pytest.raises(ValueError, match="a defect of ours"):
        execute(RENEWAL)


def test_the_numbers_around_the_ranges_are_refusals() -> None:
    assert not any(is_unreachable(errno) for errno in (0, 999, 1100, 1799, 1900, 2000, 4999, 5100, 5999, 6100))


# --- requeues


PREEMPTED = {"state": "SUSPENDED", "priority": 4711}


def test_a_job_that_preemption_has_suspended_is_requeued_as_it_is(pyslurm) -> None:
    """It has kept its priority, and another job has its cores."""
    pyslurm.Job.load.return_value = recorded.running(**PREEMPTED)
    execute(RequeueOrder(7))
    assert pyslurm.Job.return_value.mock_calls == [mock.call.requeue()]


@pytest.mark.parametrize(
    "shown",
    [{}, {"state": "SUSPENDED", "priority": 0}, {"state": "COMPLETING"}, {"state": "COMPLETED"}, {"state": "PENDING"}],
)
def test_any_other_job_is_not_requeued(pyslurm, shown) -> None:
    """It goes on by now, or would wait with an administrator's hold, or would run once more after its end."""
    pyslurm.Job.load.return_value = recorded.running(**shown)
    with pytest.raises(Refused, match="no longer suspended by preemption"):
        execute(RequeueOrder(7))
    pyslurm.Job.return_value.requeue.assert_not_called()


def test_a_running_job_is_requeued_as_it_is_if_it_still_runs(pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.running()
    execute(RequeueOrder(7, JobState.RUNNING))
    assert pyslurm.Job.return_value.mock_calls == [mock.call.requeue()]


@pytest.mark.parametrize("shown", [PREEMPTED, {"state": "COMPLETING"}, {"state": "COMPLETED"}, {"state": "PENDING"}])
def test_a_job_that_no_longer_runs_is_not_paused(pyslurm, shown) -> None:
    pyslurm.Job.load.return_value = recorded.running(**shown)
    with pytest.raises(Refused, match="no longer runs"):
        execute(RequeueOrder(7, JobState.RUNNING))
    pyslurm.Job.return_value.requeue.assert_not_called()


def test_a_signal_goes_to_the_batch_script_alone(mocker) -> None:
    run = mocker.patch("slurm_sns.slurm.rpc.run")
    execute(SignalOrder(41, "USR1", "41_9"))
    run.assert_called_once_with("scancel", "--batch", "--signal=USR1", "41_9")


def test_a_time_limit_is_one_change_in_minutes_with_the_record(pyslurm) -> None:
    execute(GateOrder(7, OrderKind.LIMIT, "sns:2 n=c1 at=8 l=3600 lg=7200", limit_s=7200))
    assert change(pyslurm) == {"admin_comment": "sns:2 n=c1 at=8 l=3600 lg=7200", "time_limit": 120}


def test_a_placement_that_is_taken_back_gives_the_owners_limit_back(sent) -> None:
    execute(GateOrder(7, OrderKind.REGATE, "sns:2 g=9", 9, nodes=(), limit_s=3600))
    assert "TimeLimit=60" in updates(sent)[-1]


# --- several orders


def test_after_the_first_order_that_finds_nobody_the_others_are_not_sent(pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.running(**PREEMPTED)
    send = pyslurm.Job.return_value
    send.requeue.side_effect = [None, pyslurm.RPCError(2077, "it is disabled"), pyslurm.RPCError(1800, "nobody")]
    orders = [RequeueOrder(1), RequeueOrder(2), RequeueOrder(3), RequeueOrder(4), PLACEMENT]
    answers = list(SlurmExecutor().execute(orders))
    assert [answer.order for answer in answers] == orders
    is_done = [not (answer.refused or answer.unreachable) for answer in answers]
    assert is_done == [True, False, False, False, False]
    assert [str(answer.refused or "") for answer in answers] == ["", "it is disabled", "", "", ""]
    assert [answer.unreachable is None for answer in answers] == [True, True, False, False, False]
    assert {str(each.unreachable) for each in answers[2:]} == {"slurmctld does not answer: nobody"}
    assert (send.requeue.call_count, send.modify.call_count) == (3, 0)


def test_who_stops_asking_for_answers_sends_no_more(pyslurm) -> None:
    pyslurm.Job.load.return_value = recorded.running(**PREEMPTED)
    answers = SlurmExecutor().execute([RequeueOrder(1), RequeueOrder(2)])
    next(answers)
    assert pyslurm.Job.return_value.requeue.call_count == 1


def test_of_many_orders_those_that_were_not_answered_are_unreachable(mocker, pyslurm) -> None:
    asked = [replace(RENEWAL, job_id=number) for number in range(1, 101)]

    def half(updates):
        yield from ((each, None) for (each,) in updates[:50])
        raise Unreachable("nobody")

    mocker.patch("slurm_sns.slurm.executor.Senders.send", side_effect=half)
    answers = list(SlurmExecutor().execute([*asked, RequeueOrder(7)]))
    assert [answer.order for answer in answers] == [*asked, RequeueOrder(7)]
    assert [not (answer.refused or answer.unreachable) for answer in answers] == [True] * 50 + [False] * 51
    pyslurm.Job.return_value.requeue.assert_not_called()


# --- Slurm's commands


def answer(mocker, code: int = 0, output: str = "", errors: str = ""):
    return mocker.patch("subprocess.run", return_value=CompletedProcess([], code, output.encode(), errors.encode()))


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
        run("scontrol", "update", "JobId=7")


@pytest.mark.parametrize("own_name", ["", "scontrol: "])
def test_a_command_that_fails_otherwise_is_a_refusal_in_one_line(mocker, own_name: str) -> None:
    answer(mocker, 1, errors=f"{own_name}Invalid job id specified\n  for job 99999\n")
    with pytest.raises(Refused) as problem:
        run("scontrol", "update", "JobId=99999")
    assert str(problem.value) == "scontrol: Invalid job id specified for job 99999"


def test_a_command_that_hangs_or_is_missing_is_met(mocker) -> None:
    mocker.patch("subprocess.run", side_effect=TimeoutExpired(["scontrol"], 30))
    with pytest.raises(Unreachable, match="did not answer within 30 s"):
        run("scontrol", "update", "JobId=7")
    mocker.patch("subprocess.run", side_effect=FileNotFoundError(2, "No such file or directory"))
    with pytest.raises(SnsError, match="scontrol cannot be run: No such file or directory"):
        run("scontrol", "update", "JobId=7")


class Edited:
    """What knows the jobs, and that the owners of some have changed them since."""

    def __init__(self, *job_ids: int, problem: Exception | None = None) -> None:
        self._job_ids, self._problem = set(job_ids), problem

    def outdated(self, job_ids) -> set[int]:
        if self._problem is not None:
            raise self._problem
        return self._job_ids & set(job_ids)


def test_a_job_that_has_changed_since_it_was_looked_at_gets_no_order(pyslurm) -> None:
    orders = [replace(RENEWAL, job_id=number) for number in (7, 8, task_id(9, 3), task_id(10, 3))]
    run_tasks = mock.patch("slurm_sns.slurm.rpc.run")
    with run_tasks as scontrol:
        answers = {answer.order.job_id: answer for answer in SlurmExecutor(Edited(8, 9)).execute(orders)}
    refused = {job_id for job_id, answer in answers.items() if answer.refused is not None}
    assert refused == {8, task_id(9, 3)}
    assert str(answers[8].refused) == "it has changed since it was looked at, so it is looked at again first"
    assert [call.args[0] for call in pyslurm.Job.call_args_list] == [7]
    assert scontrol.call_count == 1


@pytest.mark.parametrize("errno", [1800, 2002])
def test_when_the_jobs_cannot_be_read_again_no_order_is_sent(pyslurm, errno: int) -> None:
    problem = pyslurm.RPCError(errno, "no")
    answers = list(SlurmExecutor(Edited(problem=problem)).execute([RENEWAL, RequeueOrder(7)]))
    assert [type(answer.unreachable) for answer in answers] == [Unreachable] * 2
    pyslurm.Job.assert_not_called()
