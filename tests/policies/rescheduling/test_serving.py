"""Who is served first in a pool, and on which node: small cases by hand, in both engines, without restarts."""

import pytest
from pool_cases import EngineSeen, PoolCase, PoolJob, PoolNode, ReplaySeen

from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters

LONG = 1000


class Served:
    """What both engines' runs are asked for, by job number."""

    def __init__(self, run: EngineSeen | ReplaySeen) -> None:
        self.start_s = {number: seen.visits[0].start_s for number, seen in run.jobs.items()}
        self.node = {number: seen.visits[0].node for number, seen in run.jobs.items()}
        self.end_s = {number: seen.end_s for number, seen in run.jobs.items()}
        self.suspended = {
            number: [(each.from_s, each.to_s) for each in seen.suspensions]
            for number, seen in run.jobs.items()
            if seen.suspensions
        }


@pytest.fixture(params=[EngineSeen, ReplaySeen], ids=["engine", "replay"])
def served(request):
    def of(nodes: list[PoolNode], *jobs: PoolJob, memory: str = "kept", **more: str) -> Served:
        parameters = ReschedulingParameters(restart="off", suspended_memory=memory, **more)
        return Served(request.param(PoolCase(nodes, sorted(jobs, key=lambda job: job.submit_s)), parameters))

    return of


def node(name: str, cores: int, gb: int = 64, pool: str = "A") -> PoolNode:
    return PoolNode(name, cores, gb, pool)


def job(number: int, submit_s: int, run_s: int, cores: int = 1, *, priority: int = 0, gb: int = 0) -> PoolJob:
    return PoolJob(number, submit_s, run_s, cores, gb, "A", priority)


# The order


def test_the_higher_priority_is_served_first_though_it_joined_later(served):
    jobs = job(1, 0, 100, priority=2), job(2, 10, 50), job(3, 20, 50, priority=1)
    assert served([node("a", 1)], *jobs).start_s == {1: 0, 3: 100, 2: 150}


def test_jobs_of_one_priority_are_served_in_the_order_in_which_they_joined(served):
    jobs = job(1, 0, 100), job(9, 10, 50), job(3, 10, 50), job(2, 20, 50)
    assert served([node("a", 1)], *jobs).start_s == {1: 0, 9: 100, 3: 150, 2: 200}


def test_a_suspended_job_comes_before_a_queued_one_of_its_priority(served):
    """Job 2 has waited since 5; job 1 is suspended at 10."""
    run = served([node("a", 1)], job(1, 0, 100), job(2, 5, 50), job(3, 10, 20, priority=1))
    assert run.suspended == {1: [(10, 30)]}
    assert run.start_s[2] == run.end_s[1] == 120


def test_a_queued_job_of_a_higher_priority_comes_before_a_suspended_one(served):
    jobs = job(1, 0, 100), job(2, 10, 20, priority=2), job(3, 15, 30, priority=1)
    run = served([node("a", 1)], *jobs)
    assert run.start_s[3] == 30
    assert run.suspended == {1: [(10, 60)]}


def test_suspended_jobs_resume_in_the_order_in_which_they_were_suspended(served):
    """Job 2 is suspended first: it is the latest that started."""
    jobs = job(1, 0, 200), job(2, 1, 200), job(3, 10, LONG, priority=1), job(4, 20, 30, priority=1)
    assert served([node("a", 2)], *jobs).suspended == {2: [(10, 50)], 1: [(20, 241)]}


def test_the_start_of_the_present_suspension_counts_and_not_that_of_the_first(served):
    """Job 1 is suspended at 10, and again at 60; job 2 is suspended in between, at 50, and resumes first."""
    jobs = (
        job(1, 0, 500),
        job(3, 10, 30, 2, priority=2),
        job(2, 45, 500),
        job(4, 50, 100, priority=2),
        job(5, 60, 30, priority=2),
    )
    run = served([node("a", 2)], *jobs)
    assert run.suspended == {1: [(10, 40), (60, 150)], 2: [(50, 90)]}


def test_jobs_suspended_at_one_moment_resume_in_trace_order(served):
    """At 30 there is one free core for jobs 1 and 2."""
    jobs = job(2, 0, 100), job(1, 5, 100), job(3, 10, 20, 2, priority=2), job(4, 25, 40, priority=1)
    assert served([node("a", 2)], *jobs).suspended == {2: [(10, 30)], 1: [(10, 70)]}


def test_a_job_that_cannot_be_served_blocks_nobody_and_nothing_is_kept_for_it(served):
    jobs = job(1, 0, 100), job(2, 10, 50, 2), job(3, 20, 200)
    assert served([node("a", 2)], *jobs).start_s == {1: 0, 2: 220, 3: 20}


def test_a_suspended_job_that_cannot_resume_is_passed_over(served):
    """Job 3 takes one of the two cores of job 1, at equal priority."""
    run = served([node("a", 2)], job(1, 0, 100, 2), job(2, 10, 50, priority=1), job(3, 20, 100))
    assert run.start_s[3] == 20
    assert run.suspended == {1: [(10, 120)]}


def test_the_cores_of_a_suspended_job_are_free_for_lower_priorities(served):
    jobs = job(1, 0, 100, 2, priority=1), job(2, 10, 50, priority=2), job(3, 20, 10)
    assert served([node("a", 2)], *jobs).start_s[3] == 20


