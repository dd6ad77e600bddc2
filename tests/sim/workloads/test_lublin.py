"""The Lublin-Feitelson model draws what its parameters imply, and what its authors' own trace shows."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.swf import read_fields
from slurm_sns.sim.workloads import lublin
from slurm_sns.sim.workloads.lublin import BATCH, COMBINED, INTERACTIVE, SETS, lublin_jobs

SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))
AUTHORS_TRACE = SHARED / "traces" / "lublin_256.swf.gz"
TYPES = {"batch": BATCH, "interactive": INTERACTIVE, "combined": COMBINED}
COUNT = 200_000
#: Shares of so many draws lie within 5 standard deviations of the true one.
WITHIN = 5 * math.sqrt(0.25 / COUNT)


def rng(seed=1):
    return np.random.default_rng(seed)


def below(exponent, sizes):
    """The share of parallel jobs whose log2 size is drawn below `exponent`."""
    lower = np.clip((exponent - sizes.low) / (sizes.medium - sizes.low), 0, 1)
    upper = np.clip((exponent - sizes.medium) / (sizes.high - sizes.medium), 0, 1)
    return sizes.probability * lower + (1 - sizes.probability) * upper


def shares_of_sizes(sizes):
    """The share of jobs of each number of nodes, which the parameters give without drawing."""
    other = 1 - sizes.serial - sizes.power_of_two
    found = {1: sizes.serial}
    for size in range(2, 2 ** math.ceil(sizes.high) + 1):
        share = other * (below(math.log2(size + 0.5), sizes) - below(math.log2(size - 0.5), sizes))
        if size.bit_count() == 1:
            exponent = math.log2(size)
            share += sizes.power_of_two * (below(exponent + 0.5, sizes) - below(exponent - 0.5, sizes))
        found[size] = share
    return found


def gamma_density(x, shape, scale):
    return np.exp((shape - 1) * np.log(x) - x / scale - math.lgamma(shape) - shape * math.log(scale))


def run_time_density(run_times, tasks):
    """Midpoints in [0, 12] and the probability there of ln run time."""
    points = (np.arange(240_000) + 0.5) * 12 / 240_000
    p = min(max(run_times.pa * tasks + run_times.pb, 0), 1)
    density = p * gamma_density(points, run_times.a1, run_times.b1)
    density += (1 - p) * gamma_density(points, run_times.a2, run_times.b2)
    return points, density / density.sum()


def mean_gap_s(arrivals):
    """The mean of exp(gamma), cut off at 13, by integration."""
    points = (np.arange(260_000) + 0.5) * 13 / 260_000
    density = gamma_density(points, arrivals.aarr * arrivals.arar, arrivals.barr)
    return float((np.exp(points) * density).sum() / density.sum())


def weights_by_integration(arrivals):
    points = (np.arange(48 * 1000) + 0.5) / 1000 + 10.5
    buckets = gamma_density(points, arrivals.anum, arrivals.bnum).reshape(48, 1000).sum(axis=1)
    weights = np.zeros(48)
    for bucket, weight in zip(range(11, 59), buckets, strict=True):
        weights[(bucket - 1) % 48] = weight
    return weights / weights.mean()


def in_three_hours(submit_s):
    """The shares of the jobs that are submitted in the first three hours of a day, the second, and so on."""
    return np.bincount(submit_s.astype(int) % 86_400 // (3 * 3600), minlength=8) / len(submit_s)


@pytest.mark.parametrize("name", TYPES)
def test_sizes_are_drawn_with_the_shares_that_the_parameters_give(name):
    sizes = TYPES[name].sizes
    drawn = lublin.draw_sizes(sizes, COUNT, rng())
    expected = shares_of_sizes(sizes)
    assert sum(expected.values()) == pytest.approx(1)
    assert drawn.max() <= max(expected)
    for size, share in expected.items():
        assert (drawn == size).mean() == pytest.approx(share, abs=WITHIN), size


@pytest.mark.parametrize("name", TYPES)
def test_the_power_of_two_share_is_one_of_all_jobs_not_of_the_parallel_ones(name):
    sizes = TYPES[name].sizes
    drawn = lublin.draw_sizes(sizes, COUNT, rng())
    others = 1 - sizes.serial - sizes.power_of_two
    # These four are never drawn by rounding an exponent.
    assert np.isin(drawn, [3, 5, 6, 7]).mean() == pytest.approx(
        others
        * (
            below(math.log2(7.5), sizes)
            - below(math.log2(4.5), sizes)
            + below(math.log2(3.5), sizes)
            - below(math.log2(2.5), sizes)
        ),
        abs=WITHIN,
    )


@pytest.mark.parametrize("tasks", [1, 8, 45, 128])
@pytest.mark.parametrize("name", TYPES)
def test_run_times_follow_the_truncated_hyper_gamma(name, tasks):
    run_times = TYPES[name].run_times
    run_s = lublin.draw_run_times(run_times, np.full(COUNT, tasks), rng())
    points, probability = run_time_density(run_times, tasks)

    logarithms = np.log(np.floor(np.exp(points)))
    mean = (probability * logarithms).sum()
    deviation = math.sqrt((probability * (logarithms - mean) ** 2).sum())
    assert np.log(run_s).mean() == pytest.approx(mean, abs=5 * deviation / math.sqrt(COUNT))
    for quantile in (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99):
        limit_s = math.ceil(np.exp(points[np.searchsorted(np.cumsum(probability), quantile)]))
        assert (run_s < limit_s).mean() == pytest.approx(probability[points < math.log(limit_s)].sum(), abs=WITHIN)
    assert run_s.min() >= 1
    assert run_s.max() <= math.exp(12)


def test_a_job_so_large_that_its_share_would_be_negative_has_the_long_run_times_only():
    run_s = lublin.draw_run_times(BATCH.run_times, np.full(1000, 1000), rng())
    assert np.log(run_s).mean() == pytest.approx(639.1 * 0.0156, abs=0.1)
    assert run_s.min() > math.exp(7)


@pytest.mark.parametrize("name", TYPES)
def test_the_weights_of_the_half_hours_are_those_of_the_gamma_distribution(name):
    weights = lublin.daily_weights(TYPES[name].arrivals)
    assert weights == pytest.approx(weights_by_integration(TYPES[name].arrivals), rel=1e-6)
    assert weights.mean() == pytest.approx(1)
    assert 8 < np.argmin(weights) < 12  # between 4 and 6 in the morning
    assert 22 < np.argmax(weights) < 34  # between 11 and 17 o'clock


@pytest.mark.parametrize("name", TYPES)
def test_submits_follow_the_daily_cycle(name):
    arrivals = TYPES[name].arrivals
    submit_s = lublin.draw_submits(arrivals, COUNT, rng())
    # Submits come in clusters, between gaps of up to five days: single half hours are not sharp in any trace.
    expected = weights_by_integration(arrivals).reshape(8, 6).sum(axis=1) / 48
    assert in_three_hours(submit_s) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("name", TYPES)
def test_submits_are_as_far_apart_on_average_as_the_gaps_that_are_drawn(name):
    arrivals = TYPES[name].arrivals
    submit_s = lublin.draw_submits(arrivals, COUNT, rng())
    assert submit_s[-1] / COUNT == pytest.approx(mean_gap_s(arrivals), rel=0.05)


def test_a_gap_is_stretched_in_quiet_half_hours_and_shortened_in_busy_ones(monkeypatch):
    """A gap of ten minutes throughout: the number of submits in a half hour is three times its weight."""
    monkeypatch.setattr(lublin, "_gaps", lambda _arrivals, count, _rng: np.full(count, math.log(600)))
    submit_s = lublin.draw_submits(BATCH.arrivals, 144 * 10, rng())
    assert submit_s[143] == pytest.approx(86_400, abs=1)
    half_hours = np.bincount(submit_s // 1800, minlength=480)[:480].reshape(10, 48)
    assert np.abs(half_hours - 3 * lublin.daily_weights(BATCH.arrivals)).max() <= 1
    assert half_hours.sum(axis=1).tolist() == pytest.approx([144] * 10, abs=1)


def test_a_trace_has_the_first_jobs_of_its_streams_in_order():
    jobs = lublin_jobs(SETS["paper"], 1000, 128, rng())
    assert len(jobs.submit_s) == 1000
    assert (np.diff(jobs.submit_s) >= 0).all()
    # Interactive jobs have at most 2^5.5 = 45 nodes, and come six times as often.
    assert 0.01 < (jobs.tasks > 45).mean() < 0.05


@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(5, 10), st.sampled_from(list(SETS)))
@settings(max_examples=60)
def test_the_same_seed_gives_the_same_jobs_that_fit_the_machine(seed, count, log2_nodes, name):
    one, two = (lublin_jobs(SETS[name], count, 2**log2_nodes, rng(seed)) for _ in range(2))
    assert all((left == right).all() for left, right in zip(one, two, strict=True))
    assert all(len(column) == count and column.dtype == np.int64 for column in one)
    assert (np.diff(one.submit_s) >= 0).all()
    assert one.submit_s[0] >= 0
    assert 1 <= one.run_s.min() <= one.run_s.max() <= math.exp(12)
    assert 1 <= one.tasks.min() <= one.tasks.max() <= 2**log2_nodes


def test_another_seed_gives_other_jobs():
    one, two = (lublin_jobs(SETS["paper"], 100, 128, rng(seed)) for seed in (1, 2))
    assert (one.run_s != two.run_s).any()
    assert (one.submit_s != two.submit_s).any()


@pytest.mark.parametrize("nodes", [0, 16, 100, 1 << 17])
def test_a_machine_without_sizes_is_refused(nodes):
    with pytest.raises(BadInput, match=rf"--nodes is {nodes}; valid: a power of two from 32 to 65536"):
        lublin_jobs(SETS["paper"], 10, nodes, rng())


@pytest.fixture(scope="module")
def authors_trace():
    if not AUTHORS_TRACE.is_file():
        pytest.skip(f"{AUTHORS_TRACE} is missing (SNS_SHARED names the folder)")
    return read_fields(TraceFile.of(str(AUTHORS_TRACE)), {})


def test_the_combined_set_is_like_the_authors_own_trace(authors_trace):
    tasks, run_s, submit_s = (authors_trace[name] for name in ("processors", "run time", "submit"))
    assert (tasks == 1).mean() == pytest.approx(0.249, abs=0.0005)
    assert np.log(run_s).mean() == pytest.approx(5.68, abs=0.005)

    ours = lublin_jobs(SETS["combined"], COUNT, 256, rng())
    share = 5 * math.sqrt(0.25 / len(tasks))
    for size in (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256):
        assert (ours.tasks == size).mean() == pytest.approx((tasks == size).mean(), abs=share / 2), size
    for limit_s in (1, 2, 4, 10, 60, 600, 3600, 14_400, 43_200):
        assert (ours.run_s <= limit_s).mean() == pytest.approx((run_s <= limit_s).mean(), abs=share), limit_s
    assert np.log(ours.run_s).mean() == pytest.approx(np.log(run_s).mean(), abs=5 * 3.02 / math.sqrt(len(tasks)))
    assert in_three_hours(ours.submit_s) == pytest.approx(in_three_hours(submit_s), abs=0.02)


def test_a_middle_size_that_stays_on_a_larger_machine_would_not_be_the_authors(authors_trace):
    """On 256 nodes a published middle of 4.5, not 5.5, would make most parallel jobs small."""
    parallel = authors_trace["processors"][authors_trace["processors"] > 1]
    assert (parallel < 2**4.5).mean() == pytest.approx(below(4.5, COMBINED.sizes.for_machine(256)), abs=0.02)
    assert COMBINED.sizes.for_machine(256).medium == 5.5
