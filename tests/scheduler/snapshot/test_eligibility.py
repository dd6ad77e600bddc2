"""Which nodes a job may use now: the same as asking for each node, for the work of a few sets."""

from dataclasses import replace
from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import NOW, job, look, node

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.scheduler.observation import ObservedReservation
from slurm_sns.scheduler.snapshot.backlog_claims import NodeClaim
from slurm_sns.scheduler.snapshot.eligibility import KEPT, MOST_STEPS, MOST_WISHES, Eligibility
from slurm_sns.scheduler.snapshot.node_sets import NodeSets
from slurm_sns.scheduler.snapshot.spreading import NEVER_SPREAD
from slurm_sns.topology import Topology

PARTITIONS = ("main", "small", "urgent")
NAMES = [f"c{number}" for number in range(12)]
some_names = st.frozensets(st.sampled_from([*NAMES, "unknown"]), max_size=12)
moments = st.integers(-3, 3).map(lambda hours: NOW + 3600 * hours)

nodes = st.tuples(*(st.frozensets(st.sampled_from(PARTITIONS), min_size=1) for _ in NAMES)).map(
    lambda partitions: [node(name, partitions=each) for name, each in zip(NAMES, partitions, strict=True)]
)
reservations = st.lists(st.builds(ObservedReservation, st.just("r"), some_names, moments, moments), max_size=4)
claims = st.lists(st.builds(NodeClaim, st.integers(1, 6), some_names, moments, moments | st.just(inf)), max_size=6).map(
    lambda found: sorted(found, key=lambda claim: claim.submit_s)
)
jobs = st.builds(
    lambda submit_s, partitions, hours: job(
        1, submit_s=submit_s, partitions=tuple(partitions), walltime_s=hours and 3600 * hours
    ),
    st.integers(0, 7),
    st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3, unique=True),
    st.sampled_from((None, 1, 2, 5)),
)


def asked_of_each_node(job, nodes, reservations, claims) -> frozenset[str]:
    """The plain answer: each node, against each reservation and claim."""
    end_s = inf if job.walltime_s is None else NOW + job.walltime_s

    def meets(each) -> bool:
        return each.start_s < end_s and each.end_s > NOW

    taken = [each.nodes for each in reservations if meets(each)]
    taken += [each.nodes for each in claims if each.submit_s <= job.submit_s and meets(each)]
    return frozenset(
        node.name
        for node in nodes
        if set(job.partitions) & node.partitions and not any(node.name in names for names in taken)
    )


@pytest.mark.long
@given(nodes, reservations, claims, st.lists(jobs, min_size=1, max_size=5))
def test_a_job_may_use_the_nodes_that_nothing_keeps_from_it(nodes, reservations, claims, jobs) -> None:
    nodes = [*nodes, node("spare", partitions=frozenset(PARTITIONS))]  # so that none is left without a node
    eligibility = Eligibility(look(nodes=nodes, reservations=tuple(reservations)), NOW, NEVER_SPREAD, claims)
    for each in jobs:
        assert eligibility.of(each)[1] == asked_of_each_node(each, nodes, reservations, claims)


def test_jobs_of_all_different_time_limits_share_their_sets() -> None:
    """A user can write any time limit; only which claims a job would meet makes a difference."""
    seen = [node(name) for name in NAMES]
    planned = [
        NodeClaim(0, frozenset(NAMES[:3]), NOW + 3000, inf),
        NodeClaim(0, frozenset(NAMES[3:5]), NOW + 6000, inf),
    ]
    eligibility = Eligibility(look(nodes=seen), NOW, NEVER_SPREAD, planned)
    allowed = {id(eligibility.of(job(number, walltime_s=60 * number))[1]) for number in range(1, 200)}
    assert len(allowed) == 3


