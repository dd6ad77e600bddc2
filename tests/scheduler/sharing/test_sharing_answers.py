"""What people see of jobs that share cores: sns queue, explain and status, the metrics, and the days in the store."""

import json_output
import pytest
from live import ALICE, BOB, FOREIGN, job
from rich.console import Console
from test_sharer import GB, PAUSES, Shared, replace

from slurm_sns.cli.live.queue_view import plain_lines, table
from slurm_sns.cli.live.terminal import explanation
from slurm_sns.errors import BadInput, Refused
from slurm_sns.json_text import encoded
from slurm_sns.metric_table import BY_NAME
from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.answers.metrics import MetricsAnswers
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.view import RecentCycles
from slurm_sns.scheduler.counters import Counters
from slurm_sns.scheduler.history import recall
from slurm_sns.scheduler.observation import JobState
from slurm_sns.scheduler.sharing.book import DAY_S, FORM, SharedTime
from slurm_sns.scheduler.sharing.sharer import Sharer
from slurm_sns.sharing.progress import RunProgress

ADMIN = 0


def ask(case: Shared, command: str, user: int = ADMIN, **more):
    """What the scheduler answers, checked against the reference of --json."""
    recent, policy = RecentCycles(), max_jobs(MatchingParameters())
    recent.publish(case.site.views[-1])
    fixed = {"settings": case.settings, "asked": set()}
    answers = Answers(recent, case.site.decisions, policy, frozenset({ADMIN}), **fixed)
    reply = answers.answer({"command": command, **more}, user)
    return json_output.read(f"sns {command}", encoded(reply))


