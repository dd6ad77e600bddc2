"""The checker of promises: small histories that break one promise each, beside near ones that keep it."""

from typing import Any

import pytest

from slurm_sns.scheduler.gate.failed_placements import Try
from world.hand_made import BEGIN_S, BOOST, Case, at
from world.mutants import MUTANTS, name_of, shows
from world.promises_jobs import mark
from world.run import run, violations
from world.schedule import drawn
from world.slurm import DISABLED


def test_a_job_that_is_gated_placed_started_and_ended_breaks_no_promise(case: Case) -> None:
    case.submit()
    case.place(3.0)
    case.start(3.5)
    case.cycle(4.0)
    case.ends(6.0)
    assert case.found() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", None),
        ("a note", None),
        ("note;sns:2 g=5 r=1", {"g": "5", "r": "1"}),
        ("sns:2 exclusive", {"exclusive": ""}),
        ("sns:2 what=5", {"free": "unreadable"}),
        ("sns:1", {"free": "unreadable"}),
        ("sns:2 g=1;sns:2 g=2", {"free": "unreadable"}),
    ],
)
def test_the_checker_reads_the_mark_as_the_specification_has_it(text, words) -> None:
    assert mark(text) == words


# --- starts


def test_a_job_starts_once(case: Case) -> None:
    case.submit()
    case.place(3.0)
    case.start(3.5)
    case.start(3.6)
    assert case.names() == ["started twice"]


@pytest.mark.parametrize(("holder", "found"), [("user", ["started while held"]), ("", [])])
def test_a_job_that_somebody_holds_does_not_start(case: Case, holder: str, found: list[str]) -> None:
    case.submit()
    case.event(2.5, "hold", 1, "alice", {"hold": "user"})
    if not holder:
        case.event(2.6, "release", 1, "alice", {"hold": ""})
    case.place(3.0, hold=holder, look=not holder)
    case.start(3.5)
    assert case.names() == found


@pytest.mark.parametrize(("begin_in_s", "found"), [(9, ["started too early"]), (1, [])])
def test_no_job_starts_before_its_owners_begin_time(case: Case, begin_in_s: int, found: list[str]) -> None:
    case.submit(gate_s=None, begin_s=at(2 + begin_in_s))
    case.start(3.5)
    assert case.names() == found


@pytest.mark.parametrize(("cores", "found"), [(3, ["node over capacity"]), (2, [])])
def test_no_node_is_overfilled(case: Case, cores: int, found: list[str]) -> None:
    for job, own in ((1, 2), (2, cores)):
        case.submit(job=job, gate_s=None, tasks=own)
        case.start(3.0, job, cores=(own,))
    assert case.names() == found


# --- what we write


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"others": (5,)}, ["field changed"]),
        ({"tasks": 2}, ["field changed"]),
        ({"hold": "user"}, ["hold changed"]),
        ({"extra": "theirs"}, ["overwritten"]),
        ({"begin_s": at(41)}, ["not in the mark"]),
        ({"admin_comment": f"sns:2 g={at(41)}"}, ["not in the mark"]),
        ({"admin_comment": f"a note;sns:2 g={at(40)}"}, ["overwritten"]),
        ({}, []),
    ],
)
def test_a_renewal_changes_begin_and_mark_alone(case: Case, changed, found: list[str]) -> None:
    case.submit()
    case.look(9.0)
    case.renew(9.1, **changed)
    assert case.names() == found


def test_a_held_job_is_not_placed(case: Case) -> None:
    case.submit()
    case.event(2.5, "hold", 1, "alice", {"hold": "user"})
    case.place(3.0)
    case.regate(4.0)
    assert case.names() == ["placed while held"]


@pytest.mark.parametrize(("gate_s", "found"), [(60, ["gated too long"]), (48, [])])
def test_no_gate_is_longer_than_a_lease(case: Case, gate_s: int, found: list[str]) -> None:
    case.submit()
    case.look(9.0)
    case.renew(9.1, gate_s=gate_s)
    assert case.names() == found


def test_a_gate_beyond_its_lease_counts_in_schedules_of_double_faults_too(case: Case) -> None:
    case.is_double = True
    case.submit(extra="mine")
    case.renew(9.1, gate_s=900, extra="")
    assert case.names() == ["gated too long"]


@pytest.mark.parametrize(("limit_s", "found"), [(60, ["gated too long"]), (40, [])])
def test_no_gate_makes_a_job_miss_its_deadline(case: Case, limit_s: int, found: list[str]) -> None:
    case.submit(deadline_s=at(150), walltime_s=limit_s)
    case.look(9.0)
    case.renew(9.1)
    assert case.names() == found


