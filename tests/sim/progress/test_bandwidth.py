"""Memory under load: STREAM's points, and what holds for any mix of jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.sim.progress.contention import ONE_CORE_GBPS, Traffic, settled, stretch, traffic_of

PEAK = 118.26


@pytest.mark.parametrize(("cores", "measured"), [(1, 18.80), (2, 37.17), (28, 118.26)])
def test_stream_gets_what_figure_3_prints(cores, measured):
    stream = Traffic(ONE_CORE_GBPS * cores, 1.0)

    assert PEAK * settled([stream], PEAK) == pytest.approx(measured, rel=0.005)


def test_stream_levels_off_near_eight_cores():
    reached = [PEAK * settled([Traffic(ONE_CORE_GBPS * cores, 1.0)], PEAK) for cores in (4, 8, 16, 28)]

    assert reached[1] > 0.85 * PEAK
    assert reached == sorted(reached)
    assert reached[2] - reached[1] < (reached[1] - reached[0]) / 2


def test_an_idle_memory_slows_nobody_down():
    assert stretch(0) == 1
    assert settled([], PEAK) == 0
    assert Traffic(0, 0).time_at(0.9) == 1


def gbps():
    return st.floats(0, PEAK, allow_nan=False)


@given(gbps(), st.integers(1, 28))
def test_a_job_alone_moves_what_was_measured(measured, cores):
    measured = min(measured, 0.98 * PEAK, 0.98 * PEAK * settled([Traffic(ONE_CORE_GBPS * cores, 1.0)], PEAK))
    job = traffic_of(measured, cores, PEAK)

    assert job.gbps_at(settled([job], PEAK)) == pytest.approx(measured, rel=1e-6, abs=1e-9)
    assert 0 <= job.memory_share <= 1


@given(st.lists(st.tuples(gbps(), st.integers(1, 28)), min_size=1, max_size=6))
def test_jobs_together_never_move_more_than_the_node_can_and_none_gets_faster(measured):
    jobs = [traffic_of(each, cores, PEAK) for each, cores in measured]
    use = settled(jobs, PEAK)

    assert sum(job.gbps_at(use) for job in jobs) <= PEAK * (1 + 1e-9)
    for job in jobs:
        assert job.time_at(use) >= job.time_at(settled([job], PEAK)) - 1e-9


@given(gbps(), gbps(), st.integers(1, 14))
def test_who_moves_more_on_as_many_cores_is_slowed_down_more(one, other, cores):
    less, more = sorted((one, other))
    jobs = [traffic_of(each, cores, PEAK) for each in (less, more)]
    use = settled(jobs, PEAK)

    assert jobs[0].time_at(use) <= jobs[1].time_at(use) + 1e-9
