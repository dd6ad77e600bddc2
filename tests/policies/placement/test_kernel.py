"""The compiled kernel against the plain twin: the same plan in every case."""

import pytest
from clusters import GB, job, node, placed, plan
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.model import Alternative, Job, Node, Project, Resources, Snapshot
from slurm_sns.policies.matching import max_jobs
from slurm_sns.policies.matching.keys import KEYS
from slurm_sns.policies.matching.max_jobs import MaxJobs, PlainMaxJobs
from slurm_sns.policies.matching.parameters import MatchingParameters

PROJECTS = ("p", "q", "r")
LINEAR = [name for name, key in KEYS.items() if not key.angle]
#: Few sizes, so that nodes are equal and scores tie; and some odd ones.
MEMORY_MB = st.sampled_from([0, 1024, 2048, 4096, 8192, 8192, 16384]) | st.integers(0, 16384)


@st.composite
def nodes(draw) -> tuple[Node, ...]:
    listed = []
    for at in range(draw(st.integers(1, 40))):
        capacity = Resources(draw(st.sampled_from([0, 4, 8, 8])), draw(MEMORY_MB), 11, 100)
        empty = draw(st.booleans())
        free = capacity if empty else Resources(*(draw(st.integers(0, amount)) for amount in capacity))
        listed.append(Node(f"n{at}", capacity, free))
    return tuple(listed)


def alternatives(resources: int):
    """Jobs that ask for cores and memory only, or for up to four resources."""
    more = st.sampled_from([0, 0, 0, 3, 11]) if resources > 2 else st.just(0)
    memory_mb = st.sampled_from([1024, 2048, 4096]) | st.integers(1, 9000)
    demands = st.builds(Resources, st.sampled_from([1, 1, 2, 4]), memory_mb, more, more)
    return st.builds(Alternative, nodes=st.sampled_from([1, 1, 1, 2, 5]), demand=demands, exclusive=st.booleans())


@st.composite
def cases(draw) -> tuple[Snapshot, MatchingParameters]:
    listed = draw(nodes())
    names = [node.name for node in listed]
    resources = draw(st.sampled_from([2, 4]))
    heuristics = list(KEYS) if resources == 2 else LINEAR
    sets = [None, None, *(draw(st.frozensets(st.sampled_from(names))) for _ in range(2))]
    ways = draw(st.lists(alternatives(resources), min_size=1, max_size=12))
    jobs = st.builds(
        dict,
        alternatives=st.lists(st.sampled_from(ways), min_size=1, max_size=3).map(tuple),
        project=st.sampled_from(PROJECTS),
        heuristic=st.none() | st.sampled_from([*heuristics, "unknown"]),
        allowed=st.sampled_from(sets),
        over_aged=st.integers(0, 15).map(lambda drawn: drawn == 0),
    )
    drawn = draw(st.lists(jobs, max_size=40))
    waiting = tuple(Job(id=at, submit_s=at, order=(at // 2,), **fields) for at, fields in enumerate(drawn))
    used = st.builds(Resources, st.integers(0, 9), st.integers(0, 9 * GB))
    projects = {name: Project(draw(st.sampled_from([0.5, 1.0, 3.0])), draw(used)) for name in PROJECTS[:2]}
    parameters = st.builds(
        MatchingParameters,
        portfolio=st.lists(st.sampled_from(heuristics), min_size=1, max_size=4, unique=True).map(tuple),
        queue_depth=st.integers(1, 45),
        reservations=st.sampled_from([0, 1, 1, 3, 45]),
        default_heuristic=st.none() | st.sampled_from(heuristics),
    )
    return Snapshot(listed, waiting, projects), draw(parameters)


@pytest.fixture
def kernel_alone(monkeypatch):
    """The twin must not stand in for the kernel."""
    monkeypatch.setattr(max_jobs.MaxJobs, "schedule_plainly", None)


@settings(deadline=None, max_examples=300)
@given(cases())
def test_kernel_and_twin_make_the_same_plan(case):
    snapshot, parameters = case

    assert MaxJobs(parameters).plan(snapshot, 0) == PlainMaxJobs(parameters).plan(snapshot, 0)


@pytest.mark.usefixtures("kernel_alone")
@pytest.mark.parametrize("heuristic", KEYS)
def test_the_kernel_knows_the_heuristic(heuristic):
    result = plan([node("A"), node("B", free=(2, 8))], [job(1), job(2, 1, 2, nodes=2)], heuristic)

    assert placed(result).keys() == {1, 2}


def test_what_the_kernel_does_not_know_runs_in_the_twin():
    wants = Alternative(nodes=1, demand=Resources(1, 1024, 4, 50))
    wide = [
        Node(name, Resources(8, 8192, 11, 100), Resources(8, 8192, 11, free)) for name, free in (("A", 99), ("B", 60))
    ]

    assert placed(plan(wide, [job(1, alternatives=(wants,))], "best-fit-bandwidth")) == {1: "B"}
    assert placed(plan(wide, [job(1, alternatives=(wants,))], "mix-fit")) == placed(
        PlainMaxJobs(MatchingParameters(("mix-fit",))).plan(
            Snapshot(tuple(wide), (job(1, alternatives=(wants,)),), {}), 0
        )
    )


def test_many_distinct_shapes_and_many_nodes_are_the_same_too():
    """More ways than are kept at a time, in more than one block of nodes."""
    listed = [node(f"n{at}", cores=8, gb=16 + at % 7, free=(1 + at % 8, 1 + at % 15)) for at in range(300)]
    waiting = [job(at, 1 + at % 3, (1024 + 7 * at % 5000) / GB) for at in range(2500)]
    snapshot = Snapshot(tuple(listed), tuple(waiting), {})
    parameters = MatchingParameters(tuple(KEYS), queue_depth=10_000)

    assert MaxJobs(parameters).plan(snapshot, 0) == PlainMaxJobs(parameters).plan(snapshot, 0)


@pytest.mark.parametrize("heuristic", KEYS)
def test_few_shapes_on_many_nodes_in_turn_are_the_same_too(heuristic):
    """What is kept of each way is brought up to date again and again."""
    sizes = [(4, 16), (8, 32), (8, 64), (16, 128), (12, 48)]
    listed = [
        node(f"n{at}", *sizes[at * 7 % 5], free=(1 + at % sizes[at * 7 % 5][0], 4 + at % 12)) for at in range(150)
    ]
    shapes = [(1, 1), (1, 2), (2, 1), (1, 4), (1, 3.5), (4, 2), (2, 6)]
    waiting = [job(at, *shapes[at * at % 11 % 7]) for at in range(600)]
    snapshot = Snapshot(tuple(listed), tuple(waiting), {})
    parameters = MatchingParameters((heuristic,))

    assert MaxJobs(parameters).plan(snapshot, 0) == PlainMaxJobs(parameters).plan(snapshot, 0)
