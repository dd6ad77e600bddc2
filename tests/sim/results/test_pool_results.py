"""What is measured and written of a replay of pools, by hand on a case of six jobs.

Pools A and B have a node of 2 cores and 8 GB each. Job 1 is suspended from 100 to 250 and resumed. Job 4 is suspended
at 460 after 60 s, restarts in B at once, and is suspended there from 1000 to 1100.
"""

from dataclasses import replace

import numpy as np
import pytest

from slurm_sns.errors import SnsError
from slurm_sns.sim.results.pool_results import measure_pools, period_metrics, pool_job_lines, pool_summary
from slurm_sns.sim.run import TraceRun, Visits
from slurm_sns.sim.traces.nodes_csv import read_site
from slurm_sns.sim.traces.pool_trace import read_pool_trace
from slurm_sns.whole_files import write_files

A, B = 0, 1
HEADER = (
    "job_id,submit_s,start_s,end_s,nodes,cores,mem_gb,ways,bandwidth_gbps,scale,"
    "pool,suspensions,suspended_s,restarts,wasted_s,wait_s"
)


@pytest.fixture
def site(write):
    return read_site(write("nodes.csv", "name,cores,mem_gb,pool\na1,2,8,A\nb1,2,8,B\n"))


@pytest.fixture
def trace(write, site):
    jobs = (
        "1,0,300,1,2,A,0\n2,0,200,1,2,B,0\n3,100,150,2,4,A,1\n4,400,900,1,2,A,0\n5,460,400,2,4,A,1\n6,1000,100,2,4,B,1"
    )
    return read_pool_trace(write("t.csv", f"job_id,submit_s,run_s,cores,mem_gb,pool,priority\n{jobs}\n"), site)


@pytest.fixture
def run(trace):
    visits = {
        "job": [0, 1, 2, 3, 3, 4, 5],
        "pool": [A, B, A, A, B, A, B],
        "joined": [0, 0, 100, 400, 460, 460, 1000],
        "start": [0, 0, 100, 400, 460, 460, 1000],
        "node": [0, 1, 0, 0, 1, 0, 1],
        "suspended": [150, 0, 0, 0, 100, 0, 0],
        "ran": [300, 200, 150, 60, 900, 400, 100],
    }
    # The minutes from 0 to 1500: jobs 1 and 2, then 3 instead of 1, ...
    cores_used = [2, 2, 3, 3, 2, 1, 1, 2, *[3] * 7, 1, 1, 2, 2, *[1] * 6, 0]
    suspended_jobs = [0, 0, 1, 1, 1, *[0] * 12, 1, 1, *[0] * 7]
    return TraceRun(
        trace,
        end=np.array([450, 200, 250, 1460, 860, 1100]),
        place=np.array([0, 1, 0, 1, 0, 1]),
        pool=np.array([A, B, A, B, A, B]),
        first_start=np.array([0, 0, 100, 400, 460, 1000]),
        start=np.array([0, 0, 100, 460, 460, 1000]),
        waited=np.zeros(6, np.int64),
        suspended=np.array([150, 0, 0, 100, 0, 0]),
        suspensions=np.array([1, 0, 0, 2, 0, 0]),
        restarts=np.array([0, 0, 0, 1, 0, 0]),
        wasted=np.array([0, 0, 0, 60, 0, 0]),
        first_suspended=np.array([100, -1, -1, 460, -1, -1]),
        visits=lambda: Visits(**{name: np.array(column) for name, column in visits.items()}),
        cores_used=np.array(cores_used),
        suspended_jobs=np.array(suspended_jobs),
    )


def in_milliseconds(run):
    """The same trace and run with a thousand ticks in each second."""
    times = ("end", "first_start", "start", "waited", "suspended", "wasted")
    visits = run.visits()
    finer = visits._replace(**{name: getattr(visits, name) * 1000 for name in ("joined", "start", "suspended", "ran")})
    trace = run.trace
    return replace(
        run,
        trace=replace(trace, submit=trace.submit * 1000, run=trace.run * 1000, ticks_per_s=1000),
        **{name: getattr(run, name) * 1000 for name in times},
        first_suspended=np.where(run.first_suspended < 0, -1, run.first_suspended * 1000),
        visits=lambda: finer,
    )


