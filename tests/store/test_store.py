"""Tries, decisions and snapshots survive; a store that fails says so in one line."""

import itertools
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from slurm_sns.errors import BadInput, SnsError, Unreachable
from slurm_sns.model import Alternative, Job, Node, Plan, Report, Resources, Snapshot, Start, gpus_of
from slurm_sns.policies.base import Considered, Explanation, HistoryFormat
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.history import recall
from slurm_sns.scheduler.ports import PolicyHistory
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import UNKNOWN_USER, StoredDecisions
from slurm_sns.store.history import StoredHistory
from slurm_sns.store.retention import EVERY
from slurm_sns.task_ids import task_id

DAY = 86_400
FULL = Try(7, 99, 3, 12.5, 99.25, "Slurm said: 'no'; ünï", "AssocGrpCpuLimit")
SNAPSHOT = Snapshot(
    (Node("c1", Resources(4, 100), Resources(2, 50)),), (Job(1, 5, (Alternative(1, Resources(1, 1)),)),)
)


@pytest.fixture
def history(url: str) -> StoredHistory:
    return StoredHistory(open_store(url))


def again(url: str) -> StoredHistory:
    return StoredHistory(open_store(url))


def test_a_new_store_holds_nothing(history: StoredHistory) -> None:
    assert history.load() == {}


def test_a_try_comes_back_as_it_was_after_a_restart(history: StoredHistory, url: str) -> None:
    of_a_task = Try(task_id(2**26, 4_000_000), 99)
    history.save([FULL, of_a_task], [])
    assert again(url).load() == {7: FULL, of_a_task.job_id: of_a_task}


def test_a_changed_try_replaces_the_old_one(history: StoredHistory, url: str) -> None:
    history.save([FULL], [])
    changed = replace(FULL, failures=4, limited_by="")
    history.save([changed], [])
    assert again(url).load() == {7: changed}


def test_tries_of_jobs_that_are_gone_are_forgotten(history: StoredHistory, url: str) -> None:
    history.save([FULL, replace(FULL, job_id=8)], [])
    history.save([], [7, 12345])
    assert list(again(url).load()) == [8]


def test_a_save_happens_as_a_whole_or_not_at_all(history: StoredHistory, url: str) -> None:
    history.save([FULL], [])
    broken = replace(FULL, job_id=9, note=None)
    with pytest.raises(Unreachable, match="cannot be written") as problem:
        history.save([replace(FULL, note="new"), broken], [7])
    assert FULL.limited_by not in one_line(problem), "a row can hold what users wrote"
    assert again(url).load() == {7: FULL}


def test_ten_thousand_tries_are_saved_at_once(history: StoredHistory) -> None:
    history.save([Try(number, 1) for number in range(10_000)], [])
    assert len(history.load()) == 10_000


# --- what policies remember

REMEMBERED = PolicyHistory("dfrs", 1, '[{"passed": [7]}]')


def test_what_a_policy_remembers_comes_back_after_a_restart(history: StoredHistory, url: str) -> None:
    assert history.load_memory("dfrs") is None
    history.save([], [], REMEMBERED)
    newer = PolicyHistory("dfrs", 2, "ünï" * 100_000)
    history.save([FULL], [], newer)
    history.save([], [7])
    assert again(url).load_memory("dfrs") == newer
    assert again(url).load_memory("combined") is None


def test_each_policy_has_a_memory_of_its_own(history: StoredHistory) -> None:
    other = REMEMBERED._replace(policy="rescheduling")
    for memory in (REMEMBERED, other):
        history.save([], [], memory)
    assert [history.load_memory(name) for name in ("dfrs", "rescheduling")] == [REMEMBERED, other]


def test_tries_and_memory_are_written_together_or_not_at_all(history: StoredHistory, url: str) -> None:
    history.save([FULL], [], REMEMBERED)
    with pytest.raises(Unreachable, match="cannot be written"):
        history.save([replace(FULL, note="new")], [], REMEMBERED._replace(text=None))
    with pytest.raises(Unreachable, match="cannot be written"):
        history.save([replace(FULL, note=None)], [], REMEMBERED._replace(text="new"))
    assert (again(url).load(), again(url).load_memory("dfrs")) == ({7: FULL}, REMEMBERED)


