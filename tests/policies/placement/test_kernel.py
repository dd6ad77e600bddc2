"""The compiled kernel against the plain twin: the same plan in every case."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from clusters import GB, GPUS_OF_JOBS, GPUS_OF_NODES, half_of, job, node, part_of, placed, plan, regions
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.portfolio import plainly

from slurm_sns.model import ActiveJob, ActiveState, Alternative, Job, Node, Project, Resources, Snapshot
from slurm_sns.node_lists import folded
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters, ways_to_withhold
from slurm_sns.policies.placement import kernel_matching
from slurm_sns.policies.placement.heuristic_names import alternative_orders, tie_rules
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.waiting_queue import WaitingQueue
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters

PROJECTS = ("p", "q", "r")
#: Few sizes, so that nodes are equal and scores tie; and some odd ones.
MEMORY_MB = st.sampled_from([0, 1024, 2048, 4096, 8192, 8192, 16384]) | st.integers(0, 16384)
#: Some nodes cannot share their cache, some know no bandwidth, some have no CLOSIDs or few, and most have no GPUs.
SIZES = st.builds(
    Resources,
    st.sampled_from([0, 4, 8, 8]),
    MEMORY_MB,
    st.sampled_from([0, 11, 11]),
    st.sampled_from([0, 100, 100]),
    st.sampled_from([0, 1, 2, 11]),
    GPUS_OF_NODES,
)


@st.composite
def nodes(draw) -> tuple[Node, ...]:
    listed = []
    weights, switches = draw(regions())
    for at in range(draw(st.integers(1, 40))):
        capacity = draw(SIZES)
        empty = draw(st.booleans())
        free = capacity if empty else part_of(draw, capacity)
        listed.append(Node(f"n{at}", capacity, free, draw(weights), draw(switches)))
    return tuple(listed)


def alternatives():
    """Alternatives that demand two resources or more, on one node or several, exclusive or not."""
    memory_mb = st.sampled_from([1024, 2048, 4096]) | st.integers(1, 9000)
    more = st.sampled_from([0, 0, 2, 3, 11]), st.sampled_from([0, 0, 7, 50]), st.sampled_from([0, 0, 1]), GPUS_OF_JOBS
    demands = st.builds(Resources, st.sampled_from([1, 1, 2, 4]), memory_mb, *more)
    slowdowns = st.sampled_from([1.0, 1.0, 0.75, 1.1]) | st.floats(0.5, 2.0)
    several = st.sampled_from([1, 1, 1, 2, 5])
    return st.builds(Alternative, nodes=several, demand=demands, slowdown=slowdowns, exclusive=st.booleans())


@st.composite
def queues(draw, names) -> tuple[Job, ...]:
    sets = [None, None, frozenset(names), *(draw(st.frozensets(st.sampled_from(names))) for _ in range(2))]
    listed = draw(st.lists(alternatives(), min_size=1, max_size=12))
    jobs = st.builds(
        dict,
        alternatives=st.lists(st.sampled_from(listed), min_size=1, max_size=3).map(tuple),
        project=st.sampled_from(PROJECTS),
        heuristic=st.none() | st.sampled_from([*HEURISTICS, "unknown"]),
        allowed=st.sampled_from(sets),
        over_aged=st.integers(0, 15).map(lambda drawn: drawn == 0),
        withholds=st.integers(0, 3).map(lambda drawn: drawn > 0),
        expected_run_s=st.sampled_from([None, 1, 10, 10, 40, 200]),
    )
    drawn = draw(st.lists(jobs, max_size=40))
    return tuple(Job(id=at, submit_s=at, order=(at // 2,), **fields) for at, fields in enumerate(drawn))


@st.composite
def active(draw, listed: tuple[Node, ...], now_s: int) -> tuple[ActiveJob, ...]:
    """Jobs on one node or several, of what is not free there; of some nobody knows when they end, some are overdue."""
    held = {each.name: each.capacity.minus(each.free) for each in listed}
    used = [name for name, amount in held.items() if any(amount)]
    jobs = []
    for at in range(draw(st.integers(0, 12)) if used else 0):
        names = draw(st.lists(st.sampled_from(used), min_size=1, max_size=3, unique=True))
        demand = reduce(Resources.up_to, (held[name] for name in names))
        if draw(st.booleans()):
            demand = half_of(demand)
        held |= {name: held[name].minus(demand) for name in names}
        end_s = draw(st.sampled_from([None, now_s - 5, now_s + 1, now_s + 7, now_s + 10, now_s + 40, now_s + 41]))
        jobs.append(ActiveJob(1000 + at, ActiveState.RUNNING, tuple(names), demand, 0, expected_end_s=end_s))
    return tuple(jobs)


@st.composite
def snapshots(draw) -> Snapshot:
    listed = draw(nodes())
    used = st.builds(Resources, st.integers(0, 9), st.integers(0, 9 * GB), *[st.just(0)] * 3, st.just(()))
    projects = {name: Project(draw(st.sampled_from([0.5, 1.0, 3.0])), draw(used)) for name in PROJECTS[:2]}
    now_s = draw(st.integers(0, 50))  # job n was submitted in second n
    names = [node.name for node in listed]
    completing = draw(st.lists(st.sampled_from(names), max_size=3, unique=True).map(tuple))
    return Snapshot(
        listed,
        draw(queues(names)),
        projects,
        now_s=now_s,
        active=draw(active(listed, now_s)),
        completing=completing,
    )


def parameters():
    return st.builds(
        MatchingParameters,
        portfolio=st.lists(st.sampled_from(list(HEURISTICS)), min_size=1, max_size=5, unique=True).map(tuple)
        | st.none(),
        queue_depth=st.integers(1, 45),
        reservations=st.sampled_from([0, 1, 1, 2, 3, 45]),
        withhold=st.sampled_from(ways_to_withhold()),
        default_heuristic=st.none() | st.sampled_from(list(HEURISTICS)),
        ties=st.sampled_from(tie_rules()),
        withhold_up_to_s=st.none() | st.integers(0, 30),
    )


def spreading():
    return st.builds(
        SpreadingParameters,
        beta=st.sampled_from([2.0, 2.0, 0.0, 0.3, 7.5]),
        shared_ways=st.integers(0, 3),
        alternatives_order=st.sampled_from(alternative_orders()),
    )


@pytest.mark.long
@settings(max_examples=300)
@given(snapshots(), parameters())
def test_kernel_and_twin_make_the_same_plan(snapshot, chosen):
    assert max_jobs(chosen).plan(snapshot) == plainly(max_jobs(chosen)).plan(snapshot)


@pytest.mark.long
@settings(max_examples=200)
@given(snapshots(), parameters(), spreading())
def test_each_job_has_the_same_explanation_by_what_kernel_and_twin_wrote_down(snapshot, chosen, sns):
    for policy in (max_jobs(chosen), combined(chosen, sns, portfolio=chosen.portfolio)):
        plan, by_twin = policy.plan(snapshot), plainly(policy).plan(snapshot)
        for each in snapshot.waiting:
            explanation = policy.explain(snapshot, plan, each.id)
            assert explanation == policy.explain(snapshot, by_twin, each.id)
            chose = next((row for row in explanation.considered if row.name == plan.report.chosen), None)
            nodes = next((start.nodes for start in plan.starts if start.job_id == each.id), None)
            assert chose is None or nodes is None or chose.outcome == f"on {folded(nodes)}"


@pytest.mark.long
@settings(max_examples=300)
@given(snapshots(), parameters(), spreading())
def test_kernel_and_twin_make_the_same_combined_plan(snapshot, chosen, sns):
    both = combined(chosen, sns, portfolio=chosen.portfolio)

    assert both.plan(snapshot) == plainly(both).plan(snapshot)


@pytest.mark.long
@settings(max_examples=100)
@given(st.data(), parameters(), spreading())
def test_pass_after_pass_on_the_same_nodes_the_kernel_makes_the_twins_schedules(data, chosen, sns):
    """Jobs come, others end, and the same alternatives meet other free capacity: nothing stale may be used."""
    listed = data.draw(nodes())
    node_arrays = NodeArrays.of(listed)
    free = node_arrays.amounts([node.free for node in listed])
    both = combined(chosen, sns, portfolio=chosen.portfolio)
    ours, theirs = both, plainly(both)
    for _ in range(4):
        queue = WaitingQueue.of(data.draw(queues(node_arrays.names)), {}, data.draw(st.integers(0, 50)))
        schedules = [policy.schedule(node_arrays, free, queue) for policy in (ours, theirs)]
        assert told(schedules[0]) == told(schedules[1])
        for match in schedules[0].matches:
            free[:, match.nodes] -= np.array([node_arrays.demand(match.alternative.demand)]).T
        ended = data.draw(st.lists(st.integers(0, len(listed) - 1), max_size=5))
        free[:, ended] = node_arrays.capacity[:, ended]
        free = np.maximum(free, 0)


def test_sizes_never_met_before_come_with_each_pass():
    """On the same nodes, the kernel's tables are replaced by larger ones again and again."""
    node_arrays = NodeArrays.of([node(f"n{at}", cores=8, gb=16 + at % 7) for at in range(30)])
    free, parameters = node_arrays.capacity.copy(), MatchingParameters(("worse-fit-memory", "mix-fit"), queue_depth=100)
    ours, theirs = max_jobs(parameters), plainly(max_jobs(parameters))
    for number in range(6):
        sizes = [(1 + at % 3, (1024 + 64 * number + at) / GB, 1 + at % 2) for at in range(60)]
        queue = WaitingQueue.of([job(at, *size) for at, size in enumerate(sizes)], {})
        schedules = [policy.schedule(node_arrays, free, queue) for policy in (ours, theirs)]
        assert told(schedules[0]) == told(schedules[1])
        free[:, number] = 0


