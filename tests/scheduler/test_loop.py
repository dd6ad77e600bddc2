"""The live loop against a small Slurm: its promises when Slurm, the store or the process itself fails."""

from dataclasses import replace
from itertools import pairwise

import pytest
from fake_slurm import Crash, FakeSlurm, Site, Wire
from live import BOB, ENFORCE, NOW, job

from slurm_sns.errors import Refused, SnsError, Unreachable
from slurm_sns.model import Alternative, Plan, Release, Requeue, Resources, Resume, SetShare, Snapshot, Start, Suspend
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.agents.values import Grant, RunId
from slurm_sns.scheduler.loop import LONGEST_RETRY_S, Scheduler
from slurm_sns.scheduler.observe.follow_up import MOST_FAILURES
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import JobState
from slurm_sns.scheduler.observe.records import JobRecord, Memory, Stage
from slurm_sns.scheduler.orders import NotSent
from slurm_sns.scheduler.policy_history import Remembering
from slurm_sns.scheduler.sending import MOST_CORRECTIONS, MOST_RESTORED, SIGN_OF_LIFE_S
from slurm_sns.scheduler.watchdog import is_stale
from slurm_sns.submit import mark

ADVISE, OBSERVE = replace(ENFORCE, mode="advise"), replace(ENFORCE, mode="observe")


@pytest.fixture
def site() -> Site:
    return Site(FakeSlurm({"c1": 4, "c2": 4}))


def until(number: int):
    """A stop condition that becomes true after this number of cycles."""
    left = iter(range(number))
    return lambda: next(left, None) is None


def test_jobs_are_placed_and_run_where_they_were_placed(site: Site) -> None:
    site.slurm.submit(4, 4, 4)
    site.scheduler(ENFORCE).repeat(6, 1.0)
    assert sorted(each for each, _ in site.slurm.started) == [1, 2, 3]
    planned = {start.job_id: start.nodes for _, plan, *_ in site.decisions.cycles for start in plan.starts}
    assert dict(site.slurm.started) == planned


def test_intents_are_recorded_before_they_are_sent(site: Site) -> None:
    site.slurm.submit(2, 2)
    wire = Wire()
    site.scheduler(ENFORCE, wire).cycle()
    first = wire.calls.index("place")
    assert wire.calls[first - 1] == "save"
    assert wire.calls.count("place") == 2
    assert {each.stage for each in site.history.records.values()} == {Stage.PLACED}


def test_a_placed_job_is_put_ahead_of_slurms_own_queue(site: Site) -> None:
    """Whatever the nice value that its owner gave it. That value is noted in the mark."""
    site.slurm.submit(1, 1, nice=30)
    site.slurm.change(2, nice=-30)
    site.scheduler(ENFORCE).cycle()
    assert [site.slurm.jobs[each].nice for each in (1, 2)] == [-2_000_000_000, -2_000_000_030]
    assert [site.slurm.jobs[each].extra for each in (1, 2)] == ["sns:1 nice=30", "sns:1"]


def test_a_job_that_has_started_has_its_own_nice_value_again_and_keeps_it_when_it_is_requeued(site: Site) -> None:
    site.slurm.submit(1, 1, nice=7, run_s=60)
    site.slurm.change(2, nice=-30)
    site.scheduler(ENFORCE).repeat(3, 1.0)
    assert [site.slurm.jobs[each].nice for each in (1, 2)] == [7, -30]
    assert sorted(site.slurm.restored) == [1, 2], "each is one change"
    site.slurm.change(1, state=JobState.PENDING, allocated=(), restarts=1)
    site.scheduler(ENFORCE).cycle()
    assert (site.slurm.jobs[1].nice, site.slurm.jobs[1].pinned_to, site.slurm.jobs[1].priority) == (7, (), 0)


def test_a_job_whose_nice_value_slurm_does_not_change_is_asked_for_twice(site: Site) -> None:
    site.slurm.submit(1, run_s=60)
    site.slurm.ignores_nice = True
    site.scheduler(ENFORCE).repeat(5, 1.0)
    assert site.slurm.restored == [1, 1]


def test_a_nice_value_that_slurmctld_has_lost_before_the_next_cycle_is_restored_in_it(site: Site) -> None:
    """No cycle failed in between, because the scheduler stood still."""
    site.slurm.submit(1, run_s=60)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(2, 1.0)
    site.slurm.change(1, nice=-2_000_000_000)
    scheduler.cycle()
    assert site.slurm.jobs[1].nice == 0


def test_a_cycle_restores_so_many_nice_values_and_the_next_one_goes_on() -> None:
    number = MOST_RESTORED + 1
    site = Site(FakeSlurm({"c1": number}))
    site.slurm.submit(*[1] * number, run_s=60)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(2, 1.0)
    assert len(site.slurm.restored) == MOST_RESTORED
    scheduler.cycle()
    assert {job.nice for job in site.slurm.jobs.values()} == {0}


