"""Jobs that share cores, in the loop: how many start, what agents are told, whose limit moves, who is paused."""

from dataclasses import replace

import pytest
from fake_slurm import REQUEUE_DELAY_S, Crash, FakeSlurm, Site, Wire
from live import ENFORCE, FOREIGN, SHARING, job

from slurm_sns.errors import Refused
from slurm_sns.model import Resources
from slurm_sns.scheduler.gate.orders import OrderKind
from slurm_sns.scheduler.history import recall
from slurm_sns.scheduler.observation import JobState, ObservedPartition, ObservedReservation
from slurm_sns.scheduler.sharing.book import FORM
from slurm_sns.scheduler.watchdog import Watchdog
from slurm_sns.sharing.rules import SharingRules

GB = 1000
RULES = replace(SHARING, protect_s=60, grace_s=30)
PAUSES = replace(RULES, pauses=True)


class FakeAgents:
    def __init__(self) -> None:
        self.changes: list = []
        self.acknowledged: list = []

    def states(self):
        return {}

    def reports(self):
        return ()

    def acknowledge(self, keys) -> None:
        self.acknowledged += keys

    def show_active(self, runs_by_node) -> None:
        self.active = runs_by_node

    def change(self, changes) -> None:
        self.changes += [(node, each) for node, of_node in changes.items() for each in of_node]

    def told(self) -> dict[tuple[str, int], tuple[int, float]]:
        """What was told last of each job on each node: its CPUs and its cap."""
        return {(node, each.run.job_id): (each.cpus, each.cpu_share) for node, each in self.changes}


class Shared:
    """Two nodes of four cores and 128 GB whose jobs share cores."""

    def __init__(self, rules: SharingRules = RULES, wire: Wire | None = None) -> None:
        self.site = Site(FakeSlurm({"s1": 4, "s2": 4}), agents=FakeAgents())
        self.slurm = self.site.slurm
        self.slurm.jobs_to_a_core = rules.most_to_a_core
        self.slurm.shown = {"partitions": (ObservedPartition("small"),)}
        self.settings = replace(ENFORCE, sharing=rules)
        self.scheduler = self.site.scheduler(self.settings, wire)

    def submit(self, *cores: int, memory_gb: int = 10, words: str = "", run_s: float = 10_000, **fields) -> None:
        asked = {"partitions": ("small",), "memory_per_node_mb": memory_gb * GB, "memory_per_cpu_mb": None}
        for number in cores:
            shape = {"cpus": number, "nodes_max": 1, "may_restart": True}
            self.slurm.submit(number, words=words, run_s=run_s, **{**asked, **shape, **fields})

    def cycles(self, number: int = 3) -> None:
        self.scheduler.repeat(number, 1.0)

    def after(self, seconds: float, number: int = 1) -> None:
        self.slurm.sleep(seconds)
        self.cycles(number)

    def job(self, number: int):
        return self.slurm.jobs[number]

    def states(self) -> dict[int, JobState]:
        return {number: each.state for number, each in self.slurm.jobs.items()}

    def told(self, number: int) -> str:
        return self.site.views[-1].sharing.jobs.get(number, "")


def test_two_jobs_to_a_core_run_at_once_and_the_third_waits():
    case = Shared()
    case.submit(4, 4, 4, 4, 1)
    case.cycles()
    assert [each.state for each in case.slurm.jobs.values()] == [JobState.RUNNING] * 4 + [JobState.PENDING]
    assert sorted(nodes for _, nodes in case.slurm.started) == [("s1",), ("s1",), ("s2",), ("s2",)]
    assert case.site.views[-1].plan.waiting[5] == "no node has 1 core for it with 2 jobs to a core"
    assert case.told(1) == f"shares {case.job(1).allocated[0]} with 1 other: 0.5 of its cores; 0 s of 60 min used"


def test_memory_is_never_shared():
    case = Shared()
    case.submit(1, 1, 1, memory_gb=70)
    case.cycles()
    assert list(case.states().values()) == [JobState.RUNNING, JobState.RUNNING, JobState.PENDING]
    assert case.site.views[-1].plan.waiting[3].about == "memory"


