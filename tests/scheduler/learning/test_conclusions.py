"""What follows from reports: the same evidence, whatever their order and repetition."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import NOW, running

from slurm_sns.model import Resources
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.spread_n_share.drift import DriftParameters
from slurm_sns.policies.spread_n_share.exploration import Exploration, ExplorationStep
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.scheduler.learning.conclusions import Conclusion, averages, monitored, run_time_s, sampled, timed
from slurm_sns.scheduler.learning.values import (
    NOTHING_LEARNT,
    REPORTS_WAIT_S,
    LearningRules,
    LearningState,
    RunOutcome,
    RunToLearn,
)
from slurm_sns.scheduler.observation import JobState
from slurm_sns.wire.values import Point, RunId, RunReport

EXPLORATION = Exploration(SpreadingParameters(shared_ways=0))
RULES = LearningRules(EXPLORATION, DriftParameters(0.1, 3), explore=True)
TYPES = (NodeType(Resources(28, 128_000, 20, 118), 8),)
NODES = ("c1", "c2")


def run_of(job_id: int = 1, **fields) -> RunToLearn:
    """A run on two nodes that has succeeded."""
    given_fields = {
        "step": ExplorationStep(2, samples=False),
        "ways": 20,
        "outcome": RunOutcome.SUCCEEDED,
        "ended_s": NOW,
    }
    values = {**given_fields, **fields}
    return RunToLearn(RunId(job_id), ("mg", 16), 2, NODES, Request(16), TYPES, **values)


def report(node: str = "c1", job_id: int = 1, **fields) -> RunReport:
    values = {"was_alone": True, "points": (Point(20, 60.0, 1.0, 50.0),), **fields}
    return RunReport(RunId(job_id), node, **{"ended_s": NOW, "ran_s": 60.0, **values})


def conclude(state: LearningState, *reports: RunReport, now_s: float = NOW, jobs=(), rules=RULES):
    """The state after one moment, and the changes."""
    conclusion = Conclusion(state, rules, EXPLORATION, {}, now_s)
    conclusion.take(reports)
    conclusion.follow({job.id: job for job in jobs})
    changes = conclusion.changes()
    return state.after(changes), changes


def learning(*runs: RunToLearn) -> LearningState:
    return LearningState({}, {run.run: run for run in runs}, {})


POINTS = st.lists(
    st.builds(
        Point,
        st.sampled_from([0, 2, 4, 8, 20]),
        st.floats(0.1, 100),
        st.none() | st.floats(0.01, 4),
        st.none() | st.floats(0, 120),
    ),
    max_size=3,
).map(tuple)


@st.composite
def reported(draw):
    """Runs, with a report from each of their nodes."""
    runs, reports = [], []
    for job_id in range(1, draw(st.integers(1, 3)) + 1):
        samples = draw(st.booleans())
        step = draw(st.none() | st.just(ExplorationStep(2, samples)))
        runs.append(run_of(job_id, step=step))
        for node in NODES:
            flags = {"was_alone": draw(st.booleans()), "was_sampled": samples, "is_whole": draw(st.booleans())}
            ended = {"ended_s": NOW - draw(st.floats(0, 50)), "ran_s": draw(st.floats(0, 100))}
            reports.append(report(node, job_id, **flags, **ended, points=draw(POINTS)))
    return runs, reports


@settings(max_examples=60)
@given(reported(), st.randoms(use_true_random=False))
def test_evidence_is_the_same_whatever_the_order_and_repetition_of_reports(made, random) -> None:
    runs, reports = made
    once, changes = conclude(learning(*runs), *reports)
    assert set(changes.gone) == {run.run for run in runs}
    shuffled = [*reports, *random.choices(reports, k=len(reports))]
    random.shuffle(shuffled)
    first = {each.key: each for each in reports}
    again, _ = conclude(learning(*runs), *(first[each.key] for each in shuffled))
    assert again == once


@settings(max_examples=60)
@given(reported(), st.randoms(use_true_random=False))
def test_each_run_counts_once_over_any_number_of_moments(made, random) -> None:
    runs, reports = made
    random.shuffle(reports)
    state, gone = learning(*runs), []
    for each in (*reports, *reports):
        state, changes = conclude(state, each, each)
        gone += changes.gone
    assert sorted(gone) == sorted(run.run for run in runs)
    assert (state.runs, state.reports) == ({}, {})
    whole = {run.run for run in runs}
    evidence = [each for learnt in state.learnt.values() for each in learnt.known.current.values()]
    assert sum(each.time_s.count for each in evidence) <= len(whole)


def test_a_run_time_is_the_longest_of_the_nodes_and_points_are_averages_weighed_by_seconds() -> None:
    both = (
        report("c1", ran_s=60.0, points=(Point(20, 30.0, 1.0, 40.0), Point(2, 10.0, 0.5, None))),
        report("c2", ran_s=61.5, points=(Point(20, 10.0, 2.0, 80.0), Point(2, 10.0, None, None))),
    )
    assert run_time_s(run_of(), both) == 61.5
    found = averages(both)
    assert (found[20].ipc, found[20].bandwidth_gbps, found[20].seconds) == (1.25, 50.0, 40.0)
    assert (found[2].ipc, found[2].bandwidth_gbps) == (0.5, None)
    assert sampled(run_of(), both) is None, "at 2 ways the bandwidth is unknown: one point makes no curve"


@pytest.mark.parametrize(
    "fields", [{"was_alone": False}, {"is_whole": False}, {"was_sampled": True}, {"ran_s": 0.0}, {"ran_s": -1.0}]
)
def test_one_disturbed_node_spoils_the_run_time(fields: dict) -> None:
    reports = (report("c1", **{"ran_s": 0.0, **fields} if "ran_s" in fields else {}), report("c2", **fields))
    assert run_time_s(run_of(), reports) is None
    assert timed(run_of(), reports, None) is None


def test_a_sampled_run_gives_its_curves_only_with_the_point_of_all_ways() -> None:
    points = tuple(Point(ways, 5.0, ipc, 50.0) for ways, ipc in ((2, 0.5), (4, 0.8), (20, 1.0)))
    run = run_of(step=ExplorationStep(2, samples=True))
    assert sampled(run, [report(points=points)]).ipc == {2: 0.5, 4: 0.8, 20: 1.0}
    assert sampled(run, [report(points=points[:2])]) is None
    assert sampled(run, [report(points=points, was_alone=False)]) is None
    assert sampled(run, [report(points=points, is_whole=False)]) is not None, "its averages are as good"


def test_an_ordinary_run_is_judged_with_the_ways_that_it_had_for_longest() -> None:
    seen = monitored(
        run_of(), [report(points=(Point(4, 10.0, 0.8, 50.0), Point(18, 90.0, 1.0, 40.0)), was_alone=False)]
    )
    assert (seen.ways, seen.ipc, seen.bandwidth_gbps, seen.time_s) == (18, 1.0, 40.0, None)
    unpartitioned = monitored(run_of(), [report(points=(Point(0, 10.0, 0.8, 50.0),), was_alone=False)])
    assert unpartitioned is None


def test_a_run_waits_for_the_reports_of_all_nodes_for_a_while() -> None:
    state, changes = conclude(learning(run_of()), report("c1"))
    assert [each.node for each in changes.reports] == ["c1"]
    assert state.learnt == {}
    later, changes = conclude(state, now_s=NOW + REPORTS_WAIT_S)
    assert (later, bool(changes)) == (state, False)
    given_up, changes = conclude(state, now_s=NOW + REPORTS_WAIT_S + 1)
    assert changes.gone == (RunId(1),)
    assert given_up.learnt["mg", 16].failures[2].runs == 1
    complete, _ = conclude(state, report("c2"), now_s=NOW + 5)
    assert complete.learnt["mg", 16].known.current[2].time_s.mean == 60.0


def test_a_clock_that_was_stepped_back_keeps_no_run_waiting() -> None:
    state, _ = conclude(learning(run_of(ended_s=NOW + 10 * REPORTS_WAIT_S)))
    assert state.runs == {}


@pytest.mark.parametrize(
    ("fields", "follows"),
    [
        ({}, True),
        ({"state": JobState.PENDING, "allocated": ()}, True),
        ({"state": JobState.PENDING, "allocated": (), "pinned_to": ()}, False),
        ({"state": JobState.PENDING, "allocated": (), "pinned_to": ("c1", "c3")}, False),
        ({"allocated": ("c1",)}, False),
        ({"restarts": 1}, False),
        ({"state": JobState.SUSPENDED}, True),
        ({"is_completing": True}, True),
        (None, False),
    ],
)
def test_a_run_is_followed_while_slurm_shows_it_where_it_was_placed(fields, follows: bool) -> None:
    run = run_of(outcome=RunOutcome.UNDER_WAY, ended_s=0.0)
    jobs = [] if fields is None else [running(1, *NODES, **fields)]
    state, changes = conclude(learning(run), jobs=jobs)
    assert (set(state.runs) == {run.run}) == follows
    assert state.learnt == {}, "whoever takes a run away says nothing about its scale"
    assert (changes.gone == (run.run,)) != follows


@pytest.mark.parametrize(("succeeds", "outcome"), [(True, RunOutcome.SUCCEEDED), (False, RunOutcome.FAILED)])
def test_how_a_run_ended_is_kept_because_slurm_forgets_it(succeeds: bool, outcome: RunOutcome) -> None:
    run = run_of(outcome=RunOutcome.UNDER_WAY, ended_s=0.0)
    ended = running(1, *NODES, state=JobState.ENDED, has_succeeded=succeeds, suspended_s=5)
    state, changes = conclude(learning(run), jobs=[ended])
    if outcome is RunOutcome.FAILED:
        assert (state.runs, state.learnt["mg", 16].failures[2].runs) == ({}, 1)
        return
    (kept,) = changes.runs
    assert kept == replace(run, outcome=outcome, ended_s=NOW, was_suspended=True)
    assert conclude(state)[0] == state, "Slurm no longer shows it"


def test_nothing_changes_where_nothing_happens() -> None:
    assert conclude(NOTHING_LEARNT, report()) == (NOTHING_LEARNT, conclude(NOTHING_LEARNT)[1])
    assert not conclude(NOTHING_LEARNT, report())[1]


def test_a_report_with_absurd_numbers_makes_no_profile_that_breaks_anything() -> None:
    run = run_of(step=ExplorationStep(2, samples=True))
    for absurd in (Point(20, 1e9, inf, 1e300), Point(20, 1e9, -inf, 1.0), Point(20, 1e9, 0.0, 1.0)):
        points = (Point(2, 5.0, 0.5, 1.0), Point(4, 5.0, 0.5, 1.0), absurd)
        state, _ = conclude(learning(run), report("c1", points=points), report("c2", points=points))
        learnt = state.learnt["mg", 16]
        assert (learnt.known.current, learnt.failures[2].runs) == ({}, 1)
    points = (Point(2, 5.0, 0.5, 1.0), Point(20, 1e9, 1e300, 1e300))
    state, _ = conclude(learning(run), report("c1", points=points), report("c2", points=points))
    assert state.learnt["mg", 16].known.current[2].ipc[20].mean == 1e300


@pytest.mark.parametrize(("samples", "reports", "why"), [
    (False, [report("c1", was_alone=False), report("c2")], "another job was on c1"),
    (False, [report("c1"), report("c2", is_whole=False)], "an agent was not there all the time: c2"),
    (True, [report(name, points=(Point(2, 5.0, 0.5, 1.0),)) for name in ("c1", "c2")],
     "it was measured with 2 of ways; at least 2 and all 20 are needed"),
    (True, [report(name, points=(Point(2, 1.0, 0.5), Point(20, 1.0, 0.5))) for name in ("c1", "c2")],
     "it was measured with no number of ways; at least 2 and all 20 are needed"),
])  # fmt: skip
def test_an_exploring_run_that_gave_nothing_is_said_with_its_reason(samples: bool, reports, why: str) -> None:
    run = run_of(step=ExplorationStep(2, samples=samples), ways=20)
    _, changes = conclude(learning(run), *reports)
    [line] = changes.said
    assert line.startswith("job 1 explores mg with 16 processes at scale 2")
    assert line.endswith(f"this gave no measurement: {why}")


def test_a_completing_run_shows_the_nodes_that_have_not_completed() -> None:
    run = run_of(outcome=RunOutcome.UNDER_WAY, ended_s=0.0)
    state, _ = conclude(learning(run), jobs=[running(1, NODES[-1], is_completing=True)])
    assert state.runs == {run.run: run}
    state, _ = conclude(learning(run), jobs=[running(1, "elsewhere", is_completing=True)])
    assert state.runs == {}