def test_a_clean_stop_restores_the_nice_value_of_a_job_that_has_just_started(site: Site) -> None:
    site.slurm.submit(1, nice=7, run_s=60)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    site.slurm.sleep(1.0)
    scheduler.stop()
    assert (site.slurm.jobs[1].state, site.slurm.jobs[1].nice) == (JobState.RUNNING, 7)


@pytest.mark.parametrize(
    ("run_s", "lines"), [(60, ["job 1: Slurm refused to restore its nice value: Invalid request"]), (1, [])]
)
def test_a_nice_value_that_is_refused_twice_is_logged_unless_the_job_has_ended(
    site: Site, run_s: int, lines: list[str]
) -> None:
    site.slurm.submit(1, run_s=run_s)
    asked = []

    def refuse(own) -> None:
        asked.append(own)
        raise Refused("Invalid request")

    site.slurm.restore_nice = refuse
    site.scheduler(ENFORCE).repeat(5, 1.0)
    assert asked
    assert site.log[1:] == lines


def test_a_placement_of_a_spread_job_carries_the_number_of_all_its_tasks(site: Site) -> None:
    """Without the number, Slurm before 26.05 computes it as nodes times tasks per node."""
    site.slurm.submit(7)
    sent = []
    site.slurm.place = sent.append
    site.scheduler(ENFORCE).cycle()
    assert [(each.start.alternative.tasks_per_node, each.tasks) for each in sent] == [(4, 7)]
    assert site.history.records[1].tasks == 7


def test_the_same_reason_is_logged_once_a_cycle(site: Site) -> None:
    site.slurm.submit(1, 1)
    site.scheduler(ENFORCE).cycle()
    first, second = site.log
    assert first.startswith("job 1: placed on c1: by ")
    assert second == "job 2: placed on c1"


# --- refusals


class Refusing(FakeSlurm):
    """Refuses to place job 1."""

    def place(self, placement) -> None:
        if placement.start.job_id == 1:
            raise Refused("Requested node configuration is not available")
        super().place(placement)


def test_a_refusal_for_one_job_does_not_stop_the_others_and_it_backs_off() -> None:
    site = Site(Refusing({"c1": 4, "c2": 4}))
    site.slurm.submit(1, 1)
    view = site.scheduler(ENFORCE).cycle()
    why = "Slurm refused the placement on c1: Requested node configuration is not available"
    assert [start.job_id for start in view.plan.starts] == [2], "what Slurm refused is not shown as placed"
    assert view.plan.waiting[1] == why
    assert (site.history.records[1].stage, site.history.records[1].failures) == (Stage.HELD, 1)
    assert site.history.records[1].retry_s == NOW + 5
    assert site.decisions.cycles[0][2] == {1: why}


class Editing(FakeSlurm):
    """The owner of job 1 gives it a node list just before its first placement is sent."""

    def place(self, placement) -> None:
        if not self.jobs[1].pinned_to:
            self.jobs[1] = replace(self.jobs[1], pinned_to=("c1",))
            raise NotSent("its node list changed since it was planned")
        super().place(placement)


def test_a_node_list_that_came_before_the_placement_was_sent_is_its_owners_though_it_equals_ours() -> None:
    site = Site(Editing({"c1": 4}))
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert site.history.records[1].nodes == ()
    site.slurm.sleep(1.0)
    scheduler.cycle()
    assert site.slurm.jobs[1].pinned_to == ("c1",)
    assert any("its owner asks for a node list" in line for line in site.log)


class Holding(FakeSlurm):
    """A held job stays held while its placement is taken back; the first release is refused."""

    is_refused = True

    def unpin(self, change) -> None:
        super().unpin(change)
        self.change(change.job_id, priority=0, reason="JobHeldUser")

    def release(self, order) -> None:
        if self.is_refused:
            self.is_refused = False
            raise Refused("it has been placed meanwhile, or its owner has changed its node list")
        super().release(order)


def test_a_job_whose_release_is_refused_is_released_later_though_its_placement_is_taken_back() -> None:
    site = Site(Holding({"c1": 4}))
    site.slurm.submit(1)
    site.slurm.change(1, pinned_to=("c1",), extra="mine")
    site.history.records = {1: JobRecord(1, site.slurm.jobs[1].submit_s, Stage.HELD, nodes=("c1",))}
    site.scheduler(ENFORCE).repeat(3, 1.0)
    assert (site.slurm.jobs[1].priority, site.slurm.jobs[1].pinned_to) == (1000, ())


def test_a_job_that_slurm_refuses_time_after_time_is_left_to_slurm() -> None:
    site = Site(Refusing({"c1": 4, "c2": 4}))
    site.slurm.submit(1)
    site.scheduler(ENFORCE).repeat(200, 10.0)
    assert sum(line.startswith("job 1: Slurm refused the placement") for line in site.log) == MOST_FAILURES
    assert site.slurm.ended == [1]
    assert site.history.records == {}