@pytest.mark.parametrize("value", ["'garbage'", "x'00ff'", "17", "cast(x'ff' as text)"])
def test_a_memory_that_we_have_never_written_costs_itself_only(file_url: str, value: str) -> None:
    """On SQLite, whose columns hold values of every type."""
    history, url = again(file_url), file_url
    history.save([FULL], [], REMEMBERED)
    with open_store(url).begin() as connection:
        connection.execute(text(f"UPDATE policy_memory SET text={value}, version='1'"))
    log: list[str] = []
    assert recall(again(url).load_memory("dfrs"), HistoryFormat(1, Try), log.append) is None
    (line,) = log
    assert line.startswith("the history of policy dfrs ")
    assert line.endswith(": it starts without history")
    assert again(url).load() == {7: FULL}


# --- decisions


@pytest.fixture
def decisions(url: str) -> StoredDecisions:
    return StoredDecisions(open_store(url), keep_days=30, keep_snapshots=2)


def plan(job_id: int) -> Plan:
    start = Start(job_id, ("c1", "c2"), Alternative(2, Resources(1, 1)), "by mix-fit")
    return Plan((start,), report=Report("mix-fit", {"mix-fit": 3, "best-fit-cores": 2}))


def test_where_packing_a_snapshot_takes_long_not_every_cycle_has_one_but_each_has_its_decisions(url: str) -> None:
    clock = itertools.count(step=0.5)  # by which each step takes half a second
    decisions = StoredDecisions(open_store(url), keep_days=30, keep_snapshots=20, steady=lambda: next(clock))
    for number in range(1, 30):
        decisions.record(number, SNAPSHOT, plan(number), {}, owners={}, explanations={}, tasks={})
    cycles = [decisions.of_job(number)[0].cycle_id for number in range(1, 30)]
    assert [number for number, cycle in enumerate(cycles) if decisions.snapshot_of(cycle) is not None] == [0, 9, 18, 27]
    assert decisions.cycles_between(0, 30) == [cycles[number] for number in (0, 9, 18, 27)]


def test_two_records_of_a_cycle_have_a_snapshot_each_and_one_that_counts_again_takes_nobodys_turn(url: str) -> None:
    clock = itertools.count(step=0.5)
    decisions = StoredDecisions(open_store(url), keep_days=30, keep_snapshots=20, steady=lambda: next(clock))

    def record(at_s: float, job_id: int, notes: dict[int, str], repeated: frozenset[int] = frozenset()) -> None:
        started = plan(job_id) if job_id else Plan()
        owners = {1: 2001}
        decisions.record(at_s, SNAPSHOT, started, notes, owners=owners, explanations={}, tasks={}, repeated=repeated)

    for at_s, job_id in ((1.0, 1), (1.0, 2), (1.5, 3)):
        record(at_s, job_id, {})
    kept = [decisions.snapshot_of(decisions.of_job(number)[0].cycle_id) is not None for number in (1, 2, 3)]
    assert kept == [True, True, False]
    record(2.0, 0, {1: "a limit"})
    for _ in range(30):
        next(clock)
    record(3.0, 0, {1: "a limit"}, repeated=frozenset({1}))
    record(4.0, 4, {})
    assert decisions.snapshot_of(decisions.of_job(4)[0].cycle_id) == SNAPSHOT


