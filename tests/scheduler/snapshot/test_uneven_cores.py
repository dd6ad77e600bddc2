"""The bandwidth that a node offers by how the cores of its jobs lie on its sockets."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import look, node, running, situation

from slurm_sns.model import Resources
from slurm_sns.scheduler.observation import Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.uneven_cores import with_sure_bandwidth
from slurm_sns.wire.values import JobThere, NodeFacts, NodeState, RunId

#: 14 cores and 60 GB/s on each of two sockets.
CORES, GBPS = (14, 14), 120


def shared(taken: Resources) -> ObservedNode:
    return replace(node("c1"), capacity=Resources(28, 128_000, 20, GBPS), allocated=taken, sockets=2)


def told(*jobs: tuple[int, tuple[int, ...]], cores: tuple[int, ...] = CORES) -> dict[str, NodeState]:
    there = tuple(JobThere(RunId(job_id), cores=of_job) for job_id, of_job in jobs)
    return {"c1": NodeState(0, NodeFacts("c1", cores=cores), there)}


def offered(seen: Observation, states: dict[str, NodeState]) -> int:
    [found] = with_sure_bandwidth(seen, states).nodes
    return found.capacity.bandwidth_gbps - found.allocated.bandwidth_gbps


def with_jobs(*jobs: ObservedJob, cores: int, gbps: int = 0, **fields) -> Observation:
    return look(*jobs, nodes=[shared(Resources(cores, 0, 0, gbps))], **fields)


def test_jobs_that_lie_evenly_leave_what_slurm_counts() -> None:
    seen = with_jobs(running(1, "c1", bandwidth_gbps=40), cores=8, gbps=40)
    assert offered(seen, told((1, (4, 4)))) == 80


def test_a_job_on_one_socket_leaves_twice_what_that_socket_has_left() -> None:
    seen = with_jobs(running(1, "c1", bandwidth_gbps=40), cores=8, gbps=40)
    assert offered(seen, told((1, (8, 0)))) == 2 * 20


def test_where_one_socket_has_no_free_core_a_job_is_sure_of_the_other_alone() -> None:
    seen = with_jobs(running(1, "c1"), cores=14)
    assert offered(seen, told((1, (14, 0)))) == 60
    seen = with_jobs(running(1, "c1"), cores=12)
    assert offered(seen, told((1, (12, 0)))) == int(60 / (14 / 16)), "most of a large job would lie on the second"


def test_with_blocks_a_node_with_jobs_offers_what_its_fullest_socket_has_left() -> None:
    seen = with_jobs(running(1, "c1", bandwidth_gbps=40), cores=8, gbps=40, fills_sockets=True)
    assert offered(seen, told((1, (8, 0)))) == 20
    assert offered(seen, {}) == 20, "no agent says how it lies: it may be on any socket"
    full = with_jobs(running(1, "c1", bandwidth_gbps=40), cores=14, gbps=40, fills_sockets=True)
    assert offered(full, told((1, (14, 0)))) == 60, "nobody can lie beside it"
    empty = with_jobs(cores=0, fills_sockets=True)
    assert offered(empty, told()) == GBPS


def test_a_node_without_room_offers_nothing_and_never_less() -> None:
    seen = with_jobs(running(1, "c1", bandwidth_gbps=100), cores=28, gbps=100)
    assert offered(seen, told((1, (14, 14)))) == 0
    seen = with_jobs(running(1, "c1", bandwidth_gbps=100), cores=14, gbps=100, fills_sockets=True)
    assert offered(seen, told((1, (10, 4)))) == 0


@pytest.mark.parametrize(
    "states", [{}, told((1, ())), told((1, (8, 0, 0)), cores=(10, 10, 8)), told((1, (8, 0)), cores=())]
)
def test_what_no_agent_says_is_taken_as_even(states: dict[str, NodeState]) -> None:
    seen = with_jobs(running(1, "c1", bandwidth_gbps=40), cores=8, gbps=40)
    assert offered(seen, states) == 80


def test_where_nobody_plans_bandwidth_nothing_is_counted() -> None:
    seen = look(running(1, "c1"))
    assert with_sure_bandwidth(seen, told((1, (8, 0)))) is seen


def test_a_cycle_plans_on_it() -> None:
    seen = with_jobs(running(1, "c1", bandwidth_gbps=40), cores=8, gbps=40)
    [planned_on] = situation(seen, states=told((1, (8, 0)))).snapshot.nodes
    assert planned_on.free.bandwidth_gbps == 40


def in_turn(free: list[int], cores: int) -> tuple[int, ...]:
    """A job's cores on the sockets as Slurm takes them: of each in turn, as long as it has free ones."""
    taken = [0] * len(free)
    while cores:
        for at in range(len(free)):
            if cores and taken[at] < free[at]:
                taken[at] += 1
                cores -= 1
    return tuple(taken)


def in_blocks(free: list[int], cores: int) -> tuple[int, ...]:
    """As with CR_CORE_DEFAULT_DIST_BLOCK: on the socket with the fewest free cores that suffice, else on several."""
    enough = [at for at in range(len(free)) if free[at] >= cores]
    if enough:
        chosen = min(enough, key=lambda at: free[at])
        return tuple(cores if at == chosen else 0 for at in range(len(free)))
    first = min(free[0], cores)
    return (first, cores - first)


@given(
    st.lists(st.tuples(st.integers(1, 14), st.integers(0, GBPS), st.booleans()), max_size=12),
    st.booleans(),
)
def test_no_socket_draws_more_than_it_has(jobs: list[tuple[int, int, bool]], fills_sockets: bool) -> None:
    """Jobs come one after the other, some of them unmanaged; now and then one ends.

    A job alone on the node may draw all that its profile says. An odd job has a core more on one socket.
    """
    there: dict[int, tuple[tuple[int, ...], int]] = {}
    for number, (cores, wanted, ends) in enumerate(jobs, 1):
        free = [most - sum(lie[at] for lie, _ in there.values()) for at, most in enumerate(CORES)]
        if sum(free) < cores:
            continue
        seen = with_jobs(
            *(running(job_id, "c1", bandwidth_gbps=gbps) for job_id, (_, gbps) in there.items()),
            cores=28 - sum(free),
            gbps=sum(gbps for _, gbps in there.values()),
            fills_sockets=fills_sockets,
        )
        has_room = offered(seen, told(*((job_id, lie) for job_id, (lie, _) in there.items())))
        lies = (in_blocks if fills_sockets else in_turn)(free, cores)
        gbps = min(wanted, GBPS // 2 if not there and fills_sockets else has_room)
        there[number] = (lies, gbps)
        for at in range(len(CORES)):
            drawn = [gbps * lie[at] / sum(lie) for lie, gbps in there.values()]
            one_core_more = [gbps / (2 * sum(lie)) for lie, gbps in there.values() if sum(lie) % 2]
            assert sum(drawn) <= GBPS / 2 + sum(one_core_more) + 1e-6
        if ends:
            there.pop(min(there))
