"""Jobs that meet a limit of their user, account or QOS: they keep nothing from others, and one tries for all."""

import itertools
from dataclasses import replace

import pytest
from fake_slurm import FakeSlurm, Site
from live import BOB, ENFORCE, FOREIGN, NOW, job, look, node, pinned, planned, running, sent, situation, tried

from slurm_sns.scheduler.gate.failed_placements import not_started
from slurm_sns.scheduler.gate.job_status import is_limit
from slurm_sns.scheduler.observation import JobState
from slurm_sns.task_ids import task_id

LIMIT = "AssocGrpCpuLimit"
EIGHT_NODES = {f"c{at}": 28 for at in range(1, 9)}


@pytest.mark.parametrize(
    ("reason", "is_one"),
    [
        ("AssocGrpCpuLimit", True),
        ("AssocMaxJobsLimit", True),
        ("AssociationResourceLimit", True),
        ("QOSMaxCpuPerUserLimit", True),
        ("QOSGrpNodeLimit", True),
        ("MaxCpuPerAccount", True),
        ("MaxJobsPerAccount", True),
        ("MaxGRESRunMinsPerUser", True),
        ("MaxMemPerLimit", False),  # more memory than any job gets: it will never do
        ("MaxPoweredUpNodes", False),
        ("Resources", False),
        ("Priority", False),
        ("PartitionNodeLimit", False),
        ("", False),
    ],
)
def test_the_reasons_that_are_limits_of_the_owners(reason: str, is_one: bool) -> None:
    assert is_limit(reason) is is_one


@pytest.mark.long
@pytest.mark.parametrize("limited", [1, 40])
def test_others_use_the_whole_cluster_while_jobs_meet_a_limit(limited: int) -> None:
    """One account may hold 28 cores and wants 224 at once; another has as many small jobs as there is room for."""
    site = Site(FakeSlurm(EIGHT_NODES))
    site.slurm.limits["physics"] = 28
    site.slurm.submit(*[224] * limited, account="physics")
    for at in range(240):
        site.slurm.submit(28, account="chemistry", user="bob", user_id=BOB, run_s=20 + 7 * at % 30)
    site.scheduler(replace(ENFORCE, withhold_limit_s=None)).repeat(400, 1.0)
    in_use = site.slurm.in_use[20:400]
    assert sum(in_use) > 0.9 * 224 * len(in_use)


def refused(identity: int, *, limit: str = LIMIT, **fields):
    """What is remembered of a job whose last placement met the limit, a second ago."""
    known = {"retry_s": NOW - 1, "note": "Slurm did not start it", "limited_by": limit, **fields}
    return tried(identity, **known)


def test_a_placement_that_meets_a_limit_is_taken_back_at_once() -> None:
    placed = pinned(1, "c1", reason=LIMIT)
    assert sent(situation(look(placed))) == {1: "regate"}
    assert not_started(placed, None, ENFORCE, NOW).limited_by == LIMIT


def test_an_arrays_record_tries_no_limit_in_place_of_a_task_that_has_met_it() -> None:
    """The record is the smallest job by its number, but only tasks that were split off have met the limit."""
    array = {"array_id": 1, "cpus": 2}
    waiting = job(1, array_tasks="3-9", **array), job(2, array_task=1, **array), job(3, array_task=2, **array)
    seen = situation(look(*waiting), refused(2), refused(3))
    assert planned(seen) == [2]
    assert "job 2 tries that limit first" in seen.blocked[1]
    assert "job 2 tries that limit first" in seen.blocked[3]


def test_an_array_whose_last_task_met_a_limit_before_slurmctld_lost_that_it_was_on_its_own_goes_on() -> None:
    """A slurmctld that is killed joins the tasks again that were split off since it saved its state."""
    joined = situation(look(job(1, array_id=1, array_tasks="3,4", cpus=2)), refused(1))
    assert planned(joined) == [task_id(1, 3), task_id(1, 4)]