def test_a_decision_comes_back_with_its_cycle_oldest_first(decisions: StoredDecisions) -> None:
    decisions.record(10.5, SNAPSHOT, plan(1), {}, owners={1: 2001}, explanations={}, tasks={})
    decisions.record(
        20.5, SNAPSHOT, Plan(), {1: "it's requeued; DROP TABLE decisions"}, owners={1: 2001}, explanations={}, tasks={}
    )
    started, noted = decisions.of_job(1)
    assert (started.action, started.nodes, started.reason) == ("start", ("c1", "c2"), "by mix-fit")
    assert (started.user_id, started.at_s, started.chosen) == (2001, 10.5, "mix-fit")
    assert started.matched == {"mix-fit": 3, "best-fit-cores": 2}
    assert (noted.action, noted.nodes, noted.reason) == ("note", (), "it's requeued; DROP TABLE decisions")
    assert decisions.snapshot_of(started.cycle_id) == SNAPSHOT
    assert decisions.of_job(2) == []
    assert decisions.snapshot_of(99) is None


GPUS_AS_PAIRS = """UPDATE decisions SET demand = '{"cores": 1, "gpus": [["gpu", 3], ["gpu:a", 2]]}'"""


def test_a_demand_comes_back_by_resource_with_gpus_only_where_there_are_some(
    decisions: StoredDecisions, url: str
) -> None:
    gpus = gpus_of({"a": 2, "": 1})
    for job_id, demand in ((1, Resources(1, 1)), (2, Resources(1, 1, gpus=gpus))):
        placed = Plan((Start(job_id, ("c1",), Alternative(1, demand), ""),))
        decisions.record(10.5, SNAPSHOT, placed, {}, owners={}, explanations={}, tasks={})
    (without,), (with_gpus,) = decisions.of_job(1), decisions.of_job(2)
    plain = {"cores": 1, "memory_mb": 1, "ways": 0, "bandwidth_gbps": 0, "closids": 0}
    assert (without.demand, with_gpus.demand) == (plain, {**plain, "gpu": 3, "gpu:a": 2})
    with open_store(url).begin() as connection:
        connection.execute(text(GPUS_AS_PAIRS))
    assert decisions.of_job(2)[0].demand == {"cores": 1, "gpu": 3, "gpu:a": 2}, "as they were written before"


def test_a_policys_explanation_comes_back_as_plain_values(decisions: StoredDecisions) -> None:
    """A figure may be a number of numpy's."""
    rows = (Considered("2", "on shared nodes", "", {"nodes": 2, "slowdown": 0.5, "numpys": np.int64(7), "ways": None}),)
    said = Explanation(("Program mg is scaling.",), "scale", rows, ("nearest: c1",))
    decisions.record(10.5, SNAPSHOT, plan(1), {}, owners={}, explanations={1: said}, tasks={})
    (started,) = decisions.of_job(1)
    assert started.considered is not None
    assert (started.considered["summary"], started.considered["details"]) == (
        ["Program mg is scaling."],
        ["nearest: c1"],
    )
    (row,) = started.considered["considered"]
    assert row["figures"] == {"nodes": 2, "slowdown": 0.5, "numpys": "7", "ways": None}


def test_a_recorded_snapshot_has_the_policys_history(url: str) -> None:
    form, remembered = HistoryFormat(1, Try), replace(SNAPSHOT, now_s=10, history=FULL)
    decisions = StoredDecisions(open_store(url), keep_days=30, keep_snapshots=2, history=form)
    decisions.record(10.5, remembered, plan(1), {}, owners={}, explanations={}, tasks={})
    assert decisions.snapshot_of(decisions.of_job(1)[0].cycle_id) == remembered


LIMITED = "placed on {}, but Slurm did not start it: AssocGrpCpuLimit"


def refuse(decisions: StoredDecisions, at_s: float, node: str, *job_ids: int, again: bool) -> None:
    """A placement of each of these jobs that meets a limit, which the look after it shows."""
    starts = tuple(Start(job_id, (node,), Alternative(1, Resources(1, 1)), "by mix-fit") for job_id in job_ids)
    known = {"owners": {}, "explanations": {}, "tasks": {}}
    decisions.record(at_s, SNAPSHOT, Plan(starts), {}, **known)
    repeated = frozenset(job_ids) if again else frozenset()
    decisions.record(
        at_s + 1, SNAPSHOT, Plan(), dict.fromkeys(job_ids, LIMITED.format(node)), **known, repeated=repeated
    )


