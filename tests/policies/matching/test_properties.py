"""What holds for every cluster and every queue."""

from dataclasses import replace

import pytest
from clusters import GB, GPUS_OF_JOBS, GPUS_OF_NODES, part_of, regions
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.cycle import FailedShapes
from oracles.portfolio import plainly

from slurm_sns.model import Alternative, Job, Node, Project, Resources, Snapshot
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters, ways_to_withhold
from slurm_sns.policies.placement.heuristics import HEURISTICS

PROJECTS = ("p", "q", "r")


@st.composite
def nodes(draw) -> tuple[Node, ...]:
    listed = []
    weights, switches = draw(regions())
    for at in range(draw(st.integers(1, 6))):
        gpus = draw(GPUS_OF_NODES)
        capacity = Resources(draw(st.integers(1, 8)), draw(st.integers(1, 32)) * GB, 11, 100, 11, gpus)
        free = part_of(draw, capacity)
        listed.append(Node(f"n{at}", capacity, free, draw(weights), draw(switches)))
    return tuple(listed)


def demands(least: int):
    """Most jobs ask for cores and memory only."""
    rarely = st.sampled_from([0, 0, 0, 4, 11])
    return st.builds(
        Resources, st.integers(least, 8), st.integers(least, 32 * GB), rarely, rarely, rarely, GPUS_OF_JOBS
    )


def alternatives():
    return st.builds(
        Alternative,
        nodes=st.integers(1, 3),
        demand=demands(least=1),
        exclusive=st.booleans(),
    )


@st.composite
def snapshots(draw) -> Snapshot:
    listed = draw(nodes())
    names = [node.name for node in listed]
    waiting = tuple(
        Job(
            id=identity,
            submit_s=identity,
            alternatives=tuple(draw(st.lists(alternatives(), min_size=1, max_size=3))),
            order=(identity,),
            project=draw(st.sampled_from(PROJECTS)),
            heuristic=draw(st.none() | st.sampled_from(list(HEURISTICS))),
            allowed=draw(st.none() | st.frozensets(st.sampled_from(names))),
            over_aged=draw(st.integers(0, 9)) == 0,
            withholds=draw(st.integers(0, 3)) > 0,
        )
        for identity in range(draw(st.integers(0, 12)))
    )
    used = demands(least=0)
    projects = {name: Project(draw(st.sampled_from([0.5, 1.0, 3.0])), draw(used)) for name in PROJECTS}
    return Snapshot(listed, waiting, projects)


def parameters():
    return st.builds(
        MatchingParameters,
        portfolio=st.lists(st.sampled_from(list(HEURISTICS)), min_size=1, max_size=4, unique=True).map(tuple)
        | st.none(),
        queue_depth=st.integers(1, 14),
        reservations=st.integers(0, 4),
        withhold=st.sampled_from(ways_to_withhold()),
    )


def plan(snapshot, given_parameters):
    return max_jobs(given_parameters).plan(snapshot)


@pytest.mark.long
@settings(max_examples=80)
@given(snapshots(), parameters())
def test_no_node_is_ever_over_its_free_capacity(snapshot, given_parameters):
    free = {node.name: node.free for node in snapshot.nodes}
    capacity = {node.name: node.capacity for node in snapshot.nodes}

    for start in plan(snapshot, given_parameters).starts:
        for name in start.nodes:
            if start.alternative.exclusive:
                assert free[name] == capacity[name]
                free[name] = Resources(0, 0)
            else:
                assert start.alternative.demand.within(free[name])
                free[name] = free[name].minus(start.alternative.demand)


@pytest.mark.long
@settings(max_examples=80)
@given(snapshots(), parameters())
def test_every_job_is_started_or_waits_with_a_reason_and_gets_distinct_allowed_nodes(snapshot, given_parameters):
    result = plan(snapshot, given_parameters)
    jobs = {job.id: job for job in snapshot.waiting}

    started = [start.job_id for start in result.starts]
    assert sorted([*started, *result.waiting]) == sorted(jobs)
    assert all(result.waiting.values())
    for start in result.starts:
        job = jobs[start.job_id]
        assert start.alternative in job.alternatives
        assert len(set(start.nodes)) == start.alternative.nodes
        assert job.allowed is None or job.allowed.issuperset(start.nodes)
        above = [node.switches for node in snapshot.nodes if node.name in start.nodes]
        assert len(above) == 1 or not any(above) or set.intersection(*map(set, above)), "one switch joins its nodes"


@pytest.mark.long
@settings(max_examples=80)
@given(snapshots(), parameters())
def test_the_plan_does_not_depend_on_the_order_of_projects_and_is_the_same_again(snapshot, given_parameters):
    reordered = replace(snapshot, projects=dict(reversed(snapshot.projects.items())))

    assert plan(snapshot, given_parameters) == plan(snapshot, given_parameters) == plan(reordered, given_parameters)


@pytest.mark.long
@settings(max_examples=80)
@given(snapshots(), parameters())
def test_max_jobs_never_matches_fewer_than_any_member_alone(snapshot, given_parameters):
    result = plan(snapshot, given_parameters)

    for member in given_parameters.portfolio or PAPER_PORTFOLIO:
        alone = plan(snapshot, replace(given_parameters, portfolio=(member,)))
        assert result.report.matched[member] == len(alone.starts) <= len(result.starts)


@settings(max_examples=80)
@given(nodes(), st.integers(2, 8), st.lists(alternatives(), max_size=6))
def test_capacity_withheld_for_the_head_is_not_given_away(listed, cores, others):
    largest = max(listed, key=lambda node: node.free.memory_mb)
    demand = Resources(max(cores, largest.free.cores + 1), GB)
    head = Job(0, 0, (Alternative(1, demand),), allowed=frozenset({largest.name}))
    behind = tuple(Job(at, at, (alternative,), order=(at,)) for at, alternative in enumerate(others, start=1))
    could_ever_hold = demand.within(largest.capacity)

    starts = plan(Snapshot(listed, (head, *behind)), MatchingParameters(reservations=1)).starts

    if could_ever_hold:  # more cores are withheld than are free: nothing else gets in
        assert all(largest.name not in start.nodes for start in starts)


@pytest.mark.long
@settings(max_examples=80)
@given(snapshots(), parameters())
def test_remembering_failed_shapes_changes_no_schedule(snapshot, given_parameters):
    """Against a cycle that tries every job: the shortcut is exact."""
    plain = plainly(max_jobs(given_parameters))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FailedShapes, "cover", lambda *_: False)
        without = plain.plan(snapshot)

    assert plain.plan(snapshot) == without
