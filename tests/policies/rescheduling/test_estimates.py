"""What a decision compares: the means of the window, and the terms of the pools. Small cases by hand."""

from fractions import Fraction

import pytest
from oracles.rescheduling.estimates import Basis, Candidate, Means, RestartDecision, Term, decide, means_of
from oracles.rescheduling.history import Account, Sample, Visit
from oracles.rescheduling.samples import counted, in_window, means_in, sample_of
from pool_cases import EngineSeen, PoolCase, PoolJob, PoolNode, ReplaySeen

from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters

RUN_S, LEFT_S = 900, 840
NOTHING = Means()
OF_SITE = Means(9, 500, 500)


def decision(own: Means, *others: Candidate, site: Means = OF_SITE, left_s: int = LEFT_S) -> RestartDecision:
    """On a job in pool A that has `left_s` of 900 s to run."""
    return decide(1, Candidate("A", own), others, site=site, run_s=RUN_S, left_s=left_s)


# The terms and the choice


def test_the_own_pool_counts_its_suspend_time_and_what_is_left_another_one_also_its_wait_time_and_the_whole_run():
    made = decision(Means(3, 70, 150), Candidate("B", Means(2, 20, 30)))
    assert made.terms == (Term("A", 3, Basis.POOL, 0, 150, LEFT_S), Term("B", 2, Basis.POOL, 20, 30, RUN_S))
    assert [term.estimate_s for term in made.terms] == [990, 950]
    assert (made.chosen, made.moves) == ("B", True)


def test_the_own_pool_without_samples_counts_the_means_of_the_site():
    made = decision(NOTHING, Candidate("B", Means(2, 0, 0)), site=Means(2, 40, 50))
    assert made.terms[0] == Term("A", 0, Basis.SITE, 0, 50, LEFT_S)
    assert made.chosen == "A"


def test_another_pool_without_samples_counts_0_if_it_has_room_else_the_means_of_the_site():
    empty, full = Candidate("B", NOTHING, has_room=True), Candidate("C", NOTHING)
    made = decision(Means(1, 0, 150), full, empty, site=Means(1, 10, 150))
    assert made.terms[1:] == (Term("C", 0, Basis.SITE, 10, 150, RUN_S), Term("B", 0, Basis.ROOM, 0, 0, RUN_S))
    assert made.chosen == "B"


def test_room_does_not_count_where_there_are_samples():
    made = decision(Means(1, 0, 50), Candidate("B", Means(1, 0, 300), has_room=True))
    assert (made.terms[1].basis, made.chosen) == (Basis.POOL, "A")


def test_without_a_sample_anywhere_the_job_stays_and_nothing_is_compared():
    made = decision(NOTHING, Candidate("B", NOTHING, has_room=True), site=NOTHING, left_s=RUN_S)
    assert made.terms == (Term("A", 0, Basis.NONE, 0, 0, RUN_S),)
    assert (made.chosen, made.moves) == ("A", False)


def test_of_equal_pools_the_own_one_is_taken_then_the_first_in_the_list():
    better, equal = Means(1, 0, 0), Means(1, 0, RUN_S - LEFT_S)
    assert decision(equal, Candidate("B", better)).chosen == "A"
    assert decision(equal, Candidate("C", better), Candidate("B", better), left_s=LEFT_S + 1).chosen == "C"


def test_estimates_are_compared_exactly():
    third, more = Fraction(10**15, 3), Fraction(10**15 + 1, 3)
    assert decision(Means(3, 0, more), Candidate("B", Means(3, 0, third)), left_s=RUN_S).chosen == "B"
    assert decision(Means(3, 0, third), Candidate("B", Means(3, 0, more)), left_s=RUN_S).chosen == "A"
    assert decision(Means(3, 0, third), Candidate("B", Means(3, 0, third)), left_s=RUN_S).chosen == "A"


def test_the_reason_says_what_was_expected():
    stays, moves = (decision(Means(1, 0, suspend_s), Candidate("B", Means(1, 10, 50))) for suspend_s in (60, 200))
    assert stays.reason().endswith("it stays: expected to complete in 900 s in A")
    assert moves.reason() == "expected to complete in 960 s in B, not 1040 s in A"
    thirds = decision(Means(3, 0, Fraction(1000, 3)), Candidate("B", Means(1, 0, 0)))
    assert thirds.reason() == "expected to complete in 900 s in B, not 1173 s in A"


# Means


def test_means_are_exact():
    assert means_of([(1, 5), (1, 0), (0, 0)]) == Means(3, Fraction(2, 3), Fraction(5, 3))
    assert means_of([(0.5, 1.5), (0.0, 0.0)]) == Means(2, 0.25, 0.75)
    assert means_of([]) == NOTHING


def sample(ended_s: int, pool: str = "A", *, priority: int = 0, suspended_s: int = 0, was: bool = False) -> Sample:
    return Sample(ended_s, pool, priority, 0, suspended_s, was_suspended=was or suspended_s > 0)