def test_a_limit_that_is_met_again_and_again_is_counted(decisions: StoredDecisions, url: str) -> None:
    refuse(decisions, 10, "c1", 1, again=False)
    for at_s in range(20, 220, 10):
        refuse(decisions, at_s, "c2", 1, again=True)
    assert [(each.action, each.times, each.reason) for each in decisions.of_job(1)] == [
        ("start", 1, "by mix-fit"),
        ("note", 21, LIMITED.format("c2")),
    ]
    assert decisions.of_job(1)[1].at_s == 211
    with open_store(url).connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM cycles")).scalar() == 2


def test_the_placement_of_another_job_in_the_same_cycle_stays(decisions: StoredDecisions) -> None:
    refuse(decisions, 10, "c1", 1, 2, again=False)
    refuse(decisions, 20, "c1", 1, again=True)
    decisions.record(30, SNAPSHOT, plan(3), {1: LIMITED}, owners={}, explanations={}, tasks={}, repeated=frozenset({1}))
    assert [len(decisions.of_job(job_id)) for job_id in (1, 2, 3)] == [2, 2, 1]
    assert decisions.of_job(1)[1].times == 3


def test_where_the_note_before_is_no_longer_kept_a_repetition_is_a_note(decisions: StoredDecisions) -> None:
    refuse(decisions, 10, "c1", 1, again=True)
    assert [(each.action, each.times) for each in decisions.of_job(1)] == [("start", 1), ("note", 1)]


