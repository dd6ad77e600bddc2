"""When a job would have started with less memory: recorded cycles are planned again by the live policy."""

from dataclasses import replace

import pytest
from live import ALICE, BOB, ENFORCE, look, situation

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Node, Plan, Resources, Snapshot
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.smaller_request import evenly, first_start
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.ports import Decision
from slurm_sns.task_ids import task_id

GIB = 1024
POLICY = max_jobs(MatchingParameters())


def cycle(at_s: float, free_gib: int, *job_ids: int) -> Snapshot:
    """A node with four free cores; each of the jobs has waited since second 5 for one core and 80 GiB."""
    wanted = (Alternative(1, Resources(1, 80 * GIB)),)
    node = Node("c1", Resources(4, 100 * GIB), Resources(4, free_gib * GIB))
    return Snapshot((node,), tuple(Job(each, 5, wanted) for each in job_ids), now_s=at_s)


CYCLES = {1: cycle(10, 20, 7), 2: cycle(20, 45, 7), 3: cycle(30, 60, 7), 4: cycle(40, 90, 7)}


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """The kernel is compiled or loaded before a clock runs, as in a scheduler."""
    POLICY.plan(CYCLES[1])


def replayed(factor: float, *, kept=CYCLES, ids=frozenset({7})):
    return first_start([kept.get(number) for number in range(1, 4)], ids, factor, POLICY.plan)


def test_the_first_cycle_in_which_it_fits_is_found() -> None:
    assert replayed(0.5) == (20, 2)
    assert replayed(0.7) == (30, 3)


def test_with_nothing_saved_it_starts_in_none_of_them() -> None:
    assert replayed(1.0) == (None, 3)
    assert replayed(2.0) == (None, 3)


def test_cycles_without_the_job_or_without_a_snapshot_are_skipped() -> None:
    assert replayed(0.5, kept={2: CYCLES[2]}) == (20, 1)
    assert replayed(0.5, kept={1: cycle(10, 90, 8), 2: cycle(20, 45, 7)}) == (20, 1)


def test_a_task_is_found_by_either_of_its_ids() -> None:
    task = task_id(41, 7)
    assert replayed(0.5, kept={2: cycle(20, 45, task)}, ids={7, task}) == (20, 1)


def test_a_cycle_that_started_it_anyway_is_no_gain_of_less_memory() -> None:
    assert replayed(0.5, kept={1: cycle(10, 90, 7), 2: CYCLES[2]}) == (20, 2)


def test_out_of_time_it_does_not_say_that_less_memory_wins_nothing() -> None:
    moments = iter([0.0, 0.0, 99.0])
    assert first_start(CYCLES.values(), {7}, 0.5, POLICY.plan, lambda: next(moments)) is None


def test_cycles_are_taken_evenly_and_the_first_is_among_them() -> None:
    assert evenly([1, 2, 3, 4, 5, 6, 7], 3) == [1, 4, 7]
    assert evenly([1, 2], 3) == [1, 2]
    assert evenly([]) == []


class RecordedCycles:
    """The decision record of job 7, which was placed in cycle 4."""

    def __init__(self, owner: int = ALICE, kept=CYCLES) -> None:
        demand = {"cores": 1, "memory_mb": 80 * GIB}
        self.decision = Decision(7, owner, 40.5, "start", ("c1",), "by mix-fit", 4, "mix-fit", {}, demand=demand)
        self.kept, self.asked = kept, []

    def job_of_task(self, *_task: int) -> None:
        return None

    def of_job(self, job_id: int) -> list[Decision]:
        return [self.decision] if job_id == 7 else []

    def snapshot_of(self, cycle_id: int) -> Snapshot | None:
        return self.kept.get(cycle_id)

    def cycles_between(self, from_s: float, to_s: float) -> list[int]:
        self.asked.append((from_s, to_s))
        return [number for number, snapshot in self.kept.items() if from_s <= snapshot.now_s < to_s and number < 4]


def answer(recorded: RecordedCycles, memory_mb: object = 40 * GIB, mode: str = "enforce", user: int = ALICE):
    recent = RecentCycles()
    settings = replace(ENFORCE, mode=mode)
    recent.publish(View(50, 0.01, mode, False, 3, 2, 5, situation(look(), settings=settings), Plan()))
    answers = Answers(recent, recorded, POLICY, frozenset({0}), settings=settings, asked=set())
    return answers.answer({"command": "smaller-request", "job_id": 7, "memory_mb": memory_mb}, user)


def test_its_owner_is_told_what_it_would_have_won() -> None:
    recorded = RecordedCycles()
    assert answer(recorded) == {"placed_s": 40.5, "earlier_s": 20.0, "cycles": 2}
    assert recorded.asked == [(5.0, 40.5)]
    assert answer(RecordedCycles(), user=0)["earlier_s"] == 20.0


def test_out_of_time_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm_sns.scheduler.answers.smaller_request.LONGEST_S", -1.0)
    assert answer(RecordedCycles()) is None


def test_nobody_else_is() -> None:
    with pytest.raises(BadInput, match="job 7: no job of yours"):
        answer(RecordedCycles(owner=BOB))


def test_nothing_is_said_of_what_was_not_recorded() -> None:
    assert answer(RecordedCycles(kept={1: CYCLES[1]})) is None
    assert answer(RecordedCycles(), mode="advise") is None


@pytest.mark.parametrize("memory_mb", [None, "40", -1, 1.5, True])
def test_a_wrong_amount_is_bad_input(memory_mb: object) -> None:
    with pytest.raises(BadInput, match="memory_mb"):
        answer(RecordedCycles(), memory_mb)