class TestAgents:
    def test_are_told_what_each_job_needs_whoever_started_it(self):
        case = Shared()
        case.submit(4)
        running = {"state": JobState.RUNNING, "allocated": ("s2",), "start_s": int(case.slurm.time_s)}
        taken = {"tasks": 3, "occupies": Resources(3, GB), "end_s": int(case.slurm.time_s) + 9999}
        case.slurm.jobs[90] = job(90, **FOREIGN, **running, **taken, partitions=("small",))
        case.cycles()
        assert case.site.agents.told() == {("s1", 1): (4, 1.0), ("s2", 90): (3, 1.0)}
        told = len(case.site.agents.changes)
        case.cycles()
        assert len(case.site.agents.changes) == told, "nothing has changed"

    def test_caps_follow_the_yields_and_the_kill_switch_lifts_them(self):
        case = Shared(replace(RULES, caps=True))
        case.submit(4, 4, 2)
        case.cycles()
        (node,) = case.job(3).allocated
        other = 1 if case.job(1).allocated == (node,) else 2
        told = case.site.agents.told()
        assert told[node, 3] == (2, 0.67)
        assert told[node, other] == (4, 0.67)
        case.site.switch.on = True
        case.cycles(1)
        assert {share for _, share in case.site.agents.told().values()} == {1.0}

    def test_a_clean_stop_lifts_caps_and_a_later_scheduler_has_higher_revisions(self):
        case = Shared(replace(RULES, caps=True))
        case.submit(4, 4, 4)
        case.cycles()
        case.scheduler.stop()
        assert {share for _, share in case.site.agents.told().values()} == {1.0}
        last = case.site.agents.changes[-1][1].revision
        case.slurm.sleep(1)
        case.site.scheduler(case.settings).repeat(1, 1.0)
        assert case.site.agents.changes[-1][1].revision > last


class TestLimits:
    def test_are_moved_by_virtual_time_noted_in_the_job_and_told(self):
        case = Shared()
        case.submit(4, 4, 4, 4, walltime_s=3600)
        case.cycles()
        case.after(2000)
        assert {each.walltime_s for each in case.slurm.jobs.values()} == {3600}, "their ends are far"
        case.after(1100)
        assert {each.walltime_s for each in case.slurm.jobs.values()} == {7200}
        assert case.job(1).record.own_limit_s == 3600
        assert any("its time limit is 2.0 h now, as it shares cores" in line for line in case.site.log)
        assert "52 min" not in case.told(1)
        assert "26 min of 60 min used" in case.told(1)

    def test_an_owners_or_an_administrators_change_is_the_new_limit(self):
        case = Shared()
        case.submit(4, 4, 4, 4, walltime_s=3600)
        case.cycles()
        case.after(3100)
        case.slurm.change(1, walltime_s=1800)
        case.after(1)
        assert (case.job(1).walltime_s, case.job(1).record.own_limit_s) == (3600, 1800)

    def test_a_reservation_ends_what_is_added(self):
        case = Shared()
        case.submit(4, 4, 4, 4, walltime_s=3600)
        begins_s = int(case.slurm.time_s) + 5000
        case.slurm.shown["reservations"] = (
            ObservedReservation("maint", frozenset({"s1", "s2"}), begins_s, begins_s + 9),
        )
        case.cycles()
        case.after(3100)
        assert all(each.walltime_s <= 5040 for each in case.slurm.jobs.values())

    def test_a_reservation_that_has_begun_takes_nothing_away(self):
        case = Shared()
        case.submit(4, 4, 4, 4, walltime_s=3600)
        case.cycles()
        case.after(3100)
        case.after(1900)
        begun_s = int(case.slurm.time_s) - 500
        case.slurm.shown["reservations"] = (ObservedReservation("r", frozenset({"s1", "s2"}), begun_s, begun_s + 9999),)
        case.after(1)
        assert case.job(1).walltime_s == 7200

    def test_an_owner_gains_nothing_by_lowering_a_limit_that_was_raised(self):
        case = Shared()
        case.submit(4, 4, 4, 4, walltime_s=3600)
        case.cycles()
        case.after(3100)
        case.slurm.change(1, walltime_s=7140)
        case.after(1)
        assert "of 60 min used" in case.told(1)

    def test_a_node_whose_cores_nobody_knows_costs_nobody_a_limit(self):
        case = Shared()
        case.submit(4, 4, 4, 4, walltime_s=3600)
        case.cycles()
        case.slurm.cores["s1"] = 0
        case.after(3100)
        assert max(each.walltime_s for each in case.slurm.jobs.values()) == 7200

    def test_one_times_the_limit_leaves_it_as_it_is(self):
        case = Shared(replace(RULES, most_extension=1))
        case.submit(4, 4, 4, 4, walltime_s=3600)
        case.cycles()
        case.after(3500)
        assert {each.walltime_s for each in case.slurm.jobs.values()} == {3600}

    def test_go_on_under_the_kill_switch(self):
        case = Shared()
        case.submit(4, 4, 4, 4, walltime_s=3600)
        case.cycles()
        case.site.switch.on = True
        case.after(3100)
        assert case.job(1).walltime_s == 7200

    def test_are_the_owners_again_after_a_requeue(self):
        case = Shared()
        case.submit(4, 4, 4, 4, walltime_s=3600)
        case.cycles()
        case.after(3100)
        case.slurm.requeue(1)
        case.cycles()
        assert (case.job(1).walltime_s, case.job(1).record.own_limit_s) == (3600, None)

    def test_survive_a_crash_of_the_scheduler(self):
        """What the store has is a minute old at most; the time since then counts with the present yield."""
        case = Shared()
        case.submit(4, 4, 4, 4, walltime_s=7200)
        case.cycles()
        for _ in range(20):
            case.after(100)
        case.scheduler = case.site.scheduler(case.settings)
        case.after(100)
        assert "18 min of 2.0 h used" in case.told(1)


