"""Slurm's order in the compiled loop: by priority, and for old jobs capacity is withheld at their places."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.model import Node, Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.replay.trace_replay import replay, replay_by_priority
from slurm_sns.sim.trace import TraceArrays

KINDS = [(1, 1, 1024, ""), (1, 3, 2048, ""), (2, 2, 1024, ""), (1, 4, 8192, "")]
SITE = NodeArrays.of([Node(name, Resources(4, 8192), Resources(4, 8192), 1, ()) for name in ("a", "b")])
RULES = rules_of(MatchingParameters(withhold_up_to_s=30))
WAYS_TO_WITHHOLD = st.sampled_from([RULES, replace(RULES, until_start=True, withhold_up_to_s=None)])


def trace(jobs, priority=()) -> TraceArrays:
    """Jobs of submit, run and kind."""
    submit, run, kind = np.array(jobs, np.int64).T
    return TraceArrays(
        np.arange(len(jobs)),
        submit.copy(),
        run.copy(),
        kind=kind.astype(np.int32),
        kinds=KINDS,
        project=np.zeros(len(jobs), np.int32),
        projects=[""],
        priority=np.array(priority, np.int64),
    )


def jobs(submit_s: int):
    return st.lists(
        st.tuples(st.integers(0, submit_s), st.integers(1, 100), st.integers(0, 3)), min_size=1, max_size=25
    )


@settings(max_examples=50, deadline=None)
@given(jobs(200), st.integers(1, 30), WAYS_TO_WITHHOLD)
def test_without_priorities_jobs_are_taken_by_their_submits(listed, interval_s, rules):
    of = trace(sorted(listed))
    found = replay_by_priority(SITE, of, rules, interval_s=interval_s)
    assert found.start.tolist() == replay(SITE, of, rules, interval_s=interval_s).start.tolist()


@settings(max_examples=50, deadline=None)
@given(jobs(0), st.data(), WAYS_TO_WITHHOLD)
def test_jobs_of_one_moment_are_taken_by_priority(listed, data, rules):
    priority = data.draw(st.lists(st.integers(0, 5), min_size=len(listed), max_size=len(listed)))
    of = trace(listed, priority)
    order = np.argsort(-of.priority, kind="stable")
    found = replay_by_priority(SITE, of, rules, interval_s=1)
    sorted_jobs = replace(of.only(order), priority=np.zeros(0, np.int64))
    assert found.start[order].tolist() == replay(SITE, sorted_jobs, rules, interval_s=1).start.tolist()


def test_a_job_of_higher_priority_that_comes_later_goes_first():
    of = trace([(0, 50, 3), (0, 50, 3), (1, 10, 3), (2, 10, 3)], priority=(9, 9, 1, 5))
    assert replay_by_priority(SITE, of, RULES, interval_s=1).start.tolist() == [0, 0, 50, 50]
    of = trace([(0, 50, 3), (0, 60, 3), (1, 10, 3), (2, 10, 3)], priority=(9, 9, 1, 5))
    assert replay_by_priority(SITE, of, RULES, interval_s=1).start.tolist() == [0, 0, 60, 50]


def test_for_the_first_job_of_the_queue_capacity_is_withheld_again_once_it_is_old():
    # Jobs of one core come all the time, and keep one that needs an empty node from starting.
    first = [(0, 2 * at, 0) for at in range(1, 9)]
    of = trace([*first, (1, 10, 3), *((at * 2, 16, 0) for at in range(1, 200))], [1] * 8 + [2] + [1] * 199)
    rules = replace(RULES, withhold_up_to_s=0)
    never = replay_by_priority(SITE, of, rules, interval_s=1).start[8]
    old = replay_by_priority(SITE, of, rules, interval_s=1, age_limit_s=100).start[8]
    assert never > 300
    assert 101 < old < 130


def test_capacity_is_withheld_for_good_where_the_age_limit_comes_first():
    """Both nodes are full until cores come free one by one; job 8 needs two on each, and small jobs would pass it."""
    first, small = [(0, 40 + 4 * at, 0) for at in range(8)], [(at, 60, 0) for at in range(2, 90)]
    of = trace([*first, (1, 5, 2), *small], [0] * 97)
    starts = [
        replay_by_priority(SITE, of, RULES, interval_s=1, age_limit_s=limit_s).start.tolist()[8]
        for limit_s in (None, 10, 0)
    ]
    assert starts[1] == starts[2] < starts[0]
