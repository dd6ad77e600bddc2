"""GREEDY-PMTN as Slurm can do it: few jobs to a core, only jobs that can restart are paused, none moves."""

from collections.abc import Sequence

import pytest
from fluid_cases import BOTH, job, nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.policies.dfrs.algorithms import (
    GANG,
    GREEDY_PMTN,
    GREEDY_RETRY_AT_EVENTS,
    SHARES,
    SHARES_LEAST_LOSS,
)
from slurm_sns.policies.dfrs.instant import FluidJob, Instant, Nodes, YieldDecision

NOW_S = 1000


@pytest.fixture(params=BOTH)
def decide(request):
    return BOTH[request.param]


def instant(*jobs: FluidJob, on: Nodes | None = None) -> Instant:
    return Instant(NOW_S, on or nodes(1), jobs)


def test_a_newcomer_waits_where_two_jobs_share_each_core(decide):
    jobs = [job(at, nodes=(0,) * (at < 2), may_pause=False) for at in range(3)]
    assert decide(SHARES, instant(*jobs)).places.keys() == {0, 1, 2}
    assert decide(SHARES, instant(*jobs)._replace(most_to_a_core=2)).places.keys() == {0, 1}
    may_pause = (each._replace(may_pause=True) for each in jobs)
    assert decide(SHARES, instant(*may_pause)._replace(most_to_a_core=2)).places.keys() == {0, 2}


def test_a_node_has_no_more_tasks_of_a_job_than_it_may_have_together(decide):
    apart = job(0, tasks=2, cpu=10, together=1)
    assert decide(SHARES, instant(apart)).places == {}
    assert decide(SHARES, instant(apart, on=nodes(2))).places == {0: (0, 1)}
    busy = job(0, cpu=90, nodes=(1,)), job(1, tasks=2, cpu=10)
    assert decide(SHARES, instant(*busy, on=nodes(2))).places[1] == (0, 0)
    assert decide(SHARES, instant(busy[0], busy[1]._replace(together=1), on=nodes(2))).places[1] == (0, 1)


def test_only_jobs_that_may_be_paused_are_paused(decide):
    """Job 1 has made more progress, so that the paper would pause it."""
    running = job(0, memory=50, virtual_s=10, nodes=(0,)), job(1, memory=50, virtual_s=900, nodes=(0,), may_pause=False)
    assert decide(SHARES, instant(*running, job(2, memory=50))).places == {1: (0,), 2: (0,)}


def test_nobody_is_paused_for_a_job_that_would_still_find_no_room(decide):
    running = job(0, memory=30, virtual_s=10, nodes=(0,)), job(1, memory=30, virtual_s=9, nodes=(0,), may_pause=False)
    assert decide(SHARES, instant(*running, job(2, memory=80))).places.keys() == {0, 1}


def test_a_job_that_has_waited_pauses_others_once_that_helps_but_a_paused_one_never_does(decide):
    running = job(5, memory=80, virtual_s=10, nodes=(0,))
    assert decide(SHARES, instant(job(0, memory=80), running)).places.keys() == {0}
    assert decide(SHARES, instant(job(0, memory=80, was_paused=True), running)).places.keys() == {5}


def test_victims_are_taken_by_priority_or_by_what_they_lose(decide):
    """Job 0 has the larger virtual time, and so the lower priority; job 1 would lose less."""
    running = job(0, memory=50, virtual_s=500, loss=500, nodes=(0,)), job(1, memory=50, virtual_s=400, nodes=(0,))
    newcomer = job(2, memory=50)
    assert decide(SHARES, instant(*running, newcomer)).places.keys() == {1, 2}
    assert decide(SHARES_LEAST_LOSS, instant(*running, newcomer)).places.keys() == {0, 2}


def test_a_job_that_was_paused_for_nothing_stays(decide):
    """Job 2 loses least and is marked first, but its memory is on the node that the newcomer does not need."""
    running = (
        job(0, memory=100, virtual_s=5, loss=9, nodes=(0,), may_pause=False),
        job(1, memory=60, virtual_s=5, loss=8, nodes=(1,)),
        job(2, memory=20, virtual_s=5, loss=7, nodes=(1,)),
    )
    found = decide(SHARES_LEAST_LOSS, instant(*running, job(3, memory=80), on=nodes(2)))
    assert found.places == {0: (0,), 2: (1,), 3: (1,)}


def test_by_weight_the_most_loaded_node_decides_and_others_are_not_slowed_by_it(decide):
    """Jobs 0 and 1 share node 0, job 2 has node 1 with a part of job 0, job 3 has node 2 alone."""
    running = (
        job(0, tasks=2, cpu=100, nodes=(0, 1)),
        job(1, cpu=100, nodes=(0,)),
        job(2, cpu=50, nodes=(1,)),
        job(3, cpu=50, nodes=(2,)),
    )
    yields = decide(SHARES, instant(*running, on=nodes(3))).yields
    assert yields == pytest.approx({0: 1 / 2, 1: 1 / 2, 2: 1 / 1.5, 3: 1})