def test_both_ends_of_the_window_count():
    samples = [sample(ended_s) for ended_s in (899, 900, 950, 1000)]
    assert [each.ended_s for each in in_window(samples, 1000, 100)] == [900, 950, 1000]


def test_only_samples_of_the_same_priority_count():
    assert counted([sample(1), sample(2, priority=1), sample(3)], 0, only_suspended=False) == [sample(1), sample(3)]


def test_the_averages_may_be_over_suspended_jobs_only():
    """A job that was suspended elsewhere counts, though it never was in the pool where it completed."""
    samples = [sample(1), sample(2, suspended_s=60), sample(3, was=True)]
    assert means_in(counted(samples, 0, only_suspended=False), "A") == Means(3, 0, 20)
    assert means_in(counted(samples, 0, only_suspended=True), "A") == Means(2, 0, 30)


def test_the_means_of_the_site_are_over_all_samples_and_not_over_pools():
    samples = [sample(1, suspended_s=60), sample(2), sample(3, "B", suspended_s=30)]
    assert means_in(samples) == Means(3, 0, 30)
    assert (means_in(samples, "A"), means_in(samples, "C")) == (Means(2, 0, 30), NOTHING)


def test_a_sample_is_of_all_visits_to_the_pool_where_the_job_completed_and_of_no_other():
    visits = Visit("A", 10, 100), Visit("B", 1000, 2000), Visit("A", 5, 0)
    account = Account(visits[-1], 1, 0, earlier=visits[:-1], suspensions=3, priority=7)
    assert sample_of(account, 99) == Sample(99, "A", 7, 15, 100, was_suspended=True)


def test_a_sample_knows_whether_the_job_was_suspended_anywhere_even_for_0_s():
    moved = Account(Visit("B", 10), 1, 0, earlier=(Visit("A"),), suspensions=1)
    assert sample_of(moved, 99) == Sample(99, "B", 0, 10, 0, was_suspended=True)
    assert not sample_of(Account(Visit("B", 10), 1, 0), 99).was_suspended


# The same in both engines


@pytest.fixture(params=[EngineSeen, ReplaySeen], ids=["engine", "replay"])
def terms(request):
    """The terms of the decision on a job at a moment, as `pool samples basis wait suspend`."""

    def of(job: int, now_s: int, jobs: list[PoolJob], nodes: list[PoolNode], **more: object) -> list[str]:
        in_order = sorted(jobs, key=lambda each: each.submit_s)
        run = request.param(PoolCase(nodes, in_order), ReschedulingParameters(**more))
        (found,) = [each for at_s, _, each in run.decisions if (each.job_id, at_s) == (job, now_s)]
        return [f"{each.pool} {each.samples} {each.basis} {each.wait_s} {each.suspend_s}" for each in found.terms]

    return of


ONE_CORE_EACH = [PoolNode("a", 1, 8, "A"), PoolNode("b", 1, 8, "B")]


def suspended_at(now_s: int, pool: str = "A", *, priority: int = 0) -> list[PoolJob]:
    """Job 1 runs in the pool from 60 s before, and is suspended then."""
    return [
        PoolJob(1, now_s - 60, 900, 1, 0, pool, priority),
        PoolJob(2, now_s, 50, 1, 0, pool, priority + 1),
    ]


def completed(number: int, submit_s: int, end_s: int, pool: str = "B", *, priority: int = 0) -> PoolJob:
    return PoolJob(number, submit_s, end_s - submit_s, 1, 0, pool, priority)


@pytest.mark.parametrize(("now_s", "samples"), [(1000, 1), (1099, 1), (1100, 1), (1101, 0)])
def test_completions_of_the_moment_and_of_one_window_before_count(terms, now_s, samples):
    """Job 3 completes at 1000."""
    jobs = [completed(3, 500, 1000), *suspended_at(now_s)]
    counts = ["A 0 site 0 0", "B 1 pool 0 0"] if samples else ["A 0 none 0 0"]
    assert terms(1, now_s, jobs, ONE_CORE_EACH, window_s=100) == counts


def test_samples_are_of_jobs_of_the_same_priority_only(terms):
    jobs = [completed(3, 0, 100, priority=1), completed(4, 100, 200, priority=2), *suspended_at(300, priority=1)]
    assert terms(1, 300, jobs, ONE_CORE_EACH) == ["A 0 site 0 0", "B 1 pool 0 0"]


def test_never_suspended_jobs_count_0_unless_the_averages_are_over_suspended_ones(terms):
    """In B job 3 is suspended from 10 to 40 and ends at 90; job 4 waits from 50 to 90."""
    jobs = [
        PoolJob(3, 0, 60, 1, 0, "B"),
        PoolJob(5, 10, 30, 1, 0, "B", 1),
        PoolJob(4, 50, 10, 1, 0, "B"),
        *suspended_at(300),
    ]
    assert terms(1, 300, jobs, ONE_CORE_EACH) == ["A 0 site 0 15", "B 2 pool 20 15"]
    assert terms(1, 300, jobs, ONE_CORE_EACH, averages="suspended") == ["A 0 site 0 30", "B 1 pool 0 30"]


