"""A look ahead: with the true run times it is what a replay does, and it names what a job waits for."""

from dataclasses import replace

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slurm_sns.estimates.look_ahead import EXACT, Course, Scene
from slurm_sns.estimates.look_ahead_kernel import look_ahead
from slurm_sns.model import ActiveJob, ActiveState, Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import UNTIL_START, WHOLE_WAIT, MatchingParameters
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.scheduler.start_estimates.estimator import look_once
from slurm_sns.sim.replay.replay_moment import ReplayMoments
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.traces.trace_builder import RecordBuilder

SMALL = NodeArrays(
    tuple(f"n{at}" for at in range(5)),
    amounts([Resources(cores, gb * 1024) for cores, gb in ((4, 8), (4, 16), (8, 8), (4, 8), (8, 8))]),
)


@st.composite
def runs(draw):
    """A trace with ties, several nodes, projects and own heuristics, and a way to replay it."""
    job = st.tuples(
        st.integers(0, 300),
        st.integers(1, 400),
        st.sampled_from([1, 1, 1, 2, 3]),
        st.integers(1, 4),
        st.integers(1, 8),
        st.sampled_from(["p", "q", "r"][: draw(st.integers(1, 3))]),
        st.sampled_from(["", "", "", *HEURISTICS]),
    )
    rows = draw(st.lists(job, min_size=1, max_size=40))
    columns = [np.array(column, dtype=np.float64) for column in list(zip(*rows, strict=True))[:5]]
    builder = RecordBuilder(SMALL, 1.0)
    builder.add(
        identity=np.arange(len(rows), dtype=np.float64),
        submit_s=columns[0],
        run_s=columns[1],
        nodes=columns[2],
        cores=columns[3],
        memory_mb=columns[4] * 1024,
        project=[row[5] for row in rows],
        heuristic=[row[6] for row in rows],
    )
    portfolio = draw(st.lists(st.sampled_from(list(HEURISTICS)), min_size=1, max_size=4, unique=True).map(tuple))
    limit_s = draw(st.sampled_from([None, 100]))
    chosen = MatchingParameters(
        portfolio,
        draw(st.integers(1, 20)),
        draw(st.integers(0, 3)),
        withhold=draw(st.sampled_from([WHOLE_WAIT, UNTIL_START])),
        withhold_up_to_s=limit_s,
    )
    return builder.records("drawn"), rules_of(chosen), draw(st.sampled_from([1, 7, 30]))


def two_of_one_second():
    """Two jobs of two projects, the first one's name being the later one."""
    builder, ones = RecordBuilder(SMALL, 1.0), np.ones(2)
    builder.add(
        identity=np.arange(2.0),
        submit_s=np.zeros(2),
        run_s=ones,
        nodes=ones,
        cores=ones,
        memory_mb=ones * 1024,
        project=["q", "p"],
        heuristic=["", ""],
    )
    return builder.records("drawn")


def two_that_age_at_once():
    """Two jobs of one second, the first of a project with the later name: while a third holds all, both grow old."""
    builder = RecordBuilder(SMALL, 1.0)
    builder.add(
        identity=np.arange(3.0),
        submit_s=np.array([0.0, 3.0, 3.0]),
        run_s=np.array([90.0, 1.0, 1.0]),
        nodes=np.array([5.0, 1.0, 1.0]),
        cores=np.array([4.0, 4.0, 4.0]),
        memory_mb=np.full(3, 8.0 * 1024),
        project=["p", "q", "p"],
        heuristic=["", "", ""],
    )
    return builder.records("drawn")


