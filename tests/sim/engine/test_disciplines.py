"""The queue disciplines of the reproductions: whose turn it is, and who overtakes whom."""

from fractions import Fraction
from itertools import pairwise

import pytest

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.sim.engine.disciplines import AGE_LIMIT, AGE_LIMIT_S, FIRST_JOB, PROTOTYPE, SIMULATOR, TEXT, StrideQueue
from slurm_sns.sim.engine.spreading_policies import CE
from slurm_sns.sim.request import AUTHORS
from slurm_sns.sim.traces.program_trace import ProgramJob
from sns_reproductions.spread_n_share import cluster, place

HOUR_S = 3600


def job(identity):
    return Job(id=identity, submit_s=0, alternatives=(Alternative(1, Resources(1, 1024)),), order=(0,))


def queue_of(count):
    queue = StrideQueue()
    for identity in range(count):
        queue.add(job(identity), 0)
    return queue


# --- the prototype's queue


def test_jobs_of_one_moment_are_tried_in_the_order_of_their_numbers():
    queue = queue_of(3)

    assert queue.first(0).id == 0
    assert queue.first(500).id == 0
    assert queue.overtaken_s() is None


def test_an_earlier_job_is_tried_before_a_later_one():
    queue = StrideQueue()
    queue.add(job(7), 0)
    queue.add(job(8), 10)

    assert queue.first(10).id == 7


def test_a_stuck_job_is_overtaken_a_second_later_and_keeps_its_lead_until_then():
    queue = queue_of(2)
    queue.stuck(10)

    assert queue.first(10).id == 0
    assert queue.overtaken_s() == 11
    assert queue.first(11).id == 1  # 1,000 + 50 against 1,100 - 1


def test_a_lead_of_more_than_fifty_lasts_for_more_than_a_second():
    queue = StrideQueue()
    queue.add(job(0), 0)
    queue.add(job(1), 2)  # 200 behind, and one for its number
    queue.stuck(2)

    assert queue.overtaken_s() == 7
    assert [queue.first(at).id for at in (6, 7)] == [0, 1]


def test_a_job_that_only_reaches_the_first_does_not_overtake_it():
    queue = StrideQueue()
    queue.add(job(0), 0)
    queue.stuck(0)
    queue.add(job(1), Fraction(49, 100))

    assert queue.first(1).id == 0  # both have 50
    assert queue.overtaken_s() == 2


def test_when_all_are_stuck_the_one_that_was_tried_last_stays_first():
    queue = queue_of(3)
    for now_s in (1, 2, 3):
        queue.stuck(now_s)

    assert queue.overtaken_s() is None
    assert [queue.first(at).id for at in (4, 4000)] == [2, 2]


def test_a_start_makes_all_fast_again_with_the_values_that_they_have():
    queue = queue_of(3)
    queue.stuck(0)
    assert queue.first(1).id == 1
    queue.start(1)  # job 1

    assert len(queue) == 2
    assert queue.first(1).id == 2  # 98 against the 50 of job 0, which was slow for a second
    assert queue.overtaken_s() is None
    assert queue.first(1000).id == 2


# --- disciplines on a cluster of two nodes


def jobs_of(*nodes_and_hours, every_s=0):
    return [
        ProgramJob(at, float(at * every_s), hours * HOUR_S, "lu", nodes * 28, None)
        for at, (nodes, hours) in enumerate(nodes_and_hours)
    ]


def starts(discipline, jobs):
    placements = place(CE, AUTHORS, jobs, node_arrays=cluster(2), programs={}, discipline=discipline)
    return [each.start_s for each in placements]


@pytest.mark.parametrize(
    ("discipline", "expected"),
    [
        (TEXT, [0, HOUR_S, 0]),
        (FIRST_JOB, [0, HOUR_S, 2 * HOUR_S]),
        (PROTOTYPE, [0, HOUR_S + 2, 2]),
        (SIMULATOR, [0, 2 * HOUR_S, HOUR_S]),
    ],
)
def test_a_wide_job_that_finds_no_place_delays_the_next_as_the_discipline_says(discipline, expected):
    """One node for an hour, two nodes, one node: which of the last two comes first?"""
    assert starts(discipline, jobs_of((1, 1), (2, 1), (1, 1))) == expected


def test_with_an_age_limit_a_wide_job_starts_though_narrow_ones_keep_coming():
    narrow = [(1, 3)] * 12
    jobs = jobs_of((1, 3), (2, 1), *narrow, every_s=HOUR_S)

    delayed, limited = starts(TEXT, jobs)[1], starts(AGE_LIMIT, jobs)[1]

    assert limited < delayed
    assert AGE_LIMIT_S < limited - HOUR_S <= AGE_LIMIT_S + 3 * HOUR_S + 1


@pytest.mark.parametrize("discipline", [TEXT, AGE_LIMIT, FIRST_JOB, PROTOTYPE, SIMULATOR])
def test_every_job_runs_once_and_no_node_has_two(discipline):
    jobs = jobs_of(*[(1 + at % 2, 1 + at % 3) for at in range(20)], every_s=600)
    placements = place(CE, AUTHORS, jobs, node_arrays=cluster(2), programs={}, discipline=discipline)

    assert [each.job.id for each in placements] == [each.identity for each in jobs]
    for node in (0, 1):
        here = sorted((each.start_s, each.end_s) for each in placements if node in each.nodes)
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(here))
