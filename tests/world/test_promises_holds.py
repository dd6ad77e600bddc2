"""Promises about whose a hold is and what stays Slurm's: a small history breaks each, and one that is near keeps it."""

import pytest

from world.hand_made import BEGIN_S, BOOSTED, Case


@pytest.mark.parametrize("by", ["alice", "admin"])
@pytest.mark.parametrize("what", ["place", "release"])
def test_a_hold_by_its_owner_or_an_administrator_is_undone_by_nobody_else(case: Case, by: str, what: str) -> None:
    case.submit(verdict="pass", extra="")
    case.add(3, "hold", 1, by, admin=by == "admin", had="")
    if what == "place":
        case.place(5)
    else:
        case.add(5, "release", 1, "watchdog", admin=True, had_hold="user")
    case.add(6, "cancel", 1, "alice")
    case.add(6, "end", 1, "slurm", how="cancelled")
    assert case.names()[0] == "hold undone"


def test_an_owners_hold_of_a_job_that_we_hold_already_leaves_no_trace(case: Case) -> None:
    case.submit()
    case.add(2.5, "hold", 1, "alice", admin=False, had="user")
    case.ran(3)
    assert case.found() == []


def test_an_administrators_hold_of_a_job_that_we_hold_is_kept(case: Case) -> None:
    case.submit()
    case.add(2.5, "hold", 1, "admin", admin=True, had="user")
    case.place(3, had="admin")
    case.start(3.5)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == ["hold undone"]


@pytest.mark.parametrize(("checked", "found"), [(True, []), (False, ["hold undone"])])
def test_a_hold_between_our_check_and_our_placement_is_undone(case: Case, checked: bool, found: list[str]) -> None:
    """The window of a millisecond that CONTRIBUTING names, and nothing longer."""
    case.submit()
    case.add(2.999, "hold", 1, "admin", admin=True, had="user")
    case.place(3, had="admin", checked=checked)
    case.start(3.5)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == found