def test_a_job_that_slurm_never_starts_is_left_to_slurm_after_as_many_placements(site: Site) -> None:
    site.slurm.submit(1)
    site.slurm.starts_nothing = True
    site.scheduler(ENFORCE).repeat(400, 4.0)
    assert sum("placed on" in line and "did not start" not in line for line in site.log) == MOST_FAILURES
    assert (site.slurm.jobs[1].priority, site.slurm.jobs[1].pinned_to, site.slurm.jobs[1].nice) == (1000, (), 0)


def test_a_job_that_is_gone_at_its_turn_is_a_refusal_like_any_other(site: Site) -> None:
    site.slurm.submit(1, 1)
    scheduler = site.scheduler(ENFORCE)
    look = site.slurm.observe()
    site.slurm.observe = lambda: look
    del site.slurm.jobs[1]
    scheduler.cycle()
    assert site.slurm.jobs[2].pinned_to == ("c1",)
    assert any("Invalid job id" in line for line in site.log)


# --- slurmctld does not answer


def test_losing_slurmctld_in_the_middle_of_a_commit_loses_no_job(site: Site) -> None:
    site.slurm.submit(1, 1, 1)
    wire = Wire(problem=Unreachable("slurmctld does not answer: timed out"))
    scheduler = site.scheduler(ENFORCE, wire)
    wire.at = 7  # load, is_on, observe, save, save, place, then this place
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
    assert stopped.endswith("the watchdog will release what is held")


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
    assert site.slurm.jobs[1].priority == 0, "taken back"
    site.slurm.step(step_s)  # the same for the pause until it is tried again
    site.slurm.starts_nothing = False
    scheduler.repeat(12, 1.0)
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
    site.scheduler(ENFORCE).run(1.0, until(5))
    assert pauses == [1, 2, 1, 1, 1]


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


# --- the store fails


@pytest.mark.parametrize("known_before", [True, False])
def test_what_cannot_be_recorded_is_not_placed_and_the_heartbeat_goes_stale(site: Site, known_before: bool) -> None:
    scheduler = site.scheduler(ENFORCE)
    if known_before:
        site.slurm.submit(1, begin_s=int(NOW) + 2)
        scheduler.cycle()
    site.history.broken = True
    if not known_before:
        site.slurm.submit(1)
    scheduler.run(1.0, until(12))
    assert site.slurm.started == [] or "clean stop" in site.log[-1]
    assert not any("placed" in line for line in site.log)
    assert "the store's job records cannot be written" in site.log[-2]


def test_a_store_that_stays_broken_lets_the_watchdog_take_over(site: Site) -> None:
    site.history.broken = True
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    for _ in range(40):
        with pytest.raises(SnsError):
            scheduler.cycle()
        site.slurm.sleep(1)
    assert is_stale(site.heartbeat.last, site.slurm.now(), 30)


def test_what_could_not_be_stored_is_stored_when_the_store_is_back(site: Site) -> None:
    scheduler = site.scheduler(ENFORCE)
    site.history.broken = True
    site.slurm.submit(1)
    with pytest.raises(Unreachable):
        scheduler.cycle()
    site.history.broken = False
    scheduler.cycle()
    assert site.history.records[1].stage is Stage.PLACED


def test_the_nodes_of_a_placement_that_could_not_be_recorded_are_its_owners_if_they_write_them(site: Site) -> None:
    scheduler = site.scheduler(ENFORCE)
    site.slurm.submit(1, begin_s=int(NOW) + 2)
    scheduler.cycle()
    site.slurm.sleep(2)
    site.history.broken = True
    with pytest.raises(Unreachable):
        scheduler.cycle()
    assert (site.slurm.jobs[1].priority, site.slurm.jobs[1].pinned_to) == (0, ()), "nothing was sent"
    site.slurm.starts_nothing = True
    site.slurm.change(1, pinned_to=("c1",))
    site.history.broken = False
    scheduler.cycle()
    assert site.slurm.jobs[1].priority > 0, "it is given to Slurm"
    assert site.slurm.jobs[1].pinned_to == ("c1",)


def test_a_decision_record_that_cannot_be_written_is_logged_and_stops_nothing(site: Site) -> None:
    site.decisions.broken = True
    site.slurm.submit(1)
    site.scheduler(ENFORCE).repeat(6, 1.0)
    assert site.slurm.ended == [1]
    assert site.log.count("the decision record cannot be written: disk I/O error") == 1
    assert site.heartbeat.last == site.slurm.now()


# --- switches and modes


def test_the_kill_switch_releases_what_is_held_and_plans_nothing(site: Site) -> None:
    site.slurm.submit(4, 4, 4, 4)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    site.switch.on = True
    view = scheduler.cycle()
    assert (view.disabled, view.plan.starts) == (True, ())
    assert all(each.priority > 0 for each in site.slurm.jobs.values())
    assert site.heartbeat.last == site.slurm.now(), "it is alive, and says so"
    site.slurm.sleep(1)
    scheduler.repeat(9, 1.0)
    assert sorted(site.slurm.ended) == [1, 2, 3, 4]