class TestPauses:
    def hungry(self, rules: SharingRules = PAUSES, words: str = "restartable=600", **fields) -> Shared:
        """Two jobs fill the memory; a third one comes after they have run for two minutes."""
        case = Shared(rules)
        case.submit(1, 1, memory_gb=100, words=words, **fields)
        case.cycles()
        case.after(120)
        case.submit(1, memory_gb=100)
        case.cycles(1)
        return case

    def test_signal_grace_requeue_and_the_newcomer_gets_the_memory(self):
        case = self.hungry()
        assert case.site.views[-1].plan.waiting[3] == "job 1 is being paused for it"
        assert case.slurm.signalled == [(1, "USR1")]
        case.after(20)
        assert case.job(1).state is JobState.RUNNING, "grace_s"
        case.after(10, 3)
        assert (case.job(1).state, case.job(1).restarts, case.job(3).state) == (JobState.PENDING, 1, JobState.RUNNING)
        (paused,) = case.site.decisions.restarts
        assert paused[0] == 1
        assert "its memory is needed for job 3" in paused[1].why
        case.after(REQUEUE_DELAY_S, 5)
        assert case.job(1).state is JobState.PENDING, "it pauses nobody"
        assert len(case.slurm.signalled) == 1

    def test_without_a_signal_it_is_requeued_at_once(self):
        case = self.hungry(replace(PAUSES, signal=""))
        assert (case.job(1).state, case.slurm.signalled) == (JobState.PENDING, [])

    @pytest.mark.parametrize(
        ("rules", "words", "fields"),
        [
            pytest.param(RULES, "restartable=600", {}, id="pause: none"),
            pytest.param(PAUSES, "", {}, id="its owner has not said --sns-restartable"),
            pytest.param(PAUSES, "restartable", {"may_restart": False}, id="--no-requeue"),
            pytest.param(PAUSES, "restartable", {"is_batch": False}, id="no batch job"),
            pytest.param(replace(PAUSES, protect_s=600), "restartable", {}, id="it has just begun"),
            pytest.param(replace(PAUSES, most_lost=0.00001), "restartable", {}, id="it would lose too much"),
            pytest.param(replace(PAUSES, max_restarts=0), "restartable", {}, id="it was restarted often enough"),
        ],
    )
    def test_who_is_never_paused(self, rules, words, fields):
        case = self.hungry(replace(rules, signal=""), words, **fields)
        case.after(5, 3)
        assert list(case.states().values()) == [JobState.RUNNING, JobState.RUNNING, JobState.PENDING]

    def test_the_budget_of_a_day_holds_for_all_pauses_together(self):
        case = Shared(replace(PAUSES, signal="", most_lost=200 / (8 * 86_400)))
        case.submit(1, 1, memory_gb=100, words="restartable")
        case.cycles()
        case.after(120)
        case.submit(1, 1, memory_gb=100)
        case.cycles(5)
        assert sum(each.state is JobState.PENDING for each in case.slurm.jobs.values()) == 2
        assert sum(each.restarts for each in case.slurm.jobs.values()) == 1

    def test_what_slurm_refuses_is_tried_again_after_a_minute(self):
        case = Shared(replace(PAUSES, signal=""))
        refusals = []

        def refuse(job_id: int) -> None:
            refusals.append(job_id)
            raise Refused("it is disabled")

        case.slurm.requeue_running = refuse
        case.submit(1, 1, memory_gb=100, words="restartable")
        case.cycles()
        case.after(120)
        case.submit(1, memory_gb=100)
        case.cycles(20)
        assert refusals == [1, 2]
        case.after(50, 3)
        assert refusals == [1, 2, 1, 2]

    def test_a_pause_that_is_no_longer_needed_is_dropped(self):
        case = self.hungry()
        case.slurm.change(2, end_s=int(case.slurm.time_s) + 10)
        case.after(15, 3)
        assert (case.job(1).state, case.job(3).state) == (JobState.RUNNING, JobState.RUNNING)

    def test_its_loss_is_stored_before_it_is_sent(self):
        case = self.hungry()
        case.site.history.broken = True
        case.after(40, 2)
        assert case.job(1).state is JobState.RUNNING
        assert "sharing" in case.scheduler.trouble
        case.site.history.broken = False
        case.cycles(2)
        assert case.job(1).state is JobState.PENDING

    def test_a_scheduler_that_is_killed_anywhere_pauses_no_job_twice(self):
        calls = len(self.whole().calls)
        for at in range(1, calls + 1):
            for after in (False, True):
                self.whole(at, after=after)

    def whole(self, at: int | None = None, *, after: bool = False) -> Wire:
        """The course of a pause, with a scheduler that is killed at a call and started again."""
        case = Shared(PAUSES)
        case.submit(1, 1, memory_gb=100, words="restartable=600")
        case.cycles()
        case.after(120)
        case.submit(1, memory_gb=100)
        wire = Wire(at, Crash(), after=after)
        try:
            case.scheduler = case.site.scheduler(case.settings, wire)
        except Crash:
            case.scheduler = case.site.scheduler(case.settings)
        for _ in range(11):
            try:
                case.after(10)
            except Crash:
                case.scheduler = case.site.scheduler(case.settings)
        assert case.job(3).state is JobState.RUNNING
        assert sum(each.restarts for each in case.slurm.jobs.values()) == 1
        return wire

    def test_a_job_that_slurm_is_about_to_start_is_never_paused(self):
        case = Shared(replace(PAUSES, signal=""))
        case.slurm.starts_nothing = True
        case.submit(1, 1, memory_gb=100)
        case.cycles(1)
        case.submit(1, memory_gb=100)
        requeue = case.slurm.requeue_running

        def starts_meanwhile(job_id: int) -> None:
            case.slurm.starts_nothing = False
            case.slurm.tick()
            requeue(job_id)

        case.slurm.requeue_running = starts_meanwhile
        case.cycles(1)
        assert [each.restarts for each in case.slurm.jobs.values()] == [0, 0, 0]

    def test_a_run_is_signalled_once_however_many_newcomers_come_and_go(self):
        case = self.hungry()
        for number in (3, 4):
            case.slurm.change(number, state=JobState.ENDED, end_s=int(case.slurm.time_s))
            case.cycles(2)
            case.submit(1, memory_gb=100)
            case.cycles(1)
        assert len(case.slurm.signalled) == 1

    def test_all_are_paused_for_a_newcomer_or_none(self):
        case = Shared(replace(PAUSES, signal="", most_lost=200 / (8 * 86_400)))
        case.submit(1, 1, 1, 1, memory_gb=60, words="restartable")
        case.cycles()
        case.after(120)
        case.submit(1, memory_gb=120)
        case.cycles(5)
        assert sum(each.restarts for each in case.slurm.jobs.values()) == 0, "the budget has room for one of two"