def test_several_threads_may_ask_one_policy():
    """For example, a job is explained while the next cycle is planned."""
    parameters = MatchingParameters(("mix-fit", "best-fit-cores"))
    clusters = [[node(f"n{at}", 8, 16, free=(1 + at % size, 16)) for at in range(10 * size)] for size in range(1, 9)]
    snapshots = [
        Snapshot(tuple(nodes), tuple(job(at, 1 + at % 3, 2) for at in range(len(nodes))), {}) for nodes in clusters
    ]
    ours, theirs = max_jobs(parameters), plainly(max_jobs(parameters))

    with ThreadPoolExecutor(4) as threads:
        plans = list(threads.map(ours.plan, snapshots * 3))

    assert plans == [theirs.plan(snapshot) for snapshot in snapshots] * 3


def told(schedule):
    """The contents of a schedule as values that can be compared."""
    matches = [(match.job.id, match.alternative, match.nodes.tolist()) for match in schedule.matches]
    withheld = [(each.job.id, each.alternative, each.nodes.tolist(), each.start_s) for each in schedule.withheld]
    left = schedule.record.left(schedule.record.members[schedule.chosen]).tolist()
    return schedule.chosen, dict(schedule.matched), matches, withheld, left


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_the_kernel_knows_the_heuristic(heuristic):
    result = plan([node("A"), node("B", free=(2, 8))], [job(1), job(2, 1, 2, nodes=2)], heuristic)

    assert placed(result).keys() == {1, 2}