def test_a_job_that_its_owner_holds_right_after_it_was_given_to_slurm_stays_held(site: Site) -> None:
    site.slurm.starts_nothing = True
    site.slurm.submit(4)
    scheduler = site.scheduler(replace(ENFORCE, partitions=frozenset({"main"})))
    site.slurm.submit(1, partitions=("other",))
    scheduler.cycle()
    assert site.slurm.jobs[2].priority > 0, "it is given to Slurm: its partition is not managed"
    site.slurm.change(2, priority=0, reason="JobHeldUser", extra="")
    scheduler.repeat(3, 1.0)
    assert site.slurm.jobs[2].priority == 0
    assert site.history.records[2].stage is Stage.RELEASED


def test_what_the_kill_switch_gives_to_slurm_is_noted_so_that_a_killed_slurmctld_strands_nothing(site: Site) -> None:
    site.slurm.submit(1)
    site.switch.on = True
    scheduler = site.scheduler(ENFORCE)
    held = site.slurm.jobs[1]
    scheduler.cycle()
    site.slurm.jobs[1] = held
    scheduler.cycle()
    assert site.slurm.jobs[1].priority > 0, "released once more"


@pytest.mark.parametrize("disabled", [False, True])
def test_a_job_that_was_given_to_slurm_without_a_mark_stays_held_by_its_owner_who_writes_a_mark(
    site: Site, disabled: bool
) -> None:
    """Its mark cannot have lost the word that says that it is Slurm's."""
    site.slurm.starts_nothing = True
    site.slurm.submit(1, extra="mine", hints=None)
    site.history.records = {1: JobRecord(1, site.slurm.jobs[1].submit_s, Stage.HELD)}
    scheduler = site.scheduler(ENFORCE)
    site.switch.on = disabled
    scheduler.cycle()
    assert site.slurm.jobs[1].priority > 0, "released: its owner overwrote the mark"
    site.slurm.change(1, priority=0, reason="JobHeldUser", extra="sns:1", hints=mark.read("sns:1"))
    site.switch.on = False
    scheduler.cycle()
    assert site.slurm.jobs[1].priority == 0


class Unadvised(FakeSlurm):
    """Refuses every change of a mark alone."""

    asked = 0

    def advise(self, _order) -> None:
        self.asked += 1
        raise Refused("it is held again, or has ended")


def test_a_mark_that_slurm_does_not_let_us_change_is_not_tried_in_every_cycle() -> None:
    slurm = Unadvised({"c1": 4})
    site = Site(slurm)
    slurm.submit(1, run_s=1000)
    slurm.starts_nothing = True
    slurm.change(1, priority=1000)
    site.history.records = {1: JobRecord(1, slurm.jobs[1].submit_s, Stage.HELD)}
    site.scheduler(ENFORCE).repeat(5, 1.0)
    assert slurm.asked == 1


def test_a_placed_job_that_its_owner_held_without_its_mark_stays_held_though_they_write_a_mark_again(
    site: Site,
) -> None:
    """No mark says that its placement was taken back, so that it looks as if slurmctld had lost the placement."""
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    held = {"priority": 0, "reason": "JobHeldUser"}
    site.slurm.change(1, extra="mine", **held)
    scheduler.cycle()
    assert site.slurm.jobs[1].pinned_to == ()
    site.slurm.change(1, extra="sns:1", **held)
    scheduler.cycle()
    assert site.slurm.jobs[1].priority == 0


def test_a_job_that_the_kill_switch_has_given_to_slurm_is_not_held_again_without_its_mark(site: Site) -> None:
    site.slurm.submit(4, may_restart=True, run_s=50)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(3, 1.0)
    site.slurm.starts_nothing = True
    site.switch.on = True
    site.slurm.requeue(Requeue(1))
    scheduler.cycle()
    assert site.slurm.jobs[1].is_slurms
    assert site.history.records[1].stage is Stage.RELEASED
    site.slurm.change(1, extra="sns:1", hints=mark.read("sns:1"))
    site.switch.on = False
    scheduler.cycle()
    assert site.slurm.jobs[1].priority > 0


def test_a_job_that_is_requeued_under_the_kill_switch_is_not_held(site: Site) -> None:
    site.slurm.submit(4, may_restart=True, run_s=50)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(3, 1.0)
    site.switch.on = True
    site.slurm.requeue(Requeue(1))
    scheduler.repeat(3, 1.0)
    assert site.slurm.jobs[1].state is JobState.RUNNING
    assert len(site.slurm.started) == 2


