"""What the agents are told about active runs, and what becomes of their reports where nothing is learnt."""

from dataclasses import replace

import pytest
from fake_slurm import FakeSlurm, Site
from live import ENFORCE, job, pinned, running

from slurm_sns.errors import Unreachable
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.agent_link import AgentLink
from slurm_sns.scheduler.loop import Scheduler
from slurm_sns.scheduler.observation import JobState
from slurm_sns.scheduler.snapshot.spreading import NEVER_SPREAD
from slurm_sns.wire.values import ActiveRuns, ArrayTask, Point, RunId, RunReport


class Agents:
    """Agents that keep what they are told."""

    def __init__(self, *reports: RunReport) -> None:
        self.told: list = []
        self.waiting = list(reports)

    def states(self) -> dict:
        return {}

    def reports(self) -> tuple[RunReport, ...]:
        return tuple(self.waiting)

    def acknowledge(self, keys) -> None:
        keys = set(keys)
        self.waiting = [each for each in self.waiting if each.key not in keys]

    def show_active(self, runs_by_node) -> None:
        self.told.append(runs_by_node)


def active(*runs: RunId) -> ActiveRuns:
    return ActiveRuns(frozenset(runs))


def link(agents: Agents) -> AgentLink:
    return AgentLink(agents, None, NEVER_SPREAD)


@pytest.fixture
def agents() -> Agents:
    return Agents()


def test_running_suspended_and_completing_jobs_of_everybody_are_active_on_their_nodes(agents) -> None:
    jobs = (
        running(1, "c1", "c2", restarts=2),
        running(2, "c2", admin_comment=""),
        running(3, "c3", state=JobState.SUSPENDED),
        running(4, "c3", is_completing=True),
        running(5, "c1", state=JobState.ENDED),
        pinned(6, "c1"),
        job(7),
    )
    link(agents).show_active(agents, jobs)
    assert agents.told == [
        {"c1": active(RunId(1, 2)), "c2": active(RunId(1, 2), RunId(2)), "c3": active(RunId(3), RunId(4))},
    ]


def test_the_agents_of_its_nodes_are_told_which_task_of_an_array_a_job_is(agents) -> None:
    task = running(48, "c1", "c2", array_id=41, array_task=7)
    link(agents).show_active(agents, (task, running(2, "c2"), job(41, array_id=41, array_tasks="8-9")))
    tasks = frozenset({ArrayTask(48, 41, 7)})
    [told] = agents.told
    assert told == {
        "c1": ActiveRuns(frozenset({RunId(48)}), tasks),
        "c2": ActiveRuns(frozenset({RunId(48), RunId(2)}), tasks),
    }


def test_the_agents_are_told_at_the_start_and_when_something_changed(agents) -> None:
    told = link(agents)
    for jobs in ((), (), (running(1, "c1"),), (running(1, "c1", nice=5),), (running(1, "c1", restarts=1),), ()):
        told.show_active(agents, jobs)
    assert agents.told == [{}, {"c1": active(RunId(1))}, {"c1": active(RunId(1, 1))}, {}]


class Measurements:
    """Keeps what was measured of runs; it may be away."""

    def __init__(self) -> None:
        self.rows: list = []
        self.is_away = False

    def record(self, runs, _now_s) -> None:
        if self.is_away:
            raise Unreachable("the store is away")
        self.rows += runs


def test_what_agents_measured_is_kept_and_a_store_that_is_away_costs_that_only() -> None:
    site = Site(FakeSlurm({"c1": 4}))
    points = (Point(6, 60.0, 1.25, 8.0),)
    agents, measurements = Agents(RunReport(RunId(1), "c1", 1.0, 5.0, points=points)), Measurements()
    site.slurm.submit(4, run_s=60)
    ports = replace(site.ports(), agents=agents, measurements=measurements)
    scheduler = Scheduler(ports, max_jobs(MatchingParameters()), ENFORCE, publish=site.views.append)
    scheduler.repeat(2, 1.0)
    [row] = measurements.rows
    assert (row.run, row.user_id, row.ipc) == (RunId(1), site.slurm.jobs[1].user_id, 1.25)
    measurements.is_away = True
    agents.waiting = [RunReport(RunId(2), "c1", 1.0, 5.0, points=points)]
    scheduler.repeat(2, 1.0)
    assert (agents.waiting, len(site.views)) == ([], 4), "it is acknowledged, and cycles go on"
    assert len([line for line in site.log if "the store is away" in line]) == 1


def test_where_nothing_is_learnt_reports_are_acknowledged_and_agents_are_told_what_is_active() -> None:
    site = Site(FakeSlurm({"c1": 4}))
    agents = Agents(RunReport(RunId(7), "c1", 1.0, 5.0))
    site.slurm.submit(4, run_s=60)
    ports = replace(site.ports(), agents=agents)
    scheduler = Scheduler(ports, max_jobs(MatchingParameters()), ENFORCE, publish=site.views.append)
    scheduler.repeat(3, 1.0)
    assert agents.waiting == []
    assert agents.told == [{}, {"c1": active(RunId(1))}]
    assert site.views[-1].agents == {}
