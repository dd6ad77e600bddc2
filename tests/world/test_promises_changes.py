"""Promises about what we write into jobs and take back: a small history breaks each, and one that is near keeps it."""

import pytest

from world.hand_made import BOOSTED, Case


@pytest.mark.parametrize(("same_cycle", "found"), [(True, []), (False, ["not taken back"])])
def test_the_time_of_a_placement_counts_from_the_answer_for_which_the_scheduler_has_waited(
    case: Case, same_cycle: bool, found: list[str]
) -> None:
    case.submit()
    case.place(3)
    if not same_cycle:
        case.seen(7.5)
    case.add(8, "record", by="scheduler", saved=(1,), gone=(), placing={1: ("c1",)})
    for at_s in range(9, 19):
        case.cycle(at_s, 1)
    case.add(19, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(19.1, "hold", 1, "scheduler", admin=False, had="")
    case.shows(hold="user")
    assert case.names() == found


@pytest.mark.parametrize(
    ("until_s", "step_s", "found"),
    [(20, 0, ["not taken back"]), (15, 0, []), (24, -7, []), (30, -7, ["not taken back"])],
)
def test_a_placement_that_slurm_does_not_start_is_taken_back(
    case: Case, until_s: float, step_s: float, found: list[str]
) -> None:
    case.submit()
    case.place(3)
    if step_s:
        case.add(4, "clock", step_s=step_s)
    for at_s in range(4, int(until_s)):
        case.cycle(at_s + 0.5, 1)
    case.add(until_s, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(until_s + 0.1, "hold", 1, "scheduler", admin=False, had="")
    case.shows(hold="user")
    case.end_s = until_s + 5
    assert case.names() == found


@pytest.mark.parametrize(
    ("step_s", "back_s", "found"), [(-60, 99, ["not taken back"]), (-6, 99, []), (-60, 5.25, []), (-60, 6.0, [])]
)
def test_a_placement_far_in_the_future_is_taken_back_at_once(
    case: Case, step_s: float, back_s: float, found: list[str]
) -> None:
    """Unless the clock is set right before a whole cycle has seen it."""
    case.submit()
    case.place(3)
    case.end_s = case.beats_until_s = 7
    for at_s in (4.2, 5.2, 6.2):
        case.cycle(at_s, 1)
    case.add(4.6, "clock", step_s=step_s)
    case.events = [each._replace(wall_s=each.wall_s + step_s * (4.5 < each.at_s < back_s)) for each in case.events]
    case.shows(priority=1000)
    assert case.names() == found


@pytest.mark.parametrize(
    ("start_s", "until_s", "found"),
    [(5, 21, []), (5, 25, ["not taken back"]), (6.5, 21, ["not taken back"]), (None, 21, ["not taken back"])],
    ids=["seen to run", "and not started for longer", "not seen to run", "did not run"],
)
@pytest.mark.parametrize("has_ended", [False, True])
def test_a_job_whose_start_slurmctld_has_lost_may_wait_on_our_nodes_for_another_timeout(
    case: Case, start_s: float | None, until_s: int, found: list[str], *, has_ended: bool
) -> None:
    case.submit()
    case.place(3)
    case.add(3.2, "saved")
    if start_s is not None:
        case.start(start_s)
    if start_s is not None and has_ended:
        case.add(6.9, "end", 1, "slurm", how="completed")
    case.seen(6, 1)
    case.add(7, "reverted", by="slurm", jobs=(1,))
    for at_s in range(8, until_s):
        case.cycle(at_s + 0.5, 1)
    case.add(until_s, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(until_s + 0.1, "hold", 1, "scheduler", admin=False, had="")
    case.shows(hold="user")
    case.end_s = until_s + 5
    assert case.names() == found


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"Nice": "50", "Extra": "mine"}, []),
        ({"Nice": "50"}, ["not taken back"]),
        ({"Extra": "mine"}, ["not taken back"]),
    ],
    ids=["mark and nice value overwritten", "with its mark", "with our boost"],
)
def test_our_nodes_that_slurmctld_goes_back_to_may_stay_where_nothing_else_of_ours_is_left(
    case: Case, fields: dict[str, str], found: list[str]
) -> None:
    case.submit()
    case.place(3)
    case.add(3.2, "update", 1, "alice", fields=fields)
    case.add(3.3, "hold", 1, "alice", admin=False, had="")
    case.add(3.4, "saved")
    case.seen(4, 1)
    word = {} if "Extra" in fields else {"Extra": "sns:1 advised"}
    case.add(4.1, "unpin", 1, "scheduler", fields={"Nice": fields.get("Nice", "0"), "ReqNodeList": "", **word})
    case.add(4.2, "cycle", by="scheduler", ok=True)
    case.cycle(5, 1)
    case.add(7, "reverted", by="slurm", jobs=(1,))
    for at_s in range(8, 22):
        case.cycle(at_s + 0.5, 1)
    case.add(21.7, "release", 1, "alice", admin=False, had_hold="user")
    case.start(21.8)
    case.add(21.9, "update", 1, "scheduler", fields={"Nice": fields.get("Nice", "0")})
    case.add(24.8, "end", 1, "slurm", how="completed")
    case.add(29, "purge", 1, "slurm")
    assert case.names() == found


