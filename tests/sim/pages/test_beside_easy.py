"""The page beside EASY: what it measures of a replay, and how it compares two."""

import numpy as np
import pytest

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.trace import Trace, TraceJob, of_values
from sns_reproductions.beside_easy.run import (
    EXACT,
    LIMITS,
    OURS,
    POLICIES,
    LogAtLoad,
    ReplayedWaits,
    replayed,
    waits_of,
)
from sns_reproductions.kept_promise import run as kept_promise


def workload(*, limit_s: int | None = None):
    """Two nodes of four cores; a wide job comes behind one on a node, then small ones."""
    sizes = [(4, 100), (8, 10), (1, 50), (1, 300), (2, 20)]
    jobs = tuple(
        TraceJob(
            Job(
                id=at,
                submit_s=at,
                alternatives=(Alternative(max(1, cores // 4), Resources(min(cores, 4), 1024)),),
                order=(at,),
                expected_run_s=limit_s and run_s + limit_s,
            ),
            run_s,
        )
        for at, (cores, run_s) in enumerate(sizes)
    )
    nodes = NodeArrays(("a", "b"), amounts([Resources(4, 8192)] * 2))
    return nodes, of_values(Trace(jobs, {}))


def waits(values, block) -> ReplayedWaits:
    many = np.array(values, np.float64)
    return ReplayedWaits(many, many + 1, many > 2, np.array(block), 0.0)


def test_a_replay_is_as_long_as_itself():
    ours = waits([1.0, 5, 3, 9], [0, 0, 1, 1])
    assert {tuple(value) for value in ours.above(ours).values()} == {(0, 0, 0)}


def test_twice_the_waits_are_100_percent_more_in_every_draw():
    ours, theirs = waits([2.0, 10, 6, 18], [0, 0, 1, 1]), waits([1.0, 5, 3, 9], [0, 0, 1, 1])
    assert tuple(ours.above(theirs)["mean_wait_s"]) == pytest.approx((100, 100, 100))


def test_a_percentile_counts_each_job_as_often_as_its_block_is_drawn():
    ours = waits([7.0, 1.0], [1, 0])
    drawn = np.array([[1, 1], [2, 0], [0, 2]])
    assert ours.percentiles(drawn).tolist() == [7, 1, 7]


def test_every_policy_starts_every_job_and_those_by_limits_need_limits():
    nodes, jobs = workload(limit_s=60)
    assert set(replayed(nodes, jobs, 86_400, bookings=100)) == set(POLICIES)
    assert set(POLICIES) - set(replayed(nodes, jobs, 86_400, bookings=0)) == {
        "conservative, limits",
        "conservative, exact",
    }
    nodes, jobs = workload()
    without = replayed(nodes, jobs.only(slice(None)), 86_400, bookings=100)
    assert {len(each.wait_s) for each in without.values()} == {5}


def test_a_promise_is_kept_where_withholding_ends():
    """The wide job starts when the first one ends; the long small job would delay it by 300 s."""
    nodes, jobs = workload(limit_s=0)
    for name in (EXACT, LIMITS):
        run = POLICIES[name].run(nodes, jobs)
        assert run.start_s[1] == 120, name  # the first cycle after 100 s


def test_the_widest_jobs_are_those_above_nine_tenths_of_all():
    nodes, jobs = workload()
    found = waits_of(POLICIES[OURS].run(nodes, jobs), nodes, 86_400)
    assert found.is_wide.tolist() == [False, True, False, False, False]
    assert found.figures()["wide_wait_s"] == found.wait_s[1]


# --- the page of a kept promise, on the same workloads


@pytest.fixture
def small(monkeypatch):
    """A log of five jobs: a wide one behind one on a node, then small ones, all with limits."""
    nodes, jobs = workload(limit_s=60)
    monkeypatch.setattr(kept_promise, "workload_of", lambda _piece: LogAtLoad(nodes, jobs, 0.5, 1))


@pytest.mark.usefixtures("small")
def test_every_policy_is_compared_with_easy_and_nothing_waits_less_than_no_time():
    found = kept_promise.log_at_load(("made", 0, 0))
    assert set(found["figures"]) == set(kept_promise.COMPARED)
    assert set(found["above"]) == set(kept_promise.COMPARED) - {LIMITS}
    assert found["figures"][kept_promise.PROMISE]["wide_wait_s"] <= found["figures"][OURS]["wide_wait_s"]


@pytest.mark.usefixtures("small")
def test_moved_submits_are_paired_by_seed():
    one, same, other = (kept_promise.moved_at_load(("made", 0, 0, seed)) for seed in (1, 1, 2))
    assert one == same
    assert set(one) == set(other) == {kept_promise.PROMISE, kept_promise.BEST_FIT}