def test_a_job_that_comes_back_suspends_lower_priorities(served):
    jobs = job(1, 0, 100, 2, priority=1), job(2, 10, 50, priority=2), job(3, 20, 100)
    assert served([node("a", 2)], *jobs).suspended == {1: [(10, 60)], 3: [(60, 150)]}


# The place


def test_a_queued_job_starts_on_the_first_node_with_room_in_list_order(served):
    jobs = job(1, 0, 100, 2), job(2, 10, 100), job(3, 20, 100)
    nodes = [node("c", 2), node("a", 1), node("b", 4)]
    assert served(nodes, *jobs).node == {1: "c", 2: "a", 3: "b"}


@pytest.mark.parametrize(
    ("heuristic", "name"),
    [
        ("first-fit", "a"),
        ("best-fit-cores", "b"),
        ("worse-fit-cores", "c"),
        ("best-fit-memory", "d"),
        ("worse-fit-memory", "c"),
        ("memory-first-best", "d"),
        ("memory-first-worse", "d"),
        ("mix-fit", "f"),
    ],
)
def test_a_named_heuristic_chooses_among_the_nodes_with_room(served, heuristic, name):
    nodes = [node("e", 1), node("a", 6, 32), node("b", 2, 16), node("c", 8, 64), node("d", 4, 8), node("f", 8, 32)]
    assert served(nodes, job(1, 0, 9, 2, gb=8), heuristic=heuristic).node == {1: name}


@pytest.mark.parametrize("heuristic", ["first-fit", "best-fit-cores", "worse-fit-memory", "mix-fit"])
@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_of_equal_nodes_that_are_freed_at_one_moment_the_first_in_list_order_is_taken(served, count, heuristic):
    nodes = [node(f"n{at}", 1) for at in range(count)]
    busy = [job(at, 0, 100) for at in range(count)]
    waiting = [job(10 + at, 10 + at, 50) for at in range(count - 1)]
    run = served(nodes, *busy, *waiting, heuristic=heuristic)
    assert [run.node[each.id] for each in waiting] == [each.name for each in nodes[:-1]]


def test_a_suspended_job_resumes_on_its_own_node_only(served):
    """Node b is free from 20 on; job 1 waits for node a."""
    jobs = job(1, 0, 100), job(2, 0, 20), job(3, 10, 40, priority=1)
    run = served([node("a", 1), node("b", 1)], *jobs)
    assert (run.node, run.suspended) == ({1: "a", 2: "b", 3: "b"}, {2: [(10, 50)]})
    assert run.end_s == {1: 100, 2: 60, 3: 50}
    later = served([node("a", 1), node("b", 1)], job(2, 0, 30), job(1, 0, 100), job(3, 10, 40, priority=1))
    assert (later.node, later.suspended) == ({2: "a", 1: "b", 3: "b"}, {1: [(10, 50)]})


def test_both_cores_and_memory_are_needed(served):
    jobs = job(1, 0, 100, gb=5), job(2, 10, 50, gb=4)
    assert served([node("a", 2, 8), node("b", 1, 3)], *jobs).start_s[2] == 100


def test_kept_memory_is_held_until_the_job_completes_and_resuming_needs_cores_only(served):
    """At 20 a core and 3 GB are free. Job 1 has its 4 GB, suspended or not, until 120."""
    jobs = job(1, 0, 100, 2, gb=4), job(2, 10, 20, priority=2, gb=1), job(3, 20, 10, gb=4), job(4, 20, 10, gb=3)
    run = served([node("a", 2, 8)], *jobs)
    assert run.suspended == {1: [(10, 30)]}
    assert (run.start_s[3], run.start_s[4]) == (120, 20)


def test_freed_memory_is_needed_again_to_resume(served):
    """At 30 there are cores for job 1; job 3 has taken its memory and is not below it."""
    jobs = job(1, 0, 100, 2, gb=6), job(2, 10, 20, 2, priority=2, gb=2), job(3, 15, 50, gb=6)
    freed = served([node("a", 3, 8)], *jobs, memory="freed")
    assert (freed.start_s[3], freed.suspended) == (15, {1: [(10, 65)]})
    kept = served([node("a", 3, 8)], *jobs)
    assert (kept.start_s[3], kept.suspended) == (120, {1: [(10, 30)]})


# One moment


def test_a_job_that_resumes_at_the_moment_of_its_suspension_was_never_suspended(served):
    """Jobs 3 and 4 take job 2's core and one of job 1's two cores. Job 2 resumes on the other one."""
    jobs = job(1, 0, 100, 2), job(2, 5, 100), job(3, 10, 50, priority=1), job(4, 10, 50, priority=1)
    run = served([node("a", 3)], *jobs)
    assert run.suspended == {1: [(10, 60)]}
    assert run.end_s == {1: 150, 2: 105, 3: 60, 4: 60}


def test_at_one_moment_jobs_complete_before_others_are_submitted_and_served(served):
    run = served([node("a", 1)], job(1, 0, 100), job(2, 100, 50, priority=1))
    assert (run.start_s[2], run.suspended) == (100, {})


def test_jobs_of_one_moment_are_served_by_priority(served):
    run = served([node("a", 1)], job(1, 0, 100), job(2, 0, 50, priority=1))
    assert (run.start_s, run.suspended) == ({1: 50, 2: 0}, {})