def shown(*parts) -> str:
    console = Console(width=250, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return " ".join(capture.get().split())


def metrics(case: Shared) -> dict:
    recent, counters = RecentCycles(), Counters(case.slurm.now(), frozenset({"small"}))
    named = {"policy": "max-jobs", "interval_s": 1.0}
    of = MetricsAnswers(recent, counters, case.settings, dict, case.slurm.now, **named)
    of.publish(case.site.views[-1])
    recent.publish(case.site.views[-1])
    found = {name: values for name, values in of.answer().items() if name.startswith("sharing_")}
    assert all(labels == [] for values in found.values() for labels, _ in values)
    return {name: value for name, ((_, value),) in found.items()}


class TestOfARunningJob:
    """Two jobs of alice and two of bob fill two nodes of four cores twice."""

    def case(self) -> Shared:
        case = Shared()
        case.submit(4, 4)
        case.submit(4, 4, user_id=BOB, user="bob")
        case.cycles()
        case.after(600)
        return case

    def words(self, case: Shared, number: int) -> str:
        return f"shares {case.job(number).allocated[0]} with 1 other: 0.5 of its cores; 5 min of 60 min used"

    @pytest.mark.parametrize("user", [ADMIN, ALICE])
    def test_queue_and_explain_say_how_it_goes_on(self, user: int) -> None:
        case, now_s = self.case(), 0.0
        told = self.words(case, 1)
        rows = [each for each in ask(case, "queue", user) if each["job_id"] == 1]
        assert (rows[0]["state"], rows[0]["reason"]) == ("running", told)
        assert told in list(plain_lines(rows, now_s))[1]
        assert told in shown(table(rows, now_s, 200))
        answer = ask(case, "explain", user, job_id=1)
        assert f"job 1: running on {case.job(1).allocated[0]} {told}" in shown(*explanation(answer))

    def test_users_are_told_of_their_own_jobs_and_no_other_job_is_named(self) -> None:
        case = self.case()
        rows = ask(case, "queue", ALICE)
        assert {each["job_id"] for each in rows} == {1, 2}
        assert all(each["reason"] == self.words(case, each["job_id"]) for each in rows)
        with pytest.raises(BadInput, match="no job of yours"):
            ask(case, "explain", ALICE, job_id=3)

    def test_explain_says_it_of_a_job_that_passed_through(self) -> None:
        case = Shared()
        case.submit(4)
        taken = {"tasks": 3, "occupies": Resources(3, GB), "end_s": int(case.slurm.time_s) + 9999, "walltime_s": 3600}
        running = {"state": JobState.RUNNING, "allocated": ("s1",), "start_s": int(case.slurm.time_s)}
        case.slurm.jobs[90] = job(90, **FOREIGN, **running, **taken, partitions=("small",), is_batch=False)
        case.slurm.cores.pop("s2")
        case.cycles()
        text = shown(*explanation(ask(case, "explain", ALICE, job_id=90)))
        assert "job 90 is Slurm's own" in text
        assert "running on s1, shares s1 with 1 other: 0.57 of its cores" in text

    def test_a_job_that_waits_again_is_told_why_it_waits(self) -> None:
        case = self.case()
        case.slurm.requeue(1)
        case.cycles(1)
        (row,) = (each for each in ask(case, "queue", ALICE) if each["job_id"] == 1)
        assert "shares" not in row["reason"]


class TestPauses:
    def paused(self, refuses: bool = False) -> Shared:
        """Two jobs fill the memory; a third one comes, for which one of them is paused."""
        case = Shared(replace(PAUSES, signal=""))
        case.submit(1, 1, memory_gb=100, words="restartable=600")
        case.cycles()
        if refuses:
            case.slurm.requeue_running = refuse
        case.after(120)
        case.submit(1, memory_gb=100)
        case.cycles(3)
        return case

    def test_status_counts_them_against_the_budget(self) -> None:
        told = ask(self.paused(), "status")["sharing"]
        assert (told["jobs"], told["least_yield"], told["pauses"]) == (2, 1.0, 1)
        assert 100 / 3600 <= told["lost_core_h"] <= 130 / 3600
        assert told["most_lost_core_h"] == pytest.approx(0.1 * 8 * 24)

    def test_metrics_count_them_in_seconds(self) -> None:
        found = metrics(self.paused())
        assert found.keys() == {name for name in BY_NAME if name.startswith("sharing_")}
        assert (found["sharing_jobs"], found["sharing_least_yield"], found["sharing_pauses_total"]) == (2, 1.0, 1)
        assert 100 <= found["sharing_lost_core_seconds"] <= 130
        assert found["sharing_most_lost_core_seconds"] == pytest.approx(0.1 * 8 * DAY_S)

    def test_the_store_has_them_by_day_and_account(self) -> None:
        case = self.paused()
        (time,) = recall(case.site.history.of_sharing, FORM, case.site.log.append).times
        assert (time.day, time.account, time.pauses) == (int(case.slurm.time_s // DAY_S), "physics", 1)
        assert 100 <= time.lost_core_s <= 130

    def test_a_pause_that_slurm_refused_is_not_counted(self) -> None:
        case = self.paused(refuses=True)
        assert any("Slurm refused to requeue it" in line for line in case.site.log)
        assert metrics(case)["sharing_pauses_total"] == 0
        del case.slurm.jobs[3]
        case.after(61)
        assert [each.pauses for each in recall(case.site.history.of_sharing, FORM, print).times] == [0]

    def test_a_cycle_that_does_not_know_who_may_be_paused_pauses_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Sharer, "_told", lambda *_: 1 / 0)
        case = self.paused()
        assert any("defect: ZeroDivisionError" in line for line in case.site.log)
        assert [each.restarts for each in case.slurm.jobs.values()] == [0, 0, 0]


def refuse(_job_id: int) -> None:
    raise Refused("Requested operation is presently disabled")


def test_the_least_yield_is_that_of_the_slowest_job() -> None:
    case = Shared()
    case.submit(4, 4, 2)
    case.cycles()
    assert metrics(case)["sharing_least_yield"] == pytest.approx(4 / 6)
    assert ask(case, "status")["sharing"]["least_yield"] == pytest.approx(4 / 6)


def test_where_no_partition_shares_nothing_is_told() -> None:
    case = Shared()
    case.settings = replace(case.settings, sharing=None)
    case.scheduler = case.site.scheduler(case.settings)
    case.submit(4, 4)
    case.cycles()
    assert ask(case, "status")["sharing"] is None
    assert metrics(case) == {}


def test_a_day_that_has_a_pause_keeps_it_when_a_run_ends() -> None:
    day = SharedTime(1, "physics").plus_pause(50.0, 1).plus(RunProgress(0, 100.0, 60.0), 2)
    assert day == SharedTime(1, "physics", 1, 200.0, 120.0, 1, 50.0)
