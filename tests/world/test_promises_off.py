"""Promises of the time in which we are dead or off: a small history breaks each, and one that is near keeps it."""

from collections.abc import Callable

import pytest

from world.hand_made import BEGIN_S, BOOSTED, Case


def dead(case: Case, held_s: float) -> list[str]:
    """The scheduler's last beat is at 4 s; the job is released, or not, at `held_s`."""
    case.beats_until_s, case.alive = 4, False
    case.submit()
    case.cycle(2.5, 1)
    case.add(4.5, "daemon", name="scheduler", what="crash")
    if held_s < case.end_s:
        case.add(held_s, "release", 1, "watchdog", admin=True, had_hold="user")
    case.shows(hold="" if held_s < case.end_s else "user")
    return case.names()


@pytest.mark.parametrize(("until_s", "found"), [(30, ["held too long"]), (24, ["held too long"]), (18, [])])
def test_a_job_that_is_held_after_the_watchdogs_time_is_found(case: Case, until_s: float, found: list[str]) -> None:
    assert dead(case, until_s) == found


HINDRANCES: dict[str, Callable[[Case], None]] = {
    "slurmctld": lambda case: case.add(5, "slurmctld", state="down"),
    "munge": lambda case: case.add(5, "munge", state="down"),
    "watchdog": lambda case: case.add(5, "daemon", name="watchdog", what="crash"),
    "frozen": lambda case: case.add(5, "daemon", name="watchdog", what="freeze"),
}


@pytest.mark.parametrize("what", HINDRANCES)
def test_a_watchdog_that_cannot_release_is_not_blamed(case: Case, what: str) -> None:
    HINDRANCES[what](case)
    assert dead(case, 99) == []


