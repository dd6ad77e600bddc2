"""How many ways a sampled run has now, and what counts as a sample."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.node.agent.in_force import next_turn_s, turns, ways_at
from slurm_sns.node.agent.run_meters import CountedInterval, points, with_interval
from slurm_sns.node.counters.readings import Rates


@pytest.mark.parametrize(
    ("asked", "all_ways", "least", "found"),
    [
        ((2, 4, 8), 18, 1, (2, 4, 8, 18)),
        ((8, 2, 4, 2), 20, 2, (2, 4, 8, 20)),
        ((2, 4, 8), 6, 1, (2, 4, 6)),
        ((2, 4, 8), 8, 1, (2, 4, 8)),
        ((1, 2, 4), 10, 2, (2, 4, 10)),
        ((2, 4, 8), 1, 1, (1,)),
    ],
)
def test_the_turns_of_a_cache(asked, all_ways, least, found) -> None:
    assert turns(asked, all_ways, least) == found


def test_each_turn_takes_as_long_and_all_nodes_change_together() -> None:
    turn = (2, 4, 8, 20)
    assert [ways_at(1000.0 + at, 5.0, turn) for at in (0, 4.9, 5, 10, 15, 20)] == [2, 2, 4, 8, 20, 2]


@given(st.floats(0, 2e9), st.sampled_from((0.05, 0.5, 5.0, 7.3)))
def test_the_next_turn_is_ahead_and_no_further_than_a_turn(now_s: float, sample_s: float) -> None:
    assert 0 <= next_turn_s(now_s, sample_s) <= sample_s * 1.001


def rates(seconds: float, ipc: float | None, gbps: float | None) -> Rates:
    return Rates(seconds, ipc, gbps)


def test_points_are_averages_by_ways_weighted_by_their_time() -> None:
    sums = {}
    for ways, rate in ((4, rates(10, 1.0, 20.0)), (2, rates(5, 0.5, 40.0)), (4, rates(30, 2.0, 40.0))):
        sums = with_interval(sums, CountedInterval(ways, rate), measures_ipc=True)
    assert [(each.ways, each.seconds, each.ipc, each.bandwidth_gbps) for each in points(sums)] == [
        (2, 5, 0.5, 40.0),
        (4, 40, 1.75, 35.0),
    ]


def test_what_is_unknown_in_some_intervals_is_the_average_of_the_others_and_never_guessed() -> None:
    sums = with_interval({}, CountedInterval(4, rates(10, 1.0, None)), measures_ipc=True)
    assert points(sums)[0].bandwidth_gbps is None
    sums = with_interval(sums, CountedInterval(4, rates(10, 3.0, 8.0)), measures_ipc=True)
    assert (points(sums)[0].ipc, points(sums)[0].bandwidth_gbps) == (2.0, 8.0)


@pytest.mark.parametrize(
    ("rate", "measures_ipc"),
    [
        (rates(10, None, 0.0), True),  # suspended: nothing was executed
        (rates(10, None, None), False),
        (rates(0, 1.0, 1.0), True),
    ],
)
def test_an_interval_in_which_nothing_was_executed_is_no_sample(rate: Rates, measures_ipc: bool) -> None:
    assert with_interval({}, CountedInterval(4, rate), measures_ipc=measures_ipc) == {}


def test_a_node_without_counters_of_instructions_measures_bandwidth_alone() -> None:
    [point] = points(with_interval({}, CountedInterval(4, rates(10, None, 7.0)), measures_ipc=False))
    assert (point.ipc, point.bandwidth_gbps) == (None, 7.0)


def test_what_ran_alone_on_the_node_is_added_up_a_second_time() -> None:
    sums = {}
    for ipc, is_alone in ((2.0, True), (1.0, False), (None, True)):
        sums = with_interval(sums, CountedInterval(4, rates(10, ipc, 8.0), is_alone), measures_ipc=False)
    [point] = points(sums)
    assert (point.seconds, point.ipc, point.alone_s, point.alone_ipc) == (30, 1.5, 10, 2.0)