def test_an_administrators_hold_is_not_overwritten_by_ours(case: Case) -> None:
    case.submit()
    case.place(3)
    case.add(4, "hold", 1, "admin", admin=True, had="")
    case.seen(4.9, 1)
    case.add(5, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    case.add(5.1, "hold", 1, "scheduler", admin=False, had="admin")
    case.shows(hold="user")
    assert case.names() == ["hold undone"]


@pytest.mark.parametrize(("how", "found"), [("cancelled", []), ("completed", ["hold undone"])])
def test_a_hold_of_a_job_that_can_never_start_may_be_undone(case: Case, how: str, found: list[str]) -> None:
    """Once a dependency has failed, Slurm shows our own hold as an administrator's."""
    case.submit(job=1)
    case.submit(job=2, dependency=("afterok", (1,)))
    case.ran(3, 1, how)
    case.add(8, "hold", 2, "admin", admin=True, had="user")
    case.seen(9, 2)
    case.add(10, "release", 2, "scheduler", admin=True, had_hold="admin")
    case.shows(2, extra="sns:1 advised", dependency=("afterok", (1,)), dependency_state="failed")
    assert case.names() == found


@pytest.mark.parametrize(("cycles", "found"), [(0, []), (1, ["wrong nodes"])])
def test_a_node_list_on_a_requeued_job_with_a_mark_that_nobody_has_seen_before_is_taken_for_ours(
    case: Case, cycles: int, found: list[str]
) -> None:
    """CONTRIBUTING, "How we know our own placement": without a record the restart count shows it."""
    case.submit(verdict="pass", extra="sns:1", required=("c2",))
    for _ in range(cycles):
        case.cycle(2.2, 1)
    case.start(2.5, 1, "c2")
    case.add(4, "requeue", 1, "admin")
    case.add(4, "end", 1, "slurm", how="requeued")
    case.seen(6, by="watchdog")
    case.add(6.1, "unpin", 1, "watchdog", fields={"Nice": "0", "ReqNodeList": "", "Extra": "sns:1 advised"})
    case.start(7, 1, "c1")
    case.add(9, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(
    ("recorded_s", "listed_s", "found"),
    [(5, 2.2, []), (2.1, 2.2, ["wrong nodes"]), (5, 5.5, ["wrong nodes"])],
    ids=["first seen requeued", "seen before", "listed since"],
)
def test_a_node_list_on_record_from_the_first_look_at_a_requeued_job_is_taken_for_ours(
    case: Case, recorded_s: float, listed_s: float, found: list[str]
) -> None:
    """The same, once a cycle has seen the job with that list: it has a record by then."""
    case.submit()
    case.cycle(recorded_s, 1)
    case.add(listed_s, "update", 1, "alice", fields={"ReqNodeList": "c2"})
    case.add(2.3, "release", 1, "alice", admin=False, had_hold="user")
    case.start(2.5, 1, "c2")
    case.add(4, "requeue", 1, "admin")
    case.add(4, "end", 1, "slurm", how="requeued")
    case.add(5.8, "hold", 1, "alice", admin=False, had="")
    case.seen(6, 1)
    case.add(6.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "Extra": "sns:1 advised"})
    case.add(6.2, "release", 1, "alice", admin=False, had_hold="user")
    case.start(7, 1, "c1")
    case.add(9, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(("nodes", "found"), [(("c2",), []), ((), ["taken again"])])
def test_a_job_with_a_mark_and_a_node_list_that_we_have_only_seen_run_is_held_once_it_is_requeued(
    case: Case, nodes: tuple[str, ...], found: list[str]
) -> None:
    """CONTRIBUTING, "How we know our own placement"."""
    case.submit(verdict="pass", extra="sns:1", required=nodes)
    case.start(2.5, 1, "c2", pinned=bool(nodes))
    case.cycle(3)
    case.add(4, "requeue", 1, "admin")
    case.add(4, "end", 1, "slurm", how="requeued")
    case.seen(6)
    case.add(6.01, "record", by="scheduler", saved=(1,), gone=(), placing={1: nodes})
    case.add(6.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    case.add(6.2, "hold", 1, "scheduler", admin=False, had="")
    case.add(6.3, "cycle", by="scheduler", ok=True)
    case.shows(hold="user")
    assert case.names() == found


@pytest.mark.parametrize(("state", "found"), [("gone", []), ("up", ["not restored", "wrong nodes"])])
def test_a_node_list_on_a_requeued_job_whose_record_is_lost_is_taken_for_ours(
    case: Case, state: str, found: list[str]
) -> None:
    """The same: nobody knows any more where the job was placed."""
    case.submit()
    case.place(3)
    case.start(3.5)
    case.add(5, "requeue", 1, "admin")
    case.add(5, "end", 1, "slurm", how="requeued")
    case.add(5.5, "store", state=state)
    case.add(6.5, "update", 1, "alice", fields={"ReqNodeList": "c2"})
    case.seen(8, by="watchdog")
    case.add(8.1, "unpin", 1, "watchdog", fields={"Nice": "0", "ReqNodeList": "", "Extra": "sns:1 advised"})
    case.start(9, 1, "c1")
    case.add(11, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(("by", "found"), [("watchdog", []), ("scheduler", ["taken again"])])
def test_a_job_given_to_slurm_stays_so_without_our_word_in_its_mark_for_whoever_knows_it(
    case: Case, by: str, found: list[str]
) -> None:
    """The scheduler knows what it gave away; what the watchdog gave away only the mark says."""
    case.submit()
    case.place(3)
    case.add(3.1, "update", 1, "admin", fields={"Nice": "0"})
    case.seen(4, 1, by=by)
    case.add(4.1, "unpin", 1, by, fields={"Nice": "0", "ReqNodeList": "", "Extra": "sns:1 advised"})
    case.add(4.2, "update", 1, "alice", fields={"Extra": "sns:1"})
    case.seen(5, 1)
    case.add(5.1, "hold", 1, "scheduler", admin=False, had="")
    case.shows(hold="user", reason="JobHeldUser")
    assert case.names() == found


@pytest.mark.parametrize(("released", "found"), [((), []), ((1,), ["hold undone"])])
def test_a_hold_after_our_word_was_taken_out_of_the_mark_is_its_owners_only_by_a_record(
    case: Case, released: tuple[int, ...], found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit()
    case.seen(3, by="watchdog")
    case.add(3.1, "release", 1, "watchdog", admin=True, had_hold="user", extra="sns:1 advised")
    case.add(3.2, "record", by="scheduler", saved=(1,), gone=(), released=released)
    case.add(3.3, "update", 1, "alice", fields={"Extra": "sns:1"})
    case.add(3.4, "hold", 1, "alice", admin=False, had="")
    case.add(4, "look", 0, "watchdog", is_check=False)
    case.add(4.1, "release", 1, "watchdog", admin=True, had_hold="user", extra="sns:1 advised")
    case.start(5)
    case.add(8, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(
    ("split_s", "held_s", "found"),
    [
        (4.05, 4.06, []),
        (4.05, 4.5, []),
        (4.05, 5.5, ["taken again"]),
        (4.15, 4.16, ["hold undone", "taken again"]),
    ],
)
def test_a_task_split_off_just_before_we_write_the_word_into_its_arrays_mark_looks_split_off_before_its_release(
    case: Case, split_s: float, held_s: float, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit(array=(0, 1, 2), begin_s=int(BEGIN_S) + 900)
    case.cycle(2.5, 1)
    case.add(3, "release", 1, "alice", admin=False, had_hold="user")
    case.seen(4, 1)
    case.add(4.1, "update", 1, "scheduler", fields={"Extra": "sns:1 advised"})
    case.add(split_s, "split", 1, "alice", tasks=(0,), ids=(2,))
    case.add(held_s, "hold", 2, "alice", admin=False, had="")
    case.add(4.2, "cycle", by="scheduler", ok=True)
    case.cycle(5, 1, 2)
    case.place(6, 2)
    case.shows(begin_s=int(BEGIN_S) + 900)
    case.shows(2, begin_s=int(BEGIN_S) + 900)
    assert sorted(set(case.names())) == found


@pytest.mark.parametrize(("extra", "found"), [("sns:1", []), ("sns:1 advised", ["waits for ever"])])
def test_a_task_split_off_before_its_array_was_released_may_wait_if_people_take_our_word_out_of_the_arrays_mark(
    case: Case, extra: str, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit(array=(0, 1, 2))
    case.add(3, "split", 1, "alice", tasks=(0,), ids=(2,))
    case.seen(4, 1)
    case.add(4.1, "release", 1, "scheduler", admin=True, had_hold="user", extra="sns:1 advised")
    case.add(4.2, "update", 1, "admin", fields={"Extra": extra})
    case.add(5, "cancel", 1, "alice")
    case.add(5, "end", 1, "slurm", how="cancelled")
    case.shows(2, hold="user", reason="JobHeldUser")
    case.end_s = 200.0
    assert case.names() == found


@pytest.mark.parametrize(("changed_s", "is_left"), [(4.95, True), (3.0, False)])
def test_a_node_list_that_changes_while_we_clear_it_leaves_open_whose_hold_it_is(
    case: Case, changed_s: float, is_left: bool
) -> None:
    """We have seen the list of before, which was ours."""
    case.submit()
    case.add(2.5, "update", 1, "alice", fields={"ReqNodeList": "c1"})
    case.add(changed_s, "update", 1, "alice", fields={"ReqNodeList": "c2"})
    case.seen(4.9, 1)
    case.add(5, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "Extra": "sns:1 advised"})
    case.shows(hold="user", reason="JobHeldUser", extra="sns:1 advised")
    case.end_s = 200.0
    assert ("waits for ever" not in case.names()) is is_left


def taken_back_and_placed_again(case: Case) -> None:
    """Job 1, placed before second 8, loses its placement, and runs by another one until second 16."""
    case.seen(8, 1)
    case.add(8.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "Extra": "sns:1"})
    case.add(8.2, "hold", 1, "scheduler", admin=False, had="")
    case.place(12)
    case.start(13)
    case.add(16, "end", 1, "slurm", how="completed")


@pytest.mark.parametrize(("window", "found"), [(True, []), (False, ["taken again", "extra overwritten"])])
def test_a_mark_that_a_placement_has_replaced_in_the_window_is_ours_again(
    case: Case, window: bool, found: list[str]
) -> None:
    case.submit()
    case.add(2.999 if window else 2.5, "update", 1, "alice", fields={"Extra": "mine"})
    case.place(3, extra="sns:1 nice=5")
    taken_back_and_placed_again(case)
    assert case.names() == found


@pytest.mark.parametrize(("at_s", "found"), [(8.05, []), (7.5, ["taken again", "extra overwritten"])])
def test_a_mark_that_taking_a_placement_back_has_replaced_in_the_window_is_ours_again(
    case: Case, at_s: float, found: list[str]
) -> None:
    case.submit()
    case.place(3, extra="sns:1 grant=1:abc")
    case.add(at_s, "update", 1, "alice", fields={"Extra": "mine"})
    taken_back_and_placed_again(case)
    assert sorted(case.names()) == sorted(found)


def test_a_job_that_its_owner_has_marked_is_ours_to_place(case: Case) -> None:
    """README: an owner who writes the mark has the job planned like any other."""
    case.submit(held=True, verdict="pass")
    case.add(3, "update", 1, "alice", fields={"Extra": "sns:1"})
    case.ran(4)
    assert case.found() == []


@pytest.mark.parametrize(
    ("extra", "recorded", "then", "found"),
    [
        ("sns:1", (1,), "", []),
        ("sns:1", (1,), "placed", []),
        ("sns:1", (1,), "placed and held", ["hold undone"]),
        ("sns:1", (1,), "given to Slurm", ["hold undone"]),
        ("sns:1", (), "", ["hold undone"]),
        ("sns:1 advised", (1,), "", ["hold undone"]),
        ("mine", (1,), "", ["hold undone"]),
    ],
)
def test_a_mark_that_its_owner_had_written_and_that_slurmctld_has_lost_looks_overwritten(
    case: Case, extra: str, recorded: tuple[int, ...], then: str, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit(held=True, verdict="pass")
    case.add(2.5, "saved")
    case.add(3, "update", 1, "alice", fields={"Extra": extra})
    case.cycle(3.5, *recorded)
    if then.startswith("placed"):
        case.place(4)
    if then == "placed and held":
        case.add(4.2, "hold", 1, "alice", admin=False, had="")
    if then == "given to Slurm":
        case.add(4, "release", 1, "scheduler", admin=True, had_hold="user", extra="sns:1 advised")
    case.cycle(5, *recorded)
    case.add(6, "reverted", by="slurm", jobs=(1,))
    case.seen(7, 1)
    case.add(7.1, "release", 1, "scheduler", admin=True, had_hold="user")
    case.start(8)
    case.add(11, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(
    ("then", "found"),
    [("", False), ("not seen", True), ("started anew", True)],
)
def test_a_lost_mark_looks_overwritten_to_a_scheduler_whose_record_was_not_saved(
    case: Case, then: str, *, found: bool
) -> None:
    case.submit(held=True, verdict="pass")
    case.add(2.5, "saved")
    case.add(3, "update", 1, "alice", fields={"Extra": "sns:1"})
    if then != "not seen":
        case.seen(3.5)
    if then == "started anew":
        case.add(4, "daemon", name="scheduler", what="crash")
        case.add(4.5, "daemon", name="scheduler", what="start")
    case.add(6, "reverted", by="slurm", jobs=(1,))
    case.seen(7)
    case.add(7.1, "release", 1, "scheduler", admin=True, had_hold="user")
    case.start(8)
    case.add(11, "end", 1, "slurm", how="completed")
    assert ("hold undone" in case.names()) == found


@pytest.mark.parametrize(("lost", "found"), [(True, []), (False, ["hold undone"])])
def test_a_placement_without_our_nice_value_and_our_record_looks_like_its_owners(
    case: Case, lost: bool, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit()
    case.place(3)
    case.add(3.1, "release", 1, "admin", admin=True, had_hold="", was_paused=False)
    case.add(3.2, "hold", 1, "alice", admin=False, had="")
    if lost:
        case.add(4, "store", state="gone")
    case.seen(5, by="watchdog")
    case.add(5.1, "release", 1, "watchdog", admin=True, had_hold="user")
    case.start(6)
    case.add(7, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(("cycles", "found"), [(2, ["taken again"]), (0, [])])
def test_a_job_that_its_owner_released_stays_slurms(case: Case, cycles: int, found: list[str]) -> None:
    """Unless nobody has seen it released."""
    case.released(cycles)
    case.add(9, "hold", 1, "scheduler", admin=False, had="")
    case.slurm.jobs[1].hold = "user"
    assert case.names() == found


def test_a_job_that_we_gave_to_slurm_stays_slurms(case: Case) -> None:
    case.submit()
    case.add(3, "release", 1, "scheduler", admin=True, had_hold="user")
    case.place(5, had="")
    case.start(6)
    case.add(7, "end", 1, "slurm", how="completed")
    assert case.names() == ["taken again", "placed though not held"]


def test_what_was_slurms_is_not_known_any_more_when_the_store_is_lost(case: Case) -> None:
    case.released(2)
    case.add(7, "store", state="gone")
    case.add(9, "hold", 1, "scheduler", admin=False, had="")
    case.slurm.jobs[1].hold = "user"
    assert case.found() == []


def test_a_job_that_is_no_longer_held_is_not_placed(case: Case) -> None:
    case.submit()
    case.add(2.5, "release", 1, "alice", admin=False, had_hold="user")
    case.place(3, had="")
    case.start(3.5)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == ["placed though not held"]


def test_a_job_whose_mark_its_owner_has_overwritten_is_not_placed(case: Case) -> None:
    case.submit()
    case.add(2.5, "update", 1, "alice", fields={"Extra": "mine"})
    case.ran(3)
    assert case.names() == ["taken again"]


def test_a_hold_after_an_administrators_that_nobody_has_seen_leaves_no_trace_without_a_mark_either(case: Case) -> None:
    case.submit()
    case.cycle(2.2, 1)
    case.add(2.3, "hold", 1, "admin", admin=True, had="user")
    case.add(2.4, "update", 1, "alice", fields={"Extra": "mine"})
    case.add(2.5, "release", 1, "admin", admin=True, had_hold="admin")
    case.add(2.6, "hold", 1, "alice", admin=False, had="")
    case.seen(3, 1)
    case.add(3.1, "release", 1, "scheduler", admin=True, had_hold="user")
    case.start(3.5)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.found() == []


def test_a_release_and_a_hold_that_nobody_has_seen_leave_no_trace(case: Case) -> None:
    case.submit()
    case.add(2.4, "release", 1, "alice", admin=False, had_hold="user")
    case.add(2.6, "hold", 1, "alice", admin=False, had="")
    case.ran(3)
    assert case.found() == []


@pytest.mark.parametrize(
    ("by", "cycles", "found"),
    [("alice", 0, []), ("alice", 2, ["hold not verified", "taken again"]), ("watchdog", 0, ["taken again"])],
)
def test_a_job_that_its_owner_releases_after_its_placement_was_taken_back_is_held_once_more(
    case: Case, by: str, cycles: int, found: list[str]
) -> None:
    """CONTRIBUTING, "Verifying our hold": in the first observation only, and not if we have released it."""
    case.submit(begin_s=int(BEGIN_S) + 900)
    case.place(3.0)
    case.add(4, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    case.add(4.1, "hold", 1, "scheduler", admin=False, had="")
    case.add(4.5, "release", 1, by, admin=by == "watchdog", had_hold="user")
    for at in range(cycles):
        case.cycle(5 + at, 1)
    case.seen(8, 1)
    case.add(8.1, "hold", 1, "scheduler", admin=False, had="")
    case.shows(begin_s=int(BEGIN_S) + 900, hold="user")
    assert case.names() == found


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("left", ["hold not verified"]),
        ("held once more", []),
        ("by a new scheduler", []),
        ("disabled", []),
        ("released just before its placement", []),  # the mark says so still
    ],
)
def test_a_hold_that_is_not_in_force_is_set_once_more(case: Case, how: str, found: list[str]) -> None:
    case.submit(begin_s=int(BEGIN_S) + 900)
    if how == "released just before its placement":
        case.add(2.999, "release", 1, "watchdog", admin=True, had_hold="user", extra="sns:1 advised")
    case.place(3.0)
    case.seen(3.9, 1)
    case.add(4, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    if how == "by a new scheduler":
        case.add(4.2, "daemon", name="scheduler", what="crash")
        case.add(4.3, "daemon", name="scheduler", what="start")
    if how == "disabled":
        case.add(4.2, "kill-switch", on=True)
    case.seen(5, 1)
    if how == "held once more":
        case.add(5.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    case.add(5.2, "cycle", by="scheduler", ok=True)
    case.cycle(6.2, 1)
    case.shows(begin_s=int(BEGIN_S) + 900)
    assert case.names() == found


@pytest.mark.parametrize(
    ("hold_s", "extra", "found"),
    [(4.1, None, []), (4.1, "sns:1 advised", ["taken again"] * 2), (3.8, None, ["taken again"] * 2)],
)
def test_a_hold_that_is_taken_back_because_the_job_had_started_gives_nothing_to_slurm(
    case: Case, hold_s: float, extra: str | None, found: list[str]
) -> None:
    """It was requeued in that moment."""
    case.submit()
    case.place(3.0)
    case.seen(3.9, 1)
    case.add(4, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    case.add(hold_s, "hold", 1, "scheduler", admin=False, had="")
    case.add(4.2, "release", 1, "scheduler", admin=True, had_hold="user", extra=extra)
    case.seen(5, 1)
    case.add(5.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    case.add(5.2, "hold", 1, "scheduler", admin=False, had="")
    case.ran(6)
    assert case.names() == found


@pytest.mark.parametrize(("was_requeued", "found"), [(True, []), (False, ["hold not verified"])])
def test_a_hold_of_a_job_that_was_cancelled_and_requeued_may_have_been_set_once_more_already(
    case: Case, was_requeued: bool, found: list[str]
) -> None:
    """A job that was cancelled while it waited is not completing when it is requeued: the next look shows it free."""
    case.submit(begin_s=int(BEGIN_S) + 900)
    case.place(3.0)
    case.seen(3.9, 1)
    case.add(4, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    case.add(4.1, "hold", 1, "scheduler", admin=False, had="")
    if was_requeued:
        case.add(4.2, "release", 1, "admin", admin=True, had_hold="user")
        case.add(4.3, "end", 1, "slurm", how="cancelled")
        case.add(4.4, "requeue", 1, "alice")
        case.seen(5, 1)
        case.add(5.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
        case.add(5.2, "hold", 1, "scheduler", admin=False, had="")
    case.add(5.5, "release", 1, "admin", admin=True, had_hold="user")
    case.cycle(6, 1)
    case.shows(begin_s=int(BEGIN_S) + 900)
    assert case.names() == found


@pytest.mark.parametrize(("given", "found"), [(False, []), (True, ["taken again"])])
def test_who_takes_the_word_out_of_the_mark_has_a_job_that_is_planned_unless_we_have_given_it_away(
    case: Case, given: bool, found: list[str]
) -> None:
    case.submit(2.0, extra="sns:1")
    if given:
        case.add(2.1, "release", 1, "scheduler", admin=True, had_hold="user")
    else:
        case.add(2.1, "update", 1, "alice", fields={"Extra": "sns:1 advised"})
    case.seen(2.4)
    case.add(2.5, "update", 1, "alice", fields={"Extra": "sns:1"})
    case.add(2.6, "cycle", by="scheduler", ok=True)
    case.ran(3)
    assert case.names() == found


@pytest.mark.parametrize(
    ("looked_s", "found"), [(4.2, []), (4.7, ["hold undone", "taken again"])], ids=["before both", "in between"]
)
def test_who_takes_the_word_out_of_the_mark_of_a_free_job_and_holds_it_before_we_look_has_a_job_that_is_planned(
    case: Case, looked_s: float, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit()
    case.add(3, "release", 1, "alice", admin=False, had_hold="user")
    case.seen(3.5, 1)
    case.add(3.6, "update", 1, "scheduler", fields={"Extra": "sns:1 advised"})
    case.add(3.7, "cycle", by="scheduler", ok=True)
    case.cycle(looked_s)
    case.add(4.5, "update", 1, "alice", fields={"Extra": "sns:1"})
    case.add(4.9, "hold", 1, "alice", admin=False, had="")
    case.ran(6)
    assert case.names() == found


def test_a_task_of_a_requeued_array_has_another_begin_time(case: Case) -> None:
    case.submit(begin_s=int(BEGIN_S) + 20, array=(0, 1), verdict="pass")
    case.add(2.1, "cancel", 1, "alice")
    case.add(2.1, "end", 1, "slurm", how="cancelled")
    case.add(2.2, "requeue", 1, "alice")
    case.add(2.3, "split", 1, "slurm", tasks=(0,), ids=(2,))
    for job in (1, 2):
        case.start(3, job)
        case.add(6, "end", job, "slurm", how="completed")
    assert case.found() == []


def test_a_mark_that_people_write_on_a_running_job_makes_it_slurms(case: Case) -> None:
    """CONTRIBUTING, "The state table": it looks like one that its owner released before we saw it."""
    case.submit(verdict="pass", may_restart=True)
    case.start(3)
    case.add(4, "update", 1, "alice", fields={"Extra": "sns:1"})
    case.cycle(5)
    case.add(5.01, "record", by="scheduler", saved=(1,), gone=(), released=(1,))
    case.add(6, "requeue", 1, "alice")
    case.add(6, "end", 1, "slurm", how="requeued")
    case.add(7.5, "hold", 1, "alice", admin=False, had="")
    case.place(9)
    case.start(9.5)
    case.add(12, "end", 1, "slurm", how="completed")
    assert case.names() == ["hold undone", "taken again"]


@pytest.mark.parametrize("extra", ["sns:1", "sns:1 exclusive"])
def test_a_job_that_was_given_to_slurm_says_so_in_its_mark_and_nothing_else(case: Case, extra: str) -> None:
    case.submit(extra="sns:1")
    case.place(3)
    case.seen(3.9, by="watchdog")
    case.add(4, "unpin", 1, "watchdog", fields={"Nice": "0", "ReqNodeList": "", "Extra": f"{extra} advised"})
    case.start(5, pinned=False)
    case.add(9, "end", 1, "slurm", how="completed")
    assert case.names() == ["extra overwritten"] * (extra != "sns:1")


def test_a_job_that_was_given_to_slurm_is_not_held_again_though_the_store_is_lost(case: Case) -> None:
    case.submit(begin_s=int(BEGIN_S) + 900)
    case.add(3, "release", 1, "watchdog", admin=True, had_hold="user")
    case.add(4, "store", state="gone")
    case.add(5, "hold", 1, "scheduler", admin=False, had="")
    case.shows(begin_s=int(BEGIN_S) + 900, hold="user", extra="sns:1 advised")
    assert case.names() == ["taken again"]


@pytest.mark.parametrize(
    ("lost", "extra", "recorded", "found"),
    [
        (True, "", False, []),
        (False, "", False, ["hold undone"]),
        (True, "sns:1", False, ["hold undone"]),  # the mark says `advised` then
        (True, "", True, ["hold undone"]),
    ],
)
def test_a_hold_after_a_release_whose_answer_was_lost_leaves_no_trace_on_a_job_without_a_mark(
    case: Case, lost: bool, extra: str, recorded: bool, found: list[str]
) -> None:
    case.submit()
    case.cycle(3.0, 1)
    case.add(3.5, "update", 1, "alice", fields={"Extra": extra})
    case.seen(4.0, 1)
    case.add(4.01, "look", 1, "scheduler", is_check=False)
    case.add(4.02, "release", 1, "scheduler", admin=True, had_hold="user", extra=f"{extra} advised" if extra else None)
    if lost:
        case.add(4.021, "lost", 1, "scheduler", call="release")
    if recorded:
        case.add(4.03, "record", by="scheduler", saved=(1,), gone=(), released=(1,))
    case.add(4.04, "hold", 1, "alice", admin=False, had="")
    case.seen(5.0)
    case.add(5.01, "look", 1, "scheduler", is_check=False)
    case.add(5.02, "release", 1, "scheduler", admin=True, had_hold="user")
    case.start(6.0)
    case.add(9.0, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(
    ("by", "extra", "found"),
    [
        ("watchdog", "mine", []),
        ("watchdog", "sns:1", []),
        ("watchdog", None, ["hold undone"]),
        ("scheduler", "mine", ["hold undone"]),  # which remembers what it gave
    ],
)
def test_a_hold_after_our_mark_was_overwritten_leaves_no_trace_if_only_the_mark_said_that_the_job_is_slurms(
    case: Case, by: str, extra: str | None, found: list[str]
) -> None:
    case.submit()
    case.cycle(3.0, 1)
    case.add(4.0, "look", by=by, is_check=False)
    case.add(4.01, "look", 1, by, is_check=False)
    case.add(4.02, "release", 1, by, admin=True, had_hold="user", extra="sns:1 advised")
    if extra is not None:
        case.add(4.03, "update", 1, "alice", fields={"Extra": extra})
    case.add(4.04, "hold", 1, "alice", admin=False, had="")
    case.add(5.0, "look", by=by, is_check=False)
    case.add(5.01, "look", 1, by, is_check=False)
    case.add(5.02, "release", 1, by, admin=True, had_hold="user")
    case.start(6.0)
    case.add(9.0, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize("cleared", [False, True])
@pytest.mark.parametrize(("read_s", "found"), [(8.01, set()), (8.025, {"taken again"})])
def test_the_watchdogs_word_is_lost_where_the_scheduler_has_just_read_the_mark(
    case: Case, read_s: float, cleared: bool, found: set[str]
) -> None:
    case.submit()
    case.place(3.0)
    case.add(7.0, "look", by="watchdog", is_check=False)
    case.seen(8.0, 1)
    case.add(read_s, "look", 1, "scheduler", is_check=False)
    clears = {"Nice": "0", "ReqNodeList": "", "TresPerNode": ""}
    case.add(8.02, "unpin", 1, "watchdog", fields={**clears, "Extra": "sns:1 advised"})
    if cleared:
        case.add(8.03, "update", 1, "alice", fields={"Extra": ""})
    case.add(8.04, "unpin", 1, "scheduler", fields={**clears, "Extra": "sns:1"})
    case.add(8.05, "look", 1, "scheduler", is_check=False)
    case.add(8.06, "hold", 1, "scheduler", admin=False, had="")
    case.ran(9.0)
    assert set(case.names()) == found


def test_a_job_that_its_owner_marks_as_slurms_stays_held_as_it_is(case: Case) -> None:
    case.beats_until_s, case.alive = 4, False
    case.submit()
    case.add(3, "update", 1, "alice", fields={"Extra": "sns:1 advised"})
    case.shows(hold="user", extra="sns:1 advised")
    assert case.found() == []


@pytest.mark.parametrize(
    ("arrays", "tasks", "found"),
    [
        ("sns:1", "", []),
        ("sns:1", "sns:1 advised", ["hold undone"]),
        ("", "", ["hold undone"]),
    ],
)
def test_a_task_split_off_before_its_owner_wrote_a_mark_into_its_held_array_looks_overwritten(
    case: Case, arrays: str, tasks: str, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit(held=True, verdict="pass", array=(0, 1))
    case.add(2.5, "split", 1, "alice", tasks=(0,), ids=(2,))
    if tasks:
        case.add(2.6, "update", 2, "alice", fields={"Extra": tasks})
    if arrays:
        case.add(3.5, "update", 1, "alice", fields={"Extra": arrays})
    case.cycle(4, 1)
    case.seen(5, 1, 2)
    case.add(5.05, "look", 2, "scheduler", is_check=False)
    case.add(5.06, "release", 2, "scheduler", admin=True, had_hold="user", extra=None)
    for job in (1, 2):
        case.add(6, "cancel", job, "alice")
        case.add(6, "end", job, "slurm", how="cancelled")
    assert case.names() == found


@pytest.mark.parametrize(("is_released", "found"), [(False, set()), (True, {"held too long", "not restored"})])
def test_a_placed_job_that_its_owner_holds_and_marks_as_slurms_keeps_our_nice_value_until_it_is_released(
    case: Case, is_released: bool, found: set[str]
) -> None:
    """Its owner gives it other nodes as well; the mark alone says whose hold it is."""
    case.beats_until_s, case.alive = 4, False
    case.submit()
    case.place(3)
    case.add(3.1, "hold", 1, "alice", admin=False, had="")
    case.add(3.2, "update", 1, "alice", fields={"Extra": "sns:1 advised"})
    case.add(3.3, "update", 1, "alice", fields={"ReqNodeList": "c2"})
    if is_released:
        case.add(5, "release", 1, "alice", admin=False, had_hold="user", was_paused=False, extra=None)
    case.end_s = 50
    case.shows(hold="" if is_released else "user", extra="sns:1 advised", required=("c2",), nice=BOOSTED)
    assert set(case.names()) == found


def test_of_two_schedulers_at_once_nothing_is_asked_about_holds(case: Case) -> None:
    """A lock file keeps the second one out."""
    case.add(0, "daemon", name="scheduler-2", what="start")
    case.submit(verdict="pass")
    case.add(2.5, "hold", 1, "alice", admin=False, had="")
    case.place(3)
    case.start(3.5)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.found() == []


@pytest.mark.parametrize(
    ("are_two", "by", "what", "is_found"),
    [
        (True, "scheduler", "nodes", False),
        (True, "scheduler", "nice", True),
        (True, "scheduler-2", "nodes", True),
        (True, "watchdog", "nodes", True),
        (False, "scheduler", "nodes", True),
    ],
)
def test_of_two_schedulers_at_once_one_takes_the_nodes_of_the_other_for_its_owners(
    case: Case, by: str, what: str, *, are_two: bool, is_found: bool
) -> None:
    """The watchdog has the records of both."""
    if not are_two:
        case.add(0.1, "daemon", name="scheduler", what="stop")
    case.add(0.2, "daemon", name="scheduler-2", what="start")
    case.submit()
    case.seen(2.9, 1, by="scheduler-2")
    case.add(2.99, "look", 1, "scheduler-2", is_check=False)
    case.add(3, "place", 1, "scheduler-2", nodes=("c1",), nice=BOOSTED, had_hold="user", fields={})
    case.add(3.5, "bad", 1, "slurm")
    case.seen(4, 1, by=by)
    case.add(4.1, "release", 1, by, admin=True, had_hold="bad", was_paused=False, extra="sns:1 advised")
    case.end_s = 50
    case.shows(extra="sns:1 advised", **({"required": ("c1",)} if what == "nodes" else {"nice": BOOSTED}))
    assert ("not restored" in case.names()) == is_found


@pytest.mark.parametrize(("by", "is_found"), [("scheduler", False), ("scheduler-2", True)])
def test_of_two_schedulers_at_once_one_does_not_know_the_memory_of_a_placement_of_the_other(
    case: Case, by: str, *, is_found: bool
) -> None:
    case.add(0.2, "daemon", name="scheduler-2", what="start")
    case.submit()
    case.seen(2.9, 1, by="scheduler-2")
    case.add(2.99, "look", 1, "scheduler-2", is_check=False)
    placed = {"nodes": ("c1",), "nice": BOOSTED, "had_hold": "user", "fields": {"memory_per_node": 8000}}
    case.add(3, "place", 1, "scheduler-2", **placed)
    case.seen(4, 1, by=by)
    case.add(4.1, "unpin", 1, by, fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(4.2, "hold", 1, by, admin=False, had="")
    case.end_s = 50
    case.shows(hold="user", memory_per_cpu_mb=None, memory_per_node_mb=8000)
    assert ("not restored" in case.names()) == is_found


def test_a_placement_without_a_record_is_found(case: Case) -> None:
    case.submit()
    case.cycle(2.5, 1)
    case.seen(3)
    case.add(3.1, "place", 1, "scheduler", nodes=("c1",), nice=BOOSTED, had_hold="user", fields={})
    case.start(3.5)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == ["not recorded"]


@pytest.mark.parametrize(("checked_s", "found"), [(3.05, []), (4.05, ["not recorded"])])
def test_the_record_may_be_of_a_job_with_the_same_id_that_slurmctld_has_lost_since_the_check(
    case: Case, checked_s: float, found: list[str]
) -> None:
    case.add(1, "saved")
    case.submit()
    case.seen(3, 1)
    case.add(3.05, "look", 1, "scheduler", is_check=False)
    case.add(3.5, "reverted", by="slurm", jobs=())
    case.submit(4)
    if checked_s > 4:
        case.add(checked_s, "look", 1, "scheduler", is_check=False)
    case.add(4.1, "place", 1, "scheduler", nodes=("c1",), nice=BOOSTED, had_hold="user", fields={})
    case.start(4.5)
    case.add(7.5, "end", 1, "slurm", how="completed")
    assert case.names() == found


def test_a_record_of_another_scheduler_is_none_of_ours(case: Case) -> None:
    case.submit()
    case.seen(3)
    case.seen(3.05, 1, by="scheduler-2")
    case.add(3.1, "place", 1, "scheduler", nodes=("c1",), nice=BOOSTED, had_hold="user", fields={})
    case.start(3.5)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == ["not recorded"]


@pytest.mark.parametrize(
    ("extra", "released", "found"),
    [("mine", 0, []), ("", 0, []), ("sns:2", 0, []), ("mine", 1, ["hold undone"])],
)
def test_a_hold_around_the_moment_in_which_the_mark_is_overwritten_is_released_once(
    case: Case, extra: str, released: int, found: list[str]
) -> None:
    """A scheduler that stood still does not know that the watchdog has given the job to Slurm."""
    case.submit()
    case.cycle(3.0, 1)
    case.add(4.0, "look", by="watchdog", is_check=False)
    case.add(4.01, "look", 1, "watchdog", is_check=False)
    case.add(4.02, "release", 1, "watchdog", admin=True, had_hold="user", extra="sns:1 advised")
    case.add(4.03, "hold", 1, "alice", admin=False, had="")
    case.add(4.04, "update", 1, "alice", fields={"Extra": extra})
    for at_s in range(5, 6 + released):
        case.seen(at_s, 1)
        case.add(at_s + 0.02, "release", 1, "scheduler", admin=True, had_hold="user")
        case.add(at_s + 0.03, "hold", 1, "alice", admin=False, had="")
    assert [name for name in case.names() if name == "hold undone"] == found


@pytest.mark.parametrize(("extra", "found"), [("sns:1 exclusive", []), ("mine", ["taken again"])])
def test_a_word_taken_out_of_the_mark_between_our_look_and_our_record_leaves_no_trace(
    case: Case, extra: str, found: list[str]
) -> None:
    case.submit()
    case.place(3.0)
    case.add(3.2, "hold", 1, "alice", admin=False, had="")
    case.seen(4.0, 1)
    case.add(4.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "Extra": "sns:1 advised"})
    case.add(5.0, "look", by="scheduler", is_check=False)
    case.add(5.001, "update", 1, "alice", fields={"Extra": extra})
    case.add(5.01, "record", by="scheduler", saved=(1,), gone=())
    case.place(6.0)
    assert [name for name in case.names() if name == "taken again"][:1] == found


@pytest.mark.parametrize("held_s", [4.2, 5.2], ids=["while it runs", "once it is requeued"])
@pytest.mark.parametrize(("fields", "found"), [({"ReqNodeList": ""}, []), ({"TimeLimit": "1"}, ["hold undone"])])
def test_a_hold_of_a_requeued_job_whose_owner_had_cleared_our_nodes_leaves_no_trace(
    case: Case, held_s: float, fields: dict[str, str], found: list[str]
) -> None:
    case.submit()
    case.place(3.0)
    case.add(3.1, "update", 1, "alice", fields=fields)
    case.start(3.5)
    case.cycle(4.0, 1)
    case.add(4.5, "requeue", 1, "admin")
    case.add(4.5, "end", 1, "slurm", how="requeued")
    case.add(held_s, "hold", 1, "alice", admin=False, had="")
    case.place(7.0)
    assert [name for name in case.names() if name == "hold undone"] == found


@pytest.mark.parametrize(("by", "found"), [("slurm", []), ("admin", ["hold undone"])])
def test_a_hold_of_slurms_own_after_the_requeue_of_a_suspended_job_is_no_administrators(
    case: Case, by: str, found: list[str]
) -> None:
    """For a moment Slurm does not say how it holds the job. If its owner has cleared our nodes, it looks like ours."""
    case.submit()
    case.place(3.0)
    case.start(3.5)
    case.add(3.6, "suspend", 1, "admin")
    case.add(4.0, "requeue", 1, "admin")
    case.add(4.0, "end", 1, "slurm", how="requeued")
    case.add(4.0, "hold", 1, by, admin=True, had="")
    case.cycle(5.5, 1)
    case.add(6.0, "release", 1, "scheduler", admin=True, had_hold="admin", extra="sns:1 advised")
    assert [name for name in case.names() if name == "hold undone"] == found


@pytest.mark.parametrize(("is_requeued", "found"), [(True, ["hold undone"]), (False, [])])
def test_a_hold_by_requeuehold_is_its_owners_whatever_mark_they_write(
    case: Case, *, is_requeued: bool, found: list[str]
) -> None:
    case.submit(verdict="pass")
    case.start(3.0, pinned=False)
    case.add(4.0, "requeue", 1, "alice")
    case.add(4.0, "end", 1, "slurm", how="requeued")
    case.add(4.0, "hold", 1, "alice", admin=False, had="", is_requeued=is_requeued)
    case.add(6.0, "update", 1, "alice", fields={"Extra": "sns:1"})
    case.place(8.0)
    assert [name for name in case.names() if name == "hold undone"] == found


@pytest.mark.parametrize(("what", "found"), [("crash", []), ("", ["hold undone"])])
def test_a_scheduler_that_is_killed_has_told_nobody_of_its_release_of_a_job_without_a_mark(
    case: Case, what: str, found: list[str]
) -> None:
    case.submit()
    case.cycle(3.0, 1)
    case.add(3.5, "update", 1, "alice", fields={"Extra": "mine"})
    case.seen(4.0, 1)
    case.add(4.1, "release", 1, "scheduler", admin=True, had_hold="user")
    case.add(4.2, "hold", 1, "alice", admin=False, had="")
    if what:
        case.add(4.3, "daemon", name="scheduler", what=what)
        case.add(4.5, "daemon", name="scheduler", what="start")
    case.seen(5.0, 1)
    case.add(5.1, "release", 1, "scheduler", admin=True, had_hold="user")
    assert [name for name in case.names() if name == "hold undone"] == found


@pytest.mark.parametrize(("is_told", "found"), [(False, []), (True, ["hold undone"])])
def test_a_watchdog_does_not_know_of_the_release_of_a_job_without_a_mark_that_is_not_on_record(
    case: Case, *, is_told: bool, found: list[str]
) -> None:
    """The scheduler that has sent it is frozen, or has saved since that the job is Slurm's."""
    case.beats_until_s = 4.0
    case.submit()
    case.cycle(3.0, 1)
    case.add(3.5, "update", 1, "alice", fields={"Extra": "mine"})
    case.seen(4.0, 1)
    case.add(4.1, "release", 1, "scheduler", admin=True, had_hold="user")
    if is_told:
        case.add(4.15, "record", by="scheduler", saved=(1,), gone=(), released=(1,))
    case.add(4.2, "hold", 1, "alice", admin=False, had="")
    case.add(4.5, "look", by="watchdog", is_check=False)
    case.add(5.1, "release", 1, "watchdog", admin=True, had_hold="user")
    assert [name for name in case.names() if name == "hold undone"] == found


@pytest.mark.parametrize(
    ("by", "found"), [("admin", []), ("alice", ["hold undone"])], ids=["an administrator's", "their own again"]
)
def test_an_administrators_hold_replaces_the_reason_of_a_requeuehold(case: Case, by: str, found: list[str]) -> None:
    """Nobody had seen that the filter's hold had been released."""
    case.submit()
    case.add(2.1, "release", 1, "admin", admin=True, had_hold="user")
    case.start(2.2, pinned=False)
    case.add(2.3, "requeue", 1, "alice")
    case.add(2.3, "end", 1, "slurm", how="requeued")
    case.add(2.3, "hold", 1, "alice", admin=False, had="", is_requeued=True)
    case.add(2.4, "hold", 1, by, admin=False, had="user")
    case.place(4.0)
    assert [name for name in case.names() if name == "hold undone"] == found


@pytest.mark.parametrize(("at_s", "found"), [(4.05, []), (3.5, ["taken again"])])
def test_a_word_that_people_write_as_we_take_our_note_out_of_the_mark_is_overwritten(
    case: Case, at_s: float, found: list[str]
) -> None:
    case.submit()
    case.place(3.0, extra="sns:1 nice=7")
    case.seen(4.0, 1)
    case.add(at_s, "update", 1, "alice", fields={"Extra": "sns:1 advised"})
    case.add(4.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "Extra": "sns:1"})
    case.add(4.2, "hold", 1, "scheduler", admin=False, had="")
    case.place(5.0)
    assert [name for name in case.names() if name == "taken again"][:1] == found


@pytest.mark.parametrize(("extra", "found"), [("sns:1", []), ("sns:3", ["hold undone"])])
def test_a_mark_without_our_word_that_people_write_after_another_text_looks_like_a_word_that_slurmctld_has_lost(
    case: Case, extra: str, found: list[str]
) -> None:
    case.submit()
    case.cycle(3.0, 1)
    case.seen(4.0, 1)
    case.add(4.1, "release", 1, "scheduler", admin=True, had_hold="user", extra="sns:1 advised")
    case.add(4.15, "record", by="scheduler", saved=(1,), gone=(), released=(1,))
    case.add(4.2, "update", 1, "alice", fields={"Extra": "sns:2"})
    case.add(4.3, "hold", 1, "alice", admin=False, had="")
    case.add(4.4, "update", 1, "alice", fields={"Extra": extra})
    case.seen(5.0, 1)
    case.add(5.1, "release", 1, "scheduler", admin=True, had_hold="user")
    assert [name for name in case.names() if name == "hold undone"] == found


@pytest.mark.parametrize(("is_gone", "found"), [(True, []), (False, ["hold undone"])])
def test_a_task_without_a_mark_whose_record_is_lost_looks_like_one_that_we_have_split_off(
    case: Case, *, is_gone: bool, found: list[str]
) -> None:
    case.submit(array=(0, 1))
    case.cycle(2.5, 1)
    case.add(3.0, "split", 1, "alice", tasks=(1,), ids=(2,))
    case.add(3.0, "update", 2, "alice", fields={"Extra": ""})
    case.seen(3.5, 1, 2)
    case.add(3.6, "release", 2, "scheduler", admin=True, had_hold="user")
    case.add(3.7, "record", by="scheduler", saved=(1, 2), gone=(), released=(2,))
    case.add(4.0, "hold", 2, "alice", admin=False, had="")
    if is_gone:
        case.add(5.0, "store", state="gone")
        case.add(5.5, "daemon", name="scheduler", what="handover")
        case.add(5.5, "daemon", name="scheduler", what="start")
    case.cycle(7.0, 1)
    case.seen(8.0, 1)
    case.add(8.1, "release", 2, "scheduler", admin=True, had_hold="user")
    assert [name for name in case.names() if name == "hold undone"] == found
