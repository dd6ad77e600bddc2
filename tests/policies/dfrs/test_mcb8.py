"""MCB8, its search, and the yields: what the paper says of them, by the kernels and by the oracle."""

from fractions import Fraction

import numpy as np
import pytest
from fluid_cases import BOTH, job, nodes
from oracles.dfrs.mcb8 import Packable, pack
from oracles.dfrs.priority import by_decreasing_priority
from oracles.dfrs.yield_search import search

from slurm_sns.policies.dfrs.algorithms import DYNMCB8, DYNMCB8_STRETCH_PER
from slurm_sns.policies.dfrs.fluid_arrays import Scale
from slurm_sns.policies.dfrs.instant import FluidJob, Instant, Nodes, YieldDecision, arrays_of
from slurm_sns.policies.dfrs.mcb8_kernel import pack as pack_by_kernel


@pytest.fixture(params=BOTH)
def decided(request):
    """DYNMCB8's decision on so many nodes."""

    def decide(count: int, *jobs: FluidJob, algorithm=DYNMCB8, **more) -> YieldDecision:
        return BOTH[request.param](algorithm, Instant(now_s=1000, nodes=nodes(count), jobs=jobs, **more))

    return decide


def by_oracle(mixed: Nodes, jobs: list[tuple[int, int, int]]) -> dict[int, tuple[int, ...]] | None:
    return pack(mixed, [Packable(at, *each) for at, each in enumerate(jobs)])


def by_kernel(mixed: Nodes, jobs: list[tuple[int, int, int]]) -> dict[int, tuple[int, ...]] | None:
    at = Instant(0, mixed, tuple(FluidJob(at, at, *each) for at, each in enumerate(jobs)))
    cluster = arrays_of(at)
    cluster.space.required[:] = cluster.needs.cpu
    if not pack_by_kernel(cluster, np.arange(len(jobs)), 1.0, 0.0, cluster.space.packings[0]):
        return None
    needs, places = cluster.needs, cluster.space.packings[0]
    return {job: tuple(places[needs.first[job] : needs.end[job]].tolist()) for job in range(len(jobs))}


@pytest.fixture(params=[by_oracle, by_kernel])
def packed(request):
    """The packing of jobs of (tasks, CPU, memory) on so many nodes."""
    return lambda count, *jobs: request.param(count if isinstance(count, Nodes) else nodes(count), list(jobs))


def test_a_node_with_more_memory_than_cpu_left_takes_a_memory_heavy_task(packed):
    # The CPU-heavy job 0 comes first, then what balances it; job 1 would not leave room for that.
    assert packed(2, (1, 60, 20), (1, 50, 30), (1, 20, 60)) == {0: (0,), 2: (0,), 1: (1,)}


def test_with_equal_room_left_the_cpu_heavy_list_comes_first(packed):
    assert packed(2, (1, 10, 90), (1, 90, 20)) == {1: (0,), 0: (1,)}


def test_a_task_with_equal_requirements_is_memory_heavy(packed):
    assert packed(1, (1, 50, 50), (1, 40, 10)) == {0: (0,), 1: (0,)}


def test_of_equal_tasks_that_of_the_later_submit_is_placed_first(packed):
    assert packed(2, (1, 60, 60), (1, 60, 60)) == {1: (0,), 0: (1,)}


def test_what_does_not_fit_from_one_list_is_taken_from_the_other(packed):
    assert packed(1, (1, 60, 10), (1, 40, 30)) == {0: (0,), 1: (0,)}


def test_nothing_is_packed_if_one_task_finds_no_node(packed):
    assert packed(2, (3, 10, 60)) is None


def test_the_search_tries_one_then_the_least_yield_then_bisects():
    found = search(nodes(1), [job(0, 2)], [job(0, 2)])
    assert [at for at, _ in found.tried[:3]] == [1, Fraction(1, 100), Fraction(6464, 12800)]
    assert found.found == Fraction(1273, 2560)  # the last point at which two tasks fit