def wide(name: str, size: int = 8, **free) -> Node:
    capacity = Resources(size, 8192, 11, 100)
    return Node(name, capacity, capacity._replace(**free))


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_the_kernel_knows_the_heuristic_for_cache_and_bandwidth(heuristic):
    wants = Alternative(nodes=1, demand=Resources(1, 1024, 4, 50))

    result = plan([wide("A"), wide("B", bandwidth_gbps=60)], [job(1, alternatives=(wants,))], heuristic)

    assert placed(result).keys() == {1}


@pytest.mark.parametrize("size", [2_000, 65_535, 1 << 20])
def test_nodes_of_any_size_have_scores_that_the_kernel_holds(size):
    """The scores of `idlest` grow with the cores of a node; those of the memory-first pair with its memory."""
    giants = (wide("A", size, cores=1), wide("B", size), wide("C", size, cores=3))
    largest = [replace(each, capacity=each.capacity._replace(memory_mb=1 << 32)) for each in giants]

    assert placed(plan(giants, [job(1), job(2, 1, 1, 2)], "idlest")) == {1: "B", 2: "B+C"}
    assert placed(plan(largest, [job(1)], "memory-first-best")) == {1: "A"}


def test_a_demand_of_no_cores_is_one_of_one_core_in_plan_and_record():
    no_cores = Alternative(nodes=1, demand=Resources(0, 1024))
    made = plan([node("A", free=(2, 8))], [job(1, alternatives=(no_cores,)), job(2, 2, 1)], "mix-fit")

    assert made.starts[0].alternative.demand.cores == 1
    assert made.waiting == {2: "no allowed node has 2 cores and 1024 MiB free; nearest: A lacks 1 core"}


def test_memory_is_measured_by_the_queue_where_nodes_are_huge():
    giants = [wide(f"n{at}", 1 << 20) for at in range(1000)]

    assert placed(plan(giants, [job(1, 1, 1)], "first-fit")) == {1: "n0"}


@pytest.mark.long
def test_many_distinct_shapes_and_many_nodes_are_the_same_too():
    """More alternatives than are kept at a time, in more than one block of nodes."""
    listed = [node(f"n{at}", cores=8, gb=16 + at % 7, free=(1 + at % 8, 1 + at % 15)) for at in range(300)]
    waiting = [job(at, 1 + at % 3, (1024 + 7 * at % 5000) / GB) for at in range(2500)]
    snapshot = Snapshot(tuple(listed), tuple(waiting), {})
    parameters = MatchingParameters(tuple(HEURISTICS), queue_depth=10_000)

    assert max_jobs(parameters).plan(snapshot) == plainly(max_jobs(parameters)).plan(snapshot)