def test_however_many_claims_there_are_jobs_share_a_few_sets_and_none_that_counts_is_overlooked() -> None:
    claims = [NodeClaim(at, frozenset({f"c{at}"}), NOW + 100 * at, inf) for at in range(300)]
    seen = [node(f"c{at}") for at in range(301)]
    eligibility = Eligibility(look(nodes=seen), NOW, NEVER_SPREAD, claims)
    jobs = [job(1, submit_s=3 * at, walltime_s=600 * hours) for at, hours in product(range(100), range(1, 50))]
    allowed = [eligibility.of(each)[1] for each in jobs]
    assert len({id(each) for each in allowed}) <= (MOST_STEPS + 1) ** 2
    step = len(claims) // (MOST_STEPS // 2) + 1
    for each, found in zip(jobs, allowed, strict=True):
        exact = asked_of_each_node(each, seen, (), claims)
        assert found <= exact
        assert len(exact) - len(found) <= 2 * step


def test_a_claim_that_begins_much_later_than_the_others_does_not_count_with_them() -> None:
    claims = [NodeClaim(at, frozenset({f"c{at}"}), NOW + 60 * at, inf) for at in range(40)]
    claims.append(NodeClaim(40, frozenset(f"c{at}" for at in range(100)), NOW + 86_400, inf))
    eligibility = Eligibility(look(nodes=[node(f"c{at}") for at in range(100)]), NOW, NEVER_SPREAD, claims)
    assert len(eligibility.of(job(1, submit_s=100, walltime_s=7200))[1]) == 60
    with pytest.raises(Closed, match=KEPT):
        eligibility.of(job(1, submit_s=100, walltime_s=90_000))


def test_jobs_that_name_their_partitions_in_another_order_share_their_sets() -> None:
    eligibility = Eligibility(look(nodes=[node(name) for name in NAMES]), NOW, NEVER_SPREAD)
    first, second = (eligibility.of(job(1, partitions=each))[1] for each in (("main", "small"), ("small", "main")))
    assert first is second


def test_a_job_all_of_whose_nodes_are_claimed_waits() -> None:
    eligibility = Eligibility(look(nodes=[node("c1")]), NOW, NEVER_SPREAD, [NodeClaim(0, frozenset({"c1"}), NOW, inf)])
    with pytest.raises(Closed, match=KEPT):
        eligibility.of(job(1))


def test_a_set_keeps_the_order_of_the_look() -> None:
    sets = NodeSets([node("c9"), node("c1"), node("s1")])
    assert [each.name for each in sets.members(sets.of_names(["s1", "c9", "gone"]))] == ["c9", "s1"]
    assert sets.names(sets.of_partitions(["small"])) == {"s1"}
    assert sets.members(sets.of_partitions(["none"])) == ()
    assert sets.kinds(sets.of_partitions(["none"])) == ()


UNLIKE = [
    node("c1", features=frozenset({"ib", "avx512"})),
    node("c2", features=frozenset({"ib"}), memory_mb=64_000),
    node("c3", features=frozenset({"opa", "avx512"}), cores=4),
    node("c4"),
]


@pytest.mark.parametrize(
    ("wish", "allowed"),
    [
        ({"constraint": "ib"}, "c1 c2"),
        ({"constraint": "ib|opa&avx512"}, "c1 c3"),
        ({"excluded": ("c1", "c9")}, "c2 c3 c4"),
        ({"constraint": "avx512", "excluded": ("c1",)}, "c3"),
        ({"is_alone": True, "memory_per_cpu_mb": 4000}, "c1 c3 c4"),  # c2 has no 4,000 MiB for each of its CPUs
        ({"is_alone": True, "memory_per_cpu_mb": None, "memory_per_node_mb": 64_000}, "c1 c2 c3 c4"),
    ],
)
def test_a_job_may_use_the_nodes_that_it_asks_for(wish, allowed: str) -> None:
    choice, nodes = Eligibility(look(nodes=UNLIKE), NOW, NEVER_SPREAD).of(job(1, **wish))
    assert nodes == set(allowed.split())
    assert all(each.exclusive == wish.get("is_alone", False) for each in choice.alternatives)


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"constraint": "nosuch"}, "no node of its partitions is left"),
        ({"excluded": ("c1", "c2", "c3", "c4")}, "no node of its partitions is left"),
        ({"is_alone": True, "memory_per_cpu_mb": 100_000}, "no node of its partitions is left"),
        ({"constraint": "ib*2"}, "counts or brackets"),
        ({"constraint": "opa", "tasks": 5, "nodes_max": 1}, "5 tasks of 1 CPUs fit on no nodes"),
    ],
)
def test_a_job_that_asks_for_nodes_that_are_not_there_is_slurms(wish, why: str) -> None:
    with pytest.raises(Infeasible, match=why):
        Eligibility(look(nodes=UNLIKE), NOW, NEVER_SPREAD).of(job(1, **wish))