@settings(max_examples=60, deadline=None)
@given(runs(), st.sampled_from([None, None, 1, 60, 300]))
@example((two_that_age_at_once(), rules_of(MatchingParameters(("first-fit",), queue_depth=1)), 7), 60)
@example((two_of_one_second(), rules_of(MatchingParameters(("first-fit",), queue_depth=1)), 1), None)
def test_with_true_run_times_and_nothing_submitted_any_more_it_is_what_the_replay_does(run, age_limit_s):
    trace, rules, interval_s = run
    done = replay(SMALL, trace, rules, interval_s=interval_s, age_limit_s=age_limit_s)
    last_s = -(-int(trace.submit.max()) // interval_s) * interval_s
    snapshot = ReplayMoments(SMALL, done).snapshot(last_s, age_limit_s)
    scene = Scene(rules, snapshot, replace(EXACT, interval_s=interval_s, age_limit_s=age_limit_s))

    found = scene.outlook(
        trace.run[list(scene.job_ids)].astype(np.float64),
        done.end[[each.id for each in scene.active]].astype(np.float64),
    )

    assert {job: start.at_s for job, start in found.starts.items()} == {job: done.start[job] for job in scene.job_ids}
    assert {job: [SMALL.names.index(name) for name in start.nodes] for job, start in found.starts.items()} == {
        job: list(done.nodes(job)) for job in scene.job_ids
    }


RULES = rules_of(MatchingParameters())


def node(name: str, free: int) -> Node:
    return Node(name, Resources(4, 4096), Resources(free, 4096))


def one(identity: int, cores: int = 4, nodes: int = 1) -> Job:
    return Job(identity, identity, (Alternative(nodes, Resources(cores, 1024)),), order=(identity,))


def held(identity: int, *nodes: str) -> ActiveJob:
    return ActiveJob(identity, ActiveState.RUNNING, nodes, Resources(4, 0), 0)


def test_it_says_where_and_after_whose_end_a_job_starts():
    snapshot = Snapshot((node("a", 0), node("b", 0)), (one(3), one(4)), active=(held(1, "a"), held(2, "b")))
    scene = Scene(RULES, snapshot, EXACT)

    found = scene.outlook(np.array([100.0, 100.0]), np.array([500.0, 300.0])).starts

    assert found[3] == (300, ("b",), 2)
    assert found[4] == (400, ("b",), 3)


def test_a_job_whose_turn_does_not_come_within_the_look_ahead_has_no_start():
    snapshot = Snapshot((node("a", 0),), (one(3), one(4)), active=(held(1, "a"),))
    course = Course(furthest_s=3600)

    found = Scene(RULES, snapshot, course).outlook(np.array([3600.0, 60.0]), np.array([600.0]))
    endless = Scene(RULES, snapshot, course).outlook(np.array([np.inf, 60.0]), np.array([600.0]))

    assert list(found.starts) == list(endless.starts) == [3]


def test_passes_are_a_minute_apart_and_later_a_part_of_the_time_ahead():
    waiting = tuple(one(each) for each in range(300))
    snapshot = Snapshot((node("a", 4),), waiting)
    run_s = np.full(300, 61.0)

    coarse = Scene(RULES, snapshot, Course(step_share=0.1)).outlook(run_s, np.zeros(0))
    exact = Scene(RULES, snapshot, EXACT).outlook(run_s, np.zeros(0))

    assert coarse.passes < exact.passes / 5
    assert all(coarse.starts[each].at_s >= exact.starts[each].at_s for each in range(10))


def test_a_second_look_ahead_begins_where_the_first_one_did():
    snapshot = Snapshot((node("a", 0),), (one(3), one(4)), active=(held(1, "a"),))
    scene = Scene(RULES, snapshot, EXACT)
    times = np.array([100.0, 100.0]), np.array([500.0])

    assert scene.outlook(*times) == scene.outlook(*times)


def test_it_ends_when_its_time_is_over():
    snapshot = Snapshot((node("a", 0),), (one(3),), active=(held(1, "a"),))

    found = Scene(RULES, snapshot, EXACT).outlook(np.array([1.0]), np.array([500.0]), goes_on=lambda: False)

    assert found.starts == {}


def test_capacity_is_withheld_only_for_so_long():
    """A job on both nodes waits for b; a is kept for it, or goes to the small job when its turn to be kept is over."""
    wide, small = one(3, nodes=2), one(4)
    snapshot = Snapshot((node("a", 0), node("b", 0)), (wide, small), active=(held(1, "a"), held(2, "b")))
    run_s, end_s = np.array([100.0, 9000.0]), np.array([3000.0, 5000.0])

    kept = Scene(RULES, snapshot, EXACT).outlook(run_s, end_s).starts
    lapsed = Scene(RULES, snapshot, replace(EXACT, withhold_for_s=600)).outlook(run_s, end_s).starts

    assert [kept[each].at_s for each in (3, 4)] == [5000, 5100]
    assert [lapsed[each].at_s for each in (3, 4)] == [12_000, 3000]


def test_jobs_that_slurm_split_unevenly_give_back_no_more_than_their_nodes_have():
    """Five jobs of three cores on two nodes show two cores on each: 10 of 8. In the look ahead there are 8."""
    full = tuple(Node(name, Resources(8, 8192), Resources(free, 8192)) for name, free in (("a", 0), ("b", 1)))
    running = tuple(ActiveJob(at, ActiveState.RUNNING, ("a", "b"), Resources(2, 0), 0) for at in range(5))
    waiting = tuple(one(10 + at, cores=1) for at in range(200))

    found = Scene(RULES, Snapshot(full, waiting, active=running), EXACT).outlook(np.full(200, 50.0), np.full(5, 100.0))

    begins = [each.at_s for each in found.starts.values()]
    assert len(begins) == 200
    assert max(sum(0 <= at_s - begin_s < 50 for begin_s in begins) for at_s in begins) == 16


def test_the_kernel_is_compiled_once_whatever_runs():
    """What a daemon compiles before its first cycle, with no job running, is what its rounds call."""
    idle = Snapshot((node("a", 4), node("b", 4)), (one(9),))
    running = tuple(replace(held(at, "a", "b"), demand=Resources(1, 0)) for at in range(3))

    for snapshot in (idle, replace(idle, active=running)):
        look_once(RULES, snapshot)

    assert len(look_ahead.signatures) == 1


def test_what_a_completing_job_has_left_comes_free_at_any_moment():
    snapshot = Snapshot((node("a", 0),), (one(3),), active=(replace(held(1, "a"), demand=Resources(1, 0)),))

    found = Scene(RULES, replace(snapshot, completing=("a", "gone")), EXACT)
    alone = found.outlook(np.array([10.0]), np.array([60.0])).starts

    assert alone[3] == (60, ("a",), 1)