def test_it_withholds_nothing_and_is_not_over_aged() -> None:
    old = job(1, submit_s=int(NOW) - 100_000)
    (waiting,) = situation(look(old), refused(1, submit_s=old.submit_s)).snapshot.waiting
    assert (waiting.withholds, waiting.over_aged) == (False, False)
    (waiting,) = situation(look(old)).snapshot.waiting
    assert (waiting.withholds, waiting.over_aged) == (True, True)


def test_it_comes_after_the_others_of_its_tier_and_qos() -> None:
    assert planned(situation(look(job(1), job(2, walltime_s=60)), refused(1))) == [2, 1]


def test_of_several_that_met_a_limit_the_smallest_tries() -> None:
    jobs = job(1, cpus=8), job(2, cpus=4), job(3, cpus=16)
    seen = situation(look(*jobs), refused(1), refused(2), refused(3))
    assert planned(seen) == [2]
    assert seen.blocked[1].endswith("job 2 tries that limit first")


#: Two jobs of which neither is as large as the other, and a third beside them.
MUCH_MEMORY, MANY_CPUS = {"cpus": 1, "memory_per_cpu_mb": 100_000}, {"cpus": 2, "memory_per_cpu_mb": 500}
BETWEEN = {"cpus": 4, "tasks": 4, "memory_per_cpu_mb": 10}


@pytest.mark.parametrize(("passed_s", "tries"), [(59, [1]), (60, [1, 2]), (125, [1, 2, 3])])
def test_for_each_minute_without_a_refusal_one_more_tries_because_the_first_may_have_no_room(passed_s, tries) -> None:
    jobs = job(1, **MUCH_MEMORY), job(2, **MANY_CPUS), job(3, cpus=8)
    since = {"retry_s": NOW - passed_s}
    waits = refused(1, tried_s=NOW - 300), refused(2, tried_s=NOW - 200, **since), refused(3, tried_s=NOW - 300)
    assert planned(situation(look(*jobs), *waits)) == tries


def test_a_job_does_not_wait_for_ever_behind_a_smaller_one_that_has_no_room() -> None:
    """The limit is met no more, because another user's job has ended; the only node with much memory is taken."""
    nodes = [node("c1", taken=(0, 100_000)), node("c2", taken=(0, 100_000))]
    jobs = job(1, **MUCH_MEMORY), job(2, **MANY_CPUS)
    for first, second in ((1, 2), (2, 1)):
        waits = refused(first, tried_s=NOW - 3000, retry_s=NOW - 2900), refused(second, tried_s=NOW - 900)
        assert 2 in planned(situation(look(*jobs, nodes=nodes), *waits, now_s=NOW + 60))


def test_a_job_as_large_as_the_one_refused_last_comes_after_one_that_is_not() -> None:
    """What exceeds a limit of memory says nothing of a job that asks for more CPUs and less memory."""
    jobs = job(1, **MUCH_MEMORY), job(2, **MANY_CPUS)
    seen = situation(look(*jobs), refused(1), refused(2, tried_s=NOW - 9))
    assert planned(seen) == [2]
    assert seen.blocked[1].endswith("job 2 tries that limit first")
    assert planned(situation(look(*jobs), refused(1, tried_s=NOW - 9), refused(2))) == [1]


def test_of_those_the_one_that_was_tried_longest_ago_comes_first() -> None:
    jobs = job(1, **MUCH_MEMORY), job(2, **MANY_CPUS), job(3, **BETWEEN)
    tried_s = {1: NOW - 1, 2: NOW - 20, 3: NOW - 40}
    for expected in (3, 2, 1, 3):
        seen = situation(look(*jobs), *(refused(each, tried_s=at_s) for each, at_s in tried_s.items()))
        assert planned(seen) == [expected]
        tried_s[expected] = max(tried_s.values()) + 0.1


def test_a_job_that_was_never_tried_does_not_wait_for_one_that_asks_for_whole_nodes_or_for_a_programs_ways() -> None:
    for words in ("exclusive", "program=HC"):
        first = job(1, cpus=2, words=words)
        assert planned(situation(look(first, job(2, cpus=8)), refused(1, retry_s=NOW + 60))) == [2]
        assert planned(situation(look(first, job(2, cpus=8, words=words)), refused(1, retry_s=NOW + 60))) == []