@pytest.mark.parametrize("settings", [ADVISE, OBSERVE])
@pytest.mark.parametrize("disabled", [False, True])
def test_observe_and_advise_send_no_change(site: Site, settings, disabled: bool) -> None:
    marked = {"extra": "sns:1 advised" if settings is ADVISE else ""}
    site.slurm.jobs = {1: job(1, priority=1000, **marked), 2: job(2, **marked)}
    site.slurm.jobs[3] = job(3, priority=1000, pinned_to=("c1",), **marked)
    site.switch.on = disabled
    wire = Wire()
    scheduler = site.scheduler(settings, wire)
    view = scheduler.cycle()
    scheduler.stop()
    assert not {"place", "unpin", "release"} & set(wire.calls)
    planned = [] if disabled else [1]
    assert [start.job_id for start in view.plan.starts] == planned
    assert len(site.decisions.cycles) == bool(planned)


def test_advise_frees_what_a_killed_enforce_left_held(site: Site) -> None:
    site.slurm.submit(1, begin_s=int(NOW) + 99)
    site.scheduler(ENFORCE).cycle()
    site.scheduler(ADVISE).repeat(2, 1.0)
    assert (site.slurm.jobs[1].priority, site.history.records) == (1000, {}) or site.slurm.started


def test_a_clean_stop_makes_the_heartbeat_stale_before_it_releases(site: Site) -> None:
    site.slurm.submit(4, 4, 4)
    wire = Wire()
    scheduler = site.scheduler(ENFORCE, wire)
    scheduler.run(1.0, until(1))
    after = wire.calls[wire.calls.index("stop") :]
    assert after == ["stop", "observe", "release", "restore_nice", "restore_nice"]
    assert site.heartbeat.last == 0
    assert all(each.priority > 0 for each in site.slurm.jobs.values())


def test_a_scheduler_that_hands_over_leaves_the_held_jobs_to_the_next_one(site: Site) -> None:
    site.slurm.submit(4, 4, 4)
    site.scheduler(ENFORCE).run(1.0, until(1), hands_over=lambda: True)
    assert site.heartbeat.last == NOW  # not stale: the filter continues to hold submitted jobs
    assert [each.priority for each in site.slurm.jobs.values() if each.state is JobState.PENDING] == [0]
    site.scheduler(ENFORCE).repeat(6, 1.0)
    assert len(site.slurm.started) == 3


def test_a_clean_stop_leaves_no_job_pinned_to_nodes_that_nobody_looks_after(site: Site) -> None:
    site.slurm.starts_nothing = True
    site.slurm.submit(4)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert site.slurm.jobs[1].pinned_to
    scheduler.stop()
    assert (site.slurm.jobs[1].pinned_to, site.slurm.jobs[1].priority > 0) == ((), True)


def test_observe_records_a_start_that_nobody_carries_out_once(site: Site) -> None:
    site.slurm.submit(4)
    site.slurm.change(1, priority=1000, extra="")
    site.slurm.starts_nothing = True
    site.scheduler(OBSERVE).repeat(20, 1.0)
    assert sum(len(plan.starts) for _, plan, *_ in site.decisions.cycles) == 1


def test_a_clean_stop_releases_a_job_that_lost_its_mark_too(site: Site) -> None:
    site.slurm.submit(1, begin_s=int(NOW) + 99)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    site.slurm.change(1, extra="mine")
    scheduler.stop()
    assert site.slurm.jobs[1].priority > 0


def test_a_stop_while_slurmctld_does_not_answer_leaves_the_release_to_the_watchdog(site: Site) -> None:
    site.slurm.submit(1)
    scheduler = site.scheduler(ENFORCE, Wire(3, Unreachable("slurmctld does not answer: no")))
    scheduler.stop()
    assert site.heartbeat.last == 0
    assert site.log == ["slurmctld does not answer: no; the watchdog will release what is held"]


# --- the life of a job


def test_a_requeued_job_is_held_and_placed_again(site: Site) -> None:
    site.slurm.submit(4, run_s=30)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(3, 1.0)
    later = int(site.slurm.now())
    site.slurm.change(1, state=JobState.PENDING, allocated=(), restarts=1, submit_s=later, priority=1)
    scheduler.cycle()
    assert (site.slurm.jobs[1].priority, site.slurm.jobs[1].pinned_to) == (0, ())
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
    for at in range(2, calls_of_a_whole_run() + 1):  # the first call loads the records, before the run
        site = Site(FakeSlurm({"c1": 4, "c2": 4}))
        site.slurm.submit(4, 3, 1, 6, 2, 4)
        site.scheduler(ENFORCE, Wire(at, Unreachable("x"))).run(1.0, until(40))
        assert sorted(each for each, _ in site.slurm.started) == [1, 2, 3, 4, 5, 6], at


def test_a_defect_does_not_end_the_loop_and_shows_no_sign_of_life(site: Site) -> None:
    """The watchdog then releases the held jobs to Slurm. The log has the traceback once."""
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


