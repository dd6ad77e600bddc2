"""Many placements by several processes: each is answered once, and nothing goes on when Slurm or a process is gone."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import recorded

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.model import Alternative, Resources, Start
from slurm_sns.scheduler.orders import PlacementOrder
from slurm_sns.slurm.executor import MANY, SlurmExecutor
from slurm_sns.slurm.placements_json import as_row, from_row
from slurm_sns.slurm.sender import answered, end_with
from slurm_sns.slurm.senders import SENDERS, Senders

#: A sender without Slurm: it writes the jobs that it was given to a file, refuses every seventh, finds nobody from
#: job 500 to 899, dies at job 900.
STAND_IN = """
import json, os, sys
from slurm_sns.errors import Refused, Unreachable
from slurm_sns.slurm.sender import answered, end_with

def place(placement):
    start = placement.start
    with open(os.path.dirname(__file__) + "/placed", "a") as out:
        out.write(f"{start.job_id} {' '.join(start.nodes)}\\n")
    if 500 <= start.job_id < 900:
        raise Unreachable("slurmctld does not answer: timed out")
    if start.job_id == 900:
        os._exit(1)
    if start.job_id % 7 == 0:
        raise Refused(f"Invalid job id specified: {start.job_id}")

end_with(int(sys.argv[1]))
print("[]", flush=True)
for line in sys.stdin:
    print(json.dumps(list(answered(json.loads(line), place))), flush=True)
"""


def placements(first: int, count: int) -> list[PlacementOrder]:
    way = Alternative(1, Resources(2, 1024), tasks_per_node=2)
    return [PlacementOrder(Start(job_id, (f"n{job_id % 9}",), way), -500) for job_id in range(first, first + count)]


@pytest.fixture
def senders(tmp_path: Path) -> Iterator[Senders]:
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    started = Senders((sys.executable, str(tmp_path / "stand_in.py")))
    yield started
    started.close()


def placed(tmp_path: Path) -> list[int]:
    return [int(line.split()[0]) for line in (tmp_path / "placed").read_text().splitlines()]


def test_each_placement_is_sent_once_and_answered_once(senders: Senders, tmp_path: Path) -> None:
    asked = placements(1, 331)
    answers = list(senders.place(asked))
    assert sorted(placement.start.job_id for placement, _ in answers) == list(range(1, 332))
    assert {placement.start.job_id for placement, refusal in answers if refusal} == set(range(7, 332, 7))
    assert {str(refusal) for _, refusal in answers if refusal} >= {"Invalid job id specified: 14"}
    assert sorted(placed(tmp_path)) == list(range(1, 332))


def test_the_same_processes_serve_again(senders: Senders) -> None:
    first = {os.getpid(), *(sender.process.pid for sender in senders._senders)}
    for number in range(3):
        assert len(list(senders.place(placements(1 + 100 * number, 50)))) == 50
        pids = {sender.process.pid for sender in senders._senders}
        assert len(pids) == SENDERS
        assert number == 0 or pids == first
        first = pids


def test_when_slurmctld_does_not_answer_what_was_answered_is_handed_out_and_the_rest_is_not_sent(
    senders: Senders, tmp_path: Path
) -> None:
    answers = []
    begun = senders.place(placements(490, 400))
    with pytest.raises(Unreachable, match="timed out"):
        answers.extend(_kept(begun, answers))
    assert {placement.start.job_id for placement, _ in answers} == set(range(490, 500))
    assert len(placed(tmp_path)) <= 10 + SENDERS, "each process tried once, and that was all"
    assert len(list(senders.place(placements(2000, 40)))) == 40, "the next commit goes on"


def _kept(begun, answers: list) -> list:
    """What is handed out goes to `answers` at once: an error at the end takes nothing of it back."""
    for each in begun:
        answers.append(each)  # noqa: PERF402
    return []


def test_a_process_that_dies_ends_the_commit_and_the_next_one_has_new_processes(senders: Senders) -> None:
    with pytest.raises(Unreachable, match="a sender of placements has ended"):
        list(senders.place(placements(900, 200)))
    assert len(list(senders.place(placements(2000, 40)))) == 40


def test_a_commit_that_is_given_up_in_the_middle_leaves_no_answer_for_the_next(senders: Senders) -> None:
    begun = senders.place(placements(1, 300))
    next(begun)
    begun.close()
    answers = list(senders.place(placements(2001, 50)))
    assert sorted(placement.start.job_id for placement, _ in answers) == list(range(2001, 2051))


def test_a_sender_that_cannot_start_is_no_answer() -> None:
    with pytest.raises(Unreachable):
        list(Senders((sys.executable, "-c", "raise SystemExit(1)")).place(placements(1, 100)))


def test_a_sender_dies_with_the_scheduler(tmp_path: Path) -> None:
    """Killed, the scheduler must not leave anybody behind who goes on placing."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    child = os.fork()
    if child == 0:
        begun = Senders((sys.executable, str(tmp_path / "stand_in.py")))
        list(begun.place(placements(1, 100)))
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


