"""The answers of the running scheduler: what users and admins are told."""

import json
import re
from dataclasses import replace

import json_output
import numpy as np
import pytest
from fake_slurm import FakeSlurm, Site
from live import (
    ADVISED,
    ALICE,
    BOB,
    ENFORCE,
    FOREIGN,
    GATE,
    HELD,
    NOW,
    SLURMS,
    comment,
    job,
    look,
    node,
    pinned,
    running,
    situation,
    tasks,
)

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.json_text import encoded
from slurm_sns.model import Plan
from slurm_sns.package_files import shared_path
from slurm_sns.policies.base import Considered, Explanation
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.spread_n_share.profile_reading import programs_of
from slurm_sns.scheduler.answers import profiles as profile_answers
from slurm_sns.scheduler.answers.redaction import Redaction
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.observation import JobState
from slurm_sns.scheduler.ports import Decision, MeasuredRun
from slurm_sns.task_ids import task_id
from slurm_sns.wire.values import RunId

ADMIN = 64030
PARAMETERS = MatchingParameters()


class Recorded:
    """A decision record with these decisions, one snapshot, and the jobs of arrays' tasks."""

    def __init__(self, *decisions: Decision, snapshot=None, tasks=None) -> None:
        self.decisions, self.snapshot, self.tasks = decisions, snapshot, tasks or {}

    def job_of_task(self, array_id: int, task: int) -> int | None:
        return self.tasks.get((array_id, task))

    def of_job(self, job_id: int) -> list[Decision]:
        return [each for each in self.decisions if each.job_id == job_id]

    def snapshot_of(self, _cycle_id: int):
        return self.snapshot

    def cycles_between(self, _from_s: float, _to_s: float) -> list[int]:
        return []


def view(*jobs, nodes=None, mode="enforce", disabled=False) -> View:
    seen = situation(look(*jobs, nodes=nodes), settings=replace(ENFORCE, mode=mode))
    plan = Plan() if disabled else max_jobs(PARAMETERS).plan(seen.snapshot)
    return View(NOW, 0.012, mode, disabled, 3, 2, 5, seen, plan)


def answers(of: View | None, recorded=None, asked=None) -> Answers:
    recent = RecentCycles()
    if of is not None:
        recent.publish(of)
    settings = ENFORCE if of is None else replace(ENFORCE, mode=of.mode)
    admins = frozenset({0, ADMIN})
    of_jobs, asked = recorded or Recorded(), set() if asked is None else asked
    return Answers(recent, of_jobs, max_jobs(PARAMETERS), admins, lambda: "store away", settings=settings, asked=asked)


def ask(of: View | None, command: str, user: int = ADMIN, *, recorded=None, asked=None, **more):
    reply = answers(of, recorded, asked).answer({"command": command, **more}, user)
    text = encoded(reply)
    printed = {"status": "sns status", "queue": "sns queue", "explain": "sns explain"}.get(command)
    if command == "profile" and "program" not in more:
        printed = "sns profile list"
    return json.loads(text) if printed is None else json_output.read(printed, text)


CROWD = (
    tasks(1, 28),
    tasks(2, 28, user_id=BOB, user="bob", account="chemistry"),
    tasks(3, 28, user_id=BOB, user="bob", account="chemistry", name="third"),
    job(4, waits_for_others=True),
    running(5, "c1", user_id=BOB, user="bob"),
    pinned(6, "c2", reason="Priority"),
    job(7, **HELD),
    job(8, **FOREIGN),
)
NODES = (node("c1", taken=(1, 1000)), node("c2"), node("c3"), node("c4", unavailable="drain: disk"))


def test_a_suspended_job_is_shown_as_suspended() -> None:
    seen = view(running(1, "c1"), running(2, "c1", state=JobState.SUSPENDED))
    assert {each["job_id"]: each["state"] for each in ask(seen, "queue")} == {1: "running", 2: "suspended"}
    status = ask(seen, "status")
    assert (status["running"], status["suspended"]) == (1, 1)