@pytest.mark.parametrize(("reservations", "is_uniform"), [(0, True), (2, True), (2, False)])
def test_many_profiled_jobs_on_many_nodes_are_the_same_too(reservations, is_uniform):
    """Several alternatives on one node and on many, in all resources; with ties, and with groups too small.

    Also where nodes differ in weight and lie under switches, in three parts that are not connected.
    """
    rng = np.random.default_rng(7)
    capacity = Resources(28, 128 * GB, 20, 118, 3)
    listed = [Node(f"n{at}", capacity, capacity) for at in range(60)]
    for at in range(60, 300):
        free = Resources(*(int(rng.integers(0, amount + 1)) for amount in capacity.all_but_gpus))
        listed.append(Node(f"n{at}", capacity, free))
    if not is_uniform:
        listed = [
            replace(each, weight=at // 7 % 4, switches=(f"leaf{at // 15}", f"part{at // 120}"))
            for at, each in enumerate(listed)
        ]
    waiting = []
    for at in range(800):
        cores, ways, gbps = int(rng.integers(1, 29)), int(rng.choice([0, 2, 3, 10])), int(rng.choice([0, 1, 43, 112]))
        count = int(rng.choice([1, 1, 1, 2, 4, 40]))
        choices = tuple(
            Alternative(
                count * scale,
                Resources(-(-cores // scale), GB, ways, -(-gbps // scale), int(ways > 0)),
                slowdown=1 + 0.01 * scale,
            )
            for scale in rng.permutation([1, 2, 4, 8])[: rng.integers(1, 5)].tolist()
        )
        if rng.random() < 0.1:
            choices = (replace(choices[0], exclusive=True), *choices)
        waiting.append(Job(at, at, choices, order=(at,), over_aged=at % 97 == 5))
    snapshot = Snapshot(tuple(listed), tuple(waiting), {})
    both = combined(MatchingParameters(queue_depth=10_000, reservations=reservations), portfolio=tuple(HEURISTICS))

    ours, theirs = both.plan(snapshot), plainly(both).plan(snapshot)

    assert len(ours.starts) > 100
    assert (ours.starts, ours.report) == (theirs.starts, theirs.report)


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_few_shapes_on_many_nodes_in_turn_are_the_same_too(heuristic):
    """The best nodes that are kept for each alternative are brought up to date again and again."""
    sizes = [(4, 16), (8, 32), (8, 64), (16, 128), (12, 48)]
    listed = [
        node(f"n{at}", *sizes[at * 7 % 5], free=(1 + at % sizes[at * 7 % 5][0], 4 + at % 12)) for at in range(150)
    ]
    shapes = [(1, 1), (1, 2), (2, 1), (1, 4), (1, 3.5), (4, 2), (2, 6)]
    waiting = [job(at, *shapes[at * at % 11 % 7]) for at in range(600)]
    snapshot = Snapshot(tuple(listed), tuple(waiting), {})
    parameters = MatchingParameters((heuristic,))

    assert max_jobs(parameters).plan(snapshot) == plainly(max_jobs(parameters)).plan(snapshot)


def sessions_after(policy, snapshots) -> list[int]:
    """By identity the session that each plan has left."""
    found = []
    for snapshot in snapshots:
        policy.plan(snapshot)
        found.append(id(policy._kernel._sessions[0]))
    return found


def test_a_queue_of_very_many_kinds_has_its_tables_made_once_and_they_go_when_most_of_these_kinds_are_gone():
    most = kernel_matching.MOST_KINDS
    many = Snapshot((node("c1", 4, 8 * most),), tuple(job(at, 1, at) for at in range(1, most + 10)))
    few = replace(many, waiting=many.waiting[:10])

    policy = max_jobs(MatchingParameters(queue_depth=2 * most))
    first, again, left, after = sessions_after(policy, (many, many, few, few))

    assert first == again == left, "the queue needs all of these kinds, and the last pass had them"
    assert after != left
    assert len(policy._kernel._sessions[0]._table) == 10
    assert policy.plan(many) == max_jobs(MatchingParameters(queue_depth=2 * most)).plan(many)


def test_sets_of_nodes_are_masks_whatever_other_names_are_in_them_and_may_be_forgotten():
    arrays = NodeArrays.of([node("c1"), node("c2"), node("c3")])
    for _ in range(2):
        mask = arrays.allows(frozenset({"c3", "c1", "gone"}))
        assert mask is not None
        assert mask.tolist() == [True, False, True]
        arrays.forget_masks()
    none = arrays.allows(frozenset({"gone"}))
    assert none is not None
    assert not none.any()