def test_no_job_of_several_nodes_is_limited_below_what_slurm_may_have_given_it():
    case = Shared()
    running = {"state": JobState.RUNNING, "allocated": ("s1", "s2"), "start_s": int(case.slurm.time_s)}
    taken = {"tasks": 5, "occupies": Resources(5, GB), "end_s": int(case.slurm.time_s) + 9999}
    case.slurm.jobs[90] = job(90, **FOREIGN, **running, **taken, partitions=("small",))
    case.slurm.jobs[91] = replace(case.slurm.jobs[90], id=91, tasks_per_node=2, occupies=Resources(4, GB))
    case.cycles()
    told = case.site.agents.told()
    assert (told["s1", 90], told["s2", 90], told["s1", 91]) == ((4, 1.0), (4, 1.0), (2, 1.0))


def test_nothing_else_of_the_site_is_touched():
    case = Shared(PAUSES)
    case.slurm.cores["c1"] = 28
    case.slurm.submit(28, 28, words="restartable")
    case.cycles()
    case.after(200, 3)
    assert not [order for order in case.slurm.orders if order.kind is OrderKind.LIMIT]
    assert not case.site.agents.changes
    assert case.told(1) == ""


class TestWithoutAScheduler:
    def watched(self, rules: SharingRules = RULES) -> tuple[Shared, Watchdog]:
        case = Shared(rules)
        case.submit(4, 4, 4, 4, walltime_s=3600)
        case.cycles()
        for each in case.slurm.jobs.values():
            case.slurm.change(each.id, end_s=each.start_s + 3600)
        ports = {"clock": case.slurm, "log": case.site.log.append, "timeout_s": 30, "sharing": rules}
        return case, Watchdog(case.slurm, case.slurm, lambda: case.site.heartbeat.last, **ports)

    def test_a_job_near_its_end_gets_its_longest_limit_once_and_a_new_scheduler_moves_it_back(self):
        case, dog = self.watched()
        case.slurm.sleep(2000)
        dog.look()
        assert case.job(1).walltime_s == 3600, "its end is far"
        case.slurm.sleep(1500)
        dog.look()
        assert (case.job(1).walltime_s, case.job(1).record.own_limit_s) == (4 * 3600, 3600)
        sent = len(case.slurm.orders)
        dog.look()
        assert len(case.slurm.orders) == sent
        case.scheduler = case.site.scheduler(case.settings)
        case.cycles(1)
        assert case.job(1).walltime_s == 7200

    def test_no_reservation_is_run_into(self):
        case, dog = self.watched()
        begins_s = case.job(1).start_s + 5000
        case.slurm.shown["reservations"] = (
            ObservedReservation("maint", frozenset({"s1", "s2"}), begins_s, begins_s + 9),
        )
        case.slurm.sleep(3500)
        dog.look()
        assert {each.walltime_s for each in case.slurm.jobs.values()} == {4980}

    def test_while_the_scheduler_lives_the_watchdog_moves_nothing(self):
        case, dog = self.watched()
        case.slurm.time_s += 3100
        case.cycles(1)
        sent = len(case.slurm.orders)
        dog.look()
        assert len(case.slurm.orders) == sent


def test_what_runs_had_of_what_is_charged_is_counted_once_by_day_and_account():
    case = Shared()
    case.slurm.min_job_age_s = 300
    case.submit(4, 4, run_s=100)
    case.submit(4, 4, run_s=100, account="chemistry")
    case.cycles()
    for _ in range(25):
        case.after(9)
    found = recall(case.site.history.of_sharing, FORM, case.site.log.append)
    of = {each.account: each for each in found.times}
    assert {name: each.runs for name, each in of.items()} == {"physics": 2, "chemistry": 2}
    charged_s, virtual_s = of["physics"].charged_core_s, of["physics"].virtual_core_s
    assert 2 * 4 * 80 <= charged_s <= 2 * 4 * 110
    assert virtual_s == pytest.approx(charged_s / 2, rel=0.02)
    assert not found.jobs


def test_a_clean_stop_stores_what_ended_since_the_last_time():
    case = Shared()
    case.slurm.min_job_age_s = 300
    case.submit(4, run_s=10)
    case.cycles()
    case.after(15)
    assert not recall(case.site.history.of_sharing, FORM, case.site.log.append).times
    case.scheduler.stop()
    (found,) = recall(case.site.history.of_sharing, FORM, case.site.log.append).times
    assert found.runs == 1
