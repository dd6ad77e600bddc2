"""`sns report --config`: the plans in the store of a scheduler that sends nothing, and what they do not say."""

from dataclasses import replace
from pathlib import Path

import pytest
from fake_slurm import FakeSlurm, Site
from json_output import read
from live import ENFORCE, FOREIGN
from sqlalchemy import text

from slurm_sns.cli.live import report_of_store
from slurm_sns.model import Alternative, Job, Node, Plan, Report, Resources, Snapshot, Start
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions
from slurm_sns.task_ids import task_id

BEGAN_S = 1_795_000_000


class Recorded:
    """The store of the test's configuration, as a scheduler writes it."""

    def __init__(self, directory: Path) -> None:
        self.engine = open_store(f"sqlite:///{directory / 'state' / 'sns.db'}")
        self.decisions = StoredDecisions(self.engine, keep_days=30, keep_snapshots=500)

    def cycle(self, at_s: float, starts: dict[int, tuple[str, ...]], waiting: tuple[int, ...], **more) -> None:
        """A cycle so many seconds after the first one."""
        alternative = Alternative(1, Resources(2, 10))
        jobs = tuple(Job(each, 5, (alternative,)) for each in waiting)
        nodes = (Node("c1", Resources(4, 100), Resources(2, 50)),)
        snapshot = Snapshot(nodes, jobs, now_s=int(BEGAN_S + at_s))
        plan = Plan(
            tuple(Start(job, where, alternative, "by mix-fit") for job, where in starts.items()),
            report=Report("mix-fit"),
        )
        known = {"owners": {}, "explanations": {}, "tasks": {}, **more}
        self.decisions.record(BEGAN_S + at_s, snapshot, plan, {}, **known)


@pytest.fixture
def observing(write_config) -> Path:
    return write_config(mode="observe")


@pytest.fixture
def recorded(observing: Path) -> Recorded:
    return Recorded(observing.parent)


def values(sns, config: Path):
    return read("sns report", sns("report", "--config", config, "--json")[1])["store"]


def test_a_job_counts_once_by_its_first_plan(sns, observing: Path, recorded: Recorded) -> None:
    recorded.cycle(0, {1: ("c1",), 2: ("c1", "c2")}, (1, 2))
    recorded.cycle(60, {1: ("c3",)}, (1,))
    found = values(sns, observing)
    assert (found["jobs"], found["starts"], found["cycles"], found["mode"]) == (2, 3, 2, "observe")
    assert [(each["job"], each["nodes"], each["plans"], each["cpus"]) for each in found["plans"]] == [
        ("1", "c1", 2, 2),
        ("2", "c[1-2]", 1, 4),
    ]
    assert found["by_size"] == {"several cores of a node": 1, "several nodes": 1}
    assert found["by_heuristic"] == {"mix-fit": 2}


def test_a_job_that_waits_in_a_later_snapshot_waited_so_long_at_least(sns, observing: Path, recorded: Recorded) -> None:
    recorded.cycle(0, {1: ("c1",), 2: ("c1",)}, (1, 2))
    recorded.cycle(600, {3: ("c1",)}, (1, 3))
    recorded.cycle(900, {4: ("c1",)}, (4,))
    found = values(sns, observing)
    assert [each["waited_on_s"] for each in found["plans"]] == [600, None, None, None]
    _, output, _ = sns("report", "--config", observing)
    told = " ".join(output.split())
    assert "1 of them certainly still waited later, as the kept snapshots show: at least 10 min in the median" in told
    assert "The store does not say when Slurm started them, so this page has no gain" in told


def test_a_task_of_an_array_is_one_job_under_both_of_its_ids(sns, observing: Path, recorded: Recorded) -> None:
    ours = task_id(7, 3)
    recorded.cycle(0, {ours: ("c1",)}, (ours,), tasks={ours: (7, 3)})
    recorded.cycle(60, {9: ("c1",)}, (9,), tasks={9: (7, 3)})
    assert [(each["job"], each["plans"], each["waited_on_s"]) for each in values(sns, observing)["plans"]] == [
        ("7_3", 2, 60)
    ]


def test_a_scheduler_that_observes_writes_what_is_reported(sns, observing: Path, recorded: Recorded) -> None:
    site = Site(FakeSlurm({"c1": 4, "c2": 4}), decisions=recorded.decisions)
    site.slurm.starts_nothing = True
    scheduler = site.scheduler(replace(ENFORCE, mode="observe"))
    site.slurm.submit(4, **FOREIGN)
    scheduler.repeat(5, 60.0)
    site.slurm.submit(2, **FOREIGN)
    scheduler.cycle()
    found = values(sns, observing)
    assert [(each["job"], each["cpus"], each["waited_on_s"]) for each in found["plans"]] == [
        ("1", 4, 240),
        ("2", 2, None),
    ]
    assert (found["cycles"], found["snapshots"], found["read"]) == (2, 2, 2)
    assert site.slurm.orders == []


def test_few_snapshots_are_read_and_a_damaged_one_is_counted(
    sns, observing: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(10):
        recorded.cycle(60 * at, {1: (f"c{at}",)}, (1,))
    monkeypatch.setattr(report_of_store, "MOST_SNAPSHOTS", 3)
    found = values(sns, observing)
    assert (found["snapshots"], found["read"], found["plans"][0]["waited_on_s"]) == (10, 3, 540)
    with recorded.engine.begin() as connection:
        connection.execute(text("UPDATE snapshots SET data = CAST('x' AS BLOB) WHERE cycle_id = 10"))
    found = values(sns, observing)
    assert (found["read"], sum(found["unread"].values()), found["plans"][0]["waited_on_s"]) == (2, 1, 300)


@pytest.mark.usefixtures("recorded")
def test_a_store_without_plans_says_why_that_may_be(sns, observing: Path) -> None:
    assert "no planned start" in sns("report", "--config", observing)[1]
    assert values(sns, observing)["began_s"] is None


def test_it_is_html_too(sns, observing: Path, recorded: Recorded, tmp_path: Path) -> None:
    recorded.cycle(0, {1: ("<b>",)}, (1,))
    recorded.cycle(7200, {2: ("c1",)}, (1, 2))
    sns("report", "--config", observing, "--out", tmp_path / "report.html")
    shown = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_what_has_no_report_is_said_in_one_line(sns, write_config) -> None:
    for settings, status, complaint in (
        ({"mode": "enforce"}, 2, "mode is enforce: the starts in its store were sent"),
        ({"mode": "observe"}, 2, "there is no store at sqlite:///"),
        ({"mode": "observe", "slurm": {"user": "nobody"}}, 2, "this runs as nobody"),
    ):
        ended, output, errors = sns("report", "--config", write_config(**settings))
        assert (ended, output, errors.count("\n")) == (status, "", 1)
        assert complaint in errors