def test_a_note_that_is_counted_for_longer_than_decisions_are_kept_stays(decisions: StoredDecisions) -> None:
    refuse(decisions, 0, "c1", 1, again=False)
    for day in range(1, 40):
        refuse(decisions, day * DAY, "c1", 1, again=True)
        for at in range(EVERY // 20):
            decisions.record(day * DAY + at, SNAPSHOT, plan(2), {}, owners={}, explanations={}, tasks={})
    assert [each.times for each in decisions.of_job(1) if each.action == "note"] == [40]


def test_another_users_note_is_not_counted_on(decisions: StoredDecisions) -> None:
    known = {"explanations": {}, "tasks": {}}
    decisions.record(1, SNAPSHOT, Plan(), {1: LIMITED}, owners={1: 2001}, **known)
    decisions.record(2, SNAPSHOT, Plan(), {1: LIMITED}, owners={1: 2002}, **known, repeated=frozenset({1}))
    assert [(each.user_id, each.times) for each in decisions.of_job(1)] == [(2001, 1), (2002, 1)]


def test_a_decision_on_a_job_of_an_unknown_user_is_for_admins(decisions: StoredDecisions) -> None:
    decisions.record(1, SNAPSHOT, plan(1), {}, owners={}, explanations={}, tasks={})
    assert decisions.of_job(1)[0].user_id == UNKNOWN_USER


def test_a_task_of_an_array_is_found_again_by_its_newest_job_id(decisions: StoredDecisions) -> None:
    for at_s, job_id in ((1, 7), (2, 8)):
        tasks = {job_id: (41, 0), 99: (41, 5)}
        decisions.record(at_s, SNAPSHOT, plan(job_id), {}, owners={}, explanations={}, tasks=tasks)
    decisions.record(3, SNAPSHOT, plan(7), {}, owners={}, explanations={}, tasks={7: (60, 1)})
    found = [decisions.job_of_task(*task) for task in ((41, 0), (60, 1), (41, 5), (41, 1))]
    assert found == [8, 7, None, None], "number 7 was given again; nothing was decided about 99"


def test_what_was_decided_about_a_task_is_shown_whichever_of_its_ids_is_asked_for(decisions: StoredDecisions) -> None:
    """It is placed from its array's record under an id of ours, and has one of Slurm's from then on."""
    ours, task = task_id(41, 7), {"owners": {}, "explanations": {}}
    decisions.record(1, SNAPSHOT, plan(ours), {}, **task, tasks={ours: (41, 7)})
    assert decisions.job_of_task(41, 7) == ours
    assert [each.job_id for each in decisions.of_job(ours)] == [ours]
    assert decisions.of_job(50) == []
    decisions.record(2, SNAPSHOT, Plan(), {50: "requeued"}, **task, tasks={50: (41, 7)})
    decisions.record(3, SNAPSHOT, plan(51), {}, **task, tasks={51: (41, 8)})
    assert decisions.job_of_task(41, 7) == 50
    for asked in (ours, 50):
        assert [(each.job_id, each.action) for each in decisions.of_job(asked)] == [(ours, "start"), (50, "note")]


def test_old_decisions_and_all_but_the_newest_snapshots_are_cleaned_away(decisions: StoredDecisions) -> None:
    decisions.record(0, SNAPSHOT, plan(1), {}, owners={}, explanations={}, tasks={1: (41, 7)})
    assert decisions.job_of_task(41, 7) == 1
    for number in range(2, EVERY + 2):
        decisions.record(31 * DAY + number, SNAPSHOT, plan(number), {}, owners={}, explanations={}, tasks={})
    assert decisions.of_job(1) == []
    assert decisions.job_of_task(41, 7) is None
    kept = [decisions.snapshot_of(decisions.of_job(number)[0].cycle_id) for number in range(2, EVERY + 2)]
    assert kept == [None] * (EVERY - 2) + [SNAPSHOT] * 2


def test_the_cycles_of_a_time_are_those_whose_snapshots_are_kept(decisions: StoredDecisions) -> None:
    for number in range(1, EVERY + 2):  # two snapshots are left
        decisions.record(number, SNAPSHOT, plan(number), {}, owners={}, explanations={}, tasks={})
    last = EVERY + 1
    before, newest = (decisions.of_job(number)[0].cycle_id for number in (last - 1, last))
    assert decisions.cycles_between(0, last + 1) == [before, newest]
    assert decisions.cycles_between(last - 1, last) == [before]


def test_no_snapshots_are_kept_where_none_are_wanted(url: str) -> None:
    decisions = StoredDecisions(open_store(url), keep_days=30, keep_snapshots=0)
    decisions.record(1, SNAPSHOT, plan(1), {}, owners={}, explanations={}, tasks={})
    assert decisions.snapshot_of(decisions.of_job(1)[0].cycle_id) is None


# --- failures


@pytest.mark.parametrize("url", ["", "nonsense", "oracle9://x", "foo+bar://x", "sqlite+nope:///x"])
def test_a_url_of_no_database_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput, match="valid: sqlite:////absolute/path"):
        open_store(url)


def test_a_store_that_cannot_be_opened_says_so_without_its_password(tmp_path: Path, mocker) -> None:
    with pytest.raises(Unreachable) as problem:
        open_store(f"sqlite:///{tmp_path}/none/sns.db")
    assert "unable to open database file" in str(problem.value)
    mocker.patch(
        "slurm_sns.store.database._have_tables",
        side_effect=OperationalError("CREATE TABLE", {}, Exception("gone away")),
    )
    engine = mocker.patch("slurm_sns.store.database.create_engine")
    engine.side_effect = lambda parsed, **_: mocker.Mock(url=parsed, dialect=mocker.Mock())
    with pytest.raises(Unreachable) as problem:
        open_store("mysql+pymysql://sns:secret@db/sns")
    assert "secret" not in str(problem.value)
    assert "mysql+pymysql://sns:***@db/sns" in str(problem.value)


def test_a_file_that_is_no_database_is_met(tmp_path: Path) -> None:
    (tmp_path / "sns.db").write_text("this is a letter to my aunt, and no database at all\n" * 100)
    with pytest.raises(Unreachable, match="file is not a database; stop the scheduler, move the file away, start: "):
        open_store(f"sqlite:///{tmp_path / 'sns.db'}")