def test_a_smaller_job_that_was_tried_comes_before_one_that_never_was() -> None:
    jobs = job(1, cpus=4), job(2, cpus=16), job(3, cpus=8)
    assert planned(situation(look(*jobs), refused(1, tried_s=NOW - 9), refused(2))) == [1]


def test_however_long_it_takes_a_job_that_was_never_tried_waits_for_a_smaller_one_that_was() -> None:
    """It would withhold capacity for a job that its owner's limit may keep from starting."""
    waits = refused(1, tried_s=NOW - 9000, retry_s=NOW - 9000)
    assert planned(situation(look(job(1, cpus=8), job(2, cpus=8)), waits)) == [1]


def test_a_clock_that_was_set_back_does_not_delay_the_next_try() -> None:
    jobs = job(1, **MUCH_MEMORY), job(2, **MANY_CPUS)
    waits = (refused(each, tried_s=NOW + 9000, retry_s=NOW + 9060) for each in (1, 2))
    assert planned(situation(look(*jobs), *waits)) == [1, 2]


def test_while_it_tries_the_others_wait() -> None:
    seen = situation(look(job(1, cpus=8), pinned(2, "c1", cpus=4)), refused(1), refused(2))
    assert planned(seen) == []


def test_other_limits_users_and_accounts_are_tried_beside_it() -> None:
    jobs = job(1), job(2), job(3, user_id=BOB, user="bob"), job(4, account="chemistry")
    seen = situation(look(*jobs), refused(1), refused(2, limit="QOSMaxCpuPerUserLimit"), refused(3), refused(4))
    assert sorted(planned(seen)) == [1, 2, 3, 4]


def test_a_smaller_job_that_has_met_no_limit_does_not_wait_for_those_that_have() -> None:
    waits = refused(1, retry_s=NOW + 60)
    assert planned(situation(look(job(1, cpus=8), job(2, cpus=1)), waits)) == [2]
    assert planned(situation(look(job(1, cpus=8), job(2, cpus=8, walltime_s=60)), waits)) == [2]


def test_one_at_least_as_large_does_and_needs_no_try_of_its_own() -> None:
    seen = situation(look(job(1, cpus=8), job(2, cpus=9)), refused(1, retry_s=NOW + 60))
    assert planned(seen) == []
    assert seen.blocked[2] == "its owner has met a limit, AssocGrpCpuLimit; tried again in 60 s"
    over = situation(look(job(1, cpus=8), job(2, cpus=9)), refused(1))
    assert over.blocked[2] == "its owner has met a limit, AssocGrpCpuLimit; job 1 tries that limit first"
    others = job(2, cpus=9, user_id=BOB), job(3, cpus=9, account="chemistry"), job(4, cpus=9, qos="long")
    assert planned(situation(look(job(1, cpus=8), *others), refused(1, retry_s=NOW + 60))) == [2, 3, 4]


def test_the_pause_after_the_last_try_is_everybodys() -> None:
    jobs = job(1, cpus=8), job(2, cpus=4)
    seen = situation(look(*jobs), refused(1, retry_s=NOW - 50, tried_s=NOW - 60), refused(2, retry_s=NOW + 40))
    assert planned(seen) == []
    assert seen.blocked[2].endswith("tried again in 40 s")


def ended(identity: int, **fields):
    return running(identity, "c1", state=JobState.ENDED, **FOREIGN, **fields)


def test_where_a_job_of_the_account_has_ended_since_it_is_tried_again_within_a_minute() -> None:
    waits = refused(1, tried_s=NOW - 70, retry_s=NOW + 200)
    assert planned(situation(look(job(1), ended(9, end_s=int(NOW) - 5)), waits)) == [1]
    assert planned(situation(look(job(1), ended(9, end_s=int(NOW) - 80)), waits)) == []
    assert planned(situation(look(job(1), ended(9, end_s=int(NOW) - 5, account="chemistry", qos="x")), waits)) == []