def test_one_users_many_corrections_do_not_delay_another_users_single_one(site: Site) -> None:
    """All held jobs of alice become Slurm's at once, more than a cycle corrects, and then a single one of bob's."""
    many = MOST_CORRECTIONS + 10
    site.slurm.submit(*many * [1], asks_for=("constraint",))
    site.slurm.submit(1, user_id=BOB, user="bob", asks_for=("constraint",))
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert site.slurm.jobs[many + 1].priority > 0
    scheduler.cycle()
    assert all(job.priority > 0 for job in site.slurm.jobs.values())


def test_a_release_of_everything_begins_with_a_job_of_each_user(site: Site) -> None:
    site.slurm.submit(*[4] * 5)
    site.slurm.submit(4, user="bob", user_id=BOB)
    site.scheduler(ENFORCE).stop()
    released = [line for line in site.log if "released to Slurm" in line]
    assert [line.split(":")[0] for line in released[:2]] == ["job 1", "job 6"]
    assert len(released) == 6


class Undoing(FakeSlurm):
    """Undoes the first hold after a placement, as Slurm's backfill did; `is_away`: it takes no correction."""

    is_away = False

    def unpin(self, change) -> None:
        if self.is_away:
            raise Unreachable("slurmctld does not answer")
        undoes = bool(self.jobs[change.job_id].pinned_to)
        super().unpin(change)
        if undoes:
            self.change(change.job_id, priority=1500, reason="Priority")


def undone(site: Site) -> Scheduler:
    """A scheduler that has just taken the placement of job 1 back; Slurm has undone its hold."""
    site.slurm.submit(4)
    site.slurm.starts_nothing = True
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(12, 1.0)
    assert (site.slurm.jobs[1].priority, site.history.records[1].stage) == (1500, Stage.HOLDING)
    return scheduler


def test_a_hold_that_slurm_undid_is_set_once_more_and_a_job_that_is_free_after_that_is_its_owners() -> None:
    site = Site(Undoing({"c1": 4}))
    scheduler = undone(site)
    scheduler.cycle()
    assert (site.slurm.jobs[1].priority, site.history.records[1].stage) == (0, Stage.HELD)
    site.slurm.release(Release(1, "by its owner"))
    scheduler.cycle()
    assert (site.slurm.jobs[1].priority > 0, site.history.records[1].stage) == (True, Stage.RELEASED)


def test_a_hold_that_a_failed_cycle_did_not_send_is_sent_by_the_next_one() -> None:
    site = Site(Undoing({"c1": 4}))
    scheduler = undone(site)
    site.slurm.is_away = True
    with pytest.raises(Unreachable):
        scheduler.cycle()
    site.slurm.is_away = False
    scheduler.cycle()
    assert (site.slurm.jobs[1].priority, site.history.records[1].stage) == (0, Stage.HELD)


def test_a_job_that_was_released_between_two_runs_is_not_held_again(site: Site) -> None:
    site.slurm.submit(4)
    job_id = next(iter(site.slurm.jobs))
    site.slurm.starts_nothing = True
    site.scheduler(ENFORCE).repeat(12, 1.0)
    assert site.history.records[job_id].stage is Stage.HOLDING
    site.slurm.release(Release(job_id, "by its owner"))
    site.scheduler(ENFORCE).cycle()
    assert site.slurm.jobs[job_id].priority > 0


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


def test_a_policy_suspends_and_resumes_a_job_of_ours(site: Site) -> None:
    running_job(site)
    loop = scripted(site, Plan((Suspend(1, "for job 2"),)), Plan(), Plan((Resume(1, reason="its turn"),)))
    view = loop.cycle()
    assert (site.slurm.jobs[1].state, site.slurm.used("c1")) == (JobState.SUSPENDED, 0)
    assert site.slurm.memory_used_mb("c1") == 2000, "it keeps its memory"
    assert view.plan.actions == (Suspend(1, "for job 2"),)
    assert site.decisions.cycles[-1][2] == {1: "suspended: for job 2"}
    site.slurm.sleep(1.0)
    loop.cycle()
    assert site.views[-1].situation.statuses[1] is JobStatus.SUSPENDED
    loop.cycle()
    assert (site.slurm.jobs[1].state, site.slurm.used("c1")) == (JobState.RUNNING, 2)
    assert site.log[1:] == ["job 1: suspended: for job 2", "job 1: resumed: its turn"]


def test_a_requeued_job_is_planned_again_in_the_pool_that_was_named() -> None:
    site = Site(FakeSlurm({"c1": 4, "s1": 4}))
    running_job(site)
    loop = scripted(site, Plan((Requeue(1, "small", "it ends sooner there"),)))
    loop.cycle()
    assert site.log[-1] == "job 1: requeued in small: it ends sooner there"
    loop.repeat(3, 1.0)
    assert site.slurm.started == [(1, ("c1",)), (1, ("s1",))]


