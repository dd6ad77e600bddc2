"""The agents of the simulated world: which schedules have them, that runs are the same each time, and their checker."""

from types import SimpleNamespace
from typing import Any

import pytest

from world.history import Event
from world.mutants import MUTANTS, name_of, shows
from world.promises_agents import agents_at_the_end
from world.run import digest, run, violations
from world.schedule import Schedule, drawn, from_json
from world.schedule_agents import SHARE, concerns_agents

#: Schedules enough to have some with agents.
SEEDS = range(20 * SHARE)


def with_agents(number: int) -> list[Schedule]:
    """The first schedules that have agents."""
    return [schedule for schedule in map(drawn, SEEDS) if schedule.agents is not None][:number]


def test_some_schedules_have_agents_and_all_kinds_of_their_steps_come():
    found = [schedule for schedule in map(drawn, range(2000)) if schedule.agents is not None]
    assert 1000 / SHARE < len(found) < 4000 / SHARE
    kinds = {step.what for schedule in found for step in schedule.steps if step.what.startswith("agent-")}
    assert len(kinds) == 13
    assert {schedule.agents["explores"] for schedule in found} == {True, False}


def test_a_schedule_with_agents_is_the_same_after_json():
    for schedule in with_agents(3):
        assert from_json(schedule.to_json()) == schedule


def test_the_same_schedule_with_agents_gives_the_same_history():
    for schedule in with_agents(2):
        assert digest(run(schedule).history) == digest(run(from_json(schedule.to_json())).history)


def test_agents_get_grants_partition_nodes_report_and_are_acknowledged():
    kinds = {event.kind for schedule in with_agents(6) for event in run(schedule).history.events}
    assert {"granted", "prolog", "epilog", "group", "spooled", "received", "acknowledged", "learnt"} <= kinds


def test_steps_about_agents_are_told_from_others():
    for schedule in with_agents(5):
        for step in schedule.steps:
            assert concerns_agents(step) or not step.what.startswith("agent-")


# --- the checker


