"""Restarts of suspended jobs in the loop: who is restarted, who never is, and what is kept, stored and told."""

from dataclasses import replace

import pytest
from fake_slurm import REQUEUE_DELAY_S, Crash, FakeSlurm, Site, Wire
from live import BOB, ENFORCE, FOREIGN, job

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.model import NOTHING, Resources
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.observation import JobState, ObservedPartition
from slurm_sns.scheduler.restarts.restarter import AGAIN_S

RULES = RestartRules(
    sends=True,
    needs_hint=True,
    window_s=6000,
    only_suspended=True,
    least_suspended_s=120,
    gain_s=300,
    max_moves=2,
    lost_core_hours_per_user_day=500,
)
SETTINGS = replace(ENFORCE, restarts=True)
PROPOSE = replace(RULES, sends=False)
#: The urgent jobs' number, and how long they run by their limits.
URGENT, URGENT_S = 90, 7200


class Preempted:
    """Two nodes of four cores; job 1, which may restart, is suspended on its node by an urgent job."""

    def __init__(
        self,
        *,
        rules: RestartRules = RULES,
        words: str = "restartable",
        names=("c1", "c2"),
        settings=SETTINGS,
        **fields,
    ) -> None:
        self.site = Site(FakeSlurm(dict.fromkeys(names, 4)))
        self.slurm = self.site.slurm
        self.slurm.shown = {
            "partitions": (*map(ObservedPartition, ("main", "small")), ObservedPartition("urgent", tier=10)),
            "requeue_s": 15.0,
        }
        self.slurm.submit(4, run_s=600, words=words, **{"may_restart": True, **fields})
        self.scheduler = self.site.scheduler(settings, restarts=rules)
        self.scheduler.repeat(3, 1.0)
        (self.node,) = self.slurm.jobs[1].allocated
        (self.other,) = set(names) - {self.node}
        self.suspend()

    def suspend(self, **fields) -> None:
        """An urgent job starts on the job's nodes, and Slurm suspends it."""
        now_s, of = int(self.slurm.time_s), self.slurm.jobs[1]
        self.slurm.change(1, state=JobState.SUSPENDED, suspended_s=now_s, ran_s=now_s - of.start_s, **fields)
        self.add(URGENT, of.allocated, partitions=("urgent",), walltime_s=URGENT_S)

    def add(self, number: int, nodes: tuple[str, ...], **fields) -> None:
        """A job of Slurm's own that takes all of these nodes."""
        now_s = int(self.slurm.time_s)
        running = {"state": JobState.RUNNING, "allocated": nodes, "start_s": now_s, "end_s": now_s + URGENT_S}
        taken = {"tasks": 4 * len(nodes), "occupies": Resources(4 * len(nodes), 100)}
        self.slurm.jobs[number] = job(number, **{**FOREIGN, **running, **taken, "user_id": BOB, **fields})

    def cycles(self, seconds: float, number: int = 1) -> None:
        self.slurm.sleep(seconds)
        self.scheduler.repeat(number, 1.0)

    @property
    def job(self):
        return self.slurm.jobs[1]

    @property
    def told(self) -> str:
        return self.site.views[-1].restarts.decided.get(1, "")


def test_a_job_restarts_elsewhere_once_it_has_been_suspended_long_enough_and_gets_the_place_found():
    case = Preempted()
    case.cycles(100)
    assert case.job.state is JobState.SUSPENDED, "least_suspended_s"
    assert case.told == ""
    case.cycles(20)
    assert (case.job.state, case.job.restarts) == (JobState.PENDING, 1)
    case.cycles(1, 2 + REQUEUE_DELAY_S)
    assert (case.job.state, case.job.allocated) == (JobState.RUNNING, (case.other,))
    (_, note), *_ = case.site.decisions.restarts
    assert (note.nodes, note.is_proposal) == ((case.other,), False)
    assert note.why == (
        "suspended for 2 min; expected to complete in 3.0 h here (118 min suspended, 60 min to run), "
        f"in 60 min on {case.other} from the beginning: restarted, at most 1 s of work lost"
    )
    assert [row.name for row in note.terms.considered] == ["main, where it is", f"on {case.other}"]
    assert case.site.log.count(f"job 1: {note.why}") == 1


def test_a_proposal_is_recorded_once_and_nothing_is_sent():
    case = Preempted(rules=PROPOSE)
    case.cycles(130, 200)
    assert case.job.state is JobState.SUSPENDED
    ((number, note),) = case.site.decisions.restarts
    assert (number, note.is_proposal) == (1, True)
    assert "a restart is proposed" in case.told
    (noted,) = case.site.views[-1].restarts.restarted
    assert noted.is_proposal


