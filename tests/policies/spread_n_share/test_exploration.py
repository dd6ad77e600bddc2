"""Exploration, evidence and drift: what is run next to learn, what follows from it, and when it is doubted."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.spread_n_share.classify import ProgramClass, classify
from slurm_sns.policies.spread_n_share.drift import DriftParameters, Monitored, deviation, watched
from slurm_sns.policies.spread_n_share.evidence import Estimate, KnownEvidence, Measurement
from slurm_sns.policies.spread_n_share.exploration import Exploration, ExplorationStep, exploring
from slurm_sns.policies.spread_n_share.parameters import PAPER_FREQUENCY_FACTORS, SpreadingParameters

NODES = (NodeType(Resources(28, 128 * 1024, 20, 118), 8),)
EXPLORATION = Exploration(SpreadingParameters())
SIXTEEN = Request(16)
IPC = {2: 0.5, 4: 0.8, 8: 0.95, 20: 1.0}
GBPS = {2: 60.0, 4: 50.0, 8: 42.0, 20: 40.0}


def timed(scale, time_s):
    return Measurement(scale, time_s)


def curves(scale, ipc=IPC, gbps=GBPS):
    return Measurement(scale, None, ipc, gbps)


def known_of(*measurements):
    known = KnownEvidence("mg", 16)
    for each in measurements:
        known = known.with_measurement(each)
    return known


def steps(times, request=SIXTEEN, exploration=EXPLORATION):
    """The runs of a whole exploration of a program with these run times by scale."""
    known, taken = KnownEvidence("mg", request.processes), []
    while (step := exploration.next_step(known, request, NODES)) is not None:
        taken.append(step)
        known = known.with_measurement(curves(step.scale) if step.samples else timed(step.scale, times[step.scale]))
        assert len(taken) < 20
    return taken


def test_each_scale_is_timed_then_sampled_in_increasing_order():
    assert steps({1: 100, 2: 80, 4: 70, 8: 65}) == [
        ExplorationStep(scale, samples) for scale in (1, 2, 4, 8) for samples in (False, True)
    ]


def test_it_stops_after_a_scale_that_is_much_slower_which_needs_no_curves():
    assert steps({1: 100, 2: 80, 4: 90}) == [
        ExplorationStep(1, samples=False),
        ExplorationStep(1, samples=True),
        ExplorationStep(2, samples=False),
        ExplorationStep(2, samples=True),
        ExplorationStep(4, samples=False),
    ]


def test_times_are_compared_after_the_frequency_factor():
    # 104 s on nodes that clock 2 % higher are 106 s: more than 5 % slower than 100 s.
    papers = Exploration(SpreadingParameters(frequency_factors=PAPER_FREQUENCY_FACTORS))
    assert steps({1: 100, 2: 104}, exploration=papers)[-1] == ExplorationStep(2, samples=False)
    assert ExplorationStep(2, samples=True) in steps({1: 100, 2: 102, 4: 1000}, exploration=papers)
    assert ExplorationStep(2, samples=True) in steps({1: 100, 2: 104, 4: 1000}), "by default there is none"


def test_it_stops_before_nodes_with_a_single_core_or_more_nodes_than_tasks():
    assert {step.scale for step in steps({1: 9, 2: 8, 4: 7}, Request(4))} == {1, 2}
    assert {step.scale for step in steps({1: 9}, Request(1))} == {1}


def test_hints_and_uneven_scales_bound_it():
    assert {step.scale for step in steps({1: 9, 2: 8}, replace(SIXTEEN, max_scale=2))} == {1, 2}
    even = Exploration(SpreadingParameters(even_scales_only=True))
    assert {step.scale for step in steps({1: 9, 2: 8, 4: 7}, Request(28), even)} == {1, 2, 4}


def test_an_exploring_job_wants_empty_nodes_first_and_else_what_it_would_do_anyway():
    other = Alternative(1, Resources(16, 1024, 3, 112))

    first, second = exploring(ExplorationStep(2, samples=False), [other], SIXTEEN, NODES)

    assert first == Alternative(2, Resources(8, 0, 20, 118), 8, 2, exclusive=True)
    assert second == other


def test_a_profile_follows_once_scale_one_is_timed_and_sampled():
    assert known_of(timed(1, 100)).profile() is None
    assert known_of(timed(2, 100), curves(2)).profile() is None

    profile = known_of(timed(1, 100), curves(1), timed(1, 102), timed(2, 80)).profile()

    assert [run.scale for run in profile.runs] == [1]
    assert profile.runs[0].time_s == 101
    assert profile.runs[0].ways == (2, 4, 8, 20)
    assert profile.runs[0].ipc == (0.5, 0.8, 0.95, 1.0)


def test_a_slower_scale_that_was_only_timed_tells_the_class_a_faster_one_waits_for_its_curves():
    slower = known_of(timed(1, 100), curves(1), timed(2, 130)).profile()
    faster = known_of(timed(1, 100), curves(1), timed(2, 80)).profile()

    assert [run.time_s for run in slower.runs] == [100, 130]
    assert classify(slower.at(16), SpreadingParameters()).kind is ProgramClass.COMPACT
    assert [run.scale for run in faster.runs] == [1]


def test_a_bad_sample_does_not_replace_a_good_curve():
    known = known_of(timed(1, 100), curves(1), curves(1), curves(1))
    worse = {ways: value / 3 for ways, value in IPC.items()}

    assert known.with_measurement(curves(1, ipc=worse)).profile() == known.profile()


def test_a_renewal_leaves_what_stands_until_it_is_complete():
    known = known_of(timed(1, 100), curves(1))
    renewed = known.renewed()

    assert EXPLORATION.next_step(renewed, SIXTEEN, NODES) == ExplorationStep(1, samples=False)
    half_way = renewed.with_measurement(timed(1, 50))
    assert half_way.profile() == known.profile()
    assert half_way.renewed() == half_way
    complete = half_way.with_measurement(curves(1)).settled()
    assert complete.profile().runs[0].time_s == 50


ORDINARY = Monitored(scale=1, ways=4, ipc=0.8, bandwidth_gbps=50.0)
STRANGE = replace(ORDINARY, ipc=0.4)


@pytest.mark.parametrize(
    ("seen", "off"),
    [
        (ORDINARY, 0.0),
        (STRANGE, 0.5),
        (replace(ORDINARY, bandwidth_gbps=75.0), 0.5),
        (replace(ORDINARY, time_s=150.0), 0.5),
        (replace(ORDINARY, scale=2, ipc=9.0), None),
        (replace(ORDINARY, ipc=None, bandwidth_gbps=None), None),
        (replace(ORDINARY, ipc=None), 0.0),
        (replace(ORDINARY, bandwidth_gbps=None, ipc=0.4), 0.5),
        (replace(ORDINARY, ways=6, ipc=0.875, bandwidth_gbps=46.0), 0.0),
    ],
)
def test_a_run_is_compared_with_its_profile_at_its_ways(seen, off):
    assert deviation(known_of(timed(1, 100), curves(1)), seen) == pytest.approx(off)


def test_programs_that_hardly_touch_memory_are_not_judged_by_it():
    quiet = known_of(timed(1, 100), curves(1, gbps=dict.fromkeys(IPC, 0.1)))

    assert deviation(quiet, replace(ORDINARY, bandwidth_gbps=0.5)) == 0


def test_three_strange_runs_in_a_row_begin_a_renewal_an_ordinary_one_ends_the_row():
    known = known_of(timed(1, 100), curves(1))
    for seen in (STRANGE, STRANGE, ORDINARY, STRANGE, STRANGE):
        known = watched(known, seen, DriftParameters())
        assert known.renewal is None
    known = watched(known, replace(STRANGE, scale=8), DriftParameters())
    assert known.strange == 2, "a run at a scale that is not profiled says nothing"
    known = watched(known, STRANGE, DriftParameters())

    assert known.renewal == {}
    assert known.profile() is not None


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=20))
def test_an_estimate_is_the_mean_of_what_it_believes_and_stays_within_its_samples(samples):
    estimate, believed = Estimate(), []
    for sample in samples:
        if not estimate.doubts(sample):
            believed.append(sample)
        estimate = estimate.with_sample(sample)

    assert estimate.count == len(believed)
    assert estimate.mean == pytest.approx(sum(believed) / len(believed))
    assert min(believed) - 1e-9 <= estimate.mean <= max(believed) + 1e-9


@given(st.dictionaries(st.sampled_from([1, 2, 4, 8]), st.floats(1, 1000), min_size=4, max_size=4))
def test_exploration_ends_after_at_most_two_runs_a_scale_and_leaves_a_profile(times):
    taken = steps(times)

    assert len(taken) == len(set(taken)) <= 8
    assert taken[:2] == [ExplorationStep(1, samples=False), ExplorationStep(1, samples=True)]