def test_a_placement_survives_the_way_to_a_sender() -> None:
    way = Alternative(2, Resources(20, 90_000, ways=4, bandwidth_gbps=10), tasks_per_node=20)
    sent = PlacementOrder(Start(7, ("c1", "c2"), way), 3, 5, 40, "sns:1 nice=3")
    assert from_row(json.loads(json.dumps(as_row(sent)))) == sent


def test_after_no_answer_the_rest_of_a_line_is_not_sent() -> None:
    sent = []

    def place(placement: PlacementOrder) -> None:
        sent.append(placement.start.job_id)
        if placement.start.job_id == 2:
            raise Refused("no")
        if placement.start.job_id == 3:
            raise Unreachable("nobody")

    rows = [as_row(each) for each in placements(1, 5)]
    assert list(answered(rows, place)) == [None, ["refused", "no"], ["unreachable", "nobody"]]
    assert sent == [1, 2, 3]


def test_a_few_placements_are_sent_by_the_scheduler_itself(mocker, pyslurm) -> None:
    executor = SlurmExecutor()
    alone = mocker.patch.object(executor, "_place", side_effect=[None, Refused("gone"), None])
    answers = executor.execute(placements(1, 3))
    assert [answer.refused and str(answer.refused) for answer in answers] == [None, "gone", None]
    assert alone.call_count == 3
    pyslurm.Jobs.load.return_value = {each: recorded.job(id=each) for each in range(1, 2000)}
    sent = mocker.patch(
        "slurm_sns.slurm.senders.Senders.place", side_effect=lambda line: iter([(p, None) for p in line])
    )
    assert len(list(executor.execute(placements(1, MANY)))) == MANY
    assert sent.call_count == 1
    assert len(list(executor.execute(placements(1, 1000)))) == 1000
    assert sent.call_count == 3, "as often as all are looked at again"


def test_of_many_those_that_somebody_else_holds_since_we_looked_are_not_sent(mocker, pyslurm) -> None:
    now = {each: recorded.job(id=each) for each in range(1, 101)}
    now |= {1: recorded.job(id=1, state_reason="JobHeldAdmin"), 2: recorded.job(id=2, priority=900)}
    del now[3]
    pyslurm.Jobs.load.return_value = now
    sent = mocker.patch(
        "slurm_sns.slurm.senders.Senders.place", side_effect=lambda line: iter([(p, None) for p in line])
    )
    answers = {each.order.start.job_id: each.refused for each in SlurmExecutor().execute(placements(1, 100))}
    assert {each for each, refusal in answers.items() if refusal} == {1, 2, 3}
    assert len(answers) == 100
    assert [placement.start.job_id for placement in sent.call_args.args[0]] == list(range(4, 101))
