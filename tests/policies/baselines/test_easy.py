"""EASY: which jobs start beside the first one that finds no place. Four nodes, each held as a whole."""

from math import inf

import pytest
from clusters import GB, job, node, placed
from oracles.batch.expected_times import end_if_started, expected_end_s
from oracles.batch.policies import easy

from slurm_sns.model import ActiveJob, ActiveState, Alternative, Plan, Resources, Snapshot
from slurm_sns.policies.baselines.expected_times import expected_run_s
from slurm_sns.policies.baselines.parameters import EasyParameters

WHOLE = Resources(4, 32 * GB)


def waits(identity: int, nodes: int, run_s: float | None = None):
    """A job that asks for whole nodes, and how long it is expected to run."""
    way = Alternative(nodes, Resources(4, GB), exclusive=True)
    return job(identity, alternatives=(way,), expected_run_s=run_s)


def runs(identity: int, nodes: str, until_s: float | None, demand: Resources = WHOLE) -> ActiveJob:
    return ActiveJob(identity, ActiveState.RUNNING, tuple(nodes), demand, since_s=0, expected_end_s=until_s)


def plan(running, *waiting, names: str = "abcd", now_s: float = 0, **parameters) -> Plan:
    held = {name: active.demand for active in running for name in active.nodes}
    free = {name: (4 - held[name].cores, 32 - held[name].memory_mb // GB) if name in held else None for name in names}
    nodes = tuple(node(name, free=free[name]) for name in names)
    return easy(EasyParameters(**parameters)).plan(Snapshot(nodes, waiting, now_s=now_s, active=tuple(running)))


def started(made: Plan) -> list[int]:
    return [start.job_id for start in made.starts]


UNTIL_100 = [runs(90, "ab", 100)]


def test_jobs_before_the_head_job_start_in_queue_order():
    made = plan([], waits(1, 1, 10), waits(2, 2, 10), waits(3, 4, 10))

    assert placed(made) == {1: "a", 2: "b+c"}


def test_a_job_that_is_expected_to_end_just_when_the_head_job_starts_is_backfilled():
    made = plan(UNTIL_100, waits(1, 4), waits(2, 1, 100))

    assert placed(made) == {2: "c"}
    assert made.starts[0].reason == "backfilled: it is expected to end before job 1 starts"


def test_a_job_that_would_delay_the_head_job_waits():
    made = plan(UNTIL_100, waits(1, 4), waits(2, 1, 101))

    assert not made.starts
    assert made.waiting == {
        1: "needs 4 empty nodes with 4 cores and 1024 MiB each; nodes that fit: 2; job 1 is expected to start in 100 s",
        2: "would delay job 1; job 1 is expected to start in 100 s",
    }


def test_a_job_that_runs_longer_may_use_the_nodes_that_the_head_job_leaves():
    made = plan(UNTIL_100, waits(1, 3), waits(2, 1, 500), waits(3, 1, 500))

    assert started(made) == [2]
    assert made.starts[0].reason == "backfilled: it leaves a place for job 1"


def test_jobs_of_both_sorts_are_backfilled_together():
    made = plan(UNTIL_100, waits(1, 3), waits(2, 1, 500), waits(3, 1, 50))

    assert started(made) == [2, 3]


def test_the_head_jobs_time_is_found_with_what_starts_before_it_in_the_same_cycle():
    made = plan(UNTIL_100, waits(1, 1, 300), waits(2, 4), waits(3, 1, 300), waits(4, 1, 301))

    assert started(made) == [1, 3]
    assert made.waiting[2].endswith("job 2 is expected to start in 300 s")


def test_jobs_end_in_the_order_of_their_expected_ends_not_of_their_starts():
    made = plan([runs(90, "a", 500), runs(91, "b", 50), runs(92, "c", 100)], waits(1, 3), waits(2, 1, 100))

    assert started(made) == [2]
    assert "job 1 is expected to start in 100 s" in made.waiting[1]


def test_only_the_head_job_has_a_place_kept_for_it():
    made = plan(UNTIL_100, waits(1, 3), waits(2, 3), waits(3, 1, 1000))

    assert started(made) == [3]
    assert made.waiting[2] == "finds no place now"


def test_with_extra_nodes_only_no_job_starts_because_it_ends_early():
    assert started(plan(UNTIL_100, waits(1, 4), waits(2, 1, 10), extra_nodes_only=True)) == []
    assert started(plan(UNTIL_100, waits(1, 3), waits(2, 1, 10), waits(3, 1, 10), extra_nodes_only=True)) == [2]


def test_a_job_without_an_expectation_starts_only_where_it_may_stay_for_ever():
    assert started(plan(UNTIL_100, waits(1, 4), waits(2, 1, None))) == []
    assert started(plan(UNTIL_100, waits(1, 3), waits(2, 1, None), waits(3, 1, None))) == [2]


def test_nodes_of_a_job_whose_end_is_unknown_are_free_after_all_known_ends():
    forever = [runs(90, "ab", None), runs(91, "c", 100)]

    made = plan(forever, waits(1, 4), waits(2, 1, 100_000))
    assert started(made) == [2]
    assert made.waiting[1].endswith("job 1 can start when jobs without an expected end have ended")
    assert started(plan(forever, waits(1, 4), waits(2, 1, None))) == []
    assert started(plan(forever, waits(1, 3), waits(2, 1, None))) == [2]
    assert started(plan(forever, waits(1, 2), waits(2, 1, 101))) == []


def test_a_job_that_has_outlived_its_expectation_is_expected_to_end_at_once():
    made = plan([runs(90, "ab", 50)], waits(1, 4), waits(2, 1, 1), now_s=60)

    assert not made.starts
    assert "job 1 is expected to start in 0 s" in made.waiting[2]
    assert started(plan([runs(90, "ab", 50)], waits(1, 3), waits(2, 1, 1), now_s=60)) == [2]


def test_a_job_that_would_find_no_place_even_then_holds_back_no_other():
    made = plan(UNTIL_100, waits(1, 5, 10), waits(2, 2, 1000), waits(3, 3), waits(4, 1, 1))

    assert started(made) == [2]
    assert made.waiting[1] == (
        "needs 5 empty nodes with 4 cores and 1024 MiB each; "
        "of the nodes that can be planned on now 4 are large enough; it finds none after all active jobs have ended"
    )
    assert "job 3 is expected to start in 1000 s" in made.waiting[3]


def test_a_node_that_is_down_is_no_place_when_its_job_ends():
    made = plan([runs(90, "ab", 100), runs(91, "x", 50)], waits(1, 4), waits(2, 2, 100))

    assert started(made) == [2]


def test_a_node_is_empty_when_its_last_job_has_ended():
    beside = [runs(90, "a", 100, Resources(1, GB)), runs(91, "b", 200, Resources(1, GB))]

    made = plan(beside, waits(1, 3), waits(2, 1, 101), waits(3, 1, 100))
    assert started(made) == [3]
    assert "job 1 is expected to start in 100 s" in made.waiting[2]


def test_a_cycle_looks_at_queue_depth_jobs():
    made = plan(UNTIL_100, waits(1, 4), waits(2, 1, 10), waits(3, 1, 10), queue_depth=2)

    assert started(made) == [2]
    assert made.waiting[3] == "behind the first 2 jobs of the queue (queue_depth)"


def test_many_jobs_of_a_kind_are_judged_alike():
    jobs = [waits(at, 1, 100 if at % 2 else 101) for at in range(2, 40)]

    assert started(plan(UNTIL_100, waits(1, 4), *jobs)) == [3, 5]


def test_a_job_takes_its_slowdown_times_as_long_as_expected():
    slow = Alternative(1, Resources(4, GB), slowdown=1.5)

    assert expected_run_s(waits(1, 1, 80), slow) == 120.0
    assert end_if_started(waits(1, 1, 80), slow, 20) == 140.0
    assert end_if_started(waits(1, 1, None), slow, 20) == inf


@pytest.mark.parametrize(
    ("state", "until_s", "expected"),
    [
        (ActiveState.RUNNING, 100, 100.0),
        (ActiveState.STARTING, 100, 100.0),
        (ActiveState.RUNNING, 10, 50.0),
        (ActiveState.RUNNING, None, inf),
        (ActiveState.SUSPENDED, 100, inf),
    ],
)
def test_no_job_is_expected_to_end_in_the_past_and_a_suspended_one_not_at_all(state, until_s, expected):
    active = ActiveJob(1, state, ("a",), WHOLE, 0, expected_end_s=until_s)

    assert expected_end_s(active, 50) == expected