def test_status_counts_what_waits_is_placed_and_runs() -> None:
    status = ask(view(*CROWD, nodes=NODES), "status")
    numbers = {name: status[name] for name in ("waiting", "placing", "running", "held", "nodes")}
    assert numbers == {"waiting": 4, "placing": 2, "running": 1, "held": 1, "nodes": 3}
    assert status["capacity"]["cores"] == 84
    assert status["free"]["cores"] == 84 - 1 - 1
    assert status["nodes_unavailable"] == {"c4": "drain: disk"}
    assert (status["mode"], status["cycles"], status["placed"]) == ("enforce", 3, 2)


@pytest.mark.parametrize("mode", ["advise", "observe"])
def test_status_counts_nothing_as_placed_where_nothing_is_placed(mode: str) -> None:
    waiting = [job(number, **(ADVISED if mode == "advise" else FOREIGN)) for number in (1, 2)]
    status = ask(view(*waiting, mode=mode), "status")
    assert (status["waiting"], status["placing"]) == (2, 0)
    assert {row["state"] for row in ask(view(*waiting, mode=mode), "queue")} == {"would be placed"}


def test_status_says_how_long_the_recent_cycles_took_and_what_is_wrong() -> None:
    status = ask(view(*CROWD), "status")
    assert (status["cycle_s"], status["cycle_p50_s"], status["cycle_p99_s"]) == (0.012, 0.012, 0.012)
    assert status["began_s"] == NOW - 0.012
    assert status["trouble"] == "store away"


def test_status_shows_how_full_each_node_is() -> None:
    groups = ask(view(*CROWD, nodes=(*NODES, node("c5"))), "status")["node_groups"]
    used = {tuple(each["names"]): each["capacity"]["cores"] - each["free"]["cores"] for each in groups}
    assert used == {("c1", "c2"): 1, ("c3", "c5"): 0}, "equally full nodes are together"


def test_a_user_is_told_only_the_accounts_of_their_own_jobs() -> None:
    seen = view(*CROWD, nodes=NODES)
    assert ask(seen, "status", BOB)["projects"].keys() == {"physics"}, "where bob's job runs"
    assert ask(seen, "status", 4711)["projects"] == {}
    mine, all_ = ask(seen, "status", ALICE), ask(seen, "status", ADMIN)
    assert all_["projects"].keys() == {"physics"}
    assert {name: mine[name] for name in ("waiting", "running", "nodes")} == {
        name: all_[name] for name in ("waiting", "running", "nodes")
    }


def crowded() -> View:
    """Capacity is withheld for bob's job 1, so that alice's job 2 waits; bob's job 8 is completing."""
    return view(
        running(9, "c1", user_id=BOB, user="bob", account="chemistry", **FOREIGN),
        running(8, "c2", user_id=BOB, is_completing=True, end_s=int(NOW) - 99, **FOREIGN),
        tasks(1, 4, user_id=BOB, user="bob", account="chemistry"),
        tasks(2, 2),
        nodes=(node("c1", 4, taken=(1, 1000)), node("c2")),
    )


def numbers_of_others(answer) -> list[str]:
    return re.findall(r"\bjob [189]\b|bob|chemistry", json.dumps(answer))


@pytest.mark.parametrize("command", ["status", "queue", "explain"])
def test_no_answer_to_a_user_names_another_users_job(command: str) -> None:
    more = {"job_id": 2} if command == "explain" else {}
    told = ask(crowded(), command, ALICE, **more)
    assert numbers_of_others(told) == []
    assert numbers_of_others(ask(crowded(), command, ADMIN, **more)), "though there is something to tell"


def test_a_user_is_told_that_another_users_job_is_in_the_way() -> None:
    (row,) = ask(crowded(), "queue", ALICE)
    assert row["reason"] == (
        "would fit, but capacity is withheld for another user's job; another user's job is still completing on c2"
    )
    reply = ask(crowded(), "explain", ALICE, job_id=2)
    in_the_way = "  it would fit, but capacity is withheld for "
    assert f"{in_the_way}another user's job" in reply["cycle"]["details"]
    assert f"{in_the_way}job 1" in ask(crowded(), "explain", ADMIN, job_id=2)["cycle"]["details"]


