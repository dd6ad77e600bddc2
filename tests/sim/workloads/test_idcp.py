"""The generated jobs of Intel's platform have the published kind: bursts of high priority at few pools."""

from dataclasses import fields, replace

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays, amounts
from slurm_sns.sim.trace import ANY_POOL, TraceArrays
from slurm_sns.sim.traces.nodes_csv import TraceSite, read_site
from slurm_sns.sim.traces.pool_trace import read_pool_trace
from slurm_sns.sim.workloads.idcp import Burst, burst_fortnight, idcp, ordinary_bursts
from slurm_sns.sim.workloads.idcp_parameters import DEFAULTS
from slurm_sns.sim.workloads.idcp_site import DAY_S, HOUR_S, LIMITS_S, idcp_site, pool_cores, programs
from slurm_sns.sim.workloads.write import pool_lines, pool_swf_lines, write_nodes, write_pieces

SCALE, DAYS = 0.1, 28
LOW, HIGH = 0, 1


@pytest.fixture(scope="module")
def generated():
    return idcp(SCALE, DAYS, 1)


@pytest.fixture(scope="module")
def fortnight():
    return burst_fortnight(SCALE, 1)


def load(site, trace, jobs, span_s):
    """The work of these jobs over the capacity of the site in so many seconds."""
    work = float((trace.run[jobs] * trace.cores[jobs]).sum())
    return work / (site.nodes.total.cores * span_s)


def assert_equal(trace, other):
    for field in fields(TraceArrays):
        assert np.array_equal(getattr(trace, field.name), getattr(other, field.name)), field.name


# -- The site


def test_the_site_has_20_pools_of_unequal_size_with_hundreds_of_machines_of_several_sizes():
    site = idcp_site(1.0, DEFAULTS)
    machines = np.bincount(site.pool_of)
    assert (len(site.pools), len(site.nodes.names), len(set(site.nodes.names))) == (20, 10_000, 10_000)
    assert machines.min() > 300
    assert machines.max() > 2 * machines.min()
    for pool in range(20):
        assert len(np.unique(site.nodes.capacity[:, site.pool_of == pool], axis=1).T) >= 4


@pytest.mark.parametrize("scale", [0.001, 0.05, 0.3])
def test_a_scaled_site_keeps_its_pools_with_at_least_one_machine_in_each(scale):
    whole, site = idcp_site(1.0, DEFAULTS), idcp_site(scale, DEFAULTS)
    expected = np.maximum(1, np.rint(np.bincount(whole.pool_of) * scale))
    assert np.bincount(site.pool_of).tolist() == expected.tolist()
    assert site.pools == whole.pools


@pytest.mark.parametrize("scale", [0.0, 10.5, float("nan")])
def test_a_scale_out_of_bounds_is_refused(scale):
    with pytest.raises(BadInput, match=r"--scale is .*; valid: 0.001 to 10.0"):
        idcp(scale, 1, 1)


def test_every_job_fits_on_a_machine_of_every_pool():
    known = programs(DEFAULTS)
    site = idcp_site(0.001, DEFAULTS)
    assert site.nodes.capacity[CORES].min() >= known.cores.max()
    assert site.nodes.capacity[MEMORY].min() >= known.memory_mb.max()


# -- The same arguments, the same jobs


def test_the_same_arguments_give_the_same_jobs_and_another_seed_others_on_the_same_machines():
    (site, trace), (_, again), (other_site, other) = (idcp(0.02, 3, seed) for seed in (5, 5, 6))
    assert_equal(trace, again)
    assert not np.array_equal(trace.submit[:100], other.submit[:100])
    assert site.nodes.names == other_site.nodes.names
    assert np.array_equal(site.nodes.capacity, other_site.nodes.capacity)


