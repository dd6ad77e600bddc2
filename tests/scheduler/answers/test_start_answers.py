"""When jobs start, as the scheduler's answers say it: to the owner, and without naming another user's job."""

import json
from dataclasses import replace

import pytest
from live import ALICE, BOB, ENFORCE, HELD, NOW, job, look, node, running
from live import situation as situation_of

from slurm_sns.json_text import encoded
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.start_estimates.board import EstimateBoard, Estimates, StartEstimate

ADMIN = 64030
FULL = (node("c1", taken=(28, 128_000)),)
TOLD = StartEstimate(NOW, NOW + 600, NOW + 7200, NOW + 9000, None, 1, ("c1", "c2"))


class NothingRecorded:
    """A decision record without decisions."""

    def of_job(self, _: int) -> list:
        return []


def ask(command: str, *jobs, estimates: Estimates, user: int = ADMIN, **named):
    policy, board = max_jobs(), EstimateBoard()
    board.now, board.trouble = estimates, named.pop("trouble", "")
    seen = situation_of(look(*jobs, nodes=FULL))
    recent = RecentCycles()
    recent.publish(View(NOW, 0.01, "enforce", False, 1, 0, 0, seen, policy.plan(seen.snapshot)))
    answers = Answers(recent, NothingRecorded(), policy, frozenset({ADMIN}), settings=ENFORCE, asked=set(), board=board)
    return json.loads(encoded(answers.answer({"command": command, **named}, user)))


@pytest.mark.parametrize(
    ("runs_for", "asks", "waits_for"),
    [
        (ALICE, ALICE, "job 1's nodes (nodes c1, c2)"),
        (BOB, ALICE, "nodes c1, c2"),
        (BOB, ADMIN, "job 1's nodes (nodes c1, c2)"),
    ],
)
def test_the_owner_is_told_the_range_and_whose_nodes_are_waited_for_where_that_is_a_job_of_theirs(
    runs_for, asks, waits_for
):
    jobs = running(1, "c1", user_id=runs_for), job(2)
    found = Estimates({2: TOLD})
    rows = {row["job_id"]: row for row in ask("queue", *jobs, estimates=found, user=asks)}

    expected = {"low_s": NOW + 600, "high_s": NOW + 7200, "limits_s": NOW + 9000, "not_before_s": None}
    assert rows[2]["starts"] == {**expected, "waits_for": waits_for}
    assert ask("explain", *jobs, estimates=found, user=asks, job_id=2)["job"]["starts"] == rows[2]["starts"]
    assert rows.get(1, {"starts": None})["starts"] is None, "it has started"


def test_an_old_estimate_of_a_job_that_is_held_now_is_not_told():
    (row,) = ask("queue", job(2, **HELD), estimates=Estimates({2: TOLD}))

    assert row["starts"] is None


def test_a_job_that_waits_for_no_other_ones_end_has_no_such_words():
    (row,) = ask("queue", job(2), estimates=Estimates({2: replace(TOLD, waits_for=None, nodes=("c1",))}))

    assert row["starts"]["waits_for"] == ""


def test_status_has_last_weeks_record_and_what_keeps_estimates_from_being_made():
    told = ask("status", job(2), estimates=Estimates({}, 812, 674), trouble="estimates: the disk is full")

    assert told["estimates"] == {"starts": 812, "inside": 674}
    assert told["trouble"] == "estimates: the disk is full"
    assert ask("status", job(2), estimates=Estimates())["estimates"] is None