def test_tasks_that_have_no_id_of_slurms_are_named_as_slurm_names_them_and_are_their_owners() -> None:
    mine, others = task_id(41, 8), task_id(42, 3)
    said = Explanation(
        considered=(Considered("job 1", "", "", {"n": 2, "x": 0.5, "none": None, "job 1": np.int64(7)}),)
    )
    redacted = Redaction({41}).every_text(replace(said, details=(f"job {mine}", f"job {others}")).as_json())
    assert redacted["details"] == ["job 41_8", "another user's job"]
    figures = {"n": 2, "x": 0.5, "none": None, "another user's job": "7"}
    assert redacted["considered"] == [{"name": "another user's job", "outcome": "", "reason": "", "figures": figures}]
    assert Redaction({41}).text(f"withheld for job {mine}") == "withheld for job 41_8"
    assert Redaction({41}).text(f"withheld for job {mine}, {others}") == "withheld for another user's job"


def test_a_waiting_job_names_the_job_that_is_completing_where_it_fits() -> None:
    ending = running(8, "c1", is_completing=True, end_s=int(NOW))
    seen = view(ending, tasks(1, 8), nodes=(node("c1"), node("c2", 4)))
    rows = {row["job_id"]: row for row in ask(seen, "queue")}
    assert rows[1]["state"] == "waiting"
    assert rows[1]["reason"].endswith("; job 8 is still completing on c1")
    assert ask(seen, "explain", job_id=1)["job"]["reason"] == rows[1]["reason"]
    assert rows[8]["state"] == "completing"
    status = ask(seen, "status")
    assert (status["waiting"], status["running"], status["completing"]) == (1, 0, 1)


def test_the_queue_says_where_a_job_stands_in_it_and_what_it_takes() -> None:
    rows = {row["job_id"]: row for row in ask(crowded(), "queue")}
    assert {number: row["position"] for number, row in rows.items()} == {1: 1, 2: 2}
    nothing = {"ways": 0, "bandwidth_gbps": 0, "closids": 0, "gpus": {}}
    assert rows[2]["demand"] == {"nodes": 1, "cores": 2, "memory_mb": 2000, **nothing}
    assert not rows[2]["over_aged"]
    aged = ask(view(tasks(1, 28, submit_s=1), tasks(2, 28), tasks(3, 28)), "queue")
    assert [row["over_aged"] for row in aged] == [True, False, False]


@pytest.mark.parametrize("admin", [0, ADMIN])
def test_an_admin_sees_every_job_of_ours_waiting_ones_first(admin: int) -> None:
    rows = ask(view(*CROWD, nodes=NODES), "queue", admin)
    assert [row["job_id"] for row in rows] == [1, 2, 3, 4, 6, 7, 5]


def test_a_user_sees_their_own_jobs_only() -> None:
    seen = view(*CROWD, nodes=NODES)
    assert {row["user"] for row in ask(seen, "queue", BOB)} == {"bob"}
    assert ask(seen, "queue", 4711) == []


def test_the_queue_of_chosen_users_has_no_other_jobs() -> None:
    assert {row["user"] for row in ask(crowded(), "queue", users=["bob", "nobody"])} == {"bob"}
    assert ask(crowded(), "queue", ALICE, users=["bob"]) == []
    for wrong in ("bob", [7], {}):
        with pytest.raises(BadInput, match="users: valid is a list of names"):
            ask(crowded(), "queue", users=wrong)


def test_what_is_made_of_a_view_once_is_made_anew_for_the_next_one() -> None:
    made: list[View] = []

    def number(of: View) -> int:
        made.append(of)
        return len(made)

    first = view(tasks(1, 28))
    assert [first.once(number), first.once(number), replace(first).once(number)] == [1, 1, 2]


def test_the_queue_says_of_each_job_what_it_is_and_why() -> None:
    rows = {row["job_id"]: row for row in ask(view(*CROWD, nodes=NODES), "queue")}
    placed = [row for row in rows.values() if row["state"] == "placed, Slurm is starting it"]
    assert {row["job_id"] for row in placed} >= {6}
    assert rows[4]["state"] == "waiting"
    assert rows[4]["reason"] == "waits for its dependency"
    assert rows[5]["state"] == "running"
    assert rows[5]["nodes"] == ["c1"]
    assert rows[6]["reason"] == "Priority"
    assert (rows[7]["state"], rows[7]["reason"]) == ("held", "held (JobHeldUser)")