@pytest.mark.parametrize(
    ("ran", "held_again", "found"),
    [(True, True, []), (False, True, ["hold undone"]), (True, False, ["hold undone"])],
    ids=["requeued and held again", "with our boost", "seen to be its owner's"],
)
def test_a_hold_of_a_requeued_job_that_slurmctld_goes_back_to_looks_like_ours_once_we_have_held_it_again(
    case: Case, *, ran: bool, held_again: bool, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    unpinned = {"Nice": "0", "ReqNodeList": "", "TresPerNode": ""}
    case.submit(may_restart=True)
    case.place(3)
    if ran:
        case.start(3.2)
        case.seen(3.4, 1)
        case.add(3.5, "update", 1, "scheduler", fields={"Nice": "0"})
        case.add(3.6, "requeue", 1, "admin")
        case.add(3.6, "end", 1, "slurm", how="requeued")
    case.add(3.7, "hold", 1, "alice", admin=False, had="")
    case.add(3.8, "saved")
    if held_again:
        case.add(4, "release", 1, "alice", admin=False, had_hold="user")
        case.seen(5, 1)
        case.add(5.1, "unpin", 1, "scheduler", fields=unpinned)
        case.add(5.2, "hold", 1, "scheduler", admin=False, had="")
    else:
        case.seen(5, 1)
        case.add(5.1, "unpin", 1, "scheduler", fields={**unpinned, "Extra": "sns:1 advised"})
    case.add(5.3, "cycle", by="scheduler", ok=True)
    case.add(7, "reverted", by="slurm", jobs=(1,))
    case.seen(8, 1)
    case.add(8.1, "release", 1, "scheduler", admin=True, had_hold="user", extra="sns:1 advised")
    case.start(8.5)
    case.seen(8.7, 1)
    case.add(8.8, "update", 1, "scheduler", fields={"Nice": "0"})
    case.add(11, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(
    ("restored", "later", "found"),
    [
        ("50", "", []),
        ("60", "", ["not restored"]),
        ("50", "written", ["not restored"]),
        ("50", "held", ["not restored"]),
    ],
    ids=["what slurmctld has lost", "anything else", "they have written another since", "seen without it since"],
)
def test_a_nice_value_that_its_owner_wrote_may_be_restored_though_slurmctld_has_lost_it(
    case: Case, restored: str, later: str, found: list[str]
) -> None:
    unpinned = {"Nice": "0", "ReqNodeList": "", "TresPerNode": ""}
    case.submit()
    case.place(3)
    case.add(3.2, "saved")
    case.add(3.4, "unpin", 1, "scheduler", fields=unpinned)
    case.add(3.41, "hold", 1, "scheduler", admin=False, had="")
    case.add(3.6, "update", 1, "alice", fields={"Nice": "50"})
    case.add(4, "reverted", by="slurm", jobs=(1,))
    if later == "written":
        case.add(4.2, "update", 1, "alice", fields={"Nice": "7"})
    if later == "held":
        case.seen(4.1, 1)
        case.add(4.2, "unpin", 1, "scheduler", fields=unpinned)
        case.add(4.21, "hold", 1, "scheduler", admin=False, had="")
        case.place(5)
    case.start(5.5)
    case.seen(6, 1)
    case.add(6.1, "update", 1, "scheduler", fields={"Nice": restored})
    case.add(8.5, "end", 1, "slurm", how="completed")
    case.add(20, "purge", 1, "slurm")
    assert case.names() == found


@pytest.mark.parametrize(("cycle_s", "found"), [(5, ["not restored"]), (3.4, [])])
def test_a_job_has_its_own_nice_value_after_the_first_cycle_that_sees_it_run(
    case: Case, cycle_s: float, found: list[str]
) -> None:
    case.submit()
    case.place(3)
    case.start(3.5)
    case.cycle(cycle_s, 1)
    case.add(9, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(("held", "found"), [(True, []), (False, ["not planned again"])])
def test_a_requeued_job_is_held_by_the_first_cycle_that_sees_it(case: Case, held: bool, found: list[str]) -> None:
    case.submit(may_restart=True)
    case.place(3.0)
    case.start(3.5)
    case.add(4, "requeue", 1, "admin")
    case.add(4, "end", 1, "slurm", how="requeued")
    case.seen(6, 1)
    if held:
        case.add(6.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
        case.add(6.2, "hold", 1, "scheduler", admin=False, had="")
    case.add(6.3, "cycle", by="scheduler", ok=True)
    case.add(7, "cancel", 1, "alice")
    case.add(7, "end", 1, "slurm", how="cancelled")
    assert case.names() == found


@pytest.mark.parametrize(
    ("since", "found"),
    [
        ("placed again", []),
        ("started again", []),
        ("started again, not seen", ["not planned again"]),
        ("held", ["not planned again"]),
    ],
)
def test_a_requeued_job_that_slurmctld_went_back_to_looks_placed_if_it_was_placed_or_ran_since(
    case: Case, since: str, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit(may_restart=True)
    case.place(3.0)
    case.start(3.5)
    case.add(4, "requeue", 1, "admin")
    case.add(4, "end", 1, "slurm", how="requeued")
    case.add(5.5, "saved")
    if since.startswith("started"):
        case.start(5.8)
    if since == "started again":
        case.seen(6, 1)
        case.add(6.1, "update", 1, "scheduler", fields={"Nice": "0"})
    elif not since.startswith("started"):
        case.seen(6, 1)
        case.add(6.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
        case.add(6.2, "hold", 1, "scheduler", admin=False, had="")
    if since == "placed again":
        case.seen(7)
        case.add(7.1, "record", by="scheduler", saved=(1,), gone=(), placing={1: ("c1",)})
    case.add(7.5, "reverted", by="slurm", jobs=(1,))
    case.cycle(9)
    case.add(9.5, "cancel", 1, "alice")
    case.add(9.5, "end", 1, "slurm", how="cancelled")
    assert case.names() == found


@pytest.mark.parametrize(
    ("seen_s", "then", "found"),
    [(6, "", False), (5, "", True), (None, "", True), (6, "started anew", True)],
    ids=["seen gone", "seen ended", "not seen", "by a scheduler that reads its record again"],
)
def test_a_job_that_a_cycle_has_seen_gone_looks_placed_when_slurmctld_knows_it_again(
    case: Case, seen_s: float | None, then: str, *, found: bool
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit(may_restart=True)
    case.place(3.0)
    case.start(3.5)
    case.add(3.6, "saved")
    case.add(4.5, "end", 1, "slurm", how="completed")
    case.add(5.5, "purge", 1, "slurm")
    if seen_s is not None:
        case.seen(seen_s)
    if then == "started anew":
        case.add(6.2, "daemon", name="scheduler", what="crash")
        case.add(6.3, "daemon", name="scheduler", what="start")
    case.add(6.5, "reverted", by="slurm", jobs=(1,))
    case.add(7, "requeue", 1, "slurm")
    case.add(7, "end", 1, "slurm", how="requeued")
    case.cycle(9)
    case.add(9.5, "cancel", 1, "alice")
    case.add(9.5, "end", 1, "slurm", how="cancelled")
    assert ("not planned again" in case.names()) == found


@pytest.mark.parametrize(
    ("required", "is_requeued", "gone", "found"),
    [
        ("c1", True, (), []),
        ("c2", True, (), ["wrong nodes"]),
        ("c1", False, (), ["not restored", "wrong nodes"]),
        ("c1", True, (1,), ["wrong nodes"]),
    ],
    ids=["the same nodes", "other nodes", "not requeued", "seen before its requeue"],
)
def test_a_new_job_with_the_id_of_one_that_slurmctld_has_lost_looks_like_it_once_it_was_requeued_on_our_nodes(
    case: Case, required: str, gone: tuple[int, ...], found: list[str], *, is_requeued: bool
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.add(0.5, "saved")
    case.submit()
    case.place(3.0)
    case.start(3.5)
    case.add(4, "reverted", by="slurm", jobs=())
    case.submit(5, required=(required,), verdict="pass", extra="")
    if gone:
        case.add(5.1, "record", by="scheduler", saved=(), gone=gone)
    if is_requeued:
        case.start(5.5, 1, required)
        case.add(6, "requeue", 1, "admin")
        case.add(6, "end", 1, "slurm", how="requeued")
    case.seen(8, 1)
    case.add(8.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.start(8.5, 1, "c2" if required == "c1" else "c1")
    case.add(11, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(("gone", "found"), [((1,), []), ((), ["not planned again"])])
def test_a_job_that_slurm_had_forgotten_and_knows_again_looks_placed_once_our_record_is_gone(
    case: Case, gone: tuple[int, ...], found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit(may_restart=True)
    case.place(3.0)
    case.start(3.5)
    case.cycle(3.7, 1)
    case.add(3.75, "update", 1, "scheduler", fields={"Nice": "0"})
    case.add(4, "saved")
    case.add(4.5, "end", 1, "slurm", how="completed")
    case.add(6.5, "purge", 1, "slurm")
    case.add(7, "record", by="scheduler", saved=(), gone=gone)
    case.add(7.5, "reverted", by="slurm", jobs=(1,))
    case.add(7.6, "requeue", 1, "slurm")
    case.add(7.6, "end", 1, "slurm", how="requeued")
    case.cycle(9)
    case.add(9.5, "cancel", 1, "alice")
    case.add(9.5, "end", 1, "slurm", how="cancelled")
    assert case.names() == found


@pytest.mark.parametrize(
    ("is_lost", "seen_s", "found"),
    [(True, (9.0,), []), (True, (8.0, 9.0), ["waits for ever"]), (False, (9.0,), ["not restored", "waits for ever"])],
)
def test_a_held_requeued_job_with_nodes_of_its_owners_looks_held_by_them_once_its_record_is_lost(
    case: Case, is_lost: bool, seen_s: tuple[float, ...], found: list[str]
) -> None:
    """CONTRIBUTING, "How we know our own placement". What the first look makes of it is on record from then on."""
    case.submit(may_restart=True)
    case.place(3.0)
    case.start(3.5)
    case.add(4, "requeue", 1, "admin")
    case.add(4, "end", 1, "slurm", how="requeued")
    case.seen(6, 1)
    case.add(6.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(6.15, "update", 1, "alice", fields={"ReqNodeList": "c2"})
    case.add(6.2, "hold", 1, "scheduler", admin=False, had="")
    if is_lost:
        case.add(7, "store", state="gone")
    for at_s in seen_s:
        case.seen(at_s, 1)
    fields = {"Nice": "0", "ReqNodeList": "", "TresPerNode": "", "Extra": "sns:1 advised"}
    case.add(9.1, "unpin", 1, "scheduler", fields=fields)
    case.end_s = 120
    case.shows(hold="user", extra="sns:1 advised")
    assert case.names() == found


@pytest.mark.parametrize(
    ("fields", "found"),
    [({}, 1), ({"MinMemoryCPU": "1000"}, 0), ({"MinMemoryCPU": "500"}, 1), ({"MinMemoryNode": "8000"}, 1)],
)
def test_a_job_that_had_whole_nodes_gets_its_own_memory_back(case: Case, fields: dict, found: int) -> None:
    case.submit(extra="sns:1 exclusive")
    case.place(3, memory_per_node=8000)
    case.seen(4, 1)
    case.add(4.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", **fields})
    case.add(4.2, "cancel", 1, "alice")
    case.add(4.2, "end", 1, "slurm", how="cancelled")
    assert case.names() == ["not restored"] * found


@pytest.mark.parametrize(
    ("owners", "fields", "found"),
    [
        ({"ReqNodeList": "c2"}, {"ReqNodeList": ""}, ["not restored"]),
        ({"ReqNodeList": "c2"}, {"TresPerNode": ""}, []),
        ({"TresPerNode": "gres/llc:3"}, {"TresPerNode": ""}, ["not restored"]),
        ({"TresPerNode": "gres/llc:3"}, {"ReqNodeList": ""}, []),
    ],
)
def test_a_node_list_or_gres_that_its_owner_gave_a_placed_job_stays(
    case: Case, owners: dict, fields: dict, found: list[str]
) -> None:
    case.submit()
    case.place(3)
    case.add(3.5, "update", 1, "alice", fields=owners)
    case.seen(4, 1)
    case.add(4.1, "unpin", 1, "scheduler", fields={"Nice": "0", **fields})
    case.add(4.2, "cancel", 1, "alice")
    case.add(4.2, "end", 1, "slurm", how="cancelled")
    assert case.names() == found


@pytest.mark.parametrize(("changed_s", "found"), [(4.05, []), (3.5, ["not restored", "not restored"])])
def test_a_nice_value_that_an_array_gets_just_before_tasks_are_split_off_may_be_lost_for_its_other_tasks_too(
    case: Case, changed_s: float, found: list[str]
) -> None:
    case.submit(array=(0, 1, 2))
    case.add(changed_s, "update", 1, "alice", fields={"Nice": "50"})
    case.seen(4, 1)
    case.add(4.1, "update", 1, "scheduler", fields={"Nice": "0"})
    case.add(5, "split", 1, "alice", tasks=(2,), ids=(2,))
    case.add(6, "cancel", 1, "alice")
    case.add(6, "end", 1, "slurm", how="cancelled")
    case.shows(2, nice=0)
    assert case.names() == found


@pytest.mark.parametrize(("checked_s", "found"), [(4.2, ["not restored"]), (4.0, [])])
def test_a_nice_value_that_an_array_got_before_it_was_looked_at_once_more_is_its_tasks_too(
    case: Case, checked_s: float, found: list[str]
) -> None:
    case.submit(array=(0, 1, 2))
    case.seen(3.9, 1)
    case.add(4.1, "update", 1, "alice", fields={"Nice": "50"})
    case.add(checked_s, "look", 1, "scheduler", is_check=False)
    case.add(4.3, "split", 1, "scheduler", tasks=(0,), ids=(2,))
    case.add(4.3, "update", 2, "scheduler", fields={"Nice": "0"})
    for job in (1, 2):
        case.add(6, "cancel", job, "alice")
        case.add(6, "end", job, "slurm", how="cancelled")
    assert case.names() == found


@pytest.mark.parametrize(
    ("state", "tres", "found"),
    [
        ("locked", "gres/llc:3", []),
        ("locked", "gres/gpu:1", ["not restored"]),
        ("full", "gres/llc:3", ["not restored"]),
    ],
)
def test_only_while_the_store_is_locked_ways_of_the_owners_may_go_with_a_placement(
    case: Case, state: str, tres: str, found: list[str]
) -> None:
    case.submit()
    case.place(3)
    case.add(3.5, "update", 1, "alice", fields={"TresPerNode": tres})
    case.add(3.6, "store", state=state)
    case.seen(4, by="watchdog")
    case.add(4.1, "unpin", 1, "watchdog", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(4.15, "store", state="up")
    case.add(4.2, "cancel", 1, "alice")
    case.add(4.2, "end", 1, "slurm", how="cancelled")
    assert case.names() == found


@pytest.mark.parametrize(
    ("recorded", "tres", "found"),
    [((), "gres/llc:3", []), ((1,), "gres/llc:3", ["not restored"]), ((), "gres/gpu:1", ["not restored"])],
)
def test_ways_of_a_job_that_ran_on_its_owners_nodes_before_we_saw_it_may_go_with_them_after_a_requeue(
    case: Case, recorded: tuple[int, ...], tres: str, found: list[str]
) -> None:
    """CONTRIBUTING, "What we cannot see"."""
    case.submit(may_restart=True)
    case.add(2.1, "release", 1, "alice", admin=False, had_hold="user", was_paused=False, extra=None)
    case.add(2.2, "update", 1, "alice", fields={"ReqNodeList": "c1", "TresPerNode": tres})
    case.start(2.5)
    case.seen(3, *recorded)
    case.add(4, "requeue", 1, "admin")
    case.add(4, "end", 1, "slurm", how="requeued")
    case.seen(6)
    fields = {"Nice": "0", "ReqNodeList": "", "TresPerNode": "", "Extra": "sns:1 advised"}
    case.add(6.1, "unpin", 1, "scheduler", fields=fields)
    case.add(6.2, "cancel", 1, "alice")
    case.add(6.2, "end", 1, "slurm", how="cancelled")
    assert case.names() == found


@pytest.mark.parametrize(("nice", "found"), [("0", ["not restored"]), ("7", [])])
def test_the_nice_value_that_we_restore_is_the_owners(case: Case, nice: str, found: list[str]) -> None:
    case.submit(nice=7)
    case.place(3)
    case.start(3.5)
    case.add(4, "update", 1, "scheduler", fields={"Nice": nice})
    case.add(9, "end", 1, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(
    ("at_s", "lost", "found"),
    [(3.2, True, []), (3.2, False, ["not restored"]), (2.5, True, ["not restored"])],
)
def test_the_nice_value_of_a_placed_job_is_unknown_once_the_store_and_the_note_in_the_mark_are_lost(
    case: Case, at_s: float, lost: bool, found: list[str]
) -> None:
    case.submit(nice=7)
    case.add(at_s, "update", 1, "alice", fields={"Extra": "sns:1 fixed"})
    case.place(3, extra="sns:1 nice=7" if at_s > 3 else "sns:1 fixed nice=7")
    case.start(3.5)
    if lost:
        case.add(3.6, "store", state="gone")
    case.seen(4, 1)
    case.add(4.1, "update", 1, "scheduler", fields={"Nice": "0"})
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == found


def test_a_nice_value_that_its_owner_changes_in_a_placed_job_is_theirs(case: Case) -> None:
    case.submit()
    case.place(3)
    case.add(3.5, "update", 1, "alice", fields={"Nice": "50"})
    case.seen(4, 1)
    case.add(4.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    case.add(4.2, "cancel", 1, "alice")
    case.add(4.2, "end", 1, "slurm", how="cancelled")
    assert case.names() == ["not restored"]


def test_an_update_of_ours_changes_nothing_that_is_its_owners(case: Case) -> None:
    case.submit(verdict="pass")
    case.add(3, "update", 1, "scheduler", fields={"Nice": "0", "Comment": "x"})
    case.add(4, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "c2"})
    case.start(5, pinned=False)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == ["field changed", "field changed"]


@pytest.mark.parametrize(("extra", "found"), [("sns:1 nice=7", []), ("sns:1 exclusive", ["extra overwritten"])])
def test_a_placement_writes_only_a_note_into_our_mark(case: Case, extra: str, found: list[str]) -> None:
    case.submit(nice=7)
    case.place(3, extra=extra)
    case.start(4)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == found


def test_an_extra_that_is_no_mark_is_not_written(case: Case) -> None:
    case.submit()
    case.add(2.5, "update", 1, "alice", fields={"Extra": "mine"})
    case.place(3, extra="sns:1 nice=7")
    case.start(4)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == ["taken again", "extra overwritten"]


@pytest.mark.parametrize(("given", "found"), [(True, []), (False, ["hold not verified"])])
def test_a_job_that_slurm_found_impossible_twice_and_that_was_given_to_it_is_not_held_again(
    case: Case, given: bool, found: list[str]
) -> None:
    case.submit()
    case.place(3.0)
    case.add(3.3, "bad", 1, "slurm")
    case.seen(4.0, 1)
    case.add(4.1, "release", 1, "scheduler", admin=False, had_hold="bad")
    case.add(4.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": ""})
    case.add(4.4, "bad", 1, "slurm")
    if given:
        case.add(4.5, "release", 1, "scheduler", admin=True, had_hold="bad", extra="sns:1 advised")
    else:
        case.add(4.5, "release", 1, "alice", admin=False, had_hold="bad")
    case.cycle(5.0, 1)
    assert [name for name in case.names() if name == "hold not verified"] == found


@pytest.mark.parametrize(("off_s", "found"), [(5.0, []), (3.5, ["hold not verified"])])
def test_a_cycle_that_began_under_the_kill_switch_verifies_no_hold(case: Case, off_s: float, found: list[str]) -> None:
    """It may have waited for the store before it looked."""
    case.submit()
    case.place(2.5)
    case.add(2.8, "cycle", by="scheduler", ok=True)
    case.seen(3.0, 1)
    case.add(3.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(3.2, "kill-switch", on=True)
    case.add(4.0, "cycle", by="scheduler", ok=False)
    case.add(off_s, "kill-switch", on=False)
    case.cycle(6.0, 1)
    assert [name for name in case.names() if name == "hold not verified"] == found


@pytest.mark.parametrize(("nodes", "found"), [("c1", []), ("c1,c2", ["not restored"])])
def test_nodes_of_the_placement_before_that_an_owner_gives_while_the_last_is_taken_back_count_as_ours(
    case: Case, nodes: str, found: list[str]
) -> None:
    clears = {"Nice": "0", "ReqNodeList": "", "TresPerNode": ""}
    case.submit()
    case.place(3.0)
    case.seen(4.0, 1)
    case.add(4.1, "unpin", 1, "scheduler", fields=clears)
    case.add(4.2, "hold", 1, "scheduler", admin=False, had="")
    case.seen(6.0, 1)
    case.add(6.05, "record", by="scheduler", saved=(1,), gone=(), placing={1: ("c2",)})
    case.add(6.09, "look", 1, "scheduler", is_check=False)
    case.add(6.1, "place", 1, "scheduler", nodes=("c2",), nice=BOOSTED, had_hold="user", fields={})
    case.seen(7.0, 1)
    case.add(7.1, "unpin", 1, "scheduler", fields=clears)
    case.add(7.2, "update", 1, "alice", fields={"ReqNodeList": nodes})
    case.seen(8.0, 1)
    case.add(8.1, "unpin", 1, "scheduler", fields=clears)
    assert [name for name in case.names() if name == "not restored"][:1] == found


@pytest.mark.parametrize(("again", "found"), [(True, []), (False, ["not restored"])])
def test_the_memory_of_an_earlier_placement_that_slurmctld_goes_back_to_may_stay(
    case: Case, again: bool, found: list[str]
) -> None:
    clears = {"Nice": "0", "ReqNodeList": "", "TresPerNode": ""}
    case.submit()
    case.place(3.0, memory_per_node=8000)
    case.add(3.2, "saved")
    if again:
        case.seen(4.0, 1)
        case.add(4.1, "unpin", 1, "scheduler", fields={**clears, "MinMemoryCPU": "1000"})
        case.add(4.2, "hold", 1, "scheduler", admin=False, had="")
        case.place(5.0)
    case.add(6.0, "reverted", by="slurm", jobs=(1,))
    case.seen(7.0, 1)
    case.add(7.1, "unpin", 1, "scheduler", fields=clears)
    assert [name for name in case.names() if name == "not restored"][:1] == found


@pytest.mark.parametrize(("is_gone", "found"), [(True, []), (False, ["not restored"])])
def test_a_nice_value_that_was_lost_with_store_and_mark_stays_lost_at_the_next_placement(
    case: Case, *, is_gone: bool, found: list[str]
) -> None:
    case.submit(nice=1000)
    case.place(3.0, extra="sns:1 nice=1000")
    case.add(3.5, "update", 1, "alice", fields={"Extra": "sns:1 fixed"})
    if is_gone:
        case.add(4.0, "store", state="gone")
    case.seen(5.0, 1)
    case.add(5.1, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(5.2, "hold", 1, "scheduler", admin=False, had="")
    case.place(7.0)
    case.start(7.5)
    case.seen(9.0, 1)
    case.add(9.1, "update", 1, "scheduler", fields={"Nice": "0"})
    assert [name for name in case.names() if name == "not restored"][:1] == found


@pytest.mark.parametrize(("is_gone", "found"), [(True, []), (False, ["not restored"])])
def test_gres_of_ours_may_stay_where_the_record_is_lost_and_our_nodes_are_cleared(
    case: Case, *, is_gone: bool, found: list[str]
) -> None:
    case.submit()
    case.place(3.0, gres_per_node={"llc": 18, "membw": 118})
    case.start(3.5, pinned=True)
    case.add(6.0, "end", 1, "slurm", how="completed")
    case.add(6.5, "requeue", 1, "admin")
    case.add(6.5, "hold", 1, "admin", admin=False, had="", is_requeued=True)
    if is_gone:
        case.add(7.0, "store", state="gone")
    case.add(8.0, "update", 1, "alice", fields={"ReqNodeList": ""})
    case.shows(hold="user", reason="job requeued in held state", ways=18, bandwidth_gbps=118)
    assert [name for name in case.names() if name == "not restored"][:1] == found
