"""Which pool a job gets that names none: small cases by hand, in both engines."""

import pytest
from pool_cases import EngineSeen, PoolCase, PoolJob, PoolNode, ReplaySeen

from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters

#: In list order, which is not that of the names; the sizes are cores.
CABD = [PoolNode("c", 4, 64, "C"), PoolNode("a", 2, 64, "A"), PoolNode("b", 8, 64, "B"), PoolNode("d", 4, 8, "D")]


@pytest.fixture(params=[EngineSeen, ReplaySeen], ids=["engine", "replay"])
def pools(request):
    """The first pools of the jobs, in the trace's order."""

    def of(*jobs: PoolJob, nodes: list[PoolNode] = CABD, virtual_pool: str = "round-robin") -> str:
        numbered = [job._replace(id=number) for number, job in enumerate(jobs)]
        run = request.param(PoolCase(nodes, numbered), ReschedulingParameters(virtual_pool=virtual_pool))
        return "".join(run.jobs[job.id].visits[0].pool for job in numbered)

    return of


def job(submit_s: int = 0, cores: int = 1, *, gb: int = 0, pool: str = "", allowed: str = "") -> PoolJob:
    return PoolJob(0, submit_s, 1000, cores, gb, pool, allowed=tuple(allowed))


# Round robin


def test_pools_are_taken_in_list_order_and_round(pools):
    assert pools(*(job(submit_s) for submit_s in (0, 0, 7, 9, 9, 12))) == "CABDCA"


def test_the_load_is_not_looked_at(pools):
    """The second job waits for the first one in pool A, while pools are empty."""
    assert pools(*[job(cores=2, allowed="A")] * 2, *[job()] * 2) == "AABD"


def test_pools_that_are_not_allowed_are_skipped(pools):
    assert pools(*[job(allowed="AD")] * 3, job(), job(allowed="BD")) == "ADABD"


def test_pools_without_a_node_that_is_large_enough_are_skipped(pools):
    assert pools(job(cores=3), job(cores=3), job(gb=9), job(cores=5), job()) == "CBCBD"


def test_cores_and_memory_must_be_on_one_node(pools):
    nodes = [PoolNode("a1", 8, 8, "A"), PoolNode("b", 8, 64, "B"), PoolNode("a2", 1, 64, "A")]
    assert pools(*[job(cores=2, gb=9)] * 2, job(), nodes=nodes) == "BBA"


def test_the_size_counts_and_not_what_is_free(pools):
    assert pools(job(cores=4, allowed="C"), job(cores=8, allowed="B"), *[job(cores=3)] * 3) == "CBDCB"


def test_there_is_one_pointer_for_all_jobs(pools):
    assert pools(job(), job(allowed="CD"), job(), job(allowed="CA"), job()) == "CDCAB"


def test_a_job_that_names_its_pool_goes_there_and_moves_no_pointer(pools):
    assert pools(job(), job(pool="D"), job(), job(pool="C"), job()) == "CDACB"


def test_jobs_of_one_moment_are_taken_in_trace_order_whatever_their_priority(pools):
    assert pools(job(), job()._replace(priority=1), job()) == "CAB"


# By availability


def test_the_largest_share_of_free_cores_is_taken(pools):
    """Of C half is free at 10, of A half, of B a quarter, and all of D; at 20 also D has half."""
    busy = job(cores=2, pool="C"), job(cores=1, pool="A"), job(cores=6, pool="B")
    at_10, at_20 = job(10, cores=2), job(20)
    assert pools(*busy, at_10, at_20, virtual_pool="availability") == "CABDC"


def test_the_share_is_over_all_nodes_of_a_pool(pools):
    nodes = [PoolNode("a1", 4, 8, "A"), PoolNode("b1", 8, 8, "B"), PoolNode("a2", 4, 8, "A")]
    busy = job(cores=4, pool="A"), job(cores=5, pool="B")
    assert pools(*busy, job(10), nodes=nodes, virtual_pool="availability") == "ABA"


def test_shares_are_compared_exactly(pools):
    """Two thirds of B are free and two thirds of A; of equal ones the first is taken."""
    nodes = [PoolNode("b", 3, 8, "B"), PoolNode("a", 6, 8, "A")]
    busy = job(cores=1, pool="B"), job(cores=2, pool="A")
    assert pools(*busy, job(10), nodes=nodes, virtual_pool="availability") == "BAB"
    assert pools(*busy, job(10), nodes=nodes[::-1], virtual_pool="availability") == "BAA"


def test_availability_also_skips_pools_that_are_not_allowed_or_too_small(pools):
    assert pools(job(cores=3), virtual_pool="availability") == "C"
    assert pools(job(cores=5), virtual_pool="availability") == "B"
    assert pools(job(allowed="DA"), virtual_pool="availability") == "A"


def test_jobs_of_one_moment_see_the_same_free_cores(pools):
    """Nothing has started when they are put into their pools; what ended at that moment is free."""
    assert pools(*[job()] * 3, virtual_pool="availability") == "CCC"
    ends = job(cores=4, pool="C")._replace(run_s=10)
    assert pools(ends, job(10), virtual_pool="availability") == "CC"
