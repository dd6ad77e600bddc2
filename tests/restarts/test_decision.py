"""The decision on a suspended job, where the live rule goes beyond the paper's."""

from fractions import Fraction

from slurm_sns.restarts.decision import Basis, SuspendedJob, decide
from slurm_sns.restarts.past_jobs import MOST_PAST, RECENT_S, PastJob, PastJobs, RecentAverages

HERE = RecentAverages(5, Fraction(600), Fraction(900))
OF_SITE = RecentAverages(5, Fraction(600), Fraction(900), is_of_site=True)
#: It has run for an hour of three, and those that hold its cores end in ten hours.
JOB = SuspendedJob("main", 10_800, 3600, resumes_in_s=36_000)


def decided(job=JOB, averages=HERE, nodes=("c2",), least_gain_s=300):
    return decide(job, {"main": averages}, [("main", nodes)], least_gain_s)


def test_those_that_hold_its_cores_say_when_it_resumes_else_the_averages_do():
    assert (decided().stays.basis, decided().stays.total_s) == (Basis.PREEMPTORS, 36_000 + 7200)
    by_averages = decided(SuspendedJob("main", 10_800, 3600))
    assert (by_averages.stays.basis, by_averages.stays.total_s) == (Basis.PARTITION, 900 + 7200)
    assert decided(SuspendedJob("main", 10_800, 3600), averages=None) is None


def test_a_place_is_no_wait_and_without_one_the_job_waits_for_the_mean():
    assert [term.total_s for term in decided().others] == [900 + 10_800]
    assert [term.total_s for term in decided(nodes=()).others] == [600 + 900 + 10_800]
    assert [term.total_s for term in decided(averages=OF_SITE).others] == [10_800], "it has no samples of its own"
    assert decided(averages=None, nodes=()).others == ()


def test_with_checkpoints_only_what_was_run_since_the_last_one_is_run_again():
    every_10_min = SuspendedJob("main", 10_800, 3600, 36_000, checkpoint_s=600)
    assert (every_10_min.lost_s, decided(every_10_min).others[0].run_s) == (600, 7200 + 600)
    young = SuspendedJob("main", 10_800, 60, 36_000, checkpoint_s=600)
    assert (young.lost_s, decided(young).others[0].run_s) == (60, 10_800)


def test_it_restarts_for_the_least_gain_and_not_for_a_second_less():
    job = SuspendedJob("main", 10_800, 3600, resumes_in_s=900 + 3600 + 300)
    assert decided(job).restart is not None
    assert decided(job, least_gain_s=301).restart is None


def test_a_job_that_runs_longer_than_expected_has_nothing_left():
    assert SuspendedJob("main", 3600, 7200).left_s == 0


def past(number: int, **fields) -> PastJob:
    told = {"ended_s": 1000, "partition": "main", "tier": 1, "user_id": 7, "name": "mg", "wait_s": 0}
    told |= {"suspended_s": 60, "was_suspended": True, "run_s": 100}
    return PastJob(number, **{**told, **fields})


def test_averages_are_of_the_tier_in_the_window_and_of_the_site_where_the_partition_has_none():
    jobs = PastJobs(100, only_suspended=True)
    jobs.learn([past(1, wait_s=10), past(2, tier=10), past(3, ended_s=899), past(4, was_suspended=False)], 1000)
    assert jobs.averages("main", 1, 1000) == RecentAverages(1, Fraction(10), Fraction(60))
    assert jobs.averages("old", 1, 1000) == RecentAverages(1, Fraction(10), Fraction(60), is_of_site=True)
    assert jobs.averages("main", 5, 1000) is None


def test_run_times_are_those_of_the_owners_program_in_a_day():
    jobs = PastJobs(100, only_suspended=True)
    jobs.learn([past(1), past(2, run_s=300), past(3, run_s=None), past(4, name="lu"), past(5, user_id=8)], 1000)
    assert jobs.mean_run_s(7, "mg", 1000) == 200
    assert jobs.mean_run_s(7, "mg", 1001 + RECENT_S) is None
    assert jobs.learn([], 1001 + RECENT_S) is True
    assert jobs.jobs == ()


def test_only_so_many_jobs_are_kept_the_latest():
    jobs = PastJobs(100, only_suspended=True)
    jobs.learn([past(number, ended_s=number) for number in range(MOST_PAST + 3)], 1000)
    assert {job.job_id for job in jobs.jobs} == set(range(3, MOST_PAST + 3))
    assert jobs.learn([past(MOST_PAST)], 1000) is False
