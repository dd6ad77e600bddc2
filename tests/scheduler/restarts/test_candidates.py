"""What is known of suspended jobs: how long they run, and when those that hold their cores end."""

from dataclasses import replace

import pytest
from live import ALICE, BOB, NOW, job, look, node, running

from slurm_sns.restarts.past_jobs import PastJobs
from slurm_sns.scheduler.observation import JobState, ObservedPartition
from slurm_sns.scheduler.restarts.candidates import past_jobs, suspended_job

HOUR = 3600
PARTITIONS = (ObservedPartition("main"), ObservedPartition("urgent", tier=10))


def at(seconds_ago: int) -> int:
    return int(NOW) - seconds_ago


def ended(number: int, ran_s: int, **fields):
    times = {"submit_s": at(5000), "start_s": at(4000), "end_s": at(4000) + ran_s, "ran_s": ran_s}
    done = {"state": JobState.ENDED, "has_succeeded": True, "name": "mg", "user_id": ALICE}
    return running(number, "c1", **{**times, **done, **fields})


#: It runs for two hours by its limit, has run for ten minutes, and was suspended five minutes ago.
SUSPENDED = running(
    1, "c1", name="mg", state=JobState.SUSPENDED, walltime_s=2 * HOUR, ran_s=600, suspended_s=at(300), start_s=at(900)
)


def urgent(number: int, nodes: str = "c1", since: int = 300, **fields):
    started = {"start_s": at(since), "state": JobState.RUNNING, "allocated": (nodes,)}
    return job(number, **{"partitions": ("urgent",), "user_id": BOB, "walltime_s": HOUR, **started, **fields})


def known(*others, of=SUSPENDED, past=()):
    seen = look(of, *others, *past, nodes=[node("c1"), node("c2")], partitions=PARTITIONS)
    jobs = PastJobs(6000, only_suspended=True)
    jobs.learn(past_jobs(seen, jobs), NOW)
    return suspended_job(of, seen, jobs, NOW)


def test_recent_runs_of_the_owners_program_say_how_long_it_runs_else_the_limit():
    assert known().run_s == 2 * HOUR
    assert known(past=[ended(7, 1000), ended(8, 2000), ended(9, 9, has_succeeded=False)]).run_s == 1500
    assert known(past=[ended(7, 1000, user_id=BOB), ended(8, 1000, name="lu")]).run_s == 2 * HOUR
    assert known(past=[ended(7, 500)]).run_s == 2 * HOUR, "it has run for longer already"
    assert known(of=replace(SUSPENDED, walltime_s=None)) is None


@pytest.mark.parametrize(
    ("others", "resumes_in_s"),
    [
        pytest.param([urgent(5)], 3300, id="its limit"),
        pytest.param([urgent(5), urgent(6, walltime_s=2 * HOUR)], 6900, id="the last of two"),
        pytest.param([urgent(5, "c2")], None, id="elsewhere"),
        pytest.param([urgent(5, since=100)], None, id="came later"),
        pytest.param([urgent(5, partitions=("main",))], None, id="of the same tier"),
        pytest.param([urgent(5), urgent(6, walltime_s=None)], None, id="one without a limit"),
    ],
)
def test_it_resumes_when_those_that_were_started_over_it_have_ended(others, resumes_in_s):
    assert known(*others).resumes_in_s == resumes_in_s


def test_an_ended_job_tells_how_long_it_waited_was_suspended_and_ran():
    gone = replace(ended(7, 1000), ran_s=700)
    none = PastJobs(6000, only_suspended=True)
    (told,) = past_jobs(look(gone, SUSPENDED, partitions=PARTITIONS), none)
    assert (told.wait_s, told.suspended_s, told.was_suspended, told.run_s, told.tier) == (1000, 300, True, 700, 1)
    later = replace(gone, admin_comment=f"sns:2 g=1 b={at(4400)} n=c1 at=1")
    assert [each.wait_s for each in past_jobs(look(later), none)] == [400], "from its owner's begin time"
    assert list(past_jobs(look(replace(gone, allocated=(), start_s=0)), none)) == [], "it never ran"
