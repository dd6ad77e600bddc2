"""The combined policy: which members take part, which schedule wins, and when it equals Max-Jobs."""

from dataclasses import replace

import numpy as np
import pytest
from clusters import GB, job, node, queue
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import paper_nodes, paper_programs, snapshot

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.combined.combined import combined as the_policy
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.heuristic_names import FOR_PROFILED_JOBS
from slurm_sns.policies.placement.heuristics import HEURISTICS, angle_to_balance, mix_fit
from slurm_sns.policies.placement.node_arrays import WAYS
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.policies.specification import filled
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION, SpreadingParameters

WHOLE = (*PAPER_PORTFOLIO, *FOR_PROFILED_JOBS)
PROGRAMS = paper_programs()


def combined(*portfolio, spreading=REPRODUCTION, **matching) -> Portfolio:
    return the_policy(MatchingParameters(**matching), spreading, portfolio=portfolio or WHOLE)


def alternative(cores=1, gb=1, ways=0, gbps=0, *, nodes=1, slowdown=1.0, **fields) -> Alternative:
    return Alternative(nodes, Resources(cores, gb * GB, ways, gbps), slowdown=slowdown, **fields)


def waiting(*alternatives) -> tuple[Job, ...]:
    return tuple(Job(at, at, tuple(each), order=(at,)) for at, each in enumerate(alternatives, start=1))


def test_without_profiles_only_the_matching_papers_members_take_part():
    plan = combined().plan(Snapshot((node("a"), node("b")), queue((1, 8), (2, 8))))

    assert tuple(plan.report.matched) == PAPER_PORTFOLIO


def test_with_one_profiled_job_all_members_take_part():
    nodes = paper_nodes(2)
    jobs = (*snapshot(nodes, PROGRAMS["mg"]).waiting, *queue((1, 8), first=2))

    assert tuple(combined().plan(Snapshot(nodes, jobs)).report.matched) == WHOLE


def test_a_portfolio_of_later_members_alone_matches_jobs_without_profile_too():
    plan = combined("idlest").plan(Snapshot((node("a"), node("b", free=(2, 32))), queue((1, 8))))

    assert plan.starts[0].nodes == ("a",)


def test_among_equally_many_jobs_the_smaller_sum_of_slowdowns_wins():
    # The first member (most free cores) takes x from the second job, which then runs on its slower alternative.
    x = Node("x", Resources(8, 32 * GB, 20, 100), Resources(8, 32 * GB, 20, 100))
    y = Node("y", Resources(8, 32 * GB, 20, 100), Resources(4, 32 * GB, 20, 100))
    jobs = waiting([alternative(4, ways=2)], [alternative(8, ways=2), alternative(4, ways=2, slowdown=1.5)])
    nodes = (x, y)

    plan = combined("worse-fit-cores", "best-fit-cores").plan(Snapshot(nodes, jobs))

    assert plan.report.matched == {"worse-fit-cores": 2, "best-fit-cores": 2}
    assert plan.report.chosen == "best-fit-cores"
    assert [start.alternative.slowdown for start in plan.starts] == [1.0, 1.0]


def test_a_jobs_alternatives_are_tried_in_their_order_even_where_another_would_leave_more_room():
    x = Node("x", Resources(8, 32 * GB, 20, 100), Resources(8, 32 * GB, 20, 100))
    jobs = waiting(
        [alternative(8, ways=2, slowdown=0.5), alternative(4, ways=2, slowdown=1.0)], [alternative(4, ways=2)]
    )

    plan = combined().plan(Snapshot((x,), jobs))

    assert [(start.job_id, start.alternative.slowdown) for start in plan.starts] == [(1, 0.5)]


def test_equal_sums_go_to_the_first_member():
    plan = combined("worse-fit-ways", "best-fit-ways").plan(Snapshot(paper_nodes(2), waiting([alternative(4, ways=2)])))

    assert plan.report.chosen == "worse-fit-ways"