@pytest.mark.parametrize(("looked_s", "found"), [(9.0, ["overwritten"]), (7.0, [])])
def test_what_people_wrote_before_our_look_stays(case: Case, looked_s: float, found: list[str]) -> None:
    case.submit()
    case.edit(8.0, ("ReqNodeList",), nodes=("c2",))
    case.look(looked_s)
    case.place(9.1, look=False)
    assert case.names() == found


@pytest.mark.parametrize(("begin_s", "found"), [(at(4), ["owner's time lost"]), (at(90), [])])
def test_a_begin_time_of_the_owners_stays_in_force(case: Case, begin_s: int, found: list[str]) -> None:
    case.submit()
    case.edit(2.5, ("StartTime",), begin_s=at(90))
    case.look(3.0)
    mark = f"sns:2 g={begin_s} b={at(90)}"
    case.renew(3.9, begin_s=begin_s, admin_comment=mark)
    assert [name for name in case.names() if name != "not in the mark"] == found


@pytest.mark.parametrize(
    ("left", "found"),
    [
        ({"nodes": ("c1",)}, "nodes"),
        ({"site_factor": BOOST}, "the boost"),
        ({"extra": "sns:grant=x"}, "the grant"),
        ({"tasks_per_node": 4}, "tasks_per_node"),
        ({"memory": (None, 8000)}, "memory"),
        ({"begin_s": at(40)}, "a begin time"),
    ],
)
def test_a_job_that_is_freed_has_nothing_of_ours(case: Case, left, found: str) -> None:
    case.submit()
    given = {name: value for name, value in left.items() if name in ("extra", "tasks_per_node", "memory")}
    case.place(3.0, **given)
    case.look(4.0)
    case.free(4.1, **left)
    assert any(sentence.startswith("left on the job: ") and found in sentence for sentence in case.found())


@pytest.mark.parametrize("comment", ["", "sns:2 free=me"])
def test_a_job_that_is_not_ours_is_not_taken_again(case: Case, comment: str) -> None:
    case.submit()
    case.edit(3.0, ("AdminComment",), by="admin", admin_comment=comment)
    case.look(9.0)
    case.renew(9.1)
    assert case.names() == ["taken again"]


def test_a_job_that_its_owner_has_opened_is_not_gated_again(case: Case) -> None:
    case.submit()
    case.edit(8.0, ("StartTime",), begin_s=at(8.0))
    case.look(9.0)
    case.renew(9.1)
    assert case.names() == ["taken again"]


def test_we_hold_and_release_nothing(case: Case) -> None:
    case.submit()
    case.event(3.0, "release", 1, "scheduler", {})
    assert case.names() == ["not ours to do"]


# --- restarts


def suspended(case: Case, hints: str = " restartable", **more: Any) -> None:
    """A job that runs on two cores from 3.5 s on, and is suspended at 5 s."""
    case.restarts = {"max_moves": 1, "lost_core_hours_per_user_day": 20 / 3600}
    case.submit(tasks=2, may_restart=more.pop("may_restart", True))
    placed = f"sns:2{hints} g={at(20)} n=c1 at={at(3)}"
    case.place(3.0, admin_comment=placed)
    case.start(3.5, cores=(2,))
    case.suspend(5.0, **more)


def test_a_job_that_preemption_has_suspended_may_be_restarted(case: Case) -> None:
    suspended(case)
    case.look(6.0)
    case.requeue(6.1)
    case.look(6.9)
    case.regate(7.0, admin_comment=f"sns:2 restartable g={at(40)} r=1")
    assert case.names() == []


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"hints": ""}, "its owner has not asked for that"),
        ({"hints": " restartable free=me"}, "it is not ours"),
        ({"by": "admin"}, "a person had suspended it"),
        ({"hold": "user"}, "it was held by user"),
        ({"state": "RUNNING"}, "it was RUNNING"),
    ],
)
def test_what_must_not_be_restarted(case: Case, more: dict[str, Any], found: str) -> None:
    suspended(case, **more)
    case.look(6.0)
    case.requeue(6.1)
    assert found in next(each for each in case.found() if each.startswith("restarted wrongly: "))


def test_what_a_person_does_after_the_last_sight_of_a_job_is_nobodys_fault(case: Case) -> None:
    suspended(case)
    case.look(6.0)
    case.suspend(6.05, by="admin")
    case.requeue(6.1)
    assert case.names() == []


@pytest.mark.parametrize(("loaded_s", "found"), [(6.04, []), (6.06, ["restarted wrongly"])])
def test_who_loads_the_job_sees_what_has_happened_by_then(case: Case, loaded_s: float, found: list[str]) -> None:
    suspended(case)
    case.look(6.0)
    case.suspend(6.05, by="admin")
    case.add(loaded_s, "load", 1, "scheduler")
    case.requeue(6.1)
    assert [name for name in case.names() if "restart" in name] == found