def test_explain_tells_a_waiting_job_what_each_heuristic_did_with_it() -> None:
    small = [node("c1", 2)]
    reply = ask(view(tasks(1, 2), tasks(2, 2), nodes=small), "explain", ALICE, job_id=2)
    assert reply["job"]["state"] == "waiting"
    assert reply["job"]["reason"]
    assert {each["name"] for each in reply["cycle"]["considered"]} == set(PAPER_PORTFOLIO)
    assert reply["decisions"] == []


def started(job_id: int, user: int) -> Decision:
    return Decision(job_id, user, NOW, "start", ("c1",), "by mix-fit", 9, "mix-fit", {"mix-fit": 1})


def test_explain_tells_a_placed_job_the_cycle_that_placed_it() -> None:
    before = view(tasks(1, 2), tasks(2, 2)).situation.snapshot
    seen = view(running(1, "c1"))
    reply = ask(seen, "explain", ALICE, recorded=Recorded(started(1, ALICE), snapshot=before), job_id=1)
    assert reply["job"]["state"] == "running"
    assert reply["decisions"][0]["nodes"] == ["c1"]
    assert "2 jobs waited" in reply["cycle"]["summary"][0]


def test_explain_remembers_a_job_that_slurm_has_forgotten() -> None:
    reply = ask(view(), "explain", ALICE, recorded=Recorded(started(1, ALICE)), job_id=1)
    assert (reply["job"], reply["cycle"]) == (None, None)
    assert len(reply["decisions"]) == 1


def test_explain_of_another_users_job_is_answered_like_one_that_does_not_exist() -> None:
    seen = view(tasks(1, 2))
    said = set()
    for job_id, recorded in ((1, Recorded()), (2, Recorded(started(2, ALICE))), (3, Recorded())):
        with pytest.raises(BadInput) as problem:
            ask(seen, "explain", BOB, recorded=recorded, job_id=job_id)
        said.add(str(problem.value).replace(str(job_id), "N"))
    assert said == {"job N: no job of yours that Slurm or slurm_sns knows"}
    assert ask(seen, "explain", ADMIN, job_id=1)["job"]["job_id"] == 1


def test_decisions_on_another_users_job_of_the_same_number_are_not_shown() -> None:
    seen = view(tasks(1, 2))
    recorded = Recorded(started(1, BOB))
    assert ask(seen, "explain", ALICE, recorded=recorded, job_id=1)["decisions"] == []
    assert len(ask(seen, "explain", ADMIN, recorded=recorded, job_id=1)["decisions"]) == 1


@pytest.mark.parametrize("request_", [{}, {"command": None}, {"command": "quit"}, {"command": ["status"]}])
def test_an_unknown_command_is_answered_with_the_valid_ones(request_) -> None:
    with pytest.raises(BadInput, match="valid: status, queue, overview, try, metrics, explain, job"):
        answers(view()).answer(request_, ADMIN)


@pytest.mark.parametrize("number", ["1", 1.0, True, [1], -1, 2**32, 10**30])
def test_a_job_id_and_a_task_are_whole_numbers_of_32_bits(number) -> None:
    for command in ("explain", "release"):
        for named in ({"job_id": number}, {"job_id": 1, "task": number}):
            with pytest.raises(BadInput, match="valid is a whole number"):
                ask(view(), command, **named)


def test_a_job_id_is_needed() -> None:
    with pytest.raises(BadInput, match="valid is a whole number"):
        ask(view(), "explain")


ARRAY = (
    job(41, array_id=41, array_tasks="8-99", array_limit=9, tasks=28, nodes_max=None),
    job(50, array_id=41, array_task=7),
    running(51, "c1", array_id=41, array_task=0),
)