def test_a_requeued_job_is_planned_again_in_its_own_pool(site: Site) -> None:
    running_job(site)
    scripted(site, Plan((Requeue(1),))).repeat(5, 1.0)
    assert [each for each, _ in site.slurm.started] == [1, 1]
    assert "job 1: requeued" in site.log


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (SetShare(1, 0.5), "job 1: given 0.5 of its CPU; Slurm refused the change: shares of CPU need an agent"),
        (Resume(1), "job 1: resumed; Slurm refused the change: Requested operation is not possible"),
        (Requeue(1, "plain"), "job 1: requeued in plain; not sent: partition plain is not managed"),
    ],
)
def test_an_action_that_cannot_be_done_is_a_line_of_the_log_and_stops_nothing(site: Site, action, why: str) -> None:
    running_job(site)
    site.slurm.submit(1)
    loop = scripted(site, Plan((action, Suspend(1, "all the same"))))
    assert loop.cycle().plan.actions == (Suspend(1, "all the same"),)
    assert [line.startswith(why) for line in site.log[1:]] == [True, False]
    assert site.slurm.jobs[1].state is JobState.SUSPENDED


def test_a_job_with_whole_nodes_is_not_moved_to_another_pool_for_its_own_memory_would_be_lost(site: Site) -> None:
    running_job(site, extra="sns:1 exclusive")
    assert site.history.records[1].own_memory != (None, None)
    scripted(site, Plan((Requeue(1, "small"),))).cycle()
    assert site.log[-1] == "job 1: requeued in small; not sent: it was given whole nodes of its own partition"
    assert site.slurm.jobs[1].state is JobState.RUNNING


@pytest.mark.parametrize("extra", ["", "mine", "sns:1 advised"])
@pytest.mark.parametrize("action", [Suspend(1, "x"), Resume(1, reason="x"), Requeue(1, reason="x"), Release(1, "x")])
def test_a_job_that_is_not_ours_is_never_touched_whatever_a_policy_says(site: Site, action, extra: str) -> None:
    site.slurm.submit(2, run_s=60, may_restart=True, priority=900, extra=extra)
    site.slurm.sleep(1.0)
    before = site.slurm.jobs[1]
    scripted(site, Plan((action,))).cycle()
    assert site.slurm.jobs[1] == before
    assert "not sent" in site.log[-1]


def test_a_plan_gives_a_waiting_job_to_slurm_as_a_correction_does(site: Site) -> None:
    site.slurm.submit(2)
    scripted(site, Plan((Release(1, "left to Slurm: it asks for more than there will ever be"),))).cycle()
    assert site.slurm.jobs[1].priority > 0
    assert site.log == ["job 1: left to Slurm: it asks for more than there will ever be"]


@pytest.mark.parametrize("settings", [ADVISE, OBSERVE])
def test_only_enforce_carries_actions_out(site: Site, settings) -> None:
    running_job(site)
    scripted(site, Plan((Suspend(1), Requeue(1))), settings=settings).cycle()
    assert site.slurm.jobs[1].state is JobState.RUNNING


def test_what_was_done_before_slurmctld_was_lost_is_in_the_decision_record(site: Site) -> None:
    running_job(site)
    site.slurm.resume = lambda _order: (_ for _ in ()).throw(Unreachable("no"))
    with pytest.raises(Unreachable):
        scripted(site, Plan((Suspend(1, "first"), Resume(1)))).cycle()
    assert site.decisions.cycles[-1][2] == {1: "suspended: first"}


def test_losing_slurmctld_among_the_actions_is_an_outage_and_what_was_placed_stays_recorded(site: Site) -> None:
    running_job(site)
    site.slurm.submit(1)

    def lost(_order) -> None:
        raise Unreachable("slurmctld does not answer: no")

    site.slurm.suspend = lost
    start = Start(2, ("c2",), Alternative(1, Resources(1, 1000), tasks_per_node=1))
    with pytest.raises(Unreachable):
        scripted(site, Plan((start, Suspend(1), Resume(1)))).cycle()
    assert site.slurm.jobs[2].pinned_to == ("c2",)
    assert site.history.records[2].stage is Stage.PLACED
    assert [each.job_id for each in site.decisions.cycles[-1][1].starts] == [2]


# --- when a policy wants to be asked again, and its history


@pytest.mark.parametrize(
    ("wake_in_s", "pause_s"), [(None, 2.0), (0.5, 0.5), (1.25, 1.25), (60.0, 2.0), (-5.0, 0.1), (0.0, 0.1)]
)
def test_the_next_cycle_begins_when_the_plan_says_within_the_interval(site: Site, wake_in_s, pause_s: float) -> None:
    pauses = []
    site.slurm.sleep = pauses.append
    plan = Plan(wake_s=None if wake_in_s is None else NOW + wake_in_s)
    scripted(site, plan).run(2.0, until(1))
    assert pauses == [pytest.approx(pause_s)]


