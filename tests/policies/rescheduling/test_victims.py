"""Who is suspended to make room, on which node, and how few: small cases by hand, in both engines.

Without samples every suspended job is decided to stay. So the decisions list the victims in their order.
"""

import pytest
from pool_cases import EngineSeen, PoolCase, PoolJob, PoolNode, ReplaySeen

from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters

URGENT = 9


@pytest.fixture(params=[EngineSeen, ReplaySeen], ids=["engine", "replay"])
def victims(request):
    """The victims of each moment, in their order: `1 2 at 100`."""

    def of(nodes: list[PoolNode], *jobs: PoolJob, memory: str = "kept") -> list[str]:
        in_order = sorted(jobs, key=lambda job: job.submit_s)
        run = request.param(PoolCase(nodes, in_order), ReschedulingParameters(suspended_memory=memory))
        found: dict[int, list[str]] = {}
        for now_s, _, decision in run.decisions:
            found.setdefault(now_s, []).append(str(decision.job_id))
        return [f"{' '.join(listed)} at {now_s}" for now_s, listed in found.items()]

    return of


def node(name: str, cores: int, gb: int = 64) -> PoolNode:
    return PoolNode(name, cores, gb, "A")


def job(number: int, submit_s: int, cores: int = 1, *, priority: int = 0, gb: int = 0, run_s: int = 1000) -> PoolJob:
    return PoolJob(number, submit_s, run_s, cores, gb, "A", priority)


def urgent(submit_s: int, cores: int = 1, *, gb: int = 0, number: int = URGENT, run_s: int = 100) -> PoolJob:
    return PoolJob(number, submit_s, run_s, cores, gb, "A", 2)


def test_the_lowest_priority_gives_way_first(victims):
    jobs = job(1, 0), job(2, 10, priority=1)
    assert victims([node("a", 2)], *jobs, urgent(100)) == ["1 at 100"]
    assert victims([node("a", 1), node("b", 1)], *jobs, urgent(100)) == ["1 at 100"]


def test_of_one_priority_the_latest_started_gives_way_first(victims):
    assert victims([node("a", 3)], job(1, 0), job(2, 20), job(3, 10), urgent(100, 2)) == ["2 3 at 100"]


def test_the_latest_submitted_is_not_the_latest_started(victims):
    """Job 1 is submitted first and waits for job 3 to end; job 2 fits beside it before that."""
    jobs = job(3, 0, 2, run_s=50), job(1, 10, 2), job(2, 20)
    assert victims([node("a", 3)], *jobs, urgent(100)) == ["1 at 100"]


def test_the_start_of_the_attempt_counts_and_not_the_last_resume(victims):
    """Job 1 is suspended from 10 to 30; job 2 starts at 20, and is still the latest."""
    jobs = job(1, 0, 2), urgent(10, 2, number=8, run_s=20), job(2, 20)
    assert victims([node("a", 3)], *jobs, urgent(100)) == ["1 at 10", "2 at 100"]


def test_of_one_start_the_last_in_the_trace_gives_way_first_whatever_its_number(victims):
    assert victims([node("a", 3)], job(5, 0), job(7, 0), job(2, 0), urgent(100)) == ["2 at 100"]


def test_equal_priority_never_gives_way(victims):
    jobs = job(1, 0), job(2, 10, priority=2)
    assert victims([node("a", 2)], *jobs, urgent(100)) == ["1 at 100"]
    assert victims([node("a", 2)], *jobs, urgent(100, 2)) == []


def test_the_node_is_that_of_the_first_victim_though_another_one_needs_fewer(victims):
    jobs = job(1, 0, 2), job(2, 10), job(3, 20)
    nodes = [node("a", 2), node("b", 2)]
    assert victims(nodes, *jobs, urgent(100, 2)) == ["3 2 at 100"]
    assert victims([node("b", 2), node("a", 2)], *jobs, urgent(100, 2)) == ["3 2 at 100"]