def test_jobs_are_in_submit_order_with_whole_seconds_until_the_last_day_ends():
    _, trace = idcp(0.05, 1.5, 1)
    assert trace.ticks_per_s == 1
    assert (np.diff(trace.submit) >= 0).all()
    assert trace.submit.min() >= 0
    assert trace.submit.max() < 1.5 * DAY_S
    assert trace.identity.tolist() == list(range(1, len(trace) + 1))
    assert trace.run.min() >= 1


# -- Low priority


def test_the_load_of_low_priority_jobs_is_the_assumed_one_in_short_and_long_periods():
    calm = replace(DEFAULTS, bursts_per_week=0, release_spread=0)
    for days in (3, 14):
        site, trace = idcp(0.3, days, 1, calm)
        assert (trace.priority == LOW).all()
        assert load(site, trace, trace.priority == LOW, days * DAY_S) == pytest.approx(DEFAULTS.low_load, rel=0.03)


def test_low_priority_jobs_have_the_assumed_mean_run_time_and_a_heavy_tail():
    _, trace = idcp(0.3, 14, 1, replace(DEFAULTS, bursts_per_week=0, release_spread=0))
    run_min = trace.run / 60
    assert run_min.mean() == pytest.approx(DEFAULTS.low_run_min, rel=0.03)
    assert np.median(run_min) < DEFAULTS.low_run_min / 2
    assert np.mean(run_min > 2408) > 0.008
    assert run_min.max() == DEFAULTS.longest_run_days * 24 * 60


def test_a_parameter_is_varied_by_replacing_it():
    _, trace = idcp(0.2, 7, 1, replace(DEFAULTS, bursts_per_week=0, low_run_min=60, job_spread=0, release_spread=0))
    assert trace.run.mean() / 60 == pytest.approx(60, rel=0.03)
    assert len(np.unique(trace.run[trace.program == trace.program[0]])) == 1


