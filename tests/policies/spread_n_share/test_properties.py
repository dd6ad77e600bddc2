"""What holds for every profile, every cluster and every queue."""

from dataclasses import replace

import pytest
from clusters import part_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from programs import ASSUMED, GB, types_of

from slurm_sns.closids import counted
from slurm_sns.errors import Infeasible
from slurm_sns.model import NOTHING, Job, Node, Project, Resources, Snapshot
from slurm_sns.policies.base import Request
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.profile import Program, Run
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.policies.spread_n_share.scales import choose

TASKS = (1, 3, 8, 16)
SCALES = (1, 2, 3, 4, 8)


@st.composite
def programs(draw) -> Program:
    runs = []
    for processes in TASKS:
        for scale in sorted({1, *draw(st.sets(st.sampled_from(SCALES)))}):
            ways = tuple(sorted(draw(st.sets(st.integers(1, 20), min_size=2, max_size=5))))
            ipc = tuple(draw(st.floats(0.1, 2.0)) for _ in ways)
            bandwidth = tuple(draw(st.floats(0.0, 70.0)) for _ in ways)
            runs.append(Run(processes, scale, draw(st.floats(50, 150)), ways, ipc, bandwidth, ASSUMED))
    return Program("p", tuple(runs), "", draw(st.none() | st.sampled_from([1, 2, 8])))


@st.composite
def clusters(draw) -> tuple[Node, ...]:
    nodes = []
    kinds = [Resources(8, 16 * GB, 11, 50), Resources(16, 32 * GB, 20, 100), Resources(4, 8 * GB)]
    if draw(st.booleans()):
        kinds = [kind._replace(closids=counted(kind.ways, draw(st.sampled_from([0, 3, 4, 8])))) for kind in kinds]
    for at in range(draw(st.integers(2, 7))):
        capacity = draw(st.sampled_from(kinds))
        empty = draw(st.booleans())
        free = capacity if empty else part_of(draw, capacity)
        nodes.append(Node(f"n{at}", capacity, free))
    return tuple(nodes)


def requests():
    return st.builds(
        Request,
        tasks=st.sampled_from(TASKS),
        memory_per_node_mb=st.sampled_from([GB, 4 * GB]),
        alpha=st.none() | st.sampled_from([0.5, 0.8, 0.9, 1.0]),
        max_scale=st.none() | st.sampled_from([1, 2, 4]),
        exclusive=st.sampled_from([False, False, False, True]),
    )


def parameters():
    return st.builds(
        SpreadingParameters,
        shared_ways=st.sampled_from([0, 2]),
        even_scales_only=st.booleans(),
        scales=st.sampled_from([(1, 2, 4, 8), (1, 3), (8, 4, 2, 1)]),
    )


@pytest.mark.long
@settings(max_examples=100)
@given(programs(), requests(), clusters(), parameters())
def test_each_alternative_of_a_job_keeps_alpha_fills_its_nodes_and_fits_an_empty_cluster(
    of, request, nodes, given_parameters
):
    try:
        alternatives = choose(request, of, types_of(nodes), given_parameters).alternatives
    except Infeasible:
        assume(False)
    runs, alpha = of.at(request.tasks), request.alpha or given_parameters.alpha
    factor = given_parameters.frequency_factor

    assert alternatives
    for alternative in alternatives:
        run = runs[alternative.scale]
        assert (
            (alternative.nodes - 1) * alternative.tasks_per_node
            < request.tasks
            <= alternative.nodes * alternative.tasks_per_node
        )
        spreading = run.time_s * factor(alternative.scale) / runs[1].time_s
        kept = run.kept_at(alternative.demand.ways) if alternative.demand.ways and not alternative.exclusive else 1.0
        # By its spreading and by its ways it keeps alpha each; both together may be below (section 4.3).
        assert kept >= alpha - 1e-9
        assert alternative.scale == 1 or 1 / spreading >= alpha - 1e-9
        assert abs(alternative.slowdown - spreading / kept) < 1e-9
        keeps_back = given_parameters.shared_ways
        fitting = [
            node
            for node in nodes
            if alternative.demand.within(node.capacity._replace(ways=max(0, node.capacity.ways - keeps_back)))
        ]
        assert len(fitting) >= alternative.nodes
    assert len({(alternative.nodes, alternative.exclusive) for alternative in alternatives}) == len(alternatives)
    assert {alternative.scale for alternative in alternatives} <= set(given_parameters.scales)