def test_a_first_victim_whose_node_cannot_make_room_is_left_running(victims):
    """Job 3 is the latest, on a node with a core of priority 2."""
    jobs = job(1, 0, 2), urgent(5, number=8, run_s=1000), job(3, 20)
    assert victims([node("a", 2), node("b", 2)], *jobs, urgent(100, 2)) == ["1 at 100"]


def test_nobody_gives_way_where_there_is_room_on_another_node(victims):
    assert victims([node("a", 1), node("b", 1)], job(1, 0), urgent(100)) == []


def test_nobody_gives_way_if_all_together_would_not_make_room(victims):
    jobs = job(1, 0), urgent(5, number=7, run_s=1000)
    assert victims([node("a", 2)], *jobs, urgent(100, 2)) == []
    others = job(2, 10), urgent(15, number=8, run_s=1000)
    assert victims([node("a", 2), node("b", 2)], *jobs, *others, urgent(100, 2)) == []


def test_free_cores_count_with_those_of_the_victims(victims):
    assert victims([node("a", 4)], job(1, 0), job(2, 10), urgent(100, 3)) == ["2 at 100"]


def test_a_victim_that_is_not_needed_after_all_goes_on_running(victims):
    assert victims([node("a", 3)], job(1, 0, 2), job(2, 10), urgent(100, 2)) == ["1 at 100"]


def test_a_victim_that_is_not_needed_keeps_its_core_before_the_others_come_back(victims):
    """Job 3 is submitted before job 2 and starts after it, when job 4 gives 6 GB back.

    If all were suspended, job 3 would be the first to resume.
    """
    jobs = job(1, 0, 2), job(4, 0, gb=6, run_s=20), job(3, 5, gb=6), job(2, 10)
    assert victims([node("a", 4, 8)], *jobs, urgent(100, 3)) == ["3 1 at 100"]


def test_of_victims_that_are_not_needed_the_last_taken_is_let_go_first(victims):
    """Jobs 3, 2 and 1 are taken for 3 cores; without job 1 there are 2, without job 2 there are still 3."""
    jobs = job(1, 0, 2), job(2, 10), job(3, 20)
    assert victims([node("a", 4)], *jobs, urgent(100, 3)) == ["3 1 at 100"]


def test_memory_that_is_kept_makes_no_room(victims):
    jobs = job(1, 0, gb=3), job(2, 10, gb=3), urgent(100, gb=4)
    assert victims([node("a", 2, 8)], *jobs) == []
    assert victims([node("a", 2, 8)], *jobs, memory="freed") == ["2 at 100"]


def test_of_two_nodes_one_may_lack_the_memory_that_is_kept(victims):
    jobs = job(1, 0, 2, gb=1), job(2, 10, 2, gb=6)
    assert victims([node("a", 2, 8), node("b", 2, 8)], *jobs, urgent(100, gb=4)) == ["1 at 100"]


def test_memory_alone_is_a_reason_to_suspend_where_it_is_freed(victims):
    assert victims([node("a", 4, 8)], job(1, 0, gb=6), urgent(100, gb=4), memory="freed") == ["1 at 100"]


def test_victims_are_taken_until_cores_and_memory_suffice(victims):
    """Job 3 makes room for the core, job 2 for the memory; then job 3 is not needed."""
    jobs = job(1, 0, gb=4), job(2, 10, gb=3), job(3, 20, gb=1)
    assert victims([node("a", 3, 8)], *jobs, urgent(100, gb=3), memory="freed") == ["2 at 100"]
    assert victims([node("a", 3, 8)], *jobs, urgent(100, gb=4), memory="freed") == ["3 2 at 100"]


def test_a_suspended_job_suspends_others_on_its_own_node_only(victims):
    """Job 1 is suspended on node a until 30. Job 4 is on node b, and would be the first victim of the pool."""
    jobs = (
        urgent(0, 2, number=7, run_s=15),
        job(1, 0, 2, priority=1),
        urgent(10, number=8, run_s=20),
        job(4, 12, 2),
        job(5, 12),
    )
    assert victims([node("b", 2), node("a", 2)], *jobs) == ["1 at 10", "5 at 30"]