# A period


def test_of_a_period_only_what_ended_and_was_suspended_in_it_counts(site, run):
    found = period_metrics(site, run, 1200)
    assert found["jobs_completed"] == 5
    assert found["mean_completion_s"] == (450 + 200 + 150 + 400 + 100) / 5
    assert (found["jobs_suspended"], found["suspended_completed_pct"]) == (2, 50)
    assert (found["mean_suspend_s"], found["suspended_mean_completion_s"]) == (150, 450)
    assert found["suspended_pct_of_completed"] == 40


def test_both_ends_are_in_the_period(site, run):
    assert period_metrics(site, run, 460)["jobs_suspended"] == 2
    assert period_metrics(site, run, 459)["jobs_suspended"] == 1
    assert period_metrics(site, run, 450)["jobs_completed"] == 3
    assert period_metrics(site, run, 449)["jobs_completed"] == 2


def test_what_happened_in_the_warm_up_does_not_count_but_its_jobs_that_complete_later_do(site, run):
    found = period_metrics(site, run, 1500, warm_up_s=250)
    assert found["jobs_completed"] == 4
    assert found["mean_completion_s"] == (450 + 400 + 100 + 1060) / 4
    assert (found["jobs_suspended"], found["suspended_mean_completion_s"]) == (1, 1060)
    assert found["utilisation_sampled_pct"] == 100 * sum(run.cores_used[5:]) / (21 * 4)
    assert period_metrics(site, run, 1500, warm_up_s=99)["jobs_suspended"] == 2
    assert period_metrics(site, run, 1500, warm_up_s=100)["jobs_suspended"] == 1


def test_a_warm_up_beyond_the_end_is_refused(site, run):
    with pytest.raises(ValueError, match="the warm-up is 1260 s long; the period ends at 1200 s"):
        period_metrics(site, run, 1200, warm_up_s=1260)


def test_totals_are_of_the_whole_replay(site, run):
    for period_end_s in (0, 1500):
        found = period_metrics(site, run, period_end_s)
        assert (found["suspensions_total"], found["restarts_total"], found["wasted_core_s_total"]) == (3, 1, 60)


def test_jobs_that_were_moved_at_once_count_0_s_and_are_told_apart(site, run):
    assert period_metrics(site, run, 1500)["moved_at_once"] == 0
    moved = replace(run, suspended=np.array([150, 0, 0, 0, 0, 0]))
    found = period_metrics(site, moved, 1500)
    assert (found["mean_suspend_s"], found["resumed_mean_suspend_s"], found["moved_at_once"]) == (75, 150, 1)


def test_utilisation_is_sampled_each_minute(site, run):
    found = period_metrics(site, run, 299)  # the minutes 0 to 4
    assert found["utilisation_sampled_pct"] == 100 * (2 + 2 + 3 + 3 + 2) / (5 * 4)


def test_a_mean_over_nothing_is_none(site, run):
    found = period_metrics(site, run, 60)
    assert (found["jobs_completed"], found["jobs_suspended"]) == (0, 0)
    assert found["mean_completion_s"] is found["mean_suspend_s"] is found["suspended_completed_pct"] is None
    assert found["resumed_mean_suspend_s"] is found["suspended_pct_of_completed"] is None


def test_a_period_that_was_not_sampled_is_refused(site, run):
    with pytest.raises(ValueError, match="26 samples; a period of 1560 s has 27"):
        period_metrics(site, run, 1560)


def test_ticks_do_not_change_the_metrics(site, run):
    finer = in_milliseconds(run)
    assert period_metrics(site, finer, 1200) == period_metrics(site, run, 1200)
    assert measure_pools(site, finer, keeps_memory=True) == measure_pools(site, run, keeps_memory=True)
    assert pool_summary(finer) == pool_summary(run)


# A simulation