def test_a_task_is_explained_whether_it_has_an_id_of_its_own_or_not_or_is_over() -> None:
    seen = view(*ARRAY)
    over = Recorded(Decision(49, ALICE, NOW, "start", ("c1",), "fits", 1, "", {}), tasks={(41, 5): 49})
    found = {at: ask(seen, "explain", ALICE, job_id=41, task=at, recorded=over) for at in (0, 5, 7, 8, 99)}
    assert {at: each["job_id"] for at, each in found.items()} == {0: 51, 5: 49, 7: 50, 8: task_id(41, 8), 99: 41}
    assert {at: each["label"] for at, each in found.items()} == {at: f"41_{at}" for at in found}
    assert found[7]["array"] == "tasks of array 41: 8-99 waiting; 1 waiting; 1 running; at most 9 at a time"
    assert (found[8]["job"]["label"], found[8]["cycle"] is not None) == ("41_8", True)
    assert found[99]["job"]["label"] == "41_[8-99%9]"
    for number, user in ((200, ALICE), (5, BOB), (7, BOB), (8, BOB)):
        with pytest.raises(BadInput, match=f"job 41_{number}: no job of yours"):
            ask(seen, "explain", user, job_id=41, task=number, recorded=over)


def test_a_task_that_was_placed_before_slurm_gave_it_its_id_shows_what_was_decided() -> None:
    placed = pinned(60, "c1", array_id=41, array_task=8)
    decided = Decision(task_id(41, 8), ALICE, NOW, "start", ("c1",), "fits", 1, "", {})
    recorded = Recorded(decided, snapshot=view(*ARRAY).situation.snapshot)
    reply = ask(view(placed), "explain", ALICE, job_id=41, task=8, recorded=recorded)
    assert (reply["job_id"], [each["reason"] for each in reply["decisions"]]) == (60, ["fits"])
    assert reply["cycle"] is not None


def test_the_queue_has_an_arrays_record_once_with_the_reason_of_its_next_task_and_the_tasks_that_start() -> None:
    small = [node("c1", 28, taken=(1, 1000)), node("c2", 28)]
    rows = {row["label"]: row for row in ask(view(*ARRAY, nodes=small), "queue")}
    assert list(rows) == ["41_7", "41_8", "41_[8-99%9]", "41_0"]
    assert [rows[label]["state"] for label in rows] == ["placed, Slurm is starting it"] * 2 + ["waiting", "running"]
    full = [node("c1", 28, taken=(28, 1000))]
    assert ask(view(ARRAY[0], nodes=full), "queue")[0]["reason"]


def test_status_counts_the_gates_and_says_which_one_opens_next() -> None:
    jobs = (job(1, begin_s=GATE - 9, admin_comment=comment(gate_s=GATE - 9)), job(2), job(3, **HELD), pinned(4, "c1"))
    gates = ask(view(*jobs), "status")["gates"]
    assert gates == {"gated": 3, "renewed_per_minute": 5, "nearest_s": GATE - 9, "lease_s": 7200}
    assert ask(view(), "status")["gates"]["nearest_s"] is None


# --- sns release


def release(*jobs, user: int, **named) -> tuple[object, set[int]]:
    """The answer, or what is wrong, and the jobs that the next cycle gives to Slurm."""
    asked = set()
    try:
        return ask(view(*jobs), "release", user, asked=asked, **named), asked
    except BadInput as problem:
        return str(problem), asked


@pytest.mark.parametrize("user", [ALICE, ADMIN, 0])
@pytest.mark.parametrize("waiting", [job(1), job(1, **HELD), pinned(1, "c1"), job(1, begin_s=0)])
def test_a_job_that_waits_for_us_is_given_to_slurm_by_its_owner_or_an_admin(user: int, waiting) -> None:
    assert release(waiting, job(2), user=user, job_id=1) == ({"label": "1", "jobs": 1}, {1})


@pytest.mark.parametrize(
    ("user", "others"),
    [(BOB, job(1)), (ALICE, job(2)), (ALICE, job(1, **FOREIGN)), (ALICE, job(1, **SLURMS)), (0, job(1, **FOREIGN))],
)
def test_no_other_job_is_and_one_of_another_user_is_answered_like_one_that_does_not_exist(user, others) -> None:
    said, asked = release(others, user=user, job_id=1)
    assert said.startswith("job 1: no job of yours that waits for slurm_sns (")
    assert not asked


