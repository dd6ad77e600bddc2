"""The bandwidth that a node offers by how the cores of its jobs lie on its sockets."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import ENFORCE, look, node, running, situation

from slurm_sns.model import Resources
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob, ObservedNode
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


def test_a_suspended_job_keeps_its_bandwidth_and_has_given_its_cores_back() -> None:
    suspended = replace(running(1, "c1", bandwidth_gbps=40), state=JobState.SUSPENDED)
    seen = with_jobs(suspended, running(2, "c1"), cores=4, gbps=40)
    assert offered(seen, told((1, (14, 0)), (2, (0, 4)))) == int(20 / (14 / 24)), "the first socket has room"
    alone = with_jobs(suspended, cores=0, gbps=40)
    assert offered(alone, told((1, (14, 0)))) == 2 * 20


def test_cores_that_slurm_keeps_back_are_no_room() -> None:
    """CoreSpecCount=4: two cores of each socket, which the agent sees like all others."""
    seen = look(running(1, "c1"), nodes=[replace(shared(Resources(12, 0)), capacity=Resources(24, 128_000, 20, GBPS))])
    assert offered(seen, told((1, (12, 0)))) == 60


def test_where_no_bandwidth_is_left_a_job_without_any_is_kept_from_nothing() -> None:
    """Unmanaged jobs are taken to draw more than what is left."""
    seen = with_jobs(running(1, "c1", bandwidth_gbps=100), cores=26, gbps=100)
    settings = replace(ENFORCE, unmanaged_gbps_per_core=3.0)
    [planned_on] = situation(seen, settings=settings, states=told((1, (13, 13)))).snapshot.nodes
    assert planned_on.free.bandwidth_gbps == 0
    assert Resources(1, 1024).within(planned_on.free)


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
    taken = []
    for each in free:
        taken.append(min(each, cores - sum(taken)))
    return tuple(taken)


@given(
    st.lists(st.tuples(st.integers(1, 14), st.integers(0, GBPS), st.booleans()), max_size=14),
    st.booleans(),
    st.integers(2, 4),
)
def test_no_socket_draws_more_than_it_has(jobs: list[tuple[int, int, bool]], fills_sockets: bool, sockets: int) -> None:
    """Jobs come one after the other, some of them unmanaged; now and then one ends.

    A job alone on the node may draw all that its profile says. Where a job's cores are no multiple of the sockets, some
    socket has one more, and draws one core's part more.
    """
    there: dict[int, tuple[tuple[int, ...], int]] = {}
    most, cores_of_node = GBPS / sockets, (14,) * sockets
    for number, (cores, wanted, ends) in enumerate(jobs, 1):
        free = [14 - sum(lies[at] for lies, _ in there.values()) for at in range(sockets)]
        if sum(free) < cores:
            continue
        shown = shared(Resources(sum(cores_of_node) - sum(free), 0, 0, sum(gbps for _, gbps in there.values())))
        capacity = Resources(sum(cores_of_node), 128_000, 20, GBPS)
        seen = look(
            *(running(job_id, "c1", bandwidth_gbps=gbps) for job_id, (_, gbps) in there.items()),
            nodes=[replace(shown, capacity=capacity, sockets=sockets)],
            fills_sockets=fills_sockets,
        )
        has_room = offered(seen, told(*((job, lies) for job, (lies, _) in there.items()), cores=cores_of_node))
        lies = (in_blocks if fills_sockets else in_turn)(free, cores)
        gbps = min(wanted, int(most) if not there and fills_sockets else has_room)
        there[number] = (lies, gbps)
        for at in range(sockets):
            drawn = [gbps * lies[at] / sum(lies) for lies, gbps in there.values()]
            one_core_more = [gbps / sum(lies) for lies, gbps in there.values() if len(set(lies)) > 1]
            assert sum(drawn) <= most + sum(one_core_more) + 1e-6
        if ends:
            there.pop(min(there))