def test_each_of_several_slices_loses_its_switch(decide):
    gang = GANG._replace(switch_loss=0.25)
    assert decide(gang, instant(job(0, nodes=(0,)))).yields == {0: 1}
    running = job(0, nodes=(0,)), job(1, nodes=(0,))
    assert decide(gang, instant(*running)).yields == pytest.approx({0: 0.375, 1: 0.375})


# --- properties

NODES = 3
EITHER = st.booleans()


@st.composite
def cases(draw: st.DrawFn, may_pause: st.SearchStrategy[bool] = EITHER) -> Instant:
    """An instant at which nodes are within their limits."""
    limit = draw(st.sampled_from([1, 2, 3, float("inf")]))
    found = []
    memory, cpu = [100] * NODES, [100 * limit] * NODES
    for at in range(draw(st.integers(1, 9))):
        each = job(
            at,
            tasks=draw(st.integers(1, NODES + 1)),
            cpu=draw(st.sampled_from([25, 50, 100])),
            memory=draw(st.sampled_from([0, 10, 30, 50, 80])),
            virtual_s=draw(st.sampled_from([0, 1, 50, 600])),
            loss=draw(st.sampled_from([0, 5, 70])),
            together=draw(st.sampled_from([None, 1, 2])),
            may_pause=draw(may_pause),
        )
        places = tuple(sorted(draw(st.lists(st.integers(0, NODES - 1), min_size=each.tasks, max_size=each.tasks))))
        most = each.together or each.tasks
        counts = {node: places.count(node) for node in places}
        if draw(st.booleans()) and all(
            count * each.memory <= memory[node] and count * each.cpu <= cpu[node] and count <= most
            for node, count in counts.items()
        ):
            for node in places:
                memory[node] -= each.memory
                cpu[node] -= each.cpu
            found.append(each._replace(nodes=places))
        else:
            found.append(each._replace(was_paused=draw(st.booleans())))
    return Instant(NOW_S, nodes(NODES), tuple(found), most_to_a_core=limit)


both_orders = pytest.mark.parametrize("algorithm", [SHARES, SHARES_LEAST_LOSS], ids=["priority", "loss"])


def decided(algorithm, case: Instant) -> YieldDecision:
    """The decision of the kernels, which is that of the oracle."""
    plain, fast = (decide(algorithm, case) for decide in (BOTH["plain"], BOTH["compiled"]))
    assert fast.places == plain.places
    assert fast.yields == {each: pytest.approx(float(share)) for each, share in plain.yields.items()}
    return fast


def tasks_on(node: int, case: Instant, found: YieldDecision) -> list[FluidJob]:
    """The job of each task that is on this node after the decision."""
    return [each for each in case.jobs for place in found.places.get(each.id, ()) if place == node]


def is_within(node: int, case: Instant, tasks: Sequence[FluidJob]) -> bool:
    """Whether a node may have these tasks."""
    return (
        sum(each.memory for each in tasks) <= case.nodes.memory[node]
        and sum(each.cpu for each in tasks) <= case.most_to_a_core * case.nodes.cpu[node]
    )


@both_orders
@given(case=cases())
@settings(max_examples=50)
def test_no_node_is_over_its_limits_and_nobody_moves_or_is_paused_against_its_will(algorithm, case):
    found = decided(algorithm, case)
    for node in range(NODES):
        tasks = tasks_on(node, case, found)
        assert is_within(node, case, tasks)
        assert sum(each.cpu * found.yields[each.id] for each in tasks) <= 100 + 1e-9
    for each in case.jobs:
        places = found.places.get(each.id, ())
        assert len(places) in {0, each.tasks}
        assert all(places.count(node) <= (each.together or each.tasks) for node in places)
        if each.nodes:
            assert places == each.nodes or (places == () and each.may_pause)


@both_orders
@given(case=cases())
@settings(max_examples=50)
def test_a_job_is_paused_only_for_one_that_starts_and_that_it_has_no_room_beside(algorithm, case):
    found = decided(algorithm, case)
    paused = [each for each in case.jobs if each.nodes and each.id not in found.places]
    started = [each for each in case.jobs if each.id in found.places and not each.nodes]
    assert not paused or any(not each.was_paused for each in started)
    for each in paused:
        beside = [(node, [*tasks_on(node, case, found), *[each] * each.nodes.count(node)]) for node in each.nodes]
        assert not all(is_within(node, case, tasks) for node, tasks in beside)


@given(case=cases(st.just(False)))
@settings(max_examples=50)
def test_where_no_job_may_be_paused_it_is_greedy_placement_at_every_event(case):
    never_paused = case._replace(jobs=tuple(each._replace(was_paused=False) for each in case.jobs))
    greedy = BOTH["compiled"](GREEDY_RETRY_AT_EVENTS, never_paused)
    assert decided(SHARES, never_paused).places == greedy.places


@given(case=cases(st.just(True)))
@settings(max_examples=50)
def test_where_every_job_may_be_paused_its_places_for_one_newcomer_are_those_of_greedy_pmtn(case):
    waiting = frozenset([each.id for each in case.jobs if not each.nodes and not each.was_paused][:1])
    case = case._replace(jobs=tuple(each for each in case.jobs if each.nodes or each.was_paused or each.id in waiting))
    pmtn = BOTH["compiled"](GREEDY_PMTN, case._replace(newcomers=waiting))
    assert decided(SHARES, case).places == pmtn.places