def test_asking_again_before_the_next_cycle_keeps_nothing_more() -> None:
    asked = set()
    for _ in range(3):
        ask(view(job(1)), "release", ALICE, asked=asked, job_id=1)
    assert asked == {1}


def test_a_job_that_runs_is_not_given_away() -> None:
    assert release(running(1, "c1"), user=ALICE, job_id=1) == ("job 1 does not wait any more", set())


def test_an_array_is_given_to_slurm_as_a_whole_or_a_task_that_has_an_id_of_its_own() -> None:
    assert release(*ARRAY, user=ALICE, job_id=41) == ({"label": "41", "jobs": 2}, {41, 50})
    assert release(*ARRAY, user=ALICE, job_id=41, task=7) == ({"label": "41_7", "jobs": 1}, {50})
    assert release(*ARRAY, user=ALICE, job_id=41, task=0)[0] == "job 41_0 does not wait any more"
    said, asked = release(*ARRAY, user=ALICE, job_id=41, task=8)
    assert said.endswith("; a task may be in its array: 41)")
    assert not asked


def slurms(identity: int, **fields):
    """A pass-through job that waits for resources."""
    return job(identity, **{**FOREIGN, "reason": "Resources", **fields})


def test_explain_says_why_a_job_is_slurms_own() -> None:
    seen = view(tasks(1, 2), slurms(12, asks_for=("prefer",)))
    reply = ask(seen, "explain", ALICE, job_id=12)
    assert reply["pass_through"] == "it prefers nodes with a feature (--prefer)"
    assert (reply["job"]["state"], reply["job"]["reason"]) == ("waiting", "Resources")
    assert reply.keys() == ask(seen, "explain", ALICE, job_id=1).keys()
    assert (reply["label"], reply["decisions"], reply["considered"], reply["cycle"]) == ("12", [], None, None)
    assert ask(seen, "explain", ADMIN, job_id=12) == reply
    assert ask(seen, "explain", ALICE, job_id=1)["pass_through"] is None


@pytest.mark.parametrize("mode", ["enforce", "advise", "observe"])
def test_pass_through_jobs_are_explained_as_long_as_slurm_knows_them(mode: str) -> None:
    runs = slurms(13, state=JobState.RUNNING, partitions=("plain",), allocated=("c1",), reason="")
    over = replace(runs, id=14, state=JobState.ENDED)
    seen = view(runs, over, slurms(15, partitions=("plain",)), mode=mode)
    found = {number: ask(seen, "explain", ALICE, job_id=number) for number in (13, 14, 15)}
    assert [each["job"]["state"] for each in found.values()] == ["running", "ended", "waiting"]
    suspended = view(replace(runs, state=JobState.SUSPENDED), mode=mode)
    assert ask(suspended, "explain", ALICE, job_id=13)["job"]["state"] == "suspended"
    assert {each["pass_through"] for each in found.values()} == {"partition plain is not managed"}
    assert found[13]["job"]["nodes"] == ["c1"]


def test_a_job_that_we_placed_and_that_has_ended_is_ours_still() -> None:
    over = replace(running(1, "c1"), state=JobState.ENDED)
    reply = ask(view(over), "explain", ALICE, recorded=Recorded(started(1, ALICE)), job_id=1)
    assert (reply["job"]["state"], reply["pass_through"]) == ("ended", None)
    assert len(reply["decisions"]) == 1


def test_a_job_that_was_given_to_slurm_shows_what_was_decided_before() -> None:
    note = Decision(1, ALICE, NOW, "note", (), "left to Slurm: no node has 99 cores", 9, "", {})
    reply = ask(view(job(1, **SLURMS)), "explain", ALICE, recorded=Recorded(note), job_id=1)
    assert reply["pass_through"] == "slurm_sns left it to Slurm: slurm_sns was stopped"
    assert reply["decisions"][0]["reason"] == "left to Slurm: no node has 99 cores"