def test_a_plan_finds_the_history_that_the_last_one_left(site: Site) -> None:
    policy = Scripted(Plan(history=("virtual times", 1)), Plan(history=None))
    by_policy(site, policy).repeat(3, 1.0)
    assert [each.history for each in policy.seen] == [None, ("virtual times", 1), None]


def kept(memory: object) -> Memory:
    return Memory("scripted", 1, str(memory))


def test_what_a_policy_remembers_is_kept_with_the_records_and_recalled_after_a_restart(site: Site) -> None:
    site.slurm.submit(1)
    keeping = Remembering(kept, lambda: site.history.memory and int(site.history.memory.text))
    start = Start(1, ("c1",), Alternative(1, Resources(1, 1000), tasks_per_node=1))
    scripted(site, Plan((start,), history=7), remembering=keeping).cycle()
    assert (site.history.memory, site.history.records[1].stage) == (Memory("scripted", 1, "7"), Stage.PLACED)
    assert site.history.together, "in one call, before the job is placed"
    policy = Scripted()
    later = by_policy(site, policy, remembering=keeping)
    later.cycle()
    assert policy.seen[0].history == 7


def test_what_a_policy_remembers_is_written_when_it_has_changed(site: Site) -> None:
    wire = Wire()
    policy = Scripted(Plan(history=1), Plan(history=1), Plan(history=2))
    Scheduler(site.ports(wire), policy, ADVISE, remembering=Remembering(kept)).repeat(3, 1.0)
    assert wire.calls.count("save") == 2
    assert site.history.memory == Memory("scripted", 1, "2")


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


def test_a_placement_carries_the_grant_of_its_run_in_the_mark(site: Site) -> None:
    site.slurm.submit(4, nice=7, restarts=2)
    signed: list = []
    signing(site, signed).cycle()
    assert signed == [Grant(RunId(1, 2), site.slurm.jobs[1].pinned_to)]
    assert site.slurm.jobs[1].extra == "sns:1 nice=7 grant=g0"


def test_without_agents_no_mark_has_a_grant_and_an_old_one_goes(site: Site) -> None:
    site.slurm.submit(4, 4, extra="sns:1")
    site.slurm.change(2, extra="sns:1 grant=old")
    site.scheduler(ENFORCE).cycle()
    assert [site.slurm.jobs[each].extra for each in (1, 2)] == ["sns:1", "sns:1"]


def test_a_placement_that_is_taken_back_loses_its_grant_and_the_next_one_has_its_own(site: Site) -> None:
    site.slurm.submit(4)
    site.slurm.starts_nothing = True
    signed: list = []
    scheduler = signing(site, signed)
    scheduler.cycle()
    site.slurm.sleep(ENFORCE.place_timeout_s + 1)
    scheduler.cycle()
    assert (site.slurm.jobs[1].priority, site.slurm.jobs[1].extra) == (0, "sns:1")
    site.slurm.starts_nothing = False
    site.slurm.sleep(ENFORCE.backoff_s + 1)
    scheduler.repeat(2, 1.0)
    assert site.slurm.jobs[1].extra == "sns:1 grant=g1"


def test_a_requeued_job_keeps_its_mark_until_it_is_taken_back_and_is_granted_anew_for_its_next_run(site: Site) -> None:
    site.slurm.submit(4, run_s=60, may_restart=True)
    signed: list = []
    scheduler = signing(site, signed)
    scheduler.repeat(2, 1.0)
    site.slurm.requeue(Requeue(1))
    assert site.slurm.jobs[1].extra == "sns:1 grant=g0"
    scheduler.cycle()
    assert site.slurm.jobs[1].extra == "sns:1"
    scheduler.repeat(2, 1.0)
    assert [grant.run for grant in signed] == [RunId(1, 0), RunId(1, 1)]
    assert site.slurm.jobs[1].extra == "sns:1 grant=g1"


def test_a_job_that_is_given_to_slurm_after_its_placement_has_no_grant(site: Site) -> None:
    site.slurm.submit(4)
    site.slurm.starts_nothing = True
    scheduler = signing(site, [])
    scheduler.cycle()
    site.slurm.change(1, pinned_to=("c2",) if site.slurm.jobs[1].pinned_to == ("c1",) else ("c1",))  # by its owner
    scheduler.cycle()
    assert site.slurm.jobs[1].extra == "sns:1 advised"


def test_jobs_are_placed_without_grants_while_no_key_can_be_read_and_the_log_says_so_once(site: Site) -> None:
    def broken(_grant) -> str:
        raise SnsError("/etc/slurm/sns.key: no such file")

    site.slurm.submit(4, 4)
    signing(site, [], sign=broken).repeat(2, 1.0)
    assert sorted(number for number, _ in site.slurm.started) == [1, 2]
    assert [line for line in site.log if "key" in line] == [
        "placements are sent without grants: /etc/slurm/sns.key: no such file"
    ]
