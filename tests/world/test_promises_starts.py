"""Promises about starts: a small history breaks each, and one that is near keeps it."""

from typing import Any

import pytest

from world.hand_made import BEGIN_S, Case


def test_a_job_that_starts_twice_is_found(case: Case) -> None:
    case.submit()
    case.ran(3.0)
    case.start(9)
    case.add(12, "end", 1, "slurm", how="completed")
    assert case.found() == ["started twice: job 1 started at 9.000 s, and before: 3.500 s; it was ended"]


def test_a_job_may_start_once_more_for_each_requeue(case: Case) -> None:
    case.submit()
    case.place(3.0)
    case.start(3.5)
    case.add(4, "requeue", 1, "admin")
    case.add(4, "end", 1, "slurm", how="requeued")
    case.add(5, "unpin", 1, "scheduler", fields={"Nice": "0", "ReqNodeList": "", "TresPerNode": ""})
    case.add(5.01, "hold", 1, "scheduler", admin=False, had="")
    case.ran(6.0)
    assert case.found() == []


@pytest.mark.parametrize("by", ["scheduler", "watchdog", "scheduler-2"])
@pytest.mark.parametrize("kind", ["requeue", "suspend", "cancel"])
def test_we_requeue_suspend_and_cancel_nothing(case: Case, by: str, kind: str) -> None:
    case.submit()
    case.place(3.0)
    case.start(3.5)
    case.add(4, kind, 1, by)
    case.add(4, "end", 1, "slurm", how="cancelled")
    assert case.names() == ["stopped by us"]


def test_a_held_job_that_starts_is_found(case: Case) -> None:
    case.submit()
    case.start(3)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == ["started while held"]


@pytest.mark.parametrize(("begin_s", "found"), [(20, ["started too early"]), (3, [])])
def test_no_job_starts_before_its_begin_time(case: Case, begin_s: int, found: list[str]) -> None:
    case.submit(begin_s=int(BEGIN_S) + begin_s)
    case.ran(3.0)
    assert case.names() == found


@pytest.mark.parametrize(
    ("kind", "how", "found"),
    [
        ("afterok", "completed", []),
        ("afterok", "cancelled", ["started too early"]),
        ("afterany", "cancelled", []),
        ("afterany", "", ["started too early"]),
    ],
)
def test_no_job_starts_before_its_dependency_is_fulfilled(case: Case, kind: str, how: str, found: list[str]) -> None:
    case.submit(job=1)
    case.submit(job=2, dependency=(kind, (1,)))
    if how:
        case.ran(3.0, 1, how)
    else:
        case.shows(1, hold="user")
    case.ran(8.0, 2)
    assert case.names() == found


@pytest.mark.parametrize(
    ("asked", "event", "found"),
    [
        ({"excluded": ("c1",)}, None, 1),
        ({"excluded": ("c2",)}, None, 0),
        ({"partition": "small"}, None, 1),
        ({"required": ("c2",)}, None, 1),
        ({"required": ("c1",)}, None, 0),
        ({}, ("node", {"name": "c1", "state": "drain"}), 1),
        ({}, ("node", {"name": "c2", "state": "drain"}), 0),
        ({}, ("reservation", {"name": "r", "nodes": ("c1",), "begin_s": 0, "end_s": 2e9, "gone": False}), 1),
        ({}, ("reservation", {"name": "r", "nodes": ("c1",), "begin_s": 0, "end_s": 9, "gone": False}), 0),
    ],
)
def test_a_job_runs_on_nodes_that_it_may_use(case: Case, asked: dict, event: Any, found: int) -> None:
    case.submit(**asked)
    if event is not None:
        case.add(2.5, event[0], by="admin", **event[1])
    case.ran(3.0)
    assert case.names() == ["wrong nodes"] * found


@pytest.mark.parametrize(("nodes", "found"), [("c2", ["wrong nodes"]), ("c1", [])])
def test_a_node_list_that_its_owner_writes_later_counts(case: Case, nodes: str, found: list[str]) -> None:
    case.submit()
    case.add(2.5, "update", 1, "alice", fields={"ReqNodeList": nodes})
    case.ran(3.0)
    assert case.names() == found