def test_status_tells_admins_of_every_record_that_cannot_be_read_and_users_of_their_own() -> None:
    bad = {**FOREIGN, "unreadable": "gres cannot be read"}
    seen = view(job(1, **bad), job(2, **bad, user_id=BOB), running(3, "c1", allocated=("c2",)))
    assert set(ask(seen, "status")["unreadable"]) == {"job 1", "job 2"}
    assert ask(seen, "status", ALICE)["unreadable"] == {"job 1": "gres cannot be read"}
    assert ask(seen, "status", ALICE)["differences"] == {"job 3": "runs on c2, planned on c1"}
    assert (ask(seen, "status", BOB)["differences"], ask(seen, "status", 4711)["unreadable"]) == ({}, {})


def test_another_users_pass_through_job_is_answered_like_one_that_does_not_exist() -> None:
    seen = view(slurms(12), slurms(41, array_id=41, array_tasks="3-9"))
    for job_id, more in ((12, {}), (99, {}), (41, {"task": 4}), (99, {"task": 4})):
        with pytest.raises(BadInput) as problem:
            ask(seen, "explain", BOB, job_id=job_id, **more)
        label = f"{job_id}_4" if more else str(job_id)
        assert str(problem.value) == f"job {label}: no job of yours that Slurm or slurm_sns knows"


def test_tasks_of_a_pass_through_array_are_explained_too() -> None:
    asked = {"array_id": 41, "asks_for": ("gres",)}
    seen = view(
        slurms(41, array_tasks="8-99", array_limit=9, **asked),
        slurms(50, array_task=7, state=JobState.RUNNING, **asked),
        slurms(51, array_task=0, state=JobState.ENDED, **asked),
    )
    found = {task: ask(seen, "explain", ALICE, job_id=41, task=task) for task in (0, 7, 8)}
    assert {task: (each["job_id"], each["label"]) for task, each in found.items()} == {
        0: (51, "41_0"),
        7: (50, "41_7"),
        8: (41, "41_8"),
    }
    assert {each["pass_through"] for each in found.values()} == {"it asks for gres (--gres, --gpus)"}
    assert found[7]["array"] == "tasks of array 41: 8-99 waiting; 1 running; 1 ended; at most 9 at a time"
    assert ask(seen, "explain", ALICE, job_id=41)["job"]["state"] == "waiting"


def test_what_a_user_wrote_into_a_pass_through_job_breaks_no_answer() -> None:
    hostile = {"comment": "sns:off\x1b", "extra": "\udcff", "name": "\x00", "partitions": ("", "pl\x1bain")}
    assert ask(view(slurms(12, **hostile)), "explain", ALICE, job_id=12)["pass_through"]


PROGRAMS = {each.name: each for each in read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))}


def profiled() -> View:
    return replace(view(), programs=PROGRAMS)


def test_any_user_may_list_the_programs_with_a_profile_and_their_classes() -> None:
    listed = {each["program"]: each for each in ask(profiled(), "profile", 4711)}
    assert list(listed) == sorted(PROGRAMS)
    assert listed["mg"] == {
        "program": "mg",
        "source": PROGRAMS["mg"].source,
        "max_scale": 8,
        "classes": [{"processes": 16, "class": "scaling", "ideal_scale": 8, "bottleneck": "bandwidth"}],
    }
    assert ask(view(), "profile", 4711) == []


