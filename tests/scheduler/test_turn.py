"""Which scheduler plans: the one beside the acting slurmctld with the lease; nothing is sent once that is lost."""

from collections.abc import Iterable, Iterator

import pytest
from fake_slurm import FakeSlurm

from slurm_sns.errors import SnsError, Unreachable
from slurm_sns.scheduler.gate.orders import Answer, GateOrder, Order, free
from slurm_sns.scheduler.turn import LOOKED_S, SETTLED_S, FencedExecutor, PlannerTurn, WatchdogDuty

UPDATE_S = 10.0


class FakeLease:
    """A lease that a test gives and takes away."""

    def __init__(self) -> None:
        self.left_s = 0.0
        self.is_held_by = ""
        self.problem = ""

    def take(self) -> str:
        self._fail()
        if self.is_held_by in ("", "ctl"):
            self.is_held_by, self.left_s = "ctl", 15.0
            return ""
        return self.is_held_by

    def holder(self) -> str:
        self._fail()
        return self.is_held_by

    def hold(self) -> bool:
        self._fail()
        if self.is_held_by == "ctl":
            self.left_s = 15.0
        return self.is_held_by == "ctl"

    def give_up(self) -> None:
        self._fail()
        self.is_held_by, self.left_s = "", 0.0

    def _fail(self) -> None:
        if self.problem:
            raise SnsError(self.problem)


class Case:
    def __init__(self) -> None:
        self.lease = FakeLease()
        self.where = "ctl"
        self.log: list[str] = []
        self.slurm = FakeSlurm({"c1": 4})
        self.turn = PlannerTurn(
            "ctl", self.acting, self.lease, update_s=UPDATE_S, clock=self.slurm, log=self.log.append
        )

    def comes(self) -> bool:
        """Whether the turn comes once slurmctld has settled here."""
        self.turn.comes()
        self.slurm.time_s += SETTLED_S
        return self.turn.comes()

    def acting(self) -> str:
        if not self.where:
            raise SnsError("slurmctld's heartbeat cannot be read")
        return self.where


@pytest.fixture
def case() -> Case:
    return Case()


def test_beside_the_acting_slurmctld_the_turn_comes_and_lasts(case: Case) -> None:
    assert case.comes()
    assert case.turn.lasts()
    case.turn.require()
    assert case.log == []


def test_a_slurmctld_that_has_just_taken_over_is_left_alone_until_it_has_asked_the_nodes_for_their_jobs(
    case: Case,
) -> None:
    assert not case.turn.comes()
    case.slurm.time_s += SETTLED_S - 0.1
    assert not case.turn.comes()
    assert case.lease.is_held_by == "", "the lease is taken by who plans"
    assert case.turn.told == "this scheduler stands by; nobody plans now: try again in a moment"
    case.slurm.time_s += 0.1
    assert case.turn.comes()


def test_a_slurmctld_that_comes_back_has_to_settle_again(case: Case) -> None:
    assert case.comes()
    case.where = "ctl2"
    assert not case.turn.lasts()
    case.turn.ends()
    case.where = "ctl"
    assert not case.turn.comes()
    assert case.comes()


def test_without_the_acting_slurmctld_the_lease_is_not_even_tried(case: Case) -> None:
    case.where = "ctl2"
    assert not case.turn.comes()
    assert case.lease.is_held_by == ""
    assert case.turn.told == "this scheduler stands by; ctl2 plans: run this command there"


def test_who_still_has_the_lease_after_a_takeover_plans_as_far_as_anybody_knows(case: Case) -> None:
    case.lease.is_held_by = "ctl2"
    assert not case.turn.comes()
    assert case.turn.told == "this scheduler stands by; ctl2 plans: run this command there"
    case.lease.give_up()
    assert case.comes()


def test_a_turn_ends_when_slurmctld_acts_elsewhere(case: Case) -> None:
    assert case.comes()
    case.where = "ctl2"
    assert not case.turn.lasts()
    case.turn.ends()
    assert case.lease.is_held_by == ""


def test_a_turn_ends_when_somebody_else_has_the_lease(case: Case) -> None:
    assert case.comes()
    case.lease.is_held_by, case.lease.left_s = "ctl2", 0.0
    assert not case.turn.lasts()