@pytest.mark.parametrize(
    ("heuristic", "taken"),
    [
        ("best-fit-ways", "few-ways"),
        ("worse-fit-ways", "little-bandwidth"),
        ("best-fit-bandwidth", "little-bandwidth"),
        ("worse-fit-bandwidth", "few-ways"),
    ],
)
def test_heuristics_of_ways_and_bandwidth(heuristic, taken):
    capacity = Resources(8, 32 * GB, 20, 100)
    nodes = (
        Node("middle", capacity, Resources(8, 32 * GB, 10, 50)),
        Node("few-ways", capacity, Resources(8, 32 * GB, 4, 90)),
        Node("little-bandwidth", capacity, Resources(8, 32 * GB, 19, 10)),
    )

    asking = combined(heuristic).plan(Snapshot(nodes, waiting([alternative(ways=2, gbps=5)])))
    not_asking = combined(heuristic).plan(Snapshot(nodes, waiting([alternative()])))

    assert asking.starts[0].nodes == (taken,)
    assert not_asking.starts[0].nodes == ("middle",)  # without a demand there is no score: the first


def test_a_jobs_own_heuristic_may_be_one_of_the_later_ones():
    nodes = (Node("a", Resources(8, 32 * GB), Resources(4, 32 * GB)), node("b", 8, 32))

    plan = max_jobs(MatchingParameters(portfolio=("first-fit",))).plan(Snapshot(nodes, (job(1, heuristic="idlest"),)))

    assert plan.starts[0].nodes == ("b",)


def test_shared_ways_are_kept_from_profiled_jobs_and_nothing_else_is():
    nodes = paper_nodes(1)
    sns = replace(REPRODUCTION, shared_ways=2)
    greedy = waiting([alternative(1, ways=19)], [alternative(1, ways=18)], [alternative(1)])

    assert [start.job_id for start in combined(spreading=sns).plan(Snapshot(nodes, greedy)).starts] == [2, 3]
    exclusive = waiting([alternative(1, ways=18, exclusive=True)])
    assert len(combined(spreading=sns).plan(Snapshot(nodes, exclusive)).starts) == 1


# --- Mix-Fit over several resources ---


@settings(max_examples=300)
@given(st.lists(st.tuples(st.floats(0.01, 1.01), st.floats(0.01, 1.01)), min_size=1, max_size=8))
def test_the_angle_of_two_resources_is_the_matching_papers(shares):
    left = np.array(shares).T

    papers_own = np.abs(np.pi / 4 - np.arctan(left[0] / left[1]))

    assert np.abs(angle_to_balance(left) - papers_own).max() <= 1e-9


def test_mix_fit_looks_at_the_resources_that_this_job_demands():
    capacity = Resources(10, 10 * GB, 10, 10)
    nodes = (
        Node("ways-left-over", capacity, Resources(5, 5 * GB, 10, 5)),
        Node("even", capacity, Resources(4, 4 * GB, 4, 4)),
    )

    by_two = combined("mix-fit").plan(Snapshot(nodes, waiting([alternative(1)])))
    by_four = combined("mix-fit").plan(Snapshot(nodes, waiting([alternative(1, 1, 1, 1)])))

    assert by_two.starts[0].nodes == ("ways-left-over",)  # both are at 45 degrees: the first
    assert by_four.starts[0].nodes == ("even",)


def test_mix_fit_is_zero_where_all_is_exactly_full():
    capacity = np.array([[4, 4], [4 * GB, 4 * GB], [20, 20], [100, 100]])

    scores = mix_fit(capacity, capacity.copy(), np.array([0, 1]), (4, 4 * GB, 20, 100))

    assert scores.tolist() == [0, 0]