@pytest.mark.parametrize(
    ("asked", "event", "found"),
    [
        ({}, ("partition", {"name": "main", "fields": {"state": "DOWN"}}), 1),
        ({}, ("partition", {"name": "main", "fields": {"state": "DRAIN"}}), 0),
        ({"walltime_s": 120}, ("partition", {"name": "main", "fields": {"max_time_s": 60}}), 1),
        ({"walltime_s": 60}, ("partition", {"name": "main", "fields": {"max_time_s": 60}}), 0),
        ({}, ("limit", {"account": "physics", "cores": 1}), 1),
        ({}, ("limit", {"account": "physics", "cores": 2}), 0),
        ({}, ("limit", {"account": "chemistry", "cores": 1}), 0),
        ({}, ("limit", {"qos": "normal", "cores": 1}), 1),
        ({}, ("limit", {"qos": "normal", "cores": 2}), 0),
        ({"qos": "small"}, ("limit", {"qos": "normal", "cores": 1}), 0),
        ({"qos": "small"}, ("limit", {"qos": "small", "cores": 0}), 1),
        ({}, ("limit", {"user": "alice", "jobs": 1}), 1),
        ({}, ("limit", {"user": "alice", "jobs": 2}), 0),
    ],
)
def test_a_job_starts_within_the_limits(case: Case, asked: dict, event: Any, found: int) -> None:
    case.submit(job=2, verdict="pass")
    case.start(2.2, 2, "c2", pinned=False)
    case.submit(**asked)
    case.add(2.5, event[0], by="admin", **event[1])
    case.ran(3.0)
    case.add(9, "end", 2, "slurm", how="completed")
    assert case.names() == ["limit exceeded"] * found


@pytest.mark.parametrize(("limit", "found"), [(1, ["limit exceeded"]), (2, [])])
def test_no_more_tasks_of_an_array_run_than_it_allows(case: Case, limit: int, found: list[str]) -> None:
    case.submit(array=(1, 2), array_limit=limit)
    case.cycle(2.5, 1)
    case.add(3, "split", 1, "scheduler", tasks=(1,), ids=(2,))
    case.place(4, 1)
    case.place(4.2, 2)
    case.start(5, 1)
    case.start(5.1, 2)
    for job in (1, 2):
        case.add(9, "end", job, "slurm", how="completed")
    assert case.names() == found


@pytest.mark.parametrize(
    ("asked", "started", "found"),
    [
        ({"tasks": 2}, {}, 1),
        ({"tasks": 2}, {"cores": (2,), "memory_mb": (2000,)}, 0),
        ({"memory_per_cpu_mb": 500}, {}, 1),
        ({"memory_per_node_mb": 1000}, {}, 0),
        ({}, {"memory_mb": (8000,)}, 1),
        ({"nodes_min": 2, "nodes_max": 2}, {}, 1),
    ],
)
def test_a_job_gets_what_it_asked_for(case: Case, asked: dict, started: dict, found: int) -> None:
    case.submit(**asked)
    case.place(3)
    case.start(4, **started)
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == ["wrong size"] * found


@pytest.mark.parametrize(("given", "found"), [({"memory_per_node": 8000}, []), ({}, ["wrong size"])])
def test_a_job_that_we_gave_whole_nodes_has_all_their_memory(case: Case, given: dict, found: list[str]) -> None:
    case.submit(extra="sns:1 exclusive")
    case.place(3, **given)
    case.start(4, memory_mb=(8000,))
    case.add(6, "end", 1, "slurm", how="completed")
    assert case.names() == found


def share(case: Case, memory_mb: int, *, suspended: bool) -> list[str]:
    """Two jobs of three cores on a node of four, of which the first may be suspended."""
    for job in (1, 2):
        case.submit(job=job, verdict="pass", tasks=3, memory_per_node_mb=memory_mb)
    case.start(3, 1, cores=(3,), memory_mb=(memory_mb,))
    if suspended:
        case.add(4, "suspend", 1, "admin")
    case.start(5, 2, cores=(3,), memory_mb=(memory_mb,))
    for job in (1, 2):
        case.add(9, "end", job, "slurm", how="completed")
    return case.names()


@pytest.mark.parametrize(
    ("memory_mb", "suspended", "found"),
    [(1000, False, ["node over capacity"]), (1000, True, []), (5000, True, ["node over capacity"])],
)
def test_no_node_is_over_its_capacity(case: Case, memory_mb: int, suspended: bool, found: list[str]) -> None:
    """A suspended job keeps its memory and gives back its cores."""
    assert share(case, memory_mb, suspended=suspended) == found