@st.composite
def snapshots(draw, *, old_first=False):
    """A snapshot and the parameters its jobs' alternatives came from; with `old_first` its first job is over-aged."""
    nodes = draw(clusters())
    given_parameters = draw(parameters())
    known = [draw(programs()), draw(programs()), None]
    waiting = []
    for identity in range(draw(st.integers(1, 10))):
        try:
            ways = choose(
                draw(requests()),
                draw(st.sampled_from(known)),
                types_of(nodes),
                given_parameters,
            ).alternatives
        except Infeasible:
            continue
        names = [node.name for node in nodes]
        waiting.append(
            Job(
                id=identity,
                submit_s=identity,
                alternatives=ways,
                order=(identity,),
                project=draw(st.sampled_from("pq")),
                allowed=draw(st.none() | st.frozensets(st.sampled_from(names), min_size=1)),
                over_aged=draw(st.integers(0, 4)) == 0 or (old_first and not waiting),
            )
        )
    projects = {"p": Project(2.0), "q": Project(1.0, Resources(2, GB))}
    return Snapshot(nodes, tuple(waiting), projects), given_parameters


def policies(given_parameters):
    return (
        spread_n_share(given_parameters),
        combined(spreading=given_parameters),
    )


@pytest.mark.long
@settings(max_examples=60)
@given(snapshots())
def test_the_capacity_of_all_resources_is_kept_and_shared_ways_stay_free(case):
    snapshot, given_parameters = case
    are_closids_counted = any(node.capacity.closids for node in snapshot.nodes)
    for policy in policies(given_parameters):
        free = {node.name: node.free for node in snapshot.nodes}
        capacity = {node.name: node.capacity for node in snapshot.nodes}
        alternatives = {job.id: job.alternatives for job in snapshot.waiting}
        for start in policy.plan(snapshot).starts:
            assert (
                start.alternative in alternatives[start.job_id]
            )  # so alpha is kept, as the test above shows of each alternative
            assert len(set(start.nodes)) == len(start.nodes) == start.alternative.nodes
            for name in start.nodes:
                if start.alternative.exclusive:
                    assert free[name] == capacity[name]
                    free[name] = Resources(0, 0)
                else:
                    demand = start.alternative.demand
                    free[name] = free[name].minus(demand)
                    assert NOTHING.within(free[name])
                    assert demand.closids == (are_closids_counted and demand.ways > 0)
                    if start.alternative.demand.ways:
                        assert free[name].ways >= given_parameters.shared_ways


@pytest.mark.long
@settings(max_examples=60)
@given(snapshots())
def test_the_plan_is_the_same_whatever_the_order_of_dicts(case):
    snapshot, given_parameters = case
    reordered = replace(snapshot, projects=dict(reversed(snapshot.projects.items())))
    for policy, again in zip(policies(given_parameters), policies(given_parameters), strict=True):
        assert policy.plan(snapshot) == again.plan(reordered)


@pytest.mark.long
@settings(max_examples=60)
@given(snapshots(old_first=True))
def test_nobody_overtakes_an_over_aged_job_on_the_nodes_it_waits_for(case):
    """The oldest over-aged job that is not started: on the n nodes that it could use with the fewest used cores (as
    they are when it has its turn) nobody behind it starts.
    """
    snapshot, given_parameters = case
    plan = spread_n_share(given_parameters).plan(snapshot)
    over_aged = sorted((job for job in snapshot.waiting if job.over_aged), key=lambda job: (job.submit_s, job.order))
    started = {start.job_id: start for start in plan.starts}
    oldest = next((job for job in over_aged if job.id not in started), None)
    assume(oldest is not None)
    ahead = {job.id for job in over_aged[: over_aged.index(oldest)]}
    capacity = {node.name: node.capacity for node in snapshot.nodes}
    left = {node.name: node.free for node in snapshot.nodes}
    for start in plan.starts:
        if start.job_id in ahead:
            for name in start.nodes:
                taken = capacity[name] if start.alternative.exclusive else start.alternative.demand
                left[name] = left[name].minus(taken)

    def could_use(alternative):
        shared = given_parameters.shared_ways
        return [
            node
            for node in snapshot.nodes
            if (oldest.allowed is None or node.name in oldest.allowed)
            and alternative.demand.within(node.capacity._replace(ways=max(0, node.capacity.ways - shared)))
        ]

    alternative = next(
        (alternative for alternative in oldest.alternatives if len(could_use(alternative)) >= alternative.nodes), None
    )
    assume(alternative is not None)
    by_used_cores = sorted(could_use(alternative), key=lambda node: node.capacity.cores - left[node.name].cores)
    with_room = [node for node in by_used_cores if left[node.name].cores >= 1 and left[node.name].memory_mb >= GB]
    kept = {node.name for node in with_room[: alternative.nodes]}
    for start in plan.starts:
        if start.job_id not in ahead:
            assert kept.isdisjoint(start.nodes)