def test_the_job_with_the_lowest_priority_is_left_out_if_nothing_else_helps(decided):
    old = job(0, memory=60, submit_s=0, virtual_s=900)
    young = job(1, memory=60, submit_s=990, virtual_s=5)
    assert set(decided(1, old, young).places) == {1}


def test_of_equal_priorities_the_later_submit_is_left_out(decided):
    assert set(decided(1, job(0, memory=60), job(1, memory=60)).places) == {0}


def test_all_jobs_have_the_yield_that_the_fullest_node_allows_then_each_is_raised(decided):
    # One node has both tasks of job 0, which halves it; job 1 has the other node for itself.
    found = decided(2, job(0, 2, memory=50), job(1, memory=90))
    assert found.places[0] == (1, 1)
    assert found.places[1] == (0,)
    assert found.yields == {0: pytest.approx(1 / 2), 1: pytest.approx(1)}


def test_the_job_with_the_least_total_need_is_raised_first(decided):
    # Job 0 halves its node. Jobs 1 and 2 share the other: half of it is left, and job 2 needs less of it.
    crowded, large, small = job(0, 2, memory=50), job(1, cpu=60, memory=30), job(2, cpu=50, memory=60)
    found = decided(2, crowded, large, small)
    assert found.places[1] == found.places[2]
    assert found.yields == {0: pytest.approx(1 / 2), 1: pytest.approx(50 / 60), 2: pytest.approx(1)}


def test_stretch_gives_the_most_to_the_job_that_has_had_the_least(decided):
    late = job(0, submit_s=0, virtual_s=100, memory=40)
    well = job(1, submit_s=0, virtual_s=900, memory=40)
    found = decided(1, late, well, algorithm=DYNMCB8_STRETCH_PER, is_run=True, next_run_s=1600)
    assert found.yields[0] > 0.9
    assert found.yields[1] >= 0.01
    assert found.floors.keys() == {0, 1}


def test_a_paused_job_is_preferred_in_the_end():
    paused = job(0, submit_s=0, virtual_s=100)
    fresh_and_now = [(job(1, submit_s=now - 40, virtual_s=10), now) for now in (1000, 100_000)]
    assert [by_decreasing_priority([paused, fresh], now)[0].id for fresh, now in fresh_and_now] == [1, 0]


def test_cpu_and_memory_are_compared_in_common_units():
    scale = Scale.of([4, 4], [8192, 8192])
    assert 4 * scale.cpu == 8192 * scale.memory


def test_larger_nodes_take_what_smaller_ones_cannot(packed):
    mixed = Nodes((50, 100), (50, 100))
    assert packed(mixed, (1, 10, 80), (1, 10, 40)) == {0: (1,), 1: (0,)}


def test_on_nodes_of_other_proportions_what_is_left_is_compared_in_percent(packed):
    # Half of the memory and four fifths of the CPU are left: the CPU-heavy job 1 is next, though memory is more.
    much_memory = Nodes((100,), (400,))
    assert packed(much_memory, (1, 20, 200), (1, 70, 60), (1, 30, 150)) is None
    assert packed(Nodes((100, 100), (400, 400)), (1, 20, 200), (1, 70, 60), (1, 30, 150)) == {0: (0,), 1: (0,), 2: (1,)}


def test_many_alike_nodes_are_filled_as_one_by_one(packed):
    found = packed(7, (9, 50, 20), (5, 30, 60), (3, 20, 20))
    assert found is not None
    assert [len(found[job]) for job in found] == [9, 5, 3]
    assert found == by_oracle(nodes(7), [(9, 50, 20), (5, 30, 60), (3, 20, 20)])


@pytest.mark.parametrize("decide", BOTH.values(), ids=BOTH)
def test_no_jobs_need_no_nodes(decide):
    assert decide(DYNMCB8, Instant(0, nodes(2), ())) == YieldDecision({}, {}, frozenset(), {})