def test_a_job_that_was_suspended_elsewhere_counts_among_suspended_ones(terms):
    """Job 5, suspended in A for 200 s, lets job 3 move to B at 310, where it is never suspended. Job 7 never was."""
    jobs = [
        PoolJob(5, 0, 20, 1, 0, "A"),
        PoolJob(6, 10, 200, 1, 0, "A", 1),
        PoolJob(3, 300, 250, 1, 0, "A"),
        PoolJob(4, 310, 50, 1, 0, "A", 1),
        PoolJob(7, 400, 10, 1, 0, "B"),
        *suspended_at(700),
    ]
    assert terms(1, 700, jobs, ONE_CORE_EACH, averages="suspended") == ["A 1 pool 0 200", "B 1 pool 0 0"]
    assert terms(1, 700, jobs, ONE_CORE_EACH) == ["A 1 pool 0 200", "B 2 pool 80 0"]


def test_a_pool_has_room_whatever_waits_in_its_queue(terms):
    """A core of B is free, and job 4 waits there for two."""
    nodes = [PoolNode("a", 1, 8, "A"), PoolNode("b", 2, 8, "B"), PoolNode("c", 1, 8, "C")]
    jobs = [completed(3, 0, 100, "C"), PoolJob(5, 200, 900, 1, 0, "B"), PoolJob(4, 210, 50, 2, 0, "B")]
    assert terms(1, 300, [*jobs, *suspended_at(300)], nodes) == ["A 0 site 0 0", "B 0 room 0 0", "C 1 pool 0 0"]


@pytest.mark.parametrize(("cores", "gb", "basis"), [(2, 8, "room"), (1, 8, "site"), (2, 7, "site")])
def test_room_is_of_cores_and_memory_on_one_node(terms, cores, gb, basis):
    """Job 1 has 2 cores and 8 GB. In B job 4 leaves some of both free, and node b2 never has both."""
    nodes = [PoolNode("a", 2, 8, "A"), PoolNode("b1", 3, 9, "B"), PoolNode("b2", 2, 7, "B"), PoolNode("c", 1, 8, "C")]
    jobs = [
        completed(3, 0, 100, "C"),
        PoolJob(4, 200, 900, 3 - cores, 9 - gb, "B"),
        PoolJob(1, 240, 900, 2, 8, "A"),
        PoolJob(2, 300, 50, 2, 0, "A", 1),
    ]
    assert terms(1, 300, jobs, nodes) == ["A 0 site 0 0", f"B 0 {basis} 0 0"]


def test_only_allowed_pools_with_a_large_enough_node_are_compared(terms):
    sizes = {"A": (2, 8), "B": (1, 8), "C": (2, 7), "D": (8, 64), "E": (2, 8)}
    nodes = [PoolNode(pool.lower(), *size, pool) for pool, size in sizes.items()]
    jobs = [completed(3, 0, 100, "B"), PoolJob(1, 240, 900, 2, 8, "A"), PoolJob(2, 300, 50, 2, 0, "A", 1)]
    assert terms(1, 300, jobs, nodes) == ["A 0 site 0 0", "D 0 room 0 0", "E 0 room 0 0"]
    jobs[1] = jobs[1]._replace(allowed=("E", "B", "A"))
    assert terms(1, 300, jobs, nodes) == ["A 0 site 0 0", "E 0 room 0 0"]


def test_a_sample_has_all_visits_to_the_last_pool(terms):
    """Job 4 waits 30 s in A, moves to B at 1230 and back to A at 1240, and waits there until 1730.

    At 1230 suspensions in A (job 3: 290 s, job 8: none) are compared with room in B, at 1240 with the 1000 s of job 6,
    which has just completed in B. At 3000 job 4 is the only sample: it waited 30 s and 490 s.
    """
    nodes = [PoolNode("a", 1, 8, "A"), PoolNode("b", 2, 8, "B")]
    jobs = [
        PoolJob(3, 0, 600, 1, 0, "A"),
        PoolJob(5, 10, 290, 1, 0, "A", 1),
        PoolJob(6, 0, 235, 1, 0, "B"),
        PoolJob(7, 1, 1000, 2, 0, "B", 1),
        PoolJob(8, 890, 330, 1, 0, "A"),
        PoolJob(4, 1190, 1200, 1, 0, "A"),
        PoolJob(9, 1230, 500, 1, 0, "A", 1),
        PoolJob(10, 1240, 100, 2, 0, "B", 1),
        *suspended_at(3000, "B"),
        PoolJob(11, 3000, 50, 1, 0, "B", 1),
    ]
    assert terms(4, 1230, jobs, nodes, window_s=400) == ["A 2 pool 0 145", "B 0 room 0 0"]
    assert terms(4, 1240, jobs, nodes, window_s=400) == ["B 1 pool 0 1000", "A 2 pool 0 145"]
    assert terms(1, 3000, jobs, nodes, window_s=400) == ["B 0 site 0 0", "A 1 pool 520 0"]