def test_the_different_sets_of_nodes_that_an_owner_asks_for_are_limited() -> None:
    """Each costs work on every node, and a user can write any; what others ask for does not count."""
    eligibility = Eligibility(look(nodes=UNLIKE), NOW, NEVER_SPREAD)
    wishes = ["|".join(["ib"] * (number + 1)) for number in range(MOST_WISHES + 1)]
    for number, wish in enumerate(wishes[:-1]):
        eligibility.of(job(number, constraint=wish))
    with pytest.raises(Infeasible, match="more than 64 different sets of nodes"):
        eligibility.of(job(99, constraint=wishes[-1]))
    eligibility.of(job(100, constraint=wishes[0]))
    eligibility.of(job(101, constraint=wishes[-1], user_id=7))
    eligibility.of(job(102))


TWO_FABRICS = Topology({"c1": ("a", "top"), "c2": ("a", "top"), "c3": ("b", "top"), "c4": ("b", "top")})


@pytest.mark.parametrize(
    ("topology", "nodes", "why"),
    [
        (TWO_FABRICS, 4, ""),
        (TWO_FABRICS.without({"top"}), 2, ""),
        (TWO_FABRICS.without({"top"}), 3, "no nodes that are connected"),
        (Topology(unknown="TopologyPlugin is topology/3d_torus"), 1, ""),
        (Topology(unknown="TopologyPlugin is topology/3d_torus"), 2, "TopologyPlugin is topology/3d_torus"),
    ],
)
def test_a_job_on_several_nodes_needs_nodes_that_are_connected(topology: Topology, nodes: int, why: str) -> None:
    seen = replace(look(nodes=[node(f"c{number}") for number in range(1, 5)]), topology=topology)
    wide = job(1, tasks=nodes, nodes_min=nodes, nodes_max=nodes)
    eligibility = Eligibility(seen, NOW, NEVER_SPREAD)
    if why:
        with pytest.raises(Infeasible, match=why):
            eligibility.of(wide)
    else:
        assert eligibility.of(wide)[0].alternatives[0].nodes == nodes


def nodes_used(job, *taken: str, **more):
    """The nodes that a job in the partitions main and small may use now, when these nodes are taken."""
    there = [
        node(
            name,
            8,
            partitions=frozenset({"small" if name[0] == "s" else "main"}),
            taken=(8, 0) if name in taken else (0, 0),
        )
        for name in ("c1", "c2", "c3", "s1", "s2")
    ]
    return set(
        Eligibility(look(nodes=there, **more), NOW, NEVER_SPREAD).of(replace(job, partitions=("main", "small")))[1]
    )


def test_a_job_of_several_nodes_gets_the_first_of_its_partitions_with_room_for_it_now() -> None:
    two = job(1, tasks=16, cpus=16, nodes_min=2, nodes_max=2)
    main, small = {"c1", "c2", "c3"}, {"s1", "s2"}
    assert nodes_used(two) == nodes_used(two, "c3") == main
    assert nodes_used(two, "c2", "c3") == small
    assert nodes_used(two, "c2", "c3", "s1") == main
    reserved = (ObservedReservation("r", frozenset({"s1"}), NOW, NOW + 60),)
    assert nodes_used(two, "c2", "c3", reservations=reserved) == main
    alone = job(1, "exclusive", tasks=2, cpus=2, nodes_min=2, nodes_max=2)
    assert nodes_used(alone, "c2", "c3") == small
    assert nodes_used(job(1), "c2", "c3") == main | small