def test_a_job_that_was_not_seen_is_not_restarted(case: Case) -> None:
    suspended(case)
    case.requeue(6.1)
    assert case.names() == ["restarted unseen"]


def test_without_restarts_nothing_is_requeued(case: Case) -> None:
    suspended(case)
    case.restarts = None
    case.look(6.0)
    case.requeue(6.1)
    assert case.names()[0] == "not ours to do"


def test_a_restart_that_slurm_must_refuse_is_not_asked_for(case: Case) -> None:
    suspended(case, may_restart=False)
    case.look(6.0)
    case.add(6.1, "refused", 1, "scheduler", why=DISABLED)
    assert case.names() == ["restarted wrongly"]


@pytest.mark.parametrize("what", ["kill-switch", "mode"])
def test_nothing_is_restarted_while_all_is_off(case: Case, what: str) -> None:
    if what == "mode":
        case.add(0.1, "mode", mode="observe")
        case.add(0.2, "daemon", name="scheduler", what="start")
    suspended(case)
    if what == "kill-switch":
        case.add(5.1, "kill-switch", on=True)
        case.cycle(5.2)
    case.look(6.0)
    case.requeue(6.1)
    assert "restarted wrongly" in case.names()


def again(case: Case, at_s: float) -> None:
    """The job starts once more, is suspended and restarted."""
    case.start(at_s, cores=(2,))
    case.suspend(at_s + 0.5, ran_s=9)
    case.look(at_s + 0.6)
    case.requeue(at_s + 0.7)


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ({"max_moves": 1}, ["restarted too often"]),
        ({"max_moves": 2, "lost_core_hours_per_user_day": 20 / 3600}, ["budget overdrawn"]),
        ({"max_moves": 2}, []),
    ],
)
def test_moves_and_lost_work_have_limits(case: Case, rules: dict[str, Any], found: list[str]) -> None:
    suspended(case)
    case.restarts = rules
    case.look(6.0)
    case.requeue(6.1)
    again(case, 7.0)
    assert [name for name in case.names() if "restart" in name or "budget" in name] == found


# --- what a cycle leaves


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (lambda case: case.event(4.0, "hold", 1, "alice", {"hold": "user"}), True),
        (lambda case: case.edit(4.0, ("ReqNodeList",), nodes=("c2",)), True),
        (lambda case: case.edit(4.0, ("Comment",)), False),
    ],
)
def test_a_cycle_puts_right_what_the_table_says(case: Case, event, found: bool) -> None:
    case.submit()
    case.place(3.0)
    event(case)
    case.cycle(5.0)
    assert bool([name for name in case.names() if name == "left as it was"]) is found


def test_a_requeued_job_is_gated_anew(case: Case) -> None:
    case.submit()
    case.place(3.0)
    case.start(3.5)
    case.event(4.0, "requeue", 1, "alice", {"state": "PENDING", "restarts": 1})
    case.event(4.6, "waits", 1, "slurm", {})
    case.cycle(5.0)
    case.look(6.0)
    case.regate(6.1, admin_comment=f"sns:2 g={at(40)} r=1")
    case.cycle(7.0)
    assert case.names() == ["left as it was"]


@pytest.mark.parametrize(("at_s", "found"), [(12.0, ["left as it was"]), (8.0, [])])
def test_a_placement_that_slurm_does_not_start_is_taken_back(case: Case, at_s: float, found: list[str]) -> None:
    case.submit()
    case.place(3.0)
    case.cycle(at_s - 1.0)
    case.cycle(at_s)
    case.look(at_s + 0.5)
    case.regate(at_s + 0.6)
    assert case.names() == found


def test_a_lapsed_gate_is_renewed_and_before_anything_is_placed(case: Case) -> None:
    case.submit(gate_s=5.0)
    case.submit(2.2, job=2)
    case.place(8.0, 2)
    case.add(8.2, "cycle", by="scheduler", ok=True)
    case.start(8.4, 1)
    case.start(8.4, 2)
    assert case.names() == ["lapsed gate left", "left as it was"]


@pytest.mark.parametrize(("at_s", "found"), [(9.0, ["left as it was"]), (2.4, [])])
def test_a_gate_is_renewed_when_less_than_half_of_its_lease_is_left(case: Case, at_s: float, found: list[str]) -> None:
    case.submit(gate_s=22.0)
    case.cycle(at_s - 0.8)
    case.cycle(at_s)
    assert case.names()[-1:] == found


def test_the_kill_switch_frees_all(case: Case) -> None:
    case.submit()
    case.add(4.0, "kill-switch", on=True)
    case.add(4.5, "cycle", by="scheduler", ok=True)
    case.cycle(5.0)
    assert case.names() == ["left as it was"]


