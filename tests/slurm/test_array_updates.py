"""Tasks of one array go by one RPC: each stands in one, none is lost, and each has its own answer."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.gate.orders import BOOST, OPEN, GateOrder, OrderKind, RequeueOrder
from slurm_sns.slurm import libslurm
from slurm_sns.slurm.array_updates import MOST_TOGETHER, Updates, each_alone, together
from slurm_sns.slurm.executor import SlurmExecutor
from slurm_sns.task_ids import task_id, task_of


def placement(array: int, task: int, node: str = "c1", **more: object) -> GateOrder:
    comment = f"sns:2 g=9 n={node} at=8"
    order = GateOrder(task_id(array, task), OrderKind.PLACE, comment, OPEN, (node,), site_factor=BOOST)
    return replace(order, address=f"{array}_{task}", **more)


def numbers(updates: Updates) -> tuple[list[list[int]], list[list[int]]]:
    """The numbers of the tasks in each RPC."""

    def of(all_orders) -> list[list[int]]:
        return [[(task_of(order.job_id) or (0, order.job_id))[1] for order in orders] for orders in all_orders]

    return of(updates.first), of(updates.last)


# --- which go together


def test_tasks_on_one_node_go_together_and_the_last_one_follows() -> None:
    tasks = [placement(41, task, node) for task, node in enumerate(("c1", "c1", "c2", "c1", "c2", "c1"))]
    assert numbers(together(tasks)) == ([[0, 1, 3, 5], [2]], [[4]])
    assert numbers(together([*tasks, placement(41, 6, "c3")])) == ([[0, 1, 3, 5], [2, 4]], [[6]])


def test_two_tasks_have_an_rpc_each_for_they_may_be_all_that_their_record_has() -> None:
    assert numbers(together([placement(41, 0), placement(41, 1)])) == ([[0]], [[1]])


def test_each_array_has_its_own() -> None:
    tasks = [placement(array, task) for task in range(3) for array in (41, 52)]
    assert numbers(together(tasks)) == ([[0, 1], [0, 1]], [[2], [2]])


@pytest.mark.parametrize(
    "other",
    [
        {"gres": (4, 10)},
        {"extra": "sns:grant=1:abc"},
        {"admin_comment": "sns:2 g=9 n=c1 at=9"},
        {"tasks_per_node": 2},
        {"site_factor": None},
    ],
)
def test_a_task_that_is_changed_otherwise_has_its_own(other: dict[str, object]) -> None:
    tasks = [*(placement(41, task) for task in (1, 2, 3)), placement(41, 4, **other)]
    assert numbers(together(tasks)) == ([[1, 2, 3]], [[4]])


def test_only_placements_of_tasks_of_a_record_go_together() -> None:
    renewals = [GateOrder(task_id(41, task), OrderKind.RENEW, "sns:2 g=9", 9) for task in range(3)]
    jobs = [GateOrder(job_id, OrderKind.PLACE, "sns:2 g=9 n=c1 at=8", OPEN, ("c1",)) for job_id in (7, 8, 9)]
    assert together([*renewals, *jobs]) == each_alone([*renewals, *jobs])


def test_one_rpc_has_a_limited_number_of_tasks() -> None:
    first, last = numbers(together([placement(41, task) for task in range(2 * MOST_TOGETHER + 2)]))
    assert (list(map(len, first)), last) == ([MOST_TOGETHER, MOST_TOGETHER, 1], [[2 * MOST_TOGETHER + 1]])


ORDERS = some.lists(
    some.one_of(
        some.builds(placement, some.integers(1, 3), some.integers(0, 500), some.sampled_from(("c1", "c2"))),
        some.builds(GateOrder, some.integers(1, 99), some.just(OrderKind.RENEW), some.just("sns:2 g=9")),
    ),
    max_size=300,
    unique_by=lambda order: order.job_id,
)


@given(ORDERS)
def test_each_order_stands_in_one_rpc_and_the_queues_sequence_is_kept(orders: list[GateOrder]) -> None:
    updates = together(orders)
    place = {order.job_id: number for number, order in enumerate(orders)}
    sent = [order for update in (*updates.first, *updates.last) for order in update]
    assert Counter(order.job_id for order in sent) == Counter(list(place))
    firsts = [place[update[0].job_id] for update in updates.first]
    assert firsts == sorted(firsts)
    for update in updates.first:
        assert update
        assert [place[order.job_id] for order in update] == sorted(place[order.job_id] for order in update)
        assert len({replace(order, job_id=0, address="") for order in update}) == 1
        assert len(update) <= MOST_TOGETHER
    # While several tasks are placed by one RPC, the array's record has one more at least.
    later = {(task_of(order.job_id) or (0,))[0] for (order,) in updates.last}
    assert {(task_of(update[0].job_id) or (0,))[0] for update in updates.first if len(update) > 1} <= later


# --- what Slurm answers


class Library:
    """Our own library: `sent` has the tasks and the fields of each RPC; `answers` the error number of a task."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, list[int], dict[str, object]]] = []
        self.answers: dict[int, int | None] = {}
        self.fails_with: dict[int, int] = {}

    def modify_tasks(self, array_id: int, tasks, change: dict[str, object]) -> dict[int, int]:
        self.sent.append((array_id, list(tasks), {name: each for name, each in change.items() if each is not None}))
        if len(self.sent) in self.fails_with:
            raise libslurm.RPCError(self.fails_with[len(self.sent)])
        answers = {task: self.answers.get(task, 0) for task in tasks}
        return {task: error for task, error in answers.items() if error is not None}