def test_a_proposal_is_not_made_again_by_the_next_scheduler():
    case = Preempted(rules=PROPOSE)
    case.cycles(130, 70)
    case.scheduler = case.site.scheduler(SETTINGS, restarts=PROPOSE)
    case.cycles(1, 70)
    assert len(case.site.decisions.restarts) == 1


def test_a_defect_of_a_decision_is_logged_once_and_jobs_are_placed_all_the_same(mocker):
    case = Preempted()
    mocker.patch("slurm_sns.scheduler.restarts.restarter.find_places", side_effect=ZeroDivisionError("a defect"))
    case.slurm.submit(4)
    case.cycles(130, 3)
    assert case.slurm.jobs[2].allocated == (case.other,)
    assert "ZeroDivisionError: a defect" in case.scheduler.trouble
    assert len([line for line in case.site.log if line.startswith("defect")]) == 1


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"words": ""}, id="no hint"),
        pytest.param({"may_restart": False}, id="Requeue=0"),
        pytest.param({"is_batch": False}, id="no batch job"),
        pytest.param({"restarts": 2}, id="moved often enough"),
        pytest.param({"walltime_s": None}, id="nobody knows how long it runs"),
    ],
)
def test_never(fields):
    restarts = fields.pop("restarts", 0)
    case = Preempted(**fields)
    case.slurm.change(1, restarts=restarts)
    case.cycles(130, 100)
    assert (case.job.state, case.site.decisions.restarts) == (JobState.SUSPENDED, [])


def test_a_job_that_a_person_suspended_is_never_restarted():
    case = Preempted()
    case.slurm.change(1, priority=0)
    case.cycles(1000, 10)
    assert case.job.state is JobState.SUSPENDED


def test_every_job_that_slurm_may_requeue_restarts_where_the_site_says_so_but_array_tasks_need_the_hint():
    rules = replace(RULES, needs_hint=False)
    case = Preempted(words="", rules=rules)
    case.cycles(130)
    assert case.job.restarts == 1
    case = Preempted(words="", rules=rules)
    case.slurm.change(1, array_id=1, array_task=3)
    case.cycles(130)
    assert case.job.restarts == 0


def test_without_room_elsewhere_it_stays_until_there_is():
    case = Preempted()
    case.add(91, (case.other,))
    case.cycles(130)
    assert case.told.endswith("there is no other place: it stays")
    case.slurm.change(91, state=JobState.ENDED, allocated=(), occupies=NOTHING)
    case.cycles(AGAIN_S - 2)
    assert case.job.state is JobState.SUSPENDED, "it is decided on again after a minute"
    case.cycles(2)
    assert case.job.restarts == 1


def test_it_stays_where_those_that_hold_its_cores_end_soon():
    case = Preempted()
    case.slurm.change(URGENT, walltime_s=400)
    case.cycles(130)
    assert "4 min suspended" in case.told
    assert case.told.endswith(": it stays")


def test_a_waiting_job_goes_before_a_suspended_one():
    case = Preempted()
    case.slurm.submit(4, run_s=2000)
    case.cycles(130, 3)
    assert case.slurm.jobs[2].allocated == (case.other,)
    assert case.job.state is JobState.SUSPENDED


def test_the_place_is_kept_while_the_job_cannot_start_yet_and_then_it_comes_first():
    case = Preempted()
    case.slurm.sleep(125)
    case.scheduler.cycle()
    assert case.job.state is JobState.PENDING
    case.slurm.change(1, state=JobState.RUNNING, is_completing=True, allocated=(case.node,))  # KillWait
    case.slurm.submit(4, run_s=2000, priority=9_000)
    case.scheduler.repeat(3, 1.0)
    assert case.slurm.jobs[2].state is JobState.PENDING
    case.slurm.change(1, state=JobState.PENDING, is_completing=False, allocated=())
    case.scheduler.repeat(5, 1.0)
    assert case.job.allocated == (case.other,)


def test_the_place_is_kept_no_longer_than_a_requeue_takes():
    case = Preempted()
    case.slurm.sleep(125)
    case.scheduler.cycle()
    case.slurm.change(1, state=JobState.RUNNING, is_completing=True, allocated=(case.node,))
    case.slurm.submit(4, run_s=2000)
    case.scheduler.repeat(15 + 10 + 3, 1.0)
    assert case.slurm.jobs[2].allocated == (case.other,)