@pytest.mark.parametrize("what", ["kill-switch", "mode"])
def test_a_new_job_passes_while_all_is_off(case: Case, what: str) -> None:
    case.add(1.0, what, **({"on": True} if what == "kill-switch" else {"mode": "observe"}))
    case.submit()
    assert case.names() == ["gated while off"]


@pytest.mark.parametrize(("freed_s", "found"), [(17.0, []), (None, ["not freed"])])
def test_the_watchdog_frees_what_a_dead_scheduler_left(case: Case, freed_s: float | None, found: list[str]) -> None:
    case.beats_until_s = 4.0
    case.submit(gate_s=20.0)
    case.look(3.9)
    case.renew(4.0)
    if freed_s:
        case.look(freed_s - 0.1, "watchdog")
        case.free(freed_s, by="watchdog")
    assert case.names() == found


# --- the heartbeat and the end


@pytest.mark.parametrize(
    ("add", "found"),
    [
        (lambda case: case.add(5.0, "beat", by="scheduler", value=BEGIN_S + 60), ["heartbeat not honest"]),
        (lambda case: case.add(5.0, "beat", by="scheduler-2", value=BEGIN_S + 5), ["heartbeat not honest"]),
        (lambda case: case.add(5.0, "beat", by="world", value="60"), []),
    ],
)
def test_the_heartbeat_is_honest(case: Case, add, found: list[str]) -> None:
    add(case)
    assert case.names() == found


def test_a_clean_stop_leaves_no_job_gated_and_no_fresh_heartbeat(case: Case) -> None:
    case.beats_until_s = 4.0
    case.submit()
    case.look(4.2)
    case.add(4.5, "daemon", name="scheduler", what="stop")
    assert case.names()[:2] == ["heartbeat not honest", "left as it was"]


def test_no_job_is_lost(case: Case) -> None:
    case.submit(gate_s=None)
    case.slurm.jobs[1] = None  # so that the case makes none
    names = case.names
    del case.slurm.jobs[1]
    case.now.clear()
    assert names() == ["job lost"]


@pytest.mark.parametrize(("begin_s", "found"), [(at(3), ["waits for ever"]), (at(9999), [])])
def test_no_job_waits_for_ever(case: Case, begin_s: int, found: list[str]) -> None:
    case.end_s = 140.0
    case.submit(gate_s=None, begin_s=begin_s)
    assert case.names() == found


def test_the_store_forgets_jobs_that_slurm_has_forgotten(case: Case) -> None:
    case.store[9] = Try(9, 0)
    assert case.names() == ["tries kept"]


# --- partitions


def test_a_job_may_be_given_the_others_of_its_group_and_start_there(case: Case) -> None:
    case.submit()
    case.widen(2.5, "main", "old")
    case.place(3.0)
    case.start(3.5, partition="old")
    assert case.names() == []


@pytest.mark.parametrize("partitions", [("main", "other"), ("old", "main"), ("old",), ("main", "old", "other")])
def test_it_is_given_no_others_and_keeps_its_own_first(case: Case, partitions: tuple[str, ...]) -> None:
    case.submit()
    case.widen(2.5, *partitions)
    assert case.names() == ["partitions changed"]


def test_a_job_that_its_owner_has_moved_since_is_given_no_more(case: Case) -> None:
    case.submit()
    case.widen(2.5, "main", "old")
    case.edit(2.7, ("Partition",), partitions=("main",))
    case.widen(2.9, "main", "old")
    assert case.names() == ["partitions changed"]


def test_a_job_starts_in_a_partition_of_its_owners_or_of_their_group(case: Case) -> None:
    case.submit()
    case.edit(2.5, ("Partition",), partitions=("other",))
    case.place(3.0)
    case.start(3.5, partition="old")
    assert case.names() == ["wrong partition"]


# --- deliberate defects


def test_each_deliberate_defect_has_a_name_and_a_sentence_and_leaves_nothing_behind() -> None:
    before = violations(run(drawn(0)))
    assert len({each.name for each in MUTANTS}) == len(MUTANTS) >= 20
    for each in MUTANTS:
        assert each.sentence.endswith(".")
        with each.put_in():
            pass
    assert violations(run(drawn(0))) == before


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("requeue ignored", "left as it was"),
        ("gate beyond its lease", "gated too long"),
        ("nodes not in the record", "not in the mark"),
        ("free leaves the nodes", "left on the job"),
        ("partitions of no group", "partitions changed"),
        ("restart without opt in", "restarted wrongly"),
        ("restart sent twice", "restarted unseen"),
    ],
)
def test_a_deliberate_defect_is_found_by_some_schedule(name: str, promise: str) -> None:
    """Those that the first few schedules show; `python -m world mutants` tries all of them."""
    shown = shows(next(each for each in MUTANTS if each.name == name), range(300))
    assert shown is not None
    assert name_of(shown.sentence) == promise