@pytest.fixture
def own(mocker, pyslurm) -> Library:
    """Our own library beside the fake pyslurm."""
    library = Library()
    mocker.patch.object(libslurm, "_library").return_value.sns_error = lambda number: f"error {number}".encode()
    fake = SimpleNamespace(
        modify_tasks=library.modify_tasks,
        RPCError=libslurm.RPCError,
        JobSubmitDescription=pyslurm.JobSubmitDescription,
        Job=mocker.MagicMock(),
    )
    library.job = fake.Job
    mocker.patch("slurm_sns.slurm.rpc.libslurm", fake)
    mocker.patch("slurm_sns.slurm.rpc.has_library", return_value=True)
    return library


def answered(orders) -> dict[int, str]:
    """What came of each task: an empty text where it was placed."""
    answers = list(SlurmExecutor().execute(orders))
    assert sorted(each.order.job_id for each in answers) == sorted(order.job_id for order in orders)
    return {task_of(each.order.job_id)[1]: str(each.refused or each.unreachable or "") for each in answers}


def test_one_rpc_places_several_tasks(own: Library) -> None:
    assert set(answered([placement(41, task) for task in (7, 3, 9)]).values()) == {""}
    fields = {
        "admin_comment": "sns:2 g=9 n=c1 at=8",
        "begin_time": OPEN,
        "required_nodes": ["c1"],
        "site_factor": str(BOOST),
    }
    assert own.sent == [(41, [7, 3], fields), (41, [9], fields)]


def test_a_refused_task_costs_that_task_only(own: Library) -> None:
    own.answers = {5: 2036}
    found = answered([placement(41, task) for task in (3, 5, 7, 9)])
    assert found == {3: "", 5: "error 2036", 7: "", 9: ""}


def test_tasks_behind_a_refused_one_get_their_boost_again_for_slurm_forgets_it(own: Library) -> None:
    own.answers = {5: 2036}
    answered([placement(41, task) for task in (7, 3, 5, 9)])
    assert [(tasks, set(fields)) for _, tasks, fields in own.sent[1:]] == [
        ([7], {"site_factor"}),
        ([9], {"admin_comment", "begin_time", "required_nodes", "site_factor"}),
    ]


def test_a_boost_that_is_refused_leaves_the_task_placed(own: Library) -> None:
    own.answers, own.fails_with = {5: 2036}, {2: 2036}
    assert answered([placement(41, task) for task in (5, 7, 9)]) == {5: "error 2036", 7: "", 9: ""}


def test_a_task_that_the_answer_does_not_name_counts_as_refused(own: Library) -> None:
    """The next look shows what it has."""
    own.answers = {5: None}
    assert answered([placement(41, task) for task in (3, 5, 7)])[5] == "Slurm's answer does not name it"


def test_where_slurm_refuses_the_whole_rpc_every_task_has_its_refusal(own: Library) -> None:
    own.fails_with = {1: 2017}
    assert answered([placement(41, task) for task in (3, 5, 7)]) == {3: "error 2017", 5: "error 2017", 7: ""}


def test_when_slurmctld_does_not_answer_no_task_is_known_and_no_other_is_sent(own: Library) -> None:
    own.fails_with = {1: 1800}
    orders = [*(placement(41, task) for task in (3, 5, 7)), RequeueOrder(9)]
    answers = list(SlurmExecutor().execute(orders))
    assert [type(each.unreachable) for each in answers] == [Unreachable] * 4
    assert len(own.sent) == 1


def test_of_one_refused_task_the_words_are_slurms(own: Library) -> None:
    own.answers = {3: 2036}
    (answer,) = SlurmExecutor().execute([placement(41, 3)])
    assert isinstance(answer.refused, Refused)
    assert str(answer.refused) == "error 2036"


@pytest.mark.usefixtures("pyslurm")
def test_without_our_library_each_task_is_placed_by_scontrol(mocker) -> None:
    run = mocker.patch("slurm_sns.slurm.rpc.run")
    assert set(answered([placement(41, task) for task in (3, 5, 7)]).values()) == {""}
    assert [call.args[2] for call in run.call_args_list] == ["JobId=41_3", "JobId=41_5", "JobId=41_7"]


def test_our_library_takes_a_placement_back_also_in_a_record_of_several_tasks(own: Library, pyslurm) -> None:
    import recorded

    pyslurm.Job.load.return_value = recorded.job(id=7, array_id=7, array_tasks_waiting="3-9", cpus_per_task=2)
    order = GateOrder(7, OrderKind.REGATE, "sns:2 g=9", 9, (), tasks_per_node=0, tasks=4, extra="")
    (answer,) = SlurmExecutor().execute([order])
    assert answer.refused is None
    assert {call.args for call in own.job.call_args_list} == {(7,)}
    first, second = (call.args[0] for call in own.job.return_value.modify.call_args_list)
    assert (first["cpus"], first["min_cpus_per_node"], first["ntasks_per_node"]) == (8, 2, "0")
    assert (second["required_nodes"], second["extra"], second["admin_comment"]) == ([], "", "sns:2 g=9")
