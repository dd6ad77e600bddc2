"""The checker of promises finds each broken promise in a small history, and none in one that is near but keeps it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from slurm_sns.model import Resources
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings
from world.history import Event, History
from world.mutants import MUTANTS, name_of, shows
from world.promises import check
from world.run import run, violations
from world.schedule import drawn
from world.slurm import Slurm, SlurmSite
from world.slurm_jobs import ModelJob

BEGIN_S = 1_700_000_000.0
BOOSTED = -2_000_000_000
#: A running job of one task, as the model tells it.
ALONE = {"cores": (1,), "memory_mb": (1000,), "ways": 0, "bandwidth": 0, "pinned": True, "restarts": 0}


@dataclass
class Case:
    """A history made by hand: two nodes of four cores, one job of alice's, a scheduler and a watchdog that live.

    The scheduler beats once a second up to `beats_until_s`. Events are put into their order at the check.
    """

    true_s: float = 0.0
    beats_until_s: float = inf
    end_s: float = 30.0
    quiet_from_s: float = 20.0
    alive: bool = True
    events: list[Event] = field(default_factory=list)
    store: dict[int, JobRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(0)
        self.history = History(self)
        nodes = {"c1": Resources(4, 8000), "c2": Resources(4, 8000)}
        self.slurm = Slurm(SlurmSite(nodes, {"main": (("c1", "c2"), 1), "small": (("c2",), 1)}), self)
        self.add(0, "daemon", name="scheduler", what="start")
        self.add(0, "daemon", name="watchdog", what="start")

    def wall_s(self) -> float:
        return BEGIN_S + self.true_s

    def add(self, at_s: float, kind: str, job: int = 0, by: str = "world", **data: Any) -> None:
        self.events.append(Event(at_s, BEGIN_S + at_s, kind, job, by, data))

    def submit(self, at_s: float = 2.0, job: int = 1, verdict: str = "held", by: str = "alice", **asked: Any) -> None:
        asked = {"run_s": 3.0, "extra": "sns:1" if verdict == "held" else "", **asked, "verdict": verdict}
        self.add(at_s, "submit", job, by, **asked)

    def seen(self, at_s: float, *recorded: int, by: str = "scheduler") -> None:
        """A cycle begins: it looks, and saves records."""
        self.add(at_s, "look", by=by, is_check=False)
        if recorded:
            self.add(at_s + 0.01, "record", by=by, saved=recorded, gone=())

    def cycle(self, at_s: float, *recorded: int, by: str = "scheduler") -> None:
        """A whole cycle that sends nothing."""
        self.seen(at_s, *recorded, by=by)
        self.add(at_s + 0.1, "cycle", by=by, ok=True)

    def place(self, at_s: float, job: int = 1, had: str = "user", *, checked: bool = True, **fields: Any) -> None:
        """A placement on c1, which the cycle has recorded; the check of the job comes just before."""
        self.seen(at_s - 0.1, job)
        if checked:
            self.add(at_s - 0.002, "look", job, "scheduler", is_check=False)
        self.add(at_s, "place", job, "scheduler", nodes=("c1",), nice=BOOSTED, had_hold=had, fields=fields)

    def start(self, at_s: float, job: int = 1, *nodes: str, **more: Any) -> None:
        self.add(at_s, "start", job, "slurm", nodes=nodes or ("c1",), **{**ALONE, **more})

    def ran(self, at_s: float, job: int = 1, how: str = "completed") -> None:
        """The job is placed, starts and ends."""
        self.place(at_s, job)
        self.start(at_s + 0.5, job)
        self.add(at_s + 3.5, "end", job, "slurm", how=how)

    def shows(self, job: int = 1, **fields: Any) -> None:
        """What the model shows of the job at the end."""
        shown = {"memory_per_cpu_mb": 1000, "extra": "sns:1", "submit_s": 0, **fields}
        self.slurm.jobs[job] = ModelJob(job, "alice", {}, **shown)

    def found(self) -> list[str]:
        """The promises that the history breaks, by sentence."""
        last_s = min(self.beats_until_s, self.end_s)
        self.add(0.7, "look", by="scheduler", is_check=False)
        for at_s in range(1, int(last_s) + 1):
            self.add(at_s, "beat", by="scheduler", value=int(BEGIN_S + at_s))
        self.add(self.end_s, "log", line="the end")
        self.history.events = sorted(self.events, key=lambda event: event.at_s)
        self.true_s = self.end_s
        return check(
            SimpleNamespace(
                history=self.history,
                slurm=self.slurm,
                store=self.store,
                settings=Settings(backoff_max_s=20.0),
                alive=self.alive,
                quiet_from_s=self.quiet_from_s,
                end_s=self.end_s,
            )
        )

    def names(self) -> list[str]:
        """The names of the promises that the history breaks."""
        return [sentence.split(":")[0] for sentence in self.found()]


@pytest.fixture
def case() -> Case:
    return Case()


def test_a_job_that_is_held_placed_started_and_ended_breaks_no_promise(case: Case) -> None:
    case.submit()
    case.ran(3.0)
    case.add(20, "purge", 1, "slurm")
    assert case.found() == []


# --- starts


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


# --- holds


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


def released(case: Case, cycles: int) -> None:
    """Its owner releases the job, and so many cycles see it."""
    case.submit(begin_s=int(BEGIN_S) + 900)
    case.cycle(2.5, 1)
    case.add(3, "release", 1, "alice", admin=False, had_hold="user")
    for at_s in range(4, 4 + cycles):
        case.cycle(at_s, 1)
    case.shows(begin_s=int(BEGIN_S) + 900)


@pytest.mark.parametrize(("cycles", "found"), [(2, ["taken again"]), (0, [])])
def test_a_job_that_its_owner_released_stays_slurms(case: Case, cycles: int, found: list[str]) -> None:
    """Unless nobody has seen it released."""
    released(case, cycles)
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
    released(case, 2)
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


# --- placements that do not start, and nice values


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


# --- what is recorded before it is sent


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


# --- dead or off


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


# --- the heartbeat


def test_a_beat_from_the_future_is_found(case: Case) -> None:
    case.add(5, "beat", by="scheduler", value=int(BEGIN_S) + 9)
    assert case.names() == ["heartbeat not honest"]


def test_a_beat_of_a_scheduler_that_does_not_run_is_found(case: Case) -> None:
    case.beats_until_s = 4
    case.add(4.5, "daemon", name="scheduler", what="crash")
    case.add(5, "beat", by="scheduler", value=int(BEGIN_S) + 5)
    assert case.names() == ["heartbeat not honest"]


def test_a_beat_before_the_first_look_is_found(case: Case) -> None:
    case.add(0.5, "beat", by="scheduler", value=int(BEGIN_S))
    assert case.names() == ["heartbeat not honest"]


def test_a_beat_after_the_stale_one_of_a_stop_is_found(case: Case) -> None:
    case.beats_until_s = 4
    case.add(4.5, "beat", by="scheduler", value=0)
    case.add(5, "beat", by="scheduler", value=int(BEGIN_S) + 5)
    assert case.names() == ["heartbeat not honest"]


@pytest.mark.parametrize(("stale", "found"), [(False, ["heartbeat not honest"]), (True, [])])
def test_a_heartbeat_that_is_fresh_after_a_clean_stop_is_found(case: Case, stale: bool, found: list[str]) -> None:
    case.beats_until_s = 4
    if stale:
        case.add(4.5, "beat", by="scheduler", value=0)
    case.add(5, "daemon", name="scheduler", what="stop")
    assert case.names() == found


@pytest.mark.parametrize("service", ["slurmctld", "munge"])
def test_beats_while_a_service_is_down_are_found(case: Case, service: str) -> None:
    case.end_s = 15
    case.add(5.5, service, state="down")
    assert case.names() == ["heartbeat not honest"] * 2, "at 14 s and at 15 s"


@pytest.mark.parametrize(("thawed_s", "number"), [(13.0, 0), (5.8, 2)])
def test_a_scheduler_that_stood_still_ends_its_cycle_before_it_finds_munge_down(
    case: Case, thawed_s: float, number: int
) -> None:
    case.end_s = 15
    case.add(5.2, "daemon", name="scheduler", what="freeze")
    case.add(5.5, "munge", state="down")
    case.add(thawed_s, "daemon", name="scheduler", what="thaw")
    assert case.names() == ["heartbeat not honest"] * number


def test_beats_while_the_store_is_locked_for_long_are_found(case: Case) -> None:
    case.end_s = 30
    case.add(5.5, "store", state="locked")
    case.add(20.5, "store", state="up")
    assert case.names() == ["heartbeat not honest"] * 2, "at 19 s and at 20 s"


# --- what we write


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


# --- the end


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
    released(case, 2)
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
        ("recorded after the rpc", "not recorded"),
        ("nice not restored", "not restored"),
        ("heartbeat before the answers", "heartbeat not honest"),
        ("watchdog keeps its first offset", "held too long"),
        ("filter ignores a stale heartbeat", "held while off"),
    ],
)
def test_a_deliberate_defect_is_found_by_some_schedule(name: str, promise: str) -> None:
    """Those that the first few schedules show; `python -m world mutants` tries all of them."""
    mutant = next(each for each in MUTANTS if each.name == name)
    shown = shows(mutant, range(1000))
    assert shown is not None
    assert name_of(shown.sentence) == promise


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