def test_it_may_restart_in_a_partition_that_is_alike():
    pools = (("main", "small"),)
    case = Preempted(names=("c1", "s1"), rules=replace(RULES, pools=pools), settings=replace(SETTINGS, pools=pools))
    case.cycles(125)
    assert "on s1 from the beginning: restarted" in case.told
    case.slurm.submit(4, run_s=2000, partitions=("small",), priority=9_000)
    case.scheduler.repeat(5 + REQUEUE_DELAY_S, 1.0)
    assert case.job.allocated == ("s1",)
    assert case.job.partitions == ("main", "small")
    assert case.slurm.jobs[2].state is JobState.PENDING


def test_a_users_budget_of_lost_work_is_kept_also_over_a_restart_of_the_scheduler():
    rules = replace(RULES, lost_core_hours_per_user_day=1)
    case = Preempted(rules=rules)
    case.slurm.change(1, ran_s=899)  # of four cores: just below an hour
    case.cycles(125, 10)
    assert case.job.restarts == 1
    case.scheduler = case.site.scheduler(ENFORCE, restarts=rules)
    assert case.site.history.of_restarts is not None
    case.suspend()
    case.slurm.change(1, ran_s=2)
    case.cycles(130, 3)
    assert case.told.endswith("restarts may lose at most 1 core-hours of its owner's work in 24 hours")
    case.slurm.time_s += 86_400
    case.suspend(priority=case.job.priority)
    case.slurm.change(1, ran_s=2)
    case.cycles(130, 3)
    assert case.job.restarts == 2


def test_no_job_is_restarted_while_the_store_does_not_answer():
    case = Preempted()
    case.site.history.broken = True
    case.cycles(130)
    assert (case.job.state, case.told[-len("the store does not answer") :]) == (
        JobState.SUSPENDED,
        "the store does not answer",
    )
    assert "disk is full" in case.scheduler.trouble
    case.site.history.broken = False
    case.cycles(AGAIN_S)
    assert case.job.restarts == 1


def test_where_slurm_does_not_answer_the_cycle_ends_early_and_is_recorded_all_the_same():
    case = Preempted()
    case.slurm.requeue = lambda _order: (_ for _ in ()).throw(Unreachable("nobody"))
    case.slurm.cores[case.other] = 8
    case.slurm.sleep(125)
    case.slurm.submit(4)
    with pytest.raises(Unreachable):
        case.scheduler.cycle()
    assert {start.job_id for _, plan, *_ in case.site.decisions.cycles for start in plan.starts} == {1, 2}
    del case.slurm.requeue
    case.cycles(1, 2)
    assert case.job.restarts == 1


def test_a_name_that_is_no_text_costs_nothing():
    case = Preempted()
    case.slurm.min_job_age_s = 300
    case.add(91, (case.other,), name="\ud800", user="\ud800")
    case.slurm.change(91, end_s=int(case.slurm.time_s) + 5)
    case.cycles(130, 3)
    assert case.job.restarts == 1
    assert case.scheduler.trouble == ""


def test_what_cannot_be_stored_restarts_nothing(mocker):
    case = Preempted()
    mocker.patch("slurm_sns.scheduler.history.text_of", side_effect=ValueError("no JSON"))
    case.cycles(130, 3)
    assert case.told.endswith("it stays, as the store does not answer")
    assert "cannot be written as JSON" in case.scheduler.trouble


def test_a_refusal_leaves_the_job_where_it_is_and_costs_no_budget():
    case = Preempted()
    case.slurm.requeue = lambda _order: (_ for _ in ()).throw(Refused("Job is no longer suspended"))
    case.cycles(130)
    assert case.told.endswith("it stays, as Slurm refused to requeue it: Job is no longer suspended")
    assert case.site.views[-1].restarts.restarted == ()


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_the_requeue_neither_loses_the_job_nor_its_cost(after):
    dry, wire = Preempted(), Wire()
    dry.scheduler = dry.site.scheduler(ENFORCE, wire, RULES)
    dry.cycles(125)
    case, killed = Preempted(), Wire(1 + wire.calls.index("requeue_preempted"), Crash(), after=after)
    case.scheduler = case.site.scheduler(ENFORCE, killed, RULES)
    with pytest.raises(Crash):
        case.cycles(125)
    case.scheduler = case.site.scheduler(ENFORCE, restarts=RULES)
    case.cycles(1, 5)
    assert case.job.state is JobState.RUNNING
    assert case.job.restarts == 1
    assert len(case.site.views[-1].restarts.restarted) == (1 if after else 2), "at most what was counted is lost"


def test_nothing_is_restarted_while_the_kill_switch_is_on():
    case = Preempted()
    case.site.switch.on = True
    case.cycles(130, 100)
    assert case.job.state is JobState.SUSPENDED