class Case:
    """A history made by hand: two nodes with agents, a scheduler in whose mode all is planned."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        disk = SimpleNamespace(spooled=lambda: self.kept)
        self.kept: set[tuple[int, int]] = set()
        self.nodes = {name: SimpleNamespace(disk=disk, agent=None) for name in ("c1", "c2")}
        for name in self.nodes:
            self.add(0.5, "agent", by=name, what="start", boot=1)
            self.add(0.6, "channel", by=name, up=True)

    def add(self, at_s: float, kind: str, job: int = 0, by: str = "world", **data: Any) -> None:
        self.events.append(Event(at_s, 1_700_000_000.0 + at_s, kind, job, by, data))

    def granted(self, ways: int, restarts: int = 0, job: int = 1) -> None:
        self.add(1.0, "granted", job, run=(job, restarts), nodes=("c1",), ways=ways)

    def starts(self, job: int = 1, restarts: int = 0) -> None:
        self.add(2.0, "start", job, nodes=("c1",), restarts=restarts)

    def ends(self, at_s: float, job: int = 1) -> None:
        self.add(at_s, "end", job, how="completed")

    def here(self, at_s: float, *runs: tuple[int, int, int], **groups: int) -> None:
        """Runs as job, restarts, ways; groups as names and masks."""
        known = tuple(((job, restarts), ways, False) for job, restarts, ways in runs)
        self.add(at_s, "here", by="c1", runs=known, groups=groups, arranged=True, mounted=True, sampled=0)

    def learns(self, at_s: float, *, gone: tuple[Any, ...] = (), runs: tuple[Any, ...] = (), **more: Any) -> None:
        data = {"generation": 0, "reports": (), "counts": {}, **more}
        self.add(at_s, "learnt", by="scheduler", gone=gone, runs=runs, **data)

    def names(self) -> list[str]:
        partitions = {"main": (tuple(self.nodes), 1)}
        result = SimpleNamespace(
            history=SimpleNamespace(events=sorted(self.events, key=lambda event: event.at_s)),
            slurm=SimpleNamespace(nodes=self.nodes),
            schedule=SimpleNamespace(
                managed=("main",), partitions=partitions, agents={"most_nodes": 0.5, "closids": 16}
            ),
            agents=SimpleNamespace(nodes=self.nodes),
            alive=True,
            end_s=100.0,
            quiet_from_s=20.0,
        )
        return [name_of(sentence) for sentence in agents_at_the_end(result)]


@pytest.fixture
def case() -> Case:
    return Case()


def test_a_history_that_keeps_the_promises_is_accepted(case: Case) -> None:
    case.granted(4)
    case.starts()
    case.here(2.1, (1, 0, 4), sns_job1=0x3FFFF)
    case.ends(5.0)
    case.here(5.5)
    case.add(5.5, "spooled", 1, "c1", run=(1, 0))
    case.add(6.0, "acknowledging", by="scheduler", keys=((1, 0, "c1"),))
    case.add(6.1, "acknowledged", by="c1", keys=((1, 0, "c1"),))
    case.add(6.1, "unspooled", 1, "c1", run=(1, 0))
    case.add(40.0, "cycle", by="scheduler", ok=True)
    assert case.names() == []


@pytest.mark.parametrize(("removed_s", "found"), [(8.0, []), (25.0, ["left on the node"])])
def test_the_group_of_a_job_without_an_epilog_goes(case: Case, removed_s: float, found: list[str]) -> None:
    case.granted(4)
    case.starts()
    case.add(2.1, "group", 1, "c1", what="made", mask=0xF)
    case.ends(5.0)
    case.add(removed_s, "group", 1, "c1", what="removed", mask=0)
    case.add(40.0, "cycle", by="scheduler", ok=True)
    assert case.names() == found


@pytest.mark.parametrize(
    ("granted", "restarts", "found"),
    [(4, 0, []), (2, 0, ["ways without a grant"]), (4, 1, ["ways without a grant"])],
)
def test_a_run_has_the_ways_of_its_own_grant(case: Case, granted: int, restarts: int, found: list[str]) -> None:
    case.granted(granted, restarts)
    case.starts()
    case.here(2.1, (1, 0, 4), sns_job1=0xF)
    assert case.names() == found


@pytest.mark.parametrize(("mask", "found"), [(0xF0, []), (0x1E, ["ways shared"])])
def test_no_two_jobs_have_the_same_way(case: Case, mask: int, found: list[str]) -> None:
    for job in (1, 2):
        case.granted(4, job=job)
        case.starts(job)
    case.here(2.1, (1, 0, 4), (2, 0, 4), sns_job1=0xF, sns_job2=mask)
    assert case.names() == found


@pytest.mark.parametrize(("mask", "found"), [(0xF, []), (0x7, ["guarantee broken"])])
def test_a_job_has_at_least_its_ways(case: Case, mask: int, found: list[str]) -> None:
    case.granted(4)
    case.starts()
    case.here(2.1, (1, 0, 4), sns_job1=mask)
    assert case.names() == found


@pytest.mark.parametrize(("ways", "found"), [(2, []), (4, ["older change"])])
def test_of_two_changes_the_one_with_the_higher_revision_counts(case: Case, ways: int, found: list[str]) -> None:
    case.starts()
    case.add(2.0, "changing", changes=(("c1", (1, 0), 1, 4, 0), ("c1", (1, 0), 2, 2, 0)))
    for at_s, revision, told in ((2.1, 2, 2), (2.2, 1, 4)):
        case.add(at_s, "changed", 1, "c1", run=(1, 0), revision=revision, ways=told)
    case.here(2.3, (1, 0, ways), sns_job1=0xF)
    assert case.names() == found


@pytest.mark.parametrize(("stored", "found"), [(True, []), (False, ["acknowledged too early"])])
def test_a_report_is_acknowledged_when_it_is_stored(case: Case, stored: bool, found: list[str]) -> None:
    case.learns(1.0, runs=(((1, 0), ("mg", 4), 1, ("c1", "c2"), None, "under way"),))
    if stored:
        case.learns(5.0, reports=(((1, 0), "c1"),))
    case.add(5.1, "acknowledging", by="scheduler", keys=((1, 0, "c1"),))
    assert case.names() == found


@pytest.mark.parametrize(("again", "found"), [(False, []), (True, ["learnt twice", "counted twice"])])
def test_a_run_is_learnt_from_once(case: Case, again: bool, found: list[str]) -> None:
    def counts(number: int) -> dict[Any, Any]:
        return {("mg", 4): {"current": {1: (number, 0)}, "renewal": None}}

    case.learns(1.0, runs=(((1, 0), ("mg", 4), 1, ("c1",), None, "under way"),))
    case.learns(5.0, gone=((1, 0),), counts=counts(1))
    if again:
        case.learns(6.0, gone=((1, 0),), counts=counts(3))
    assert case.names() == found


@pytest.mark.parametrize(("requeued", "found"), [(False, ["explored too often"]), (True, [])])
def test_a_scale_is_given_up_after_two_runs_without_a_measurement_those_that_were_requeued_not_counted(
    case: Case, requeued: bool, found: list[str]
) -> None:
    for at_s, job in enumerate((1, 2, 3), start=3):
        case.learns(1.0, runs=(((job, 0), ("mg", 4), 1, ("c1",), (1, False), "under way"),))
        case.add(at_s, "start", job, nodes=("c1",), restarts=0)
        case.ends(at_s + 0.5, job)
        if requeued and job == 1:
            case.add(at_s + 0.6, "requeue", job, "admin")
        case.learns(at_s + 0.9, gone=((job, 0),))
    assert case.names() == found


@pytest.mark.parametrize(("has_other", "found"), [(True, []), (False, ["explored too often"])])
def test_the_time_of_another_run_that_is_learnt_from_with_it_is_no_measurement_of_an_exploring_run(
    case: Case, has_other: bool, found: list[str]
) -> None:
    """The first exploring run is timed, the others are sampled and give no curve."""
    for at_s, job in enumerate((1, 2, 3), start=3):
        other = ((job + 10, 0),) if has_other and job > 1 else ()
        case.learns(1.0, runs=(((job, 0), ("mg", 4), 1, ("c1",), (1, job > 1), "under way"),))
        case.learns(1.0, runs=tuple((run, ("mg", 4), 1, ("c2",), None, "under way") for run in other))
        case.add(at_s, "start", job, nodes=("c1",), restarts=0)
        case.ends(at_s + 0.5, job)
        counts = {("mg", 4): {"current": {1: (job, 0)}, "renewal": None}}
        case.learns(at_s + 0.9, gone=((job, 0), *other), counts=counts)
    assert case.names() == found


@pytest.mark.parametrize(("failures", "found"), [(2, []), (3, ["explored too often"])])
def test_after_a_time_that_may_be_that_of_another_run_failures_are_counted_anew(
    case: Case, failures: int, found: list[str]
) -> None:
    """The first run has failed; the second one was perhaps timed."""
    for at_s, job in enumerate(range(1, 3 + failures), start=3):
        other = ((12, 0),) if job == 2 else ()
        case.learns(1.0, runs=(((job, 0), ("mg", 4), 1, ("c1",), (1, job > 2), "under way"),))
        case.learns(1.0, runs=tuple((run, ("mg", 4), 1, ("c2",), None, "under way") for run in other))
        case.add(at_s, "start", job, nodes=("c1",), restarts=0)
        case.ends(at_s + 0.5, job)
        counts = {("mg", 4): {"current": {1: (int(job > 1), 0)}, "renewal": None}}
        case.learns(at_s + 0.9, gone=((job, 0), *other), counts=counts)
    assert case.names() == found


@pytest.mark.parametrize(("at_s", "found"), [(10.0, []), (50.0, ["guarantee broken"])])
def test_what_the_kernel_refused_is_in_force_some_time_later(case: Case, at_s: float, found: list[str]) -> None:
    case.granted(4)
    case.starts()
    case.add(2.0, "agent-refused", by="c1")
    case.add(at_s, "here", by="c1", runs=(((1, 0), 4, False),), groups={}, arranged=False, mounted=True, sampled=0)
    assert case.names() == found


def test_a_report_that_was_in_the_spool_stays_until_it_is_acknowledged(case: Case) -> None:
    case.add(5.5, "spooled", 1, "c1", run=(1, 0))
    assert case.names() == ["report lost"]
    case.kept = {(1, 0)}
    assert case.names() == []


@pytest.mark.parametrize(
    ("planned", "found"),
    [("c1", ["too many nodes explore"]), ("c2", [])],  # Slurm itself has started the job on c1
)
def test_exploring_runs_take_no_more_nodes_than_allowed(case: Case, planned: str, found: list[str]) -> None:
    for job, node in ((1, "c1"), (2, planned)):
        case.learns(1.0, runs=(((job, 0), (f"p{job}", 4), 1, (node,), (1, False), "under way"),))
        case.starts(job)
    assert case.names() == found


@pytest.mark.parametrize(
    ("name", "promise"),
    [("groups not given back", "group of nobody"), ("group of a vanished job kept", "left on the node")],
)
def test_a_deliberate_defect_of_agents_is_found_by_some_schedule(name: str, promise: str) -> None:
    """Those that the first few schedules show; `python -m world mutants` tries all of them."""
    shown = shows(next(each for each in MUTANTS if each.name == name), range(1000))
    assert shown is not None
    assert name_of(shown.sentence) == promise


def test_schedules_with_agents_keep_the_promises():
    for schedule in with_agents(12):
        assert violations(run(schedule)) == []