def test_while_the_lease_cannot_be_renewed_the_turn_lasts_until_an_update_could_outlive_it(case: Case) -> None:
    assert case.comes()
    case.lease.problem = "the lease cannot be written: No space left on device"
    assert case.turn.lasts()
    case.turn.require()
    case.lease.left_s = UPDATE_S
    assert not case.turn.lasts()
    with pytest.raises(Unreachable, match="is lost: the lease cannot be written: No space left on device; nothing"):
        case.turn.require()
    assert not case.turn.comes()
    assert case.turn.told == "this scheduler stands by: the lease cannot be written: No space left on device"
    assert len(case.log) == 1
    case.lease.problem = ""
    assert case.comes()
    assert case.log[1].startswith("over after")


def test_where_slurmctld_acts_cannot_be_read_nobody_begins_to_plan_and_who_plans_goes_on_to_its_end(case: Case) -> None:
    case.where = ""
    assert not case.turn.comes()
    case.where = "ctl"
    assert case.comes()
    case.where = ""
    assert case.turn.lasts()


class Recorder:
    """An executor that notes what it sends, and lets a test act after each order."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def execute(self, orders: Iterable[Order]) -> Iterator[Answer]:
        for order in orders:
            self.sent.append(order.job_id)
            yield Answer(order)


def orders(number: int) -> list[GateOrder]:
    slurm = FakeSlurm({"c1": 4})
    found = []
    for job_id in range(1, number + 1):
        slurm.submit(job_id)
        found.append(free(slurm.jobs[job_id], "test", slurm.now()))
    return [order for order in found if order is not None]


def test_with_the_lease_all_is_sent_and_answered_in_order(case: Case) -> None:
    executor = Recorder()
    case.comes()
    answers = list(FencedExecutor(executor, case.turn.require).execute(orders(5)))
    assert [each.order.job_id for each in answers] == executor.sent == [1, 2, 3, 4, 5]
    assert {each.unreachable for each in answers} == {None}


def test_without_it_nothing_is_sent_and_all_is_answered(case: Case) -> None:
    executor = Recorder()
    answers = list(FencedExecutor(executor, case.turn.require).execute(orders(3)))
    assert executor.sent == []
    assert [each.order.job_id for each in answers] == [1, 2, 3]
    assert all(isinstance(each.unreachable, Unreachable) for each in answers)


def test_what_was_not_sent_when_it_was_lost_is_never_sent(case: Case) -> None:
    executor = Recorder()
    case.comes()
    answers = FencedExecutor(executor, case.turn.require).execute(orders(5))
    assert [next(answers).order.job_id for _ in range(2)] == [1, 2]
    case.lease.is_held_by, case.lease.left_s = "ctl2", 0.0
    left = list(answers)
    assert executor.sent == [1, 2]
    assert [(each.order.job_id, each.unreachable is not None) for each in left] == [(3, True), (4, True), (5, True)]


def test_nothing_more_is_sent_to_a_slurmctld_that_has_taken_over_elsewhere_however_long_the_lease_lasts(
    case: Case,
) -> None:
    executor = Recorder()
    case.comes()
    answers = FencedExecutor(executor, case.turn.require).execute(orders(5))
    assert next(answers).order.job_id == 1
    case.where = "ctl2"
    case.slurm.time_s += LOOKED_S
    left = list(answers)
    assert executor.sent == [1]
    assert {str(each.unreachable) for each in left} == {"slurmctld acts on ctl2 now; nothing more is sent from here"}
    assert len(left) == 4
    with pytest.raises(Unreachable):
        case.turn.require()


def test_of_alike_orders_each_is_answered(case: Case) -> None:
    case.comes()
    alike = orders(1) + orders(1)
    answers = FencedExecutor(Recorder(), case.turn.require).execute(alike)
    assert [each.order for each in answers] == alike


def test_the_watchdog_is_on_duty_once_slurmctld_has_acted_here_for_long_enough() -> None:
    now_s, where = [100.0], ["ctl2"]
    duty = WatchdogDuty("ctl", lambda: where[0], 45.0, lambda: now_s[0])
    assert not duty()
    now_s[0] += 1000
    where[0] = "ctl"
    assert not duty()
    now_s[0] += 44
    assert not duty()
    now_s[0] += 1
    assert duty()
    where[0] = "ctl2"
    assert not duty()
    where[0] = "ctl"
    assert not duty(), "the time counts anew"


def test_the_watchdog_sends_nothing_once_slurmctld_acts_elsewhere() -> None:
    now_s, where = [100.0], ["ctl"]
    duty = WatchdogDuty("ctl", lambda: where[0], 45.0, lambda: now_s[0])
    duty.require()
    where[0] = "ctl2"
    now_s[0] += LOOKED_S
    with pytest.raises(Unreachable, match="slurmctld acts on ctl2 now; nothing more is sent from here"):
        duty.require()