def test_most_low_priority_jobs_leave_the_pool_open_and_some_of_these_are_bound_to_a_group(generated):
    site, trace = generated
    low = trace.priority == LOW
    open_jobs = low & (trace.pool == ANY_POOL)
    everywhere = trace.allowed_sets[trace.allowed].all(axis=1)
    assert 0.55 < open_jobs.sum() / low.sum() < 0.67
    assert (~everywhere[open_jobs]).mean() == pytest.approx(DEFAULTS.bound_share, abs=0.01)
    assert everywhere[low & ~open_jobs].all()
    bound = trace.allowed_sets[trace.allowed[open_jobs & ~everywhere]]
    assert (bound.sum(axis=1) == len(site.pools) // DEFAULTS.groups).all()


def test_nobody_names_a_pool_when_the_share_is_zero_even_if_all_pools_are_alike():
    _, trace = idcp(0.001, 30, 1, replace(DEFAULTS, bursts_per_week=0, named_share=0))
    assert len(trace) > 100
    assert (trace.pool == ANY_POOL).all()


def test_jobs_that_name_a_pool_fill_up_what_round_robin_leaves():
    site, trace = idcp(0.3, 14, 1, replace(DEFAULTS, bursts_per_week=0, bound_share=0))
    jobs = np.bincount(trace.pool[trace.pool != ANY_POOL], minlength=20) + np.mean(trace.pool == ANY_POOL) * len(
        trace
    ) / len(site.pools)
    per_core = jobs / pool_cores(site)
    assert per_core.max() < 1.4 * per_core.mean()
    assert per_core.min() > 0.7 * per_core.mean()


def test_submits_follow_the_hour_of_the_day_at_another_time_in_each_group():
    plain = replace(DEFAULTS, bursts_per_week=0, site_spread=0, group_spread=0, weekend=1, day_amplitude=0.5)
    _, trace = idcp(0.3, 14, 3, plain)
    peaks = set()
    for group in range(DEFAULTS.groups):
        jobs = (trace.pool % DEFAULTS.groups == group) & (trace.pool != ANY_POOL)
        by_hour = np.bincount(trace.submit[jobs] // HOUR_S % 24, minlength=24)
        angle = np.angle(by_hour @ np.exp(2j * np.pi * np.arange(24) / 24))
        peaks.add(round(angle / (2 * np.pi) * 24) % 24)
        assert 2 < by_hour.max() / by_hour.min() < 5
    assert len(peaks) >= 3


def test_fewer_jobs_come_at_the_weekend():
    plain = replace(DEFAULTS, bursts_per_week=0, site_spread=0, group_spread=0, day_amplitude=0, groups=1)
    _, trace = idcp(0.2, 28, 1, plain)
    by_day = np.sort(np.bincount(trace.submit // DAY_S % 7))
    assert by_day[0] / by_day[-1] == pytest.approx(DEFAULTS.weekend, rel=0.05)


def test_the_submit_rate_of_the_site_changes_over_weeks():
    _, trace = idcp(0.05, 364, 1, replace(DEFAULTS, bursts_per_week=0))
    weeks = np.bincount(trace.submit // (7 * DAY_S))
    assert weeks.min() < 0.8 * weeks.mean()
    assert weeks.max() > 1.2 * weeks.mean()


# -- Programs


def test_the_run_times_of_a_program_vary_little_over_a_day(generated):
    _, trace = generated
    frequent = np.argmax(np.bincount(trace.program[trace.priority == LOW]))
    day = (trace.program == frequent) & (trace.submit < DAY_S)
    assert day.sum() > 100
    assert np.log(trace.run[day]).std() == pytest.approx(DEFAULTS.job_spread, abs=0.1)


def test_a_programs_run_time_changes_with_its_releases():
    _, trace = idcp(0.3, 60, 1, replace(DEFAULTS, bursts_per_week=0, job_spread=0, release_spread=0.2))
    jobs = trace.program == np.argmax(np.bincount(trace.program))
    lasting = np.flatnonzero(np.diff(trace.run[jobs]))
    assert 5 <= len(lasting) <= 7
    assert trace.programs[trace.program[jobs][0]].startswith("low")


def test_time_limits_are_usual_ones_that_overestimate_the_run_time(generated):
    _, trace = generated
    assert np.isin(trace.limit, LIMITS_S).all()
    assert (trace.limit >= trace.run).all()
    assert np.median(trace.limit / trace.run) > 3


# -- Bursts


def test_high_priority_jobs_name_one_of_a_few_pools_of_one_group_and_may_run_in_these_only(generated):
    site, trace = generated
    high = trace.priority == HIGH
    assert set(np.unique(trace.priority)) == {LOW, HIGH}
    assert high.sum() > 1000
    for allowed in np.unique(trace.allowed[high]):
        pools = np.flatnonzero(trace.allowed_sets[allowed])
        jobs = high & (trace.allowed == allowed)
        assert 1 <= len(pools) <= 4
        assert len(set(pools % DEFAULTS.groups)) == 1
        named, count = np.unique(trace.pool[jobs], return_counts=True)
        assert set(named) <= set(pools)
        if count.min() > 1000:
            assert count / count.sum() == pytest.approx(
                pool_cores(site)[named] / pool_cores(site)[named].sum(), abs=0.06
            )


def test_bursts_last_hours_to_a_week_and_most_of_them_less_than_a_day():
    known = programs(DEFAULTS)
    bursts = ordinary_bursts(52 * 168, known, DEFAULTS, np.random.default_rng(1))
    hours = np.array([burst.duration_h for burst in bursts])
    assert len(bursts) == pytest.approx(52 * DEFAULTS.bursts_per_week, rel=0.2)
    assert (hours.min(), hours.max() <= 168, np.median(hours) < 24) == (2, True, True)
    assert hours.max() > 100
    assert [burst.begin_h for burst in bursts] == sorted(burst.begin_h for burst in bursts)
    runs = hours * HOUR_S / known.run_s[[burst.program for burst in bursts]]
    assert runs.min() > 0.6 * DEFAULTS.runs_per_burst[0]
    assert runs.max() < 1.6 * DEFAULTS.runs_per_burst[1]


def test_a_long_burst_demands_cores_in_the_same_hours_of_each_of_its_days():
    hours = Burst(5, 30, (0,), 1.0, 0).hours(replace(DEFAULTS, wave_hours=3))
    assert hours.tolist() == [5, 6, 7, 29, 30, 31]


def test_a_burst_demands_its_height_of_the_cores_of_its_pools():
    one = replace(DEFAULTS, bursts_per_week=0, strong_begin_days=(3,), strong_height=0.8, strong_days=2, surge_load=0)
    site, trace, begin_s, end_s = burst_fortnight(0.3, 1, one)
    high = trace.priority == HIGH
    pools = np.flatnonzero(trace.allowed_sets[trace.allowed[high][0]])
    assert len(pools) == DEFAULTS.strong_pools
    assert set(trace.pool[high]) == set(pools)
    assert trace.submit[high].min() >= begin_s + 3 * DAY_S
    assert trace.submit[high].max() < begin_s + 5 * DAY_S < end_s
    demanding_s = 2 * DEFAULTS.wave_hours * HOUR_S
    work = (trace.run[high] * trace.cores[high]).sum()
    assert work / (pool_cores(site)[pools].sum() * demanding_s) == pytest.approx(0.8, rel=0.05)


def test_the_owners_of_a_burst_add_low_priority_jobs_in_its_pools():
    more, none = (replace(DEFAULTS, surge_load=load) for load in (0.4, 0.0))
    (_, with_surge, *_), (_, without, *_) = burst_fortnight(0.1, 1, more), burst_fortnight(0.1, 1, none)
    pools = np.unique(without.pool[without.priority == HIGH])
    in_pools = [np.isin(trace.pool, pools) & (trace.priority == LOW) for trace in (with_surge, without)]
    assert in_pools[0].sum() > 1.2 * in_pools[1].sum()


# -- The fortnight


def test_the_fortnight_has_a_warm_up_without_high_priority_jobs(fortnight):
    _, trace, begin_s, end_s = fortnight
    assert (begin_s, end_s) == (7 * DAY_S, 21 * DAY_S)
    assert trace.submit[0] < HOUR_S
    assert trace.submit[-1] < end_s
    high = trace.priority == HIGH
    assert trace.submit[high].min() == pytest.approx(begin_s + DEFAULTS.strong_begin_days[0] * DAY_S, abs=HOUR_S)


def test_strong_bursts_overfill_few_pools_while_the_site_is_at_less_than_half(fortnight):
    site, trace, begin_s, end_s = fortnight
    high = trace.priority == HIGH
    whole = load(site, trace, trace.submit >= 0, end_s)
    assert 0.3 < whole < 0.45
    cores = pool_cores(site)
    low_load = DEFAULTS.fortnight_low_load + DEFAULTS.surge_load
    for pool in np.unique(trace.pool[high]):
        jobs = high & (trace.pool == pool)
        hours = len(np.unique(trace.submit[jobs] // HOUR_S))
        demanded = (trace.run[jobs] * trace.cores[jobs]).sum() / (cores[pool] * hours * HOUR_S)
        assert demanded + low_load > 1.1
        assert hours * HOUR_S < 0.4 * (end_s - begin_s)


def test_the_bursts_of_the_fortnight_are_set_so_that_seeds_differ_little():
    loads = []
    for seed in range(4):
        site, trace, _, end_s = burst_fortnight(0.1, seed)
        loads.append(load(site, trace, trace.priority == HIGH, end_s))
    assert np.std(loads) < 0.15 * np.mean(loads)


# -- Files


def test_a_trace_is_read_back_from_csv_as_it_was_generated(tmp_path):
    site, trace, *_ = burst_fortnight(0.002, 1)
    write_pieces(tmp_path / "jobs.csv", pool_lines(site, trace))
    write_nodes(tmp_path / "nodes.csv", site)
    read = read_site(str(tmp_path / "nodes.csv"))
    assert (read.nodes.names, read.pools) == (site.nodes.names, site.pools)
    assert np.array_equal(read.pool_of, site.pool_of)
    assert np.array_equal(read.nodes.capacity, site.nodes.capacity)
    again = read_pool_trace(str(tmp_path / "jobs.csv"), read)
    for name in ("identity", "submit", "run", "cores", "memory", "priority", "pool", "limit", "ticks_per_s"):
        assert np.array_equal(getattr(again, name), getattr(trace, name)), name
    assert np.array_equal(again.allowed_sets[again.allowed], trace.allowed_sets[trace.allowed])
    assert [again.programs[at] for at in again.program] == [trace.programs[at] for at in trace.program]


def small() -> tuple[TraceSite, TraceArrays]:
    """Two jobs at two pools, with times in ms; the second knows neither its time limit nor its program."""
    site = TraceSite(
        NodeArrays(("a1", "b1"), amounts([Resources(2, 8192), Resources(4, 1024)])), ("A", "B"), np.array([0, 1])
    )
    columns = {
        "identity": [7, 3],
        "submit": [0, 1500],
        "run": [10, 2000],
        "cores": [3, 1],
        "memory": [1, 1536],
        "priority": [0, 1],
        "pool": [ANY_POOL, 1],
        "allowed": [0, 1],
        "limit": [3_600_000, 0],
        "program": [0, -1],
    }
    arrays = {name: np.array(column) for name, column in columns.items()}
    allowed_sets = np.array([[True, True], [False, True]])
    trace = TraceArrays(**arrays, allowed_sets=allowed_sets, programs=("sim",), ticks_per_s=1000)
    return site, trace


def test_csv_has_exact_times_and_sizes_and_empty_cells_for_what_is_open_or_unknown():
    assert "".join(pool_lines(*small())).splitlines() == [
        "job_id,submit_s,run_s,cores,mem_gb,pool,priority,allowed_pools,limit_s,program",
        "7,0,0.01,3,0.0009765625,,0,,3600,sim",
        "3,1.5,2,1,1.5,B,1,B,,",
    ]


def test_several_allowed_pools_are_joined():
    site, trace, *_ = burst_fortnight(0.001, 1)
    text = "".join(pool_lines(site, trace))
    high = next(line.split(",") for line in text.splitlines() if ",strong" in line)
    pools = high[7].split("+")
    assert len(pools) == DEFAULTS.strong_pools
    assert high[5] in pools
    assert pools == sorted(pools)


def test_swf_has_the_pool_as_partition_the_priority_as_queue_and_the_program_as_executable():
    lines = "".join(pool_swf_lines(*small(), ["made up"])).splitlines()
    assert lines == [
        "; Version: 2.2",
        "; Note: made up",
        "; Partition: 1 A",
        "; Partition: 2 B",
        "7 0 -1 0.01 3 -1 -1 3 3600 342 1 -1 -1 1 0 -1 -1 -1",
        "3 1.5 -1 2 1 -1 -1 1 -1 1572864 1 -1 -1 -1 1 2 -1 -1",
    ]


def test_a_trace_is_read_back_from_swf_but_for_the_allowed_pools(tmp_path):
    site, trace, *_ = burst_fortnight(0.002, 1)
    write_pieces(tmp_path / "jobs.swf", pool_swf_lines(site, trace, []))
    again = read_pool_trace(str(tmp_path / "jobs.swf"), site)
    for name in ("identity", "submit", "run", "cores", "memory", "priority", "pool", "limit"):
        assert np.array_equal(getattr(again, name), getattr(trace, name)), name
    assert again.allowed_sets.all()
    assert [int(again.programs[at]) for at in again.program] == (trace.program + 1).tolist()