def test_the_profiles_are_those_that_the_last_cycle_planned_by() -> None:
    site = Site(FakeSlurm({"c1": 4}))
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert ask(site.views[-1], "profile", ALICE) == []
    site.profiles.programs = PROGRAMS
    scheduler.cycle()
    assert len(ask(site.views[-1], "profile", ALICE)) == len(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_programs_profile_comes_as_a_file_of_profiles_has_it(name: str) -> None:
    assert programs_of(ask(profiled(), "profile", 4711, program=name)) == (PROGRAMS[name],)


def test_a_program_without_profile_is_answered_with_what_to_do() -> None:
    with pytest.raises(BadInput) as problem:
        ask(profiled(), "profile", ALICE, program="nope")
    assert str(problem.value) == "program 'nope' has no profile; sns profile list shows the programs that have one"


@pytest.mark.parametrize(
    "name", ["", "a b", "x" * 65, "mg\n", "\x1b[31m", "\udcff", 7, True, ["mg"], {"mg": 1}, "x" * 4000]
)
def test_what_cannot_name_a_program_is_refused_in_one_short_line(name) -> None:
    with pytest.raises(BadInput, match="valid: 1 to 64 letters, digits and") as problem:
        ask(profiled(), "profile", ALICE, program=name)
    assert str(problem.value).isprintable()
    assert len(str(problem.value)) < 200


def test_the_programs_are_summed_up_once_for_as_long_as_they_are_the_same(mocker) -> None:
    classify = mocker.spy(profile_answers, "classify")
    seen = profiled()
    asked = answers(seen)
    for _ in range(3):
        asked.answer({"command": "profile"}, ALICE)
    assert classify.call_count == sum(len(each.process_counts) for each in PROGRAMS.values())


def test_before_the_first_cycle_nothing_is_said() -> None:
    with pytest.raises(SnsError, match="try again in a moment"):
        ask(None, "status")


def test_a_job_that_somebody_holds_is_explained_without_a_cycle() -> None:
    assert ask(view(job(1, **HELD)), "explain", ALICE, job_id=1)["cycle"] is None


class Measured:
    """The measurements of these runs."""

    def __init__(self, *runs: MeasuredRun) -> None:
        self.runs = runs

    def of_jobs(self, job_ids) -> list[MeasuredRun]:
        return [each for each in self.runs if each.run.job_id in job_ids]


def measured_run(job_id: int, user_id: int | None, restarts: int = 0) -> MeasuredRun:
    return MeasuredRun(RunId(job_id, restarts), "c1", user_id, NOW, 4, 20, 60.0, 1.0, 8.0, 30.0, 1.25)


def measured(user: int, job_ids: object) -> dict:
    recent, runs = RecentCycles(), (measured_run(1, ALICE), measured_run(1, ALICE, 2), measured_run(2, BOB))
    recent.publish(view())
    kept = Measured(*runs, measured_run(3, None))
    told = {"settings": ENFORCE, "asked": set(), "measurements": kept}
    made = Answers(recent, Recorded(), max_jobs(PARAMETERS), frozenset({0, ADMIN}), **told)
    return json.loads(json.dumps(made.answer({"command": "measured", "job_ids": job_ids}, user)))


def test_owners_see_what_was_measured_of_the_last_runs_of_their_own_jobs() -> None:
    answer = measured(ALICE, [1, 2, 3, 4])
    assert not answer["has_agents"]
    [[node_of_1]] = [answer["jobs"].pop("1")]
    assert (node_of_1["restarts"], node_of_1["ipc_alone"], node_of_1["ipc_beside"]) == (2, 1.25, 0.75)
    assert answer["jobs"] == {}, "of others' jobs as little as of one that never was"
    assert measured(ADMIN, [1, 2, 3]).get("jobs").keys() == {"1", "2", "3"}


@pytest.mark.parametrize("job_ids", [None, 7, "7", ["7"], [-1], [True], [2**32], [[7]], list(range(301))])
def test_what_is_no_list_of_jobs_is_refused(job_ids: object) -> None:
    with pytest.raises(BadInput, match="valid is a"):
        measured(ALICE, job_ids)


class TestAnAnswerForAnotherUser:
    def test_an_admin_gets_what_that_user_would_get(self) -> None:
        for_bob = ask(view(*CROWD, nodes=NODES), "queue", ADMIN, as_user="bob")
        assert for_bob == ask(view(*CROWD, nodes=NODES), "queue", BOB)
        with pytest.raises(BadInput, match="job 1: no job of yours"):
            ask(view(*CROWD), "explain", ADMIN, as_user="bob", job_id=1)

    @pytest.mark.parametrize("caller", [ALICE, BOB])
    def test_nobody_else_may_ask_for_one(self, caller: int) -> None:
        with pytest.raises(BadInput, match="for SlurmUser and root alone"):
            ask(view(*CROWD), "queue", caller, as_user="bob")

    @pytest.mark.parametrize("name", ["carol", "", 7, ["bob"], "root"])
    def test_a_user_without_a_job_or_an_admin_is_refused(self, name: object) -> None:
        seen = view(*CROWD, job(20, user_id=0, user="root"))
        with pytest.raises(BadInput, match="valid is an ordinary user who has a job"):
            ask(seen, "queue", ADMIN, as_user=name)