def test_mix_fit_leaves_out_what_the_job_does_not_demand():
    capacity = np.array([[8, 8], [8 * GB, 8 * GB], [20, 20], [100, 100]])
    one, other = capacity.copy(), capacity.copy()
    other[2:] = [[3, 17], [90, 2]]

    demand, columns = (2, GB), np.array([0, 1])

    assert mix_fit(capacity, one, columns, demand).tolist() == mix_fit(capacity, other, columns, demand).tolist()


# --- without profiles it is Max-Jobs ---


@st.composite
def plain_snapshots(draw):
    nodes = tuple(
        node(f"n{at}", 4, 32, free=(draw(st.integers(0, 4)), draw(st.integers(0, 32))))
        for at in range(draw(st.integers(1, 6)))
    )
    sizes = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 32), st.integers(1, 2)), max_size=12))
    return Snapshot(nodes, tuple(job(at, cores, gb, count) for at, (cores, gb, count) in enumerate(sizes)))


@settings(max_examples=80)
@given(plain_snapshots(), st.integers(0, 3), st.sampled_from([0, 2]))
def test_without_profiles_it_is_max_jobs(case, reservations, shared_ways):
    sns = replace(REPRODUCTION, shared_ways=shared_ways)

    ours = combined(spreading=sns, reservations=reservations).plan(case)

    assert ours == max_jobs(MatchingParameters(reservations=reservations)).plan(case)


@settings(max_examples=40)
@given(plain_snapshots(), st.integers(0, 3))
def test_without_profiles_it_is_max_jobs_even_where_its_own_loop_runs(case, reservations):
    """The paper's five members are given by name: none of them is for profiled jobs only."""
    matching = MatchingParameters(reservations=reservations)
    policy = the_policy(matching, REPRODUCTION, portfolio=matching.portfolio)

    ours, theirs = policy.plan(case), max_jobs(matching).plan(case)

    assert (ours.starts, ours.report) == (theirs.starts, theirs.report)


def test_with_the_largest_beta_the_node_with_the_most_ways_left_is_the_idlest():
    policy = the_policy(MatchingParameters(), replace(REPRODUCTION, beta=1e6), portfolio=("idlest",))
    capacity = Resources(8, 32 * GB, 20, 100)
    nodes = tuple(Node(f"{ways} ways", capacity, capacity._replace(ways=ways)) for ways in (9, 11, 10))

    plan = policy.plan(Snapshot(nodes, waiting([alternative(1, ways=2)])))

    assert [start.nodes for start in plan.starts] == [("11 ways",)]


def test_explain_lists_the_members_that_competed_and_no_others():
    nodes = (node("a"), node("b"))

    policy = combined()
    plain, profiled = (
        policy.explain(snapshot, policy.plan(snapshot), 1)
        for snapshot in (Snapshot(nodes, queue((1, 8))), Snapshot(nodes, waiting([alternative(1, ways=2)])))
    )

    assert tuple(member.name for member in plain.considered) == PAPER_PORTFOLIO
    assert tuple(member.name for member in profiled.considered) == WHOLE


def test_policies_are_known_by_name():
    assert {"ce", "cs", "sns", "combined"} <= set(REGISTRY)
    for name in ("ce", "cs", "sns"):
        known = specification(name)
        assert known.policy(filled(known.parameters[0], SpreadingParameters(queue_depth=7))).rules.queue_depth == 7
    assert specification("combined").policy(MatchingParameters(queue_depth=7)).rules.queue_depth == 7
    with pytest.raises(BadInput, match="beta is nan"):
        specification("sns").policy(SpreadingParameters(beta=float("nan")))


def test_beta_is_part_of_the_policy_and_the_default_of_the_heuristic():
    assert HEURISTICS["idlest"].occupied[WAYS] == 2.0
    of_three = combined(spreading=SpreadingParameters(beta=3.0))
    assert of_three._chooser("idlest")(job(1)).occupied[WAYS] == 3.0
    assert of_three._chooser("mix-fit")(job(1)) == HEURISTICS["mix-fit"]