@pytest.mark.parametrize(
    ("extra", "looks_again", "found"),
    [("sns:1", False, []), ("sns:1", True, ["hold undone"]), ("sns:1 advised", False, ["hold undone"])],
)
def test_a_hold_between_the_end_of_slurms_own_and_our_release_leaves_no_trace(
    case: Case, extra: str, looks_again: bool, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see": our update of a job that Slurm holds as impossible releases it."""
    case.beats_until_s, case.alive = 4, False
    case.submit()
    case.place(3)
    case.add(3.5, "bad", 1, "slurm")
    if "advised" in extra:
        case.add(3.6, "update", 1, "alice", fields={"Extra": extra})
    case.seen(15, by="watchdog")
    case.add(15.1, "release", 1, "watchdog", admin=False, had_hold="bad")
    case.add(15.1, "unpin", 1, "watchdog", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    if looks_again:
        case.seen(15.2, by="watchdog")
    case.add(15.3, "hold", 1, "alice", admin=False, had="")
    case.add(15.4, "look", 1, "watchdog", is_check=False)
    case.add(15.5, "release", 1, "watchdog", admin=True, had_hold="user", extra="sns:1 advised")
    case.shows(extra="sns:1 advised")
    assert [name for name in case.names() if name != "lost job"] == found


def test_a_job_that_nobody_can_recognise_stays_held(case: Case) -> None:
    """CONTRIBUTING, "What we cannot see": its owner overwrote Extra before our first observation."""
    case.beats_until_s, case.alive = 4, False
    case.submit()
    case.add(2.1, "update", 1, "alice", fields={"Extra": "mine"})
    case.shows(hold="user", extra="mine")
    assert case.found() == []


@pytest.mark.parametrize(("nice", "is_found"), [("-60000", False), ("-100", True)])
def test_a_held_job_with_nodes_and_a_nice_value_of_ours_from_an_administrator_looks_like_one_that_its_owner_holds(
    case: Case, nice: str, is_found: bool
) -> None:
    case.beats_until_s = 4
    case.submit()
    case.add(2.1, "update", 1, "admin", fields={"Nice": nice, "ReqNodeList": "c1"})
    case.seen(3, 1)
    cleared = {"Nice": "0", "ReqNodeList": "", "TresPerNode": "", "Extra": "sns:1 advised"}
    case.add(3.1, "unpin", 1, "scheduler", fields=cleared)
    case.add(28, "cancel", 1, "alice")
    case.add(28, "end", 1, "slurm", how="cancelled")
    assert ("held too long" in case.names()) is is_found


@pytest.mark.parametrize(("recorded_s", "found"), [(20.0, []), (3.0, ["held too long"])])
def test_the_watchdog_knows_a_job_without_a_mark_from_its_first_record_on(
    case: Case, recorded_s: float, found: list[str]
) -> None:
    case.beats_until_s = 4
    case.submit()
    case.add(2.1, "update", 1, "alice", fields={"Extra": "mine"})
    case.add(recorded_s, "record", by="scheduler", saved=(1,), gone=())
    case.add(24, "release", 1, "watchdog", admin=True, had_hold="user")
    case.shows(extra="mine")
    assert case.names() == found


@pytest.mark.parametrize(
    ("extra", "recorded", "found"),
    [("mine", False, []), ("mine", True, ["waits for ever"]), (None, False, ["waits for ever"])],
)
def test_a_task_without_a_mark_that_was_split_off_just_before_its_array_was_released_looks_like_its_owners(
    case: Case, extra: str | None, recorded: bool, found: list[str]
) -> None:
    """Unless a record of its own says that we hold it, or its mark does."""
    case.submit(array=(0, 1, 2))
    case.cycle(3.0, 1)
    case.seen(4.0)
    case.add(4.01, "split", 1, "alice", tasks=(2,), ids=(2,))
    if extra is not None:
        case.add(4.01, "update", 2, "alice", fields={"Extra": extra})
    if recorded:
        case.add(4.02, "record", by="scheduler", saved=(2,), gone=())
    case.add(4.03, "look", 1, "scheduler", is_check=False)
    case.add(4.04, "release", 1, "scheduler", admin=True, had_hold="user", extra="sns:1 advised")
    case.seen(5.0)
    case.add(5.01, "record", by="scheduler", saved=(1, 2), gone=(), released=(1, 2))
    case.add(6, "cancel", 1, "alice")
    case.add(6, "end", 1, "slurm", how="cancelled")
    case.shows(job=2, extra=extra or "sns:1", hold="user", reason="JobHeldUser")
    case.end_s = 200.0
    assert case.names() == found


@pytest.mark.parametrize(
    ("extra", "is_seen", "found"),
    [
        ("mine", False, []),
        ("mine", True, ["held too long", "not restored"]),
        ("sns:1", False, ["held too long", "not restored"]),
    ],
)
def test_a_placement_stays_on_a_job_whose_owners_hold_only_our_nodes_show(
    case: Case, extra: str, is_seen: bool, found: list[str]
) -> None:
    """The job has no mark, and no whole cycle has seen the hold."""
    case.beats_until_s, case.alive, case.end_s = 4, False, 60.0
    case.submit()
    case.place(3)
    case.add(3.1, "hold", 1, "alice", admin=False, had="")
    case.add(3.2, "update", 1, "alice", fields={"Extra": extra})
    if is_seen:
        case.cycle(4, 1)
    case.shows(hold="user", required=("c1",), extra=extra)
    assert case.names() == found


def test_a_placement_is_left_on_no_job_while_we_are_dead(case: Case) -> None:
    case.beats_until_s, case.alive = 4, False
    case.submit()
    case.place(3)
    case.shows(required=("c1",), nice=BOOSTED)
    assert case.names() == ["held too long", "not restored", "not restored"]


@pytest.mark.parametrize(("value", "found"), [("rubbish", 1), (None, 1), (f"{BEGIN_S + 12:.0f}", 0)])
def test_a_heartbeat_of_no_sense_is_stale(case: Case, value: str | None, found: int) -> None:
    case.beats_until_s, case.alive = 11, False
    case.add(11.5, "beat", value=value)
    case.submit(12, begin_s=int(BEGIN_S) + 99)
    case.shows(begin_s=int(BEGIN_S) + 99, hold="user")
    case.end_s = 21
    assert case.names().count("held while off") == found


@pytest.mark.parametrize(("off_s", "found"), [(99, ["held while off"]), (4, [])])
def test_no_job_is_held_at_its_submission_while_the_kill_switch_is_on(case: Case, off_s: int, found: list) -> None:
    case.add(3, "kill-switch", on=True)
    case.add(off_s, "kill-switch", on=False)
    case.submit(5)
    case.ran(100)
    case.events = [event for event in case.events if event.at_s < 30 or event.kind != "kill-switch"]
    case.end_s = 130
    assert case.names() == found


def test_no_job_is_held_at_its_submission_in_another_mode(case: Case) -> None:
    case.add(3, "mode", mode="observe")
    case.submit(5)
    case.add(6, "cancel", 1, "alice")
    case.add(6, "end", 1, "slurm", how="cancelled")
    assert case.names() == ["held while off"]


@pytest.mark.parametrize(("on_s", "found"), [(1.5, ["held while off"]), (2.95, [])])
def test_a_cycle_that_begins_with_the_kill_switch_on_places_nothing(case: Case, on_s: float, found: list[str]) -> None:
    case.submit(1.2)
    case.cycle(2, 1)
    case.add(on_s, "kill-switch", on=True)
    case.ran(3)
    assert case.names() == found


@pytest.mark.parametrize(("on_s", "found"), [(2.5, ["held too long"]), (3.5, [])])
def test_a_cycle_with_the_kill_switch_on_releases_all(case: Case, on_s: float, found: list[str]) -> None:
    case.submit(1.2)
    case.cycle(2, 1)
    case.add(on_s, "kill-switch", on=True)
    case.cycle(3)
    case.cycle(4)
    case.add(4.5, "release", 1, "scheduler", admin=True, had_hold="user")
    case.start(5, pinned=False)
    case.add(8, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(("mode", "found"), [("observe", ["held too long"]), ("enforce", [])])
def test_a_scheduler_in_another_mode_releases_what_enforce_held(case: Case, mode: str, found: list[str]) -> None:
    case.submit(2, begin_s=int(BEGIN_S) + 900)
    case.cycle(2.5, 1)
    case.add(3, "mode", mode=mode)
    case.add(3.1, "daemon", name="scheduler", what="handover")
    case.add(3.2, "daemon", name="scheduler", what="start")
    case.seen(3.5)
    case.cycle(4.5, 1)
    case.shows(hold="user", begin_s=int(BEGIN_S) + 900)
    assert case.names() == found


@pytest.mark.parametrize(("pinned", "found"), [(True, []), (False, ["held too long"])])
def test_a_hold_that_may_be_its_owners_may_be_again_once_slurmctld_has_gone_back_to_it(
    case: Case, *, pinned: bool, found: list[str]
) -> None:
    """An owner gives a job that we hold the nodes of its last placement: it looks as if they held that."""
    unpinned = {"Nice": "0", "ReqNodeList": "", "TresPerNode": ""}
    case.submit(begin_s=int(BEGIN_S) + 900)
    case.place(3)
    case.seen(4, 1)
    case.add(4.1, "unpin", 1, "scheduler", fields=unpinned)
    case.add(4.2, "hold", 1, "scheduler", admin=False, had="")
    if pinned:
        case.add(4.3, "update", 1, "alice", fields={"ReqNodeList": "c1"})
        case.seen(5, 1)
        case.add(5.1, "unpin", 1, "scheduler", fields={**unpinned, "Extra": "sns:1 advised"})
        case.add(5.2, "cycle", by="scheduler", ok=True)
    case.add(6, "saved")
    case.add(7, "release", 1, "alice", admin=False, had_hold="user")
    case.seen(7.2, 1)
    if not pinned:
        case.add(7.3, "update", 1, "scheduler", fields={"Extra": "sns:1 advised"})
    case.add(7.4, "cycle", by="scheduler", ok=True)
    case.cycle(7.6, 1)
    case.add(8, "reverted", by="slurm", jobs=(1,))
    case.add(9, "mode", mode="observe")
    case.add(9.1, "daemon", name="scheduler", what="handover")
    case.add(9.2, "daemon", name="scheduler", what="start")
    case.cycle(10, 1)
    case.shows(hold="user", extra="sns:1 advised" if pinned else "sns:1", begin_s=int(BEGIN_S) + 900)
    assert case.names() == found


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"Nice": str(BOOSTED), "ReqNodeList": "c2"}, []),
        ({"Nice": str(BOOSTED)}, ["held too long"]),
        ({"Nice": "-5", "ReqNodeList": "c2"}, ["held too long"]),
    ],
)
def test_a_held_job_with_nodes_and_the_nice_value_of_a_placement_looks_like_one_that_slurmctld_went_back_to(
    case: Case, fields: dict[str, str], found: list[str]
) -> None:
    case.submit()
    case.cycle(3.0, 1)
    case.add(3.5, "update", 1, "admin", fields=fields)
    case.add(4.0, "mode", mode="observe")
    case.add(4.0, "daemon", name="scheduler", what="start")
    case.cycle(5.0, 1)
    assert [name for name in case.names() if name == "held too long"] == found