def test_the_metrics_of_a_simulation(site, run):
    found = measure_pools(site, run, keeps_memory=True)
    # From the first submit, at 0, to the last one, at 1000.
    assert found.utilisation_cores == pytest.approx((2 + 2 + 3 + 3 + 2 + 1 + 1 + 2 + 7 * 3 + 1 + 1) / 17 / 4)
    held_gb_s = 2 * 450 + 2 * 200 + 4 * 150 + 2 * 60 + 2 * 540 + 4 * 400
    assert found.utilisation_memory == pytest.approx(held_gb_s / (16 * 1000))
    assert found.load_cores == pytest.approx(100 * (300 + 200 + 2 * 150 + 900 + 2 * 400 + 2 * 100) / (4 * 1000))
    assert found.mean_slowdown == pytest.approx((450 / 300 + 1 + 1 + 1060 / 900 + 1 + 1) / 6)
    assert (found.mean_wait_s, found.mean_queue_length) == (0, 0)
    # Something is submitted or ends at 0, 100, 200, 250, 400, 450, 460, 860, 1000, 1100 and 1460.
    assert (found.cycles, found.cycles_with_waiting) == (11, 0)


def test_time_in_queues_is_the_wait(site, run):
    # Job 6 waits in B until 1100 and runs when job 4 has been suspended there.
    start = np.array([0, 0, 100, 400, 460, 460, 1100])
    visits = run.visits()._replace(start=start)
    later = replace(run, waited=np.array([0, 0, 0, 0, 0, 100]), visits=lambda: visits)
    found = measure_pools(site, later, keeps_memory=True)
    assert found.mean_wait_s == pytest.approx(100 / 6)
    assert found.cycles_with_waiting == 1
    assert found.mean_queue_length == 0  # it is measured until the last submit


def test_memory_that_suspended_jobs_free_is_not_known(site, run):
    assert measure_pools(site, run, keeps_memory=False).utilisation_memory is None


def test_without_a_span_of_submits_or_all_samples_there_is_no_utilisation(site, run):
    at_once = replace(run.trace, submit=np.zeros_like(run.trace.submit))
    found = measure_pools(site, replace(run, trace=at_once, cores_used=run.cores_used[:0]), keeps_memory=True)
    assert found.utilisation_cores is found.utilisation_memory is found.mean_queue_length is found.load_cores is None
    sampled_too_short = replace(run, cores_used=run.cores_used[:9])
    assert measure_pools(site, sampled_too_short, keeps_memory=True).utilisation_cores is None


def test_the_summary_counts_suspensions_and_restarts(run):
    assert pool_summary(run) == {
        "jobs_suspended": 2,
        "mean_suspended_s": 125,
        "suspensions": 3,
        "restarts": 1,
        "wasted_core_s": 60,
    }
    never = replace(run, first_suspended=np.full(6, -1))
    assert pool_summary(never)["mean_suspended_s"] is None


# Files


def test_a_job_is_written_with_its_last_attempt_and_what_it_went_through(site, run):
    header, *lines = "".join(pool_job_lines(site, run)).splitlines()
    assert header == HEADER
    assert lines[0] == "1,0,0,450,a1,1,2,,,,A,1,150,0,0,0"
    assert lines[3] == "4,400,460,1460,b1,1,2,,,,B,2,100,1,60,0"


def test_times_are_written_exactly(site, run):
    finer = in_milliseconds(run)
    lines = "".join(pool_job_lines(site, replace(finer, end=finer.end + 7))).splitlines()
    assert lines[4] == "4,400.000,460.000,1460.007,b1,1,2,,,,B,2,100.000,1,60.000,0.000"


def test_a_run_may_have_a_clock_that_is_behind(site, run):
    assert "\n4,5400,5460,6460,b1," in "".join(pool_job_lines(site, run, begin=5000))


def test_a_directory_that_cannot_be_written_is_an_error_of_one_line(tmp_path, site, run):
    (tmp_path / "file").write_text("")
    with pytest.raises(SnsError, match="cannot write the results"):
        write_files(tmp_path / "file", {"jobs.csv": pool_job_lines(site, run)})
