"""Promises about the end of a history: a small one breaks each, and one that is near keeps it."""

from typing import Any

import pytest

from slurm_sns.scheduler.observe.records import JobRecord, Stage
from world.hand_made import BEGIN_S, BOOSTED, Case


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ({}, 0),
        ({"nice": BOOSTED}, 1),
        ({"required": ("c1",)}, 1),
        ({"ways": 3}, 1),
        ({"memory_per_cpu_mb": None, "memory_per_node_mb": 8000}, 1),
        ({"extra": "sns:1 nice=7"}, 0),
        ({"extra": "sns:1 exclusive"}, 1),
        ({"comment": "x"}, 1),
        ({"name": "x"}, 1),
        ({"partition": "small"}, 1),
        ({"walltime_s": 60}, 1),
    ],
)
def test_a_job_that_waits_at_the_end_is_as_its_owner_wants_it(case: Case, shown: dict, found: int) -> None:
    case.released(2)
    case.shows(begin_s=int(BEGIN_S) + 900, **shown)
    assert case.names() == ["not restored"] * found


@pytest.mark.parametrize(("holds", "found"), [(True, []), (False, ["not restored"])])
def test_memory_of_ours_may_stay_only_while_an_administrator_holds_the_job(
    case: Case, holds: bool, found: list[str]
) -> None:
    case.submit()
    case.place(3, memory_per_node=8000)
    case.start(3.5)
    case.add(4, "requeue", 1, "admin")
    case.add(4, "end", 1, "slurm", how="requeued")
    if holds:
        case.add(4, "hold", 1, "admin", admin=True, had="")
    case.add(5.1, "update", 1, "alice", fields={"ReqNodeList": "c2", "Nice": "0"})
    whole = {"memory_per_cpu_mb": None, "memory_per_node_mb": 8000}
    case.shows(required=("c2",), hold="admin" if holds else "", **whole)
    assert case.names() == found


@pytest.mark.parametrize(("at_s", "found"), [(4.015, []), (3.9, ["not restored"])])
def test_an_extra_that_its_owner_writes_between_our_check_and_our_release_may_be_replaced(
    case: Case, at_s: float, found: list[str]
) -> None:
    case.submit(begin_s=int(BEGIN_S) + 900)
    case.add(at_s, "update", 1, "alice", fields={"Extra": "mine"})
    case.seen(4, 1)
    case.add(4.01, "look", 1, "scheduler", is_check=False)
    case.add(4.02, "release", 1, "scheduler", admin=True, had_hold="user", extra="sns:1 advised")
    case.shows(begin_s=int(BEGIN_S) + 900, extra="sns:1 advised")
    assert case.names() == found


@pytest.mark.parametrize(("start_s", "found"), [(4, 1), (25, 0)])
def test_a_running_job_has_its_owners_nice_value_again(case: Case, start_s: float, found: int) -> None:
    case.submit(3)
    case.place(start_s - 0.5)
    case.start(start_s)
    case.shows(state="RUNNING", nice=BOOSTED, required=("c1",))
    assert case.names() == ["not restored"] * found


def test_a_running_job_keeps_our_nice_value_when_no_scheduler_lives(case: Case) -> None:
    case.alive = False
    case.submit()
    case.place(3)
    case.start(4)
    case.shows(state="RUNNING", nice=BOOSTED, required=("c1",))
    assert case.found() == []


def test_a_job_that_is_gone_without_an_end_is_lost(case: Case) -> None:
    case.submit()
    assert case.names() == ["job lost"]


@pytest.mark.parametrize(("purged_s", "found"), [(5.5, ["records kept"]), (29.5, [])])
def test_a_record_of_a_job_that_is_gone_is_found(case: Case, purged_s: float, found: list[str]) -> None:
    case.submit()
    case.ran(2.0 + 0.2)
    case.add(purged_s + 0.3, "purge", 1, "slurm")
    case.store = {1: JobRecord(1, 0, Stage.RUNNING)}
    case.end_s = 30
    case.cycle(29)
    assert case.names() == found


@pytest.mark.parametrize(("retry_s", "found"), [(60, ["back-off too long"]), (45, [])])
def test_a_pause_that_is_too_long_is_found(case: Case, retry_s: float, found: list[str]) -> None:
    case.submit()
    case.shows(hold="user")
    case.store = {1: JobRecord(1, 0, Stage.HELD, retry_s=BEGIN_S + retry_s)}
    assert case.names() == found


def waits(case: Case, **asked: Any) -> None:
    """A job that has waited for more than a minute of the quiet time."""
    case.submit(**asked)
    case.cycle(3, 1)
    case.end_s, case.quiet_from_s = 130, 20
    case.shows(hold="user", tasks=asked.get("tasks", 1))


def test_a_job_that_could_run_and_waits_for_ever_is_found(case: Case) -> None:
    waits(case)
    assert case.names() == ["waits for ever"]


def test_a_job_whose_hold_by_its_owner_left_no_trace_is_not_kept_by_it(case: Case) -> None:
    waits(case)
    case.add(4, "hold", 1, "alice", admin=False, had="user")
    assert case.names() == ["waits for ever"]