@pytest.mark.parametrize(("at_s", "found"), [(7.0, []), (8.5, ["held too long"])])
def test_a_job_that_was_placed_while_it_completes_is_taken_back_when_it_waits(
    case: Case, at_s: float, found: list[str]
) -> None:
    case.submit()
    case.place(3.0)
    case.start(3.5)
    case.add(6.5, "requeue", 1, "admin")
    case.add(6.5, "end", 1, "slurm", how="requeued")
    case.place(6.6, had="")
    case.add(6.7, "kill-switch", on=True)
    case.cycle(6.8)
    case.cycle(at_s)
    assert [name for name in case.names() if name == "held too long"] == found


@pytest.mark.parametrize(("by", "found"), [("watchdog", []), ("scheduler", ["held too long"])])
def test_the_watchdogs_time_begins_anew_where_an_answer_to_it_is_lost(case: Case, by: str, found: list[str]) -> None:
    case.beats_until_s = 3
    case.submit()
    for at_s in (9.0, 15.0):
        case.add(at_s, "lost", 1, by, call="load")
    case.add(22.0, "release", 1, "watchdog", admin=True, had_hold="user", extra="sns:1 advised")
    assert [name for name in case.names() if name == "held too long"] == found


@pytest.mark.parametrize(("released_s", "found"), [(12.0, []), (4.0, ["held too long"])])
def test_what_is_left_of_ours_on_a_job_that_slurm_holds_counts_from_its_release(
    case: Case, released_s: float, found: list[str]
) -> None:
    case.beats_until_s = 3
    case.submit()
    case.place(2.5)
    case.add(2.6, "update", 1, "alice", fields={"Extra": "sns:1 advised", "ReqNodeList": "c2"})
    case.add(2.7, "bad", 1, "slurm")
    case.add(released_s, "release", 1, "alice", admin=False, had_hold="bad")
    if released_s > 10:
        case.add(13.0, "bad", 1, "slurm")
    assert [name for name in case.names() if name == "held too long"] == found
