"""Many orders by several processes: each is answered once, and nothing goes on when Slurm or a process is gone."""

import os
import pickle
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.gate.orders import GateOrder, OrderKind
from slurm_sns.slurm import libslurm
from slurm_sns.slurm.executor import MANY, SENDERS, Senders, SendingThreads, SlurmExecutor
from slurm_sns.slurm.sender import end_with, results
from slurm_sns.submit.record import MemoryRequest

#: A sender without Slurm: it writes the jobs that it was given to a file, refuses every seventh, finds nobody from
#: job 500 to 899, dies at job 900.
STAND_IN = """
import os, sys
from slurm_sns.errors import Refused, Unreachable
from slurm_sns.slurm.sender import end_with, serve

def send(update):
    (order,) = update
    with open(os.path.dirname(__file__) + "/sent", "a") as out:
        out.write(f"{order.job_id} {' '.join(order.nodes)}\\n")
    if 500 <= order.job_id < 900:
        raise Unreachable("slurmctld does not answer: timed out")
    if order.job_id == 900:
        os._exit(1)
    return [Refused(f"Invalid job id specified: {order.job_id}") if order.job_id % 7 == 0 else None]

end_with(int(sys.argv[1]))
serve(send)
"""


def updates(first: int, count: int) -> list[tuple[GateOrder]]:
    """One RPC for each of so many jobs."""
    return [(order,) for order in orders(first, count)]


def orders(first: int, count: int) -> list[GateOrder]:
    comment = "sns:2 g=9 n={} at=8"
    nodes = {job_id: f"n{job_id % 9}" for job_id in range(first, first + count)}
    return [
        GateOrder(job_id, OrderKind.PLACE, comment.format(node), 1, nodes=(node,)) for job_id, node in nodes.items()
    ]


@pytest.fixture
def senders(tmp_path: Path) -> Iterator[Senders]:
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    started = Senders((sys.executable, str(tmp_path / "stand_in.py")))
    yield started
    started.close()


def sent_jobs(tmp_path: Path) -> list[int]:
    return [int(line.split()[0]) for line in (tmp_path / "sent").read_text().splitlines()]


@pytest.mark.long
def test_each_order_is_sent_once_and_answered_once(senders: Senders, tmp_path: Path) -> None:
    asked = updates(1, 331)
    answers = list(senders.send(asked))
    assert sorted(order.job_id for order, _ in answers) == list(range(1, 332))
    assert {order.job_id for order, refusal in answers if refusal} == set(range(7, 332, 7))
    assert {str(refusal) for _, refusal in answers if refusal} >= {"Invalid job id specified: 14"}
    assert sorted(sent_jobs(tmp_path)) == list(range(1, 332))


def test_the_same_processes_serve_again(senders: Senders) -> None:
    first = {os.getpid(), *(sender.process.pid for sender in senders._senders)}
    for number in range(3):
        assert len(list(senders.send(updates(1 + 100 * number, 50)))) == 50
        pids = {sender.process.pid for sender in senders._senders}
        assert len(pids) == SENDERS
        assert number == 0 or pids == first
        first = pids


def test_when_slurmctld_does_not_answer_what_was_answered_is_handed_out_and_the_rest_is_not_sent(
    senders: Senders, tmp_path: Path
) -> None:
    answers = []
    begun = senders.send(updates(490, 400))
    with pytest.raises(Unreachable, match="timed out"):
        answers.extend(_kept(begun, answers))
    assert {order.job_id for order, _ in answers} == set(range(490, 500))
    assert len(sent_jobs(tmp_path)) <= 10 + SENDERS, "each process tried once, and that was all"
    assert len(list(senders.send(updates(2000, 40)))) == 40, "the next commit goes on"


def _kept(begun, answers: list) -> list:
    """What is handed out goes to `answers` at once: an error at the end takes nothing of it back."""
    for each in begun:
        answers.append(each)  # noqa: PERF402
    return []


@pytest.mark.long
def test_a_process_that_dies_ends_the_commit_and_the_next_one_has_new_processes(senders: Senders) -> None:
    with pytest.raises(Unreachable, match="a sender of orders has ended"):
        list(senders.send(updates(900, 200)))
    assert len(list(senders.send(updates(2000, 40)))) == 40


@pytest.mark.long
def test_a_commit_that_is_given_up_in_the_middle_leaves_no_answer_for_the_next(senders: Senders) -> None:
    begun = senders.send(updates(1, 300))
    next(begun)
    begun.close()
    answers = list(senders.send(updates(2001, 50)))
    assert sorted(order.job_id for order, _ in answers) == list(range(2001, 2051))


def test_a_sender_that_cannot_start_is_no_answer() -> None:
    with pytest.raises(Unreachable):
        list(Senders((sys.executable, "-c", "raise SystemExit(1)")).send(updates(1, 100)))