@pytest.mark.parametrize(
    ("fields", "seen_s", "found"),
    [
        (("sns:2", "sns:1 advised"), 4.5, []),
        (("sns:2", "sns:1 advised"), 5.5, ["waits for ever"]),
        (("sns:1 advised",), 4.5, ["waits for ever"]),
    ],
    ids=["not seen", "seen since", "never without the word"],
)
def test_a_word_that_people_wrote_again_and_that_slurmctld_has_lost_may_never_have_been_seen(
    case: Case, fields: tuple[str, ...], seen_s: float, found: list[str]
) -> None:
    """The hold that comes back looks like its owner's (CONTRIBUTING, "What we cannot see")."""
    case.submit()
    case.add(2.5, "saved")
    case.cycle(2.6, 1)
    case.add(3, "release", 1, "watchdog", admin=True, had_hold="user", extra="sns:1 advised")
    for at, extra in enumerate(fields):
        case.add(3.1 if at + 1 < len(fields) else 5, "update", 1, "alice", fields={"Extra": extra})
    case.start(4)
    case.cycle(seen_s, 1)
    case.add(6, "reverted", by="slurm", jobs=(1,))
    case.end_s, case.quiet_from_s = 130, 20
    case.shows(hold="user")
    assert case.names() == found


@pytest.mark.parametrize(
    "asked", [{"tasks": 9}, {"tasks": 8, "nodes_max": 1}, {"memory_per_cpu_mb": 9000}, {"excluded": ("c1", "c2")}]
)
def test_a_job_that_never_fits_may_wait(case: Case, asked: dict[str, Any]) -> None:
    waits(case, **asked)
    shown = {name: value for name, value in asked.items() if name == "memory_per_cpu_mb"}
    case.shows(hold="user", **shown)
    assert case.found() == []


def test_a_job_that_finds_no_room_may_wait(case: Case) -> None:
    waits(case, tasks=3)
    for job in (8, 9):
        node = f"c{job - 7}"
        case.submit(2, job, "pass", tasks=3)
        case.start(3, job, node, cores=(3,), memory_mb=(3000,), pinned=False)
        running = {"state": "RUNNING", "allocated": (node,), "cores": (3,), "tasks": 3}
        case.shows(job, extra="", **running)
    assert case.found() == []


@pytest.mark.parametrize(("checked", "found"), [(True, []), (False, ["waits for ever"])])
def test_the_number_of_tasks_that_people_write_just_before_our_placement_is_replaced(
    case: Case, *, checked: bool, found: list[str]
) -> None:
    """They took tasks away from a job that never fits where it waits now: ours are on it again."""
    case.submit(tasks=9)
    case.place(4)
    case.add(3.999 if checked else 3.8, "update", 1, "alice", fields={"NumTasks": "4", "Partition": "small"})
    case.cycle(5)
    case.add(5.05, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(5.06, "hold", 1, "scheduler", admin=False, had="")
    case.add(5.5, "look", 1, "scheduler", is_check=False)
    case.add(5.51, "release", 1, "scheduler", admin=True, had_hold="user", extra="sns:1 advised")
    case.end_s, case.quiet_from_s = 130, 20
    case.shows(tasks=9, partition="small", extra="sns:1 advised")
    assert [name for name in case.names() if name == "waits for ever"] == found


@pytest.mark.parametrize(("begin_s", "found"), [(100, []), (20, ["waits for ever"])])
def test_a_job_whose_begin_time_has_only_just_come_may_wait(case: Case, begin_s: int, found: list[str]) -> None:
    """Slurm may have set it, for a requeued job, before somebody set the clock back."""
    waits(case, begin_s=int(BEGIN_S) + begin_s)
    assert case.names() == found


def test_a_job_with_hold_begin_time_or_dependency_may_wait(case: Case) -> None:
    waits(case, begin_s=int(BEGIN_S) + 900)
    case.submit(2.1, 2, "pass", held=True)
    case.submit(2.2, 3)
    case.add(3, "hold", 3, "admin", admin=True, had="user")
    case.submit(2.3, 4, dependency=("afterok", (2,)))
    case.shows(1, hold="user", begin_s=int(BEGIN_S) + 900)
    case.shows(2, hold="user", extra="")
    case.shows(3, hold="admin")
    case.shows(4, hold="user", dependency=("afterok", (2,)))
    assert case.found() == []


@pytest.mark.parametrize(("held_s", "found"), [(4.0, []), (7.5, ["waits for ever"])])
def test_a_hold_that_was_set_while_the_job_ran_is_an_administrators_once_it_is_requeued(
    case: Case, held_s: float, found: list[str]
) -> None:
    """An owner who writes our mark into a job that they hold has it planned; of such a hold Slurm says JobHeldAdmin."""
    case.submit(verdict="pass")
    case.start(3.0, pinned=False)
    case.add(held_s, "hold", 1, "alice", admin=False, had="")
    case.add(6.0, "end", 1, "slurm", how="completed")
    case.add(6.5, "requeue", 1, "admin")
    case.add(8.0, "update", 1, "alice", fields={"Extra": "sns:1"})
    case.end_s = 120
    case.shows(hold="user")
    assert [name for name in case.names() if name == "waits for ever"] == found