def test_a_store_that_cannot_be_written_is_met_before_anything_is_placed(file_url: str, tmp_path: Path) -> None:
    StoredHistory(open_store(file_url)).check_writable()
    read_only = StoredHistory(open_store(f"sqlite:///file:{tmp_path / 'sns.db'}?mode=ro&uri=true"))
    with pytest.raises(Unreachable, match="must belong to SlurmUser and be writable"):
        read_only.check_writable()


def one_line(problem) -> str:
    message = str(problem.value)
    assert "\n" not in message
    return message


@pytest.fixture
def locked(file_url: str, tmp_path: Path, mocker):
    """A store that another process holds for writing, without the five seconds of patience."""
    mocker.patch("slurm_sns.store.database._tune_sqlite")
    open_store(file_url)
    other = sqlite3.connect(tmp_path / "sns.db", isolation_level=None)
    engine = open_store(f"{file_url}?timeout=0.05")
    other.execute("BEGIN EXCLUSIVE")
    yield engine
    other.close()


def test_a_locked_store_is_no_answer_and_works_again_afterwards(locked) -> None:
    with pytest.raises(Unreachable) as problem:
        StoredHistory(locked).save([FULL], [])
    assert one_line(problem).endswith("database is locked")
    with pytest.raises(Unreachable, match="the decision record cannot be written"):
        StoredDecisions(locked, 30, 2).record(1, SNAPSHOT, plan(1), {}, owners={}, explanations={}, tasks={})


def test_a_store_that_cannot_be_read_is_no_answer(url: str) -> None:
    engine = open_store(url)
    decisions = StoredDecisions(engine, 30, 2)
    with engine.begin() as connection:
        for table in ("decisions", "cycles", "snapshots", "tries", "policy_memory", "array_tasks"):
            connection.execute(text(f"DROP TABLE {table}"))
    history = StoredHistory(engine)
    for ask in (
        lambda: decisions.of_job(1),
        lambda: decisions.job_of_task(41, 7),
        lambda: decisions.snapshot_of(1),
        history.load,
        lambda: history.load_memory("dfrs"),
    ):
        with pytest.raises(Unreachable) as problem:
            ask()
        said = one_line(problem)
        assert any(text in said for text in ("no such table", "doesn't exist", "does not exist"))
        assert "SELECT" not in said, "a statement can hold what users wrote"


def test_a_full_disk_is_no_answer(file_url: str) -> None:
    engine = open_store(file_url)
    with engine.connect() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar()
    event.listen(engine, "checkout", lambda raw, *_: raw.execute(f"PRAGMA max_page_count={pages}"))
    with pytest.raises(Unreachable) as problem:
        StoredHistory(engine).save([replace(FULL, job_id=number, note="x" * 500) for number in range(100)], [])
    assert "database or disk is full" in one_line(problem)
    assert StoredHistory(engine).load() == {}


def test_a_read_only_file_is_no_answer(file_url: str, tmp_path: Path) -> None:
    open_store(file_url).dispose()
    read_only = open_store(f"sqlite:///file:{tmp_path / 'sns.db'}?mode=ro&uri=true")
    with pytest.raises(Unreachable) as problem:
        StoredHistory(read_only).save([FULL], [])
    assert "readonly" in one_line(problem)


@pytest.mark.long
def test_two_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    for attempt in range(20):
        url, problems = f"sqlite:///{tmp_path / f'{attempt}.db'}", []
        start = threading.Barrier(6)

        def open_it(url=url, problems=problems, start=start) -> None:
            start.wait()
            try:
                open_store(url).dispose()
            except SnsError as problem:
                problems.append(problem)

        threads = [threading.Thread(target=open_it) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []


def test_the_database_of_a_newer_version_serves_an_older_one(url: str) -> None:
    StoredHistory(open_store(url)).save([FULL], [])
    with open_store(url).begin() as newer:
        newer.execute(text("ALTER TABLE tries ADD COLUMN colour TEXT"))
    assert StoredHistory(open_store(url)).load() == {7: FULL}
