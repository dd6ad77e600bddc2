"""The live loop against a small Slurm: its promises when Slurm, the store or the process itself fails."""

from dataclasses import replace
from itertools import pairwise
from math import ceil

import pytest
from fake_slurm import FIRST_LEASE_S, Crash, FakeSlurm, Site, Wire
from live import ADVISED, BOB, ENFORCE, FOREIGN, HELD, NOW, comment, job

from slurm_sns.errors import Outdated, Refused, SnsError, Unreachable
from slurm_sns.model import Alternative, Plan, Release, Requeue, Resources, Resume, SetShare, Snapshot, Start, Suspend
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.specification import Specification
from slurm_sns.scheduler.dispatch import dispatcher
from slurm_sns.scheduler.dispatch.dispatcher import (
    BATCH,
    FLOOD,
    MOST_FOLLOW_UPS,
    MOST_SENDING_S,
    MOST_UNBOOSTED,
    OUTDATED,
    PUT_OFF,
    RENEWS_S,
    SIGN_OF_LIFE_S,
)
from slurm_sns.scheduler.gate.failed_placements import MOST_FAILURES
from slurm_sns.scheduler.gate.orders import BOOST
from slurm_sns.scheduler.loop import LONGEST_RETRY_S, SPARE_S, Scheduler
from slurm_sns.scheduler.observation import DatabaseQueue, JobState
from slurm_sns.scheduler.pace import APART, CostPace
from slurm_sns.scheduler.ports import PolicyHistory
from slurm_sns.submit.record import MemoryRequest
from slurm_sns.task_ids import task_id
from slurm_sns.wire.values import Grant, RunId

ADVISE, OBSERVE = replace(ENFORCE, mode="advise"), replace(ENFORCE, mode="observe")
ORDERS = {"place", "regate", "free", "renew", "widen", "unboost"}


@pytest.fixture
def site() -> Site:
    return Site(FakeSlurm({"c1": 4, "c2": 4}))


def until(number: int):
    """A stop condition that becomes true after this number of cycles."""
    left = iter(range(number))
    return lambda: next(left, None) is None


def kinds(site: Site) -> list[tuple[str, int]]:
    """The orders that Slurm has carried out."""
    return [(order.kind.value, order.job_id) for order in site.slurm.orders]


def test_jobs_are_placed_and_run_where_they_were_placed(site: Site) -> None:
    site.slurm.submit(4, 4, 4)
    site.scheduler(ENFORCE).repeat(6, 1.0)
    assert sorted(each for each, _ in site.slurm.started) == [1, 2, 3]
    planned = {start.job_id: start.nodes for _, plan, *_ in site.decisions.cycles for start in plan.starts}
    assert dict(site.slurm.started) == planned


def test_a_placement_is_one_order_and_says_in_the_job_what_it_changed(site: Site) -> None:
    site.slurm.submit(7, words="program=mg")
    wire = Wire()
    site.scheduler(ENFORCE, wire).cycle()
    assert [call for call in wire.calls if call in ORDERS] == ["place"]
    (order,) = site.slurm.orders
    assert (order.tasks_per_node, order.tasks) == (4, 7), "Slurm before 26.05 would compute nodes times tasks per node"
    record = site.slurm.jobs[1].record
    assert (record.nodes, record.placed_s, record.given_tasks_per_node) == (("c1", "c2"), NOW, 4)
    assert (record.hints.program, record.gate_s) == ("mg", NOW + FIRST_LEASE_S)
    assert site.slurm.jobs[1].begin_s == NOW, "open by slurmctld's clock"


@pytest.mark.parametrize("has_boost", [True, False])
def test_a_placed_job_is_put_ahead_of_slurms_own_queue_until_it_has_started(site: Site, has_boost: bool) -> None:
    """Where the site's priorities have a place for that; its owner's nice value stays as it is."""
    site.slurm.shown = {"has_boost": has_boost}
    site.slurm.submit(1, run_s=60, nice=30)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert (site.slurm.jobs[1].priority, site.slurm.jobs[1].nice) == (1500 + BOOST * has_boost, 30)
    site.slurm.sleep(1.0)
    scheduler.repeat(3, 1.0)
    assert (site.slurm.jobs[1].state, site.slurm.jobs[1].priority) == (JobState.RUNNING, 1500)
    assert kinds(site) == [("place", 1), *[("unboost", 1)] * has_boost], "once"


def test_a_cycle_takes_so_many_boosts_off_and_the_next_one_goes_on() -> None:
    number = MOST_UNBOOSTED + 1
    site = Site(FakeSlurm({"c1": number, "c2": number}))
    site.slurm.submit(*[1] * number, run_s=60)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(2, 1.0)
    assert sum(kind == "unboost" for kind, _ in kinds(site)) == MOST_UNBOOSTED
    scheduler.cycle()
    assert {job.priority for job in site.slurm.jobs.values()} == {1500}


def test_the_same_reason_is_logged_once_a_cycle(site: Site) -> None:
    site.slurm.submit(1, 1)
    site.scheduler(ENFORCE).cycle()
    first, second = site.log
    assert first.startswith("job 1: placed on c1: by ")
    assert second == "job 2: placed on c1"


# --- leases


def crowded(site: Site, *, waiting: int = 3) -> Scheduler:
    """Both nodes are busy for long, and jobs wait."""
    site.slurm.submit(4, 4, run_s=100_000)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(2, 1.0)
    site.slurm.sleep(1.0)
    site.slurm.submit(*[4] * waiting)
    site.slurm.orders.clear()
    return scheduler