@pytest.mark.long
def test_a_sender_dies_with_the_scheduler(tmp_path: Path) -> None:
    """Killed, the scheduler must not leave anybody behind who goes on placing."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    child = os.fork()
    if child == 0:
        begun = Senders((sys.executable, str(tmp_path / "stand_in.py")))
        list(begun.send(updates(1, 100)))
        (tmp_path / "pids").write_text(" ".join(str(each.process.pid) for each in begun._senders))
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    deadline_s = time.monotonic() + 60
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline_s, pids
        time.sleep(0.05)
    assert len(pids) == SENDERS


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_sender_of_another_parent_ends_at_once() -> None:
    child = os.fork()
    if child == 0:
        try:
            end_with(parent=os.getpid())
        except SystemExit as end:
            os._exit(end.code)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "order",
    [
        GateOrder(
            7, OrderKind.PLACE, "a b;sns:2 g=9 n=c1,c2 at=8", 1, ("c1", "c2"), 20, 40, (4, 10), MemoryRequest(5), 3, "x"
        ),
        GateOrder(7, OrderKind.REGATE, "sns:2 g=9", 9, (), 0, 40, (0, 0), MemoryRequest(0, is_by_cpu=True), 0, ""),
        GateOrder((41 << 32) + 8, OrderKind.RENEW, "ünï", 9, address="41_7"),
        GateOrder(7, OrderKind.UNBOOST, site_factor=0),
        GateOrder(7, OrderKind.WIDEN, "sns:2 g=9 p=main", partitions=("main", "old")),
    ],
)
def test_an_order_survives_the_way_to_a_sender(order: GateOrder) -> None:
    read = pickle.loads(pickle.dumps(order))
    assert (read, type(read.memory), type(read.kind)) == (order, type(order.memory), OrderKind)


def test_after_no_answer_the_rest_of_a_line_is_not_sent() -> None:
    sent = []

    def send(update: tuple[GateOrder, ...]) -> list[Refused | None]:
        sent.extend(order.job_id for order in update)
        if sent[-1] == 3:
            raise Unreachable("nobody")
        return [Refused("no") if sent[-1] == 2 else None]

    (done,), (refused,), unreachable = results(updates(1, 5), send)
    assert done is None
    assert (type(refused), str(refused)) == (Refused, "no")
    assert (type(unreachable), str(unreachable)) == (Unreachable, "nobody")
    assert sent == [1, 2, 3]


@pytest.mark.usefixtures("pyslurm")
def test_a_few_orders_are_sent_by_the_scheduler_itself(mocker) -> None:
    executor = SlurmExecutor()
    alone = mocker.patch("slurm_sns.slurm.rpc.send", side_effect=[None, Refused("gone"), None])
    answers = executor.execute(orders(1, 3))
    assert [answer.refused and str(answer.refused) for answer in answers] == [None, "gone", None]
    assert alone.call_count == 3
    several = mocker.patch(
        "slurm_sns.slurm.executor.Senders.send", side_effect=lambda sent: iter([(each, None) for (each,) in sent])
    )
    assert len(list(executor.execute(orders(1, MANY)))) == MANY
    assert several.call_count == 1
    renewals = [GateOrder(number, OrderKind.RENEW, "sns:2 g=9", 9) for number in range(1, 1000)]
    assert len(list(executor.execute([*orders(1001, 5), *renewals]))) == 1004
    assert several.call_count == 2, "of whatever kind they are"


# --- by threads


def test_threads_send_where_the_library_takes_the_place_of_pyslurm(mocker) -> None:
    mocker.patch("slurm_sns.slurm.rpc.pyslurm", return_value=libslurm)
    several = mocker.patch(
        "slurm_sns.slurm.executor.SendingThreads.send",
        side_effect=lambda sent: iter([(each, None) for (each,) in sent]),
    )
    assert len(list(SlurmExecutor().execute(orders(1, MANY)))) == MANY
    assert several.call_count == 1


def test_each_order_is_sent_once_by_threads_and_answered_once() -> None:
    sent: list[int] = []

    def carry_out(update: tuple[GateOrder, ...]) -> list[Refused | None]:
        (order,) = update
        sent.append(order.job_id)
        return [Refused(f"Invalid job id specified: {order.job_id}") if order.job_id % 7 == 0 else None]

    asked = updates(1, 331)
    answers = list(SendingThreads(carry_out).send(asked))
    assert sorted(order.job_id for order, _ in answers) == sorted(sent) == list(range(1, 332))
    assert {order.job_id for order, refusal in answers if refusal} == set(range(7, 332, 7))
    assert list(SendingThreads(carry_out).send([])) == []


def test_when_slurmctld_does_not_answer_threads_send_no_more() -> None:
    sent: list[int] = []

    def carry_out(update: tuple[GateOrder, ...]) -> list[None]:
        (order,) = update
        sent.append(order.job_id)
        if order.job_id >= 100:
            raise Unreachable("slurmctld does not answer: timed out")
        return [None]

    answers: list[int] = []
    with pytest.raises(Unreachable, match="timed out"):  # noqa: PT012  what was answered before counts, too
        for order, _ in SendingThreads(carry_out).send(updates(1, 1000)):
            answers.append(order.job_id)
    assert set(range(1, 100)) <= {*answers}
    assert len(sent) <= 99 + SENDERS


def test_a_defect_in_a_thread_is_raised_where_the_answers_are_asked_for() -> None:
    def carry_out(update: tuple[GateOrder, ...]) -> list[None]:
        if update[0].job_id == 50:
            raise ValueError("a defect of ours")
        return [None]

    with pytest.raises(ValueError, match="a defect of ours"):
        list(SendingThreads(carry_out).send(updates(1, 100)))


def test_threads_end_when_nobody_waits_for_the_answers() -> None:
    sent: list[int] = []

    def carry_out(update: tuple[GateOrder, ...]) -> list[None]:
        time.sleep(0.001)
        sent.append(update[0].job_id)
        return [None]

    answers = SendingThreads(carry_out).send(updates(1, 1000))
    next(answers)
    answers.close()
    time.sleep(0.1)
    before = len(sent)
    time.sleep(0.05)
    assert before == len(sent) < 1000