def test_the_pauses_grow_and_the_job_is_never_given_away() -> None:
    site = Site(FakeSlurm({"c1": 28}))
    site.slurm.limits["physics"] = 2
    site.slurm.submit(4)
    site.scheduler(ENFORCE).repeat(1500, 1.0)
    known = site.history.tries[1]
    assert (known.limited_by, known.failures) == (LIMIT, 7)
    tries = [view.at_s for view in site.views if view.plan.starts]
    pauses = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert pauses == sorted(pauses)
    assert pauses[-1] > 300
    assert site.slurm.jobs[1].state is JobState.PENDING


def test_when_there_is_room_the_next_ones_start_one_after_the_other() -> None:
    site = Site(FakeSlurm({"c1": 28}))
    site.slurm.limits["physics"] = 0
    site.slurm.submit(4, 4, 4)
    site.scheduler(ENFORCE).repeat(5, 1.0)
    site.slurm.limits["physics"] = 28
    site.scheduler(ENFORCE).repeat(40, 1.0)
    assert len(site.slurm.ended) == 3


def test_at_a_minimum_the_larger_jobs_are_tried() -> None:
    """A QOS may ask for so much at least (MinTRESPerJob): a larger job may start where a small one may not."""
    limit = "QOSMinCpuNotSatisfied"
    waits = refused(1, limit=limit, retry_s=NOW + 60)
    assert planned(situation(look(job(1, cpus=1), job(2, cpus=16)), waits)) == [2]
    assert situation(look(job(1, cpus=1)), waits).blocked[1].endswith("tried again in 60 s")
    both = refused(1, limit=limit), refused(2, limit=limit)
    assert sorted(planned(situation(look(job(1, cpus=1), job(2, cpus=16)), *both))) == [1, 2]


def test_a_limit_of_one_partition_holds_nobody_back_in_another() -> None:
    jobs = job(1, cpus=8), job(2, cpus=8, partitions=("small",))
    nodes = [node("c1"), node("s1")]
    assert planned(situation(look(*jobs, nodes=nodes), refused(1, retry_s=NOW + 60))) == [2]


def test_for_each_job_of_the_owner_that_started_or_ended_one_more_tries() -> None:
    jobs = [job(at, cpus=8) for at in range(1, 9)]
    waits = [refused(at, tried_s=NOW - 20, retry_s=NOW - 10) for at in range(1, 9)]
    past = running(20, "c1", start_s=int(NOW) - 5), ended(21, start_s=int(NOW) - 90, end_s=int(NOW) - 6)
    before = running(22, "c1", start_s=int(NOW) - 60), running(23, "c1", start_s=int(NOW) - 5, user_id=BOB)
    assert planned(situation(look(*jobs, *past, *before), *waits)) == [1, 2, 3]
    trying = pinned(9, "c1", cpus=8)
    assert planned(situation(look(*jobs, *past, trying), *waits, refused(9))) == [1, 2]


@pytest.mark.long
def test_a_user_at_a_limit_of_jobs_keeps_nearly_as_many_running_as_it_allows() -> None:
    site = Site(FakeSlurm({f"c{at}": 28 for at in range(1, 5)}))
    site.slurm.limits["physics"], site.slurm.min_job_age_s = 40, 300
    site.slurm.submit(*[1] * 600, run_s=30)
    site.scheduler(ENFORCE).repeat(300, 1.0)
    in_use = site.slurm.in_use[60:]
    assert sum(in_use) > 0.9 * 40 * len(in_use)


def test_a_job_that_starts_has_met_no_limit_any_more() -> None:
    assert situation(look(running(1, "c1")), refused(1)).surveyed.tries == {}


def test_the_same_refusal_again_is_a_repetition() -> None:
    placed = pinned(1, "c1", reason=LIMIT)
    assert situation(look(placed)).repeated == frozenset()
    assert situation(look(placed), refused(1, limit="QOSGrpCpuLimit")).repeated == frozenset()
    assert situation(look(placed), refused(1)).repeated == {1}