@pytest.mark.long
def test_the_gates_of_waiting_jobs_are_renewed_before_they_lapse_and_seldom(site: Site) -> None:
    scheduler = crowded(site)
    for _ in range(4 * 3600 // 5):
        scheduler.cycle()
        assert all(each.begin_s > site.slurm.now() for each in site.slurm.jobs.values() if each.id > 2)
        site.slurm.sleep(5.0)
    assert {kind for kind, _ in kinds(site)} == {"renew"}
    assert 3 * 3 <= len(kinds(site)) <= 3 * 5, "each once in an hour"
    assert len(site.slurm.started) == 2


def test_lapsed_gates_are_renewed_before_anything_else_what_slurm_would_start_next_first(site: Site) -> None:
    scheduler = crowded(site)
    site.slurm.starts_nothing = True
    site.slurm.sleep(FIRST_LEASE_S)
    site.slurm.change(5, priority=2000)
    site.slurm.submit(1, asks_for=("constraint",))  # something to follow up
    wire = Wire()
    Scheduler(site.ports(wire), max_jobs(MatchingParameters()), ENFORCE).cycle()
    assert kinds(site) == [("renew", 5), ("renew", 3), ("renew", 4), ("free", 6)]
    assert wire.calls.index("renew") == wire.calls.index("observe") + 1
    site.slurm.starts_nothing = False
    scheduler.repeat(3, 1.0)
    assert len(site.slurm.started) == 2


def test_other_renewals_come_after_the_placements(site: Site) -> None:
    site.slurm.submit(4, 4, 4)
    site.scheduler(ENFORCE).cycle()
    assert kinds(site) == [("place", 1), ("place", 2), ("renew", 3)]


def test_while_slurmdbd_is_away_only_what_lapses_soon_is_renewed(site: Site) -> None:
    site.slurm.submit(4, 4, 4, 4)
    for job_id, left_s in ((3, 700), (4, 500)):
        gate_s = int(NOW) + left_s
        site.slurm.change(job_id, begin_s=gate_s, admin_comment=comment(gate_s=gate_s))
    site.slurm.shown = {"database_queue": DatabaseQueue(9000, 10_000)}
    site.scheduler(ENFORCE).cycle()
    assert [job_id for kind, job_id in kinds(site) if kind == "renew"] == [4]


def test_a_refused_renewal_is_a_line_of_the_log_and_tried_again(site: Site) -> None:
    crowded(site, waiting=1)
    renew, site.slurm.renew = site.slurm.renew, refusing("Job/step already completing")
    scheduler = site.scheduler(ENFORCE)
    view = scheduler.cycle()
    assert site.log[-1] == "job 3: Slurm refused to move its gate: Job/step already completing"
    assert view.renewed_per_minute == 0
    site.slurm.renew = renew
    assert scheduler.cycle().renewed_per_minute == 1
    assert site.slurm.jobs[3].begin_s > NOW + 3600


def test_the_view_says_how_many_gates_were_renewed_in_the_last_minute(site: Site) -> None:
    scheduler = crowded(site)
    assert scheduler.cycle().renewed_per_minute == 3
    site.slurm.sleep(61)
    assert scheduler.cycle().renewed_per_minute == 0


def refusing(why: str):
    def refuse(_order) -> None:
        raise Refused(why)

    return refuse


# --- what owners do


def test_a_job_that_has_changed_since_it_was_looked_at_is_planned_anew_and_has_not_failed(site: Site) -> None:
    site.slurm.submit(1, 1)
    place = site.slurm.place

    def outdated(order) -> None:
        if order.job_id == 1:
            raise Outdated("it has changed since it was looked at")
        place(order)

    site.slurm.place = outdated
    scheduler = site.scheduler(ENFORCE)
    for _ in range(2 * MOST_FAILURES):
        view = scheduler.cycle()
        assert view.plan.waiting[1] == OUTDATED
    assert site.history.tries == {}
    site.slurm.change(1, pinned_to=("c1",))  # its owner now asks for the node that it was to get
    scheduler.cycle()
    assert site.slurm.jobs[1].pinned_to == ("c1",)
    assert site.slurm.status(1) == (("c1",), False, "node-list")
    assert not any("refused" in line for line in site.log)


def test_the_begin_time_that_an_owner_gives_a_waiting_job_is_kept(site: Site) -> None:
    site.slurm.submit(1)
    own = int(NOW) + 300
    site.slurm.change(1, begin_s=own)
    scheduler = site.scheduler(ENFORCE)
    for _ in range(300):
        scheduler.cycle()
        assert site.slurm.jobs[1].begin_s >= own
        site.slurm.sleep(1.0)
    assert site.slurm.started == []
    scheduler.repeat(2, 1.0)
    assert site.slurm.started == [(1, ("c1",))]


@pytest.mark.long
@pytest.mark.parametrize("is_placed", [False, True])
def test_a_job_that_its_owner_holds_waits_gated_until_they_release_it(site: Site, is_placed: bool) -> None:
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    if is_placed:
        scheduler.cycle()
    site.slurm.change(1, **HELD)
    scheduler.repeat(4000, 2.0)
    assert site.slurm.status(1) == ((), True, "")
    assert site.slurm.jobs[1].priority == 0
    assert kinds(site)[:2] == ([("place", 1), ("regate", 1)] if is_placed else [("renew", 1), ("renew", 1)])
    site.slurm.change(1, priority=1500, reason="")
    scheduler.repeat(3, 1.0)
    assert site.slurm.started == [(1, ("c1",))]


def test_a_placed_job_whose_owner_gives_it_other_nodes_is_slurms_with_them(site: Site) -> None:
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    site.slurm.change(1, pinned_to=("c2",))
    scheduler.cycle()
    assert site.slurm.status(1) == (("c2",), False, "node-list")
    assert site.slurm.jobs[1].priority == 1500


def test_a_job_that_its_owner_opens_is_slurms_from_then_on(site: Site) -> None:
    site.slurm.submit(1)
    site.slurm.starts_nothing = True
    site.slurm.sleep(1.0)
    site.slurm.change(1, begin_s=int(NOW) + 1)  # StartTime=now
    site.scheduler(ENFORCE).repeat(3, 1.0)
    assert kinds(site) == [("free", 1)]
    assert site.slurm.status(1) == ((), False, "opened-by-its-owner")


def test_a_job_that_its_owner_releases_through_the_socket_is_slurms_in_the_next_cycle(site: Site) -> None:
    site.slurm.submit(1, 1)
    asked = set()
    scheduler = Scheduler(site.ports(), Scripted(*[Plan()] * 3), ENFORCE, asked=asked)
    scheduler.cycle()
    asked |= {1, 99}
    scheduler.cycle()
    assert [site.slurm.status(each)[2] for each in (1, 2)] == ["opened-by-its-owner", ""]
    assert "job 1: left to Slurm, as its owner asked" in site.log
    scheduler.cycle()
    assert not asked
    assert kinds(site).count(("free", 1)) == 1


def test_a_job_that_its_owner_releases_is_not_forgotten_where_its_order_is_put_off(site: Site, mocker) -> None:
    site.slurm.submit(1)
    scheduler = Scheduler(site.ports(), Scripted(*[Plan()] * 2), ENFORCE, asked={1})
    frees = mocker.patch.object(site.slurm, "free", side_effect=Outdated("it has changed since it was looked at"))
    scheduler.cycle()
    assert site.slurm.status(1)[2] == ""
    frees.side_effect = site.slurm.apply
    scheduler.cycle()
    assert site.slurm.status(1)[2] == "opened-by-its-owner"


# --- refusals


class Refusing(FakeSlurm):
    """Refuses to place job 1."""

    def place(self, order) -> None:
        if order.job_id == 1:
            raise Refused("Requested node configuration is not available")
        super().place(order)


def test_a_refusal_for_one_job_does_not_stop_the_others_and_it_backs_off() -> None:
    site = Site(Refusing({"c1": 4, "c2": 4}))
    site.slurm.submit(1, 1)
    view = site.scheduler(ENFORCE).cycle()
    why = "Slurm refused the placement on c1: Requested node configuration is not available"
    assert [start.job_id for start in view.plan.starts] == [2], "what Slurm refused is not shown as placed"
    assert view.plan.waiting[1] == why
    assert (site.history.tries[1].failures, site.history.tries[1].retry_s) == (1, NOW + 5)
    assert site.decisions.cycles[0][2] == {1: why}


def test_a_job_that_slurm_refuses_time_after_time_is_left_to_slurm() -> None:
    site = Site(Refusing({"c1": 4, "c2": 4}))
    site.slurm.submit(1)
    site.scheduler(ENFORCE).repeat(200, 10.0)
    assert sum(line.startswith("job 1: Slurm refused the placement") for line in site.log) == MOST_FAILURES
    assert site.slurm.ended == [1]
    assert site.history.tries == {}


def test_a_job_that_slurm_never_starts_is_left_to_slurm_after_as_many_placements(site: Site) -> None:
    site.slurm.submit(1)
    site.slurm.starts_nothing = True
    site.scheduler(ENFORCE).repeat(400, 4.0)
    assert kinds(site).count(("place", 1)) == MOST_FAILURES
    assert site.slurm.status(1) == ((), False, "8-placements-failed")
    assert site.slurm.jobs[1].priority == 1500


class Half(FakeSlurm):
    """Refuses the first placement in the middle: the nodes are on the job already, the record is not."""

    is_lost = False
    number = 0

    def place(self, order) -> None:
        self.number += 1
        if self.number > 1:
            super().place(order)
            return
        of = self.task(1, 0) if order.address else self.jobs[order.job_id]
        of = self.split(of, 0) if order.address else of
        self.change(of.id, pinned_to=order.nodes)
        raise Unreachable("the reply was lost") if self.is_lost else Refused("Invalid qos")


@pytest.mark.parametrize("is_array", [False, True])
@pytest.mark.parametrize("is_lost", [False, True])
def test_the_nodes_that_a_refused_placement_left_on_a_job_are_cleared_and_it_is_placed_again(is_array, is_lost) -> None:
    site = Site(Half({"c1": 4}))
    site.slurm.is_lost = is_lost
    if is_array:
        site.slurm.submit_array("0-1")
    else:
        site.slurm.submit(1)
    site.scheduler(ENFORCE).run(1.0, until(14), lambda: True)
    assert len(site.slurm.started) == (2 if is_array else 1)
    assert any("cleared the nodes of a placement that Slurm refused" in line for line in site.log)
    assert not any("left to Slurm" in line for line in site.log)


def test_the_nodes_of_a_refused_placement_are_its_owners_where_there_are_others(site: Site) -> None:
    site = Site(Half({"c1": 4, "c2": 4}))
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    site.slurm.change(1, pinned_to=("c2",))
    scheduler.cycle()
    assert site.slurm.status(1) == (("c2",), False, "node-list")


def test_the_nodes_of_a_refused_placement_are_cleared_where_the_owner_has_opened_the_job(site: Site) -> None:
    site = Site(Half({"c1": 4}))
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    site.slurm.change(1, begin_s=int(NOW) - 1)
    scheduler.cycle()
    assert site.slurm.status(1) == ((), False, "opened-by-its-owner")


def test_the_nodes_of_a_refused_placement_are_cleared_where_the_owner_wants_the_job_to_begin_later(site: Site) -> None:
    site = Site(Half({"c1": 4}))
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    site.slurm.change(1, begin_s=int(NOW) + 3000)
    scheduler.cycle()
    job = site.slurm.jobs[1]
    assert (job.pinned_to, job.begin_s, job.record.begin_s) == ((), int(NOW) + 3000, int(NOW) + 3000)


def test_a_job_that_is_gone_at_its_turn_is_a_refusal_like_any_other(site: Site) -> None:
    site.slurm.submit(1, 1)
    scheduler = site.scheduler(ENFORCE)
    look = site.slurm.observe()
    site.slurm.observe = lambda: look
    del site.slurm.jobs[1]
    scheduler.cycle()
    assert site.slurm.jobs[2].pinned_to == ("c1",)
    assert any("Invalid job id" in line for line in site.log)


def test_what_a_placement_gave_a_job_goes_with_it(site: Site) -> None:
    """Whole nodes, with all their memory, and an own number of tasks per node, under a policy of cache ways."""
    site.slurm.submit(
        2, words="exclusive", memory_per_cpu_mb=None, memory_per_node_mb=500, tasks_per_node=1, nodes_max=2
    )
    site.slurm.starts_nothing = True
    before = site.slurm.jobs[1]
    start = Start(1, ("c1", "c2"), Alternative(2, Resources(1, 500, 3, 12), tasks_per_node=2, exclusive=True))
    scheduler = scripted(site, Plan((start,)), Plan())
    scheduler.cycle()
    placed = site.slurm.jobs[1]
    assert (placed.ways, placed.bandwidth_gbps, placed.tasks_per_node) == (3, 12, 2)
    assert (placed.memory_per_node_mb, placed.record.own_memory) == (128_000, MemoryRequest(500))
    site.slurm.sleep(ENFORCE.place_timeout_s + 1)
    scheduler.cycle()
    after = site.slurm.jobs[1]
    assert replace(after, admin_comment="", begin_s=0) == replace(before, admin_comment="", begin_s=0)
    assert after.record == replace(before.record, gate_s=after.begin_s)


# --- slurmctld does not answer


def test_losing_slurmctld_in_the_middle_of_a_commit_loses_no_job(site: Site) -> None:
    site.slurm.submit(1, 1, 1)
    wire = Wire(problem=Unreachable("slurmctld does not answer: timed out"))
    scheduler = site.scheduler(ENFORCE, wire)
    wire.at = 5  # load, is_on, observe, place, then this place
    with pytest.raises(Unreachable):
        scheduler.cycle()
    assert wire.calls[-2:] == ["place", "record"], "what was placed before is in the decision record"
    assert [start.job_id for start in site.decisions.cycles[0][1].starts] == [1]
    assert site.heartbeat.beats == 0
    scheduler.cycle()
    assert [each.pinned_to for each in site.slurm.jobs.values()] == [("c1",)] * 3


def test_while_slurmctld_does_not_answer_the_pauses_grow_and_the_heartbeat_is_not_beaten(site: Site) -> None:
    def silent():
        raise Unreachable("slurmctld does not answer: connect failure")

    pauses = []
    site.slurm.observe = silent
    site.slurm.sleep = pauses.append
    site.scheduler(ENFORCE).run(1.0, until(6))
    assert pauses == [1, 2, 4, 8, LONGEST_RETRY_S, LONGEST_RETRY_S]
    assert site.heartbeat.beats == 0
    said, stopped = site.log
    assert said == "slurmctld does not answer: connect failure; trying again, at least every 10 s"
    assert stopped.endswith("the watchdog will free what is gated, or its gate opens by itself")


def test_an_outage_is_a_line_for_each_new_problem_and_one_when_it_is_over(site: Site) -> None:
    problems = iter(["no", "no", "timed out", "no", "timed out", "no"])
    observe = site.slurm.observe

    def at_last():
        if problem := next(problems, None):
            raise Unreachable(problem)
        return observe()

    site.slurm.observe = at_last
    site.scheduler(ENFORCE).run(1.0, until(9))
    again = "; trying again, at least every 10 s"
    assert site.log == [f"no{again}", f"timed out{again}", "over after 35 s: no"]


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_stepped_clock_makes_no_pause_longer(site: Site, step_s: int) -> None:
    observe, pauses = site.slurm.observe, []

    def stepped():
        site.slurm.step(step_s)
        return observe()

    site.slurm.observe = stepped
    site.slurm.sleep = pauses.append
    site.scheduler(ENFORCE).run(1.0, until(2))
    assert all(0 <= pause_s <= 1 for pause_s in pauses)
    assert all(view.took_s >= 0 for view in site.views)


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_after_any_jump_of_the_clock_a_job_that_does_not_start_is_placed_again_in_time(site: Site, step_s: int) -> None:
    site.slurm.submit(4)
    site.slurm.starts_nothing = True
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(2, 1.0)
    site.slurm.step(step_s)  # by this clock the job was placed in the future, or long ago
    scheduler.repeat(3, 1.0)
    assert site.slurm.status(1) == ((), True, ""), "taken back"
    site.slurm.step(step_s)  # the same for the pause until it is tried again
    site.slurm.starts_nothing = False
    for _ in range(30):
        scheduler.cycle()
        # A begin time counts by the clock: set back, Slurm itself starts nothing until it has caught up.
        site.slurm.sleep(300.0)
    assert [each for each, _ in site.slurm.started] == [1]


def test_the_rhythm_comes_back_with_slurmctld(site: Site) -> None:
    answers = iter([False, False, True, False])
    observe, pauses = site.slurm.observe, []

    def sometimes():
        if next(answers, True):
            return observe()
        raise Unreachable("no")

    site.slurm.observe = sometimes
    site.slurm.sleep = pauses.append
    site.scheduler(ENFORCE).run(0.5, until(5))
    assert pauses == [0.5, 1, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(("interval_s", "cycle_s"), [(1.0, 0.03), (1.0, 0.6), (1.4, 0.3), (2.0, 0.03), (30.0, 1.7)])
def test_cycles_end_just_before_slurmctld_looks_for_updated_jobs(site: Site, interval_s: float, cycle_s: float) -> None:
    observe, ends_s = site.slurm.observe, []
    site.slurm.sleep(0.37)

    def slow():
        site.slurm.sleep(cycle_s)
        ends_s.append(site.slurm.now())
        return observe()

    site.slurm.observe = slow
    site.scheduler(ENFORCE).run(interval_s, until(4))
    ends_s = ends_s[:4]  # the last look is that of the stop
    assert [end_s % 1 for end_s in ends_s[1:]] == [pytest.approx(1 - SPARE_S)] * 3
    assert [late - early for early, late in pairwise(ends_s)] == [pytest.approx(ceil(interval_s), abs=0.5)] * 3


class Told:
    """Tells of one job, which is submitted in the middle of the first pause."""

    def __init__(self, slurm: FakeSlurm) -> None:
        self.slurm, self.is_new = slurm, True

    def forget(self) -> None:
        pass

    def wait(self, seconds: float) -> bool:
        was_new, self.is_new = self.is_new, False
        self.slurm.sleep(seconds / 2 if was_new else seconds)
        if was_new:
            self.slurm.submit(1)
        return was_new


def test_a_job_that_is_submitted_in_a_pause_is_placed_at_once(site: Site) -> None:
    ports = replace(site.ports(), submissions=Told(site.slurm))
    Scheduler(ports, max_jobs(MatchingParameters()), ENFORCE).run(8.0, until(2))
    (placed,) = [order for order in site.slurm.orders if order.kind.value == "place"]
    assert placed.job_id == 1
    assert site.slurm.now() - NOW < 9


@pytest.mark.parametrize(
    ("shown_in_s", "timeout_s", "apart_s"), [(0.05, 60, 1), (0.5, 60, 5), (60.0, 60, 10), (60.0, 12, 3), (60.0, 2, 1)]
)
def test_a_slurmctld_that_takes_long_to_show_its_jobs_is_asked_less_often_and_the_heartbeat_goes_on(
    site: Site, shown_in_s: float, timeout_s: int, apart_s: float
) -> None:
    observe, looks_s = site.slurm.observe, []

    def slow():
        looks_s.append(site.slurm.now())
        return replace(observe(), shown_in_s=shown_in_s)

    site.slurm.observe = slow
    site.scheduler(replace(ENFORCE, heartbeat_timeout_s=timeout_s)).run(1.0, until(4))
    assert [late - early for early, late in pairwise(looks_s[1:4])] == [pytest.approx(apart_s)] * 2


def test_a_long_commit_shows_signs_of_life() -> None:
    site = Site(FakeSlurm({"c1": 300}))
    site.slurm.submit(*[1] * 250, memory_per_cpu_mb=100)
    place = site.slurm.place

    def slowly(*values) -> None:
        site.slurm.sleep(SIGN_OF_LIFE_S / 64)
        place(*values)

    site.slurm.place = slowly
    wire = Wire()
    site.scheduler(ENFORCE, wire).cycle()
    assert (wire.calls.count("place"), site.heartbeat.beats) == (250, 250 // 64 + 1)


def test_a_slow_slurmctld_gets_no_more_placements_in_a_cycle_than_it_makes_in_a_while_and_the_next_one_goes_on() -> (
    None
):
    site = Site(FakeSlurm({"c1": 2 * BATCH}))
    site.slurm.submit(*[1] * (BATCH + 100), memory_per_cpu_mb=10)
    place = site.slurm.place

    def slowly(*values) -> None:
        site.slurm.sleep(1.01 * MOST_SENDING_S / BATCH)
        place(*values)

    site.slurm.place = slowly
    scheduler = site.scheduler(ENFORCE)
    view = scheduler.cycle()
    assert len(view.plan.starts) == BATCH
    assert [job for job, why in view.plan.waiting.items() if why == PUT_OFF] == [*range(513, 613)]
    scheduler.cycle()
    assert kinds(site).count(("place", 612)) == 1
    assert len([each for each in kinds(site) if each[0] == "place"]) == BATCH + 100, "each of them once"


def test_a_slow_slurmctld_gets_no_more_renewals_in_a_cycle_than_it_makes_in_a_while_and_the_next_one_goes_on() -> None:
    site = Site(FakeSlurm({"c1": 1}))
    site.slurm.submit(1, run_s=3600)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(2, 1.0)
    site.slurm.submit(*[1] * (BATCH + 100))
    site.slurm.orders.clear()
    renew = site.slurm.renew

    def slowly(*values) -> None:
        site.slurm.sleep(1.01 * MOST_SENDING_S / BATCH)
        renew(*values)

    site.slurm.renew = slowly
    site.slurm.sleep(MOST_SENDING_S)
    scheduler.cycle()
    assert [each for each in kinds(site) if each[0] == "renew"] == [("renew", 2 + number) for number in range(BATCH)]
    site.slurm.sleep(1.0)
    scheduler.cycle()
    assert {job_id for kind, job_id in kinds(site) if kind == "renew"} == {*range(2, BATCH + 102)}


def test_where_many_gates_are_due_the_next_are_moved_in_the_next_cycle_however_long_that_takes(
    site: Site, monkeypatch
) -> None:
    monkeypatch.setattr(dispatcher, "MANY_GATED", 3)
    scheduler = crowded(site, waiting=0)
    site.slurm.submit(*[4] * (BATCH + 1))
    renew = site.slurm.renew

    def slowly(*values) -> None:
        site.slurm.sleep(0.005)
        renew(*values)

    site.slurm.renew = slowly
    scheduler.cycle()
    site.slurm.submit(4)
    site.slurm.sleep(1.0)
    before = len(kinds(site))
    assert before >= FLOOD
    scheduler.cycle()
    assert len(kinds(site)) > before


def test_as_many_lapsed_gates_are_moved_as_time_has_gone_by_since_that_was_last_done(site: Site, monkeypatch) -> None:
    intervals_s: list[float] = []

    def renewals(*values, **_) -> list[tuple]:
        intervals_s.append(values[3])
        return []

    scheduler = crowded(site)
    monkeypatch.setattr(dispatcher, "renewals", renewals)
    monkeypatch.setattr(CostPace, "is_due", lambda _: False)  # the other gates wait
    monkeypatch.setattr(dispatcher, "MANY_GATED", 3)
    scheduler.repeat(3, 1.0)
    assert intervals_s == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("stands_still", ["before the first order", "during it"])
def test_a_scheduler_that_stood_still_sends_nothing_more_because_the_watchdog_has_freed_jobs(
    site: Site, stands_still: str
) -> None:
    site.slurm.submit(1, 1)
    place = site.slurm.place

    def late(order) -> None:
        place(order)
        site.slurm.time_s += 20

    if stands_still == "during it":
        site.slurm.place = late
    else:
        observe = site.slurm.observe

        def observe_late():
            seen = observe()
            site.slurm.time_s += 20
            return seen

        site.slurm.observe = observe_late
    scheduler = site.scheduler(ENFORCE)
    with pytest.raises(Unreachable, match="this process stood still for 20 s"):
        scheduler.cycle()
    assert kinds(site) == [("place", 1)] * (stands_still == "during it")
    site.slurm.place = place
    if stands_still == "during it":
        scheduler.cycle()
        assert kinds(site) == [("place", 1), ("regate", 1), ("place", 2)]


# --- the store fails


def test_a_store_that_fails_keeps_nothing_from_being_placed_and_is_told_as_trouble(site: Site) -> None:
    """What it would have is needed after a restart only, and costs time, no more, when it is lost."""
    site.history.broken = site.decisions.broken = True
    site.slurm.starts_nothing = True
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(12, 1.0)
    assert kinds(site) == [("place", 1), ("regate", 1)]
    assert scheduler.trouble == (
        "the store's tries cannot be written: database or disk is full; "
        "the decision record cannot be written: disk I/O error"
    )
    assert sum("the store's tries cannot be written" in line for line in site.log) == 1
    assert site.heartbeat.last == site.slurm.now()
    assert "tried again" in scheduler.cycle().situation.blocked[1], "the pause holds"
    site.history.broken = site.decisions.broken = False
    site.slurm.sleep(5.0)
    scheduler.cycle()
    assert (scheduler.trouble, site.history.tries[1].failures) == ("", 1)


def test_a_decision_record_that_cannot_be_written_is_logged_and_stops_nothing(site: Site) -> None:
    site.decisions.broken = True
    site.slurm.submit(1)
    site.scheduler(ENFORCE).repeat(6, 1.0)
    assert site.slurm.ended == [1]
    assert site.log.count("the decision record cannot be written: disk I/O error") == 1
    assert site.heartbeat.last == site.slurm.now()


# --- switches and modes


def test_the_kill_switch_frees_what_is_gated_and_plans_nothing(site: Site) -> None:
    site.slurm.submit(4, 4, 4, 4)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    site.switch.on = True
    view = scheduler.cycle()
    assert (view.disabled, view.plan.starts) == (True, ())
    assert [site.slurm.status(each) for each in (1, 4)] == [((), False, "disabled")] * 2
    assert site.heartbeat.last == site.slurm.now(), "it is alive, and says so"
    site.slurm.sleep(1)
    scheduler.repeat(9, 1.0)
    assert sorted(site.slurm.ended) == [1, 2, 3, 4]


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin"])
def test_a_held_job_stays_held_whatever_frees_it(site: Site, reason: str) -> None:
    site.slurm.submit(4, priority=0, reason=reason)
    site.scheduler(ENFORCE).stop()
    assert (site.slurm.jobs[1].priority, site.slurm.status(1)) == (0, ((), False, "clean-stop"))


def test_a_job_that_is_requeued_under_the_kill_switch_is_not_gated_by_us(site: Site) -> None:
    site.slurm.submit(4, may_restart=True, run_s=50)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(3, 1.0)
    site.switch.on = True
    site.slurm.requeue(1)
    scheduler.cycle()
    assert site.slurm.status(1) == ((), True, "disabled"), "Slurm itself gates it for a while"
    scheduler.repeat(130, 1.0)
    assert len(site.slurm.started) == 2


@pytest.mark.parametrize("settings", [ADVISE, OBSERVE])
@pytest.mark.parametrize("disabled", [False, True])
def test_observe_and_advise_send_no_change(site: Site, settings, disabled: bool) -> None:
    marked = ADVISED if settings is ADVISE else FOREIGN
    site.slurm.jobs = {1: job(1, **marked), 2: job(2, **marked, **HELD), 3: job(3, **marked, pinned_to=("c1",))}
    site.switch.on = disabled
    wire = Wire()
    scheduler = site.scheduler(settings, wire)
    view = scheduler.cycle()
    scheduler.stop()
    assert not ORDERS & set(wire.calls)
    planned = [] if disabled else [1]
    assert [start.job_id for start in view.plan.starts] == planned
    assert len(site.decisions.cycles) == bool(planned)


def test_advise_frees_what_a_killed_enforce_left_gated_and_placed(site: Site) -> None:
    site.slurm.starts_nothing = True
    site.slurm.submit(4, 4, 4)
    site.scheduler(ENFORCE).cycle()
    site.scheduler(ADVISE).cycle()
    assert {site.slurm.status(each) for each in (1, 2, 3)} == {((), False, "mode-not-enforce")}


def test_a_clean_stop_makes_the_heartbeat_stale_before_it_frees(site: Site) -> None:
    site.slurm.submit(4, 4, 4)
    wire = Wire()
    scheduler = site.scheduler(ENFORCE, wire)
    scheduler.run(1.0, until(1))
    assert wire.calls[wire.calls.index("stop") :] == ["stop", "observe", "free", "observe"]
    assert site.heartbeat.last == 0
    assert site.slurm.status(3) == ((), False, "clean-stop")


def test_a_clean_stop_also_frees_what_was_changed_after_it_had_looked(site: Site) -> None:
    site.slurm.submit(4, 4)
    free = site.slurm.free

    def outdated(order) -> None:
        if order.job_id == 1 and site.slurm.jobs[2].record.free_why is None:
            raise Outdated("it has changed since it was looked at")
        free(order)

    site.slurm.free = outdated
    site.scheduler(ENFORCE).stop()
    assert {site.slurm.status(each) for each in (1, 2)} == {((), False, "clean-stop")}


def test_a_scheduler_that_hands_over_leaves_the_gated_jobs_to_the_next_one(site: Site) -> None:
    site.slurm.submit(4, 4, 4)
    site.scheduler(ENFORCE).run(1.0, until(1), hands_over=lambda: True)
    assert site.heartbeat.last == NOW  # not stale: the filter continues to gate submitted jobs
    assert site.slurm.status(3) == ((), True, "")
    site.scheduler(ENFORCE).repeat(6, 1.0)
    assert len(site.slurm.started) == 3


def test_a_clean_stop_leaves_no_job_pinned_to_nodes_that_nobody_looks_after(site: Site) -> None:
    site.slurm.starts_nothing = True
    site.slurm.submit(4)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert site.slurm.jobs[1].pinned_to
    scheduler.stop()
    assert (site.slurm.status(1), site.slurm.jobs[1].priority) == (((), False, "clean-stop"), 1500)


def test_observe_records_a_start_that_nobody_carries_out_once(site: Site) -> None:
    site.slurm.submit(4, **FOREIGN)
    site.slurm.starts_nothing = True
    site.scheduler(OBSERVE).repeat(20, 1.0)
    assert sum(len(plan.starts) for _, plan, *_ in site.decisions.cycles) == 1


def test_a_stop_while_slurmctld_does_not_answer_leaves_the_jobs_to_the_watchdog_and_their_leases(site: Site) -> None:
    site.slurm.submit(1)
    site.scheduler(ENFORCE, Wire(3, Unreachable("slurmctld does not answer: no"))).stop()
    assert site.heartbeat.last == 0
    assert site.log == [
        "slurmctld does not answer: no; the watchdog will free what is gated, or its gate opens by itself"
    ]


def test_a_clean_stop_frees_the_jobs_though_the_heartbeat_cannot_be_written(site: Site) -> None:
    site.slurm.submit(1)
    site.scheduler(ENFORCE, Wire(2, SnsError("the heartbeat cannot be written: No space left on device"))).stop()
    assert site.slurm.status(1) == ((), False, "clean-stop")


# --- the life of a job


def test_a_requeued_job_is_gated_and_placed_again(site: Site) -> None:
    site.slurm.submit(4, run_s=30, may_restart=True)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(3, 1.0)
    site.slurm.requeue(1)
    scheduler.cycle()
    assert (site.slurm.status(1), site.slurm.jobs[1].record.restarts) == (((), True, ""), 1)
    scheduler.repeat(2, 1.0)
    assert [each for each, _ in site.slurm.started] == [1, 1]


def test_a_restart_keeps_the_back_off() -> None:
    site = Site(Refusing({"c1": 4}))
    site.slurm.submit(1)
    site.scheduler(ENFORCE).cycle()
    view = site.scheduler(ENFORCE).cycle()
    assert view.plan.starts == ()
    assert "tried again in 5 s" in view.situation.blocked[1]


def run_to_the_end(site: Site) -> None:
    site.scheduler(ENFORCE).repeat(60, 1.0)


def calls_of_a_whole_run() -> int:
    site, wire = Site(FakeSlurm({"c1": 4, "c2": 4})), Wire()
    site.slurm.submit(4, 3, 1, 6, 2, 4)
    site.scheduler(ENFORCE, wire).repeat(20, 1.0)
    assert len(site.slurm.ended) == 6
    return len(wire.calls)


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
@pytest.mark.parametrize("problem", [Crash, Unreachable, Refused])
def test_wherever_it_fails_every_job_runs_once(problem, after: bool) -> None:
    for at in range(1, calls_of_a_whole_run() + 1):
        site = Site(FakeSlurm({"c1": 4, "c2": 4}))
        site.slurm.submit(4, 3, 1, 6, 2, 4)
        wire = Wire(at, problem("x"), after=after)
        try:
            site.scheduler(ENFORCE, wire).repeat(20, 1.0)
        except (Crash, SnsError):
            site.slurm.sleep(1)
        run_to_the_end(site)
        assert sorted(each for each, _ in site.slurm.started) == [1, 2, 3, 4, 5, 6], (at, wire.calls[at - 1])
        assert site.slurm.jobs == {}


def test_a_run_outlives_every_failure_of_slurm_and_the_store() -> None:
    for at in range(2, calls_of_a_whole_run() + 1):  # the first call loads the tries, before the run
        site = Site(FakeSlurm({"c1": 4, "c2": 4}))
        site.slurm.submit(4, 3, 1, 6, 2, 4)
        site.scheduler(ENFORCE, Wire(at, Unreachable("x"))).run(1.0, until(40))
        assert sorted(each for each, _ in site.slurm.started) == [1, 2, 3, 4, 5, 6], at


def test_a_defect_does_not_end_the_loop_and_shows_no_sign_of_life(site: Site) -> None:
    """The watchdog then frees the gated jobs. The log has the traceback once."""
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    real, looks = site.slurm.observe, []

    def observe():
        looks.append(site.slurm.now())
        if len(looks) <= 6:
            raise ZeroDivisionError("a record of tomorrow")
        return real()

    site.slurm.observe = observe
    scheduler.run(1.0, lambda: len(looks) > 6, lambda: True)
    assert site.slurm.jobs[1].pinned_to == ("c1",), "it goes on when it is over"
    assert site.heartbeat.beats == 1
    assert [b - a for a, b in pairwise(looks)] == [1, 2, 4, 8, 10, 10], "ever more slowly"
    said = [line for line in site.log if "ZeroDivisionError" in line]
    assert [line for line in said if "defect" in line] == said[-2:], "the defect, and that it is over"
    assert sum("Traceback" in line for line in site.log) == 1
    assert scheduler.trouble == ""


def test_one_users_many_follow_ups_do_not_delay_another_users_single_one(site: Site) -> None:
    """All gated jobs of alice become Slurm's at once, more than a cycle changes, and then a single one of bob's."""
    many = MOST_FOLLOW_UPS + 10
    site.slurm.submit(*many * [1], asks_for=("constraint",))
    site.slurm.submit(1, user_id=BOB, user="bob", asks_for=("constraint",))
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert site.slurm.status(many + 1)[2] == "changed-by-its-owner"
    scheduler.cycle()
    assert all(each.record.is_slurms for each in site.slurm.jobs.values())


def test_freeing_everything_begins_with_a_job_of_each_user(site: Site) -> None:
    site.slurm.submit(*[4] * 5)
    site.slurm.submit(4, user="bob", user_id=BOB)
    site.scheduler(ENFORCE).stop()
    assert [line.split(":")[0] for line in site.log[:2]] == ["job 1", "job 6"]
    assert len(site.log) == 6


# --- the other actions of a plan


class Scripted:
    """A policy that returns these plans one after the other, and then the plans of Max-Jobs."""

    def __init__(self, *plans: Plan) -> None:
        self.plans = list(plans)
        self.seen: list[Snapshot] = []
        self.then = max_jobs(MatchingParameters())

    def plan(self, snapshot: Snapshot) -> Plan:
        self.seen.append(snapshot)
        return self.plans.pop(0) if self.plans else self.then.plan(snapshot)


def scripted(site: Site, *plans: Plan, settings=ENFORCE, **named) -> Scheduler:
    return by_policy(site, Scripted(*plans), settings, **named)


def by_policy(site: Site, policy: Scripted, settings=ENFORCE, **named) -> Scheduler:
    return Scheduler(site.ports(), policy, settings, publish=site.views.append, **named)


def running_job(site: Site, **fields) -> None:
    """Submit job 1, a managed job that runs for a minute, and let it start."""
    site.slurm.submit(2, run_s=60, may_restart=True, **fields)
    site.scheduler(ENFORCE).repeat(2, 1.0)
    site.log.clear()


@pytest.mark.parametrize("action", [Suspend(1), Resume(1), Requeue(1), SetShare(1, 0.5)])
def test_an_action_that_only_a_simulation_carries_out_is_said_and_stops_nothing(site: Site, action) -> None:
    running_job(site)
    before = site.slurm.jobs[1]
    site.slurm.submit(1)
    start = Start(2, ("c2",), Alternative(1, Resources(1, 1000), tasks_per_node=1))
    assert scripted(site, Plan((action, start))).cycle().plan.actions == (start,)
    name = type(action).__name__
    assert site.log[0] == f"error: the plan has a {name} of job 1, which is for simulations only; not sent"
    assert site.slurm.jobs[1] == before
    assert site.slurm.jobs[2].pinned_to == ("c2",)


@pytest.mark.parametrize("is_granted", [True, False])
def test_a_job_is_placed_with_less_than_its_cpu_only_if_its_grant_says_so(site: Site, is_granted: bool) -> None:
    site.slurm.submit(1)
    start = Start(1, ("c1",), Alternative(1, Resources(1, 1000), tasks_per_node=1), cpu_share=0.5)
    scripted(site, Plan((start,)), sign=(lambda _: "1:g") if is_granted else None).cycle()
    assert site.slurm.jobs[1].pinned_to == (("c1",) if is_granted else ())
    assert any("shares of CPU need an agent" in line for line in site.log) is not is_granted


@pytest.mark.parametrize("whose", [FOREIGN, {**FOREIGN, "admin_comment": "a site's note"}])
def test_a_job_that_is_not_ours_is_never_touched_whatever_a_policy_says(site: Site, whose) -> None:
    site.slurm.submit(2, run_s=60, may_restart=True, **whose)
    site.slurm.sleep(1.0)
    before = site.slurm.jobs[1]
    scripted(site, Plan((Release(1, "x"),))).cycle()
    assert site.slurm.jobs[1] == before
    assert "not sent" in site.log[-1]


def test_a_plan_gives_a_waiting_job_to_slurm_as_the_state_table_does(site: Site) -> None:
    site.slurm.submit(2)
    scripted(site, Plan((Release(1, "it asks for more than there will ever be"),))).cycle()
    assert site.slurm.status(1) == ((), False, "it-asks-for-more-than-there-will-ever-be")
    assert site.log == ["job 1: left to Slurm: it asks for more than there will ever be"]


@pytest.mark.parametrize("settings", [ADVISE, OBSERVE])
def test_only_enforce_carries_actions_out(site: Site, settings) -> None:
    site.slurm.submit(2)
    scripted(site, Plan((Release(1, "never"),)), settings=settings).cycle()
    assert site.slurm.jobs[1].record.free_why == "mode-not-enforce"


def lose_slurmctld_at_a_release(site: Site, job_id: int) -> None:
    """slurmctld does not answer when this job is to be given to Slurm."""
    free = site.slurm.free

    def lost(order) -> None:
        if order.job_id == job_id:
            raise Unreachable("slurmctld does not answer: no")
        free(order)

    site.slurm.free = lost


def test_what_was_done_before_slurmctld_was_lost_is_in_the_decision_record(site: Site) -> None:
    site.slurm.submit(1, 1)
    lose_slurmctld_at_a_release(site, 2)
    with pytest.raises(Unreachable):
        scripted(site, Plan((Release(1, "first"), Release(2, "second")))).cycle()
    assert site.decisions.cycles[-1][2] == {1: "left to Slurm: first"}


def test_losing_slurmctld_among_the_actions_is_an_outage_and_what_was_placed_stays_recorded(site: Site) -> None:
    site.slurm.submit(1, 1)
    lose_slurmctld_at_a_release(site, 1)
    start = Start(2, ("c2",), Alternative(1, Resources(1, 1000), tasks_per_node=1))
    with pytest.raises(Unreachable):
        scripted(site, Plan((Release(1, "never"), start))).cycle()
    assert site.slurm.jobs[2].pinned_to == ("c2",)
    assert site.slurm.jobs[2].record.nodes == ("c2",)
    assert [each.job_id for each in site.decisions.cycles[-1][1].starts] == [2]


# --- when a policy wants to be asked again, and its history


@pytest.mark.parametrize(
    ("wake_in_s", "pause_s"), [(None, 0.9), (0.5, 0.5), (0.75, 0.75), (60.0, 0.9), (-5.0, 0.1), (0.0, 0.1)]
)
def test_the_next_cycle_begins_when_the_plan_says_within_the_interval(site: Site, wake_in_s, pause_s: float) -> None:
    pauses = []
    site.slurm.sleep = pauses.append
    plan = Plan(wake_s=None if wake_in_s is None else NOW + wake_in_s)
    scripted(site, plan).run(0.9, until(1))
    assert pauses == [pytest.approx(pause_s)]


def test_a_plan_finds_the_history_that_the_last_one_left(site: Site) -> None:
    policy = Scripted(Plan(history=("virtual times", 1)), Plan(history=None))
    by_policy(site, policy).repeat(3, 1.0)
    assert [each.history for each in policy.seen] == [None, ("virtual times", 1), None]


KEPT = Specification("scripted", "Plans as written here.", (), history=HistoryFormat(1, int))


def test_what_a_policy_remembers_is_kept_and_recalled_after_a_restart(site: Site) -> None:
    site.slurm.submit(1)
    start = Start(1, ("c1",), Alternative(1, Resources(1, 1000), tasks_per_node=1))
    scripted(site, Plan((start,), history=7), specification=KEPT).cycle()
    assert site.history.memory == PolicyHistory("scripted", 1, "[7]")
    policy = Scripted()
    later = by_policy(site, policy, specification=KEPT)
    later.cycle()
    assert policy.seen[0].history == 7


def test_what_a_policy_remembers_is_written_when_it_has_changed(site: Site) -> None:
    wire = Wire()
    policy = Scripted(Plan(history=1), Plan(history=1), Plan(history=2))
    Scheduler(site.ports(wire), policy, ADVISE, specification=KEPT).repeat(3, 1.0)
    assert wire.calls.count("save") == 2
    assert site.history.memory == PolicyHistory("scripted", 1, "[2]")


def test_a_start_or_release_of_a_job_that_does_not_wait_is_not_sent_and_said(site: Site) -> None:
    running_job(site)
    before = dict(site.slurm.jobs)
    start = Start(1, ("c2",), Alternative(1, Resources(1, 1000), tasks_per_node=1))
    scripted(site, Plan((start, replace(start, job_id=77), Release(1, "no more")))).cycle()
    assert [line for line in site.log if "not sent" in line] == [
        "error: the plan has a Start of job 1, which does not wait; not sent",
        "error: the plan has a Start of job 77, which does not wait; not sent",
        "error: the plan has a Release of job 1, which does not wait; not sent",
    ]
    assert site.slurm.jobs[1].state is before[1].state


def signing(site: Site, signed: list, **other) -> Scheduler:
    """A scheduler that signs grants: their tokens are `g0`, `g1`, ..., in the order in which they are made."""

    def sign(grant) -> str:
        signed.append(grant)
        return f"g{len(signed) - 1}"

    return Scheduler(site.ports(), max_jobs(MatchingParameters()), ENFORCE, sign=other.get("sign", sign))


@pytest.mark.parametrize(("own", "granted"), [("", "sns:grant=g0"), ("a note", "a note;sns:grant=g0")])
def test_a_placement_carries_the_grant_of_its_run_beside_the_owners_text(site: Site, own: str, granted: str) -> None:
    site.slurm.submit(4, restarts=2, extra=own, admin_comment=comment(restarts=2, gate_s=int(NOW) + FIRST_LEASE_S))
    signed: list = []
    signing(site, signed).cycle()
    assert signed == [Grant(RunId(1, 2), site.slurm.jobs[1].pinned_to)]
    assert site.slurm.jobs[1].extra == granted


def test_the_grant_of_a_task_names_the_task(site: Site) -> None:
    site.slurm.submit_array("7-8")
    signed: list = []
    signing(site, signed).cycle()
    assert [grant.run.job_id for grant in signed] == [task_id(1, 7), task_id(1, 8)]


@pytest.mark.parametrize("has_extra", [True, False])
def test_without_agents_or_where_slurm_reads_extra_no_job_has_a_grant(site: Site, has_extra: bool) -> None:
    site.slurm.submit(4, extra="a note")
    site.slurm.shown = {"has_extra": has_extra}
    (site.scheduler(ENFORCE) if has_extra else signing(site, [])).cycle()
    assert (site.slurm.jobs[1].extra, site.slurm.jobs[1].pinned_to) == ("a note", ("c1",))


def test_a_placement_that_is_taken_back_loses_its_grant_and_the_next_one_has_its_own(site: Site) -> None:
    site.slurm.submit(4)
    site.slurm.starts_nothing = True
    signed: list = []
    scheduler = signing(site, signed)
    scheduler.cycle()
    site.slurm.sleep(ENFORCE.place_timeout_s + 1)
    scheduler.cycle()
    assert (site.slurm.status(1), site.slurm.jobs[1].extra) == (((), True, ""), "")
    site.slurm.starts_nothing = False
    site.slurm.sleep(ENFORCE.backoff_s + 1)
    scheduler.repeat(2, 1.0)
    assert site.slurm.jobs[1].extra == "sns:grant=g1"


def test_a_requeued_job_keeps_its_grant_until_it_is_gated_and_is_granted_anew_for_its_next_run(site: Site) -> None:
    site.slurm.submit(4, run_s=60, may_restart=True)
    signed: list = []
    scheduler = signing(site, signed)
    scheduler.repeat(2, 1.0)
    site.slurm.requeue(1)
    assert site.slurm.jobs[1].extra == "sns:grant=g0"
    scheduler.cycle()
    assert site.slurm.jobs[1].extra == ""
    scheduler.repeat(2, 1.0)
    assert [grant.run for grant in signed] == [RunId(1, 0), RunId(1, 1)]
    assert site.slurm.jobs[1].extra == "sns:grant=g1"


def test_a_job_that_is_given_to_slurm_after_its_placement_has_no_grant(site: Site) -> None:
    site.slurm.submit(4)
    site.slurm.starts_nothing = True
    scheduler = signing(site, [])
    scheduler.cycle()
    site.slurm.change(1, pinned_to=("c2",) if site.slurm.jobs[1].pinned_to == ("c1",) else ("c1",))  # by its owner
    scheduler.cycle()
    assert (site.slurm.jobs[1].extra, site.slurm.status(1)[2]) == ("", "node-list")


def test_jobs_are_placed_without_grants_while_no_key_can_be_read_and_the_log_says_so_once(site: Site) -> None:
    def broken(_grant) -> str:
        raise SnsError("/etc/slurm/sns.key: no such file")

    site.slurm.submit(4, 4)
    signing(site, [], sign=broken).repeat(2, 1.0)
    assert sorted(number for number, _ in site.slurm.started) == [1, 2]
    assert [line for line in site.log if "key" in line] == [
        "placements are sent without grants: /etc/slurm/sns.key: no such file"
    ]


def test_of_many_gates_the_next_are_moved_more_seldom_where_that_takes_slurmctld_long(site: Site, monkeypatch) -> None:
    monkeypatch.setattr(dispatcher, "MANY_GATED", 3)
    scheduler = crowded(site)
    renew, sent_s = site.slurm.renew, [site.slurm.steady()]

    def slowly(*values) -> None:
        site.slurm.sleep(0.5)
        renew(*values)

    site.slurm.renew = slowly
    for _ in range(40):
        site.slurm.submit(1)
        began_s, before = site.slurm.steady(), len(kinds(site))
        scheduler.cycle()
        if len(kinds(site)) > before:
            sent_s.append(began_s)
        site.slurm.sleep(1.0)
    assert len(sent_s) > 4
    assert all(0.5 * APART <= after - before <= 2 * RENEWS_S for before, after in pairwise(sent_s[1:]))
    assert all(each.begin_s > site.slurm.now() for each in site.slurm.jobs.values() if each.state is JobState.PENDING)
